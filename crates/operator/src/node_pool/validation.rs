//! Tells in a NodePool's conditions whether it makes sense.

use std::sync::Arc;

use api::conditions::Conditions;
use api::labels::LabelSets;
use api::names::conditions::node_pool::VALIDATION_SUCCEEDED;
use api::names::controllers::NODE_POOL_VALIDATION;
use api::names::reasons::node_pool::VALIDATION_FAILED;
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use api::validation::node_pool;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::controller::{Again, Controller, Outcome, Reconcile};

use crate::managed::is_pool_managed;
use crate::wiring::Wiring;
use crate::{Context, catalogue, status};

/// The pool with its new conditions.
fn decide(pool: &NodePool, sets: &LabelSets, now: Timestamp) -> NodePool {
    let mut pool = pool.clone();
    let wrong = node_pool::validate(&pool.spec, sets).err();
    let mut conditions = Conditions::of(&mut pool, now);
    match wrong {
        None => conditions.set_true(VALIDATION_SUCCEEDED),
        Some(wrong) => conditions.set(
            VALIDATION_SUCCEEDED,
            ConditionStatus::False,
            VALIDATION_FAILED,
            &wrong.to_string(),
        ),
    };
    pool
}

struct Validation(Context);

impl Reconcile for Validation {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let pool = context.cluster.read().node_pools.get(key).map(Arc::clone);
            let Some(pool) = pool.filter(|pool| is_pool_managed(pool, context.provider())) else {
                return Ok(Again::No);
            };
            // Instance types bring labels of their own. Without them the labels of the cloud count. Overlays change
            // neither, so nobody waits for them.
            let types = context.cloud.listed_instance_types(&pool).await.unwrap_or_default();
            let sets = catalogue::label_sets(context.provider(), types.iter());
            let decided = decide(&pool, &sets, context.now());
            if let Some(change) = status::conditions(&*pool, &decided) {
                context.api.patch_status::<NodePool>(key, &change).await?;
            }
            Ok(Again::No)
        }
        .boxed()
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    Wiring::new(NODE_POOL_VALIDATION, 10).listening(context, Validation(context.clone()), super::touch_pool)
}

#[cfg(test)]
mod tests {
    use api::conditions::HasConditions;
    use api::provider::Provider;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::pool;

    #[track_caller]
    fn check(change: &Value, status: ConditionStatus, message: &str) {
        let sets = LabelSets::for_provider(Provider::Kwok);
        let decided = decide(&pool("p", change), &sets, Timestamp::UNIX_EPOCH);
        let condition = decided.condition("ValidationSucceeded").unwrap();
        assert_eq!(condition.status, status, "{condition:?}");
        assert!(condition.message.contains(message), "{}", condition.message);
    }

    fn requirement(key: &str, values: &[&str]) -> Value {
        let asked = json!([{"key": key, "operator": "In", "values": values}]);
        json!({"spec": {"template": {"spec": {"requirements": asked}}}})
    }

    #[test]
    fn a_sound_pool_is_valid_and_a_wrong_one_says_why() {
        check(&json!({}), ConditionStatus::True, "");
        check(&requirement("karpenter.sh/capacity-type", &["xspot"]), ConditionStatus::False, "xspot");
        check(&requirement("karpenter.sh/capacity-type", &["xspot", "spot"]), ConditionStatus::True, "");
        let taint = json!({"spec": {"template": {"spec": {"taints": [{"key": "a", "effect": "No"}]}}}});
        check(&taint, ConditionStatus::False, r#"invalid value: "No" in taints"#);
    }

    #[test]
    fn a_pool_that_becomes_valid_says_so() {
        let sets = LabelSets::for_provider(Provider::Kwok);
        let at = |second| Timestamp::from_second(second).unwrap();
        let wrong = decide(&pool("p", &requirement("karpenter.sh/nodepool", &["a"])), &sets, at(1));
        assert_eq!(wrong.condition("ValidationSucceeded").unwrap().reason, "NodePoolValidationFailed");
        let mut repaired = pool("p", &json!({}));
        repaired.status = wrong.status;
        let decided = decide(&repaired, &sets, at(2));
        let condition = decided.condition("ValidationSucceeded").unwrap();
        assert_eq!((condition.status, condition.last_transition_time.0), (ConditionStatus::True, at(2)));
        assert!(status::conditions(&decided, &decide(&decided, &sets, at(3))).is_none());
    }
}

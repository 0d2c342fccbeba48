//! Tells in a NodePool's conditions whether it makes sense.
//!
//! A disruption budget that cannot be read has a condition of its own: it keeps the pool's nodes from being disrupted,
//! but it is no reason to launch none. Pools whose budgets can be read have no such condition.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::labels::LabelSets;
use api::names::conditions::node_pool::{BUDGETS_VALID, VALIDATION_SUCCEEDED};
use api::names::controllers::NODE_POOL_VALIDATION;
use api::names::events;
use api::names::reasons::node_pool::{INVALID_BUDGETS, VALIDATION_FAILED};
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use api::validation::budget::wrong_budgets;
use api::validation::node_pool;
use api::validation::requirement::unknown_values;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::events::About;

use crate::managed::is_pool_managed;
use crate::text::truncated;
use crate::wiring::Wiring;
use crate::{Context, catalogue, status};

/// How many of the budgets that cannot be read are named.
const NAMED: usize = 3;

/// What is wrong with the budgets of a pool, if anything is.
fn wrong_with_budgets(pool: &NodePool) -> Option<String> {
    let wrong = wrong_budgets(&pool.spec.disruption.budgets);
    let named: Vec<String> = wrong.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match wrong.len() - named.len() {
        0 => String::new(),
        others => format!("; and {others} more"),
    };
    let text = format!("nodes of this pool are not disrupted: {}{more}", named.join("; "));
    (!wrong.is_empty()).then(|| truncated(&text))
}

/// The pool with its new conditions.
fn decide(pool: &NodePool, sets: &LabelSets, now: Timestamp) -> NodePool {
    let mut pool = pool.clone();
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let wrong = node_pool::validate(name, &pool.spec, sets).err();
    let wrong_budgets = wrong_with_budgets(&pool);
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
    match wrong_budgets {
        Some(wrong) => {
            conditions.set(BUDGETS_VALID, ConditionStatus::False, INVALID_BUDGETS, &wrong);
        }
        None => {
            // `Ready` does not depend on it, so that it can go.
            let _ = conditions.clear(BUDGETS_VALID);
        }
    }
    pool
}

/// What the condition about budgets says, if there is one.
fn told_of_budgets(pool: &NodePool) -> Option<&str> {
    pool.condition(BUDGETS_VALID).map(|condition| condition.message.as_str())
}

/// Tells users of budgets that cannot be read, and logs it once.
fn tell_of_budgets(context: &Context, before: &NodePool, after: &NodePool) {
    let (said, now) = (told_of_budgets(before), told_of_budgets(after));
    if let Some(wrong) = now {
        let about = About::object(after);
        let uid = about.uid.clone();
        context.events.publish(&events::INVALID_BUDGETS, about, wrong, &[&uid, wrong]);
    }
    if said == now {
        return;
    }
    let name = after.metadata.name.as_deref().unwrap_or_default();
    if let Some(wrong) = now {
        tracing::error!(NodePool = name, error = wrong, "detected disruption budget errors");
    } else {
        tracing::info!(NodePool = name, "disruption budgets can be read again");
    }
}

/// Values that a pool asks for although they are known not to exist, beside others that do: they have no effect.
fn unknown_values_of(pool: &NodePool, sets: &LabelSets) -> Vec<String> {
    let requirements = &pool.spec.template.spec.requirements;
    let unknown = requirements.iter().map(|it| (&it.key, unknown_values(it, sets)));
    unknown.flat_map(|(key, values)| values.into_iter().map(move |value| format!("{key}={value}"))).collect()
}

struct Validation {
    context: Context,
    /// The values without effect that were told of each pool.
    unknown: Mutex<BTreeMap<Key, Vec<String>>>,
}

impl Validation {
    /// Logs values that have no effect, once. `unknown` is nothing for a pool that is gone.
    fn tell_unknown(&self, key: &Key, unknown: Vec<String>) {
        let mut told = self.unknown.lock();
        if unknown.is_empty() {
            told.remove(key);
        } else if told.get(key) != Some(&unknown) {
            let values = unknown.join(", ");
            tracing::error!(NodePool = %key.name, values, "nodepool requires values that do not exist, beside others");
            told.insert(key.clone(), unknown);
        }
    }
}

impl Reconcile for Validation {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let context = &self.context;
            let pool = context.cluster.read().node_pools.get(key).map(Arc::clone);
            let Some(pool) = pool.filter(|pool| is_pool_managed(pool, context.provider())) else {
                self.tell_unknown(key, Vec::new());
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
            tell_of_budgets(context, &pool, &decided);
            self.tell_unknown(key, unknown_values_of(&pool, &sets));
            Ok(Again::No)
        }
        .boxed()
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let validation = Validation { context: context.clone(), unknown: Mutex::default() };
    Wiring::new(NODE_POOL_VALIDATION, 10).listening(context, validation, super::touch_pool)
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

    fn budgets(schedules: &[&str]) -> Value {
        let of = |schedule: &&str| json!({"nodes": "1", "schedule": schedule, "duration": "1h"});
        json!({"spec": {"disruption": {"budgets": schedules.iter().map(of).collect::<Vec<_>>()}}})
    }

    #[test]
    fn a_budget_that_cannot_be_read_has_a_condition_of_its_own() {
        let sets = LabelSets::for_provider(Provider::Kwok);
        let at = |second| Timestamp::from_second(second).unwrap();
        let schedule = "99 99 * * xyz";
        let mut wrong = decide(&pool("p", &budgets(&["@daily", schedule])), &sets, at(1));
        let condition = wrong.condition("BudgetsValid").unwrap();
        assert_eq!((condition.status, &*condition.reason), (ConditionStatus::False, "InvalidBudgets"));
        for part in ["spec.disruption.budgets[1].schedule: ", "\"99 99 * * xyz\"", "\"99\" is not "] {
            assert!(condition.message.contains(part), "{}", condition.message);
        }
        // It is no reason not to launch anything.
        assert!(wrong.is_true("ValidationSucceeded"));
        Conditions::of(&mut wrong, at(1)).set_true("NodeClassReady");
        assert!(wrong.is_true("Ready"));
        let mut repaired = pool("p", &json!({}));
        repaired.status = wrong.status;
        let decided = decide(&repaired, &sets, at(2));
        assert!(decided.condition("BudgetsValid").is_none() && decided.is_true("Ready"));
    }

    #[test]
    fn many_long_budgets_that_cannot_be_read_fit_into_a_condition() {
        let sets = LabelSets::for_provider(Provider::Kwok);
        let decide =
            |schedules: &[&str]| decide(&pool("p", &budgets(schedules)), &sets, Timestamp::UNIX_EPOCH);
        let decided = decide(&["a b c d e"; 50]);
        assert!(told_of_budgets(&decided).unwrap().ends_with("; and 47 more"));
        let decided = decide(&[&*"a b c d e".repeat(10_000)]);
        assert!(told_of_budgets(&decided).unwrap().len() <= 1024);
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

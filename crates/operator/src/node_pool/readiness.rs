//! NodePool readiness: NodeClassReady follows the NodeClass, FeatureGateEnabled is false for static NodePools while
//! their gate is off.

use std::sync::Arc;

use api::conditions::Conditions;
use api::names::conditions::READY;
use api::names::conditions::node_pool::{FEATURE_GATE_ENABLED, NODE_CLASS_READY};
use api::names::controllers::NODE_POOL_READINESS;
use api::names::{messages, reasons};
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use cluster::objects::NodeClass;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::settings::Gates;

use crate::managed::is_pool_managed;
use crate::wiring::Wiring;
use crate::{Context, feature_gates, status};

/// The pool with its new conditions.
fn decide(pool: &NodePool, class: Option<&NodeClass>, gates: Gates, now: Timestamp) -> NodePool {
    let is_idle = pool.spec.replicas.is_some() && !gates.static_capacity;
    let mut pool = pool.clone();
    let mut conditions = Conditions::of(&mut pool, now);
    if is_idle {
        let (off, message) = (ConditionStatus::False, feature_gates::NO_STATIC_CAPACITY);
        conditions.set(FEATURE_GATE_ENABLED, off, feature_gates::REASON, message);
    } else {
        conditions.clear(FEATURE_GATE_ENABLED).expect("`Ready` does not depend on it");
    }
    let mut refuse = |reason: &str, message: &str| {
        conditions.set(NODE_CLASS_READY, ConditionStatus::False, reason, message);
    };
    let Some(class) = class else {
        refuse(reasons::node_pool::NODE_CLASS_NOT_FOUND, messages::NODE_CLASS_NOT_FOUND);
        return pool;
    };
    if class.metadata.is_deleting() {
        refuse(reasons::node_pool::NODE_CLASS_TERMINATING, messages::NODE_CLASS_TERMINATING);
        return pool;
    }
    let ready = class.condition(READY);
    match ready.map_or(ConditionStatus::Unknown, |ready| ready.status) {
        ConditionStatus::True => {
            conditions.set_true(NODE_CLASS_READY);
        }
        ConditionStatus::Unknown => {
            refuse(reasons::node_pool::NODE_CLASS_READINESS_UNKNOWN, messages::NODE_CLASS_READINESS_UNKNOWN);
        }
        ConditionStatus::False => {
            let (reason, message) = ready.map_or(("", ""), |ready| (&ready.reason, &ready.message));
            refuse(reason, message);
        }
    }
    pool
}

struct Readiness(Context);

impl Reconcile for Readiness {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let (pool, decided) = {
                let state = context.cluster.read();
                let Some(pool) = state.node_pools.get(key) else { return Ok(Again::No) };
                if !is_pool_managed(pool, context.provider()) {
                    return Ok(Again::No);
                }
                let class = state.node_classes.named(&pool.spec.template.spec.node_class_ref.name);
                (
                    Arc::clone(pool),
                    decide(pool, class.map(|class| &**class), context.settings.gates, context.now()),
                )
            };
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
    let workers = context.settings.workers(10, 1000);
    Wiring::new(NODE_POOL_READINESS, workers).listening(
        context,
        Readiness(context.clone()),
        super::touch_pool_and_class,
    )
}

#[cfg(test)]
mod tests {
    use api::conditions::HasConditions;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::pool;

    fn ready(status: &str, reason: &str, message: &str) -> Value {
        let condition = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        json!({"metadata": {"name": "default"}, "status": {"conditions": [condition]}})
    }

    #[track_caller]
    fn check(class: Option<Value>, status: ConditionStatus, reason: &str, message: &str) {
        let class: Option<NodeClass> = class.map(|class| serde_json::from_value(class).unwrap());
        let decided = decide(&pool("p", &json!({})), class.as_ref(), Gates::default(), Timestamp::UNIX_EPOCH);
        let condition = decided.condition("NodeClassReady").unwrap();
        assert_eq!((condition.status, &*condition.reason, &*condition.message), (status, reason, message));
    }

    #[test]
    fn a_pool_is_as_ready_as_its_node_class() {
        let no = ConditionStatus::False;
        check(None, no, "NodeClassNotFound", "NodeClass not found on cluster");
        check(Some(ready("True", "Ready", "")), ConditionStatus::True, "NodeClassReady", "");
        check(Some(ready("False", "NoSubnets", "none match")), no, "NoSubnets", "none match");
        let unknown = ("NodeClassReadinessUnknown", "Node Class Readiness Unknown");
        check(Some(ready("Unknown", "", "")), no, unknown.0, unknown.1);
        check(Some(json!({"metadata": {"name": "default"}})), no, unknown.0, unknown.1);
        let mut leaving = ready("True", "Ready", "");
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        check(Some(leaving), no, "NodeClassTerminating", "NodeClass is Terminating");
    }

    #[test]
    fn a_static_pool_says_that_its_gate_is_off_until_it_is_on() {
        let fixed = pool("p", &json!({"spec": {"replicas": 2}}));
        let on = Gates { static_capacity: true, ..Gates::default() };
        let off = decide(&fixed, None, Gates::default(), Timestamp::UNIX_EPOCH);
        let condition = off.condition("FeatureGateEnabled").unwrap();
        assert_eq!((condition.status, &*condition.reason), (ConditionStatus::False, "FeatureGateDisabled"));
        assert_eq!(condition.message, "spec.replicas has no effect, the feature gate StaticCapacity is off");
        assert!(decide(&off, None, on, Timestamp::UNIX_EPOCH).condition("FeatureGateEnabled").is_none());
        let usual = decide(&pool("p", &json!({})), None, Gates::default(), Timestamp::UNIX_EPOCH);
        assert!(usual.condition("FeatureGateEnabled").is_none());
    }
}

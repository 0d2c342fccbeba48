//! Keeps track of whether the nodes of a NodePool have been joining the cluster.
//!
//! The last four outcomes of each pool are remembered. They say something about the pool and its NodeClass as
//! they were; once either changes, everything is open again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_pool::NODE_REGISTRATION_HEALTHY;
use api::names::controllers::NODE_POOL_REGISTRATION_HEALTH;
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use cluster::objects::NodeClass;
use cluster::state::{Change, Key, Object};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use serde_json::{Value, json};

use crate::managed::is_pool_managed;
use crate::wiring::Wiring;
use crate::{Context, status};

/// How many outcomes count.
const REMEMBERED: usize = 4;
/// From how many failures on a pool counts as broken.
const TOO_MANY_FAILURES: usize = 2;

/// Whether nodes join the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// There was none yet.
    Unknown,
    /// They do, mostly.
    Healthy,
    /// They do not, too often.
    Unhealthy,
}

/// The last outcomes of each NodePool, by its UID. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Registrations(Arc<Mutex<BTreeMap<Box<str>, Outcomes>>>);

#[derive(Clone, Debug, Default)]
struct Outcomes(VecDeque<bool>);

impl Outcomes {
    fn push(&mut self, joined: bool) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(joined);
    }

    fn health(&self) -> Health {
        if self.0.is_empty() {
            Health::Unknown
        } else if self.0.iter().filter(|joined| !**joined).count() >= TOO_MANY_FAILURES {
            Health::Unhealthy
        } else {
            Health::Healthy
        }
    }
}

impl Registrations {
    /// Whether nodes of a pool join the cluster.
    pub fn health(&self, pool_uid: &str) -> Health {
        self.0.lock().get(pool_uid).map_or(Health::Unknown, Outcomes::health)
    }

    /// What it would be with one more outcome.
    pub fn health_with(&self, pool_uid: &str, joined: bool) -> Health {
        let mut outcomes = self.0.lock().get(pool_uid).cloned().unwrap_or_default();
        outcomes.push(joined);
        outcomes.health()
    }

    /// Notes that a node of a pool joined, or did not in time.
    pub fn record(&self, pool_uid: &str, joined: bool) {
        self.0.lock().entry(pool_uid.into()).or_default().push(joined);
    }

    /// Forgets what was noted of a pool.
    pub fn forget(&self, pool_uid: &str) {
        self.0.lock().remove(pool_uid);
    }
}

/// What is to be done about a pool.
#[derive(Debug, Default, PartialEq)]
struct Decision {
    /// The outcomes to begin with, where the process has forgotten what the condition still tells.
    seed: &'static [bool],
    /// Whether everything is open again.
    forget: bool,
    status: Option<Value>,
}

fn decide(pool: &NodePool, class: &NodeClass, health: Health, now: Timestamp) -> Decision {
    let condition = pool.condition(NODE_REGISTRATION_HEALTHY);
    let seed: &[bool] = match (health, condition.map(|condition| condition.status)) {
        (Health::Unknown, Some(ConditionStatus::True)) => &[true],
        (Health::Unknown, Some(ConditionStatus::False)) => &[false; TOO_MANY_FAILURES],
        _ => &[],
    };
    let generation = pool.metadata.generation.unwrap_or_default();
    let observed = pool.status.as_ref().and_then(|status| status.node_class_observed_generation);
    let class_generation = Some(class.metadata.generation);
    let forget = condition.is_none_or(|condition| condition.observed_generation != generation)
        || observed.unwrap_or_default() != class.metadata.generation;
    let mut after = pool.clone();
    if forget {
        Conditions::of(&mut after, now).set_unknown(NODE_REGISTRATION_HEALTHY);
    }
    let mut patch = status::conditions(pool, &after);
    if observed != class_generation {
        let patch = patch.get_or_insert_with(|| json!({"metadata": status::lock(pool)}));
        patch["status"]["nodeClassObservedGeneration"] = class_generation.into();
    }
    Decision { seed, forget, status: patch }
}

struct RegistrationHealth(Context);

impl Reconcile for RegistrationHealth {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let (uid, decision) = {
                let state = context.cluster.read();
                let Some(pool) = state.node_pools.get(key) else { return Ok(Again::No) };
                let class = state.node_classes.named(&pool.spec.template.spec.node_class_ref.name);
                let Some(class) = class.filter(|_| is_pool_managed(pool, context.provider())) else {
                    return Ok(Again::No);
                };
                let uid = pool.metadata.uid.clone().unwrap_or_default();
                let health = context.registrations.health(&uid);
                (uid, decide(pool, class, health, context.now()))
            };
            if let Some(change) = &decision.status {
                context.api.patch_status::<NodePool>(key, change).await?;
            }
            for joined in decision.seed {
                context.registrations.record(&uid, *joined);
            }
            if decision.forget {
                context.registrations.forget(&uid);
            }
            Ok(Again::No)
        }
        .boxed()
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let workers = context.settings.workers(10, 1000);
    let registrations = context.registrations.clone();
    Wiring::new(NODE_POOL_REGISTRATION_HEALTH, workers).listening(
        context,
        RegistrationHealth(context.clone()),
        move |change, state, queue| {
            super::touch_pool_and_class(change, state, queue);
            if let Change { old: Some(Object::NodePool(pool)), new: None } = change {
                registrations.forget(pool.metadata.uid.as_deref().unwrap_or_default());
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pool;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn class(generation: i64) -> NodeClass {
        serde_json::from_value(json!({"metadata": {"name": "default", "generation": generation}})).unwrap()
    }

    /// A pool of generation 2 that has seen the class of generation 1.
    fn settled(status: &str, observed: i64) -> NodePool {
        let condition = json!({
            "type": "NodeRegistrationHealthy", "status": status, "reason": "a", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": observed,
        });
        let status = json!({"nodeClassObservedGeneration": 1, "conditions": [condition]});
        pool("p", &json!({"metadata": {"generation": 2}, "status": status}))
    }

    #[test]
    fn two_of_the_last_four_failures_are_too_many() {
        let registrations = Registrations::default();
        assert_eq!(registrations.health("a"), Health::Unknown);
        registrations.record("a", false);
        assert_eq!(registrations.health("a"), Health::Healthy);
        assert_eq!(registrations.health_with("a", false), Health::Unhealthy);
        assert_eq!(registrations.health("a"), Health::Healthy, "asking changes nothing");
        registrations.record("a", false);
        assert_eq!(registrations.health("a"), Health::Unhealthy);
        for _ in 0..3 {
            registrations.record("a", true);
        }
        assert_eq!(registrations.health("a"), Health::Healthy, "the first failure is forgotten");
        assert_eq!(registrations.health("b"), Health::Unknown);
        registrations.forget("a");
        assert_eq!(registrations.health("a"), Health::Unknown);
    }

    #[test]
    fn a_new_pool_is_open() {
        let decision = decide(&pool("p", &json!({})), &class(1), Health::Unknown, NOW);
        assert!(decision.forget);
        let status = decision.status.unwrap();
        assert_eq!(status["status"]["nodeClassObservedGeneration"], 1);
        let all = status["status"]["conditions"].as_array().unwrap();
        let healthy = all.iter().find(|c| c["type"] == "NodeRegistrationHealthy").unwrap();
        assert_eq!(healthy["status"], "Unknown");
    }

    #[test]
    fn what_was_known_before_a_restart_still_counts() {
        for (status, seed) in [("True", &[true][..]), ("False", &[false, false])] {
            let decision = decide(&settled(status, 2), &class(1), Health::Unknown, NOW);
            assert_eq!(decision, Decision { seed, forget: false, status: None });
            let decision = decide(&settled(status, 2), &class(1), Health::Healthy, NOW);
            assert!(decision.seed.is_empty());
        }
    }

    #[test]
    fn a_change_of_pool_or_class_opens_everything_again() {
        for (pool, generation) in [(settled("False", 1), 1), (settled("True", 2), 2)] {
            let decision = decide(&pool, &class(generation), Health::Unhealthy, NOW);
            assert!(decision.forget && decision.status.is_some());
        }
    }
}

//! Orphans: instances that no NodeClaim has.

use std::collections::{BTreeMap, BTreeSet};

use api::names::labels;
use api::names::tags::aws as tags;
use api::nodeclaim::NodeClaim;
use jiff::{SignedDuration, Timestamp};

use super::machine::Machine;
use super::provider_id;

/// How long the claim of an instance may take to learn of it.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// NodeClaims, as far as orphans depend on them.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The provider IDs of their instances.
    ids: BTreeSet<String>,
    /// When the first claim was created that is about to be launched, by NodePool.
    launching: BTreeMap<String, Timestamp>,
}

impl Claims {
    /// What matters of these claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a NodeClaim>) -> Self {
        let mut all = Self::default();
        for claim in claims {
            match claim.status.as_ref().map_or("", |status| &status.provider_id) {
                "" if claim.metadata.deletion_timestamp.is_none() => {
                    let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
                    let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
                    let created = created.unwrap_or(Timestamp::MIN);
                    let first = all.launching.entry(pool.cloned().unwrap_or_default()).or_insert(created);
                    *first = created.min(*first);
                }
                id => {
                    all.ids.insert(id.to_owned());
                }
            }
        }
        all
    }

    /// Whether a claim has the instance, or may only not have been told of it: it was created before the instance
    /// was launched, and has none. Instances bear the name of their claim as soon as it knows them.
    fn has(&self, machine: &Machine) -> bool {
        let pool = machine.tags.get(tags::NODEPOOL).map_or("", String::as_str);
        let is_launching = || {
            let first = self.launching.get(pool);
            !machine.tags.contains_key(tags::NODE_CLAIM)
                && first.is_some_and(|first| machine.launched.is_some_and(|at| *first <= at))
        };
        self.ids.contains(&provider_id::of(&machine.zone, &machine.id)) || is_launching()
    }
}

/// Instances that are to be terminated, because no claim has them. Instances must have been listed before claims, so
/// that none is missed that was launched in between.
pub fn orphans<'a>(
    machines: impl IntoIterator<Item = &'a Machine>,
    claims: &Claims,
    now: Timestamp,
) -> Vec<&'a Machine> {
    machines
        .into_iter()
        .filter(|machine| !machine.state.is_ending())
        .filter(|machine| machine.launched.is_some_and(|at| now.duration_since(at) >= GRACE))
        .filter(|machine| !claims.has(machine))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::port::InstanceState;

    fn machine(id: &str, age: i64, state: InstanceState) -> Machine {
        Machine {
            id: id.to_owned(),
            zone: "a".to_owned(),
            launched: Some(Timestamp::constant(1000 - age, 0)),
            tags: [(tags::NODEPOOL.to_owned(), "default".to_owned())].into(),
            state,
            ..Machine::default()
        }
    }

    fn claim(id: &str, created: i64) -> NodeClaim {
        let created = Timestamp::from_second(created).unwrap().to_string();
        let reference = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "n"});
        serde_json::from_value(json!({
            "metadata": {"name": "c", "labels": {"karpenter.sh/nodepool": "default"}, "creationTimestamp": created},
            "spec": {"requirements": [], "nodeClassRef": reference},
            "status": {"providerID": id},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(machines: &[Machine], claims: &[NodeClaim], expected: &[&str]) {
        let now = Timestamp::constant(1000, 0);
        let found = orphans(machines, &Claims::of(claims), now);
        let ids: Vec<&str> = found.iter().map(|each| each.id.as_str()).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn an_instance_without_a_claim_has_half_a_minute() {
        let all = [
            machine("i-1", 30, InstanceState::Running),
            machine("i-2", 29, InstanceState::Running),
            machine("i-3", 500, InstanceState::ShuttingDown),
            machine("i-4", 500, InstanceState::Running),
            machine("i-5", 500, InstanceState::Stopped),
            Machine { launched: None, ..machine("i-6", 0, InstanceState::Running) },
        ];
        check(&all, &[claim("aws:///a/i-4", 400)], &["i-1", "i-5"]);
    }

    #[test]
    fn an_instance_stays_while_its_claim_may_not_have_been_told_of_it() {
        let mut tagged = machine("i-2", 100, InstanceState::Running);
        tagged.tags.insert(tags::NODE_CLAIM.to_owned(), "gone".to_owned());
        let all = [machine("i-1", 100, InstanceState::Running), tagged];
        check(&all, &[claim("", 850)], &["i-2"]);
        // A claim that was created later will get an instance of its own.
        check(&all, &[claim("", 950)], &["i-1", "i-2"]);
    }
}

//! Instances that no claim knows.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::machine::Machine;
use super::provider_id;

/// How long the claim of an instance may take to learn of it.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// Instances that are to be terminated, because no claim has their provider ID. Instances must have been listed
/// before claims, so that none is missed that was launched in between.
pub fn orphans<'a>(machines: &'a [Machine], claimed: &BTreeSet<String>, now: Timestamp) -> Vec<&'a Machine> {
    machines
        .iter()
        .filter(|machine| !machine.state.is_ending())
        .filter(|machine| machine.launched.is_some_and(|at| now.duration_since(at) >= PATIENCE))
        .filter(|machine| !claimed.contains(&provider_id::of(&machine.zone, &machine.id)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::InstanceState;

    #[test]
    fn an_instance_without_a_claim_has_half_a_minute() {
        let now = Timestamp::constant(1000, 0);
        let machine = |id: &str, age: i64, state| Machine {
            id: id.to_owned(),
            zone: "a".to_owned(),
            launched: Some(Timestamp::constant(1000 - age, 0)),
            state,
            ..Machine::default()
        };
        let all = [
            machine("i-1", 30, InstanceState::Running),
            machine("i-2", 29, InstanceState::Running),
            machine("i-3", 500, InstanceState::ShuttingDown),
            machine("i-4", 500, InstanceState::Running),
            machine("i-5", 500, InstanceState::Stopped),
            Machine { launched: None, ..machine("i-6", 0, InstanceState::Running) },
        ];
        let claimed = ["aws:///a/i-4".to_owned()].into();
        let ids: Vec<&str> = orphans(&all, &claimed, now).iter().map(|each| each.id.as_str()).collect();
        assert_eq!(ids, ["i-1", "i-5"]);
    }
}

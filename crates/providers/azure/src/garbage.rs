//! Machines and network interfaces that nobody needs any more.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::vm::{Instance, machine_of_interface, vm_name};

/// How long the claim of a machine may take to learn of it.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// Machines that are to be deleted, because no claim has their provider ID. Machines must have been listed before
/// claims, so that none is missed that was created in between. One whose age nobody knows is new. The IDs of claims are
/// in lower case: Azure does not always write its identifiers in the same one.
pub fn machines<'a>(
    all: impl IntoIterator<Item = &'a Instance>,
    claimed: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<&'a Instance> {
    all.into_iter()
        .filter(|machine| !machine.is_deleting && machine.node_pool.is_some())
        .filter(|machine| machine.created.is_some_and(|created| now.duration_since(created) > PATIENCE))
        .filter(|machine| !claimed.contains(&machine.provider_id.to_lowercase()))
        .collect()
}

/// Network interfaces that are to be deleted: those of no machine and of no claim. All names in lower case.
pub fn interfaces<'a>(
    all: impl IntoIterator<Item = &'a str>,
    machines: &BTreeSet<String>,
    claims: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let claimed: BTreeSet<String> = claims.into_iter().map(|name| vm_name(name).to_lowercase()).collect();
    let is_needed = |name: &str| {
        let machine = machine_of_interface(name);
        machines.contains(machine) || claimed.contains(machine)
    };
    all.into_iter().filter(|name| !is_needed(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

    fn machine(id: &str, age: i64) -> Instance {
        Instance {
            name: id.to_owned(),
            provider_id: id.to_owned(),
            size: String::new(),
            zone: "0".to_owned(),
            capacity_type: "on-demand",
            image_id: String::new(),
            created: Timestamp::from_second(1_000_000 - age).ok(),
            is_deleting: false,
            node_pool: Some("pool".to_owned()),
            ultra_ssd: false,
            tags: std::collections::BTreeMap::new(),
            machine_id: None,
        }
    }

    // azure.md 15.4, 25.8
    #[test]
    fn a_machine_without_a_claim_has_five_minutes() {
        let all = [
            machine("old", 301),
            machine("young", 300),
            machine("claimed", 1000),
            machine("Claimed", 1000),
            Instance { is_deleting: true, ..machine("going", 1000) },
            Instance { created: None, ..machine("of unknown age", 0) },
            Instance { node_pool: None, ..machine("of somebody else", 1000) },
        ];
        let found = machines(&all, &["claimed".to_owned()].into(), NOW);
        let ids: Vec<&str> = found.iter().map(|each| each.provider_id.as_str()).collect();
        assert_eq!(ids, ["old"]);
    }

    // azure.md 15.5, 25.8
    #[test]
    fn interfaces_of_machines_and_of_claims_stay() {
        let all = [
            "aks-with-machine",
            "aks-with-claim",
            "aks-left",
            "aks-other",
            "aks-with-machine_2",
            "aks-left_2",
        ];
        let machines = ["aks-with-machine".to_owned()].into();
        let found = interfaces(all, &machines, ["with-claim", "left-not"]);
        assert_eq!(found, ["aks-left", "aks-other", "aks-left_2"]);
    }
}

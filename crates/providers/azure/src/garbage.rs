//! Machines and network interfaces that nobody needs any more.

use std::collections::BTreeSet;

use api::nodeclaim::NodeClaim;
use jiff::{SignedDuration, Timestamp};

/// How long the claim of a machine may take to learn of it.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// Machines that are to be deleted, because no claim has their provider ID. Machines must have been listed before
/// claims, so that none is missed that was created in between.
pub fn machines<'a>(
    all: &'a [NodeClaim],
    claimed: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<&'a NodeClaim> {
    all.iter()
        .filter(|machine| {
            let created = machine.metadata.creation_timestamp.as_ref();
            machine.metadata.deletion_timestamp.is_none()
                && created.is_some_and(|created| now.duration_since(created.0) > PATIENCE)
        })
        .filter(|machine| {
            let id = machine.status.as_ref().map_or("", |status| status.provider_id.as_str());
            !id.is_empty() && !claimed.contains(id)
        })
        .collect()
}

/// The name that the machine and the network interface of a claim have.
pub fn resource_name(claim: &str) -> String {
    format!("aks-{claim}")
}

/// Network interfaces that are to be deleted: those of no machine and of no claim. All names in lower case.
pub fn interfaces<'a>(
    all: impl IntoIterator<Item = &'a str>,
    machines: &BTreeSet<String>,
    claims: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let claimed: BTreeSet<String> = claims.into_iter().map(|name| resource_name(name).to_lowercase()).collect();
    all.into_iter().filter(|name| !machines.contains(*name) && !claimed.contains(*name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

    fn machine(id: &str, age: i64, deleting: bool) -> NodeClaim {
        let at = |seconds: i64| Timestamp::from_second(1_000_000 - seconds).unwrap().to_string();
        let mut machine = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"creationTimestamp": at(age)},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "default"}},
            "status": {"providerID": id},
        });
        if deleting {
            machine["metadata"]["deletionTimestamp"] = at(0).into();
        }
        serde_json::from_value(machine).unwrap()
    }

    // azure.md 15.4, 25.8
    #[test]
    fn a_machine_without_a_claim_has_five_minutes() {
        let all = [
            machine("old", 301, false),
            machine("young", 300, false),
            machine("claimed", 1000, false),
            machine("going", 1000, true),
            machine("", 1000, false),
        ];
        let found = machines(&all, &["claimed".to_owned()].into(), NOW);
        let ids: Vec<&str> = found.iter().map(|each| each.status.as_ref().unwrap().provider_id.as_str()).collect();
        assert_eq!(ids, ["old"]);
    }

    // azure.md 15.5, 25.8
    #[test]
    fn interfaces_of_machines_and_of_claims_stay() {
        let all = ["aks-with-machine", "aks-with-claim", "aks-left", "aks-other"];
        let machines = ["aks-with-machine".to_owned()].into();
        assert_eq!(interfaces(all, &machines, ["with-claim", "left-not"]), ["aks-left", "aks-other"]);
    }
}

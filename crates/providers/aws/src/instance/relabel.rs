//! Labels of nodes that change because EC2 changed or settled something.

use std::collections::BTreeMap;

use api::names::labels::{self, aws};
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;

use super::machine::Machine;

type Labels = BTreeMap<String, String>;

/// Labels that an instance no longer has once its reservation is over.
pub const OF_RESERVATIONS: [&str; 3] =
    [aws::CAPACITY_RESERVATION_ID, aws::CAPACITY_RESERVATION_TYPE, aws::CAPACITY_RESERVATION_INTERRUPTIBLE];

/// Whether labels say reserved, but the instance has fallen back to being paid by use. It never goes the other
/// way: an instance that finds a reservation by chance was not planned there.
pub fn is_demoted(labels: Option<&Labels>, machine: &Machine) -> bool {
    let says = labels.and_then(|all| all.get(labels::CAPACITY_TYPE)).map(String::as_str);
    machine.capacity_type == capacity_type::ON_DEMAND && says == Some(capacity_type::RESERVED)
}

/// Changes labels to those of an instance that is paid by use.
pub fn demote(labels: &mut Labels) {
    labels.insert(labels::CAPACITY_TYPE.to_owned(), capacity_type::ON_DEMAND.to_owned());
    labels.retain(|key, _| !OF_RESERVATIONS.contains(&key.as_str()));
}

/// Whether EC2 has to be asked which partition of its placement group a claim's instance is in, before its node
/// takes pods.
pub fn lacks_partition(claim: &NodeClaim) -> bool {
    let label = |key: &str| claim.metadata.labels.as_ref().and_then(|all| all.get(key));
    label(aws::PLACEMENT_GROUP_ID).is_some()
        && label(aws::PLACEMENT_GROUP_PARTITION).is_some_and(String::is_empty)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn labels(entries: &[(&str, &str)]) -> Labels {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_reserved_node_becomes_one_that_is_paid_by_use_and_never_the_other_way() {
        let of = |kind: &'static str| Machine { capacity_type: kind, ..Machine::default() };
        let mut reserved = labels(&[
            (labels::CAPACITY_TYPE, "reserved"),
            (aws::CAPACITY_RESERVATION_ID, "cr-1"),
            (aws::CAPACITY_RESERVATION_TYPE, "default"),
            (aws::CAPACITY_RESERVATION_INTERRUPTIBLE, "false"),
            ("team", "a"),
        ]);
        assert!(
            is_demoted(Some(&reserved), &of("on-demand")) && !is_demoted(Some(&reserved), &of("reserved"))
        );
        demote(&mut reserved);
        assert_eq!(reserved, labels(&[(labels::CAPACITY_TYPE, "on-demand"), ("team", "a")]));
        assert!(!is_demoted(Some(&reserved), &of("reserved")) && !is_demoted(None, &of("on-demand")));
    }

    #[test]
    fn only_a_partition_that_is_not_known_yet_is_waited_for() {
        let lacks = |entries: &[(&str, &str)]| {
            let metadata = ObjectMeta { labels: Some(labels(entries)), ..ObjectMeta::default() };
            lacks_partition(&NodeClaim { metadata, ..NodeClaim::default() })
        };
        let group = (aws::PLACEMENT_GROUP_ID, "pg-1");
        assert!(lacks(&[group, (aws::PLACEMENT_GROUP_PARTITION, "")]));
        assert!(!lacks(&[group, (aws::PLACEMENT_GROUP_PARTITION, "2")]));
        assert!(!lacks(&[group]) && !lacks(&[(aws::PLACEMENT_GROUP_PARTITION, "")]) && !lacks(&[]));
    }
}

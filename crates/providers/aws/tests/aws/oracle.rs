//! Every type has the labels and resources that upstream publishes for it.

use std::collections::BTreeMap;

use api::names::labels::aws as keys;
use api::names::resources;
use serde_json::json;

use crate::support::{DISCOVERED, label, node_class, resolved, unpacked};

/// Where the published page is of another day than what EC2 said or the tables say: what is compared, the
/// families, and how many types that concerns.
const OF_ANOTHER_DAY: [(&str, &[&str], usize); 5] = [
    // The page has them from an older table.
    (resources::AWS_POD_ENI, &["c8", "m8", "r8", "x8", "c9g", "m9g", "hpc7g.", "i4i.large"], 56),
    (keys::INSTANCE_NETWORK_BANDWIDTH, &["g7."], 3),
    // EC2 corrected its clock rates.
    (keys::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ, &["c9g.", "c9gd.", "m9g.", "m9gd.", "i7i.", "i7ie."], 66),
    // EC2 now counts the network interfaces of each card.
    (resources::PODS, &["i7ie.", "i8ge."], 4),
    (resources::MEMORY, &["i7ie.", "i8ge."], 4),
];

#[test]
fn a01_every_type_has_the_labels_and_resources_that_are_published() {
    let table = unpacked(include_bytes!("../data/instance_type_oracle.csv.gz"));
    let mut lines = table.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let class = node_class("AL2023", &json!({}));
    let (mut compared, mut equal, mut different) = (0, 0, Vec::new());
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        let name = values[0];
        if DISCOVERED.get(name).is_none() {
            continue;
        }
        compared += 1;
        let resolved = resolved(&class, name);
        let allocatable = resolved.allocatable();
        let before = (different.len(), known.values().sum::<usize>());
        for (column, expected) in columns.iter().zip(&values) {
            let is_label = column.contains("kubernetes.io/") || column.starts_with("karpenter.k8s.aws/");
            let actual = if is_label {
                let value = label(&resolved.requirements, column);
                if value == "-" { String::new() } else { value }
            } else {
                let amount = allocatable.amount(column);
                if amount.is_zero() { String::new() } else { amount.to_string() }
            };
            let is_same = if is_label || expected.is_empty() {
                actual == **expected
            } else {
                allocatable.amount(column) == expected.parse().unwrap()
            };
            if !is_same {
                let another_day = OF_ANOTHER_DAY.iter().find(|(what, families, _)| {
                    what == column
                        && (*what != resources::AWS_POD_ENI || expected.is_empty())
                        && families.iter().any(|family| name.starts_with(family))
                });
                match another_day {
                    Some((what, ..)) => *known.entry(what).or_default() += 1,
                    None => different.push(format!("{name} {column}: {actual}, published {expected}")),
                }
            }
        }
        if (different.len(), known.values().sum::<usize>()) == before {
            equal += 1;
        }
    }
    assert_eq!(compared, 1358);
    assert_eq!(equal, 1253, "types that are equal in everything");
    assert!(different.is_empty(), "{} of {compared}:\n{}", different.len(), different.join("\n"));
    for (what, _, count) in OF_ANOTHER_DAY {
        assert_eq!(known.get(what), Some(&count), "{what}");
    }
}

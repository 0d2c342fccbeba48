//! Whether a node or claim can be given what a pod asks for: upstream's matrix, and the words for a refusal.

use engine::intern::KeyId;
use engine::model::{Pool, PoolId, Snapshot, TaintsId};
use engine::solve::{Conflict, Failure, PoolFailure};
use engine::text::Texts;
use engine::universe::{Incompatible, SetId, Undefined, Universe};

use crate::naive::{Ask, meet};
use crate::shapes::shapes;

/// Rows are what there is, columns what is asked of it, both in the same order:
/// nothing at all, then the shapes.
pub(crate) const MATRIX: [(&str, &str); 15] = [
    ("unconstrained", "+ ++ +++ + +++ + ++++"),
    ("Exists       ", "+ +- +++ + +++ + ++++"),
    ("DoesNotExist ", "+ -+ --- + --- + ----"),
    ("In A         ", "+ +- +-+ - --- + ----"),
    ("In B         ", "+ +- -++ + --- + ----"),
    ("In A B       ", "+ +- +++ + --- + ----"),
    ("NotIn A      ", "+ ++ -++ + +++ + ++++"),
    ("In 1         ", "+ +- --- + +-+ - ---+"),
    ("In 9         ", "+ +- --- + -++ + +---"),
    ("In 1 9       ", "+ +- --- + +++ + +--+"),
    ("NotIn 1 2    ", "+ ++ +++ + -++ + ++++"),
    ("Gt 1         ", "+ +- --- + -++ + ++-+"),
    ("Gt 9         ", "+ +- --- + --- + ++--"),
    ("Lt 1         ", "+ +- --- + --- + --++"),
    ("Lt 9         ", "+ +- --- + +-+ + +-++"),
];

/// The first row, where a label that is not mentioned stays absent.
const UNCONSTRAINED_STRICTLY: &str = "+ -+ --- + --- + ----";

pub(crate) fn cells(row: &str) -> Vec<bool> {
    row.chars().filter(|cell| *cell != ' ').map(|cell| cell == '+').collect()
}

/// The fifteen sets, of which the first is empty.
fn sets(universe: &mut Universe, key: KeyId) -> Vec<SetId> {
    let shapes = shapes().map(|shape| set(universe, key, &shape));
    [SetId::EMPTY].into_iter().chain(shapes).collect()
}

fn set(universe: &mut Universe, key: KeyId, ask: &Ask) -> SetId {
    let requirement = ask.requirement_of(key, universe);
    universe.set([(key, requirement)])
}

#[track_caller]
fn check_matrix(well_known: bool, undefined: Undefined, first_row: &str) {
    let mut universe = Universe::default();
    let key = universe.key("example.com/key");
    if well_known {
        universe.set_well_known(key);
    }
    let sets = sets(&mut universe, key);
    for (row, (name, cells_of_row)) in MATRIX.into_iter().enumerate() {
        let expected = cells(if row == 0 { first_row } else { cells_of_row });
        assert_eq!(expected.len(), sets.len());
        for (column, expected) in expected.into_iter().enumerate() {
            let (a, b) = (sets[row], sets[column]);
            let context = format!("{} asked for {}", name.trim(), MATRIX[column].0.trim());
            let reason = universe.incompatibility(a, b, undefined);
            assert_eq!(reason.is_none(), expected, "{context}: {reason:?}");
            assert_eq!(universe.is_compatible(a, b, undefined), expected, "{context}");
            assert_eq!(universe.is_compatible(a, b, undefined), expected, "{context}, asked again");
            match reason {
                Some(Incompatible::Undefined(found)) => assert!(found == key && row == 0, "{context}"),
                Some(Incompatible::Conflicts(keys)) => assert!(keys == [key] && row != 0, "{context}"),
                None => {}
            }
        }
    }
}

#[test]
fn a_well_known_label_that_is_not_mentioned_may_still_get_any_value() {
    check_matrix(true, Undefined::WellKnown, MATRIX[0].1);
}

#[test]
fn a_label_of_a_node_that_is_not_mentioned_is_absent() {
    check_matrix(true, Undefined::Refused, UNCONSTRAINED_STRICTLY);
    check_matrix(false, Undefined::Refused, UNCONSTRAINED_STRICTLY);
}

#[test]
fn a_label_that_the_cloud_does_not_set_is_absent_unless_mentioned() {
    check_matrix(false, Undefined::WellKnown, UNCONSTRAINED_STRICTLY);
}

#[test]
fn the_matrix_agrees_with_trying_values() {
    for (row, a) in (1..).zip(shapes()) {
        for (column, b) in (1..).zip(shapes()) {
            let expected = cells(MATRIX[row].1)[column];
            assert_eq!(meet(std::slice::from_ref(&a), std::slice::from_ref(&b)), expected, "{a:?}, {b:?}");
        }
    }
}

#[test]
fn types_are_only_asked_about_labels_that_both_sides_mention() {
    let mut universe = Universe::default();
    let (key, other) = (universe.key("a"), universe.key("b"));
    let sets = sets(&mut universe, key);
    let elsewhere = set(&mut universe, other, &Ask::In(vec!["A"]));
    for (row, (_, cells_of_row)) in MATRIX.into_iter().enumerate() {
        for (column, expected) in cells(cells_of_row).into_iter().enumerate() {
            assert_eq!(universe.intersects(sets[row], sets[column]), expected);
        }
        assert!(universe.intersects(sets[row], elsewhere));
    }
}

#[test]
fn every_label_in_conflict_is_named_but_only_one_that_is_missing() {
    let mut universe = Universe::default();
    let keys = ["a", "b", "c"].map(|name| universe.key(name));
    let all = |universe: &mut Universe, keys: &[KeyId], ask: &Ask| {
        let asked: Vec<_> = keys.iter().map(|key| (*key, ask.requirement_of(*key, universe))).collect();
        universe.set(asked)
    };
    let there = all(&mut universe, &keys, &Ask::In(vec!["A"]));
    let wanted = all(&mut universe, &keys, &Ask::In(vec!["B"]));
    let part = all(&mut universe, &keys[2..], &Ask::In(vec!["A"]));
    let conflict = universe.incompatibility(there, wanted, Undefined::Refused);
    assert_eq!(conflict, Some(Incompatible::Conflicts(keys.to_vec())));
    let missing = universe.incompatibility(part, wanted, Undefined::Refused);
    assert_eq!(missing, Some(Incompatible::Undefined(keys[0])), "what is missing comes first");
    assert_eq!(universe.incompatibility(there, part, Undefined::Refused), None);
    assert_eq!(universe.incompatibility(there, SetId::EMPTY, Undefined::Refused), None);
}

#[test]
fn a_label_declared_well_known_late_is_not_refused_from_memory() {
    let mut universe = Universe::default();
    let key = universe.key("a");
    let wanted = set(&mut universe, key, &Ask::Exists);
    assert!(!universe.is_compatible(SetId::EMPTY, wanted, Undefined::WellKnown));
    universe.set_well_known(key);
    assert!(universe.is_compatible(SetId::EMPTY, wanted, Undefined::WellKnown));
}

#[test]
fn answers_are_remembered_by_side_and_by_how_missing_labels_are_treated() {
    let mut universe = Universe::default();
    let key = universe.key("a");
    universe.set_well_known(key);
    let wanted = set(&mut universe, key, &Ask::Exists);
    for _ in 0..2 {
        assert!(universe.is_compatible(SetId::EMPTY, wanted, Undefined::WellKnown));
        assert!(!universe.is_compatible(SetId::EMPTY, wanted, Undefined::Refused));
        assert!(universe.is_compatible(wanted, SetId::EMPTY, Undefined::Refused));
    }
    let other = universe.key("b");
    let more = set(&mut universe, other, &Ask::DoesNotExist);
    let more = universe.intersect(more, wanted);
    for _ in 0..2 {
        assert!(universe.is_compatible(more, wanted, Undefined::Refused));
        assert!(universe.is_compatible(wanted, more, Undefined::Refused));
        let less = universe.without(more, key);
        assert!(universe.is_compatible(wanted, less, Undefined::Refused));
        assert!(!universe.is_compatible(less, wanted, Undefined::Refused));
    }
}

/// What a pod is told whose requirement no pool can meet.
fn refusal(existing: &[(&str, Ask)], name: &str, ask: &Ask) -> String {
    let mut snapshot = Snapshot::default();
    let universe = &mut snapshot.universe;
    for name in [
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/arch",
        "karpenter.sh/nodepool",
        "karpenter.sh/capacity-type",
    ] {
        let key = universe.key(name);
        universe.set_well_known(key);
    }
    let mut existing_set = SetId::EMPTY;
    for (own, ask) in existing {
        let key = universe.key(own);
        let more = set(universe, key, ask);
        existing_set = universe.intersect(existing_set, more);
    }
    let key = universe.key(name);
    let incoming = set(universe, key, ask);
    let reason = universe.incompatibility(existing_set, incoming, Undefined::WellKnown).expect("refused");
    snapshot.keys.hostname = snapshot.universe.key("kubernetes.io/hostname");
    snapshot.pools.push(Pool {
        name: "default".into(),
        requirements: SetId::EMPTY,
        declared: SetId::EMPTY,
        taints: TaintsId::default(),
        limits: Vec::new(),
        catalogue: None,
    });
    let conflict = Conflict { existing: existing_set, incoming, reason };
    let failure = Failure::Pools(vec![(PoolId(0), PoolFailure::Requirements(conflict))]);
    Texts { snapshot: &snapshot, universe: &snapshot.universe }.failure(&failure)
}

#[test]
fn a_label_that_is_cut_short_or_misspelt_is_guessed() {
    for (wrong, meant) in [
        ("zone", "topology.kubernetes.io/zone"),
        ("region", "topology.kubernetes.io/region"),
        ("nodepool", "karpenter.sh/nodepool"),
        ("instance-type", "node.kubernetes.io/instance-type"),
        ("arch", "kubernetes.io/arch"),
        ("capacity-type", "karpenter.sh/capacity-type"),
        ("topology.kubernetesio/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/regio", "topology.kubernetes.io/region"),
        ("node.kubernetes.io/nodepool", "karpenter.sh/nodepool"),
        ("karpenter.sh/instance-type", "node.kubernetes.io/instance-type"),
        ("karpenter/capacity-type", "karpenter.sh/capacity-type"),
    ] {
        let expected = format!(
            "incompatible requirements, label \"{wrong}\" does not have known values (typo of \"{meant}\"?)"
        );
        assert_eq!(refusal(&[], wrong, &Ask::Exists), expected);
    }
}

#[test]
fn an_unknown_label_is_not_guessed_unless_the_pool_has_one_like_it() {
    let plain = "incompatible requirements, label \"deployment\" does not have known values";
    assert_eq!(refusal(&[], "deployment", &Ask::In(vec!["A"])), plain);
    let own = [("example.com/deployment", Ask::In(vec!["A"]))];
    assert_eq!(
        refusal(&own, "deployment", &Ask::In(vec!["A"])),
        format!("{plain} (typo of \"example.com/deployment\"?)")
    );
}

#[test]
fn a_conflict_names_both_sides() {
    let own = [("kubernetes.io/arch", Ask::In(vec!["A", "B"]))];
    assert_eq!(
        refusal(&own, "kubernetes.io/arch", &Ask::NotIn(vec!["B", "A"])),
        "incompatible requirements, key kubernetes.io/arch, kubernetes.io/arch NotIn [A B] not in \
         kubernetes.io/arch In [A B]"
    );
}

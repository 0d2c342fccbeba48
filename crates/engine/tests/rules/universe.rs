//! Labels and sets of requirements by number.

use engine::intern::Interner;
use engine::requirement::Requirement;
use engine::universe::{SetId, Universe};

#[test]
fn a_string_keeps_the_number_it_got_first() {
    let mut interner = Interner::default();
    assert!(interner.is_empty());
    let texts: Vec<String> = (0..500).map(|number| format!("text-{number}")).collect();
    for (number, text) in (0..).zip(&texts) {
        assert_eq!(interner.get(text), None);
        assert_eq!(interner.intern(text), number);
    }
    for (number, text) in (0..).zip(&texts) {
        assert_eq!(interner.intern(text), number);
        assert_eq!(interner.get(text), Some(number));
        assert_eq!(interner.resolve(number), text);
    }
    assert_eq!(interner.len(), texts.len());
}

#[test]
fn a_value_has_a_number_for_each_label() {
    let mut universe = Universe::default();
    let (a, b) = (universe.key("a"), universe.key("b"));
    let first = universe.value(a, "x");
    assert_eq!(universe.value(b, "y"), first, "values of different labels are numbered separately");
    assert_eq!((universe.values(a).name(first), universe.values(b).name(first)), ("x", "y"));
    assert_eq!((universe.key("b"), universe.find_key("b"), universe.find_key("c")), (b, Some(b), None));
    assert_eq!((universe.key_count(), universe.key_name(b)), (2, "b"));
    assert!(!universe.is_well_known(a));
    universe.set_well_known(a);
    assert!(universe.is_well_known(a) && !universe.is_well_known(b));
    let requirement = universe.requirement(b, Requirement::within([first]));
    assert_eq!(universe.key_of(requirement), b);
    assert_eq!(universe.describe(b, universe.get(requirement)), "b In [y]");
}

#[test]
fn equal_requirements_of_different_labels_are_told_apart() {
    let mut universe = Universe::default();
    let (a, b) = (universe.key("a"), universe.key("b"));
    let first = universe.requirement(a, Requirement::exists());
    let second = universe.requirement(b, Requirement::exists());
    assert_ne!(first, second);
    assert_eq!(universe.requirement(a, Requirement::exists()), first);
    let demanding = Requirement::exists().with_min_values(Some(1));
    assert_ne!(universe.requirement(a, demanding), first);
}

#[test]
fn a_set_is_combined_with_one_after_another() {
    let mut universe = Universe::default();
    let (zone, team) = (universe.key("zone"), universe.key("team"));
    let [a, b, c] = ["a", "b", "c"].map(|name| universe.value(zone, name));
    let all = universe.set([(zone, Requirement::within([a, b, c]))]);
    let no_a = universe.set([(zone, Requirement::not_in([a])), (team, Requirement::exists())]);
    let no_b = universe.set([(zone, Requirement::not_in([b]))]);
    let expected = universe.set([(team, Requirement::exists()), (zone, Requirement::within([b, c]))]);
    assert_eq!(universe.intersect(all, no_a), expected);
    let expected = universe.set([(zone, Requirement::within([a, c]))]);
    assert_eq!(universe.intersect(all, no_b), expected);
    assert_eq!(universe.intersect(no_b, all), expected);
    let one_by_one = [Requirement::within([a, b, c]), Requirement::not_in([b]), Requirement::exists()];
    assert_eq!(universe.set(one_by_one.map(|requirement| (zone, requirement))), expected);
    assert_eq!([universe.intersect(all, SetId::EMPTY), universe.intersect(SetId::EMPTY, all)], [all, all]);
}

#[test]
fn a_key_is_taken_out_of_a_set_or_given_another_requirement() {
    let mut universe = Universe::default();
    let keys = ["a", "b", "c"].map(|name| universe.key(name));
    let value = universe.value(keys[1], "x");
    let one = Requirement::within([value]);
    let set = universe.set(keys.map(|key| (key, Requirement::exists())));
    let rest = universe.without(set, keys[1]);
    assert_eq!(universe.set([keys[2], keys[0]].map(|key| (key, Requirement::exists()))), rest);
    assert_eq!(universe.without(rest, keys[1]), rest, "what is not there cannot be taken out");
    assert_eq!(universe.find(rest, keys[1]), None);
    assert_eq!(universe.entries(rest).len(), 2);
    let changed = universe.replaced(set, keys[1], one.clone());
    let added = universe.replaced(rest, keys[1], one.clone());
    assert_eq!(changed, added);
    let found = universe.find(changed, keys[1]).expect("the key has a requirement");
    assert_eq!(universe.get(found), &one);
    assert_eq!(universe.replaced(changed, keys[1], Requirement::exists()), set, "it is not combined");
    let alone = universe.set([(keys[1], one)]);
    assert_eq!(universe.without(alone, keys[1]), SetId::EMPTY);
}

//! What must hold for all requirements and sets of them, on random ones. A failure prints its seed.

use engine::intern::KeyId;
use engine::requirement::{Requirement, Values};
use engine::universe::{Incompatible, SetId, Undefined, Universe};
use proptest::prelude::*;

use crate::naive::{self, Asked, admits_something, ask, asks, assert_is, combined, of_key, samples};

/// Asks of the three labels that sets speak of, of which the first is well known.
fn asked() -> impl Strategy<Value = Asked> {
    proptest::collection::vec((0_usize..3, ask()), 0..5)
}

fn universe() -> (Universe, [KeyId; 3]) {
    let mut universe = Universe::default();
    let keys = ["zone", "team", "size"].map(|name| universe.key(name));
    universe.set_well_known(keys[0]);
    (universe, keys)
}

fn set(asked: &Asked, keys: [KeyId; 3], universe: &mut Universe) -> SetId {
    let requirements: Vec<(KeyId, Requirement)> =
        asked.iter().map(|(key, ask)| (keys[*key], ask.requirement_of(keys[*key], universe))).collect();
    universe.set(requirements)
}

/// Asserts that a set is what all asks together say.
fn assert_set_is(set: SetId, asked: &Asked, keys: [KeyId; 3], universe: &Universe) {
    for (position, key) in keys.into_iter().enumerate() {
        let asks = of_key(asked, position);
        match universe.find(set, key) {
            Some(id) => assert_is(universe.get(id), &asks, None, &mut universe.values(key).clone()),
            None => assert!(asks.is_empty(), "nothing is left of {asks:?}"),
        }
    }
    let keys: Vec<KeyId> = universe.entries(set).iter().map(|(key, _)| *key).collect();
    assert!(keys.is_sorted() && keys.len() <= 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn combined_requirements_are_what_all_of_them_say(asks in asks(), min_values in any::<[Option<u32>; 2]>()) {
        let mut values = Values::default();
        let requirement = combined(&asks, &mut values).with_min_values(min_values[0]);
        let more = Requirement::exists().with_min_values(min_values[1]);
        let requirement = requirement.intersection(&more, &values);
        assert_is(&requirement, &asks, min_values.into_iter().flatten().max(), &mut values);
    }

    #[test]
    fn the_order_of_combining_does_not_matter(
        [a, b, c] in [asks(), asks(), asks()],
        min in any::<[Option<u32>; 3]>(),
    ) {
        let mut values = Values::default();
        let [a, b, c] = [(&a, min[0]), (&b, min[1]), (&c, min[2])]
            .map(|(asks, min)| combined(asks, &mut values).with_min_values(min));
        let and = |a: &Requirement, b: &Requirement| a.intersection(b, &values);
        prop_assert_eq!(and(&a, &b), and(&b, &a));
        prop_assert_eq!(and(&and(&a, &b), &c), and(&a, &and(&b, &c)));
        prop_assert_eq!(and(&a, &a), a.clone());
        prop_assert_eq!(and(&and(&a, &b), &b), and(&a, &b));
        prop_assert_eq!(and(&a, &Requirement::exists()), a);
    }

    #[test]
    fn requirements_intersect_if_a_value_satisfies_both(a in asks(), b in asks()) {
        let mut values = Values::default();
        let (first, second) = (combined(&a, &mut values), combined(&b, &mut values));
        let expected = admits_something(&[a, b].concat());
        prop_assert_eq!(first.intersects(&second, &values), expected);
        prop_assert_eq!(second.intersects(&first, &values), expected);
        let both = first.intersection(&second, &values);
        let ids: Vec<_> = samples().iter().map(|text| values.intern(text)).collect();
        prop_assert_eq!(ids.iter().any(|id| both.has(*id, &values)), expected);
    }

    #[test]
    fn a_set_combines_what_is_asked_of_each_label(asked in asked()) {
        let (mut universe, keys) = universe();
        let found = set(&asked, keys, &mut universe);
        assert_set_is(found, &asked, keys, &universe);
        prop_assert_eq!(found == SetId::EMPTY, asked.is_empty());
    }

    #[test]
    fn equal_sets_have_one_number(asked in asked(), turn in any::<prop::sample::Index>()) {
        let (mut universe, keys) = universe();
        let first = set(&asked, keys, &mut universe);
        let mut turned = asked.clone();
        if !turned.is_empty() {
            turned.rotate_left(turn.index(asked.len()));
        }
        prop_assert_eq!(set(&turned, keys, &mut universe), first);
        turned.extend(asked);
        prop_assert_eq!(set(&turned, keys, &mut universe), first);
    }

    #[test]
    fn sets_combine_to_what_both_say(all in prop::collection::vec(asked(), 2..4)) {
        let (mut universe, keys) = universe();
        let sets: Vec<SetId> = all.iter().map(|asked| set(asked, keys, &mut universe)).collect();
        for (a, first) in all.iter().zip(&sets) {
            for (b, second) in all.iter().zip(&sets) {
                let both = universe.intersect(*first, *second);
                let asked = [a.as_slice(), b].concat();
                assert_set_is(both, &asked, keys, &universe);
                prop_assert_eq!(universe.intersect(*first, *second), both, "asked again");
                prop_assert_eq!(universe.intersect(*second, *first), both, "asked the other way round");
                prop_assert_eq!(set(&asked, keys, &mut universe), both);
                prop_assert_eq!(universe.intersect(both, *first), both);
            }
        }
    }

    #[test]
    fn remembered_combinations_are_those_computed_directly(all in prop::collection::vec(asks(), 2..6)) {
        let (mut universe, keys) = universe();
        let key = keys[1];
        let mut ids = Vec::new();
        for asks in &all {
            let asked: Asked = asks.iter().map(|ask| (1, ask.clone())).collect();
            let set = set(&asked, keys, &mut universe);
            ids.push(universe.find(set, key).expect("something is asked of the label"));
        }
        for _ in 0..2 {
            for a in &ids {
                for b in &ids {
                    let direct = universe.get(*a).intersection(universe.get(*b), universe.values(key));
                    let id = universe.intersect_requirements(*a, *b);
                    prop_assert_eq!(universe.get(id), &direct);
                    prop_assert_eq!(universe.requirement(key, direct), id);
                }
            }
        }
    }

    #[test]
    fn compatibility_is_what_the_rules_say(a in asked(), b in asked(), strict in any::<bool>()) {
        let (mut universe, keys) = universe();
        let (first, second) = (set(&a, keys, &mut universe), set(&b, keys, &mut universe));
        let undefined = if strict { Undefined::Refused } else { Undefined::WellKnown };
        let conflicts: Vec<KeyId> = naive::conflicts(&a, &b, 3).into_iter().map(|key| keys[key]).collect();
        let expected = naive::missing(&a, &b, &[!strict, false, false])
            .map(|key| Incompatible::Undefined(keys[key]))
            .or((!conflicts.is_empty()).then_some(Incompatible::Conflicts(conflicts.clone())));
        prop_assert_eq!(universe.intersects(first, second), conflicts.is_empty());
        prop_assert_eq!(universe.incompatibility(first, second, undefined), expected.clone());
        for _ in 0..2 {
            prop_assert_eq!(universe.is_compatible(first, second, undefined), expected.is_none());
        }
    }

    #[test]
    fn the_two_ways_to_treat_missing_labels_are_remembered_apart(a in asked(), b in asked()) {
        let (mut universe, keys) = universe();
        let (first, second) = (set(&a, keys, &mut universe), set(&b, keys, &mut universe));
        for undefined in [Undefined::WellKnown, Undefined::Refused, Undefined::WellKnown] {
            for (own, wanted) in [(first, second), (second, first)] {
                let expected = universe.incompatibility(own, wanted, undefined).is_none();
                prop_assert_eq!(universe.is_compatible(own, wanted, undefined), expected);
            }
        }
    }

    #[test]
    fn a_label_is_taken_out_or_replaced(asked in asked(), key in 0_usize..3, ask in ask()) {
        let (mut universe, keys) = universe();
        let whole = set(&asked, keys, &mut universe);
        let mut rest: Asked = asked.into_iter().filter(|(asked, _)| *asked != key).collect();
        prop_assert_eq!(universe.without(whole, keys[key]), set(&rest, keys, &mut universe));
        rest.push((key, ask.clone()));
        let requirement = ask.requirement_of(keys[key], &mut universe);
        let replaced = universe.replaced(whole, keys[key], requirement);
        assert_set_is(replaced, &rest, keys, &universe);
        prop_assert_eq!(replaced, set(&rest, keys, &mut universe));
    }
}

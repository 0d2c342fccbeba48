//! Taints and tolerations, host ports, and selectors of labels.

use engine::intern::{KeyId, ValueId};
use engine::model::{
    Effect, Expression, HostPort, Selector, Table, Taint, Test, Toleration, TolerationOperator,
};
use engine::tolerate::untolerated;
use proptest::prelude::*;

use TolerationOperator::{Equal, Exists, Gt, Lt};

fn taint(key: &str, value: &str, effect: Effect) -> Taint {
    Taint { key: key.into(), value: value.into(), effect }
}

fn toleration(key: &str, operator: TolerationOperator, value: &str, effect: Option<Effect>) -> Toleration {
    let key = (!key.is_empty()).then(|| key.into());
    Toleration { key, operator, value: value.into(), effect }
}

#[test]
fn a_toleration_covers_what_its_operator_says() {
    let check = |operator, own: &str, value: &str, expected: bool| {
        let tolerated =
            toleration("key", operator, own, None).tolerates(&taint("key", value, Effect::NoSchedule));
        assert_eq!(tolerated, expected, "{operator:?} {own:?} of {value:?}");
    };
    check(Equal, "a", "a", true);
    check(Equal, "a", "b", false);
    check(Equal, "", "", true);
    check(Equal, "", "a", false);
    check(Equal, "05", "5", false);
    check(Exists, "", "a", true);
    check(Exists, "b", "a", true);
    check(Gt, "5", "6", true);
    check(Gt, "5", "5", false);
    check(Gt, "5", "4", false);
    check(Gt, "9", "10", true);
    check(Gt, "-2", "-1", true);
    check(Lt, "5", "4", true);
    check(Lt, "5", "5", false);
    check(Lt, "5", "6", false);
    check(Lt, "10", "9", true);
}

#[test]
fn what_is_no_integer_is_not_compared() {
    for (own, value) in [
        ("5", "a"),
        ("a", "5"),
        ("", "5"),
        ("5", ""),
        ("5", "6.0"),
        ("5", " 6"),
        ("5", "9223372036854775808"),
    ] {
        for operator in [Gt, Lt] {
            let toleration = toleration("key", operator, own, None);
            assert!(
                !toleration.tolerates(&taint("key", value, Effect::NoSchedule)),
                "{toleration:?} {value:?}"
            );
        }
    }
}

#[test]
fn a_toleration_without_key_or_effect_covers_all_of_them() {
    use Effect::{NoExecute, NoSchedule, PreferNoSchedule};
    let taint = taint("key", "a", NoSchedule);
    for (key, effect, expected) in [
        ("key", Some(NoSchedule), true),
        ("key", None, true),
        ("", Some(NoSchedule), true),
        ("", None, true),
        ("other", None, false),
        ("ke", None, false),
        ("key", Some(NoExecute), false),
        ("", Some(PreferNoSchedule), false),
    ] {
        for (operator, value) in [(Exists, ""), (Equal, "a")] {
            let toleration = toleration(key, operator, value, effect);
            assert_eq!(toleration.tolerates(&taint), expected, "{toleration:?}");
        }
        let toleration = toleration(key, Equal, "b", effect);
        assert!(!toleration.tolerates(&taint), "{toleration:?}");
    }
}

#[test]
fn every_taint_must_be_tolerated_whatever_its_effect() {
    use Effect::{NoExecute, NoSchedule, PreferNoSchedule};
    let taints = [taint("a", "1", NoSchedule), taint("b", "", PreferNoSchedule), taint("c", "", NoExecute)];
    let left = |tolerations: &[Toleration]| -> Vec<String> {
        untolerated(&taints, tolerations).map(ToString::to_string).collect()
    };
    assert_eq!(left(&[]), ["a=1:NoSchedule", "b:PreferNoSchedule", "c:NoExecute"]);
    assert_eq!(left(&[Toleration::of_advice()]), ["a=1:NoSchedule", "c:NoExecute"]);
    let mut some = vec![toleration("c", Exists, "", None), toleration("a", Equal, "2", None)];
    assert_eq!(left(&some), ["a=1:NoSchedule", "b:PreferNoSchedule"]);
    some.push(toleration("", Equal, "1", None));
    some.push(Toleration::of_advice());
    assert!(left(&some).is_empty());
    assert_eq!(untolerated(&[], &[]).count(), 0);
}

#[test]
fn ports_conflict_on_the_same_address_or_if_one_takes_all() {
    let port = |address: &str, port: u16, protocol: &str| HostPort {
        address: (!address.is_empty()).then(|| address.into()),
        port,
        protocol: protocol.into(),
    };
    let check = |a: &HostPort, b: &HostPort, expected: bool| {
        assert_eq!(a.conflicts(b), expected, "{a:?} {b:?}");
        assert_eq!(b.conflicts(a), expected, "{b:?} {a:?}");
    };
    let own = port("10.0.0.1", 80, "TCP");
    check(&own, &own, true);
    check(&own, &port("", 80, "TCP"), true);
    check(&port("", 80, "TCP"), &port("", 80, "TCP"), true);
    check(&own, &port("10.0.0.2", 80, "TCP"), false);
    check(&own, &port("10.0.0.1", 81, "TCP"), false);
    check(&own, &port("10.0.0.1", 80, "UDP"), false);
    check(&port("", 80, "TCP"), &port("", 80, "UDP"), false);
    check(&port("", 80, "TCP"), &port("", 81, "TCP"), false);
    check(&port("fd00::1", 80, "SCTP"), &port("", 80, "SCTP"), true);
}

#[test]
fn a_list_keeps_the_number_it_got_first() {
    let mut table: Table<u8> = Table::default();
    assert_eq!((table.len(), table.is_empty(), table.get(0)), (1, false, &[][..]));
    assert_eq!([table.intern(vec![1, 2]), table.intern(vec![2, 1]), table.intern(vec![1, 2])], [1, 2, 1]);
    assert_eq!((table.intern(Vec::new()), table.get(2)), (0, &[2, 1][..]));
}

#[test]
fn a_selector_without_expressions_selects_everything() {
    assert!(Selector::default().matches(&[]));
    assert!(Selector::default().matches(&[(KeyId(3), ValueId(1))]));
}

#[test]
fn an_expression_selects_by_value_presence_or_absence() {
    let labels = [(KeyId(1), ValueId(10)), (KeyId(3), ValueId(30)), (KeyId(5), ValueId(10))];
    let check = |key: u16, test: Test, expected: bool| {
        let selector = Selector { expressions: vec![Expression { key: KeyId(key), test }] };
        assert_eq!(selector.matches(&labels), expected, "{selector:?}");
    };
    check(1, Test::In(vec![ValueId(10), ValueId(20)]), true);
    check(1, Test::In(vec![ValueId(30)]), false);
    check(1, Test::In(Vec::new()), false);
    check(2, Test::In(vec![ValueId(10)]), false);
    check(3, Test::NotIn(vec![ValueId(10), ValueId(20)]), true);
    check(3, Test::NotIn(vec![ValueId(30)]), false);
    check(2, Test::NotIn(vec![ValueId(30)]), true);
    check(5, Test::Exists, true);
    check(4, Test::Exists, false);
    check(4, Test::DoesNotExist, true);
    check(5, Test::DoesNotExist, false);
}

fn test() -> impl Strategy<Value = Test> {
    let values =
        || prop::collection::btree_set(0_u32..4, 0..3).prop_map(|ids| ids.into_iter().map(ValueId).collect());
    prop_oneof![
        values().prop_map(Test::In),
        values().prop_map(Test::NotIn),
        Just(Test::Exists),
        Just(Test::DoesNotExist),
    ]
}

proptest! {
    #[test]
    fn a_selector_selects_what_all_its_expressions_select(
        tests in prop::collection::vec((0_u8..5, test()), 0..4),
        labels in prop::collection::btree_map(0_u8..5, 0_u32..4, 0..5),
    ) {
        let expected = tests.iter().all(|(key, test)| match (labels.get(key), test) {
            (Some(value), Test::In(values)) => values.contains(&ValueId(*value)),
            (Some(value), Test::NotIn(values)) => !values.contains(&ValueId(*value)),
            (found, Test::Exists) => found.is_some(),
            (found, Test::DoesNotExist) => found.is_none(),
            (None, Test::In(_)) => false,
            (None, Test::NotIn(_)) => true,
        });
        let expression = |(key, test): (u8, Test)| Expression { key: KeyId(key.into()), test };
        let expressions = tests.into_iter().map(expression).collect();
        let label = |(key, value): (u8, u32)| (KeyId(key.into()), ValueId(value));
        let labels: Vec<_> = labels.into_iter().map(label).collect();
        prop_assert_eq!(Selector { expressions }.matches(&labels), expected);
    }
}

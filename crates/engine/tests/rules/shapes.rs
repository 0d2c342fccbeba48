//! One requirement, and two combined: every pair of the fourteen shapes that upstream's tables use.

use engine::requirement::{Operator, Requirement, Values};

use crate::naive::{Ask, assert_is, combined};

/// The shapes, in the order of upstream's tables.
pub(crate) fn shapes() -> [Ask; 14] {
    [
        Ask::Exists,
        Ask::DoesNotExist,
        Ask::In(vec!["A"]),
        Ask::In(vec!["B"]),
        Ask::In(vec!["A", "B"]),
        Ask::NotIn(vec!["A"]),
        Ask::In(vec!["1"]),
        Ask::In(vec!["9"]),
        Ask::In(vec!["1", "9"]),
        Ask::NotIn(vec!["1", "2"]),
        Ask::Gt(1),
        Ask::Gt(9),
        Ask::Lt(1),
        Ask::Lt(9),
    ]
}

/// Every pair of shapes, combined where each side may also demand a choice of values.
#[track_caller]
fn check_intersections(own: impl Fn(u32) -> Option<u32>, other: impl Fn(u32) -> Option<u32>) {
    let mut values = Values::default();
    for (a, first) in (1..).zip(shapes()) {
        for (b, second) in (1..).zip(shapes()) {
            let left = first.requirement(&mut values).with_min_values(own(a));
            let right = second.requirement(&mut values).with_min_values(other(b));
            let both = left.intersection(&right, &values);
            assert_is(&both, &[first.clone(), second], own(a).into_iter().chain(other(b)).max(), &mut values);
        }
    }
}

#[test]
fn shapes_combine_to_what_satisfies_both() {
    check_intersections(|_| None, |_| None);
}

#[test]
fn a_demand_for_choice_on_one_side_is_kept() {
    check_intersections(Some, |_| None);
    check_intersections(|_| None, Some);
}

#[test]
fn of_two_demands_for_choice_the_larger_is_kept() {
    check_intersections(Some, Some);
    check_intersections(|a| Some(a + 1), Some);
    check_intersections(Some, |b| Some(b + 1));
}

/// A row of the table of intersections, as texts, in the order of the shapes.
#[track_caller]
fn check_row(shape: &Ask, expected: [&str; 14]) {
    let mut values = Values::default();
    for (other, expected) in shapes().into_iter().zip(expected) {
        for pair in [[shape.clone(), other.clone()], [other.clone(), shape.clone()]] {
            let both = combined(&pair, &mut values);
            assert_eq!(both.describe(&values), expected, "{pair:?}");
        }
    }
}

#[test]
fn combinations_read_as_in_the_table() {
    check_row(
        &Ask::Exists,
        [
            "Exists",
            "DoesNotExist",
            "In [A]",
            "In [B]",
            "In [A B]",
            "NotIn [A]",
            "In [1]",
            "In [9]",
            "In [1 9]",
            "NotIn [1 2]",
            "Exists >=2",
            "Exists >=10",
            "Exists <=0",
            "Exists <=8",
        ],
    );
    check_row(&Ask::DoesNotExist, ["DoesNotExist"; 14]);
    let none = "DoesNotExist";
    check_row(
        &Ask::In(vec!["A", "B"]),
        [
            "In [A B]", none, "In [A]", "In [B]", "In [A B]", "In [B]", none, none, none, "In [A B]", none,
            none, none, none,
        ],
    );
    check_row(
        &Ask::In(vec!["1", "9"]),
        [
            "In [1 9]", none, none, none, none, "In [1 9]", "In [1]", "In [9]", "In [1 9]", "In [9]",
            "In [9]", none, none, "In [1]",
        ],
    );
}

#[test]
fn combinations_with_complements_and_bounds_read_as_in_the_table() {
    let none = "DoesNotExist";
    check_row(
        &Ask::NotIn(vec!["A"]),
        [
            "NotIn [A]",
            none,
            none,
            "In [B]",
            "In [B]",
            "NotIn [A]",
            "In [1]",
            "In [9]",
            "In [1 9]",
            "NotIn [1 2 A]",
            "Exists >=2",
            "Exists >=10",
            "Exists <=0",
            "Exists <=8",
        ],
    );
    check_row(
        &Ask::NotIn(vec!["1", "2"]),
        [
            "NotIn [1 2]",
            none,
            "In [A]",
            "In [B]",
            "In [A B]",
            "NotIn [1 2 A]",
            none,
            "In [9]",
            "In [9]",
            "NotIn [1 2]",
            "NotIn [2] >=2",
            "Exists >=10",
            "Exists <=0",
            "NotIn [1 2] <=8",
        ],
    );
    check_row(
        &Ask::Gt(1),
        [
            "Exists >=2",
            none,
            none,
            none,
            none,
            "Exists >=2",
            none,
            "In [9]",
            "In [9]",
            "NotIn [2] >=2",
            "Exists >=2",
            "Exists >=10",
            none,
            "Exists >=2 <=8",
        ],
    );
    check_row(
        &Ask::Lt(9),
        [
            "Exists <=8",
            none,
            none,
            none,
            none,
            "Exists <=8",
            "In [1]",
            none,
            "In [1]",
            "NotIn [1 2] <=8",
            "Exists >=2 <=8",
            none,
            "Exists <=0",
            "Exists <=8",
        ],
    );
}

#[test]
fn a_shape_admits_the_values_of_the_table() {
    // Columns: A, B, 1, 2, 9.
    let table = [
        "yes yes yes yes yes",
        "no no no no no",
        "yes no no no no",
        "no yes no no no",
        "yes yes no no no",
        "no yes yes yes yes",
        "no no yes no no",
        "no no no no yes",
        "no no yes no yes",
        "yes yes no no yes",
        "no no no yes yes",
        "no no no no no",
        "no no no no no",
        "no no yes yes no",
    ];
    let mut values = Values::default();
    for (shape, row) in shapes().into_iter().zip(table) {
        let requirement = shape.requirement(&mut values);
        let ids = ["A", "B", "1", "2", "9"].map(|text| values.intern(text));
        let found = ids.map(|id| if requirement.has(id, &values) { "yes" } else { "no" });
        assert_eq!(found.join(" "), row, "{shape:?}");
    }
}

#[test]
fn bounds_do_not_change_the_operator() {
    use Operator::{DoesNotExist, Exists, In, NotIn};
    let operators =
        [Exists, DoesNotExist, In, In, In, NotIn, In, In, In, NotIn, Exists, Exists, Exists, Exists];
    let mut values = Values::default();
    for (shape, operator) in shapes().into_iter().zip(operators) {
        assert_eq!(shape.requirement(&mut values).operator(), operator, "{shape:?}");
    }
    let both = combined(&[Ask::NotIn(vec!["5"]), Ask::Gt(1)], &mut values);
    assert_eq!(both.operator(), NotIn);
    assert_eq!(
        [In, NotIn, Exists, DoesNotExist].map(Operator::as_str),
        ["In", "NotIn", "Exists", "DoesNotExist"]
    );
    assert_eq!([In, NotIn, Exists, DoesNotExist].map(Operator::accepts_absence), [false, true, false, true]);
}

#[test]
fn a_requirement_reads_as_upstream_writes_it() {
    let mut values = Values::default();
    let mut check = |asks: &[Ask], min_values: Option<u32>, expected: &str| {
        let requirement = combined(asks, &mut values).with_min_values(min_values);
        assert_eq!(requirement.describe(&values), expected);
    };
    check(&[Ask::Exists], None, "Exists");
    check(&[Ask::Exists], Some(2), "Exists minValues 2");
    check(&[Ask::DoesNotExist], None, "DoesNotExist");
    check(&[Ask::In(vec!["B", "A"])], None, "In [A B]");
    check(&[Ask::In(vec!["A", "B"])], Some(1), "In [A B] minValues 1");
    check(&[Ask::NotIn(vec!["2", "12", "1"])], None, "NotIn [1 12 2]");
    check(&[Ask::In(vec!["e", "d", "c", "b", "a"])], None, "In [a b c d e]");
    check(&[Ask::In(vec!["f", "e", "d", "c", "b", "a"])], None, "In [a b c d e and 1 others]");
    check(
        &[Ask::NotIn(vec!["h", "g", "f", "e", "d", "c", "b", "a"])],
        None,
        "NotIn [a b c d e and 3 others]",
    );
    check(&[Ask::Gt(1)], None, "Exists >=2");
    check(&[Ask::Lt(1)], None, "Exists <=0");
    check(&[Ask::Gte(1)], None, "Exists >=1");
    check(&[Ask::Lte(1)], None, "Exists <=1");
    check(&[Ask::Gt(1), Ask::Lt(9)], Some(3), "Exists >=2 <=8 minValues 3");
    check(&[Ask::NotIn(vec!["5", "A"]), Ask::Gte(5), Ask::Lte(9)], None, "NotIn [5] >=5 <=9");
    check(&[Ask::Gt(9), Ask::Lt(1)], Some(4), "DoesNotExist minValues 4");
}

#[test]
fn strict_and_inclusive_bounds_differ_by_one() {
    for bound in [-1, 0, 1, 9] {
        assert_eq!(Requirement::greater_than(bound), Requirement::at_least(bound + 1));
        assert_eq!(Requirement::less_than(bound), Requirement::at_most(bound - 1));
    }
    let mut values = Values::default();
    let (zero, one) = (values.intern("0"), values.intern("1"));
    assert!(Requirement::at_least(0).has(zero, &values));
    assert!(Requirement::at_most(0).has(zero, &values));
    assert!(!Requirement::at_most(0).has(one, &values));
    assert!(!Requirement::greater_than(0).has(zero, &values));
    assert!(!Requirement::less_than(0).has(zero, &values));
}

#[test]
fn the_tightest_bounds_are_kept() {
    let mut values = Values::default();
    for (asks, bounds) in [
        ([Ask::Gt(5), Ask::Gte(5)], (Some(6), None)),
        ([Ask::Gt(5), Ask::Gte(7)], (Some(7), None)),
        ([Ask::Lt(5), Ask::Lte(5)], (None, Some(4))),
        ([Ask::Lt(5), Ask::Lte(3)], (None, Some(3))),
        ([Ask::Gte(5), Ask::Lte(5)], (Some(5), Some(5))),
    ] {
        assert_eq!(combined(&asks, &mut values).bounds(), bounds, "{asks:?}");
        let [first, second] = asks.map(|ask| ask.requirement(&mut values));
        assert!(first.intersects(&second, &values) && second.intersects(&first, &values));
    }
}

#[test]
fn nothing_is_beyond_the_greatest_and_the_least_integer() {
    assert_eq!(Requirement::greater_than(i64::MAX), Requirement::does_not_exist());
    assert_eq!(Requirement::less_than(i64::MIN), Requirement::does_not_exist());
    let mut values = Values::default();
    let (least, greatest) = (values.intern("-9223372036854775808"), values.intern("9223372036854775807"));
    let beyond = values.intern("9223372036854775808");
    let all = Requirement::at_least(i64::MIN).intersection(&Requirement::at_most(i64::MAX), &values);
    assert!(all.has(least, &values) && all.has(greatest, &values));
    assert!(!all.has(beyond, &values), "what is no machine integer is in no bounds");
}

#[test]
fn bounds_look_at_the_integer_that_a_value_spells() {
    let mut values = Values::default();
    for (text, spelt) in [
        ("5", true),
        ("05", true),
        ("+5", true),
        ("-5", false),
        ("5.0", false),
        (" 5", false),
        ("5_0", false),
        ("0x5", false),
        ("five", false),
        ("", false),
    ] {
        let id = values.intern(text);
        assert_eq!(values.integer(id), text.parse().ok());
        assert_eq!(Requirement::at_least(5).has(id, &values), spelt, "{text:?}");
        let both = Requirement::within([id]).intersection(&Requirement::at_least(5), &values);
        assert_eq!(both.single(), spelt.then_some(id), "{text:?}");
    }
}

#[test]
fn values_are_members_only_if_they_are_given_one_by_one() {
    let mut values = Values::default();
    let (a, b) = (values.intern("A"), values.intern("B"));
    let listed = Requirement::within([b, a, b]);
    assert_eq!((listed.members(), listed.listed(), listed.single()), (Some(&[a, b][..]), &[a, b][..], None));
    let excluded = Requirement::not_in([a]);
    assert_eq!((excluded.members(), excluded.listed(), excluded.single()), (None, &[a][..], None));
    assert_eq!(Requirement::within([b, b]).single(), Some(b));
    assert_eq!(Requirement::does_not_exist().members(), Some(&[][..]));
    assert_eq!(values.get("B"), Some(b));
    assert_eq!(values.get("C"), None);
    assert_eq!((values.len(), values.is_empty(), Values::default().is_empty()), (2, false, true));
}

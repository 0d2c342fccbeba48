//! Amounts of resources, and sets of rows as bits.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use engine::intern::ResourceId;
use engine::mask::Mask;
use engine::resources::{Amounts, ResourceTable, capacity, quantity, request};
use proptest::prelude::*;
use units::{Format, Quantity};

fn amounts(list: &[i64]) -> Amounts {
    list.iter().enumerate().map(|(position, amount)| (ResourceId::at(position), *amount)).collect()
}

/// The amounts of `list`, all of them stored.
fn stored(list: &[i64]) -> Amounts {
    let mut result = Amounts::default();
    for (position, amount) in list.iter().enumerate() {
        result.set(ResourceId::at(position), *amount);
    }
    result
}

fn listed(amounts: &Amounts, count: usize) -> Vec<i64> {
    (0..count).map(|position| amounts.get(ResourceId::at(position))).collect()
}

#[test]
fn a_request_is_rounded_up_and_capacity_down() {
    let extra = ResourceId::at(4);
    for (resource, text, asked, offered) in [
        (ResourceId::CPU, "1", 1_000_000_000, 1_000_000_000),
        (ResourceId::CPU, "100m", 100_000_000, 100_000_000),
        (ResourceId::CPU, "1n", 1, 1),
        (ResourceId::CPU, "-1n", -1, -1),
        (ResourceId::MEMORY, "1Gi", 1_073_741_824_000, 1_073_741_824_000),
        (ResourceId::MEMORY, "1m", 1, 1),
        (ResourceId::MEMORY, "1u", 1, 0),
        (ResourceId::MEMORY, "1001u", 2, 1),
        (ResourceId::MEMORY, "-1u", 0, -1),
        (ResourceId::MEMORY, "-1001u", -1, -2),
        (ResourceId::PODS, "110", 110_000, 110_000),
        (extra, "1500u", 2, 1),
        (extra, "0", 0, 0),
        (extra, "1E", 1_000_000_000_000_000_000_000, 1_000_000_000_000_000_000_000),
    ] {
        let read: Quantity = text.parse().expect("a quantity");
        let clip = |amount: i128| i64::try_from(amount).unwrap_or(i64::MAX);
        assert_eq!(request(resource, read), clip(asked), "{text}");
        assert_eq!(capacity(resource, read), clip(offered), "{text}");
    }
}

#[test]
fn amounts_beyond_all_bounds_become_the_bound() {
    let huge = Quantity::from_nanos(i128::MAX / 4, Format::DecimalSi);
    for resource in [ResourceId::CPU, ResourceId::MEMORY] {
        assert_eq!((request(resource, huge), capacity(resource, huge)), (i64::MAX, i64::MAX));
        assert_eq!((request(resource, -huge), capacity(resource, -huge)), (i64::MIN, i64::MIN));
    }
    let mut sum = amounts(&[i64::MAX]);
    sum.add(&amounts(&[1]));
    assert_eq!(listed(&sum, 1), [i64::MAX]);
    sum.increase(ResourceId::CPU, 1);
    assert_eq!(listed(&sum, 1), [i64::MAX]);
    let mut rest = amounts(&[i64::MIN]);
    rest.subtract(&amounts(&[1]));
    assert_eq!(listed(&rest, 1), [i64::MIN]);
}

#[test]
fn the_first_resources_have_fixed_numbers() {
    let mut table = ResourceTable::default();
    for (name, id) in [
        ("cpu", ResourceId::CPU),
        ("memory", ResourceId::MEMORY),
        ("pods", ResourceId::PODS),
        ("nodes", ResourceId::NODES),
    ] {
        assert_eq!((table.get(name), table.intern(name), table.name(id)), (Some(id), id, name));
    }
    assert_eq!((table.len(), table.is_empty(), table.get("gpu")), (4, false, None));
    let gpu = table.intern("gpu");
    assert_eq!((gpu.index(), table.intern("gpu")), (4, gpu));
    assert_eq!((table.name(gpu), table.get("gpu")), ("gpu", Some(gpu)));
}

#[test]
fn what_fits_is_at_most_what_is_available() {
    for (wanted, available, expected) in [
        (vec![], vec![], true),
        (vec![], vec![1], true),
        (vec![1, 2], vec![1, 2], true),
        (vec![1, 3], vec![1, 2], false),
        (vec![2, 2], vec![1, 2], false),
        (vec![1], vec![1, 5], true),
        (vec![1, 0, 0], vec![1], true),
        (vec![1, 0, 1], vec![1], false),
        (vec![0], vec![], true),
        (vec![-1], vec![], true),
        (vec![-1], vec![0], true),
        (vec![0, -5], vec![0, 1], true),
        (vec![0], vec![-1], false),
        (vec![-2], vec![-1], false),
        (vec![1], vec![5, -1], false),
        (vec![], vec![5, -1], false),
        (vec![1, 1], vec![5, 5, -1], false),
    ] {
        assert_eq!(stored(&wanted).fits(&stored(&available)), expected, "{wanted:?} in {available:?}");
    }
}

#[test]
fn a_zero_at_the_end_makes_no_difference() {
    let (short, long) = (stored(&[1, 2]), stored(&[1, 2, 0, 0]));
    assert_eq!(short, long);
    assert_eq!(stored(&[]), stored(&[0]));
    assert_ne!(stored(&[0, 1]), stored(&[1]));
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(hasher.hash_one(&short), hasher.hash_one(&long));
}

#[test]
fn amounts_are_listed_without_zeros() {
    let amounts = stored(&[3, 0, -1, 0]);
    let listed: Vec<_> = amounts.iter().collect();
    assert_eq!(listed, [(ResourceId::CPU, 3), (ResourceId::PODS, -1)]);
    assert!(amounts.any_negative() && !stored(&[3, 0]).any_negative());
    let twice: Amounts = [(ResourceId::PODS, 2), (ResourceId::PODS, 3)].into_iter().collect();
    assert_eq!(twice, stored(&[0, 0, 5]));
}

fn some_amounts() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(-3_i64..6, 0..12)
}

proptest! {
    #[test]
    fn amounts_are_combined_resource_by_resource(a in some_amounts(), b in some_amounts()) {
        let (first, second) = (stored(&a), amounts(&b));
        let at = |list: &[i64], position: usize| list.get(position).copied().unwrap_or(0);
        let check = |operation: fn(&mut Amounts, &Amounts), expected: fn(i64, i64) -> i64| {
            let mut result = first.clone();
            operation(&mut result, &second);
            let expected: Vec<i64> = (0..14).map(|i| expected(at(&a, i), at(&b, i))).collect();
            assert_eq!(listed(&result, 14), expected);
        };
        check(Amounts::add, |a, b| a + b);
        check(Amounts::subtract, |a, b| a - b);
        check(Amounts::raise_to, i64::max);
        check(Amounts::lower_to, i64::min);
        check(|amounts, _| amounts.clamp_to_zero(), |a, _| a.max(0));
        let fits = (0..14).all(|i| at(&a, i) <= at(&b, i) && at(&b, i) >= 0);
        prop_assert_eq!(first.fits(&second), fits);
        prop_assert_eq!(first.any_negative(), a.iter().any(|amount| *amount < 0));
        prop_assert_eq!(first == second, (0..14).all(|i| at(&a, i) == at(&b, i)));
        let nonzero = a.iter().copied().enumerate().filter(|(_, amount)| *amount != 0);
        let reference: BTreeMap<usize, i64> = nonzero.collect();
        let found: BTreeMap<usize, i64> = first.iter().map(|(id, amount)| (id.index(), amount)).collect();
        prop_assert_eq!(found, reference);
    }

    #[test]
    fn rounding_is_to_the_safe_side_and_by_less_than_a_unit(
        nanos in any::<i64>(),
        shift in 0_u32..60,
        id in 0_usize..5,
    ) {
        let read = Quantity::from_nanos(i128::from(nanos >> shift), Format::DecimalSi);
        let id = ResourceId::at(id);
        let back = |amount: i64| quantity(id, amount, Format::DecimalSi);
        let unit = back(1).nanos();
        let (asked, offered) = (request(id, read), capacity(id, read));
        prop_assert!(back(asked) >= read && back(asked).nanos() - read.nanos() < unit);
        prop_assert!(back(offered) <= read && read.nanos() - back(offered).nanos() < unit);
        prop_assert_eq!(unit, if id == ResourceId::CPU { 1 } else { 1_000_000 });
    }

    #[test]
    fn a_mask_is_a_set_of_integers(
        bound in 1_usize..200,
        a in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        b in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let make = |list: &[prop::sample::Index]| {
            let set: BTreeSet<usize> = list.iter().map(|index| index.index(bound)).collect();
            let mut mask = Mask::empty(bound);
            for index in &set {
                mask.insert(*index);
            }
            (set, mask)
        };
        let ((a, first), (b, second)) = (make(&a), make(&b));
        let check = |mask: &Mask, expected: BTreeSet<usize>| {
            assert_eq!(mask.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            assert_eq!(mask.count(), expected.len());
            assert_eq!(mask.is_empty(), expected.is_empty());
            assert!((0..bound).all(|index| mask.contains(index) == expected.contains(&index)));
        };
        let changed = |operation: fn(&mut Mask, &Mask)| {
            let mut mask = first.clone();
            operation(&mut mask, &second);
            mask
        };
        check(&first, a.clone());
        check(&changed(Mask::and), &a & &b);
        check(&changed(Mask::or), &a | &b);
        check(&changed(Mask::and_not), &a - &b);
        check(&Mask::full(bound), (0..bound).collect());
        check(&Mask::empty(bound), BTreeSet::new());
        prop_assert_eq!(first.intersects(&second), !a.is_disjoint(&b));
        prop_assert_eq!(first == second, a == b);
        let mut emptied = first;
        for index in &a {
            emptied.remove(*index);
        }
        prop_assert_eq!(emptied, Mask::empty(bound));
    }
}

#[test]
fn a_full_mask_holds_just_what_is_below_its_bound() {
    for bound in [0, 1, 63, 64, 65, 127, 128, 129] {
        assert_eq!(Mask::full(bound).count(), bound);
        assert_eq!(Mask::full(bound).iter().last(), bound.checked_sub(1));
        assert!(Mask::empty(bound).is_empty());
    }
}

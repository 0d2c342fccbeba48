//! A prepared catalogue answers for all types at once what asking them one by one would give.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::compiled::{Compiled, allocatable};
use engine::intern::{KeyId, ResourceId, ValueId};
use engine::mask::Mask;
use engine::model::{Catalogue, InstanceType, Offering, Overlaid};
use engine::requirement::Requirement;
use engine::resources::{Amounts, ResourceTable};
use engine::universe::{SetId, Universe};
use proptest::prelude::*;

use crate::compatible::{MATRIX, cells};
use crate::naive::{Ask, Asked, ask, conflicts, missing};
use crate::shapes::shapes;

/// The last key is first seen after the catalogue is prepared.
const KEYS: [&str; 5] = ["zone", "capacity-type", "size", "team", "late"];
const WELL_KNOWN: [bool; 5] = [true, true, true, false, false];
const RESOURCES: [&str; 7] = ["cpu", "memory", "pods", "nodes", "hugepages-2Mi", "hugepages-1Gi", "gpu"];

/// Amounts by the place of the resource; never zero, which is the same as absent.
type Plain = BTreeMap<usize, i64>;

#[derive(Clone, Debug)]
struct PlainOffering {
    asked: Asked,
    available: bool,
    capacity: Option<Plain>,
    overhead: Option<Plain>,
}

#[derive(Clone, Debug)]
struct PlainType {
    asked: Asked,
    capacity: Plain,
    overhead: Plain,
    offerings: Vec<PlainOffering>,
}

impl PlainOffering {
    fn overrides(&self) -> bool {
        let says = |amounts: &Option<Plain>| amounts.as_ref().is_some_and(|amounts| !amounts.is_empty());
        says(&self.capacity) || says(&self.overhead)
    }
}

impl PlainType {
    /// What pods can use, by offering; without one, of the type as such.
    fn allocatable(&self, offering: Option<&PlainOffering>) -> Plain {
        let (mut capacity, mut overhead) = (self.capacity.clone(), self.overhead.clone());
        if let Some(offering) = offering {
            capacity.extend(offering.capacity.clone().unwrap_or_default());
            overhead.extend(offering.overhead.clone().unwrap_or_default());
        }
        let mut result: Plain = capacity
            .iter()
            .map(|(resource, amount)| (*resource, amount - overhead.get(resource).unwrap_or(&0)))
            .collect();
        for (_, amount) in
            capacity.iter().filter(|(resource, _)| RESOURCES[**resource].starts_with("hugepages-"))
        {
            let memory = result.get(&1).unwrap_or(&0) - amount;
            result.insert(1, memory.max(0));
        }
        result.retain(|_, amount| *amount != 0);
        result
    }

    fn meets(&self, wanted: &Asked) -> bool {
        conflicts(&self.asked, wanted, KEYS.len()).is_empty()
    }

    /// The available offerings that meet what is wanted.
    fn offered<'a>(&'a self, wanted: &'a Asked) -> impl Iterator<Item = &'a PlainOffering> {
        self.offerings.iter().filter(|offering| {
            offering.available
                && conflicts(wanted, &offering.asked, KEYS.len()).is_empty()
                && missing(wanted, &offering.asked, &WELL_KNOWN).is_none()
        })
    }
}

fn fits(requests: &Plain, available: &Plain) -> bool {
    available.values().all(|amount| *amount >= 0)
        && requests.iter().all(|(resource, amount)| amount <= available.get(resource).unwrap_or(&0))
}

fn amounts(plain: &Plain) -> Amounts {
    plain.iter().map(|(resource, amount)| (ResourceId::at(*resource), *amount)).collect()
}

fn listed(plain: Option<&Plain>) -> Vec<(ResourceId, i64)> {
    plain.into_iter().flatten().map(|(resource, amount)| (ResourceId::at(*resource), *amount)).collect()
}

fn plain(amounts: &Amounts) -> Plain {
    amounts.iter().map(|(resource, amount)| (resource.index(), amount)).collect()
}

fn some_amounts(largest: i64, count: usize) -> impl Strategy<Value = Plain> {
    prop::collection::btree_map(prop::sample::select(vec![0_usize, 1, 2, 4, 5, 6]), 0..=largest, 0..=count)
}

fn some_asked() -> impl Strategy<Value = Asked> {
    prop::collection::vec((0_usize..KEYS.len(), ask()), 0..4)
}

fn some_offering() -> impl Strategy<Value = PlainOffering> {
    let labels = (
        prop::sample::select(vec!["A", "B", "C"]),
        prop::sample::select(vec!["1", "2"]),
        prop::option::weighted(0.2, (2_usize..4, ask())),
    );
    let overrides = || prop::option::weighted(0.3, some_amounts(6, 2));
    (labels, prop::bool::weighted(0.8), overrides(), overrides()).prop_map(
        |((zone, capacity_type, more), available, capacity, overhead)| {
            let mut asked = vec![(0, Ask::In(vec![zone])), (1, Ask::In(vec![capacity_type]))];
            asked.extend(more);
            PlainOffering { asked, available, capacity, overhead }
        },
    )
}

fn some_type() -> impl Strategy<Value = PlainType> {
    let labels = prop::collection::btree_map(0_usize..4, ask(), 0..4);
    let offerings = prop::collection::vec(some_offering(), 0..4);
    // Most overheads are for what the type has, so that few types are useless.
    (labels, some_amounts(8, 5), some_amounts(2, 1), offerings).prop_map(
        |(asked, capacity, overhead, offerings)| PlainType {
            asked: asked.into_iter().collect(),
            capacity,
            overhead,
            offerings,
        },
    )
}

/// The catalogue in the engine's terms.
struct Prepared {
    universe: Universe,
    keys: Vec<KeyId>,
    compiled: Compiled,
    types: usize,
}

fn set(asked: &Asked, keys: &[KeyId], universe: &mut Universe) -> SetId {
    let requirements: Vec<(KeyId, Requirement)> =
        asked.iter().map(|(key, ask)| (keys[*key], ask.requirement_of(keys[*key], universe))).collect();
    universe.set(requirements)
}

fn table() -> ResourceTable {
    let mut resources = ResourceTable::default();
    for (position, name) in RESOURCES.into_iter().enumerate() {
        assert_eq!(resources.intern(name).index(), position);
    }
    resources
}

fn prepare(types: &[PlainType]) -> Prepared {
    let mut universe = Universe::default();
    let mut keys = Vec::new();
    for (name, well_known) in KEYS.into_iter().zip(WELL_KNOWN).take(KEYS.len() - 1) {
        let key = universe.key(name);
        if well_known {
            universe.set_well_known(key);
        }
        keys.push(key);
    }
    let types: Vec<InstanceType> = types.iter().map(|it| instance_type(it, &keys, &mut universe)).collect();
    let count = types.len();
    let compiled = Compiled::new(Arc::new(Catalogue { types }), &universe, &table());
    keys.push(universe.key(KEYS[4]));
    Prepared { universe, keys, compiled, types: count }
}

fn instance_type(it: &PlainType, keys: &[KeyId], universe: &mut Universe) -> InstanceType {
    let offerings = it.offerings.iter().map(|offering| Offering {
        requirements: set(&offering.asked, keys, universe),
        price: 1.0,
        available: offering.available,
        reservation: None,
        capacity_override: listed(offering.capacity.as_ref()),
        overhead_override: listed(offering.overhead.as_ref()),
    });
    InstanceType {
        name: ValueId(0),
        offerings: offerings.collect(),
        requirements: set(&it.asked, keys, universe),
        capacity: amounts(&it.capacity),
        without: listed(Some(&it.capacity)).into_iter().filter(|(_, n)| *n == 0).map(|(r, _)| r).collect(),
        overhead: amounts(&it.overhead),
        volume_limits: Vec::new(),
        overlaid: Overlaid::default(),
    }
}

/// The types for which a test holds.
fn types_where(types: &[PlainType], test: impl Fn(&PlainType) -> bool) -> Vec<usize> {
    types.iter().enumerate().filter(|(_, it)| test(it)).map(|(type_, _)| type_).collect()
}

fn everything(types: &[PlainType], wanted: &Asked, requests: &Plain, prepared: &mut Prepared) {
    let set = set(wanted, &prepared.keys, &mut prepared.universe);
    let Prepared { universe, compiled, .. } = prepared;
    let rows = compiled.row_count();

    let meeting = compiled.meeting(set, universe);
    let offered = compiled.offered(set, universe);
    let matching = compiled.matching(set, universe);
    for row in 0..rows {
        let it = &types[compiled.row_type(row)];
        assert_eq!(meeting.contains(row), it.meets(wanted), "row {row} of {it:?} for {wanted:?}");
        let own = plain(compiled.row_allocatable(row));
        let through = it.offered(wanted).any(|offering| {
            offering.overrides() == (row >= types.len()) && it.allocatable(Some(offering)) == own
        });
        assert_eq!(offered.contains(row), through, "row {row} of {it:?} for {wanted:?}");
        assert_eq!(matching.contains(row), through && it.meets(wanted));
    }
    assert_eq!(compiled.matching(set, universe), matching, "asked again");

    let mut kept = (*matching).clone();
    compiled.keep_fitting(&mut kept, &amounts(requests));
    let expected = types_where(types, |it| {
        it.meets(wanted) && it.offered(wanted).any(|offering| fits(requests, &it.allocatable(Some(offering))))
    });
    assert_eq!(compiled.types_of(&kept), expected, "{requests:?} and {wanted:?} of {types:?}");

    let whole = compiled.whole_types(&kept);
    let expected: Vec<usize> = (0..rows).filter(|row| expected.contains(&compiled.row_type(*row))).collect();
    assert_eq!(whole.iter().collect::<Vec<_>>(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_catalogue_answers_as_its_types_would_one_by_one(
        types in prop::collection::vec(some_type(), 0..8),
        questions in prop::collection::vec((some_asked(), some_amounts(6, 3)), 1..6),
    ) {
        let mut prepared = prepare(&types);
        for (wanted, requests) in &questions {
            everything(&types, wanted, requests, &mut prepared);
        }
    }

    #[test]
    fn rows_have_the_amounts_of_the_type_or_of_its_offerings(types in prop::collection::vec(some_type(), 1..6)) {
        let prepared = prepare(&types);
        let compiled = &prepared.compiled;
        for (type_, it) in types.iter().enumerate() {
            let mut expected: Vec<Plain> = vec![it.allocatable(None)];
            for offering in it.offerings.iter().filter(|offering| offering.available && offering.overrides()) {
                let amounts = it.allocatable(Some(offering));
                if !expected[1..].contains(&amounts) {
                    expected.push(amounts);
                }
            }
            let own = (0..compiled.row_count()).filter(|row| compiled.row_type(*row) == type_);
            let found: Vec<Plain> = own.map(|row| plain(compiled.row_allocatable(row))).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(compiled.row_type(type_), type_, "the first rows are the types themselves");
        }
        prop_assert_eq!(compiled.types().len(), prepared.types);
    }

    #[test]
    fn rows_that_fit_have_enough_of_everything(
        types in prop::collection::vec(some_type(), 1..8),
        requests in prop::collection::btree_map(0_usize..8, -2_i64..7, 0..5),
        from in prop::collection::vec(any::<bool>(), 40),
    ) {
        let compiled = prepare(&types).compiled;
        let rows = compiled.row_count();
        let mut kept = Mask::empty(rows);
        (0..rows).filter(|row| from[*row]).for_each(|row| kept.insert(row));
        let whole = compiled.whole_types(&kept);
        let chosen: Vec<usize> = compiled.types_of(&kept);
        prop_assert!((0..rows).all(|row| whole.contains(row) == chosen.contains(&compiled.row_type(row))));
        compiled.keep_fitting(&mut kept, &amounts(&requests));
        let expected: Vec<usize> = (0..rows)
            .filter(|row| from[*row] && fits(&requests, &plain(compiled.row_allocatable(*row))))
            .collect();
        prop_assert_eq!(kept.iter().collect::<Vec<_>>(), expected);
    }
}

fn bare(capacity: Plain, overhead: Plain) -> PlainType {
    PlainType { asked: Vec::new(), capacity, overhead, offerings: Vec::new() }
}

/// What pods can use of a type that has `capacity`, of which the system keeps `overhead`.
fn usable(capacity: &[(usize, i64)], overhead: &[(usize, i64)]) -> Plain {
    let it = bare(capacity.iter().copied().collect(), overhead.iter().copied().collect());
    plain(&allocatable(&instance_type(&it, &[], &mut Universe::default()), None, &table()))
}

#[test]
fn pods_can_use_what_the_system_and_huge_pages_leave() {
    let some = |list: &[(usize, i64)]| -> Plain { list.iter().copied().collect() };
    assert_eq!(usable(&[(0, 8), (1, 20)], &[(0, 1), (1, 4)]), some(&[(0, 7), (1, 16)]));
    assert_eq!(usable(&[(0, 8)], &[(0, 1), (1, 4)]), some(&[(0, 7)]), "there is none to keep");
    assert_eq!(usable(&[(0, 8)], &[(0, 9)]), some(&[(0, -1)]));
    assert_eq!(
        usable(&[(0, 8), (6, 0)], &[(6, 2)]),
        some(&[(0, 8), (6, -2)]),
        "none of what the system keeps"
    );
    assert_eq!(usable(&[(1, 20), (4, 5), (5, 3)], &[(1, 4)]), some(&[(1, 8), (4, 5), (5, 3)]));
    assert_eq!(usable(&[(1, 6), (4, 5), (5, 3)], &[]), some(&[(4, 5), (5, 3)]), "never below zero");
    assert_eq!(usable(&[(1, 20), (4, 5)], &[(4, 2)]), some(&[(1, 15), (4, 3)]), "all pages are taken out");
}

#[test]
fn boundless_huge_pages_leave_no_memory() {
    let all = usable(&[(1, 20), (4, i64::MAX), (5, i64::MAX)], &[]);
    assert_eq!((all.get(&1), all.get(&4)), (None, Some(&i64::MAX)));
}

#[test]
fn an_offering_replaces_amounts_of_its_type() {
    let mut it = bare(BTreeMap::from([(0, 8), (1, 20)]), BTreeMap::from([(0, 2), (1, 2)]));
    let offering = |capacity: Option<Plain>, overhead: Option<Plain>| PlainOffering {
        asked: vec![(0, Ask::In(vec!["A"]))],
        available: true,
        capacity,
        overhead,
    };
    it.offerings = vec![
        offering(Some(BTreeMap::from([(1, 30), (6, 1)])), None),
        offering(None, Some(BTreeMap::from([(1, 5)]))),
        offering(Some(BTreeMap::from([(1, 30), (6, 1)])), None),
    ];
    let twin = PlainType { offerings: it.offerings[..1].to_vec(), ..it.clone() };
    let compiled = prepare(&[it, twin]).compiled;
    let rows: Vec<Plain> =
        (0..compiled.row_count()).map(|row| plain(compiled.row_allocatable(row))).collect();
    let (own, larger, kept_back) =
        (vec![(0, 6), (1, 18)], vec![(0, 6), (1, 28), (6, 1)], vec![(0, 6), (1, 15)]);
    let expected = [own.clone(), own, larger.clone(), kept_back, larger];
    assert_eq!(rows, expected.map(|row| row.into_iter().collect::<Plain>()));
    let mut some = Mask::empty(rows.len());
    some.insert(2);
    some.insert(3);
    assert_eq!(compiled.types_of(&some), [0]);
    assert_eq!(compiled.whole_types(&some).iter().collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn an_offering_can_take_away_what_its_type_has() {
    let mut it = bare(BTreeMap::from([(0, 8), (5, 3), (6, 2)]), BTreeMap::from([(0, 1), (6, 1)]));
    it.offerings = vec![PlainOffering {
        asked: vec![(0, Ask::In(vec!["A"]))],
        available: true,
        capacity: Some(BTreeMap::from([(5, 0), (6, 0)])),
        overhead: Some(BTreeMap::from([(0, 0)])),
    }];
    let compiled = prepare(&[it]).compiled;
    assert_eq!(plain(compiled.row_allocatable(1)), BTreeMap::from([(0, 8), (6, -1)]));
}

#[test]
fn types_meet_what_the_matrix_says() {
    let nothing = bare(Plain::new(), Plain::new());
    let shaped = |shape| PlainType { asked: vec![(3, shape)], ..nothing.clone() };
    let types: Vec<PlainType> = [nothing.clone()].into_iter().chain(shapes().map(shaped)).collect();
    let Prepared { mut universe, keys, mut compiled, .. } = prepare(&types);
    for (column, wanted) in types.iter().enumerate() {
        let set = set(&wanted.asked, &keys, &mut universe);
        let meeting = compiled.meeting(set, &universe);
        for (row, (name, cells_of_row)) in MATRIX.into_iter().enumerate() {
            assert_eq!(meeting.contains(row), cells(cells_of_row)[column], "{name} asked for {wanted:?}");
        }
    }
}

#[test]
fn an_offering_counts_if_it_is_available_and_where_it_is_wanted() {
    let offering = |zone, available, more: Option<(usize, Ask)>| PlainOffering {
        asked: [(0, Ask::In(vec![zone]))].into_iter().chain(more).collect(),
        available,
        capacity: None,
        overhead: None,
    };
    let with = |offerings| PlainType { offerings, ..bare(Plain::new(), Plain::new()) };
    let types = [
        with(vec![offering("A", true, None), offering("B", false, None)]),
        with(vec![offering("B", true, None)]),
        with(vec![]),
        with(vec![offering("A", true, Some((3, Ask::In(vec!["C"]))))]),
        with(vec![offering("A", true, Some((2, Ask::In(vec!["9"]))))]),
    ];
    let Prepared { mut universe, keys, mut compiled, .. } = prepare(&types);
    let mut check = |wanted: Asked, expected: &[usize]| {
        let set = set(&wanted, &keys, &mut universe);
        assert_eq!(compiled.offered(set, &mut universe).iter().collect::<Vec<_>>(), expected, "{wanted:?}");
        assert_eq!(compiled.matching(set, &mut universe).iter().collect::<Vec<_>>(), expected, "{wanted:?}");
    };
    // The cloud does not set the team, so nobody gets it who does not ask for it.
    check(vec![], &[0, 1, 4]);
    check(vec![(0, Ask::In(vec!["A"]))], &[0, 4]);
    check(vec![(0, Ask::In(vec!["B"]))], &[1]);
    check(vec![(0, Ask::NotIn(vec!["A"]))], &[1]);
    check(vec![(0, Ask::In(vec!["C"]))], &[]);
    check(vec![(0, Ask::DoesNotExist)], &[]);
    check(vec![(3, Ask::Exists)], &[0, 1, 3, 4]);
    check(vec![(3, Ask::In(vec!["A"]))], &[0, 1, 4]);
    check(vec![(2, Ask::Lt(9))], &[0, 1]);
    check(vec![(4, Ask::Exists)], &[0, 1, 4]);
}

#[test]
fn a_type_matches_if_both_its_labels_and_an_offering_do() {
    let in_zone = |own, offered| PlainType {
        asked: vec![(0, Ask::In(vec![own]))],
        offerings: vec![PlainOffering {
            asked: vec![(0, Ask::In(vec![offered]))],
            available: true,
            capacity: None,
            overhead: None,
        }],
        ..bare(Plain::new(), Plain::new())
    };
    let types = [in_zone("A", "A"), in_zone("A", "B"), in_zone("B", "A"), in_zone("B", "B")];
    let Prepared { mut universe, keys, mut compiled, .. } = prepare(&types);
    let set = set(&vec![(0, Ask::In(vec!["A"]))], &keys, &mut universe);
    assert_eq!(compiled.matching(set, &mut universe).iter().collect::<Vec<_>>(), [0]);
    assert_eq!(compiled.meeting(set, &universe).iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(compiled.offered(set, &mut universe).iter().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn nothing_fits_a_type_of_which_the_system_keeps_more_than_all() {
    let types = [(8, 4), (8, 9)]
        .map(|(has, kept)| bare(BTreeMap::from([(0, has), (1, 1)]), BTreeMap::from([(0, kept)])));
    let compiled = prepare(&types).compiled;
    for requests in
        [Plain::new(), BTreeMap::from([(1, 1)]), BTreeMap::from([(0, -2)]), BTreeMap::from([(6, -2)])]
    {
        let mut rows = Mask::full(2);
        compiled.keep_fitting(&mut rows, &amounts(&requests));
        assert_eq!(rows.iter().collect::<Vec<_>>(), [0], "{requests:?}");
    }
}

#[test]
fn what_no_type_has_fits_nowhere() {
    let compiled = prepare(&[bare(BTreeMap::from([(0, 8)]), Plain::new())]).compiled;
    for (resource, amount, expected) in
        [(0, 8, 1), (0, 9, 0), (6, 1, 0), (6, 0, 1), (100, 1, 0), (100, -1, 1)]
    {
        let mut rows = Mask::full(1);
        compiled.keep_fitting(&mut rows, &amounts(&BTreeMap::from([(resource, amount)])));
        assert_eq!(rows.count(), expected, "{amount} of resource {resource}");
    }
}

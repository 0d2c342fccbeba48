//! The rules of requirements once more, as plainly as they can be said: by trying values.
//!
//! Values that a requirement can list are letters and integers without leading zeros. For each of them the
//! samples hold another one that no requirement lists: another word, and for each integer another spelling. So a
//! complement always has a sample left as long as its bounds leave an integer.

use std::sync::LazyLock;

use engine::intern::{KeyId, ValueId};
use engine::requirement::{Operator, Requirement, Values};
use engine::universe::Universe;
use proptest::prelude::*;

/// What a manifest asks of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Exists,
    DoesNotExist,
    In(Vec<&'static str>),
    NotIn(Vec<&'static str>),
    Gt(i64),
    Lt(i64),
    Gte(i64),
    Lte(i64),
}

/// The values that are tried.
pub(crate) fn samples() -> &'static [String] {
    static SAMPLES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let integers = (-3_i64..=22).flat_map(|integer| {
            let sign = if integer < 0 { "-" } else { "" };
            [integer.to_string(), format!("{sign}0{}", integer.abs())]
        });
        ["A", "B", "C", "elsewhere"].into_iter().map(str::to_owned).chain(integers).collect()
    });
    &SAMPLES
}

impl Ask {
    /// Whether a label with this value is acceptable.
    pub(crate) fn admits(&self, value: &str) -> bool {
        let integer = |test: &dyn Fn(i64) -> bool| value.parse().is_ok_and(test);
        match self {
            Self::Exists => true,
            Self::DoesNotExist => false,
            Self::In(values) => values.contains(&value),
            Self::NotIn(values) => !values.contains(&value),
            Self::Gt(bound) => integer(&|value| value > *bound),
            Self::Lt(bound) => integer(&|value| value < *bound),
            Self::Gte(bound) => integer(&|value| value >= *bound),
            Self::Lte(bound) => integer(&|value| value <= *bound),
        }
    }

    /// The engine's form of it.
    pub(crate) fn requirement(&self, values: &mut Values) -> Requirement {
        self.interned(|text| values.intern(text))
    }

    /// The engine's form of it, for a label of a snapshot.
    pub(crate) fn requirement_of(&self, key: KeyId, universe: &mut Universe) -> Requirement {
        self.interned(|text| universe.value(key, text))
    }

    fn interned(&self, mut intern: impl FnMut(&str) -> ValueId) -> Requirement {
        match self {
            Self::Exists => Requirement::exists(),
            Self::DoesNotExist => Requirement::does_not_exist(),
            Self::In(texts) => Requirement::within(texts.iter().map(|text| intern(text))),
            Self::NotIn(texts) => Requirement::not_in(texts.iter().map(|text| intern(text))),
            Self::Gt(bound) => Requirement::greater_than(*bound),
            Self::Lt(bound) => Requirement::less_than(*bound),
            Self::Gte(bound) => Requirement::at_least(*bound),
            Self::Lte(bound) => Requirement::at_most(*bound),
        }
    }

    fn lower_bound(&self) -> Option<i64> {
        match self {
            Self::Gt(bound) => Some(bound + 1),
            Self::Gte(bound) => Some(*bound),
            _ => None,
        }
    }

    fn upper_bound(&self) -> Option<i64> {
        match self {
            Self::Lt(bound) => Some(bound - 1),
            Self::Lte(bound) => Some(*bound),
            _ => None,
        }
    }
}

/// Whether a value is acceptable to all.
pub(crate) fn admits(asks: &[Ask], value: &str) -> bool {
    asks.iter().all(|ask| ask.admits(value))
}

/// Whether some sample is acceptable to all.
pub(crate) fn admits_something(asks: &[Ask]) -> bool {
    samples().iter().any(|value| admits(asks, value))
}

/// The operator of all asks together. Bounds that contradict each other leave no label at all.
pub(crate) fn operator(asks: &[Ask]) -> Operator {
    if enumerable(asks) {
        return if admits_something(asks) { Operator::In } else { Operator::DoesNotExist };
    }
    if excluded(asks).is_empty() { Operator::Exists } else { Operator::NotIn }
}

/// Whether the acceptable values can be counted off.
fn enumerable(asks: &[Ask]) -> bool {
    asks.iter().any(|ask| matches!(ask, Ask::In(_) | Ask::DoesNotExist)) || !admits_something(asks)
}

/// The values that would be acceptable if they were not excluded by name.
fn excluded(asks: &[Ask]) -> Vec<&'static str> {
    let (named, others): (Vec<Ask>, Vec<Ask>) =
        asks.iter().cloned().partition(|ask| matches!(ask, Ask::NotIn(_)));
    let excluded = |value: &&str| admits(&others, value) && !admits(&named, value);
    samples().iter().map(String::as_str).filter(excluded).collect()
}

/// Whether two sides of one label can agree on a value, or on the label's absence.
pub(crate) fn meet(a: &[Ask], b: &[Ask]) -> bool {
    let absent = |asks| matches!(operator(asks), Operator::NotIn | Operator::DoesNotExist);
    (absent(a) && absent(b)) || admits_something(&[a, b].concat())
}

/// What is asked of several labels, each known by its place in a list of keys.
pub(crate) type Asked = Vec<(usize, Ask)>;

/// What is asked of one label.
pub(crate) fn of_key(asked: &Asked, key: usize) -> Vec<Ask> {
    asked.iter().filter(|(asked, _)| *asked == key).map(|(_, ask)| ask.clone()).collect()
}

/// The labels on which two sides cannot agree.
pub(crate) fn conflicts(a: &Asked, b: &Asked, keys: usize) -> Vec<usize> {
    let conflict = |key: &usize| {
        let (a, b) = (of_key(a, *key), of_key(b, *key));
        !a.is_empty() && !b.is_empty() && !meet(&a, &b)
    };
    (0..keys).filter(conflict).collect()
}

/// The first label that is asked for where nothing can give it. Those that are allowed come at launch.
pub(crate) fn missing(own: &Asked, wanted: &Asked, allowed: &[bool]) -> Option<usize> {
    let absent = |key: &usize| {
        let asks = of_key(wanted, *key);
        !allowed[*key]
            && !asks.is_empty()
            && of_key(own, *key).is_empty()
            && !matches!(operator(&asks), Operator::NotIn | Operator::DoesNotExist)
    };
    (0..allowed.len()).find(absent)
}

/// Asserts that a requirement is what all asks together say.
#[track_caller]
pub(crate) fn assert_is(found: &Requirement, asks: &[Ask], min_values: Option<u32>, values: &mut Values) {
    let context = format!("{asks:?} became {}", found.describe(values));
    for value in samples() {
        let id = values.intern(value);
        assert_eq!(found.has(id, values), admits(asks, value), "{context}, asked for {value}");
    }
    let mut listed: Vec<&str> = found.listed().iter().map(|id| values.name(*id)).collect();
    listed.sort_unstable();
    let (mut expected, bounds) = if enumerable(asks) {
        (samples().iter().map(String::as_str).filter(|value| admits(asks, value)).collect(), (None, None))
    } else {
        let lower = asks.iter().filter_map(Ask::lower_bound).max();
        let upper = asks.iter().filter_map(Ask::upper_bound).min();
        (excluded(asks), (lower, upper))
    };
    expected.sort_unstable();
    assert_eq!(listed, expected, "{context}");
    assert_eq!(found.bounds(), bounds, "{context}");
    assert_eq!(found.is_complement(), !enumerable(asks), "{context}");
    assert_eq!(found.operator(), operator(asks), "{context}");
    assert_eq!(found.min_values(), min_values, "{context}");
}

/// All asks together in the engine's form.
pub(crate) fn combined(asks: &[Ask], values: &mut Values) -> Requirement {
    asks.iter().fold(Requirement::exists(), |all, ask| {
        let next = ask.requirement(values);
        all.intersection(&next, values)
    })
}

/// Anything that can be asked, within what the samples cover.
pub(crate) fn ask() -> impl Strategy<Value = Ask> {
    let texts = || {
        let one = proptest::sample::select(vec!["A", "B", "C", "-2", "0", "1", "2", "9", "10", "19"]);
        proptest::collection::vec(one, 1..4)
    };
    prop_oneof![
        1 => Just(Ask::Exists),
        1 => Just(Ask::DoesNotExist),
        3 => texts().prop_map(Ask::In),
        3 => texts().prop_map(Ask::NotIn),
        1 => (-2_i64..20).prop_map(Ask::Gt),
        1 => (-1_i64..21).prop_map(Ask::Lt),
        1 => (-2_i64..20).prop_map(Ask::Gte),
        1 => (-2_i64..21).prop_map(Ask::Lte),
    ]
}

/// One to three asks of one label.
pub(crate) fn asks() -> impl Strategy<Value = Vec<Ask>> {
    proptest::collection::vec(ask(), 1..4)
}

//! One requirement: which values of a label key are acceptable.
//!
//! A requirement is a set of values or the complement of one, cut by integer bounds:
//!
//! ```text
//! In a b           {a, b}            Exists   complement of {}        Gte 3   complement of {}, from 3
//! NotIn a b        complement of …   DoesNotExist   {}                Lt 9    complement of {}, to 8
//! ```

use std::fmt::Write;

use smallvec::SmallVec;

use crate::intern::{Interner, ValueId};

/// The values of one label key, each with the integer it spells.
#[derive(Clone, Debug, Default)]
pub struct Values {
    names: Interner,
    integers: Vec<Option<i64>>,
}

impl Values {
    /// The number of a value, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> ValueId {
        let id = self.names.intern(text);
        if self.integers.len() < self.names.len() {
            self.integers.push(text.parse().ok());
        }
        ValueId(id)
    }

    /// The number of a value that was seen before.
    pub fn get(&self, text: &str) -> Option<ValueId> {
        self.names.get(text).map(ValueId)
    }

    /// The value behind a number.
    pub fn name(&self, value: ValueId) -> &str {
        self.names.resolve(value.0)
    }

    /// The integer that a value spells, if it does.
    pub fn integer(&self, value: ValueId) -> Option<i64> {
        self.integers[value.index()]
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// How a requirement reads once it is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// One of some values.
    In,
    /// Anything but some values, or absent.
    NotIn,
    /// Anything.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl Operator {
    /// The operator's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }

    /// Whether a node without the label satisfies it.
    pub const fn accepts_absence(self) -> bool {
        matches!(self, Self::NotIn | Self::DoesNotExist)
    }
}

/// Which values of a label key are acceptable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    complement: bool,
    /// Sorted and without duplicates.
    values: SmallVec<[ValueId; 4]>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
}

impl Requirement {
    /// One of the values; none at all means that the label must be absent.
    pub fn within(values: impl IntoIterator<Item = ValueId>) -> Self {
        Self { complement: false, values: sorted(values), gte: None, lte: None, min_values: None }
    }

    /// Anything but the values; without values any value.
    pub fn not_in(values: impl IntoIterator<Item = ValueId>) -> Self {
        Self { complement: true, values: sorted(values), gte: None, lte: None, min_values: None }
    }

    /// The label is present.
    pub fn exists() -> Self {
        Self::not_in([])
    }

    /// The label is absent.
    pub fn does_not_exist() -> Self {
        Self::within([])
    }

    /// An integer greater than the bound; nothing is greater than the greatest integer.
    pub fn greater_than(bound: i64) -> Self {
        bound.checked_add(1).map_or_else(Self::does_not_exist, Self::at_least)
    }

    /// An integer less than the bound; nothing is less than the least integer.
    pub fn less_than(bound: i64) -> Self {
        bound.checked_sub(1).map_or_else(Self::does_not_exist, Self::at_most)
    }

    /// An integer not less than the bound.
    pub fn at_least(bound: i64) -> Self {
        Self { gte: Some(bound), ..Self::exists() }
    }

    /// An integer not greater than the bound.
    pub fn at_most(bound: i64) -> Self {
        Self { lte: Some(bound), ..Self::exists() }
    }

    /// The same, asking that at least so many different values remain.
    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Self {
        Self { min_values, ..self }
    }

    /// How many different values must remain.
    pub const fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The bounds, both included.
    pub const fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.gte, self.lte)
    }

    /// Whether the set is given by what is not in it.
    pub const fn is_complement(&self) -> bool {
        self.complement
    }

    /// The values that are acceptable, if they are given one by one.
    pub fn members(&self) -> Option<&[ValueId]> {
        (!self.complement).then_some(&self.values)
    }

    /// The one value that is acceptable, if there is just one.
    pub fn single(&self) -> Option<ValueId> {
        match self.members() {
            Some([value]) => Some(*value),
            _ => None,
        }
    }

    /// The values that are given, whether they are in or out.
    pub fn listed(&self) -> &[ValueId] {
        &self.values
    }

    /// How the requirement reads.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// Whether a value is acceptable.
    pub fn has(&self, value: ValueId, values: &Values) -> bool {
        (self.values.binary_search(&value).is_ok() != self.complement) && self.in_bounds(value, values)
    }

    fn in_bounds(&self, value: ValueId, values: &Values) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        values.integer(value).is_some_and(|integer| {
            self.gte.is_none_or(|gte| gte <= integer) && self.lte.is_none_or(|lte| integer <= lte)
        })
    }

    /// What satisfies both.
    #[must_use]
    pub fn intersection(&self, other: &Self, values: &Values) -> Self {
        let min_values = self.min_values.max(other.min_values);
        let (gte, lte) = joint_bounds(self, other);
        if gte.zip(lte).is_some_and(|(gte, lte)| gte > lte) {
            return Self::does_not_exist().with_min_values(min_values);
        }
        let complement = self.complement && other.complement;
        let mut result = Self { complement, values: SmallVec::new(), gte, lte, min_values };
        result.values = match (self.complement, other.complement) {
            (true, true) => sorted(self.values.iter().chain(&other.values).copied()),
            (true, false) => without(&other.values, &self.values),
            (false, true) => without(&self.values, &other.values),
            (false, false) => {
                self.values.iter().copied().filter(|v| other.values.binary_search(v).is_ok()).collect()
            }
        };
        let mut kept = std::mem::take(&mut result.values);
        kept.retain(|value| result.in_bounds(*value, values));
        result.values = kept;
        if !complement {
            (result.gte, result.lte) = (None, None);
        }
        result
    }

    /// Whether anything satisfies both.
    pub fn intersects(&self, other: &Self, values: &Values) -> bool {
        let (gte, lte) = joint_bounds(self, other);
        if gte.zip(lte).is_some_and(|(gte, lte)| gte > lte) {
            return false;
        }
        match (self.complement, other.complement) {
            (true, true) => true,
            (true, false) => other.values.iter().any(|v| self.has(*v, values) && other.in_bounds(*v, values)),
            (false, _) => self.values.iter().any(|v| other.has(*v, values) && self.in_bounds(*v, values)),
        }
    }

    /// The requirement as upstream writes it in messages, after the key: `NotIn [a b] >=3 minValues 2`.
    pub fn describe(&self, values: &Values) -> String {
        let mut text = self.operator().as_str().to_owned();
        if !self.values.is_empty() {
            const SHOWN: usize = 5;
            let mut names: Vec<&str> = self.values.iter().map(|value| values.name(*value)).collect();
            names.sort_unstable();
            let hidden = names.len().saturating_sub(SHOWN);
            names.truncate(SHOWN);
            let more = if hidden > 0 { format!(" and {hidden} others") } else { String::new() };
            let _ = write!(text, " [{}{more}]", names.join(" "));
        }
        if let Some(gte) = self.gte {
            let _ = write!(text, " >={gte}");
        }
        if let Some(lte) = self.lte {
            let _ = write!(text, " <={lte}");
        }
        if let Some(min_values) = self.min_values {
            let _ = write!(text, " minValues {min_values}");
        }
        text
    }
}

fn joint_bounds(a: &Requirement, b: &Requirement) -> (Option<i64>, Option<i64>) {
    let lte = match (a.lte, b.lte) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (a.gte.max(b.gte), lte)
}

fn sorted(values: impl IntoIterator<Item = ValueId>) -> SmallVec<[ValueId; 4]> {
    let mut values: SmallVec<[ValueId; 4]> = values.into_iter().collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn without(values: &[ValueId], excluded: &[ValueId]) -> SmallVec<[ValueId; 4]> {
    values.iter().copied().filter(|value| excluded.binary_search(value).is_err()).collect()
}

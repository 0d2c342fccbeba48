//! Requirements and labels compared outside of scheduling.

use api::labels::LabelSets;
use api::shared::{Operator, Requirement as Written};
use engine::intern::{KeyId, ValueId};
use engine::requirement::Requirement;
use engine::universe::{SetId, Undefined, Universe};

/// Compares requirements and labels of nodes.
pub(crate) struct Algebra<'a> {
    universe: Universe,
    labels: &'a LabelSets,
}

impl<'a> Algebra<'a> {
    /// An algebra over a cloud's labels.
    pub(crate) fn new(labels: &'a LabelSets) -> Self {
        let mut universe = Universe::default();
        for name in labels.well_known() {
            let key = universe.key(name);
            universe.set_well_known(key);
        }
        Self { universe, labels }
    }

    /// The labels of a node as requirements.
    pub(crate) fn labels<'l>(&mut self, labels: impl IntoIterator<Item = (&'l str, &'l str)>) -> SetId {
        let all: Vec<_> = labels
            .into_iter()
            .map(|(key, value)| {
                let id = self.universe.key(self.labels.normalize_key(key));
                (id, Requirement::within(self.values(id, &[value])))
            })
            .collect();
        self.universe.set(all)
    }

    /// Requirements as objects write them; one that is not valid counts for nothing.
    pub(crate) fn requirements(&mut self, all: &[Written]) -> SetId {
        let all: Vec<_> = all
            .iter()
            .filter_map(|Written { key, operator, values, .. }| {
                let id = self.universe.key(self.labels.normalize_key(key));
                let bound = || values.first().and_then(|value| value.parse().ok());
                let requirement = match operator {
                    Operator::In => Requirement::within(self.values(id, values)),
                    Operator::NotIn => Requirement::not_in(self.values(id, values)),
                    Operator::Exists => Requirement::exists(),
                    Operator::DoesNotExist => Requirement::does_not_exist(),
                    Operator::Gt => Requirement::greater_than(bound()?),
                    Operator::Lt => Requirement::less_than(bound()?),
                    Operator::Gte => Requirement::at_least(bound()?),
                    Operator::Lte => Requirement::at_most(bound()?),
                };
                Some((id, requirement))
            })
            .collect();
        self.universe.set(all)
    }

    fn values<V: AsRef<str>>(&mut self, key: KeyId, values: &[V]) -> Vec<ValueId> {
        let name = self.universe.key_name(key).to_owned();
        values
            .iter()
            .map(|value| self.universe.value(key, self.labels.normalize_value(&name, value.as_ref())))
            .collect()
    }

    /// What both ask for.
    pub(crate) fn both(&mut self, a: SetId, b: SetId) -> SetId {
        self.universe.intersect(a, b)
    }

    /// Whether a node with some labels is what is asked for; a label that is missing is missing.
    pub(crate) fn satisfies(&mut self, labels: SetId, asked: SetId) -> bool {
        self.universe.is_compatible(labels, asked, Undefined::Refused)
    }

    /// Whether something is on offer for what is known so far; well-known labels may be missing.
    pub(crate) fn admits(&mut self, known: SetId, offered: SetId) -> bool {
        self.universe.is_compatible(known, offered, Undefined::WellKnown)
    }
}

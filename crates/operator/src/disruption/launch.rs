//! A node that would have to be launched, and what it would cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::labels::LabelSets;
use api::names::labels;
use api::names::values::capacity_type;
use api::shared::{Operator, Requirement};
use cluster::instance_types::{InstanceType, Wanted};
use cluster::state::State;
use runtime::Error;

use super::scene::Scene;
use crate::provisioner::counted::Counted;
use crate::provisioner::outcome::NewClaim;

/// A node that would have to be launched.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The claim, as it would be created.
    pub(crate) new: NewClaim,
    /// What its pool chooses from; nothing if the claim leaves the choice to the cloud.
    pub(crate) catalogue: Arc<[InstanceType]>,
    sets: Arc<LabelSets>,
    counted: Counted,
}

impl Launch {
    /// A launch of a planned claim.
    pub(crate) fn new(new: NewClaim, catalogue: Arc<[InstanceType]>, scene: &Scene) -> Self {
        Self { new, catalogue, sets: Arc::clone(scene.sets()), counted: scene.counted().clone() }
    }

    /// It was looked at again, and is still possible.
    pub(crate) fn confirm(&mut self, again: &Self) {
        self.counted = again.counted.clone();
    }

    /// Fails if somebody else has launched nodes since it was planned that may be just what limits allowed.
    pub(crate) fn check_limits(&self, state: &State, own: &BTreeSet<Box<str>>) -> Result<(), Error> {
        self.counted.check(state, self.pool(), own)
    }

    /// Which labels there are.
    pub(crate) fn sets(&self) -> &LabelSets {
        &self.sets
    }

    /// The name of the pool.
    pub(crate) fn pool(&self) -> &str {
        self.new.pool.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether the pool has a fixed number of nodes.
    pub(crate) fn is_static(&self) -> bool {
        self.new.pool.spec.replicas.is_some()
    }

    /// The types that it can become, the cheapest first.
    pub(crate) fn types(&self) -> impl Iterator<Item = &InstanceType> {
        // Of types of one name those count that the claim admits; the planner has made sure that there is one.
        self.new.types.iter().filter_map(|name| self.catalogue.iter().find(|known| known.name == *name))
    }

    /// What the claim asks for, to be compared with types and offerings. Nothing if it cannot be understood.
    pub(crate) fn wanted(&self) -> Option<Wanted<'_>> {
        Wanted::new(&self.new.claim.spec.requirements, &self.sets).ok()
    }

    /// The price per hour of the cheapest type, as it can be bought now; nothing if that is not known.
    pub(crate) fn price(&self) -> f64 {
        let (Some(mut wanted), Some(first)) = (self.wanted(), self.types().next()) else { return 0.0 };
        let offerings = first.offerings.iter().filter(|it| it.is_launchable() && !it.price.is_nan());
        let prices = offerings.filter(|it| wanted.admits(&it.requirements)).map(|it| it.price);
        prices.min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// How it would be bought: the first of reserved, spot and on-demand that the claim admits.
    pub(crate) fn capacity_type(&self) -> &'static str {
        let Some(mut wanted) = self.wanted() else { return "" };
        let all = [capacity_type::RESERVED, capacity_type::SPOT, capacity_type::ON_DEMAND];
        let admitted = all.into_iter().find(|kind| wanted.admits(&[within(labels::CAPACITY_TYPE, [*kind])]));
        admitted.unwrap_or_default()
    }

    /// Leaves only some values of a label. How many of them there must be at least stays as it was.
    #[cfg(test)]
    pub(crate) fn restrict<'v>(&mut self, key: &str, values: impl IntoIterator<Item = &'v str>) {
        let values: Vec<&str> = values.into_iter().collect();
        if key == labels::INSTANCE_TYPE {
            self.new.types.retain(|name| values.contains(&name.as_str()));
        }
        let requirements = &mut self.new.claim.spec.requirements;
        let min_values = requirements.iter().filter(|it| it.key == key).filter_map(|it| it.min_values).max();
        requirements.retain(|it| it.key != key || it.operator != Operator::In);
        requirements.push(Requirement { min_values, ..within(key, values) });
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
    }
}

fn within<'v>(key: &str, values: impl IntoIterator<Item = &'v str>) -> Requirement {
    let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
    values.sort();
    Requirement { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

//! NodeOverlays: which of them are in force, and what they make of instance types.
//!
//! ```text
//! overlays, pools with their types ─► evaluate ─┬─► rejections, for conditions and warnings
//!                                               └─► InForce ─► apply(pool, types) ─► corrected types
//! ```
//!
//! What is wrong with an overlay concerns that overlay alone, and all of it: one that is invalid, or in conflict
//! with another anywhere, changes nothing.

mod matching;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::names::messages::OVERLAY_CONFLICT;
use api::names::{labels, reasons};
use api::nodeoverlay::{NodeOverlay, Price};
use api::nodepool::NodePool;
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use api::validation::Errors;
use api::validation::node_overlay::{self, NodeOverlayError};
use api::validation::precedence::by_overlay_precedence;
use engine::universe::SetId;
use units::Resources;

use crate::instance_types::{InstanceType, label_sets};
use matching::{Compiled, Matcher};

/// Why an overlay is not in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It makes no sense.
    #[error(transparent)]
    Invalid(Errors<NodeOverlayError>),
    /// Another overlay of the same weight concerns the same offering or resource.
    #[error("{}", OVERLAY_CONFLICT)]
    Conflict,
}

impl Rejection {
    /// The reason that the condition of the overlay shows.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => reasons::node_overlay::RUNTIME_VALIDATION,
            Self::Conflict => reasons::node_overlay::CONFLICT,
        }
    }
}

/// A NodePool and what it can choose from before overlays.
#[derive(Clone, Debug)]
pub struct PoolTypes<'a> {
    /// The pool.
    pub pool: &'a NodePool,
    /// The types, as the cloud lists them.
    pub types: Arc<[InstanceType]>,
}

/// What came of looking at all overlays.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Those that are in force.
    pub in_force: InForce,
    /// Why others are not; for each overlay, in the order in which they were given.
    pub rejections: Vec<Option<Rejection>>,
}

/// Overlays that are in force, and the pools that they were compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    provider: Provider,
    /// The heaviest first.
    overlays: Vec<Overlay>,
    /// The pools that took part, with their name and labels as requirements.
    pools: BTreeMap<Box<str>, Vec<Requirement>>,
}

/// An overlay that makes sense.
#[derive(Clone, Debug, PartialEq)]
struct Overlay {
    requirements: Vec<Requirement>,
    price: Option<Price>,
    capacity: Resources,
    weight: i32,
}

/// Finds out which overlays are in force for some pools.
pub fn evaluate(provider: Provider, overlays: &[&NodeOverlay], pools: &[PoolTypes<'_>]) -> Evaluation {
    let mut lists: Vec<&Arc<[InstanceType]>> = Vec::new();
    for PoolTypes { types, .. } in pools {
        if !lists.iter().any(|known| Arc::ptr_eq(known, types)) {
            lists.push(types);
        }
    }
    let sets = label_sets(provider, lists.iter().flat_map(|types| types.iter()));
    let mut matcher = Matcher::new(&sets);
    let compiled: Vec<Vec<Compiled>> = lists.iter().map(|types| matcher.types(types)).collect();
    let named: Vec<_> = pools.iter().map(|each| (name_of(each.pool), selectors(each.pool))).collect();
    let choices = pools.iter().zip(&named).map(|(each, (_, selectors))| {
        let list = lists.iter().position(|known| Arc::ptr_eq(known, &each.types)).unwrap_or_default();
        (matcher.requirements(selectors).unwrap_or(SetId::EMPTY), &*compiled[list])
    });
    let choices: Vec<(SetId, &[Compiled])> = choices.collect();
    let mut order: Vec<usize> = (0..overlays.len()).collect();
    order.sort_by(|a, b| by_overlay_precedence(overlays[*a], overlays[*b]));
    let mut rejections: Vec<Option<Rejection>> = vec![None; overlays.len()];
    let (mut in_force, mut records) = (Vec::new(), Records::new());
    for index in order {
        let spec = &overlays[index].spec;
        let valid = node_overlay::validate(spec, &sets).map(|()| Overlay {
            requirements: spec.requirements.clone(),
            price: spec.price_change().ok().flatten(),
            capacity: spec.capacity.iter().flatten().map(|(name, amount)| (&**name, *amount)).collect(),
            weight: spec.weight.unwrap_or(0),
        });
        let accepted = valid.map_err(Rejection::Invalid).and_then(|overlay| {
            let concerned = concerned(&mut matcher, &overlay, &choices);
            record(&mut records, &overlay, concerned).then_some(overlay).ok_or(Rejection::Conflict)
        });
        match accepted {
            Ok(overlay) => in_force.push(overlay),
            Err(rejection) => rejections[index] = Some(rejection),
        }
    }
    let pools = named.into_iter().map(|(name, selectors)| (name.into(), selectors)).collect();
    Evaluation { in_force: InForce { provider, overlays: in_force, pools }, rejections }
}

fn name_of(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}

/// By what overlays can select a pool: its name and the labels of its nodes.
fn selectors(pool: &NodePool) -> Vec<Requirement> {
    let own = pool.spec.template.metadata.labels.iter().flatten();
    let own = own.map(|(key, value)| (key.as_str(), value.as_str()));
    own.chain([(labels::NODEPOOL, name_of(pool))])
        .map(|(key, value)| Requirement {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
            min_values: None,
        })
        .collect()
}

/// A type of a pool, by their positions, and its offerings that an overlay is for.
type Concerned = ((usize, usize), Vec<usize>);

fn concerned(
    matcher: &mut Matcher<'_>,
    overlay: &Overlay,
    choices: &[(SetId, &[Compiled])],
) -> Vec<Concerned> {
    let mut all = Vec::new();
    let Some(asked) = matcher.requirements(&overlay.requirements) else { return all };
    for (pool, (selectors, types)) in choices.iter().enumerate() {
        for (number, each) in types.iter().enumerate() {
            let offerings = matcher.offerings(*selectors, each, asked);
            if !offerings.is_empty() {
                all.push(((pool, number), offerings));
            }
        }
    }
    all
}

/// The least weight of an overlay so far that concerns something, by type of a pool. Overlays come by weight, so
/// it is that of the last one.
type Records = BTreeMap<(usize, usize), Record>;

#[derive(Debug, Default)]
struct Record {
    /// By offering.
    prices: BTreeMap<usize, i32>,
    /// By resource.
    capacity: BTreeMap<Box<str>, i32>,
}

/// Notes what an overlay concerns, unless another of the same weight concerns some of it, too.
fn record(records: &mut Records, overlay: &Overlay, concerned: Vec<Concerned>) -> bool {
    let Overlay { price, capacity, weight, .. } = overlay;
    let conflicts = concerned.iter().any(|(place, offerings)| {
        records.get(place).is_some_and(|known| {
            let prices = || offerings.iter().any(|offering| known.prices.get(offering) == Some(weight));
            let amounts =
                || capacity.iter().any(|(name, _)| known.capacity.get(name.as_str()) == Some(weight));
            price.is_some() && prices() || amounts()
        })
    });
    if conflicts {
        return false;
    }
    for (place, offerings) in concerned {
        let known = records.entry(place).or_default();
        if price.is_some() {
            known.prices.extend(offerings.into_iter().map(|offering| (offering, *weight)));
        }
        known.capacity.extend(capacity.iter().map(|(name, _)| (name.as_str().into(), *weight)));
    }
    true
}

impl InForce {
    /// No overlays, and no pools.
    pub fn nothing(provider: Provider) -> Self {
        Self { provider, overlays: Vec::new(), pools: BTreeMap::new() }
    }

    /// The types of a pool with corrected prices and capacities; the very same list if nothing changes. Nothing
    /// if the pool took no part in the evaluation, so that it is not known what it can choose from.
    ///
    /// Types that were not there at the evaluation are corrected like all others.
    pub fn apply(&self, pool: &str, types: &Arc<[InstanceType]>) -> Option<Arc<[InstanceType]>> {
        let selectors = self.pools.get(pool)?;
        if self.overlays.is_empty() || types.is_empty() {
            return Some(Arc::clone(types));
        }
        let sets = label_sets(self.provider, types.iter());
        let mut matcher = Matcher::new(&sets);
        let selectors = matcher.requirements(selectors).unwrap_or(SetId::EMPTY);
        let overlays = self.overlays.iter();
        let overlays: Vec<(&Overlay, SetId)> = overlays
            .filter_map(|overlay| Some((overlay, matcher.requirements(&overlay.requirements)?)))
            .collect();
        let compiled = matcher.types(types);
        let mut changed: BTreeMap<usize, InstanceType> = BTreeMap::new();
        for (number, each) in compiled.iter().enumerate() {
            let mut correction = Correction::default();
            for (overlay, asked) in &overlays {
                correction.add(overlay, matcher.offerings(selectors, each, *asked));
            }
            changed.extend(correction.of(&types[number]).map(|corrected| (number, corrected)));
        }
        if changed.is_empty() {
            return Some(Arc::clone(types));
        }
        let all = types.iter().enumerate();
        Some(all.map(|(number, each)| changed.remove(&number).unwrap_or_else(|| each.clone())).collect())
    }

    /// What each pool that took part can choose from if all have the same types before overlays. Pools for which
    /// it comes to the same share a list.
    pub fn apply_to_all(&self, types: &Arc<[InstanceType]>) -> BTreeMap<Box<str>, Arc<[InstanceType]>> {
        let mut all: BTreeMap<Box<str>, Arc<[InstanceType]>> = BTreeMap::new();
        for pool in self.pools.keys() {
            if let Some(applied) = self.apply(pool, types) {
                let applied = share(all.values(), applied);
                all.insert(pool.clone(), applied);
            }
        }
        all
    }
}

/// One of the known lists if it says the same, so that what is derived from it is derived once.
pub fn share<'a>(
    known: impl IntoIterator<Item = &'a Arc<[InstanceType]>>,
    list: Arc<[InstanceType]>,
) -> Arc<[InstanceType]> {
    let same = known.into_iter().find(|known| Arc::ptr_eq(known, &list) || ***known == *list);
    same.map(Arc::clone).unwrap_or(list)
}

/// What overlays change about one type: of several, the first counts.
#[derive(Default)]
struct Correction {
    prices: BTreeMap<usize, Price>,
    capacity: Resources,
}

impl Correction {
    fn add(&mut self, overlay: &Overlay, offerings: Vec<usize>) {
        if offerings.is_empty() {
            return;
        }
        for (name, amount) in &overlay.capacity {
            if self.capacity.get(name.as_str()).is_none() {
                self.capacity.set(name.clone(), *amount);
            }
        }
        let Some(price) = overlay.price else { return };
        for offering in offerings {
            self.prices.entry(offering).or_insert(price);
        }
    }

    /// The corrected type, if anything changes. What an offering says otherwise about itself stays.
    fn of(self, each: &InstanceType) -> Option<InstanceType> {
        if self.prices.is_empty() && self.capacity.is_empty() {
            return None;
        }
        let mut corrected = each.clone();
        corrected.overlaid.price |= !self.prices.is_empty();
        corrected.overlaid.capacity |= !self.capacity.is_empty();
        for (offering, price) in self.prices {
            let offering = &mut corrected.offerings[offering];
            offering.price = price.of(offering.price);
        }
        for (name, amount) in &self.capacity {
            corrected.capacity.set(name.clone(), *amount);
        }
        Some(corrected)
    }
}

#[cfg(test)]
mod tests;

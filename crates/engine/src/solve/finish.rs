//! The plan: what to launch, what goes where, and what stays pending.

use std::sync::Arc;

use crate::mask::Mask;
use crate::model::{CatalogueId, PodId, PoolId};
use crate::options::MinValues;
use crate::requirement::Requirement;
use crate::resources::Amounts;
use crate::solve::claim::Claim;
use crate::solve::failure::{Failure, PoolFailure, Scarce};
use crate::solve::{Core, Place, Solver, min_values};
use crate::universe::{FastMap, SetId, Undefined, Universe};

/// A claim never names more types than this.
pub(super) const MAX_TYPES: usize = 600;

/// What to launch, what goes where, and what stays pending.
#[derive(Debug)]
pub struct Plan {
    /// The claims to create.
    pub claims: Vec<PlannedClaim>,
    /// Where each pod goes.
    pub places: Vec<Option<Place>>,
    /// Why a pod stays pending.
    pub failures: Vec<Option<Arc<Failure>>>,
    /// Pools that nothing can be launched for, whatever pods ask for.
    pub unusable: Vec<Unusable>,
    /// Requirements that the plan speaks of.
    pub universe: Universe,
}

/// A pool that nothing can be launched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The pool.
    pub pool: PoolId,
    /// Labels of which it demands more choice than there is, if there would be types otherwise.
    pub min_values: Vec<Scarce>,
}

/// A node to be launched.
#[derive(Clone, Debug)]
pub struct PlannedClaim {
    /// Its pool.
    pub pool: PoolId,
    /// What it must be.
    pub requirements: SetId,
    /// Types it can become, the cheapest first, by their place in the pool's catalogue.
    pub types: Vec<usize>,
    /// The cheapest offering: its type and place, by which the price is known.
    pub cheapest: Option<(usize, usize)>,
    /// The price per hour of the cheapest offering.
    pub price: f64,
    /// What it must have, DaemonSets included.
    pub requests: Amounts,
    /// What it may take of the limits of its pool, whatever the cloud chooses; nothing if the pool has none.
    pub most: Amounts,
    /// Whether the pool's demand for choice was lowered.
    pub min_values_relaxed: bool,
    /// Whether it holds places in reservations, to which it is bound then.
    pub reserved: bool,
    /// Whether it has no room for another pod, not even for one that asks for the least that any waiting pod asks for.
    pub full: bool,
    /// Its pods, in the order in which they were placed.
    pub pods: Vec<PodId>,
}

/// Types of a catalogue by price for some requirements.
#[derive(Clone)]
pub(super) struct PriceList {
    /// Types with an offering that can be launched, the cheapest first.
    pub(super) offers: Vec<Offer>,
}

/// A type that can be had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// The price of its cheapest offering.
    pub(super) price: f64,
    pub(super) type_: usize,
    /// The cheapest offering.
    pub(super) offering: usize,
    /// What it costs at most: clouds choose what is reserved first, then spot.
    pub(super) worst: f64,
}

/// Lists that were made already, by catalogue and requirements.
pub(super) type Prices = FastMap<(u16, SetId), PriceList>;

impl Solver<'_> {
    pub(super) fn finish(mut self) -> Plan {
        let mut claims = std::mem::take(&mut self.claims);
        let mut prices = Prices::default();
        // Before limits take types away: whatever comes later is placed anew, with the limits of then.
        let least = self.least_requests();
        let full: Vec<bool> = claims.iter().map(|claim| !claim.may_take(&least)).collect();
        self.name_types(&mut claims, &mut prices);
        let mut planned: Vec<PlannedClaim> = Vec::with_capacity(claims.len());
        for (claim, full) in claims.into_iter().zip(full) {
            let pods = claim.pods.clone();
            let pool = claim.pool;
            let place =
                Some(Place::Claim(u32::try_from(planned.len()).expect("fewer than four billion claims")));
            match self.planned(claim, &mut prices) {
                Ok(claim) => {
                    for pod in &pods {
                        self.places[pod.index()] = place;
                    }
                    planned.push(PlannedClaim { full, ..claim });
                }
                Err(scarce) => {
                    let failure = Arc::new(Failure::Pools(vec![(pool, PoolFailure::Truncated(scarce))]));
                    for pod in pods {
                        self.places[pod.index()] = None;
                        self.failures[pod.index()] = Some(Arc::clone(&failure));
                    }
                }
            }
        }
        Plan {
            claims: planned,
            places: self.places,
            failures: self.failures,
            unusable: self.unusable,
            universe: self.core.world.universe,
        }
    }

    /// The least that any waiting pod asks for of each resource.
    fn least_requests(&self) -> Amounts {
        let snapshot = self.core.world.snapshot;
        let waiting = snapshot.pods.iter().filter(|pod| pod.runs.is_none());
        let mut requests = waiting.map(|pod| &snapshot.classes[pod.class.index()].requests);
        let Some(first) = requests.next() else { return Amounts::default() };
        let mut least = first.clone();
        requests.for_each(|requests| least.lower_to(requests));
        least
    }

    /// A claim with its types by price, or the labels of which too few values are left among the cheapest types.
    pub(super) fn planned(&mut self, claim: Claim, prices: &mut Prices) -> Result<PlannedClaim, Vec<Scarce>> {
        let requirements = self.with_reservations(&claim);
        let list = self.prices_for(claim.catalogue, requirements, prices);
        let compiled = &self.core.compiled[claim.catalogue.index()];
        let mut has_type = vec![false; compiled.types().len()];
        claim.rows.iter().for_each(|row| has_type[compiled.row_type(row)] = true);
        let offers: Vec<Offer> = list.offers.iter().filter(|offer| has_type[offer.type_]).copied().collect();
        let cheapest = offers.first().copied();
        let mut types: Vec<usize> = offers.iter().map(|offer| offer.type_).collect();
        // A claim that is bound to its reservations keeps the types that have none of them: `minValues` counts them.
        for type_ in &types {
            has_type[*type_] = false;
        }
        let key = self.core.world.snapshot.keys.instance_type;
        let names = self.core.world.universe.values(key);
        let name = |type_: &usize| names.name(compiled.types()[*type_].name);
        let mut unpriced: Vec<usize> = (0..has_type.len()).filter(|type_| has_type[*type_]).collect();
        unpriced.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        types.extend(unpriced);
        let is_truncated = types.len() > MAX_TYPES;
        types.truncate(MAX_TYPES);
        if is_truncated && self.core.options.min_values == MinValues::Strict {
            let mut rows = Mask::empty(compiled.row_count());
            for type_ in &types {
                rows.insert(*type_);
            }
            let unmet = min_values::unmet(requirements, &rows, compiled, &self.core.world.universe);
            if !unmet.is_empty() {
                return Err(min_values::scarce(requirements, &unmet, &self.core.world.universe));
            }
        }
        let mut requests = claim.requests.clone();
        requests.add(&least_overhead(&claim));
        Ok(PlannedClaim {
            pool: claim.pool,
            requirements,
            most: claim.most_of(&types),
            types,
            cheapest: cheapest.map(|offer| (offer.type_, offer.offering)),
            price: cheapest.map_or(f64::MAX, |offer| offer.price),
            requests,
            min_values_relaxed: claim.min_values_relaxed || self.lowered(&claim),
            reserved: !claim.reservations.is_empty(),
            full: false,
            pods: claim.pods,
        })
    }

    /// Whether the claim demands less choice than its pool.
    fn lowered(&self, claim: &Claim) -> bool {
        let universe = &self.core.world.universe;
        let pool = self.core.world.snapshot.pools[claim.pool.index()].requirements;
        universe.entries(pool).iter().any(|(key, id)| {
            let now = universe.find(claim.requirements, *key).and_then(|id| universe.get(id).min_values());
            universe.get(*id).min_values() > now
        })
    }

    /// A claim that holds reservations is bound to them.
    pub(super) fn with_reservations(&mut self, claim: &Claim) -> SetId {
        let snapshot = self.core.world.snapshot;
        let Some(key) = snapshot.keys.reservation.filter(|_| !claim.reservations.is_empty()) else {
            return claim.requirements;
        };
        let universe = &mut self.core.world.universe;
        let reserved = universe.value(snapshot.keys.capacity_type, "reserved");
        let set = universe.replaced(
            claim.requirements,
            snapshot.keys.capacity_type,
            Requirement::within([reserved]),
        );
        let held: Vec<_> = claim
            .reservations
            .iter()
            .map(|id| universe.value(key, snapshot.reservations.resolve(id.0)))
            .collect();
        let held = universe.set([(key, Requirement::within(held))]);
        universe.intersect(set, held)
    }

    /// What types cost that meet some requirements.
    pub(super) fn prices_for<'p>(
        &mut self,
        catalogue: CatalogueId,
        requirements: SetId,
        prices: &'p mut Prices,
    ) -> &'p PriceList {
        prices.entry((catalogue.0, requirements)).or_insert_with(|| self.price_list(catalogue, requirements))
    }

    fn price_list(&mut self, catalogue: CatalogueId, requirements: SetId) -> PriceList {
        let Core { compiled, world, .. } = &mut self.core;
        let (compiled, universe) = (&compiled[catalogue.index()], &mut world.universe);
        let kind = world.snapshot.keys.capacity_type;
        let [reserved, spot] = ["reserved", "spot"].map(|name| universe.value(kind, name));
        let mut offers = Vec::new();
        for (type_, it) in compiled.types().iter().enumerate() {
            let mut best: Option<(f64, usize)> = None;
            // The dearest reserved, spot and other offering.
            let mut worst: [Option<f64>; 3] = [None; 3];
            for (position, offering) in it.offerings.iter().enumerate() {
                let launchable = offering.available && offering.reservation.is_none_or(|(_, left)| left > 0);
                if !launchable
                    || !universe.is_compatible(requirements, offering.requirements, Undefined::WellKnown)
                {
                    continue;
                }
                if best.is_none_or(|(price, _)| offering.price < price) {
                    best = Some((offering.price, position));
                }
                let id = universe.find(offering.requirements, kind);
                let value = id.and_then(|id| universe.get(id).single());
                let rank = [Some(reserved), Some(spot)].iter().position(|known| *known == value).unwrap_or(2);
                worst[rank] = Some(worst[rank].map_or(offering.price, |price| price.max(offering.price)));
            }
            let worst = worst.into_iter().flatten().next();
            offers.extend(best.zip(worst).map(|((price, offering), worst)| Offer {
                price,
                type_,
                offering,
                worst,
            }));
        }
        let key = world.snapshot.keys.instance_type;
        let name = |offer: &Offer| universe.values(key).name(compiled.types()[offer.type_].name);
        offers.sort_by(|a, b| a.price.total_cmp(&b.price).then_with(|| name(a).cmp(name(b))));
        PriceList { offers }
    }
}

/// What DaemonSets take at least on any type that is left.
fn least_overhead(claim: &Claim) -> Amounts {
    let mut groups = claim.daemons.iter().filter(|group| group.rows.intersects(&claim.rows));
    let Some(first) = groups.next() else { return Amounts::default() };
    let mut least = first.overhead.clone();
    groups.for_each(|group| least.lower_to(&group.overhead));
    least
}

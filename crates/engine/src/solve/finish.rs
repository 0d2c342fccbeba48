//! The plan: what to launch, what goes where, and what stays pending.

use std::sync::Arc;

use crate::mask::Mask;
use crate::model::{PodId, PoolId};
use crate::requirement::Requirement;
use crate::resources::Amounts;
use crate::solve::claim::Claim;
use crate::solve::failure::Failure;
use crate::solve::{Place, Solver, min_values};
use crate::universe::{FastMap, SetId, Undefined, Universe};

/// A claim never names more types than this.
pub const MAX_TYPES: usize = 600;

/// What to launch, what goes where, and what stays pending.
#[derive(Debug)]
pub struct Plan {
    /// The claims to create.
    pub claims: Vec<PlannedClaim>,
    /// Where each pod goes.
    pub places: Vec<Option<Place>>,
    /// Why a pod stays pending.
    pub failures: Vec<Option<Arc<Failure>>>,
    /// Requirements that the plan speaks of.
    pub universe: Universe,
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
    /// Whether the pool's demand for choice was lowered.
    pub min_values_relaxed: bool,
    /// Its pods, in the order in which they were placed.
    pub pods: Vec<PodId>,
}

/// Types of a catalogue by price for some requirements.
struct PriceList {
    /// Types with an offering that can be launched, the cheapest first: price, type, offering.
    offers: Vec<(f64, usize, usize)>,
}

impl Solver<'_> {
    pub(super) fn finish(mut self) -> Plan {
        let claims = std::mem::take(&mut self.claims);
        let mut prices: FastMap<(u16, SetId), PriceList> = FastMap::default();
        let mut planned = Vec::with_capacity(claims.len());
        for claim in claims {
            planned.push(self.planned(claim, &mut prices));
        }
        Plan { claims: planned, places: self.places, failures: self.failures, universe: self.world.universe }
    }

    fn planned(&mut self, claim: Claim, prices: &mut FastMap<(u16, SetId), PriceList>) -> PlannedClaim {
        let requirements = self.with_reservations(&claim);
        let list = prices
            .entry((claim.catalogue.0, requirements))
            .or_insert_with(|| self.price_list(claim.catalogue.index(), requirements));
        let compiled = &self.compiled[claim.catalogue.index()];
        let mut has_type = vec![false; compiled.types().len()];
        claim.rows.iter().for_each(|row| has_type[compiled.row_type(row)] = true);
        let mut offers = list.offers.iter().filter(|(_, type_, _)| has_type[*type_]);
        let first = offers.next().copied();
        let types: Vec<usize> =
            first.iter().chain(offers).map(|(_, type_, _)| *type_).take(MAX_TYPES).collect();
        let mut requests = claim.requests.clone();
        let least = least_overhead(&claim);
        requests.add(&least);
        let relaxed = claim.min_values_relaxed || self.lowered(&claim);
        PlannedClaim {
            pool: claim.pool,
            requirements,
            types,
            cheapest: first.map(|(_, type_, offering)| (type_, offering)),
            price: first.map_or(f64::MAX, |(price, ..)| price),
            requests,
            min_values_relaxed: relaxed,
            pods: claim.pods,
        }
    }

    /// Whether the claim demands less choice than its pool.
    fn lowered(&self, claim: &Claim) -> bool {
        let universe = &self.world.universe;
        let pool = self.world.snapshot.pools[claim.pool.index()].requirements;
        universe.entries(pool).iter().any(|(key, id)| {
            let now = universe.find(claim.requirements, *key).and_then(|id| universe.get(id).min_values());
            universe.get(*id).min_values() > now
        })
    }

    /// A claim that holds reservations is bound to them.
    fn with_reservations(&mut self, claim: &Claim) -> SetId {
        let snapshot = self.world.snapshot;
        let Some(key) = snapshot.keys.reservation.filter(|_| !claim.reservations.is_empty()) else {
            return claim.requirements;
        };
        let universe = &mut self.world.universe;
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

    fn price_list(&mut self, catalogue: usize, requirements: SetId) -> PriceList {
        let (compiled, universe) = (&self.compiled[catalogue], &mut self.world.universe);
        let mut offers = Vec::new();
        for (type_, it) in compiled.types().iter().enumerate() {
            let mut best: Option<(f64, usize)> = None;
            for (position, offering) in it.offerings.iter().enumerate() {
                let launchable = offering.available && offering.reservation.is_none_or(|(_, left)| left > 0);
                if launchable
                    && best.is_none_or(|(price, _)| offering.price < price)
                    && universe.is_compatible(requirements, offering.requirements, Undefined::WellKnown)
                {
                    best = Some((offering.price, position));
                }
            }
            offers.extend(best.map(|(price, position)| (price, type_, position)));
        }
        let key = self.world.snapshot.keys.instance_type;
        let name = |type_: usize| universe.values(key).name(compiled.types()[type_].name);
        offers.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| name(a.1).cmp(name(b.1))));
        PriceList { offers }
    }

    /// Whether a claim still has enough choice after the most expensive types were cut off.
    #[expect(dead_code, reason = "used by the truncation check")]
    fn keeps_choice(&self, claim: &Claim, rows: &Mask) -> bool {
        let compiled = &self.compiled[claim.catalogue.index()];
        min_values::unmet(claim.requirements, rows, compiled, &self.world.universe).is_empty()
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

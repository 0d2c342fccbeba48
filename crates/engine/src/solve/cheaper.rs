//! Whether a new node is certain to cost less than the nodes it replaces, whatever the cloud chooses.

use crate::intern::{KeyId, ValueId};
use crate::mask::Mask;
use crate::model::CatalogueId;
use crate::requirement::Requirement;
use crate::solve::finish::Prices;
use crate::solve::{PlannedClaim, Simulation, Solver, min_values};
use crate::universe::SetId;

/// From so many cheaper types one is chosen when a spot node replaces a spot node, so that it does not end up where
/// capacity is about to run out.
const SPOT_CHOICE: usize = 15;

/// What a new node must be cheaper than.
#[derive(Clone, Copy, Debug)]
pub struct Bargain<'q> {
    /// What the nodes cost now, together.
    pub than: f64,
    /// Whether they are all spot nodes.
    pub all_spot: bool,
    /// Whether spot nodes may replace spot nodes.
    pub spot_to_spot: bool,
    /// Whether it is one node that is replaced.
    pub one_node: bool,
    /// Types of the nodes, each with the lowest price of a node of it, where several nodes become one: none is
    /// removed only to be bought again.
    pub rivals: &'q [(ValueId, f64)],
}

/// Why a new node is not certain to be cheaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dear {
    /// Spot nodes do not replace spot nodes.
    SpotToSpotOff,
    /// Too few values of some labels are left.
    MinValues(Vec<KeyId>),
    /// No type is cheaper.
    Nothing,
    /// Only so many cheaper types, which is too few for a spot node.
    FewSpot(usize),
}

impl Simulation<'_> {
    /// A claim with the types only that are certain to be cheaper.
    pub fn cheaper(&mut self, claim: PlannedClaim, bargain: &Bargain<'_>) -> Result<PlannedClaim, Dear> {
        let Self { solver, prices, .. } = self;
        solver.cheaper(claim, bargain, prices)
    }
}

impl Solver<'_> {
    fn cheaper(
        &mut self,
        mut claim: PlannedClaim,
        bargain: &Bargain<'_>,
        prices: &mut Prices,
    ) -> Result<PlannedClaim, Dear> {
        let Some(catalogue) = self.core.world.snapshot.pools[claim.pool.index()].catalogue else {
            return Err(Dear::Nothing);
        };
        if !claim.reserved && !self.core.reservations.is_empty() {
            // Whatever is left of reservations is held by others.
            claim.requirements = self.unreserved(claim.requirements);
        }
        let [spot, on_demand] = ["spot", "on-demand"].map(|name| self.admits(claim.requirements, name));
        let spot_to_spot = bargain.all_spot && spot;
        if spot_to_spot {
            if !bargain.spot_to_spot {
                return Err(Dear::SpotToSpotOff);
            }
            claim.requirements = self.pinned(claim.requirements, "spot");
        }
        self.keep_below(&mut claim, catalogue, bargain.than, prices)?;
        if spot && on_demand && !spot_to_spot {
            self.pin(&mut claim, catalogue, bargain.than, prices)?;
        }
        self.keep_rivals_below(&mut claim, catalogue, bargain, prices)?;
        if spot_to_spot && bargain.one_node {
            let found = claim.types.len();
            if found < SPOT_CHOICE {
                return Err(Dear::FewSpot(found));
            }
            // No types at all have nothing that could be unmet.
            let needed = (1..=found)
                .find(|count| self.unmet(claim.requirements, catalogue, &claim.types[..*count]).is_empty());
            claim.types.truncate(needed.unwrap_or(found).max(SPOT_CHOICE));
        }
        Ok(claim)
    }

    /// Keeps the types that cost less than something even where they cost most; the claim gets their prices.
    fn keep_below(
        &mut self,
        claim: &mut PlannedClaim,
        catalogue: CatalogueId,
        than: f64,
        prices: &mut Prices,
    ) -> Result<(), Dear> {
        let list = self.prices_for(catalogue, claim.requirements, prices);
        let mut is_left = vec![false; self.core.compiled[catalogue.index()].types().len()];
        claim.types.iter().for_each(|type_| is_left[*type_] = true);
        let offers = list.offers.iter().filter(|offer| is_left[offer.type_] && offer.worst < than);
        let mut cheapest = None;
        claim.types.clear();
        for offer in offers {
            cheapest = cheapest.or(Some(offer));
            claim.types.push(offer.type_);
        }
        let Some(cheapest) = cheapest else { return Err(Dear::Nothing) };
        (claim.cheapest, claim.price) = (Some((cheapest.type_, cheapest.offering)), cheapest.price);
        let unmet = self.unmet(claim.requirements, catalogue, &claim.types);
        if unmet.is_empty() { Ok(()) } else { Err(Dear::MinValues(unmet)) }
    }

    /// Binds a claim to spot, because that is what its price was compared for: something dearer must not be bought
    /// when spot cannot be had. If no type has spot, it is bound to what there is.
    fn pin(
        &mut self,
        claim: &mut PlannedClaim,
        catalogue: CatalogueId,
        than: f64,
        prices: &mut Prices,
    ) -> Result<(), Dear> {
        let whole = claim.clone();
        for capacity_type in ["spot", "on-demand"] {
            claim.clone_from(&whole);
            claim.requirements = self.pinned(whole.requirements, capacity_type);
            match self.keep_below(claim, catalogue, than, prices) {
                Err(Dear::Nothing) => {}
                done => return done,
            }
        }
        Err(Dear::Nothing)
    }

    /// Where several nodes become one of a type that they have, it must cost less than the cheapest of that type.
    fn keep_rivals_below(
        &mut self,
        claim: &mut PlannedClaim,
        catalogue: CatalogueId,
        bargain: &Bargain<'_>,
        prices: &mut Prices,
    ) -> Result<(), Dear> {
        let types = self.core.compiled[catalogue.index()].types();
        let own = |type_: &usize| {
            let name = types[*type_].name;
            bargain.rivals.iter().find(|(rival, _)| *rival == name).map(|(_, price)| *price)
        };
        let least = claim.types.iter().filter_map(own).fold(f64::INFINITY, f64::min);
        if least == f64::INFINITY {
            return Ok(());
        }
        self.keep_below(claim, catalogue, least, prices)
    }

    fn unmet(&self, set: SetId, catalogue: CatalogueId, types: &[usize]) -> Vec<KeyId> {
        let compiled = &self.core.compiled[catalogue.index()];
        let mut rows = Mask::empty(compiled.row_count());
        for type_ in types {
            rows.insert(*type_);
        }
        let unmet = min_values::unmet(set, &rows, compiled, &self.core.world.universe);
        unmet.into_iter().map(|(key, _)| key).collect()
    }

    fn admits(&mut self, set: SetId, capacity_type: &str) -> bool {
        let key = self.core.world.snapshot.keys.capacity_type;
        let universe = &mut self.core.world.universe;
        let value = universe.value(key, capacity_type);
        universe.find(set, key).is_none_or(|id| universe.get(id).has(value, universe.values(key)))
    }

    fn unreserved(&mut self, set: SetId) -> SetId {
        let key = self.core.world.snapshot.keys.capacity_type;
        let universe = &mut self.core.world.universe;
        let value = universe.value(key, "reserved");
        let others = universe.set([(key, Requirement::not_in([value]))]);
        universe.intersect(set, others)
    }

    fn pinned(&mut self, set: SetId, capacity_type: &str) -> SetId {
        let key = self.core.world.snapshot.keys.capacity_type;
        let universe = &mut self.core.world.universe;
        let value = universe.value(key, capacity_type);
        let only = universe.set([(key, Requirement::within([value]))]);
        universe.intersect(set, only)
    }
}

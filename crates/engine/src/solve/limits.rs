//! NodePool limits within a round: what each claim counts with, and which instance types it names in the end.
//!
//! Which of its types a claim becomes is the cloud's choice, so that a limit holds only if the largest types that all
//! claims of the round name stay below it together. Claims that named every type that fits would use it up with the
//! first of them. So it goes in two steps:
//!
//! 1. While pods are placed, a claim counts with the smallest type that takes its pods; where `minValues` is strict,
//!    with as many of the smallest as it demands. It takes a pod, and a pool makes another claim, only if that keeps
//!    the limit.
//! 2. When all pods are placed, each claim counts with its cheapest type, too, as long as there is room. What is left
//!    then is divided evenly among the claims of the pool; a claim names the types that are no larger than what it
//!    counts with and its part.
//!
//! What a claim counts with never becomes less in a round, so what was refused for a limit stays refused. Where it was
//! refused only for the choice that `minValues` demands of other claims, there may be room once the cloud has chosen.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::compiled::Compiled;
use crate::intern::ResourceId;
use crate::mask::Mask;
use crate::model::{Pool, PoolId, Snapshot};
use crate::options::MinValues;
use crate::resources::Amounts;
use crate::solve::claim::Claim;
use crate::solve::failure::{LimitShortage, PoolFailure};
use crate::solve::finish::Prices;
use crate::solve::{PlannedClaim, Solver, min_values};
use crate::universe::{FastMap, Undefined};

/// One node, in the units of amounts.
const ONE_NODE: i64 = 1000;

/// What a pool may still have of each resource that it limits; empty if it limits none.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// With every claim as large as it counts.
    left: Left,
    /// How much more if claims become the smallest type that they name, which only the cloud knows.
    spare: Amounts,
}

type Left = Vec<(ResourceId, i64)>;

impl Room {
    pub(super) fn of_pools(snapshot: &Snapshot) -> Vec<Self> {
        let of_pool = |pool: &Pool| Self {
            left: pool.limits.iter().map(|limit| (limit.resource, limit.remaining)).collect(),
            spare: Amounts::default(),
        };
        snapshot.pools.iter().map(of_pool).collect()
    }

    fn take(&mut self, amounts: &Amounts) {
        for (resource, left) in &mut self.left {
            *left = left.saturating_sub(amounts.get(*resource));
        }
    }

    pub(super) fn give_back(&mut self, amounts: &Amounts) {
        for (resource, left) in &mut self.left {
            *left = left.saturating_add(amounts.get(*resource));
        }
    }
}

/// What a claim takes of the limits of its pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    amounts: Amounts,
    /// How much less it would be for the smallest type.
    spare: Amounts,
}

/// The types of a pool with limits, by size.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// What a node of the type may take of limits, by type. Claims name types, so that types of one name count alike.
    most: Vec<Amounts>,
    /// The types that the pool can use, smallest first: the size of a type is the largest part that it takes of what
    /// is left of any limit.
    ascending: Vec<usize>,
}

impl Sizes {
    /// The sizes of the types at some rows; nothing if the pool has no limits.
    pub(super) fn new(pool: &Pool, rows: &Mask, compiled: &Compiled) -> Option<Arc<Self>> {
        if pool.limits.is_empty() {
            return None;
        }
        let types = compiled.types();
        let mut ascending = compiled.types_of(rows);
        let mut by_name = FastMap::<_, Amounts>::default();
        for it in ascending.iter().map(|type_| &types[*type_]) {
            let most = by_name.entry(it.name).or_default();
            most.raise_to(&it.capacity);
            let overrides = it.offerings.iter().filter(|offering| offering.available);
            for (resource, amount) in overrides.flat_map(|offering| &offering.capacity_override) {
                most.set(*resource, most.get(*resource).max(*amount));
            }
        }
        let most: Vec<Amounts> =
            types.iter().map(|it| by_name.get(&it.name).cloned().unwrap_or_default()).collect();
        ascending.sort_by(|a, b| by_size(pool, &most[*a], &most[*b]).then(a.cmp(b)));
        Some(Arc::new(Self { most, ascending }))
    }

    /// The most that any of some types may take.
    pub(super) fn largest(&self, types: impl Iterator<Item = usize>) -> Amounts {
        let mut largest = Amounts::default();
        types.for_each(|type_| largest.raise_to(&self.most[type_]));
        largest
    }
}

/// The type whose largest part of a limit is smaller comes first, then the one whose parts are smaller in all.
#[expect(clippy::cast_precision_loss, reason = "parts are compared, not added up to anything")]
fn by_size(pool: &Pool, a: &Amounts, b: &Amounts) -> Ordering {
    let part = |amounts: &Amounts, resource, of: i64| match amounts.get(resource) {
        0 => 0.0,
        amount if of > 0 => amount as f64 / of as f64,
        _ => f64::INFINITY,
    };
    let size = |amounts: &Amounts| {
        let parts = || pool.limits.iter().map(|limit| part(amounts, limit.resource, limit.remaining));
        (parts().fold(0.0, f64::max), parts().sum::<f64>())
    };
    let ((a, sum_a), (b, sum_b)) = (size(a), size(b));
    a.total_cmp(&b).then(sum_a.total_cmp(&sum_b))
}

/// Whether there is room for amounts where something is left and something counts already.
fn has_room(left: &Left, counted: &Amounts, amounts: &Amounts) -> bool {
    left.iter().all(|(resource, left)| amounts.get(*resource) <= left.saturating_add(counted.get(*resource)))
}

/// Drops the types that there is no room for.
fn drop_too_large(left: &Left, counted: &Amounts, sizes: &Sizes, rows: &mut Mask, compiled: &Compiled) {
    let is_too_large = |row: &usize| !has_room(left, counted, &sizes.most[compiled.row_type(*row)]);
    let too_large: Vec<usize> = rows.iter().filter(is_too_large).collect();
    for row in too_large {
        rows.remove(row);
    }
}

impl Solver<'_> {
    /// Leaves a new claim the types that its pool has room for. `later` counts on what claims of the round may leave.
    pub(super) fn begin_within_limits(&self, claim: &mut Claim, later: bool) -> Result<(), Box<PoolFailure>> {
        let Some(sizes) = &claim.sizes else { return Ok(()) };
        let Room { left, spare } = &self.limits[claim.pool.index()];
        let is_short =
            |(resource, left): &&(ResourceId, i64)| *resource == ResourceId::NODES && *left < ONE_NODE;
        if let Some((resource, left)) = left.iter().find(is_short).copied() {
            let shortage = LimitShortage { resource, left, needed: ONE_NODE };
            return Err(Box::new(PoolFailure::NodeLimit(shortage)));
        }
        let none = Amounts::default();
        let compiled = &self.core.compiled[claim.catalogue.index()];
        drop_too_large(left, if later { spare } else { &none }, sizes, &mut claim.rows, compiled);
        if claim.rows.is_empty() { Err(Box::new(PoolFailure::Limits(Vec::new()))) } else { Ok(()) }
    }

    /// What is missing of limits for the smallest node that a claim could become if there were none.
    pub(super) fn limit_shortages(&self, claim: &Claim) -> Vec<LimitShortage> {
        let Some(sizes) = &claim.sizes else { return Vec::new() };
        let (needed, _) = self.smallest(claim, sizes);
        let left = self.limits[claim.pool.index()].left.iter();
        let left = left.map(|(resource, left)| LimitShortage {
            resource: *resource,
            left: *left,
            needed: needed.get(*resource),
        });
        left.filter(|shortage| shortage.needed > shortage.left).collect()
    }

    /// Drops the types from a claim that there is no room for any more, because others have grown.
    pub(super) fn keep_within_limits(&mut self, index: usize) {
        let claim = &self.claims[index];
        let Some(sizes) = &claim.sizes else { return };
        let (left, counted) = (&self.limits[claim.pool.index()].left, &claim.counted.amounts);
        if has_room(left, counted, &claim.most) {
            return;
        }
        let compiled = &self.core.compiled[claim.catalogue.index()];
        let mut rows = claim.rows.clone();
        drop_too_large(left, counted, sizes, &mut rows, compiled);
        self.claims[index].set_rows(rows, compiled);
    }

    /// Lets a claim count with the smallest of its types.
    pub(super) fn count(&mut self, index: usize) {
        let claim = &self.claims[index];
        let Some(sizes) = &claim.sizes else { return };
        let (mut amounts, least) = self.smallest(claim, sizes);
        amounts.raise_to(&claim.counted.amounts);
        amounts.set(ResourceId::NODES, ONE_NODE);
        let mut spare = amounts.clone();
        spare.subtract(&least);
        spare.set(ResourceId::NODES, 0);
        let room = &mut self.limits[claim.pool.index()];
        room.give_back(&claim.counted.amounts);
        room.take(&amounts);
        room.spare.subtract(&claim.counted.spare);
        room.spare.add(&spare);
        self.claims[index].counted = Counted { amounts, spare };
    }

    /// As many of the smallest types of a claim as there must be to choose from, together, and the smallest alone. A
    /// claim that holds reservations becomes a type that has one.
    fn smallest(&self, claim: &Claim, sizes: &Sizes) -> (Amounts, Amounts) {
        let (compiled, universe) = (&self.core.compiled[claim.catalogue.index()], &self.core.world.universe);
        let is_left = |type_: &usize| claim.rows.contains(*type_);
        let ascending = || sizes.ascending.iter().copied().filter(is_left);
        let has_reservation = |type_: &usize| {
            compiled.types()[*type_].offerings.iter().any(|offering| {
                offering.available
                    && offering.reservation.is_some_and(|(id, _)| claim.reservations.contains(&id))
                    && universe
                        .incompatibility(claim.requirements, offering.requirements, Undefined::WellKnown)
                        .is_none()
            })
        };
        let types: Vec<usize> = if claim.reservations.is_empty() {
            ascending().collect()
        } else {
            let (with, without): (Vec<usize>, Vec<usize>) = ascending().partition(has_reservation);
            with.into_iter().chain(without).collect()
        };
        // The more types there are, the more of what is demanded they have.
        let is_too_few = |count: &usize| {
            let mut rows = Mask::empty(compiled.row_count());
            types[..*count].iter().for_each(|type_| rows.insert(*type_));
            !min_values::unmet(claim.requirements, &rows, compiled, universe).is_empty()
        };
        let needed = match self.core.options.min_values {
            MinValues::Strict => (1..=types.len()).collect::<Vec<_>>().partition_point(is_too_few) + 1,
            // Pods come before choice.
            MinValues::BestEffort => 1,
        };
        let least = sizes.largest(types.iter().copied().take(1));
        (sizes.largest(types.into_iter().take(needed)), least)
    }

    /// Leaves claims the types that they name in the end. Where a demand for choice is not strict, it is lowered to what
    /// that leaves.
    pub(super) fn name_types(&mut self, claims: &mut [Claim], prices: &mut Prices) {
        for claim in claims.iter_mut().filter(|claim| claim.sizes.is_some()) {
            self.count_cheapest(claim, prices);
        }
        let parts = self.parts(claims);
        for claim in claims.iter_mut() {
            let Some((_, part)) = parts.iter().find(|(pool, _)| *pool == claim.pool) else { continue };
            let Some(sizes) = &claim.sizes else { continue };
            let compiled = &self.core.compiled[claim.catalogue.index()];
            drop_too_large(part, &claim.counted.amounts, sizes, &mut claim.rows, compiled);
            let universe = &mut self.core.world.universe;
            let unmet = min_values::unmet(claim.requirements, &claim.rows, compiled, universe);
            claim.requirements = min_values::lowered(claim.requirements, &unmet, universe);
        }
    }

    /// Lets a claim count with its cheapest type, too, if there is room.
    fn count_cheapest(&mut self, claim: &mut Claim, prices: &mut Prices) {
        let requirements = self.with_reservations(claim);
        let list = self.prices_for(claim.catalogue, requirements, prices);
        let cheapest = list.offers.iter().map(|offer| offer.type_).find(|type_| claim.rows.contains(*type_));
        let (Some(type_), Some(sizes)) = (cheapest, &claim.sizes) else { return };
        let room = &mut self.limits[claim.pool.index()];
        if !has_room(&room.left, &claim.counted.amounts, &sizes.most[type_]) {
            return;
        }
        room.give_back(&claim.counted.amounts);
        claim.counted.amounts.raise_to(&sizes.most[type_]);
        room.take(&claim.counted.amounts);
    }

    /// What is left of limits, divided evenly among claims, by pool.
    fn parts(&self, claims: &[Claim]) -> Vec<(PoolId, Left)> {
        let mut counts: Vec<(PoolId, i64)> = Vec::new();
        for claim in claims.iter().filter(|claim| claim.sizes.is_some()) {
            match counts.iter_mut().find(|(pool, _)| *pool == claim.pool) {
                Some((_, count)) => *count += 1,
                None => counts.push((claim.pool, 1)),
            }
        }
        let part = |(pool, count): (PoolId, i64)| {
            let left = self.limits[pool.index()].left.iter();
            (pool, left.map(|(resource, left)| (*resource, (*left).max(0) / count)).collect())
        };
        counts.into_iter().map(part).collect()
    }

    /// Gives back what the claims from a number on count with, and takes what they may become.
    pub(super) fn settle_limits(&mut self, from: usize, planned: &[PlannedClaim]) {
        for claim in &self.claims[from..] {
            let room = &mut self.limits[claim.pool.index()];
            room.give_back(&claim.counted.amounts);
            room.spare.subtract(&claim.counted.spare);
        }
        for PlannedClaim { pool, most, .. } in planned {
            self.limits[pool.index()].take(most);
        }
    }
}

impl Claim {
    /// What a claim that names some types may take of limits; nothing if its pool has none.
    pub(super) fn most_of(&self, types: &[usize]) -> Amounts {
        let Some(sizes) = &self.sizes else { return Amounts::default() };
        let mut most = sizes.largest(types.iter().copied());
        most.set(ResourceId::NODES, ONE_NODE);
        most
    }
}

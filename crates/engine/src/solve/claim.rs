//! Placing pods on claims: those already planned in this round, and new ones.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::compiled::Compiled;
use crate::mask::Mask;
use crate::model::{CatalogueId, HostPort, PodClass, PodId, PoolId, ReservationId, TaintsId, Volume};
use crate::options::{MinValues, Reserved};
use crate::resources::Amounts;
use crate::solve::failure::{
    Conflict, Failure, Flags, PoolFailure, TopologyFailure, TypeFailure, VolumeExcess,
};
use crate::solve::limits::{Counted, Sizes};
use crate::solve::template::DaemonGroup;
use crate::solve::variant::Variant;
use crate::solve::{Change, Core, Solver, claim_host, min_values, volume_counts};
use crate::tolerate::untolerated;
use crate::topology::{GroupId, HostId, Target, Unsatisfiable};
use crate::universe::{Incompatible, SetId, Undefined};

/// A node to be launched, as it fills up.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) pool: PoolId,
    pub(crate) catalogue: CatalogueId,
    pub(crate) taints: TaintsId,
    /// Without the host name.
    pub(crate) requirements: SetId,
    pub(crate) min_values_relaxed: bool,
    /// Rows of the types that can still become this node.
    pub(crate) rows: Mask,
    pub(crate) daemons: Arc<[DaemonGroup]>,
    /// What the pods ask for; what DaemonSets take comes on top.
    pub(crate) requests: Amounts,
    /// No type has more than this.
    largest: Amounts,
    /// The types by size, where the pool has limits.
    pub(crate) sizes: Option<Arc<Sizes>>,
    /// What it counts with in the limits of its pool.
    pub(crate) counted: Counted,
    /// No type may take more of limits than this.
    pub(crate) most: Amounts,
    pub(crate) pods: Vec<PodId>,
    ports: Vec<HostPort>,
    volumes: Vec<Volume>,
    pub(crate) reservations: Vec<ReservationId>,
}

impl Claim {
    /// Leaves the claim some types.
    pub(super) fn set_rows(&mut self, rows: Mask, compiled: &Compiled) {
        self.largest = largest(compiled, &rows);
        if let Some(sizes) = &self.sizes {
            self.most = sizes.largest(rows.iter().map(|row| compiled.row_type(row)));
        }
        self.rows = rows;
    }

    /// Whether the largest of its types would have room for more; most claims that are full are told apart by this.
    pub(super) fn may_take(&self, more: &Amounts) -> bool {
        more.iter().all(|(resource, amount)| {
            self.requests.get(resource).saturating_add(amount) <= self.largest.get(resource)
        })
    }
}

/// A claim does not take a pod.
struct Refusal {
    /// Why; only worked out for new claims, whose reasons people see.
    reason: Option<Box<PoolFailure>>,
    /// Whether it never will.
    forever: bool,
}

impl Refusal {
    fn new(explained: bool, forever: bool, reason: impl FnOnce() -> PoolFailure) -> Self {
        Self { reason: explained.then(|| Box::new(reason())), forever }
    }

    fn into_reason(self) -> Box<PoolFailure> {
        self.reason.expect("refusals of new claims are explained")
    }
}

/// A pod on its way to a claim.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    class: &'a PodClass,
    variant: &'a Variant,
    obeyed: &'a [GroupId],
}

impl Solver<'_> {
    /// Places a pod on the claim with the fewest pods that takes it.
    pub(super) fn place_on_claim(
        &mut self,
        class: &PodClass,
        variant: &mut Variant,
        guards: &[GroupId],
        obeyed: &[GroupId],
        pod: PodId,
    ) -> Option<u32> {
        let (on_hosts, elsewhere) = self.core.by_host(class, variant, obeyed);
        let mut glances = Glances::default();
        for position in 0..self.order.len() {
            let index = self.order[position] as usize;
            if variant.is_refused(index) {
                continue;
            }
            self.keep_within_limits(index);
            let claim = &self.claims[index];
            if !roughly_fits(claim, class) {
                variant.refuse(index);
                continue;
            }
            let host = claim_host(self.core.world.snapshot, index);
            if !self.core.topology.allows_host(&on_hosts, host) {
                continue;
            }
            if class.volume_terms.is_empty()
                && !self.core.worth_a_try(&mut glances, claim.requirements, class, variant, &elsewhere)
            {
                continue;
            }
            match self.core.admit(&self.claims[index], index, Candidate { class, variant, obeyed }, false) {
                Ok(change) => {
                    self.commit(index, change, class, guards, pod);
                    self.move_behind(position);
                    return Some(claim_id(index));
                }
                Err(refusal) if refusal.forever => variant.refuse(index),
                Err(_) => {}
            }
        }
        None
    }

    /// Places a pod on a new claim of the first pool that can make one.
    pub(super) fn place_on_new_claim(
        &mut self,
        class: &PodClass,
        variant: &mut Variant,
        guards: &[GroupId],
        obeyed: &[GroupId],
        pod: PodId,
    ) -> Result<u32, Failure> {
        if self.templates.is_empty() {
            return Err(Failure::NoPool);
        }
        let mut failures = Vec::new();
        for template in 0..self.templates.len() {
            let index = self.claims.len();
            let pool = self.templates[template].pool;
            let mut claim = self.new_claim(template);
            let candidate = Candidate { class, variant, obeyed };
            let admitted = self
                .begin_within_limits(&mut claim, false)
                .and_then(|()| self.core.admit(&claim, index, candidate, true).map_err(Refusal::into_reason));
            match admitted {
                Ok(change) => {
                    self.claims.push(claim);
                    self.commit(index, change, class, guards, pod);
                    // The newest goes behind the others that have one pod.
                    let end = self.order.partition_point(|id| self.claims[*id as usize].pods.len() <= 1);
                    let id = claim_id(index);
                    self.order.insert(end, id);
                    return Ok(id);
                }
                Err(reason) => {
                    let reason = self.reason_with_limits(template, index, candidate, *reason);
                    let deferred = reason.is_deferred();
                    failures.push((pool, reason));
                    if deferred {
                        // A pool of lower weight must not be used while a reservation may still be free.
                        break;
                    }
                }
            }
        }
        Err(Failure::Pools(failures))
    }

    /// Restores the order after the claim at a position got a pod: it goes before all that have as many.
    fn move_behind(&mut self, position: usize) {
        let pods = self.claims[self.order[position] as usize].pods.len();
        let rest = &self.order[position + 1..];
        let fewer = rest.partition_point(|id| self.claims[*id as usize].pods.len() < pods);
        self.order[position..=position + fewer].rotate_left(1);
    }

    /// Why a pool makes no node for a pod: because of its limits, if it would make one without them.
    fn reason_with_limits(
        &mut self,
        template: usize,
        index: usize,
        pod: Candidate<'_>,
        reason: PoolFailure,
    ) -> PoolFailure {
        if self.templates[template].sizes.is_none() {
            return reason;
        }
        let mut claim = self.new_claim(template);
        let unlimited = match self.core.admit(&claim, index, pod, true) {
            Ok(change) => change,
            Err(refusal) => return *refusal.into_reason(),
        };
        match self.begin_within_limits(&mut claim, true).map_err(|reason| *reason) {
            Ok(()) if self.core.admit(&claim, index, pod, true).is_ok() => PoolFailure::LimitsUnsettled,
            Err(reason @ PoolFailure::NodeLimit(_)) => reason,
            Ok(()) | Err(_) => {
                let Change { requirements, rows, reservations, .. } = unlimited;
                let claim = Claim { requirements, rows, reservations, ..claim };
                PoolFailure::Limits(self.limit_shortages(&claim))
            }
        }
    }

    /// An empty claim of a template.
    fn new_claim(&self, template: usize) -> Claim {
        let template = &self.templates[template];
        Claim {
            pool: template.pool,
            catalogue: template.catalogue,
            taints: self.core.world.snapshot.pools[template.pool.index()].taints,
            requirements: template.requirements,
            min_values_relaxed: template.min_values_relaxed,
            rows: template.rows.clone(),
            daemons: Arc::clone(&template.daemons),
            requests: Amounts::default(),
            largest: Amounts::default(),
            sizes: template.sizes.as_ref().map(Arc::clone),
            counted: Counted::default(),
            most: Amounts::default(),
            pods: Vec::new(),
            ports: Vec::new(),
            volumes: Vec::new(),
            reservations: Vec::new(),
        }
    }

    fn commit(&mut self, index: usize, change: Change, class: &PodClass, guards: &[GroupId], pod: PodId) {
        let claim = &mut self.claims[index];
        if change.requirements != claim.requirements {
            let keys = |set| self.core.world.universe.entries(set).len();
            self.label_epoch += u32::from(keys(change.requirements) != keys(claim.requirements));
        }
        if change.reservations != claim.reservations {
            self.core.reservations.exchange(&claim.reservations, &change.reservations);
            self.reservation_epoch += 1;
        }
        let has_other_types = change.rows != claim.rows || claim.pods.is_empty();
        let counts_anew = has_other_types
            || change.requirements != claim.requirements
            || change.reservations != claim.reservations;
        if has_other_types {
            claim.set_rows(change.rows, &self.core.compiled[claim.catalogue.index()]);
        }
        claim.requirements = change.requirements;
        claim.requests = change.requests;
        claim.reservations = change.reservations;
        if counts_anew {
            self.count(index);
        }
        let claim = &mut self.claims[index];
        claim.ports.extend(class.ports.iter().cloned());
        claim.volumes.extend(class.volumes.iter().copied());
        claim.pods.push(pod);
        let target = Target {
            host: claim_host(self.core.world.snapshot, index),
            requirements: claim.requirements,
            taints: claim.taints,
        };
        self.core.topology.record(&mut self.core.world, class, guards, target);
    }
}

/// Whether claims with the same requirements are worth a try, for one pod at one moment.
type Glances = SmallVec<[(SetId, bool); 8]>;

impl Core<'_> {
    /// The groups that look at hosts, with whether each selects the pod, and the other groups.
    ///
    /// A pod that asks for a host by name is left to the full check.
    pub(super) fn by_host(
        &self,
        class: &PodClass,
        variant: &Variant,
        obeyed: &[GroupId],
    ) -> (Vec<(GroupId, bool)>, Vec<GroupId>) {
        let snapshot = self.world.snapshot;
        let labels = snapshot.labels.get(class.labels.0);
        let named = self.world.universe.find(variant.strict, snapshot.keys.hostname).is_some();
        let (on_hosts, elsewhere): (Vec<GroupId>, Vec<GroupId>) =
            obeyed.iter().partition(|group| self.topology.group(**group).is_hostname());
        let selects = |group: GroupId| self.topology.group(group).selects(class.namespace, labels);
        let on_hosts = if named { Vec::new() } else { on_hosts };
        (on_hosts.into_iter().map(|group| (group, selects(group))).collect(), elsewhere)
    }

    /// Whether the labels of a claim and the topologies leave any chance.
    fn worth_a_try(
        &mut self,
        glances: &mut Glances,
        requirements: SetId,
        class: &PodClass,
        variant: &Variant,
        obeyed: &[GroupId],
    ) -> bool {
        if let Some((_, known)) = glances.iter().find(|(set, _)| *set == requirements) {
            return *known;
        }
        let universe = &mut self.world.universe;
        let mut worth = universe.is_compatible(requirements, variant.requirements, Undefined::WellKnown);
        if worth && !obeyed.is_empty() {
            let requirements = universe.intersect(requirements, variant.requirements);
            let target = Target { host: HostId::default(), requirements, taints: TaintsId::default() };
            worth = self.topology.allowed(&mut self.world, class, variant.strict, obeyed, target).is_ok_and(
                |added| self.world.universe.is_compatible(requirements, added, Undefined::WellKnown),
            );
        }
        glances.push((requirements, worth));
        worth
    }

    /// What a claim would become with a pod.
    fn admit(
        &mut self,
        claim: &Claim,
        index: usize,
        pod: Candidate<'_>,
        new: bool,
    ) -> Result<Change, Refusal> {
        let Candidate { class, variant, .. } = pod;
        if !self.world.tolerates(variant.tolerations, claim.taints) {
            let taints = self.world.snapshot.taints.get(claim.taints.0);
            let tolerations = self.world.tolerations(variant.tolerations);
            let missing = || PoolFailure::Taints(untolerated(taints, tolerations).cloned().collect());
            return Err(Refusal::new(new, true, missing));
        }
        let mut rows = claim.rows.clone();
        if !class.volumes.is_empty() {
            self.drop_overloaded(&mut rows, claim, class);
            if rows.is_empty() {
                return Err(Refusal::new(new, true, || PoolFailure::VolumeLimit(self.excess(claim, class))));
            }
        }
        // A planned node has no name yet, so a pod that asks for one by name cannot have it.
        let names_host = variant.hostname.is_some_and(|id| self.world.universe.get(id).members().is_some());
        let compatible =
            self.world.universe.is_compatible(claim.requirements, variant.requirements, Undefined::WellKnown);
        if names_host || !compatible {
            let conflict = self.conflict(claim.requirements, variant.requirements);
            // A label that no pool defines may be defined by a pod that excludes some of its values.
            let forever = !matches!(conflict.reason, Incompatible::Undefined(_));
            return Err(Refusal::new(new, forever, || PoolFailure::Requirements(conflict)));
        }
        let requirements = self.world.universe.intersect(claim.requirements, variant.requirements);
        if class.volume_terms.is_empty() {
            return self.admit_with_volumes(claim, index, pod, new, requirements, &rows);
        }
        let mut refusal = None;
        for term in &class.volume_terms {
            if !self.world.universe.is_compatible(requirements, *term, Undefined::WellKnown) {
                let conflict = self.conflict(requirements, *term);
                refusal = Some(Refusal::new(new, false, || PoolFailure::Volumes(conflict)));
                continue;
            }
            let narrowed = self.world.universe.intersect(requirements, *term);
            match self.admit_with_volumes(claim, index, pod, new, narrowed, &rows) {
                Ok(change) => return Ok(change),
                Err(last) => refusal = Some(Refusal { forever: false, ..last }),
            }
        }
        Err(refusal.expect("there is at least one alternative"))
    }

    fn admit_with_volumes(
        &mut self,
        claim: &Claim,
        index: usize,
        pod: Candidate<'_>,
        new: bool,
        requirements: SetId,
        rows: &Mask,
    ) -> Result<Change, Refusal> {
        let Candidate { class, variant, obeyed } = pod;
        let mut narrowed = requirements;
        if !obeyed.is_empty() {
            let host = claim_host(self.world.snapshot, index);
            let target = Target { host, requirements, taints: claim.taints };
            let allowed = self.topology.allowed(&mut self.world, class, variant.strict, obeyed, target);
            let added = allowed.map_err(|failure| {
                Refusal::new(new, false, || PoolFailure::Topology(self.describe(&failure)))
            })?;
            if !self.world.universe.is_compatible(requirements, added, Undefined::WellKnown) {
                let conflict = self.conflict(requirements, added);
                return Err(Refusal::new(new, false, || PoolFailure::TopologyConflict(conflict)));
            }
            narrowed = self.world.universe.intersect(requirements, added);
        }
        // Refusals are final unless a topology rule narrowed the claim.
        let forever = narrowed == requirements;
        let mut requests = claim.requests.clone();
        requests.add(&class.requests);
        let mut left = rows.clone();
        if new || narrowed != claim.requirements {
            let compiled = &mut self.compiled[claim.catalogue.index()];
            left.and(&compiled.matching(narrowed, &mut self.world.universe));
        }
        let fitting = self.fitting(claim, class, &left, &requests);
        if fitting.is_empty() {
            return Err(Refusal::new(new, forever, || {
                PoolFailure::Types(self.type_failure(claim, class, rows, narrowed, &requests))
            }));
        }
        let compiled = &self.compiled[claim.catalogue.index()];
        let mut kept = compiled.whole_types(&fitting);
        kept.and(rows);
        let unmet = min_values::unmet(narrowed, &kept, compiled, &self.world.universe);
        if !unmet.is_empty() {
            if !(new && self.options.min_values == MinValues::BestEffort) {
                let scarce = || min_values::scarce(narrowed, &unmet, &self.world.universe);
                return Err(Refusal::new(new, forever, || PoolFailure::MinValues(scarce())));
            }
            narrowed = min_values::lowered(narrowed, &unmet, &mut self.world.universe);
        }
        let reservations = if self.reservations.is_empty() || self.options.reserved == Reserved::Off {
            Vec::new()
        } else {
            let (compiled, universe) = (&self.compiled[claim.catalogue.index()], &mut self.world.universe);
            self.reservations
                .holdable(self.options.reserved, &claim.reservations, narrowed, &kept, compiled, universe)
                .map_err(|failure| Refusal::new(new, false, || PoolFailure::Reserved(failure)))?
        };
        Ok(Change { requirements: narrowed, rows: kept, reservations, requests })
    }

    /// The rows that have room for the requests and what DaemonSets take.
    fn fitting(&self, claim: &Claim, class: &PodClass, rows: &Mask, requests: &Amounts) -> Mask {
        let compiled = &self.compiled[claim.catalogue.index()];
        let mut fitting = Mask::empty(compiled.row_count());
        if clashes(class, &claim.ports) {
            return fitting;
        }
        for group in open_groups(claim, class).filter(|group| group.rows.intersects(rows)) {
            let mut of_group = rows.clone();
            of_group.and(&group.rows);
            let mut total = requests.clone();
            total.add(&group.overhead);
            compiled.keep_fitting(&mut of_group, &total);
            fitting.or(&of_group);
        }
        fitting
    }

    /// Drops the types that cannot attach all volumes.
    fn drop_overloaded(&self, rows: &mut Mask, claim: &Claim, class: &PodClass) {
        let counts = volume_counts(&claim.volumes, &class.volumes);
        let compiled = &self.compiled[claim.catalogue.index()];
        for row in claim.rows.iter() {
            let limits = &compiled.types()[compiled.row_type(row)].volume_limits;
            if limits.iter().any(|(driver, limit)| counts.get(driver).is_some_and(|count| count > limit)) {
                rows.remove(row);
            }
        }
    }

    /// The first driver by name that has too many volumes for every type.
    fn excess(&self, claim: &Claim, class: &PodClass) -> Option<VolumeExcess> {
        let compiled = &self.compiled[claim.catalogue.index()];
        let types = compiled.types_of(&claim.rows);
        let too_many =
            volume_counts(&claim.volumes, &class.volumes).into_iter().filter_map(|(driver, count)| {
                let limits = types.iter().map(|type_| {
                    let limits = &compiled.types()[*type_].volume_limits;
                    let limit = limits.iter().find(|(of, _)| *of == driver)?.1;
                    (count > limit).then_some(limit)
                });
                let limit = limits.collect::<Option<Vec<u32>>>()?.into_iter().max()?;
                Some(VolumeExcess { driver, count, limit })
            });
        let drivers = &self.world.snapshot.drivers;
        too_many.min_by_key(|excess| drivers.resolve(u32::from(excess.driver.0)))
    }

    fn conflict(&self, existing: SetId, incoming: SetId) -> Conflict {
        let reason = self.world.universe.incompatibility(existing, incoming, Undefined::WellKnown);
        let reason =
            reason.unwrap_or_else(|| Incompatible::Conflicts(vec![self.world.snapshot.keys.hostname]));
        Conflict { existing, incoming, reason }
    }

    fn describe(&self, failure: &Unsatisfiable) -> TopologyFailure {
        let group = self.topology.group(failure.group);
        TopologyFailure {
            rule: group.key.rule,
            key: group.key.key,
            counts: group.counts().collect(),
            pod_domains: failure.pod_domains,
            node_domains: failure.node_domains,
            group: Arc::clone(&group.key),
            of_others: group.inverse,
            occupied: group.occupied(),
        }
    }

    /// What some types do have, where none has everything.
    fn type_failure(
        &mut self,
        claim: &Claim,
        class: &PodClass,
        rows: &Mask,
        requirements: SetId,
        requests: &Amounts,
    ) -> TypeFailure {
        let compiled = &mut self.compiled[claim.catalogue.index()];
        let mut open = Mask::empty(compiled.row_count());
        open_groups(claim, class).for_each(|group| open.or(&group.rows));
        open.and(rows);
        let mut meeting = compiled.meeting(requirements, &self.world.universe);
        meeting.and(&open);
        let mut offered = compiled.offered(requirements, &mut self.world.universe);
        offered.and(&open);
        let roomy = self.fitting(claim, class, &offered, requests);
        let both = |a: &Mask, b: &Mask| {
            let mut mask = a.clone();
            mask.and(b);
            mask
        };
        let (meeting_offered, roomy_offered) = (both(&meeting, &offered), both(&roomy, &offered));
        let overheads = open_groups(claim, class).map(|group| &group.overhead);
        let overheads: Vec<&Amounts> = overheads.filter(|overhead| !overhead.is_empty()).collect();
        let overhead = overheads.split_first().map(|(first, rest)| {
            let (mut least, mut most) = ((*first).clone(), (*first).clone());
            for other in rest {
                least.lower_to(other);
                most.raise_to(other);
            }
            (least, most)
        });
        TypeFailure {
            requirements,
            requests: class.requests.clone(),
            overhead,
            any: Flags {
                requirements: !meeting.is_empty(),
                resources: !roomy.is_empty(),
                offering: !offered.is_empty(),
            },
            lacking_only: Flags {
                requirements: !roomy_offered.is_empty(),
                resources: !meeting_offered.is_empty(),
                offering: false,
            },
        }
    }
}

/// Whether a pod needs a port that is in use.
fn clashes(class: &PodClass, used: &[HostPort]) -> bool {
    class.ports.iter().any(|port| used.iter().any(|other| other.conflicts(port)))
}

/// Types on which no DaemonSet uses a port that the pod needs; the others are not even looked at.
fn open_groups<'a>(claim: &'a Claim, class: &'a PodClass) -> impl Iterator<Item = &'a DaemonGroup> {
    claim.daemons.iter().filter(|group| !clashes(class, &group.ports))
}

/// The most of each resource that any of the rows has.
fn largest(compiled: &Compiled, rows: &Mask) -> Amounts {
    let mut largest = Amounts::default();
    for row in rows.iter() {
        largest.raise_to(compiled.row_allocatable(row));
    }
    largest
}

fn claim_id(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than four billion claims")
}

/// Whether the largest type would have room; most claims that are full are told apart by this.
fn roughly_fits(claim: &Claim, class: &PodClass) -> bool {
    claim.may_take(&class.requests)
}

//! Instance types that do not suit a pod, in words: their labels, where they are offered, their size.

use super::labels::few;
use super::{Reached, Said, SchedulingErrors};
use crate::compiled::Compiled;
use crate::intern::{KeyId, ResourceId};
use crate::mask::Mask;
use crate::model::{HostPort, PodClass, PoolId};
use crate::requirement::Operator;
use crate::resources::{self, Amounts};
use crate::solve::TypeFailure;
use crate::solve::template::{DaemonGroup, Template};
use crate::universe::{SetId, Undefined, Universe};

/// What all types of a pool lack.
enum Lack {
    /// Labels that none has together.
    Labels(Vec<KeyId>),
    /// An offering with these labels. Whether there would be one if it were available.
    Offering(Vec<KeyId>, bool),
    /// A port of the host that no DaemonSet uses.
    Port(HostPort),
    /// Room.
    Size(Size),
}

/// What a type has of a resource of which there is not enough.
struct Size {
    /// The type that comes nearest.
    type_: usize,
    resource: ResourceId,
    /// What it leaves to pods.
    free: i64,
    /// What DaemonSets take of it.
    daemons: i64,
    /// Whether no type has enough of this resource, whatever else the pod asks for.
    alone: bool,
}

const MORE: &str = "allow more instance types, zones or capacity types";
const RETRIED: &str = "Karpenter tries again; allow more instance types, zones or capacity types";

/// A type that would do, and the labels for which the pool does not use it.
type Excluded = (usize, Vec<KeyId>);

impl SchedulingErrors<'_> {
    /// Why no type of a pool suits a pod.
    pub(super) fn types(&mut self, pool: PoolId, class: &PodClass, failure: &TypeFailure) -> Said {
        let found = self.explainer.template(pool).and_then(|template| {
            Some((
                self.lack(&template, class, failure.requirements)?,
                self.excluded(pool, &template, class),
                template,
            ))
        });
        let Some((lack, excluded, template)) = found else {
            return Said::new(
                Reached::Types,
                "no suitable instance type",
                "no instance type suits the pod",
                "",
            );
        };
        let help = excluded.map(|(type_, keys)| {
            let names: Vec<String> =
                keys.iter().map(|key| self.universe().key_name(*key).to_owned()).collect();
            format!("allow {}, which its {} excludes", self.type_name(pool, type_), few(&names))
        });
        match lack {
            Lack::Labels(keys) => {
                let asked = self.all_asked_for(&keys, class, pool, failure.requirements);
                let matches = if keys.len() > 1 { "matches both" } else { "matches" };
                let brief = "no instance type has the labels";
                if self.leave_nothing(&keys, failure.requirements) {
                    return Said::new(
                        Reached::Types,
                        brief,
                        asked,
                        "change them so that they have one in common",
                    );
                }
                let (types, values) = self.values_of(&template, keys.first().copied());
                let known = match (keys.len(), values.is_empty()) {
                    (1, false) => format!("they have {}", few(&values)),
                    _ => "change one of them".to_owned(),
                };
                let what = format!("{asked}, and none of its {types} instance types {matches}");
                Said::new(Reached::Types, brief, what, help.unwrap_or(known))
            }
            Lack::Offering(keys, exists) => {
                let asked = self.all_asked_for(&keys, class, pool, failure.requirements);
                let what = match (exists, keys.is_empty()) {
                    (true, true) => {
                        "all offerings of its suitable instance types are unavailable at present".to_owned()
                    }
                    (true, false) => {
                        format!(
                            "{asked}, and all such offerings of its suitable instance types are unavailable"
                        )
                    }
                    (false, _) => format!("{asked}, and none of its suitable instance types is offered so"),
                };
                let help = if exists { RETRIED } else { MORE };
                Said::new(Reached::Types, "no offering available", what, help)
            }
            Lack::Port(port) => Said::new(
                Reached::Types,
                "host port in use",
                format!(
                    "the pod needs host port {}/{}, which a DaemonSet uses on all its nodes",
                    port.port, port.protocol
                ),
                "use another hostPort",
            ),
            Lack::Size(size) => self.size(pool, class, &size, help),
        }
    }

    /// Why no type suits a pool at all.
    pub(super) fn without_types(&mut self, pool: PoolId) -> Said {
        let it = &self.snapshot().pools[pool.index()];
        let brief = "no instance type meets its requirements";
        let (Some(catalogue), set) = (it.catalogue, it.requirements) else {
            return Said::new(
                Reached::Unknown,
                "instance types not known",
                "its instance types are not known",
                "",
            );
        };
        let (compiled, world) = self.explainer.compiled();
        let compiled = &mut compiled[catalogue.index()];
        let (all, types) = (Mask::full(compiled.row_count()), compiled.types().len());
        let lack = labels_or_offering(compiled, &mut world.universe, set, &all, SetId::EMPTY);
        let what = match lack.map_err(|lack| *lack) {
            Err(Lack::Labels(keys)) => {
                format!(
                    "it asks for {}, and none of the {types} instance types has that",
                    self.all_of(&keys, set)
                )
            }
            Err(Lack::Offering(keys, false)) => {
                format!("it asks for {}, and no instance type is offered so", self.all_of(&keys, set))
            }
            Err(Lack::Offering(keys, true)) if !keys.is_empty() => {
                let asked = self.all_of(&keys, set);
                let what =
                    format!("all offerings of its instance types with {asked} are unavailable at present");
                return Said::new(Reached::Unknown, "no offering available", what, RETRIED);
            }
            _ => "all offerings of its instance types are unavailable at present".to_owned(),
        };
        Said::new(Reached::Unknown, brief, what, "change its requirements")
    }

    fn size(&self, pool: PoolId, class: &PodClass, size: &Size, help: Option<String>) -> Said {
        let Size { resource, free, daemons, alone, .. } = *size;
        let brief = "no instance type is large enough";
        let name = self.type_name(pool, size.type_);
        let wanted = class.requests.get(resource);
        let million = resources::request(
            ResourceId::CPU,
            units::Quantity::from_units(1_000_000, units::Format::DecimalSi),
        );
        let help = match help {
            _ if resource == ResourceId::CPU && wanted >= million => "was M written instead of m?".to_owned(),
            Some(help) => help,
            None if free.saturating_add(daemons) <= 0 => {
                format!("offer instance types that have {}", self.snapshot().resources.name(resource))
            }
            None if resource == ResourceId::PODS => "offer larger instance types".to_owned(),
            None => "lower the pod's requests".to_owned(),
        };
        let asked = self.quantity(resource, wanted);
        let after = match daemons {
            0 => String::new(),
            _ => format!(" after {} for DaemonSets", self.amount(resource, daemons)),
        };
        let what = if resource == ResourceId::PODS {
            let pods = self.quantity(resource, daemons.saturating_add(free));
            format!(
                "{name}, its largest suitable instance type, has room for {pods}, and DaemonSets need it all"
            )
        } else if !alone {
            let lacking = self.quantity(resource, wanted.saturating_sub(free));
            format!(
                "no instance type has all that the pod asks for: {name} comes nearest and lacks {lacking}{after}"
            )
        } else if free.saturating_add(daemons) <= 0 {
            format!("the pod asks for {asked}, and none of its suitable instance types has any")
        } else {
            let free = self.amount(resource, free.max(0));
            format!(
                "the pod asks for {asked}, and {name}, its largest suitable instance type, has {free}{after}"
            )
        };
        Said::new(Reached::Types, brief, what, help)
    }

    /// What the types of a pool lack for a pod.
    fn lack(&mut self, template: &Template, class: &PodClass, set: SetId) -> Option<Lack> {
        let own = self.snapshot().pools[template.pool.index()].requirements;
        let (compiled, world) = self.explainer.compiled();
        let compiled = &mut compiled[template.catalogue.index()];
        let offered = match labels_or_offering(compiled, &mut world.universe, set, &template.rows, own) {
            Ok(offered) => offered,
            Err(lack) => return Some(*lack),
        };
        let uses =
            |port: &&HostPort, group: &DaemonGroup| group.ports.iter().any(|used| used.conflicts(port));
        let is_open = |group: &&DaemonGroup| !class.ports.iter().any(|port| uses(&port, group));
        let open: Vec<&DaemonGroup> =
            template.daemons.iter().filter(|group| group.rows.intersects(&offered)).filter(is_open).collect();
        if open.is_empty() {
            let is_taken = |port: &&HostPort| template.daemons.iter().any(|group| uses(port, group));
            return class.ports.iter().find(is_taken).cloned().map(Lack::Port);
        }
        too_small(compiled, &open, &offered, &class.requests).map(Lack::Size)
    }

    /// The smallest type of the catalogue that would take the pod if the pool allowed it.
    fn excluded(&mut self, pool: PoolId, template: &Template, class: &PodClass) -> Option<Excluded> {
        let asked = self.explainer.asked(class);
        let own = self.snapshot().pools[pool.index()].requirements;
        let (compiled, world) = self.explainer.compiled();
        let (compiled, universe) = (&mut compiled[template.catalogue.index()], &mut world.universe);
        let mut rows = (*compiled.matching(asked, universe)).clone();
        rows.and_not(&template.rows);
        let mut requests = Amounts::default();
        template.daemons.iter().for_each(|group| requests.raise_to(&group.overhead));
        requests.add(&class.requests);
        compiled.keep_fitting(&mut rows, &requests);
        let size = |row: &usize| {
            let has = compiled.row_allocatable(*row);
            (has.get(ResourceId::CPU), has.get(ResourceId::MEMORY), *row)
        };
        let row = rows.iter().min_by_key(size)?;
        let mut keys = Vec::new();
        for (key, set) in singles(universe, own) {
            let meets = compiled.meeting(set, universe).contains(row);
            if !meets || !compiled.offered(set, universe).contains(row) {
                keys.push(key);
            }
        }
        (!keys.is_empty()).then(|| (compiled.row_type(row), keys))
    }

    fn type_name(&self, pool: PoolId, type_: usize) -> String {
        let (snapshot, key) = (self.snapshot(), self.snapshot().keys.instance_type);
        let catalogue = snapshot.pools[pool.index()].catalogue;
        let it = catalogue.and_then(|id| snapshot.catalogues[id.index()].types.get(type_));
        it.map_or_else(String::new, |it| self.universe().values(key).name(it.name).to_owned())
    }

    /// How many types a pool has, and which values of a label they have; numbers are in order.
    fn values_of(&mut self, template: &Template, key: Option<KeyId>) -> (usize, Vec<String>) {
        let (compiled, world) = self.explainer.compiled();
        let (compiled, universe) = (&compiled[template.catalogue.index()], &world.universe);
        let types = compiled.types_of(&template.rows);
        let Some(key) = key else { return (types.len(), Vec::new()) };
        let members = types.iter().filter_map(|type_| {
            universe.get(universe.find(compiled.types()[*type_].requirements, key)?).members()
        });
        let mut values: Vec<_> = members.flatten().copied().collect();
        values.sort_unstable();
        values.dedup();
        let names = universe.values(key);
        let numbers: Option<Vec<i64>> = values.iter().map(|value| names.integer(*value)).collect();
        if let Some((Some(least), Some(most))) =
            numbers.map(|all| (all.iter().min().copied(), all.iter().max().copied()))
        {
            return (types.len(), vec![format!("{least} to {most}")]);
        }
        let mut values: Vec<String> = values.into_iter().map(|value| names.name(value).to_owned()).collect();
        values.sort_unstable();
        (types.len(), values)
    }

    /// Whether what is asked of a label that all nodes have leaves no value of it.
    fn leave_nothing(&self, keys: &[KeyId], set: SetId) -> bool {
        let universe = self.universe();
        let [key] = keys else { return false };
        let asked = universe.find(set, *key).map(|id| universe.get(id).operator());
        asked == Some(Operator::DoesNotExist) && universe.is_well_known(*key)
    }

    /// Who asks for some labels, and what for.
    fn all_asked_for(&mut self, keys: &[KeyId], class: &PodClass, pool: PoolId, set: SetId) -> String {
        let asked: Vec<String> = keys.iter().map(|key| self.asked_for(*key, class, pool, set)).collect();
        // Who asks is said once if it is the same.
        let plain =
            asked.iter().map(|asked| asked.strip_prefix("the pod asks for ")).collect::<Option<Vec<_>>>();
        plain.map_or_else(|| asked.join(" and "), |plain| format!("the pod asks for {}", plain.join(" and ")))
    }

    /// What a set asks of some labels.
    fn all_of(&self, keys: &[KeyId], set: SetId) -> String {
        let asked =
            keys.iter().filter_map(|key| Some(self.requirement(*key, self.universe().find(set, *key)?)));
        asked.collect::<Vec<_>>().join(" and ")
    }
}

/// Rows that meet a set and are offered, or what none of some rows has. What `own` asks for is blamed last.
fn labels_or_offering(
    compiled: &mut Compiled,
    universe: &mut Universe,
    set: SetId,
    rows: &Mask,
    own: SetId,
) -> Result<Mask, Box<Lack>> {
    let mut meeting = compiled.meeting(set, universe);
    meeting.and(rows);
    let mut asked = singles(universe, set);
    asked.sort_by_key(|(key, _)| universe.find(own, *key).is_none());
    if meeting.is_empty() {
        let masks: Vec<(KeyId, Mask)> =
            asked.iter().map(|(key, set)| (*key, compiled.meeting(*set, universe))).collect();
        let nothing = |masks: &[(KeyId, Mask)]| {
            let mut left = rows.clone();
            for (_, mask) in masks {
                left.and(mask);
            }
            left.is_empty()
        };
        return Err(Box::new(Lack::Labels(culprits(masks, nothing))));
    }
    let mut offered = compiled.offered(set, universe);
    offered.and(&meeting);
    if !offered.is_empty() {
        return Ok(offered);
    }
    let types = compiled.types_of(&meeting);
    let offerings: Vec<SetId> = types
        .iter()
        .flat_map(|type_| &compiled.types()[*type_].offerings)
        .map(|offering| offering.requirements)
        .collect();
    let has_keys: Vec<(KeyId, SetId)> = asked
        .into_iter()
        .filter(|(key, _)| offerings.iter().any(|offering| universe.find(*offering, *key).is_some()))
        .collect();
    let exists = offerings.iter().any(|it| universe.is_compatible(set, *it, Undefined::WellKnown));
    if exists {
        let keys = has_keys.into_iter().map(|(key, _)| key).filter(|key| universe.find(own, *key).is_none());
        return Err(Box::new(Lack::Offering(keys.collect(), true)));
    }
    let meets = |sets: &[(KeyId, SetId)]| {
        !offerings.iter().any(|offering| sets.iter().all(|(_, set)| universe.intersects(*set, *offering)))
    };
    Err(Box::new(Lack::Offering(culprits(has_keys, meets), false)))
}

/// Each requirement of a set alone.
fn singles(universe: &mut Universe, set: SetId) -> Vec<(KeyId, SetId)> {
    let entries = universe.entries(set).to_vec();
    let single = |(key, id): (KeyId, _)| {
        let requirement = universe.get(id).clone();
        (key, universe.set([(key, requirement)]))
    };
    entries.into_iter().map(single).collect()
}

/// As few of some things as still leave nothing.
fn culprits<T: Clone>(
    mut all: Vec<(KeyId, T)>,
    leaves_nothing: impl Fn(&[(KeyId, T)]) -> bool,
) -> Vec<KeyId> {
    let mut position = 0;
    while position < all.len() {
        let one = all.remove(position);
        if !leaves_nothing(&all) {
            all.insert(position, one);
            position += 1;
        }
    }
    all.into_iter().map(|(key, _)| key).collect()
}

/// What the type that comes nearest has too little of.
fn too_small(compiled: &Compiled, groups: &[&DaemonGroup], rows: &Mask, requests: &Amounts) -> Option<Size> {
    let free = |group: &DaemonGroup, row: usize, resource: ResourceId| {
        compiled.row_allocatable(row).get(resource).saturating_sub(group.overhead.get(resource))
    };
    let places = || {
        groups
            .iter()
            .flat_map(|group| rows.iter().filter(|row| group.rows.contains(*row)).map(|row| (*group, row)))
    };
    // Per mille is fine enough to compare and stays an integer.
    let part = |missing: i64, wanted: i64| i128::from(missing) * 1000 / i128::from(wanted.max(1));
    let most = requests.iter().filter_map(|(resource, wanted)| {
        let (group, row) =
            places().max_by_key(|(group, row)| (free(group, *row, resource), std::cmp::Reverse(*row)))?;
        let most = free(group, row, resource);
        (most < wanted).then(|| (part(wanted.saturating_sub(most), wanted), resource, group, row))
    });
    let size = |resource, group: &DaemonGroup, row, alone| Size {
        type_: compiled.row_type(row),
        resource,
        free: free(group, row, resource),
        daemons: group.overhead.get(resource),
        alone,
    };
    if let Some((_, resource, group, row)) = most.max_by_key(|(part, ..)| *part) {
        return Some(size(resource, group, row, true));
    }
    let nearest = places().filter_map(|(group, row)| {
        let short = requests.iter().filter_map(|(resource, wanted)| {
            let missing = wanted.saturating_sub(free(group, row, resource));
            (missing > 0).then(|| (part(missing, wanted), resource))
        });
        short.max().map(|(part, resource)| (part, row, resource, group))
    });
    let (_, row, resource, group) = nearest.min_by_key(|(part, row, ..)| (*part, *row))?;
    Some(size(resource, group, row, false))
}

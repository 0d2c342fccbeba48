//! In which zone each pending pod must be, before anything is decided. Entry: [`effective_zones`].
//!
//! What counts: what the pod asks of its node, where its volumes are, and its own rules about pods around it. Wishes
//! do not.

use std::collections::BTreeMap;

use crate::intern::ValueId;
use crate::model::{ClassId, PodClass, PodId, Snapshot, Spread};
use crate::topology::{Rules, Topology};
use crate::universe::{FastMap, SetId};
use crate::world::World;

/// Where a pod can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effective {
    /// Only there.
    Zone(ValueId),
    /// To several zones, or to any.
    Flexible,
    /// To none.
    Nowhere,
}

/// How many pods must be in which zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// Pods that can go to one zone only, by its name.
    pub by_zone: BTreeMap<Box<str>, usize>,
    /// Pods that can go to several zones, or to any.
    pub flexible: usize,
    /// Pods that can go nowhere.
    pub nowhere: usize,
}

/// In which zones the pods of a snapshot must be, those that `counts` says.
pub fn effective_zones(snapshot: &Snapshot, counts: impl Fn(PodId) -> bool) -> Zones {
    let mut world = World::new(snapshot);
    let mut topology = Topology::default();
    let mut known: FastMap<ClassId, Effective> = FastMap::default();
    let mut zones = Zones::default();
    let pods = snapshot.pods.iter().enumerate().filter(|(position, _)| counts(PodId::at(*position)));
    for (_, pod) in pods {
        let effective = *known
            .entry(pod.class)
            .or_insert_with(|| effective(&snapshot.classes[pod.class.index()], &mut world, &mut topology));
        match effective {
            Effective::Zone(zone) => {
                let name = world.universe.values(snapshot.keys.zone).name(zone);
                *zones.by_zone.entry(name.into()).or_default() += 1;
            }
            Effective::Flexible => zones.flexible += 1,
            Effective::Nowhere => zones.nowhere += 1,
        }
    }
    zones
}

fn effective(class: &PodClass, world: &mut World<'_>, topology: &mut Topology) -> Effective {
    let key = world.snapshot.keys.zone;
    let selector = class.node_selector;
    let first = class.required_terms.first();
    let strict = first.map_or(selector, |term| world.universe.intersect(selector, *term));
    let owned = zonal_groups(class, strict, world, topology);
    let universe = &world.universe;
    let asked = universe.find(strict, key);
    let labels = world.snapshot.labels.get(class.labels.0);
    let valid: Vec<Vec<ValueId>> = owned
        .into_iter()
        .map(|id| {
            let own = topology.group(id).selects(class.namespace, labels);
            topology.group(id).open_domains(asked, own, universe)
        })
        .collect();
    if valid.iter().any(Vec::is_empty) {
        return Effective::Nowhere;
    }
    let values = universe.values(key);
    let of_volume = |set: &SetId| universe.find(*set, key).map(|id| universe.get(id));
    let pinned: Option<Vec<&[ValueId]>> =
        class.volume_terms.iter().map(|set| of_volume(set).and_then(|asked| asked.members())).collect();
    let pinned = pinned.filter(|pinned| !pinned.is_empty()).map(|pinned| pinned.concat());
    let members = asked.and_then(|asked| universe.get(asked).members()).map(<[ValueId]>::to_vec);
    let Some(mut candidates) = members.or(pinned).or_else(|| valid.first().cloned()) else {
        return Effective::Flexible;
    };
    candidates.retain(|zone| {
        let wanted = asked.is_none_or(|asked| universe.get(asked).has(*zone, values));
        let attachable = class.volume_terms.is_empty()
            || class
                .volume_terms
                .iter()
                .any(|set| of_volume(set).is_none_or(|asked| asked.has(*zone, values)));
        wanted && attachable && valid.iter().all(|valid| valid.contains(zone))
    });
    candidates.sort_unstable();
    candidates.dedup();
    match candidates[..] {
        [] => Effective::Nowhere,
        [zone] => Effective::Zone(zone),
        _ => Effective::Flexible,
    }
}

/// The rules of a pod about zones.
fn zonal_groups(
    class: &PodClass,
    strict: SetId,
    world: &mut World<'_>,
    topology: &mut Topology,
) -> Vec<crate::topology::GroupId> {
    let key = world.snapshot.keys.zone;
    let spreads: Vec<Spread> =
        class.spreads.iter().filter(|spread| spread.key == key && !spread.optional).cloned().collect();
    let of_zone = |terms: &[crate::model::PodTerm]| {
        terms.iter().filter(|term| term.key == key).cloned().collect::<Vec<_>>()
    };
    let (affinities, anti_affinities) = (of_zone(&class.affinities), of_zone(&class.anti_affinities));
    let node_filter = if class.required_terms.is_empty() {
        vec![strict]
    } else {
        let terms = class.required_terms.iter();
        terms.map(|term| world.universe.intersect(class.node_selector, *term)).collect()
    };
    let rules = Rules {
        class,
        tolerations: class.tolerations,
        spreads: &spreads,
        affinities: &affinities,
        anti_affinities: &anti_affinities,
        node_filter: &node_filter,
    };
    topology.register(world, &rules)
}

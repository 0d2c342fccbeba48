//! Follows zonal shifts: asks which zones are avoided, and tells NodePools that could use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::labels::LabelSets;
use api::names::events::aws as events;
use api::names::labels::{self, aws};
use api::nodepool::NodePool;
use cluster::instance_types::Wanted;
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::Outcome;
use runtime::events::About;

use super::failed;
use crate::node_class::Class;
use crate::provider::Inner;
use crate::requirements::within;

/// How often AWS is asked.
const INTERVAL: Again = Again::secs(30);

/// A zone that is avoided and a NodePool that could use it: the name of the NodePool, the ID of the zone and its name.
type Concern = (String, String, String);

/// The zones of a NodeClass that its NodePool allows, of those that are avoided: their IDs and names.
fn concerns(
    pool: &NodePool,
    class: &Class<'_>,
    shifted: &BTreeSet<String>,
    sets: &LabelSets,
) -> Vec<(String, String)> {
    let zones = class.zones.iter().filter(|zone| shifted.contains(zone.id));
    let Ok(mut wanted) = Wanted::new(&super::requirements_of(pool), sets) else { return Vec::new() };
    zones
        .filter(|zone| wanted.admits(&[within(labels::ZONE, [zone.name]), within(aws::ZONE_ID, [zone.id])]))
        .map(|zone| (zone.id.to_owned(), zone.name.to_owned()))
        .collect()
}

/// What is new, and what is over: only what AWS ended, not what a NodePool stopped to use.
fn news(
    before: &BTreeSet<Concern>,
    now: &BTreeSet<Concern>,
    shifted: &BTreeSet<String>,
) -> (Vec<Concern>, Vec<Concern>) {
    let begun = now.difference(before).cloned().collect();
    let over = before.difference(now).filter(|(_, zone_id, _)| !shifted.contains(zone_id)).cloned().collect();
    (begun, over)
}

/// Follows zonal shifts.
#[derive(Clone, Debug, Default)]
pub(super) struct ZonalShifts(Arc<Mutex<BTreeSet<Concern>>>);

impl ZonalShifts {
    pub(super) async fn follow(&self, inner: &Inner) -> Outcome {
        inner.refresh_zonal_shifts().await.map_err(failed)?;
        let shifted = inner.shifted_zones();
        let pools: BTreeMap<String, Arc<NodePool>> = {
            let state = inner.setup.cluster.read();
            let named =
                |pool: &Arc<NodePool>| (pool.metadata.name.clone().unwrap_or_default(), Arc::clone(pool));
            state.node_pools.values().map(named).collect()
        };
        let mut now: BTreeSet<Concern> = BTreeSet::new();
        for (name, pool) in &pools {
            let Ok(object) = inner.class(&pool.spec.template.spec.node_class_ref.name) else { continue };
            let Ok(class) = Class::new(&object, None, inner.setup.settings.node_class_cel) else { continue };
            let zones = concerns(pool, &class, &shifted, &inner.sets).into_iter();
            now.extend(zones.map(|(zone_id, zone)| (name.clone(), zone_id, zone)));
        }
        let before = std::mem::replace(&mut *self.0.lock(), now.clone());
        let (begun, over) = news(&before, &now, &shifted);
        let begun = begun.into_iter().map(|concern| (&events::ZONAL_SHIFT_ACTIVE, "is avoided", concern));
        let over =
            over.into_iter().map(|concern| (&events::ZONAL_SHIFT_CLEARED, "can be used again", concern));
        for (event, what, (name, zone_id, zone)) in begun.chain(over) {
            let Some(pool) = pools.get(&name) else { continue };
            let message = format!("Zone {zone} ({zone_id}) {what}, as zonal shift says");
            inner.setup.events.publish(event, About::object(&**pool), message, &[]);
        }
        Ok(INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(entries: &[(&str, &str)]) -> BTreeSet<Concern> {
        entries.iter().map(|(pool, zone)| ((*pool).to_owned(), (*zone).to_owned(), "a".to_owned())).collect()
    }

    #[test]
    fn a_shift_is_told_when_it_begins_and_when_aws_ends_it() {
        let (none, both) = (set(&[]), set(&[("p", "az1"), ("q", "az1")]));
        let shifted: BTreeSet<String> = ["az1".to_owned()].into();
        assert_eq!(news(&none, &both, &shifted), (both.iter().cloned().collect(), vec![]));
        assert_eq!(news(&both, &both, &shifted), (vec![], vec![]), "once");
        let one = set(&[("p", "az1")]);
        assert_eq!(news(&both, &one, &shifted), (vec![], vec![]), "the zone is still avoided");
        let (begun, over) = news(&one, &none, &BTreeSet::new());
        assert_eq!((begun.len(), over.len()), (0, 1));
    }
}

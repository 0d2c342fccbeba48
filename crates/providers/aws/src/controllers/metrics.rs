//! Publishes what instance types there are, what they cost, and whether they can be had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::names::labels;
use api::names::metrics::aws as metrics;
use api::names::values::capacity_type;
use cluster::instance_types::InstanceType;
use runtime::Again;
use runtime::controller::Outcome;

use crate::provider::Inner;

const MINUTE: Again = Again::After(Duration::from_mins(1));
/// Whose series these are.
const OWNER: &str = "instance types";

/// Instance type, capacity type and zone: whether it can be had, and what it costs.
type Rows = BTreeMap<(String, String, String), (bool, f64)>;

/// What several lists of types say together: it is there if one of them has it, and the last price counts.
/// With `reserved`, zones without reservations have rows, too, so that graphs have no gaps.
fn rows(lists: &[Arc<[InstanceType]>], reserved: bool) -> Rows {
    let mut rows = Rows::new();
    for each in lists.iter().flat_map(|list| list.iter()) {
        for offering in &each.offerings {
            let (Some(kind), Some(zone)) =
                (offering.value(labels::CAPACITY_TYPE), offering.value(labels::ZONE))
            else {
                continue;
            };
            let key = (each.name.clone(), kind.to_owned(), zone.to_owned());
            let row = rows.entry(key).or_default();
            *row = (row.0 || offering.is_launchable(), offering.price);
        }
    }
    if reserved {
        let places: BTreeSet<(String, String)> =
            rows.keys().map(|(name, _, zone)| (name.clone(), zone.clone())).collect();
        for (name, zone) in places {
            rows.entry((name, capacity_type::RESERVED.to_owned(), zone)).or_default();
        }
    }
    rows
}

/// Publishes them.
#[expect(clippy::cast_precision_loss, reason = "metrics")]
pub(super) async fn publish(inner: &Inner) -> Outcome {
    let pools: Vec<_> = inner.setup.cluster.read().node_pools.values().cloned().collect();
    let mut lists: Vec<Arc<[InstanceType]>> = Vec::new();
    for pool in pools.iter().filter(|pool| super::is_pool_ours(pool)) {
        match inner.pool_types(pool).await {
            // NodePools of one class have the same list.
            Ok(list) if lists.iter().any(|known| Arc::ptr_eq(known, &list)) => {}
            Ok(list) => lists.push(list),
            Err(error) => {
                let name = pool.metadata.name.as_deref().unwrap_or_default();
                tracing::error!(NodePool = name, error = %error, "failed to list instance types");
            }
        }
    }
    let rows = rows(&lists, inner.setup.gates.reserved_capacity);
    let registry = &inner.setup.metrics;
    let labels =
        |(name, kind, zone): &(String, String, String)| vec![name.clone(), kind.clone(), zone.clone()];
    let available = rows.iter().map(|(key, (available, _))| (labels(key), f64::from(u8::from(*available))));
    registry.replace(&metrics::OFFERING_AVAILABLE, OWNER, available);
    let prices = rows.iter().map(|(key, (_, price))| (labels(key), *price));
    registry.replace(&metrics::OFFERING_PRICE_ESTIMATE, OWNER, prices);
    let discovered = Arc::clone(inner.known.lock().discovered());
    let cores = discovered.types().map(|info| (vec![info.name.clone()], f64::from(info.vcpus)));
    registry.replace(&metrics::INSTANCE_TYPE_CPU_CORES, OWNER, cores);
    let memory = discovered.types().map(|info| {
        let bytes = info.memory_mib.saturating_mul(1 << 20);
        (vec![info.name.clone()], bytes as f64)
    });
    registry.replace(&metrics::INSTANCE_TYPE_MEMORY, OWNER, memory);
    Ok(MINUTE)
}

#[cfg(test)]
mod tests {
    use cluster::instance_types::Offering;

    use super::*;
    use crate::requirements::within;

    fn list(offerings: &[(&str, &str, bool, f64)]) -> Arc<[InstanceType]> {
        let offering = |(kind, zone, available, price): &(&str, &str, bool, f64)| Offering {
            requirements: vec![within(labels::CAPACITY_TYPE, [*kind]), within(labels::ZONE, [*zone])],
            available: *available,
            price: *price,
            reservation_capacity: 1,
            ..Offering::default()
        };
        let offerings = offerings.iter().map(offering).collect();
        Arc::from([InstanceType { name: "m5.large".to_owned(), offerings, ..InstanceType::default() }])
    }

    #[test]
    fn one_pool_that_has_it_is_enough_and_the_last_price_counts() {
        let lists = [
            list(&[("spot", "a", true, 1.0), ("spot", "b", false, 1.0), ("reserved", "b", true, 0.1)]),
            list(&[("spot", "a", false, 2.0), ("spot", "b", false, 2.0)]),
        ];
        let key = |kind: &str, zone: &str| ("m5.large".to_owned(), kind.to_owned(), zone.to_owned());
        let all = rows(&lists, false);
        assert_eq!((all[&key("spot", "a")], all[&key("spot", "b")]), ((true, 2.0), (false, 2.0)));
        assert_eq!(all.len(), 3);
        let all = rows(&lists, true);
        assert_eq!((all[&key("reserved", "a")], all[&key("reserved", "b")]), ((false, 0.0), (true, 0.1)));
    }
}

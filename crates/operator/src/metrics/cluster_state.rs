//! Whether decisions can rely on what is known of the cluster.

use std::collections::BTreeMap;

use api::names::metrics::{
    CLUSTER_STATE_NODE_COUNT, CLUSTER_STATE_STALE_TIME, CLUSTER_STATE_SYNCED, CLUSTER_STATE_UNREADABLE,
    CLUSTER_STATE_UNSYNCED_TIME,
};
use cluster::state::{State, Sync};
use jiff::Timestamp;

use crate::Context;

/// For how long decisions have been waiting, in seconds: since the first claim was created that is not launched.
/// Before everything was listed they wait since the start.
fn unsynced_time(sync: &Sync<'_>, started: Timestamp, now: Timestamp) -> f64 {
    let created = sync.launching.iter().filter_map(|claim| claim.metadata.creation_timestamp.as_ref());
    let since = created.map(|time| time.0).chain((!sync.listed).then_some(started)).min();
    since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0))
}

/// Tells at each look.
pub(super) fn collect(context: &Context) {
    let (cluster, clock) = (context.cluster.clone(), context.clock);
    let started = clock.now();
    context.metrics.collect(move |metrics| {
        let now = clock.now();
        let state = cluster.read();
        let sync = state.sync(now);
        metrics.set(&CLUSTER_STATE_SYNCED, &[], f64::from(u8::from(sync.is_synced())));
        metrics.set(&CLUSTER_STATE_UNSYNCED_TIME, &[], unsynced_time(&sync, started, now));
        metrics.set(&CLUSTER_STATE_NODE_COUNT, &[], node_count(&state));
        metrics.replace(&CLUSTER_STATE_UNREADABLE, "", unreadable(&state));
        metrics.replace(&CLUSTER_STATE_STALE_TIME, "", stale_time(&state, now));
    });
}

#[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
fn node_count(state: &State) -> f64 {
    state.state_nodes().len() as f64
}

/// How many objects of each kind cannot be read.
fn unreadable(state: &State) -> impl Iterator<Item = (Vec<String>, f64)> + use<> {
    let mut kinds = BTreeMap::<&str, f64>::new();
    for (kind, ..) in state.unreadable() {
        *kinds.entry(kind.name()).or_default() += 1.0;
    }
    kinds.into_iter().map(|(kind, count)| (vec![kind.to_owned()], count))
}

/// For how many seconds the watch of each kind has failed.
fn stale_time(state: &State, now: Timestamp) -> Vec<(Vec<String>, f64)> {
    let series = state.stale().map(|(kind, staleness)| {
        (vec![kind.name().to_owned()], now.duration_since(staleness.since).as_secs_f64().max(0.0))
    });
    series.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{node_objects, state};

    #[test]
    fn time_counts_from_the_first_claim_that_is_not_launched() {
        let at = |time: &str| format!("2026-01-01T{time}Z").parse::<Timestamp>().unwrap();
        let waiting = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"providerID": ""},
        });
        let [_, claim] = node_objects("n1", "p", &json!({}), &waiting);
        let state = state(&[claim]);
        let time = |now| unsynced_time(&state.sync(now), at("00:00:00"), now);
        assert!((time(at("00:02:00")) - 120.0).abs() < 1e-9);
        // Nobody waits for a claim that should have been launched long ago.
        assert!(time(at("01:00:00")).abs() < 1e-9);
        assert!((node_count(&state)).abs() < 1e-9);
    }
}

//! The whole operator with simulated nodes, on any cluster.

use std::sync::Arc;

use api::provider::Provider;
use clock::Clock;
use cloud::CloudProvider;
use kube::Client;
use kwok::Kwok;
use operator::Parts;
use runtime::Settings;
use tokio::sync::watch;

/// Runs the operator until the future is dropped.
#[allow(dead_code, reason = "some tests put something between the operator and its cloud")]
pub(crate) async fn operate(client: Client, clock: Clock, settings: Settings, seed: u64) {
    operate_on(client, clock, settings, seed, |kwok| Arc::new(kwok)).await;
}

/// Runs the operator on a cloud that is made of simulated nodes until the future is dropped.
#[allow(dead_code, reason = "some tests look at the parts")]
pub(crate) async fn operate_on(
    client: Client,
    clock: Clock,
    settings: Settings,
    seed: u64,
    cloud: impl FnOnce(Kwok) -> Arc<dyn CloudProvider>,
) {
    let parts = Parts::new(client, Provider::Kwok, clock, settings);
    run_parts(parts, seed, cloud).await;
}

/// Runs the operator that is made of these parts until the future is dropped.
#[allow(dead_code, reason = "some tests look at the parts")]
pub(crate) async fn operate_parts(parts: Parts, seed: u64) {
    run_parts(parts, seed, |kwok| Arc::new(kwok)).await;
}

async fn run_parts(parts: Parts, seed: u64, cloud: impl FnOnce(Kwok) -> Arc<dyn CloudProvider>) {
    let Parts { api, cluster, clock, .. } = parts.clone();
    let kwok = Kwok::new(api, cluster, clock, seed, cluster::instance_types::kwok::built_in());
    let kwok = kwok.with_overlays(parts.overlays.clone());
    let of_cloud = kwok.controllers(&parts.events, &parts.metrics);
    let (_leads, leading) = watch::channel(true);
    operator::run(parts.context(cloud(kwok)), of_cloud, leading).await;
}

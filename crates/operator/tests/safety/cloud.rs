//! A cloud that says what its machines really have, and that fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::resources::CPU;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cloud::{CloudProvider, Error, Instance, RepairPolicy};
use cluster::instance_types::InstanceType;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kwok::Kwok;
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::json;

use crate::log::{KINDS, resource};

/// The label with the processors of a machine.
const PROCESSORS: &str = "karpenter.kwok.sh/instance-cpu";
/// How the simulated kubelet is told that its node never works.
pub(crate) const FAIL: &str = "simulate.karpenter.sh/fail";

/// What goes wrong with some of the machines that are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fine,
    /// There is no capacity.
    Scarce,
    /// The cloud refuses.
    Refuses,
    /// The node is there, and is never ready.
    Stillborn,
}

/// What the weather is like. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Sky(Arc<Mutex<(Weather, Pcg64Mcg)>>);

impl Sky {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new((Weather::Fine, Pcg64Mcg::seed_from_u64(seed)))))
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.0.lock().0 = weather;
    }

    /// What the next machine suffers.
    fn next(&self) -> Weather {
        let mut sky = self.0.lock();
        let is_hit = sky.1.random_bool(0.6);
        if is_hit { sky.0 } else { Weather::Fine }
    }
}

/// A cloud under a sky.
pub(crate) struct Unreliable {
    pub(crate) inner: Kwok,
    pub(crate) sky: Sky,
}

impl CloudProvider for Unreliable {
    fn provider(&self) -> Provider {
        self.inner.provider()
    }

    fn instances_are_nodes(&self) -> bool {
        self.inner.instances_are_nodes()
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        async move {
            match self.sky.next() {
                Weather::Scarce => return Err(Error::InsufficientCapacity("sold out".to_owned())),
                Weather::Refuses => {
                    let (reason, message) = ("Refused".to_owned(), "not today".to_owned());
                    return Err(Error::Create { reason, message });
                }
                Weather::Fine | Weather::Stillborn => {}
            }
            let mut instance = self.inner.create(claim).await?;
            let cores = instance.metadata.labels.as_ref().and_then(|labels| labels.get(PROCESSORS));
            let cores = cores.and_then(|cores| cores.parse().ok());
            if let (Some(cores), Some(status)) = (cores, &mut instance.status) {
                status.capacity.insert(CPU.to_owned(), cores);
            }
            Ok(instance)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.delete(claim)
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        self.inner.get(provider_id)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        self.inner.list()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        self.inner.instance_types(pool)
    }

    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.inner.drift(claim)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.reboot(claim, operation)
    }
}

/// Makes nodes say what they really have as soon as they are there, and lets some of them fail, until the world ends.
///
/// Simulated machines have what their claim asks for, however large they are, as those of the original do; so limits
/// of whole machines could be exceeded without anybody seeing it.
pub(crate) async fn furnish(client: Client, sky: Sky) {
    let api: Api<DynamicObject> = Api::all_with(client, &resource(KINDS[1]));
    let mut since = "0".to_owned();
    let mut seen = BTreeSet::new();
    loop {
        let Ok(stream) = api.watch(&WatchParams::default().timeout(290), &since).await else { continue };
        let mut stream = Box::pin(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(node) | WatchEvent::Modified(node)) = event else { continue };
            node.metadata.resource_version.clone().unwrap_or_default().clone_into(&mut since);
            let (Some(name), Some(labels)) = (node.metadata.name, node.metadata.labels) else { continue };
            let Some(cores) = labels.get(PROCESSORS) else { continue };
            if !seen.insert(name.clone()) {
                continue;
            }
            let capacity = json!({"status": {"capacity": {CPU: cores}}});
            // A node that is gone needs nothing.
            let _ = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(capacity)).await;
            if sky.next() == Weather::Stillborn {
                let broken = json!({"metadata": {"annotations": {FAIL: "never-ready"}}});
                let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(broken)).await;
            }
        }
    }
}

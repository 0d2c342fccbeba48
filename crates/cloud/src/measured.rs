//! How long the calls to a cloud take and how they fail, for every controller that makes them.

use std::sync::Arc;
use std::time::Duration;

use api::names::metrics as names;
use api::names::{labels, values};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::{NodeClassKind, Provider};
use cluster::instance_types::InstanceType;
use cluster::volumes::Unsupported;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::metrics::Registry;
use tokio::time::Instant;

use crate::error::Error;
use crate::provider::{CloudProvider, Instance, RegistrationHook, RepairPolicy};

/// A cloud whose calls are counted and timed.
pub struct Measured {
    inner: Arc<dyn CloudProvider>,
    metrics: Registry,
}

impl std::fmt::Debug for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measured").field("provider", &self.inner.provider()).finish_non_exhaustive()
    }
}

impl Measured {
    /// Counts and times the calls of a cloud.
    pub fn new(inner: Arc<dyn CloudProvider>, metrics: Registry) -> Self {
        Self { inner, metrics }
    }

    /// `pool` is the NodePool that a failure concerns; empty if none or unknown.
    async fn call<T>(
        &self,
        method: &'static str,
        pool: &str,
        call: BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        let (controller, provider) = (runtime::controller::current(), self.inner.name());
        let start = Instant::now();
        let result = call.await;
        let seconds = start.elapsed().as_secs_f64();
        self.metrics.observe(&names::CLOUDPROVIDER_DURATION, &[controller, method, provider], seconds);
        if let Err(error) = &result {
            let labels = [controller, method, provider, error.label(), pool];
            self.metrics.add(&names::CLOUDPROVIDER_ERRORS, &labels, 1.0);
        }
        result
    }
}

fn pool_of(claim: &NodeClaim) -> &str {
    let labels = claim.metadata.labels.as_ref();
    labels.and_then(|all| all.get(labels::NODEPOOL)).map_or("", String::as_str)
}

impl CloudProvider for Measured {
    fn provider(&self) -> Provider {
        self.inner.provider()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn instances_are_nodes(&self) -> bool {
        self.inner.instances_are_nodes()
    }

    fn node_classes(&self) -> Vec<NodeClassKind> {
        self.inner.node_classes()
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        self.call(values::METHOD_CREATE, pool_of(claim), self.inner.create(claim)).boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        self.call(values::METHOD_DELETE, pool_of(claim), self.inner.delete(claim)).boxed()
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        self.call(values::METHOD_GET, "", self.inner.get(provider_id)).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        self.call(values::METHOD_LIST, "", self.inner.list()).boxed()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        self.call(values::METHOD_GET_INSTANCE_TYPES, name, self.inner.instance_types(pool)).boxed()
    }

    fn listed_instance_types<'a>(
        &'a self,
        pool: &'a NodePool,
    ) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        self.call(values::METHOD_GET_INSTANCE_TYPES, name, self.inner.listed_instance_types(pool)).boxed()
    }

    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.call(values::METHOD_IS_DRIFTED, pool_of(claim), self.inner.drift(claim)).boxed()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.call(values::METHOD_REBOOT, pool_of(claim), self.inner.reboot(claim, operation)).boxed()
    }

    fn launch_timeout(&self) -> Duration {
        self.inner.launch_timeout()
    }

    fn unsupported_volumes(&self) -> Unsupported {
        self.inner.unsupported_volumes()
    }

    fn liveness(&self) -> Result<(), String> {
        self.inner.liveness()
    }

    fn registration_hooks(&self) -> &[Box<dyn RegistrationHook>] {
        self.inner.registration_hooks()
    }
}

#[cfg(test)]
mod tests;

//! A cloud whose instance types are corrected by NodeOverlays.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::{NodeClassKind, Provider};
use cluster::instance_types::InstanceType;
use cluster::overlays::{InForce, share};
use cluster::volumes::Unsupported;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::error::Error;
use crate::provider::{CloudProvider, Instance, RegistrationHook, RepairPolicy};

/// The overlays that are in force. Clones share them. Nothing is in force before the first evaluation, and until
/// then nobody knows what any pool can choose from.
#[derive(Clone, Debug)]
pub struct Overlays(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    in_force: Arc<InForce>,
    /// What they made of lists that are still in use.
    applied: Vec<Applied>,
}

#[derive(Debug)]
struct Applied {
    pool: Box<str>,
    of: Weak<[InstanceType]>,
    /// Nothing if the list stays as it is, so that it does not keep itself in use.
    result: Option<Arc<[InstanceType]>>,
}

impl Overlays {
    /// No overlays, and no pools that were looked at.
    pub fn new(provider: Provider) -> Self {
        let in_force = Arc::new(InForce::nothing(provider));
        Self(Arc::new(Mutex::new(Inner { in_force, applied: Vec::new() })))
    }

    /// Puts other overlays in force. Returns whether they differ from those that were: if not, what they made of
    /// lists stays as it is.
    pub fn replace(&self, in_force: InForce) -> bool {
        let mut inner = self.0.lock();
        if *inner.in_force == in_force {
            return false;
        }
        *inner = Inner { in_force: Arc::new(in_force), applied: Vec::new() };
        true
    }

    /// The types of a pool with corrected prices and capacities. Asked again with the same list, the answer is the
    /// same list, and pools for which it comes to the same share one.
    pub fn apply(&self, pool: &str, types: &Arc<[InstanceType]>) -> Result<Arc<[InstanceType]>, Error> {
        let in_force = {
            let inner = self.0.lock();
            let known = inner.applied.iter().find(|known| &*known.pool == pool && known.is_of(types));
            if let Some(known) = known {
                return Ok(Arc::clone(known.result.as_ref().unwrap_or(types)));
            }
            Arc::clone(&inner.in_force)
        };
        // There may be thousands of types, so this is not done while others wait.
        let result = in_force.apply(pool, types).ok_or_else(|| Error::Unevaluated(pool.to_owned()))?;
        let mut inner = self.0.lock();
        inner.applied.retain(|known| known.of.strong_count() > 0);
        let alike = inner.applied.iter().filter(|known| known.is_of(types));
        let result = share(alike.filter_map(|known| known.result.as_ref()), result);
        // Others may be in force by now.
        if Arc::ptr_eq(&inner.in_force, &in_force) {
            let changed = (!Arc::ptr_eq(&result, types)).then(|| Arc::clone(&result));
            inner.applied.push(Applied { pool: pool.into(), of: Arc::downgrade(types), result: changed });
        }
        Ok(result)
    }
}

impl Applied {
    fn is_of(&self, types: &Arc<[InstanceType]>) -> bool {
        self.of.upgrade().is_some_and(|of| Arc::ptr_eq(&of, types))
    }
}

/// A cloud whose instance types are corrected by NodeOverlays.
pub struct Overlaid {
    inner: Arc<dyn CloudProvider>,
    overlays: Overlays,
}

impl std::fmt::Debug for Overlaid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlaid").field("provider", &self.inner.provider()).finish_non_exhaustive()
    }
}

impl Overlaid {
    /// Corrects the types of a cloud by the overlays that are in force.
    pub fn new(inner: Arc<dyn CloudProvider>, overlays: Overlays) -> Self {
        Self { inner, overlays }
    }

    async fn corrected(&self, pool: &NodePool) -> Result<Arc<[InstanceType]>, Error> {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let listed = self
            .inner
            .instance_types(pool)
            .await
            .map_err(|source| Error::InstanceTypes { pool: name.to_owned(), source: Box::new(source) })?;
        self.overlays.apply(name, &listed)
    }
}

impl CloudProvider for Overlaid {
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
        self.inner.create(claim)
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
        self.corrected(pool).boxed()
    }

    fn listed_instance_types<'a>(
        &'a self,
        pool: &'a NodePool,
    ) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        self.inner.listed_instance_types(pool)
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

//! What the core asks of the cloud.

use std::sync::Arc;
use std::time::Duration;

use api::azure::AKSNodeClass;
use api::names::events::azure::NODE_CLASS_RESOLUTION_ERROR;
use api::names::labels;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cloud::{CloudProvider, Error, Instance, RepairPolicy};
use cluster::instance_types::InstanceType;
use cluster::objects::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::events::About;

use super::classes::Unresolved;
use super::launch::label;
use super::{Azure, Inner};
use crate::drift::{self, Facts};
use crate::machine::machine_of_vm;
use crate::repair;
use crate::vm::vm_name_of;

/// How long prices may be locked before the process counts as dead. Nothing that holds the lock waits for anything.
const PATIENCE: Duration = Duration::from_secs(1);

impl Inner {
    /// What a NodePool can choose from. That its NodeClass is missing is an error: nothing may be taken to be gone.
    pub(crate) fn pool_types(&self, pool: &NodePool) -> Result<Arc<[InstanceType]>, Error> {
        let class =
            self.pool_class(pool).map_err(|error| Error::Other(format!("resolving node class, {error}")))?;
        self.types(&class).map_err(|error| Error::Other(error.to_string()))
    }

    /// The NodeClass of a NodePool; whoever looks after the pool is told if there is none.
    fn pool_class(&self, pool: &NodePool) -> Result<Arc<AKSNodeClass>, Unresolved> {
        self.class(&pool.spec.template.spec.node_class_ref.name).inspect_err(|error| {
            if error.is_absent() {
                let name = pool.metadata.name.as_deref().unwrap_or_default();
                let message = "Failed resolving NodeClass";
                let event = &NODE_CLASS_RESOLUTION_ERROR;
                self.setup.events.publish(event, About::object(pool), message, &[name]);
            }
        })
    }

    async fn drifted(&self, claim: &NodeClaim) -> Result<Option<String>, Error> {
        let id = claim.status.as_ref().map_or("", |status| status.provider_id.as_str());
        let (pool, nodes): (Option<Arc<NodePool>>, Vec<Arc<Node>>) = {
            let state = self.setup.cluster.read();
            let pool = label(claim, labels::NODEPOOL).and_then(|name| state.node_pools.named(name)).cloned();
            let nodes = if id.is_empty() { Vec::new() } else { state.nodes_of(id).cloned().collect() };
            (pool, nodes)
        };
        let Some(class) = pool.and_then(|pool| self.pool_class(&pool).ok()) else { return Ok(None) };
        let nodes: Vec<&Node> = nodes.iter().map(|node| &**node).collect();
        let kubelet_identity = &self.setup.settings.kubelet_identity_client_id;
        let facts = Facts { class: &class, claim, nodes: &nodes, kubelet_identity };
        let reason = drift::of_claim(&facts).map_err(|error| Error::Other(error.to_string()))?;
        if reason.is_some() || !drift::is_machine(claim) {
            return Ok(reason.map(str::to_owned));
        }
        let name = vm_name_of(id).unwrap_or_default();
        let pool = &self.setup.settings.aks_machines_pool_name;
        let Some(machine) = machine_of_vm(name, pool) else { return Ok(None) };
        let found =
            self.aks_machine(machine).await.map_err(|error| super::instances::not_found(&error, name))?;
        let status = found.properties.and_then(|properties| properties.status);
        let action = status.and_then(|status| status.drift_action);
        Ok(drift::of_machine(action.as_deref()).map(str::to_owned))
    }
}

impl CloudProvider for Azure {
    fn provider(&self) -> Provider {
        Provider::Azure
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        self.0.launch(claim).boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        self.0.delete_of_claim(claim).boxed()
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async move { self.0.instance(provider_id).await.map(|found| self.0.as_claim(&found)) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async move { Ok(self.0.instances().await?.iter().map(|found| self.0.as_claim(found)).collect()) }
            .boxed()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        async move { self.0.pool_types(pool) }.boxed()
    }

    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.0.drifted(claim).boxed()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        repair::policies()
    }

    fn liveness(&self) -> Result<(), String> {
        // Everything that is decided looks at prices: should somebody never let go of them, nothing happens any more.
        let lock = self.0.known.try_lock_for(PATIENCE).map(drop);
        lock.ok_or_else(|| format!("what is known of prices was locked for {} s", PATIENCE.as_secs()))
    }

    fn reboot<'a>(&'a self, _: &'a NodeClaim, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        // No policy asks for it.
        async { Err(Error::RebootNotImplemented) }.boxed()
    }
}

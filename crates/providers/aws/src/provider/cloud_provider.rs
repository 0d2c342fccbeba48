//! What the core asks of the cloud.

use std::sync::Arc;

use api::names::events::aws as events;
use api::names::labels::{self, aws};
use api::names::reasons::aws as reasons;
use api::names::tags::aws as tags;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cloud::{CloudProvider, Error, Instance, RegistrationHook, RepairPolicy};
use cluster::instance_types::InstanceType;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::events::About;

use super::classes::Unresolved;
use super::{Aws, Inner};
use crate::instance::{Machine, drift, node_claim, provider_id};
use crate::node_class::Class;
use crate::repair;

fn id_of(provider_id: &str) -> Result<&str, Error> {
    provider_id::instance_id(provider_id).ok_or_else(|| {
        Error::NotFound(format!("provider ID {provider_id:?} is not that of an instance of EC2"))
    })
}

fn claimed_id(claim: &NodeClaim) -> Result<&str, Error> {
    id_of(claim.status.as_ref().map_or("", |status| &status.provider_id))
}

fn label<'a>(claim: &'a NodeClaim, key: &str) -> Option<&'a str> {
    claim.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

impl Inner {
    /// An instance as a claim, with as much as is known of its NodeClass.
    async fn as_claim(&self, machine: &Machine) -> NodeClaim {
        let now = self.setup.clock.now();
        let object = machine.tags.get(tags::NODE_CLASS).and_then(|name| self.class(name).ok());
        let group = match &object {
            Some(object) => self.placement_group(object).await.unwrap_or_default(),
            None => None,
        };
        let cel = self.setup.settings.node_class_cel;
        let class = object.as_deref().and_then(|object| Class::new(object, group.as_ref(), cel).ok());
        let types = object.as_deref().and_then(|object| self.types(object, group.as_ref()).ok());
        let instance_type =
            types.as_deref().and_then(|all| all.iter().find(|each| each.name == machine.instance_type));
        node_claim(machine, instance_type, class.as_ref(), now)
    }

    async fn remove(&self, claim: &NodeClaim) -> Result<(), Error> {
        let result = match self.shifted_or_fresh(claimed_id(claim)?).await {
            Ok(machine) => self.terminate(&machine).await,
            Err(error) => Err(error),
        };
        if let (Err(Error::NotFound(_)), Some(id)) = (&result, label(claim, aws::CAPACITY_RESERVATION_ID)) {
            self.known.lock().reservations.terminated(id);
        }
        result
    }

    /// An instance as EC2 sees it, unless it is in a zone that nothing is asked about.
    pub(crate) async fn shifted_or_fresh(&self, id: &str) -> Result<Machine, Error> {
        match self.machines.known(id).filter(|machine| self.is_shifted(machine)) {
            Some(machine) => Ok(machine),
            None => self.fresh_machine(id).await,
        }
    }

    /// What a NodePool can choose from; nothing if its NodeClass is missing.
    pub(crate) async fn pool_types(&self, pool: &NodePool) -> Result<Arc<[InstanceType]>, Error> {
        let name = &pool.spec.template.spec.node_class_ref.name;
        let object = match self.class(name) {
            Ok(object) => object,
            Err(error @ Unresolved::Missing(_)) => {
                let pool_name = pool.metadata.name.as_deref().unwrap_or_default();
                let message = format!("Failed resolving NodeClass, {error}");
                self.setup.events.publish(
                    &events::NODE_CLASS_UNRESOLVED,
                    About::object(pool),
                    message,
                    &[pool_name],
                );
                return Ok(Arc::from([]));
            }
            Err(error) => return Err(Error::Other(error.to_string())),
        };
        let group = self.placement_group(&object).await.map_err(|error| Error::Other(error.to_string()))?;
        self.types(&object, group.as_ref()).map_err(|error| Error::Other(error.to_string()))
    }

    async fn drifted(&self, claim: &NodeClaim) -> Result<Option<String>, Error> {
        let pool = label(claim, labels::NODEPOOL).and_then(|name| {
            let state = self.setup.cluster.read();
            state.node_pools.named(name).map(|_| ())
        });
        let (Some(()), Ok(object)) = (pool, self.class(&claim.spec.node_class_ref.name)) else {
            return Ok(None);
        };
        let other = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
        let group = self.placement_group(&object).await.map_err(|error| other(&error))?;
        let cel = self.setup.settings.node_class_cel;
        let class = Class::new(&object, group.as_ref(), cel).map_err(|error| other(&error))?;
        let types = self.types(&object, group.as_ref()).map_err(|error| other(&error))?;
        let annotations = object.metadata.annotations.as_ref();
        let reason = drift::of_claim(&class, annotations, claim, &types, &self.sets);
        if let Some(reason) = reason.map_err(|error| other(&error))? {
            return Ok(Some(reason.to_owned()));
        }
        let id = claimed_id(claim)?;
        let of = |machine: &Machine| drift::of_machine(&class, claim, machine).map_err(|error| other(&error));
        let mut machine = self.machine(id).await?;
        if machine.security_groups.is_empty() {
            // A launch does not tell which it got.
            machine = self.shifted_or_fresh(id).await?;
        }
        let mut reason = of(&machine)?;
        if reason == Some(reasons::CAPACITY_RESERVATION_DRIFT) {
            reason = of(&self.shifted_or_fresh(id).await?)?;
        }
        Ok(reason.map(str::to_owned))
    }

    async fn boot(&self, claim: &NodeClaim, operation: &str) -> Result<(), Error> {
        let ids = [claimed_id(claim)?.to_owned()];
        if !self.rebooted.lock().insert(operation.to_owned()) {
            return Ok(());
        }
        let ec2 = &self.setup.services.ec2;
        let result = self.counted("ec2:RebootInstances", ec2.reboot_instances(&ids)).await;
        result.map_err(|error| {
            self.rebooted.lock().remove(operation);
            match error {
                error if error.is_not_found() => Error::NotFound(error.to_string()),
                error if error.is_unauthorized() => Error::RebootFailed(error.to_string()),
                error => Error::Other(error.to_string()),
            }
        })
    }
}

impl CloudProvider for Aws {
    fn provider(&self) -> Provider {
        Provider::Aws
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        self.0.launch(claim).boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        self.0.remove(claim).boxed()
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async move {
            let machine = self.0.machine(id_of(provider_id)?).await?;
            Ok(self.0.as_claim(&machine).await)
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async move {
            let mut all = Vec::new();
            for machine in self.0.all_machines().await? {
                all.push(self.0.as_claim(&machine).await);
            }
            Ok(all)
        }
        .boxed()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        self.0.pool_types(pool).boxed()
    }

    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.0.drifted(claim).boxed()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        repair::policies()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.0.boot(claim, operation).boxed()
    }

    fn registration_hooks(&self) -> &[Box<dyn RegistrationHook>] {
        self.0.hooks.get().map_or(&[], Vec::as_slice)
    }
}

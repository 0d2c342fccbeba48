//! Machines that exist: reading, deleting and changing them, whichever of Azure's interfaces made them.

use std::sync::Arc;

use api::azure::AKSNodeClassSpec;
use api::names::tags::azure as tag_names;
use api::nodeclaim::NodeClaim;
use cloud::Error;

use super::Inner;
use super::deletion::{self, Deletion};
use super::interface::is_reserved;
use super::launch::claim_name;
use crate::arm;
use crate::arm::types::nic::TagsPatch;
use crate::arm::types::vm::{Identity, VirtualMachine, VirtualMachinePatch};
use crate::in_place::{Change, Goal, change};
use crate::machine::{self, claim_of, machine_of_vm};
use crate::tags;
use crate::unavailable::Asked;
use crate::vm::{self, BILLING_EXTENSION, COMMAND_EXTENSION, Instance, Unreadable, vm_name, vm_name_of};

fn other(error: &dyn std::fmt::Display) -> Error {
    Error::Other(error.to_string())
}

/// All machines. What is wrong with one never hides the others, and it is there nevertheless: a machine that is left
/// out would look like one that is gone.
fn readable<T>(
    all: &[T],
    read: impl Fn(&T) -> Result<Instance, Unreadable>,
    unreadable: impl Fn(&T) -> Option<Instance>,
) -> Vec<Instance> {
    let told = |each: &T| match read(each) {
        Ok(instance) => Some(instance),
        Err(error) => {
            tracing::error!(error = %error, "failed to read a machine");
            unreadable(each)
        }
    };
    all.iter().filter_map(told).collect()
}

impl Inner {
    /// All virtual machines of this cluster that are no AKS machines.
    pub(crate) async fn virtual_machines(&self) -> Result<Vec<Instance>, Error> {
        let found = self.setup.client.virtual_machines(&self.setup.settings.node_resource_group).await;
        let found = found.map_err(|error| Error::Other(format!("listing virtual machines, {error}")))?;
        let location = &self.setup.settings.location;
        Ok(readable(&found, |each| vm::instance(each, location), vm::unreadable))
    }

    /// All machines of this cluster.
    pub(crate) async fn instances(&self) -> Result<Vec<Instance>, Error> {
        let (vms, machines) = futures::join!(self.virtual_machines(), self.aks_machines());
        let mut all = vms?;
        let machines = machines.map_err(|error| Error::Other(format!("listing AKS machines, {error}")))?;
        let location = &self.setup.settings.location;
        all.extend(readable(&machines, |each| machine::instance(each, location), machine::unreadable));
        Ok(all)
    }

    /// The names of all network interfaces of this cluster that belong to no AKS machine.
    pub(crate) async fn interfaces(&self) -> Result<Vec<String>, Error> {
        let found = self.setup.client.network_interfaces(&self.setup.settings.node_resource_group).await;
        let found = found.map_err(|error| Error::Other(format!("listing network interfaces, {error}")))?;
        let names = found.into_iter().filter_map(|each| each.id);
        Ok(names.map(|id| last_part(&id).to_lowercase()).collect())
    }

    /// The machine with a provider ID.
    pub(crate) async fn instance(&self, provider_id: &str) -> Result<Instance, Error> {
        let name = vm_name_of(provider_id).ok_or_else(|| {
            Error::NotFound(format!("provider ID {provider_id:?} is not that of a virtual machine of Azure"))
        })?;
        if let Some(own) = machine_of_vm(name, &self.setup.settings.aks_machines_pool_name) {
            let found = self.aks_machine(own).await;
            let found = found.map_err(|error| not_found(&error, name))?;
            return machine::instance(&found, &self.setup.settings.location).map_err(|error| other(&error));
        }
        let found = self.setup.client.virtual_machine(&self.setup.settings.node_resource_group, name).await;
        let found = found.map_err(|error| not_found(&error, name))?;
        vm::instance(&found, &self.setup.settings.location).map_err(|error| other(&error))
    }

    /// Starts to delete the machine of a claim; [`Error::NotFound`] once it is gone.
    pub(crate) async fn delete_of_claim(self: &Arc<Self>, claim: &NodeClaim) -> Result<(), Error> {
        let annotations = claim.metadata.annotations.as_ref();
        let machine =
            annotations.and_then(|all| all.get(api::names::annotations::azure::AKS_MACHINE_RESOURCE_ID));
        if let Some(id) = machine {
            return self.delete_aks_machine(last_part(id)).await;
        }
        let id = claim.status.as_ref().map_or("", |status| status.provider_id.as_str());
        if id.is_empty() {
            return self.delete_by_name(claim).await;
        }
        let name = vm_name_of(id).ok_or_else(|| {
            Error::NotFound(format!("provider ID {id:?} is not that of a virtual machine of Azure"))
        })?;
        self.delete_vm(name).await
    }

    /// Starts to delete a machine.
    pub(crate) async fn delete_instance(self: &Arc<Self>, instance: &Instance) -> Result<(), Error> {
        if let Some(id) = &instance.machine_id {
            return self.delete_aks_machine(last_part(id)).await;
        }
        let name = vm_name_of(&instance.provider_id);
        self.delete_vm(name.ok_or_else(|| Error::NotFound(instance.provider_id.clone()))?).await
    }

    /// Starts to delete a virtual machine, and waits for its end in the background.
    pub(crate) async fn delete_vm(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        let Some(marker) = Deletion::begin(self, name) else { return Ok(()) };
        let Some((running, found)) = self.begin_delete_vm(name).await? else { return Ok(()) };
        let (inner, name) = (Arc::clone(self), name.to_owned());
        tokio::spawn(async move {
            match deletion::end(running).await {
                Ok(()) => {
                    if !has_failed(&found)
                        && let Ok(instance) = vm::instance(&found, &inner.setup.settings.location)
                    {
                        inner.uses_less(&instance);
                    }
                    // It goes with the machine, unless somebody else made it.
                    inner.delete_interface_if_there(interface_of(&found, &name)).await;
                }
                Err(error) => {
                    tracing::error!(vmName = name, error = %error, "failed to delete virtual machine");
                }
            }
            drop(marker);
        });
        Ok(())
    }

    /// Starts to delete what was made for a claim that never learned of its machine: it is looked for by the name that
    /// it would have, and only deleted if it is this claim's.
    async fn delete_by_name(self: &Arc<Self>, claim: &NodeClaim) -> Result<(), Error> {
        let (client, settings) = (&self.setup.client, &self.setup.settings);
        let name = claim_name(claim);
        let own = vm_name(name);
        let is_of_cluster = |found: &VirtualMachine| {
            let tags = found.tags.as_ref();
            tags.and_then(|tags| tags.get(tag_names::CLUSTER)) == Some(&settings.cluster_name)
        };
        match client.virtual_machine(&settings.node_resource_group, &own).await {
            Ok(found) if is_of_cluster(&found) => return self.delete_vm(&own).await,
            Err(error) if !error.is_not_found() => return Err(other(&error)),
            _ => {}
        }
        if self.machine_pool().is_some()
            && let Ok(own) = machine::machine_name(name)
        {
            match self.fresh_aks_machine(&own).await {
                Ok(found) if claim_of(&found) == Some(name) => return self.delete_aks_machine(&own).await,
                Err(error) if !error.is_machine_not_found() => return Err(other(&error)),
                _ => {}
            }
        }
        Err(Error::NotFound(format!("no machine was made for NodeClaim {name:?}")))
    }

    /// Asks that a virtual machine be deleted; nothing if it is on its way out already.
    async fn begin_delete_vm(
        &self,
        name: &str,
    ) -> Result<Option<(arm::Running<()>, Box<VirtualMachine>)>, Error> {
        let (client, group) = (&self.setup.client, &self.setup.settings.node_resource_group);
        let found = client.virtual_machine(group, name).await.map_err(|error| not_found(&error, name))?;
        if state(&found) == Some("Deleting") {
            return Ok(None);
        }
        match client.delete_virtual_machine(group, name).await {
            Ok(running) => Ok(Some((running, Box::new(found)))),
            Err(error) => Err(not_found(&error, name)),
        }
    }

    /// Notes that a machine that was deleted uses nothing any more, so that others can have its processors before usages
    /// are read again.
    pub(super) fn uses_less(&self, instance: &Instance) {
        let now = self.setup.clock.now();
        let mut known = self.known.lock();
        let Some(sku) = known.catalogue.get(&instance.size).cloned() else { return };
        known.quota.deleted(&instance.name, &Asked::of(&sku, &instance.zone, instance.capacity_type), now);
    }

    /// Deletes a network interface, and waits for it.
    pub(crate) async fn delete_interface(&self, name: &str) -> Result<(), arm::Error> {
        let group = &self.setup.settings.node_resource_group;
        match self.setup.client.delete_network_interface(group, name).await {
            Ok(running) => running.done().await,
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a network interface. What is left over is collected later.
    pub(crate) async fn delete_interface_if_there(&self, name: &str) {
        let Err(error) = self.delete_interface(name).await else { return };
        if is_reserved(&error) {
            tracing::info!(
                "networkInterface" = name,
                "Azure keeps the network interface for a while, it goes later"
            );
        } else {
            tracing::error!("networkInterface" = name, error = %error, "failed to delete network interface");
        }
    }

    /// What the machine of a claim should have of what is changed without replacing it.
    pub(crate) fn goal(&self, class: &AKSNodeClassSpec, claim: &NodeClaim, is_machine: bool) -> Goal {
        let identities = if is_machine { &[][..] } else { &self.setup.settings.node_identities };
        Goal {
            identities: identities.iter().cloned().collect(),
            tags: tags::of_claim(&self.setup.settings, class, claim),
        }
    }

    /// Brings a virtual machine in line with its goal.
    pub(crate) async fn bring_vm_in_line(&self, name: &str, goal: &Goal) -> Result<(), Error> {
        let (client, group) = (&self.setup.client, &self.setup.settings.node_resource_group);
        let found = client.virtual_machine(group, name).await.map_err(|error| not_found(&error, name))?;
        let known = found.identity.iter().filter_map(|identity| identity.user_assigned_identities.as_ref());
        let known: Vec<&str> = known.flat_map(|all| all.keys().map(String::as_str)).collect();
        let change = change(goal, known, &found.tags.clone().unwrap_or_default());
        if change.is_empty() {
            return Ok(());
        }
        let interface = interface_of(&found, name);
        self.change_vm(name, interface, change).await.map_err(|error| other(&error))
    }

    /// Changes a virtual machine, and what has the same tags before it: should that fail, the machine still says
    /// that something is to be done.
    async fn change_vm(&self, name: &str, interface: &str, change: Change) -> Result<(), arm::Error> {
        let (client, group) = (&self.setup.client, &self.setup.settings.node_resource_group);
        if change.tags.is_some() {
            let tags = &TagsPatch { tags: change.tags.clone() };
            client.patch_network_interface(group, interface, tags).await?;
            let extensions = self.extensions().into_iter().map(|extension| async move {
                match client.patch_extension(group, name, extension, tags).await {
                    Err(error) if error.is_not_found() && extension == BILLING_EXTENSION => Ok(()),
                    begun => begun?.done().await,
                }
            });
            futures::future::try_join_all(extensions).await?;
        }
        let added = change.identities.into_iter().map(|id| (id, serde_json::Map::new())).collect();
        let identity: Option<Identity> =
            Some(added).filter(|added: &std::collections::BTreeMap<_, _>| !added.is_empty()).map(|added| {
                Identity { kind: Some("UserAssigned".to_owned()), user_assigned_identities: Some(added) }
            });
        let patch = VirtualMachinePatch { tags: change.tags, identity };
        client.patch_virtual_machine(group, name, &patch).await?.done().await
    }

    /// The extensions that machines have.
    fn extensions(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if self.setup.settings.provision_mode == crate::settings::ProvisionMode::BootstrappingClient {
            all.push(COMMAND_EXTENSION);
        }
        if self.setup.client.environment().has_billing_extension() {
            all.push(BILLING_EXTENSION);
        }
        all
    }
}

fn state(machine: &VirtualMachine) -> Option<&str> {
    machine.properties.as_ref()?.provisioning_state.as_deref()
}

/// Whether a machine was never made, so that it does not count against a quota.
fn has_failed(machine: &VirtualMachine) -> bool {
    state(machine) == Some("Failed")
}

/// The name of a machine's network interface: usually its own.
fn interface_of<'a>(machine: &'a VirtualMachine, name: &'a str) -> &'a str {
    let profile = machine.properties.as_ref().and_then(|properties| properties.network_profile.as_ref());
    let all = profile.and_then(|profile| profile.network_interfaces.as_deref()).unwrap_or_default();
    all.iter().find_map(|interface| interface.id.as_deref()).map_or(name, last_part)
}

/// The last part of a resource ID.
pub(super) fn last_part(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// What it means that a machine could not be read.
pub(super) fn not_found(error: &arm::Error, name: &str) -> Error {
    if error.is_machine_not_found() {
        Error::NotFound(format!("no machine {name:?}"))
    } else {
        Error::Other(error.to_string())
    }
}

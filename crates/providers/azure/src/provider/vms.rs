//! Virtual machines that we make ourselves: a network interface, the machine, and what runs on it afterwards.
//!
//! ```text
//!   GET VM ─► there: taken over
//!      │
//!      └─► PUT NIC (stale pools: once more with new ones) ─► PUT VM ─► accepted ─┬─ background: VM, then extensions
//!                                                                └─ refused      └─ claim
//! ```

use std::sync::Arc;

use api::names::labels;
use api::names::metrics::azure::{IMAGE_SELECTION_ERRORS, VM_CREATE_FAILURE, VM_CREATE_START};
use api::names::values::{AZURE_PHASE_ASYNC, AZURE_PHASE_SYNC};
use api::nodeclaim::NodeClaim;
use cloud::Error;
use futures::FutureExt as _;

use super::Inner;
use super::background::Made;
use super::interface::{Interface, is_reserved};
use super::launch::{Chosen, Order, Refused, claim_name, create, label};
use super::machines::refused;
use crate::arm;
use crate::arm::types::extension::Extension;
use crate::arm::types::nic::NetworkInterface;
use crate::arm::types::vm::VirtualMachine;
use crate::bootstrap::{scriptless, service};
use crate::images;
use crate::launch::Launch;
use crate::launch_errors::{Refusal, meaning, metric_code};
use crate::network::{SecurityGroup, SubnetId, subnet_id};
use crate::settings::ProvisionMode;
use crate::vm::{self, BILLING_EXTENSION, COMMAND_EXTENSION, Instance, is_stale_pool, vm_name};

/// What a machine does when it starts.
struct Start {
    custom_data: String,
    /// What is run on it afterwards, besides what AKS bills by.
    command: Option<String>,
}

impl Inner {
    /// The virtual machine that was made for a claim already, by an earlier process perhaps.
    pub(super) async fn existing_vm(&self, claim: &NodeClaim) -> Result<Option<Made>, Error> {
        let name = vm_name(claim_name(claim));
        match self.setup.client.virtual_machine(&self.setup.settings.node_resource_group, &name).await {
            Ok(found) => {
                let instance = vm::instance(&found, &self.setup.settings.location)
                    .map_err(|error| create(&error.to_string()))?;
                if instance.is_deleting {
                    return Err(create(&format!(
                        "virtual machine {name:?} is being deleted, waiting for its end"
                    )));
                }
                let end = async { Ok(()) }.boxed();
                Ok(Some(Made { instance, end }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(create(&error.to_string())),
        }
    }

    /// Makes a virtual machine; done as soon as Azure has accepted it.
    pub(super) async fn make_vm(
        self: &Arc<Self>,
        order: &Order<'_>,
        interface: &mut Interface,
    ) -> Result<Made, Refused> {
        let entirely = |error: &dyn std::fmt::Display| Refused::Entirely(create(&error.to_string()));
        let chosen = order.chosen;
        let subnet: SubnetId = subnet_id(&self.setup.settings, order.class.spec.vnet_subnet_id.as_deref())
            .parse()
            .map_err(|error| entirely(&error))?;
        let group = self.security_group().await.map_err(|error| entirely(&error))?;
        let launch = self.launch_of(order, &subnet, &group);
        let image = images::choose(order.class.images, &chosen.instance_type).map_err(|error| {
            let family = images::Family::of(&order.class).label();
            self.setup.metrics.add(&IMAGE_SELECTION_ERRORS, &[family], 1.0);
            entirely(&error)
        })?;
        let (start, made) =
            futures::join!(self.start(&launch, &image.id), self.make_interface(&launch, interface));
        let (start, ()) = (start?, made.map_err(|error| entirely(&error))?);
        let name = vm_name(order.name());
        let labels = metric_labels(order.claim, chosen, &image.id);
        let (running, body) = loop {
            let nic = self.interface_id(interface.name());
            let body = vm::virtual_machine(
                &launch,
                &vm::Start { network_interface: &nic, image_id: &image.id, custom_data: &start.custom_data },
            );
            let error = match self.put_vm(&name, &body, &labels).await {
                Ok(running) => break (running, body),
                Err(error) => error,
            };
            if is_reserved(&error) && interface.give_up() {
                let (vm, next) = (&name, interface.name());
                tracing::info!(
                    vmName = vm,
                    networkInterface = next,
                    "Azure keeps the network interface, making another"
                );
                self.make_interface(&launch, interface).await.map_err(|error| entirely(&error))?;
                continue;
            }
            // What was refused may be there nevertheless, in the way of the next one, and takes its interface along;
            // what Azure did not look at is not, and asking for more would not help.
            if !error.is_throttled() && self.delete_refused_vm(&name).await {
                interface.is_doubtful();
            }
            return Err(self.understood(chosen, &error));
        };
        let instance = self.instance_of(&name, body)?;
        let command = start.command.map(|command| (COMMAND_EXTENSION, vm::command(&launch, &command)));
        let billing = self.bills().then(|| (BILLING_EXTENSION, vm::billing(&launch)));
        let extensions = command.into_iter().chain(billing).collect();
        let end =
            Self::finish_vm(Arc::clone(self), name, running, extensions, chosen.clone(), labels).boxed();
        Ok(Made { instance, end })
    }

    /// Asks for a virtual machine, and counts it.
    async fn put_vm(
        &self,
        name: &str,
        body: &VirtualMachine,
        labels: &[String; 5],
    ) -> Result<arm::Running<VirtualMachine>, arm::Error> {
        self.setup.metrics.add(&VM_CREATE_START, &labels.each_ref().map(String::as_str), 1.0);
        let group = &self.setup.settings.node_resource_group;
        let put = self.setup.client.put_virtual_machine(group, name, body).await;
        put.inspect_err(|error| {
            self.count_failure(labels, AZURE_PHASE_SYNC, error);
            self.note_denial(error);
        })
    }

    fn launch_of<'a>(
        &'a self,
        order: &Order<'a>,
        subnet: &'a SubnetId,
        group: &'a SecurityGroup,
    ) -> Launch<'a> {
        Launch {
            cluster: self.launch_cluster(),
            class: order.class,
            claim: order.claim,
            choice: order.chosen.choice(),
            subnet,
            security_group: group,
        }
    }

    /// Whether AKS bills machines by something that runs on them.
    fn bills(&self) -> bool {
        self.setup.client.environment().has_billing_extension()
    }

    /// What the machine does when it starts: as we say, or as a service of AKS does.
    async fn start(&self, launch: &Launch<'_>, image_id: &str) -> Result<Start, Refused> {
        let entirely = |error: &dyn std::fmt::Display| Refused::Entirely(create(&error.to_string()));
        let settings = &self.setup.settings;
        if settings.provision_mode != ProvisionMode::BootstrappingClient {
            let custom_data = scriptless::custom_data(launch).map_err(|error| entirely(&error))?;
            return Ok(Start { custom_data, command: None });
        }
        let request = service::request(launch, image_id).map_err(|error| entirely(&error))?;
        let server = &settings.nodebootstrapping_server_url;
        let cluster =
            (self.setup.settings.cluster_resource_group.as_str(), self.setup.settings.cluster_name.as_str());
        let answer = self.setup.client.node_bootstrapping(server, cluster, &request).await;
        let answer = answer.map_err(|error| entirely(&error))?;
        let found = service::answer(answer, self.setup.settings.kubelet_bootstrap_token.reveal())
            .map_err(|error| entirely(&error))?;
        Ok(Start { custom_data: found.custom_data, command: Some(found.command) })
    }

    /// Makes the network interface, unless it is there as it should be. Where it names pools of load balancers that
    /// are gone, it is tried once more with those that are there.
    async fn make_interface(&self, launch: &Launch<'_>, interface: &mut Interface) -> Result<(), arm::Error> {
        let pools = self.pools().await?;
        let body = vm::network_interface(launch, &pools.all);
        if interface.is(&body) {
            return Ok(());
        }
        let refused = match self.put_interface(&body, interface).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !is_stale_pool(&refused, &pools.all) {
            return Err(refused);
        }
        let newer = self.newer_pools(&pools).await?;
        let body = vm::network_interface(launch, &newer.all);
        self.put_interface(&body, interface).await
    }

    async fn put_interface(
        &self,
        body: &NetworkInterface,
        interface: &mut Interface,
    ) -> Result<(), arm::Error> {
        let group = &self.setup.settings.node_resource_group;
        let running = match self.setup.client.put_network_interface(group, interface.name(), body).await {
            Ok(running) => running,
            Err(error) => {
                // What Azure did not look at is as it was; else something may be there now.
                if !error.is_throttled() {
                    interface.is_doubtful();
                }
                self.note_denial(&error);
                return Err(error);
            }
        };
        interface.is_doubtful();
        running.done().await?;
        interface.made(body);
        Ok(())
    }

    fn interface_id(&self, name: &str) -> String {
        let (subscription, group) =
            (&self.setup.settings.subscription_id, &self.setup.settings.node_resource_group);
        format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/networkInterfaces/{name}"
        )
    }

    /// The machine that was accepted, without asking for it.
    fn instance_of(&self, name: &str, mut body: VirtualMachine) -> Result<Instance, Refused> {
        let (subscription, group) =
            (&self.setup.settings.subscription_id, &self.setup.settings.node_resource_group);
        body.id = Some(format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}"
        ));
        body.name = Some(name.to_owned());
        let mut instance = vm::instance(&body, &self.setup.settings.location)
            .map_err(|error| Refused::Entirely(create(&error.to_string())))?;
        instance.created = Some(self.setup.clock.now());
        Ok(instance)
    }

    /// Deletes a virtual machine that was refused; whether it may have been there.
    async fn delete_refused_vm(&self, name: &str) -> bool {
        let group = &self.setup.settings.node_resource_group;
        let deleted = match self.setup.client.delete_virtual_machine(group, name).await {
            Ok(running) if running.found_nothing() => return false,
            Ok(running) => running.done().await,
            Err(error) => Err(error),
        };
        match deleted {
            Err(error) if error.is_not_found() => return false,
            Err(error) => {
                tracing::error!(vmName = name, error = %error, "failed to delete a virtual machine that was refused");
            }
            Ok(()) => {}
        }
        true
    }

    /// Waits for a machine and for what runs on it.
    async fn finish_vm(
        self: Arc<Self>,
        name: String,
        running: arm::Running<VirtualMachine>,
        extensions: Vec<(&'static str, Extension)>,
        chosen: Chosen,
        labels: [String; 5],
    ) -> Result<(), Error> {
        if let Err(error) = running.done().await {
            self.count_failure(&labels, AZURE_PHASE_ASYNC, &error);
            return Err(match self.understood(&chosen, &error) {
                Refused::Offering(error) | Refused::Entirely(error) => error,
            });
        }
        let (client, group) = (&self.setup.client, &self.setup.settings.node_resource_group);
        for (extension, body) in &extensions {
            let done = match client.put_extension(group, &name, extension, body).await {
                Ok(running) => running.done().await,
                Err(error) => Err(error),
            };
            done.map_err(|error| create(&format!("creating extension {extension}, {error}")))?;
        }
        Ok(())
    }

    /// What a refusal means; what it says about what Azure has is noted.
    fn understood(&self, chosen: &Chosen, error: &arm::Error) -> Refused {
        let refusal = Refusal::from(error);
        match meaning(&refusal, &chosen.attempt()) {
            Some(meaning) => {
                self.note(chosen, &refusal, &meaning);
                refused(meaning.error)
            }
            None => Refused::Entirely(create(&error.to_string())),
        }
    }

    fn count_failure(&self, labels: &[String; 5], phase: &str, error: &arm::Error) {
        let [image, size, zone, kind, pool] = labels.each_ref().map(String::as_str);
        let series = [image, size, zone, kind, pool, phase, metric_code(&error.code)];
        self.setup.metrics.add(&VM_CREATE_FAILURE, &series, 1.0);
    }
}

/// Image, size, zone, capacity type and NodePool, as metrics name them.
fn metric_labels(claim: &NodeClaim, chosen: &Chosen, image: &str) -> [String; 5] {
    [
        image.to_owned(),
        chosen.sku.name.clone(),
        chosen.zone.clone(),
        chosen.capacity_type.clone(),
        label(claim, labels::NODEPOOL).unwrap_or_default().to_owned(),
    ]
}

//! Machines of the AKS Machine API: AKS makes the virtual machine, its disk and its network interface.

use std::sync::Arc;

use api::names::metrics::azure::IMAGE_SELECTION_ERRORS;
use api::names::tags::azure as tag_names;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use futures::FutureExt as _;
use tokio::time::Instant;

use super::Inner;
use super::background::Made;
use super::deletion::{self, Deletion};
use super::instances::not_found;
use super::launch::{Chosen, Order, Refused, claim_name, create};
use crate::arm::types::machine::{ErrorDetail, Machine};
use crate::arm::{self, PutMachine};
use crate::images;
use crate::in_place::Goal;
use crate::launch_errors::{self, meaning, meaning_for_machine};
use crate::machine::batch::Item;
use crate::machine::cache::{LONGEST_WAIT, LOOK};
use crate::machine::{
    self, MachineLaunch, Progress, body, check_existing, claim_of, machine_name, machine_of_vm, progress,
    root_cause,
};
use crate::settings::ProvisionMode;
use crate::tags;
use crate::vm::Instance;

impl Inner {
    /// The machine that was made for a claim already, by an earlier process perhaps.
    pub(super) async fn existing_machine(self: &Arc<Self>, claim: &NodeClaim) -> Result<Option<Made>, Error> {
        let name = machine_name(claim_name(claim)).map_err(|error| create(&error.to_string()))?;
        let machine = match self.aks_machine(&name).await {
            Ok(machine) => machine,
            Err(error) if error.is_machine_not_found() => return Ok(None),
            Err(error) => {
                // If it is there after all, making it again says so.
                tracing::warn!(aksMachineName = name, error = %error, "failed to look for an AKS machine");
                return Ok(None);
            }
        };
        // If it is somebody else's, nobody touches it.
        let instance = check_existing(&machine, claim_name(claim), &self.setup.settings.location)
            .map_err(|error| create(&error.to_string()))?;
        if let Progress::Failed(_) | Progress::Over(_) = progress(&machine) {
            let chosen = self.chosen_of(&instance);
            let error = self.failed_machine(chosen.as_ref(), &machine);
            self.delete_machine_if_there(&name).await;
            return Err(error);
        }
        let end = Self::wait_for_machine(Arc::clone(self), name, self.chosen_of(&instance)).boxed();
        Ok(Some(Made { instance, end }))
    }

    /// What was once chosen for a machine, as far as its size is still known.
    fn chosen_of(&self, instance: &Instance) -> Option<Chosen> {
        let sku = self.known.lock().catalogue.get(&instance.size).cloned()?;
        Some(Chosen {
            instance_type: cluster::instance_types::InstanceType::default(),
            sku,
            zone: instance.zone.clone(),
            capacity_type: instance.capacity_type.to_owned(),
            ultra_ssd: instance.ultra_ssd,
        })
    }

    /// Makes a machine; done as soon as AKS has accepted it.
    pub(super) async fn make_machine(self: &Arc<Self>, order: &Order<'_>) -> Result<Made, Refused> {
        let entirely = |error: &dyn std::fmt::Display| Refused::Entirely(create(&error.to_string()));
        let name = machine_name(order.name()).map_err(|error| entirely(&error))?;
        let chosen = order.chosen;
        let image = images::choose(order.class.images, &chosen.instance_type).map_err(|error| {
            let family = images::Family::of(&order.class).label();
            self.setup.metrics.add(&IMAGE_SELECTION_ERRORS, &[family], 1.0);
            entirely(&error)
        })?;
        let launch = MachineLaunch {
            settings: &self.setup.settings,
            class: order.class,
            claim: order.claim,
            choice: chosen.choice(),
            image_id: &image.id,
        };
        let wanted = body(&launch).map_err(|error| entirely(&error))?;
        let running = match self.put_machine(&name, wanted).await {
            Ok(running) => running,
            Err(error) => {
                // What was refused may be there nevertheless, in the way of the next one; what Azure did not even look at
                // is not, and asking for more would not help.
                if !error.is_throttled() {
                    self.delete_own_machine(&name, order.name()).await;
                }
                let refusal = launch_errors::Refusal::from(&error);
                let Some(meaning) = meaning_for_machine(&refusal, &chosen.attempt()) else {
                    return Err(entirely(&error));
                };
                self.note(chosen, &refusal, &meaning);
                return Err(refused(meaning.error));
            }
        };
        // Only the machine itself knows its virtual machine.
        let made = match self.fresh_aks_machine(&name).await {
            Ok(machine) => machine,
            Err(error) => {
                self.delete_own_machine(&name, order.name()).await;
                return Err(entirely(&error));
            }
        };
        if let Progress::Failed(_) | Progress::Over(_) = progress(&made) {
            let error = self.failed_machine(Some(chosen), &made);
            self.delete_machine_if_there(&name).await;
            return Err(refused(error));
        }
        let instance = match machine::instance(&made, &self.setup.settings.location) {
            Ok(instance) => instance,
            Err(error) => {
                self.delete_machine_if_there(&name).await;
                return Err(entirely(&error));
            }
        };
        let (inner, chosen) = (Arc::clone(self), chosen.clone());
        let end = match running {
            Some(running) => async move {
                let Err(error) = running.done().await else { return Ok(()) };
                // The machine says more than the operation.
                match inner.fresh_aks_machine(&name).await {
                    Ok(machine) if matches!(progress(&machine), Progress::Failed(_) | Progress::Over(_)) => {
                        Err(inner.failed_machine(Some(&chosen), &machine))
                    }
                    _ => Err(create(&error.to_string())),
                }
            }
            .boxed(),
            None => Self::wait_for_machine(inner, name, Some(chosen)).boxed(),
        };
        Ok(Made { instance, end })
    }

    /// Asks for a machine, alone or together with others. What can be waited for, if anything.
    async fn put_machine(
        &self,
        name: &str,
        machine: Machine,
    ) -> Result<Option<arm::Running<Machine>>, arm::Error> {
        if self.setup.settings.provision_mode == ProvisionMode::AksMachineApiHeaderBatch {
            let item = Item::new(&self.batches.pool_path(), name, machine);
            self.batches.put(item).await?;
            return Ok(None);
        }
        let pool = self.machine_pool().unwrap_or_default();
        let running = self.setup.client.put_machine(&pool, name, &machine, &PutMachine::default()).await?;
        Ok(Some(running))
    }

    /// Looks among all machines how far one is, until it is made or will never be.
    async fn wait_for_machine(self: Arc<Self>, name: String, chosen: Option<Chosen>) -> Result<(), Error> {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_WAIT {
            tokio::time::sleep(LOOK).await;
            match self.listed_aks_machine(&name).await {
                Ok(None) => return Err(create(&format!("AKS machine {name:?} is gone"))),
                Ok(Some(machine)) => match progress(&machine) {
                    Progress::Continues => {}
                    Progress::Done => return Ok(()),
                    Progress::Failed(_) | Progress::Over(_) => {
                        return Err(self.failed_machine(chosen.as_ref(), &machine));
                    }
                    Progress::Unclear(why) => tracing::warn!(aksMachineName = name, why, "looking again"),
                },
                Err(error) => {
                    tracing::warn!(aksMachineName = name, error = %error, "failed to look at AKS machines");
                }
            }
        }
        let minutes = LONGEST_WAIT.as_secs() / 60;
        Err(create(&format!("AKS machine {name:?} was not made within {minutes} minutes")))
    }

    /// Why a machine failed, and what that says about what Azure has.
    fn failed_machine(&self, chosen: Option<&Chosen>, machine: &Machine) -> Error {
        let detail = match progress(machine) {
            Progress::Failed(detail) => detail,
            Progress::Over(why) | Progress::Unclear(why) => return create(&why),
            Progress::Continues | Progress::Done => return create("the AKS machine did not fail"),
        };
        let cause = root_cause(&detail);
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let ErrorDetail { code, message, .. } = cause;
        let (code, message) = (text(code), text(message));
        let refusal = launch_errors::Refusal { code: &code, text: &message };
        let known = chosen.and_then(|chosen| Some((chosen, meaning(&refusal, &chosen.attempt())?)));
        match known {
            Some((chosen, meaning)) => {
                self.note(chosen, &refusal, &meaning);
                meaning.error
            }
            None => create(&format!("provisioning AKS machine failed, {code}: {message}")),
        }
    }

    /// Starts to delete a machine, and waits for its end in the background.
    pub(super) async fn delete_aks_machine(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        let Some(pool) = self.machine_pool() else {
            return Err(Error::NotFound(format!("no machine {name:?}: AKS machines are not managed")));
        };
        let Some(marker) = Deletion::begin(self, name) else { return Ok(()) };
        let begun = async {
            let found = self.fresh_aks_machine(name).await.map_err(|error| not_found(&error, name))?;
            let state =
                found.properties.as_ref().and_then(|properties| properties.provisioning_state.as_deref());
            if state == Some("Deleting") {
                return Ok(None);
            }
            let names = [name.to_owned()];
            let running = self.setup.client.delete_machines(&pool, &names).await;
            running.map(|running| Some((running, Box::new(found)))).map_err(|error| not_found(&error, name))
        }
        .await;
        self.forget_aks_machine(name);
        let Some((running, found)) = begun? else { return Ok(()) };
        let (inner, name) = (Arc::clone(self), name.to_owned());
        tokio::spawn(async move {
            match deletion::end(running).await {
                Ok(()) => {
                    if !matches!(progress(&found), Progress::Failed(_))
                        && let Ok(instance) = machine::instance(&found, &inner.setup.settings.location)
                    {
                        inner.uses_less(&instance);
                    }
                }
                Err(error) => {
                    tracing::error!(aksMachineName = name, error = %error, "failed to delete AKS machine");
                }
            }
            inner.forget_aks_machine(&name);
            drop(marker);
        });
        Ok(())
    }

    /// Deletes what may have been made for a claim, unless it is that of another one whose name is shortened to the
    /// same.
    async fn delete_own_machine(&self, name: &str, claim: &str) {
        match self.fresh_aks_machine(name).await {
            Ok(found) if claim_of(&found) == Some(claim) => self.delete_machine_if_there(name).await,
            Ok(_) => {
                tracing::warn!(
                    aksMachineName = name,
                    NodeClaim = claim,
                    "leaving the AKS machine of another"
                );
            }
            Err(error) if error.is_machine_not_found() => {}
            // Should it be there, the next try finds it.
            Err(error) => {
                tracing::warn!(aksMachineName = name, error = %error, "failed to look for an AKS machine");
            }
        }
    }

    /// Deletes a machine that came to nothing, so that its name can be used again.
    async fn delete_machine_if_there(&self, name: &str) {
        let Some(pool) = self.machine_pool() else { return };
        let deleted = match self.setup.client.delete_machines(&pool, &[name.to_owned()]).await {
            Ok(running) => running.done().await,
            Err(error) => Err(error),
        };
        self.forget_aks_machine(name);
        match deleted {
            Err(error) if !error.is_machine_not_found() => {
                tracing::error!(aksMachineName = name, error = %error, "failed to delete AKS machine");
            }
            _ => {}
        }
    }

    /// Brings a machine in line with its goal.
    pub(crate) async fn bring_machine_in_line(&self, vm: &str, goal: &Goal) -> Result<(), Error> {
        let unknown = || Error::NotFound(format!("virtual machine {vm:?} is none of an AKS machine"));
        let name = machine_of_vm(vm, &self.setup.settings.aks_machines_pool_name).ok_or_else(unknown)?;
        let pool = self.machine_pool().ok_or_else(unknown)?;
        let mut machine = self.fresh_aks_machine(name).await.map_err(|error| not_found(&error, name))?;
        let properties = machine.properties.get_or_insert_default();
        let known = properties.tags.clone().unwrap_or_default();
        let claim = known.get(tag_names::AKS_MACHINE_NODE_CLAIM).cloned().unwrap_or_default();
        let wanted = tags::of_machine(goal.tags.clone(), &claim);
        if known == wanted {
            return Ok(());
        }
        properties.tags = Some(wanted);
        let if_match = properties.e_tag.clone().filter(|tag| !tag.is_empty());
        let with = PutMachine { batch: None, if_match };
        let put = self.setup.client.put_machine(&pool, name, &machine, &with).await;
        self.forget_aks_machine(name);
        let done = match put {
            Ok(running) => running.done().await,
            Err(error) => Err(error),
        };
        done.map_err(|error| Error::Other(error.to_string()))
    }
}

/// Whether another offering may help: not where the whole region is used up.
pub(super) fn refused(error: Error) -> Refused {
    match error {
        Error::InsufficientCapacity(_) => Refused::Entirely(error),
        error => Refused::Offering(error),
    }
}

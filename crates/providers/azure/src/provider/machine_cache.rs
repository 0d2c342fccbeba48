//! AKS machines as they were a moment ago, so that many who look at them together ask once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::tags::azure as tags;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Inner;
use super::instances::last_part;
use crate::arm::types::machine::Machine;
use crate::arm::{Error, MachinePool};

/// How long a machine counts as it was seen.
const KEPT: Duration = Duration::from_secs(30);

/// Machines as they were seen.
#[derive(Debug, Default)]
pub(crate) struct MachineCache {
    seen: Mutex<BTreeMap<String, (Instant, Machine)>>,
    /// When all were seen together.
    listed: Mutex<Option<Instant>>,
    /// Only one asks at a time; the others take over what it got.
    asking: tokio::sync::Mutex<()>,
}

impl MachineCache {
    /// A machine, unless it was seen too long ago.
    fn fresh(&self, name: &str) -> Option<Machine> {
        let seen = self.seen.lock();
        seen.get(name).filter(|(at, _)| at.elapsed() < KEPT).map(|(_, machine)| machine.clone())
    }

    fn is_listed(&self) -> bool {
        self.listed.lock().is_some_and(|at| at.elapsed() < KEPT)
    }

    fn note(&self, machine: &Machine) {
        if let Some(name) = name_of(machine) {
            self.seen.lock().insert(name.to_owned(), (Instant::now(), machine.clone()));
        }
    }

    /// Forgets a machine that is being changed.
    pub(crate) fn forget(&self, name: &str) {
        self.seen.lock().remove(name);
    }
}

/// The name of a machine within its pool.
fn name_of(machine: &Machine) -> Option<&str> {
    machine.id.as_deref().or(machine.name.as_deref()).map(last_part)
}

impl Inner {
    /// Where machines are; nothing if they are none of our business.
    pub(super) fn machine_pool(&self) -> Option<MachinePool> {
        let settings = &self.setup.settings;
        let is_ours = settings.provision_mode.is_machine_api() || settings.manage_existing_aks_machines;
        let pool = &settings.aks_machines_pool_name;
        (is_ours && !pool.is_empty()).then(|| MachinePool {
            group: self.setup.settings.cluster_resource_group.clone(),
            cluster: self.setup.settings.cluster_name.clone(),
            pool: pool.clone(),
        })
    }

    /// All machines that belong to NodePools, as they are now.
    pub(super) async fn aks_machines(&self) -> Result<Vec<Machine>, Error> {
        let Some(pool) = self.machine_pool() else { return Ok(Vec::new()) };
        let all = match self.setup.client.machines(&pool).await {
            Err(error) if error.is_not_found() => Vec::new(),
            all => all?,
        };
        let now = Instant::now();
        *self.machines.seen.lock() =
            all.iter().filter_map(|each| Some((name_of(each)?.to_owned(), (now, each.clone())))).collect();
        *self.machines.listed.lock() = Some(now);
        let is_ours = |machine: &Machine| {
            let tags = machine.properties.as_ref().and_then(|properties| properties.tags.as_ref());
            tags.is_some_and(|all| all.contains_key(tags::NODEPOOL))
        };
        Ok(all.into_iter().filter(is_ours).collect())
    }

    /// A machine as it was a moment ago.
    pub(super) async fn aks_machine(&self, name: &str) -> Result<Machine, Error> {
        match self.machines.fresh(name) {
            Some(machine) => Ok(machine),
            None => self.fresh_aks_machine(name).await,
        }
    }

    /// A machine as it is now.
    pub(super) async fn fresh_aks_machine(&self, name: &str) -> Result<Machine, Error> {
        let Some(pool) = self.machine_pool() else {
            let unknown = Error::new("GET machines", "NotFound", "AKS machines are not managed");
            return Err(Error { status: Some(404), ..unknown });
        };
        let machine = self.setup.client.machine(&pool, name).await?;
        self.machines.note(&machine);
        Ok(machine)
    }

    /// A machine among all machines, which are asked for together; none if it is not there.
    pub(super) async fn listed_aks_machine(self: &Arc<Self>, name: &str) -> Result<Option<Machine>, Error> {
        if !self.machines.is_listed() {
            let _asking = self.machines.asking.lock().await;
            if !self.machines.is_listed() {
                self.aks_machines().await?;
            }
        }
        if let Some(machine) = self.machines.fresh(name) {
            return Ok(Some(machine));
        }
        // It may have come since.
        match self.fresh_aks_machine(name).await {
            Ok(machine) => Ok(Some(machine)),
            Err(error) if error.is_machine_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

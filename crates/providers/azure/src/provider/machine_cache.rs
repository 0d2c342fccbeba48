//! AKS machines as they were a moment ago, so that many who look at them together ask once.

use api::names::tags::azure as tags;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::Inner;
use crate::arm::types::machine::Machine;
use crate::arm::{Error, MachinePool};
use crate::machine::cache::{Cache, LOOK, Looked};

/// Machines as they were seen.
#[derive(Debug, Default)]
pub(crate) struct MachineCache {
    known: Mutex<Cache>,
    /// When all were asked for last and there was no answer.
    failed: Mutex<Option<Timestamp>>,
    /// Only one asks at a time; the others take over what it got.
    asking: tokio::sync::Mutex<()>,
}

impl MachineCache {
    /// A machine, unless it was seen too long ago.
    fn fresh(&self, name: &str, now: Timestamp) -> Option<Machine> {
        match self.known.lock().look(name, now) {
            Looked::Fresh(machine) => Some(machine.clone()),
            Looked::Absent | Looked::Stale => None,
        }
    }

    fn is_listed(&self, now: Timestamp) -> bool {
        self.known.lock().is_fresh(now)
    }

    /// Whether AKS could not list its machines a moment ago.
    fn has_just_failed(&self, now: Timestamp) -> bool {
        let patience = SignedDuration::try_from(LOOK).unwrap_or(SignedDuration::MAX);
        self.failed.lock().is_some_and(|failed| now.duration_since(failed) < patience)
    }
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
        let asked = self.setup.clock.now();
        let all = match self.setup.client.machines(&pool).await {
            Err(error) if error.is_not_found() => Vec::new(),
            all => all?,
        };
        self.machines.known.lock().replace(all.clone(), asked);
        let is_ours = |machine: &Machine| {
            let tags = machine.properties.as_ref().and_then(|properties| properties.tags.as_ref());
            tags.is_some_and(|all| all.contains_key(tags::NODEPOOL))
        };
        Ok(all.into_iter().filter(is_ours).collect())
    }

    /// A machine as it was a moment ago.
    pub(super) async fn aks_machine(&self, name: &str) -> Result<Machine, Error> {
        match self.machines.fresh(name, self.setup.clock.now()) {
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
        let asked = self.setup.clock.now();
        let machine = self.setup.client.machine(&pool, name).await?;
        self.machines.known.lock().put(machine.clone(), asked);
        Ok(machine)
    }

    /// Forgets a machine that is being changed.
    pub(super) fn forget_aks_machine(&self, name: &str) {
        self.machines.known.lock().forget(name, self.setup.clock.now());
    }

    /// A machine among all machines, which are asked for together; none if it is not there.
    pub(super) async fn listed_aks_machine(&self, name: &str) -> Result<Option<Machine>, Error> {
        self.list_aks_machines().await?;
        if let Some(machine) = self.machines.fresh(name, self.setup.clock.now()) {
            return Ok(Some(machine));
        }
        // It may have come since.
        match self.fresh_aks_machine(name).await {
            Ok(machine) => Ok(Some(machine)),
            Err(error) if error.is_machine_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sees to it that all machines were seen a moment ago. However many wait for that, one of them asks; should AKS
    /// not answer, the others do not ask as well.
    async fn list_aks_machines(&self) -> Result<(), Error> {
        let now = || self.setup.clock.now();
        if self.machines.is_listed(now()) {
            return Ok(());
        }
        let _asking = self.machines.asking.lock().await;
        if self.machines.is_listed(now()) {
            return Ok(());
        }
        if self.machines.has_just_failed(now()) {
            return Err(Error::new("GET machines", "", "AKS could not list its machines a moment ago"));
        }
        let listed = self.aks_machines().await;
        *self.machines.failed.lock() = listed.is_err().then(now);
        listed.map(drop)
    }
}

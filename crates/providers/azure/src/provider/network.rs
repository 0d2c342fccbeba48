//! What surrounds machines: the security group of the cluster and the pools of its load balancers, asked for once and
//! kept.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Inner;
use crate::arm::Error;
use crate::arm::types::SubResource;
use crate::network::{SecurityGroup, backend_pools, security_group};

/// How long pools of load balancers are kept.
const POOLS_KEPT: Duration = Duration::from_hours(2);

/// What is known of the surroundings of machines.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    group: Mutex<Option<Arc<SecurityGroup>>>,
    pools: Mutex<Option<Pools>>,
    /// Only one asks at a time; the others take over what it got.
    asking: tokio::sync::Mutex<()>,
}

/// Pools of load balancers, as they were at some time.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pub(crate) all: Arc<[SubResource]>,
    /// Tells those that were asked for at different times apart.
    pub(crate) generation: u64,
    until: Instant,
}

impl Surroundings {
    fn known_pools(&self) -> Option<Pools> {
        self.pools.lock().clone().filter(|pools| pools.until > Instant::now())
    }
}

impl Inner {
    /// The security group that AKS made for the cluster. It never changes.
    pub(crate) async fn security_group(&self) -> Result<Arc<SecurityGroup>, String> {
        if let Some(known) = self.surroundings.group.lock().clone() {
            return Ok(known);
        }
        let _asking = self.surroundings.asking.lock().await;
        if let Some(known) = self.surroundings.group.lock().clone() {
            return Ok(known);
        }
        let group = &self.setup.settings.node_resource_group;
        let all =
            self.setup.client.network_security_groups(group).await.map_err(|error| error.to_string())?;
        let found = security_group(&all, group).map_err(|error| error.to_string())?;
        Ok(Arc::clone(self.surroundings.group.lock().insert(Arc::new(found))))
    }

    /// The pools that network interfaces join.
    pub(crate) async fn pools(&self) -> Result<Pools, Error> {
        if let Some(known) = self.surroundings.known_pools() {
            return Ok(known);
        }
        let _asking = self.surroundings.asking.lock().await;
        if let Some(known) = self.surroundings.known_pools() {
            return Ok(known);
        }
        self.ask_for_pools().await
    }

    /// Newer pools than those that turned out to be wrong. Somebody may have asked for them already.
    pub(crate) async fn newer_pools(&self, than: &Pools) -> Result<Pools, Error> {
        let _asking = self.surroundings.asking.lock().await;
        match self.surroundings.known_pools() {
            Some(known) if known.generation != than.generation => Ok(known),
            _ => self.ask_for_pools().await,
        }
    }

    async fn ask_for_pools(&self) -> Result<Pools, Error> {
        let all = self.setup.client.load_balancers(&self.setup.settings.node_resource_group).await?;
        let mut known = self.surroundings.pools.lock();
        let generation = known.as_ref().map_or(0, |pools| pools.generation + 1);
        let pools = Pools { all: backend_pools(&all).into(), generation, until: Instant::now() + POOLS_KEPT };
        Ok(known.insert(pools).clone())
    }
}

//! What is known of AWS between two answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::instance::SubnetAddresses;
use crate::instance_type::Discovered;
use crate::instance_type::memory::Learned;
use crate::port::{InstanceTypeInfo, PlacementGroup, PlacementGroupQuery, TypeInZone};
use crate::prices::Prices;
use crate::reservation_counts::ReservationCounts;
use crate::user_data::ClusterInfo;
use crate::version::KubernetesVersion;
use crate::zonal_shift::ShiftedZones;

/// What is known of AWS between two answers.
#[derive(Debug)]
pub struct Known {
    pub(crate) discovered: Arc<Discovered>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) learned: Arc<Learned>,
    /// Changes with everything that instance types follow from, apart from what has its own numbers.
    pub(crate) version: u64,
    /// How many instances can still be launched into reservations.
    pub reservations: ReservationCounts,
    /// Zones that are avoided.
    pub shifted: ShiftedZones,
    /// How many addresses subnets have left.
    pub addresses: SubnetAddresses,
    /// Placement groups that were found.
    pub placement_groups: BTreeMap<PlacementGroupQuery, PlacementGroup>,
    /// The version of the cluster.
    pub kubernetes: Option<KubernetesVersion>,
    /// The cluster that nodes join.
    pub cluster: Arc<ClusterInfo>,
    /// The cluster's name for other services of AWS.
    pub(crate) cluster_arn: Option<String>,
}

impl Known {
    /// Nothing but the prices of the table.
    pub(super) fn new(region: &str, cluster: ClusterInfo) -> Self {
        Self {
            discovered: Arc::default(),
            prices: Arc::new(Prices::of_region(region)),
            learned: Arc::default(),
            version: 0,
            reservations: ReservationCounts::default(),
            shifted: ShiftedZones::default(),
            addresses: SubnetAddresses::default(),
            placement_groups: BTreeMap::new(),
            kubernetes: None,
            cluster: Arc::new(cluster),
            cluster_arn: None,
        }
    }

    /// Takes over what EC2 says about instance types.
    pub fn set_discovered(&mut self, types: Vec<InstanceTypeInfo>, places: Vec<TypeInZone>) {
        let discovered = Discovered::new(types, places);
        if *self.discovered != discovered {
            self.discovered = Arc::new(discovered);
            self.version += 1;
        }
    }

    /// Changes prices; `change` says whether it changed any.
    pub fn change_prices(&mut self, change: impl FnOnce(&mut Prices) -> bool) -> bool {
        let changed = change(Arc::make_mut(&mut self.prices));
        self.version += u64::from(changed);
        changed
    }

    /// Changes the memory that was learned; `change` says whether it changed anything.
    pub fn change_learned(&mut self, change: impl FnOnce(&mut Learned) -> bool) -> bool {
        let changed = change(Arc::make_mut(&mut self.learned));
        self.version += u64::from(changed);
        changed
    }

    /// What EC2 says about instance types.
    pub fn discovered(&self) -> &Arc<Discovered> {
        &self.discovered
    }

    /// What instances cost.
    pub fn prices(&self) -> &Arc<Prices> {
        &self.prices
    }

    /// The memory that was learned.
    pub fn learned(&self) -> &Arc<Learned> {
        &self.learned
    }
}

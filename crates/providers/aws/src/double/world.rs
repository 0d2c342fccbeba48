//! What there is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use crate::port::{
    CallerIdentity, CapacityReservation, Cluster, Decision, Image, Instance, InstanceProfile, InstanceStatus,
    InstanceTypeInfo, Message, NewLaunchTemplate, PlacementGroup, QueueAttributes, Quota, SecurityGroup,
    SpotPrice, Subnet, Tags, TypeInZone, ZonalShifts,
};
use crate::prices::Prices;

/// Something with tags.
#[derive(Clone, Debug, Default)]
pub struct Stored<T> {
    /// What it is.
    pub item: T,
    /// Its tags.
    pub tags: Tags,
}

/// What there is. Everything can be changed by tests.
#[derive(Debug)]
pub struct World {
    /// How long an answer takes.
    pub latency: Duration,
    /// The instance types.
    pub types: Vec<InstanceTypeInfo>,
    /// Where they are.
    pub places: Vec<TypeInZone>,
    /// What EC2 really charges by use.
    pub prices: Prices,
    /// The spot prices.
    pub spot_prices: Vec<SpotPrice>,
    /// Products of the price list: shared machines, then bare metal.
    pub products: [Vec<String>; 2],
    /// The subnets; launches take addresses.
    pub subnets: Vec<Stored<Subnet>>,
    /// The security groups.
    pub security_groups: Vec<Stored<SecurityGroup>>,
    /// The images; an owner of `self` and `amazon` alike.
    pub images: Vec<Stored<Image>>,
    /// Published values.
    pub parameters: BTreeMap<String, String>,
    /// The capacity reservations; launches fill them.
    pub reservations: Vec<Stored<CapacityReservation>>,
    /// The placement groups.
    pub placement_groups: Vec<PlacementGroup>,
    /// The launch templates, by ID.
    pub templates: BTreeMap<String, NewLaunchTemplate>,
    /// The instances, by ID.
    pub instances: BTreeMap<String, Instance>,
    /// How often each instance is still not described although it is there.
    pub hidden: BTreeMap<String, u32>,
    /// How often instances that will be launched are not described at first.
    pub hide_new_instances: u32,
    /// What there is no capacity of, with the code: instance type, zone and capacity type.
    pub insufficient: BTreeMap<(String, String, String), String>,
    /// Whether errors of launches do not say what they are about.
    pub vague: bool,
    /// How instances are.
    pub statuses: Vec<InstanceStatus>,
    /// The roles.
    pub roles: BTreeSet<String>,
    /// The instance profiles, by name.
    pub profiles: BTreeMap<String, InstanceProfile>,
    /// The tags of instance profiles that were created, by name.
    pub profile_tags: BTreeMap<String, Tags>,
    /// The queue, if there is one.
    pub queue: Option<VecDeque<Message>>,
    /// Until when messages that somebody received are not shown again, by receipt.
    pub invisible: BTreeMap<String, Timestamp>,
    /// What the queue is like; how many messages there are is counted.
    pub queue_attributes: QueueAttributes,
    /// Who asks.
    pub identity: CallerIdentity,
    /// What policies do not allow, by action, for those who ask beforehand.
    pub decisions: BTreeMap<String, Decision>,
    /// How much the account may have.
    pub quotas: Vec<Quota>,
    /// The cluster.
    pub cluster: Cluster,
    /// Zones that are avoided.
    pub shifts: Vec<ZonalShifts>,
    /// Numbers what is created.
    pub(super) created: u64,
    /// When each instance was asked to be booted again.
    pub reboots: Vec<(String, Timestamp)>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            types: Vec::new(),
            places: Vec::new(),
            prices: Prices::of_region("us-east-1"),
            spot_prices: Vec::new(),
            products: [Vec::new(), Vec::new()],
            subnets: Vec::new(),
            security_groups: Vec::new(),
            images: Vec::new(),
            parameters: BTreeMap::new(),
            reservations: Vec::new(),
            placement_groups: Vec::new(),
            templates: BTreeMap::new(),
            instances: BTreeMap::new(),
            hidden: BTreeMap::new(),
            hide_new_instances: 0,
            insufficient: BTreeMap::new(),
            vague: false,
            statuses: Vec::new(),
            roles: BTreeSet::new(),
            profiles: BTreeMap::new(),
            profile_tags: BTreeMap::new(),
            queue: None,
            invisible: BTreeMap::new(),
            queue_attributes: QueueAttributes::default(),
            identity: CallerIdentity {
                account: "111122223333".to_owned(),
                arn: "arn:aws:sts::111122223333:assumed-role/controller/session".to_owned(),
            },
            decisions: BTreeMap::new(),
            quotas: Vec::new(),
            cluster: Cluster::default(),
            shifts: Vec::new(),
            created: 0,
            reboots: Vec::new(),
        }
    }
}

impl World {
    /// A new ID.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.created += 1;
        format!("{prefix}-{:017x}", self.created)
    }

    /// There is no capacity of a type in a zone.
    pub fn lacks(&mut self, instance_type: &str, zone: &str, capacity_type: &str) {
        let place = (instance_type.to_owned(), zone.to_owned(), capacity_type.to_owned());
        self.insufficient.insert(place, "InsufficientInstanceCapacity".to_owned());
    }

    /// A subnet with free addresses in a zone whose ID follows from its last letter.
    pub fn add_subnet(&mut self, id: &str, zone: &str, free: i64, tags: Tags) {
        let item = Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: format!("{zone}-id"),
            available_addresses: free,
        };
        self.subnets.push(Stored { item, tags });
    }

    /// The launch template with a name.
    pub fn template(&self, name: &str) -> Option<&NewLaunchTemplate> {
        self.templates.values().find(|template| template.name == name)
    }

    /// The instances that are not on their way out.
    pub fn running(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values().filter(|instance| !instance.state.is_ending())
    }
}

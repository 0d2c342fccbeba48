//! What most tests begin with: the real instance types, a NodeClass and a claim.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::LazyLock;

use api::aws::EC2NodeClass;
use api::labels::LabelSets;
use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use api::shared::Requirement;
use aws::instance_type::memory::Learned;
use aws::instance_type::{Discovered, Environment, Market, list};
use aws::node_class::Class;
use aws::port::{InstanceTypeInfo, PlacementGroup, PlacementStrategy, Subnet, TypeInZone};
use aws::prices::Prices;
use aws::user_data::ClusterInfo;
use clock::Clock;
use cloud::UnavailableOfferings;
use cluster::instance_types::{InstanceType, Wanted};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

pub(crate) static SETS: LazyLock<LabelSets> = LazyLock::new(|| LabelSets::for_provider(Provider::Aws));

/// Every type in every zone.
pub(crate) static DISCOVERED: LazyLock<Discovered> = LazyLock::new(|| {
    let types: Vec<InstanceTypeInfo> =
        serde_json::from_str(&unpacked(include_bytes!("../data/instance_types.json.gz"))).unwrap();
    let places = types.iter().flat_map(|info| ZONES.iter().map(|zone| (info.name.clone(), *zone)));
    let places = places.map(|(instance_type, zone)| TypeInZone { instance_type, zone: zone.to_owned() });
    let places = places.collect();
    Discovered::new(types, places)
});

pub(crate) fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn info(name: &str) -> InstanceTypeInfo {
    InstanceTypeInfo::clone(DISCOVERED.get(name).unwrap_or_else(|| panic!("there is no {name}")))
}

/// Only some types, in every zone.
pub(crate) fn only(names: &[&str]) -> Discovered {
    let places = names.iter().flat_map(|name| ZONES.iter().map(move |zone| (*name, *zone)));
    let places =
        places.map(|(name, zone)| TypeInZone { instance_type: name.to_owned(), zone: zone.to_owned() });
    Discovered::new(names.iter().map(|name| info(name)).collect(), places.collect())
}

/// A NodeClass of a family with subnets in all zones but the last, and with fields of the spec changed.
pub(crate) fn node_class(family: &str, spec: &Value) -> EC2NodeClass {
    let mut object = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {"name": "default", "uid": "uid-1"},
        "spec": {
            "role": "node-role", "amiFamily": family, "amiSelectorTerms": [{"id": "ami-1"}],
            "subnetSelectorTerms": [{"tags": {"*": "*"}}], "securityGroupSelectorTerms": [{"tags": {"*": "*"}}],
        },
        "status": {
            "subnets": [
                {"id": "subnet-a1", "zone": ZONES[0], "zoneID": "use1-az1"},
                {"id": "subnet-a2", "zone": ZONES[0], "zoneID": "use1-az1"},
                {"id": "subnet-b1", "zone": ZONES[1], "zoneID": "use1-az2"},
            ],
            "securityGroups": [{"id": "sg-1", "name": "one"}, {"id": "sg-2", "name": "two"}],
            "amis": [
                {"id": "ami-amd", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
                {"id": "ami-arm", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]},
            ],
            "instanceProfile": "profile-1",
        },
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().cloned().unwrap_or_default());
    serde_json::from_value(object).unwrap()
}

/// A NodeClass with a capacity reservation for a type in a zone.
pub(crate) fn with_reservation(mut class: EC2NodeClass, reservation: &Value) -> EC2NodeClass {
    let mut all = json!({
        "id": "cr-1", "availabilityZone": ZONES[0], "instanceMatchCriteria": "targeted",
        "instanceType": "m5.large", "ownerID": "123456789012", "reservationType": "default", "state": "active",
    });
    all.as_object_mut().unwrap().extend(reservation.as_object().cloned().unwrap_or_default());
    let status = class.status.as_mut().unwrap();
    status.capacity_reservations.push(serde_json::from_value(all).unwrap());
    class
}

pub(crate) fn class(object: &EC2NodeClass) -> Class<'_> {
    Class::new(object, None, true).unwrap()
}

pub(crate) const ENVIRONMENT: Environment<'static> =
    Environment { region: REGION, vm_memory_overhead: 0.075, reserved_interfaces: 0 };

/// A type of a NodeClass without offerings.
#[track_caller]
pub(crate) fn resolved(object: &EC2NodeClass, name: &str) -> InstanceType {
    resolved_in(object, name, &ENVIRONMENT)
}

#[track_caller]
pub(crate) fn resolved_in(object: &EC2NodeClass, name: &str, environment: &Environment<'_>) -> InstanceType {
    let zones: BTreeSet<String> = ZONES.iter().map(|zone| (*zone).to_owned()).collect();
    aws::instance_type::resolve(&class(object), &info(name), &zones, environment, None).unwrap()
}

/// Everything that changes from minute to minute, at rest.
pub(crate) struct MarketNow {
    pub(crate) prices: Prices,
    pub(crate) overlay_prices: BTreeMap<String, f64>,
    pub(crate) unavailable: UnavailableOfferings,
    pub(crate) shifted_zones: BTreeSet<String>,
    pub(crate) reservation_counts: BTreeMap<String, u32>,
    pub(crate) reserved_capacity: bool,
}

impl Default for MarketNow {
    fn default() -> Self {
        Self {
            prices: Prices::of_region(REGION),
            overlay_prices: BTreeMap::new(),
            unavailable: UnavailableOfferings::new(Clock::starting_at(NOW)),
            shifted_zones: BTreeSet::new(),
            reservation_counts: [("cr-1".to_owned(), 5)].into(),
            reserved_capacity: true,
        }
    }
}

impl MarketNow {
    pub(crate) fn get(&self) -> Market<'_> {
        Market {
            prices: &self.prices,
            overlay_prices: &self.overlay_prices,
            unavailable: &self.unavailable,
            shifted_zones: &self.shifted_zones,
            reservation_counts: &self.reservation_counts,
            reserved_capacity: self.reserved_capacity,
        }
    }

    /// Some types of a NodeClass with their offerings.
    #[track_caller]
    pub(crate) fn types(&self, class: &Class<'_>, names: &[&str]) -> Vec<InstanceType> {
        list(class, &only(names), &ENVIRONMENT, &Learned::default(), &self.get()).unwrap()
    }
}

/// A claim that asks for something: requirements as key, operator, values.
pub(crate) fn claim(requirements: &[(&str, &str, &[&str])]) -> NodeClaim {
    let requirements: Vec<Value> = requirements
        .iter()
        .map(|(key, operator, values)| json!({"key": key, "operator": operator, "values": values}))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "claim-1", "labels": {"karpenter.sh/nodepool": "pool-1", "team": "a"}},
        "spec": {
            "requirements": requirements,
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        },
    }))
    .unwrap()
}

/// A claim that also requests resources.
pub(crate) fn requesting(mut claim: NodeClaim, requests: &[(&str, &str)]) -> NodeClaim {
    for (name, amount) in requests {
        claim.spec.resources.requests.insert((*name).to_owned(), amount.parse().unwrap());
    }
    claim
}

pub(crate) fn wanted(claim: &NodeClaim) -> Wanted<'static> {
    Wanted::new(&claim.spec.requirements, &SETS).unwrap()
}

pub(crate) fn placement_group(strategy: PlacementStrategy, partitions: u32) -> PlacementGroup {
    PlacementGroup {
        id: "pg-1".to_owned(),
        name: "group".to_owned(),
        strategy,
        partitions,
        spread_level: None,
    }
}

pub(crate) fn cluster() -> ClusterInfo {
    ClusterInfo {
        name: "test-cluster".to_owned(),
        endpoint: "https://test-cluster".to_owned(),
        ca_bundle: Some("Y2EtYnVuZGxl".to_owned()),
        cidr: Some("10.0.0.0/16".to_owned()),
        dns: Some("10.0.100.10".parse().unwrap()),
    }
}

pub(crate) fn subnets(free: &[(&str, i64)]) -> Vec<Subnet> {
    let subnet = |(id, free): &(&str, i64)| Subnet {
        id: (*id).to_owned(),
        available_addresses: *free,
        ..Subnet::default()
    };
    free.iter().map(subnet).collect()
}

/// The value of a label; `-` if it is absent, several with bars between them.
pub(crate) fn label(requirements: &[Requirement], key: &str) -> String {
    let found = requirements.iter().find(|each| each.key == key);
    found.map_or_else(
        || "none".to_owned(),
        |each| {
            if each.operator == api::shared::Operator::DoesNotExist {
                "-".to_owned()
            } else {
                each.values.join("|")
            }
        },
    )
}

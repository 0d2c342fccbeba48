//! Instance types for tests: by default for sale in three zones, spot in two of them.

use api::names::labels;
use api::shared::{Operator, Requirement};
use cluster::instance_types::{InstanceType, Offering};
use units::{Quantity, Resources};

use crate::objects::key;

/// Amounts from text: `cpu=4 memory=4Gi`.
pub(crate) fn amounts(text: &str) -> Resources {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("name=amount"));
    pairs.map(|(name, amount)| (name, amount.parse::<Quantity>().expect("an amount"))).collect()
}

fn within(key: &str, values: &[&str]) -> Requirement {
    let operator = if values.is_empty() { Operator::DoesNotExist } else { Operator::In };
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator, values, min_values: None }
}

/// An instance type in the making.
pub(crate) struct Machine {
    type_: InstanceType,
    arch: &'static str,
    systems: &'static str,
    offered: Vec<Offering>,
}

/// An instance type with 4 CPUs, 4Gi and room for 5 pods, unless `has` says otherwise.
pub(crate) fn machine(name: &str, has: &str) -> Machine {
    let mut capacity = amounts("cpu=4 memory=4Gi pods=5");
    for (resource, amount) in &amounts(has) {
        capacity.set(resource.clone(), *amount);
    }
    let type_ = InstanceType {
        name: name.to_owned(),
        capacity,
        overhead: amounts("cpu=100m memory=10Mi"),
        ..InstanceType::default()
    };
    Machine { type_, arch: "amd64", systems: "linux windows darwin", offered: Vec::new() }
}

/// An offering: `z1 spot 0.5`.
pub(crate) fn offering(text: &str) -> Offering {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [zone, capacity_type, price] = parts[..] else { panic!("zone, capacity type and price") };
    Offering {
        requirements: vec![within(labels::ZONE, &[zone]), within(labels::CAPACITY_TYPE, &[capacity_type])],
        price: price.parse().expect("a price"),
        available: true,
        ..Offering::default()
    }
}

impl Machine {
    pub(crate) fn arch(mut self, arch: &'static str) -> Self {
        self.arch = arch;
        self
    }

    pub(crate) fn systems(mut self, systems: &'static str) -> Self {
        self.systems = systems;
        self
    }

    /// Adds an offering: `z1 spot 0.5`. With the first the usual ones are gone.
    pub(crate) fn offered(self, text: &str) -> Self {
        self.with_offering(offering(text))
    }

    pub(crate) fn with_offering(mut self, offering: Offering) -> Self {
        self.offered.push(offering);
        self
    }

    /// What the system keeps of it.
    pub(crate) fn keeps(mut self, overhead: &str) -> Self {
        self.type_.overhead = amounts(overhead);
        self
    }

    pub(crate) fn build(self) -> InstanceType {
        let Self { mut type_, arch, systems, offered } = self;
        let cpus = type_.capacity.amount("cpu").value();
        let gigabytes = type_.capacity.amount("memory").value() / 1_000_000_000;
        type_.offerings = offered;
        if type_.offerings.is_empty() {
            let is_special = type_.capacity.iter().any(|(name, _)| name.as_str().contains("gpu"));
            let price = (cpus + gigabytes + if is_special { 10 } else { 0 }).to_string() + "e-1";
            type_.offerings = ["z1 spot", "z2 spot", "z1 on-demand", "z2 on-demand", "z3 on-demand"]
                .map(|place| offering(&format!("{place} {price}")))
                .into();
        }
        let sold = |key: &str| {
            let all = type_.offerings.iter().filter(|offering| offering.available);
            let all = all.flat_map(|offering| &offering.requirements).filter(|each| each.key == key);
            let mut values: Vec<&str> = all.flat_map(|each| &each.values).map(String::as_str).collect();
            values.sort_unstable();
            values.dedup();
            within(key, &values)
        };
        let is_large = cpus > 4 && gigabytes > 8;
        type_.requirements = vec![
            within(labels::INSTANCE_TYPE, &[&type_.name]),
            within(labels::ARCH, &[arch]),
            within(labels::OS, &systems.split_whitespace().collect::<Vec<_>>()),
            sold(labels::ZONE),
            sold(labels::CAPACITY_TYPE),
            within(key("cpus"), &[&cpus.to_string()]),
            within(key("size"), &[if is_large { "large" } else { "small" }]),
            within(key("exotic"), if is_large { &["optional"] } else { &[] }),
        ];
        type_
    }
}

/// A small, a middle and a large type, two with accelerators, and one for a single pod.
pub(crate) fn usual() -> Vec<InstanceType> {
    vec![
        machine("default", "").build(),
        machine("small", "cpu=2 memory=2Gi").build(),
        machine("gpu-a", "example.com/gpu-a=2").build(),
        machine("gpu-b", "example.com/gpu-b=2").build(),
        machine("arm", "cpu=16 memory=128Gi").arch("arm64").systems("linux windows darwin ios").build(),
        machine("single", "pods=1").build(),
    ]
}

/// Types with 1 to `count` CPUs, twice as many gigabytes, and room for ten pods for each CPU.
pub(crate) fn assorted(count: u32) -> Vec<InstanceType> {
    let type_ = |cpus: u32| {
        machine(&format!("x{cpus}"), &format!("cpu={cpus} memory={}Gi pods={}", 2 * cpus, 10 * cpus)).build()
    };
    (1..=count).map(type_).collect()
}

//! Random instance types in kwok's format.

use serde_json::{Value, json};

use super::features::Feature::{Arm, ExtraResources, UnevenOfferings, Windows};
use super::world::World;

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub(crate) const GPU: &str = "example.com/gpu";

/// An instance type.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) family: &'static str,
    pub(crate) architecture: &'static str,
    pub(crate) os: &'static str,
    pub(crate) cpu: usize,
    pub(crate) memory_gi: usize,
    pub(crate) pods: Option<usize>,
    pub(crate) gpus: usize,
    pub(crate) storage_gi: usize,
    pub(crate) huge_pages_mi: usize,
    /// Zone, capacity type, price.
    pub(crate) offerings: Vec<(String, &'static str, f64)>,
}

impl Type {
    /// What nodes of the type have.
    pub(crate) fn resources(&self) -> Value {
        let mut resources = json!({"cpu": self.cpu.to_string(), "memory": format!("{}Gi", self.memory_gi)});
        if let Some(pods) = self.pods {
            resources["pods"] = json!(pods.to_string());
        }
        if self.gpus > 0 {
            resources[GPU] = json!(self.gpus.to_string());
        }
        if self.storage_gi > 0 {
            resources["ephemeral-storage"] = json!(format!("{}Gi", self.storage_gi));
        }
        if self.huge_pages_mi > 0 {
            resources["hugepages-2Mi"] = json!(format!("{}Mi", self.huge_pages_mi));
        }
        resources
    }

    /// The type as kwok's file has it.
    pub(crate) fn written(&self) -> Value {
        let offerings: Vec<Value> = self
            .offerings
            .iter()
            .map(|(zone, capacity_type, price)| {
                json!({"Price": price, "Available": true, "Requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                    {"key": ZONE, "operator": "In", "values": [zone]}]})
            })
            .collect();
        json!({"name": self.name, "architecture": self.architecture, "operatingSystems": [self.os],
            "resources": self.resources(), "offerings": offerings})
    }
}

/// Makes the zones and types of a cluster.
pub(crate) fn generate(world: &mut World) {
    let zones = world.random.between(1, 4);
    world.zones =
        ["zone-a", "zone-b", "zone-c", "zone-d"][..zones].iter().map(|&zone| zone.to_owned()).collect();
    let count = *world.random.weighted(&[(40, 5), (30, 10), (20, 20), (10, 40)]);
    let mut types: Vec<Type> = Vec::new();
    while types.len() < count {
        let drawn = draw(world);
        if types.iter().all(|known| known.name != drawn.name) {
            types.push(drawn);
        }
    }
    world.types = types;
}

fn draw(world: &mut World) -> Type {
    let (arm, windows) = (world.has(Arm), world.has(Windows));
    let (extra, uneven) = (world.has(ExtraResources), world.has(UnevenOfferings));
    let zones = world.zones.clone();
    let random = &mut world.random;
    let (family, ratio) = *random.pick(&[("c", 2), ("m", 4), ("r", 8), ("t", 4)]);
    let cpu = *random.weighted(&[(15, 1), (25, 2), (25, 4), (20, 8), (10, 16), (5, 32)]);
    let architecture = if arm && random.chance(35) { "arm64" } else { "amd64" };
    let os = if windows && random.chance(25) { "windows" } else { "linux" };
    let gpus = if extra && random.chance(30) { random.between(1, 4) } else { 0 };
    let storage_gi = if extra && random.chance(50) { 20 * random.between(1, 3) } else { 0 };
    let huge_pages_mi = if extra && random.chance(10) { 512 } else { 0 };
    let pods = if random.chance(60) { Some(*random.pick(&[4, 8, 17, 29, 58])) } else { None };
    // Names are unlike prices in order, and the same size may come in two revisions.
    let revision = random.between(1, 3);
    let accelerated = if gpus > 0 { "g" } else { "" };
    let name = format!("{family}{revision}{accelerated}-{cpu}x-{architecture}-{os}");
    let memory_gi = cpu * ratio;
    let base = 20 * cpu + 3 * memory_gi + 300 * gpus + 5 * revision;
    let mut offerings = Vec::new();
    for zone in &zones {
        if uneven && random.chance(30) {
            continue;
        }
        let jitter = if uneven { random.below(10) } else { 0 };
        if !uneven || random.chance(90) {
            offerings.push((zone.clone(), "on-demand", dollars(base * 10 + jitter)));
        }
        if random.chance(75) {
            // Spot is usually cheaper, and its price differs from zone to zone.
            offerings.push((zone.clone(), "spot", dollars(base * random.between(3, 9) + random.below(10))));
        }
    }
    Type { name, family, architecture, os, cpu, memory_gi, pods, gpus, storage_gi, huge_pages_mi, offerings }
}

/// A price from ten-thousandths.
fn dollars(units: usize) -> f64 {
    f64::from(u32::try_from(units).expect("prices are small")) / 10_000.0
}

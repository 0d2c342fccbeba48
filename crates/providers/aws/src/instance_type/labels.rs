//! The labels of an instance type.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use api::names::labels::{self, aws};
use api::names::values::{arch, capacity_type};
use api::shared::Requirement;
use regex::Regex;

use crate::node_class::Class;
use crate::port::InstanceTypeInfo;
use crate::requirements::{absent, maybe, within};
use crate::tables::limits_of;

/// Category, size of the memory where the name has it, and generation.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(^[a-z]+)(\-[0-9]+tb)?([0-9]+).*\.").expect("the pattern is a constant that compiles")
});

/// The labels of an instance type that some zones have.
pub(super) fn of(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    zones: &BTreeSet<String>,
    region: &str,
) -> Vec<Requirement> {
    let mut all = place(class, zones, region);
    all.extend(machine(class, info));
    all.extend(name_parts(&info.name));
    all.extend(processor(info));
    all.extend(devices(info));
    all.extend(reservations(class, info));
    if let Some(group) = class.placement_group {
        all.push(within(aws::PLACEMENT_GROUP_ID, [group.id.as_str()]));
        let partitions: Vec<String> = group.partitions().map(|number| number.to_string()).collect();
        if !partitions.is_empty() {
            all.push(within(aws::PLACEMENT_GROUP_PARTITION, partitions));
        }
    }
    all
}

/// What the name of a type says, and how many processors and how much memory it has: all that can be known of a type
/// without asking EC2.
pub fn of_name(name: &str, vcpus: i64, memory_mib: i64) -> Vec<Requirement> {
    let mut all = name_parts(name).to_vec();
    all.push(within(aws::INSTANCE_CPU, [vcpus.to_string()]));
    all.push(within(aws::INSTANCE_MEMORY, [memory_mib.to_string()]));
    all
}

fn place(class: &Class<'_>, zones: &BTreeSet<String>, region: &str) -> Vec<Requirement> {
    let both = || class.zones.iter().filter(|zone| zones.contains(zone.name));
    let ids: BTreeSet<&str> = both().map(|zone| zone.id).filter(|id| !id.is_empty()).collect();
    let mut all = vec![
        within(labels::ZONE, both().map(|zone| zone.name).collect::<BTreeSet<_>>()),
        within(labels::REGION, [region]),
    ];
    if !ids.is_empty() {
        all.push(within(aws::ZONE_ID, ids));
    }
    all
}

fn machine(class: &Class<'_>, info: &InstanceTypeInfo) -> Vec<Requirement> {
    let architecture = architecture(info);
    let build = class.family().windows_build;
    let system: &[&str] = match build {
        None => &["linux"],
        Some(_) if architecture == arch::AMD64 => &["windows"],
        Some(_) => &[],
    };
    let network = info.network.as_ref();
    let encrypted = network.is_some_and(|network| network.encryption_in_transit);
    vec![
        within(labels::INSTANCE_TYPE, [info.name.as_str()]),
        within(labels::ARCH, [architecture]),
        within(labels::OS, system.iter().copied()),
        maybe(labels::WINDOWS_BUILD, build),
        within(aws::INSTANCE_HYPERVISOR, [info.hypervisor.as_deref().unwrap_or_default()]),
        within(aws::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED, [encrypted.to_string()]),
        within(aws::NITRO_SANDBOX, [info.enclaves.to_string()]),
        within(aws::INSTANCE_TENANCY, ["default", "dedicated"]),
        within(aws::INSTANCE_MEMORY, [info.memory_mib.to_string()]),
        maybe(aws::INSTANCE_EBS_BANDWIDTH, text(info.ebs_bandwidth_mbps)),
        maybe(aws::INSTANCE_NETWORK_BANDWIDTH, text(limits_of(&info.name).bandwidth_mbps)),
        maybe(
            aws::INSTANCE_LOCAL_NVME,
            text(info.storage.as_ref().filter(|storage| storage.nvme).and_then(|storage| storage.total_gb)),
        ),
    ]
}

/// What the name says.
fn name_parts(name: &str) -> [Requirement; 5] {
    let parts = NAME.captures(name);
    let part = |number| parts.as_ref().and_then(|parts| parts.get(number)).map(|part| part.as_str());
    let split = name.split_once('.').filter(|(_, size)| !size.contains('.'));
    let family = split.map(|(family, _)| family);
    let is_flexible = family.unwrap_or(name).contains("-flex");
    [
        maybe(aws::INSTANCE_CATEGORY, part(1)),
        maybe(aws::INSTANCE_GENERATION, part(3)),
        maybe(aws::INSTANCE_FAMILY, family),
        maybe(aws::INSTANCE_SIZE, split.map(|(_, size)| size)),
        within(aws::INSTANCE_CAPABILITY_FLEX, [is_flexible.to_string()]),
    ]
}

fn processor(info: &InstanceTypeInfo) -> [Requirement; 3] {
    let processor = info.processor.as_ref();
    let manufacturer =
        processor.map(|processor| kebab(processor.manufacturer.as_deref().unwrap_or_default()));
    #[expect(clippy::cast_possible_truncation, reason = "no processor has that many GHz")]
    let megahertz =
        processor.map(|processor| (processor.clock_ghz.unwrap_or_default() * 1000.0).round() as i64);
    [
        within(aws::INSTANCE_CPU, [info.vcpus.to_string()]),
        maybe(aws::INSTANCE_CPU_MANUFACTURER, manufacturer),
        maybe(aws::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ, text(megahertz)),
    ]
}

/// GPUs and accelerators; a type with several kinds has no labels for them.
fn devices(info: &InstanceTypeInfo) -> [Requirement; 7] {
    let gpu = match info.gpus.as_slice() {
        [gpu] => Some(gpu),
        _ => None,
    };
    let accelerator = match (&info.neuron, info.accelerators.as_slice()) {
        (None, [only]) => Some((kebab(&only.name), kebab(&only.manufacturer), only.count)),
        (Some(devices), _) => match devices.as_slice() {
            [only] => Some((kebab(&only.name), "aws".to_owned(), only.count)),
            _ => None,
        },
        (None, _) => None,
    };
    [
        maybe(aws::INSTANCE_GPU_NAME, gpu.map(|gpu| kebab(&gpu.name))),
        maybe(aws::INSTANCE_GPU_MANUFACTURER, gpu.map(|gpu| kebab(&gpu.manufacturer))),
        maybe(aws::INSTANCE_GPU_COUNT, text(gpu.map(|gpu| gpu.count))),
        maybe(aws::INSTANCE_GPU_MEMORY, text(gpu.map(|gpu| gpu.memory_mib))),
        maybe(aws::INSTANCE_ACCELERATOR_NAME, accelerator.as_ref().map(|(name, ..)| name.as_str())),
        maybe(aws::INSTANCE_ACCELERATOR_MANUFACTURER, accelerator.as_ref().map(|(_, by, _)| by.as_str())),
        maybe(aws::INSTANCE_ACCELERATOR_COUNT, text(accelerator.as_ref().map(|(.., count)| *count))),
    ]
}

/// How it can be bought, and of which reservations.
fn reservations(class: &Class<'_>, info: &InstanceTypeInfo) -> [Requirement; 4] {
    let known: Vec<_> = class.reservations(&info.name).collect();
    let mut kinds: Vec<&str> = capacity_types(info).collect();
    if !known.is_empty() {
        kinds.push(capacity_type::RESERVED);
    }
    let values = |key: &str, values: BTreeSet<&str>| {
        if values.is_empty() { absent(key) } else { within(key, values) }
    };
    [
        within(labels::CAPACITY_TYPE, kinds),
        values(aws::CAPACITY_RESERVATION_ID, known.iter().map(|each| each.id.as_str()).collect()),
        values(
            aws::CAPACITY_RESERVATION_TYPE,
            known.iter().map(|each| each.reservation_type.as_str()).collect(),
        ),
        values(
            aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
            known.iter().map(|each| if each.interruptible { "true" } else { "false" }).collect(),
        ),
    ]
}

/// How a type can be bought, reservations aside.
pub(super) fn capacity_types(info: &InstanceTypeInfo) -> impl Iterator<Item = &str> {
    let is_known = |kind: &&str| [capacity_type::ON_DEMAND, capacity_type::SPOT].contains(kind);
    info.usage_classes.iter().map(String::as_str).filter(is_known)
}

/// The architecture as Kubernetes names it; what EC2 says if that means nothing to us.
fn architecture(info: &InstanceTypeInfo) -> String {
    let known = info.architectures().iter().find_map(|each| match each.as_str() {
        "x86_64" => Some(arch::AMD64),
        "arm64" => Some(arch::ARM64),
        _ => None,
    });
    known.map_or_else(|| format!("{:?}", info.architectures()), str::to_owned)
}

fn kebab(text: &str) -> String {
    text.replace(' ', "-").to_lowercase()
}

fn text(number: Option<i64>) -> Option<String> {
    number.map(|number| number.to_string())
}

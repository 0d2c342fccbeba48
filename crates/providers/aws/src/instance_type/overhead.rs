//! What a node keeps for itself.

use api::names::resources;
use units::{Format, Quantity, Resources};

use super::pods;
use crate::kubelet::{Invalid, Resolved};
use crate::node_class::Class;
use crate::port::InstanceTypeInfo;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// What Kubernetes keeps of the memory, whatever the number of pods, and for each of them.
const MEMORY_MIB: i64 = 255;
const MEMORY_PER_POD_MIB: i64 = 11;
/// What must be left of the memory before pods are evicted.
const EVICTION_MEMORY_MIB: i64 = 100;
/// The same for the disk, as a share of a hundred.
const EVICTION_DISK_PERCENT: f64 = 10.0;
/// What Kubernetes keeps of processors: the more there are, the less of each. From and to in thousandths of a
/// processor, share of ten thousand.
const PROCESSOR_BANDS: [(i64, i64, i64); 4] =
    [(0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, i64::MAX, 25)];

/// What a node keeps for itself: for Kubernetes, for the system, and as a distance from eviction.
pub(super) fn of(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    pods: i64,
    kubelet: &Resolved,
    capacity: &Resources,
) -> Result<Resources, Invalid> {
    let mut all = kube_reserved(class, info, pods);
    for (name, amount) in amounts("kubeReserved", &kubelet.kube_reserved)? {
        all.set(name, amount);
    }
    all.add(&amounts("systemReserved", &kubelet.system_reserved)?.into_iter().collect());
    all.add(&eviction(class, capacity)?);
    Ok(all)
}

fn kube_reserved(class: &Class<'_>, info: &InstanceTypeInfo, pods: i64) -> Resources {
    let pods = if class.family().memory_by_interfaces { pods::by_interfaces(class, info, 0) } else { pods };
    let memory = MEMORY_PER_POD_MIB.saturating_mul(pods).saturating_add(MEMORY_MIB).saturating_mul(MIB);
    let millis = i64::from(info.vcpus) * 1000;
    let processors = PROCESSOR_BANDS.iter().map(|(from, to, share)| {
        let part = millis.min(*to) - millis.min(*from);
        part * share / 10_000
    });
    [
        (resources::CPU, Quantity::from_millis(processors.sum(), Format::DecimalSi)),
        (resources::MEMORY, Quantity::from_units(memory, Format::BinarySi)),
        (resources::EPHEMERAL_STORAGE, Quantity::from_units(GIB, Format::BinarySi)),
    ]
    .into_iter()
    .collect()
}

fn amounts<'a>(
    field: &str,
    written: &'a std::collections::BTreeMap<String, String>,
) -> Result<Vec<(&'a str, Quantity)>, Invalid> {
    let read = |(name, amount): (&'a String, &String)| Ok((name.as_str(), quantity(field, name, amount)?));
    written.iter().map(read).collect()
}

fn quantity(field: &str, name: &str, amount: &str) -> Result<Quantity, Invalid> {
    amount.parse().map_err(|error: units::QuantityError| Invalid {
        field: format!("{field}.{name}"),
        message: error.to_string(),
    })
}

/// When pods are evicted at once. What is evicted after a while can be used by pods meanwhile.
fn eviction(class: &Class<'_>, capacity: &Resources) -> Result<Resources, Invalid> {
    let threshold = |signal: &str, of: &str| -> Result<Option<Quantity>, Invalid> {
        let Some(written) = class.kubelet.eviction_hard.get(signal) else { return Ok(None) };
        let Some(share) = written.strip_suffix('%') else {
            return quantity("evictionHard", signal, written).map(Some);
        };
        let share: f64 = share.parse().map_err(|_| Invalid {
            field: format!("evictionHard.{signal}"),
            message: format!("invalid percentage {written:?}, expected a number from 0 to 100 before %"),
        })?;
        // The kubelet takes 100 % to mean that there is no threshold.
        let share = if share >= 100.0 { 0.0 } else { share };
        Ok(Some(percent(capacity.amount(of), share)))
    };
    let memory = threshold("memory.available", resources::MEMORY)?
        .unwrap_or(Quantity::from_units(EVICTION_MEMORY_MIB * MIB, Format::BinarySi));
    let disk = threshold("nodefs.available", resources::EPHEMERAL_STORAGE)?
        .unwrap_or_else(|| percent(capacity.amount(resources::EPHEMERAL_STORAGE), EVICTION_DISK_PERCENT));
    Ok([(resources::MEMORY, memory), (resources::EPHEMERAL_STORAGE, disk)].into_iter().collect())
}

/// A share of an amount, rounded up to whole units.
#[expect(clippy::cast_possible_truncation, reason = "no disk and no memory is that large")]
fn percent(amount: Quantity, share: f64) -> Quantity {
    Quantity::from_units((amount.as_f64() / 100.0 * share).ceil() as i64, Format::BinarySi)
}

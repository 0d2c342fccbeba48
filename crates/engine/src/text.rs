//! Failures in upstream's words. Users and alerts match on these texts.

use std::fmt::Write;

use units::Format;

use crate::intern::{KeyId, ResourceId};
use crate::model::Snapshot;
use crate::requirement::Requirement;
use crate::resources::{self, Amounts};
use crate::solve::{
    Conflict, Failure, PoolFailure, ReservedFailure, Scarce, TopologyFailure, TypeFailure, VolumeExcess,
};
use crate::universe::{Incompatible, RequirementId, SetId, Universe};

/// Makes texts for one snapshot and the requirements that a plan for it speaks of.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// What the plan was made for.
    pub snapshot: &'a Snapshot,
    /// The plan's requirements.
    pub universe: &'a Universe,
}

impl Texts<'_> {
    /// Why no place was found for a pod.
    pub fn failure(&self, failure: &Failure) -> String {
        match failure {
            Failure::NeedsDevices => {
                "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter"
                    .to_owned()
            }
            Failure::NoPool => "nodepool requirements filtered out all available instance types".to_owned(),
            Failure::Pools(pools) => {
                let texts: Vec<String> = pools
                    .iter()
                    .map(|(pool, failure)| {
                        self.pool_failure(&self.snapshot.pools[pool.index()].name, failure)
                    })
                    .collect();
                texts.join("; ")
            }
        }
    }

    fn pool_failure(&self, pool: &str, failure: &PoolFailure) -> String {
        match failure {
            PoolFailure::NodeLimit(_) => format!("node limits have been exhausted for nodepool (NodePool={pool})"),
            PoolFailure::Limits(_) => {
                format!("all available instance types exceed limits for nodepool (NodePool={pool})")
            }
            PoolFailure::LimitsUnsettled => format!(
                "limits of nodepool leave room only once its new nodes are launched (NodePool={pool})"
            ),
            PoolFailure::Taints(taints) => {
                let texts: Vec<String> =
                    taints.iter().map(|taint| format!("did not tolerate taint (taint={taint})")).collect();
                texts.join("; ")
            }
            PoolFailure::VolumeLimit(excess) => {
                let about = excess.map(|VolumeExcess { driver, count, limit }| {
                    let driver = self.snapshot.drivers.resolve(u32::from(driver.0));
                    format!(" (provisioner={driver}, volume-count={count}, volume-limit={limit})")
                });
                format!("would exceed volume limit for all instance type options{}", about.unwrap_or_default())
            }
            PoolFailure::Requirements(conflict) => format!("incompatible requirements, {}", self.conflict(conflict)),
            PoolFailure::Volumes(conflict) => format!("incompatible volume requirements, {}", self.conflict(conflict)),
            PoolFailure::Topology(failure) => self.topology(failure),
            PoolFailure::TopologyConflict(conflict) => self.conflict(conflict),
            PoolFailure::Types(failure) => self.types(failure),
            PoolFailure::MinValues(scarce) => self.min_values(scarce),
            PoolFailure::Truncated(scarce) => format!(
                "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, {} (NodePool={pool})",
                self.min_values(scarce)
            ),
            PoolFailure::Reserved(failure) => match failure {
                ReservedFailure::Taken => "one or more instance types with compatible reserved offerings are available, but could not be reserved",
                ReservedFailure::Full => "all compatible reserved offerings are full and no on-demand or spot fallback is available",
                ReservedFailure::FallsThrough => "the only compatible reserved offering is full; falling through to other NodePools",
                ReservedFailure::WouldLose => "satisfying updated nodeclaim constraints would remove all compatible reserved offering options",
            }
            .to_owned(),
        }
    }

    fn min_values(&self, scarce: &[Scarce]) -> String {
        let mut names: Vec<&str> = scarce.iter().map(|it| self.universe.key_name(it.key)).collect();
        names.sort_unstable();
        format!("minValues requirement is not met for label(s) (label(s)=[{}])", names.join(" "))
    }

    fn conflict(&self, conflict: &Conflict) -> String {
        match &conflict.reason {
            Incompatible::Undefined(key) => {
                let name = self.universe.key_name(*key);
                format!("label \"{name}\" does not have known values{}", self.hint(name, conflict.existing))
            }
            Incompatible::Conflicts(keys) => {
                let texts: Vec<String> = keys
                    .iter()
                    .map(|key| {
                        let incoming = self.requirement(*key, self.universe.find(conflict.incoming, *key));
                        let existing = self.requirement(*key, self.universe.find(conflict.existing, *key));
                        format!("key {}, {incoming} not in {existing}", self.universe.key_name(*key))
                    })
                    .collect();
                texts.join("; ")
            }
        }
    }

    /// A label that the user may have meant.
    fn hint(&self, name: &str, existing: SetId) -> String {
        let suffix = name.split_once('/').map_or(name, |(_, suffix)| suffix);
        let mut known: Vec<&str> = (0..self.universe.key_count())
            .map(KeyId::at)
            .filter(|key| self.universe.is_well_known(*key))
            .map(|key| self.universe.key_name(key))
            .collect();
        known.sort_unstable();
        known.extend(self.universe.entries(existing).iter().map(|(key, _)| self.universe.key_name(*key)));
        let similar =
            known.iter().find(|known| **known != name && (known.contains(name) || known.ends_with(suffix)));
        similar.map_or_else(String::new, |similar| format!(" (typo of \"{similar}\"?)"))
    }

    fn requirement(&self, key: KeyId, id: Option<RequirementId>) -> String {
        let exists = Requirement::exists();
        self.universe.describe(key, id.map_or(&exists, |id| self.universe.get(id)))
    }

    /// A set of requirements; the host name is left out.
    pub fn requirements(&self, set: SetId) -> String {
        let mut texts: Vec<String> = self
            .universe
            .entries(set)
            .iter()
            .filter(|(key, _)| *key != self.snapshot.keys.hostname)
            .map(|(key, id)| self.requirement(*key, Some(*id)))
            .collect();
        texts.sort_unstable();
        texts.join(", ")
    }

    fn topology(&self, failure: &TopologyFailure) -> String {
        const SHOWN: usize = 25;
        let values = self.universe.values(failure.key);
        let mut counts: Vec<String> = failure
            .counts
            .iter()
            .take(SHOWN)
            .map(|(value, count)| format!("{}: {count}", values.name(*value)))
            .collect();
        let hidden = failure.counts.len().saturating_sub(SHOWN);
        let mut counts = std::mem::take(&mut counts).join(", ");
        if hidden > 0 {
            let _ = write!(counts, " and {hidden} other(s)");
        }
        format!(
            "unsatisfiable topology constraint for {}, key={} (counts = {counts}, podDomains = {}, nodeDomains = {}",
            failure.rule.as_str(),
            self.universe.key_name(failure.key),
            self.requirement(failure.key, failure.pod_domains),
            self.requirement(failure.key, failure.node_domains),
        )
    }

    fn types(&self, failure: &TypeFailure) -> String {
        let any = failure.any;
        let text = match (any.requirements, any.resources, any.offering) {
            (false, false, false) => {
                "no instance type met the scheduling requirements or had enough resources or had a required offering"
            }
            (false, false, true) => {
                "no instance type met the scheduling requirements or had enough resources"
            }
            (false, true, false) => {
                "no instance type met the scheduling requirements or had a required offering"
            }
            (true, false, false) => "no instance type had enough resources or had a required offering",
            (false, true, true) => "no instance type met all requirements",
            (true, false, true) => "no instance type has enough resources",
            (true, true, false) => "no instance type has the required offering",
            (true, true, true) if failure.lacking_only.requirements => {
                "no instance type which had enough resources and the required offering met the scheduling requirements"
            }
            (true, true, true) if failure.lacking_only.resources => {
                "no instance type which met the scheduling requirements and the required offering had the required resources"
            }
            (true, true, true) => "no instance type met the requirements/resources/offering tuple",
        };
        let mut text = format!(
            "{text}, requirements={}, resources={}",
            self.requirements(failure.requirements),
            self.total_resources(failure)
        );
        let million_cores =
            resources::request(ResourceId::CPU, units::Quantity::from_units(1_000_000, Format::DecimalSi));
        let only_size = any.requirements && !any.resources && any.offering;
        if only_size && failure.requests.get(ResourceId::CPU) >= million_cores {
            text.push_str(" (CPU request >= 1 Million, m vs M typo?)");
        }
        text
    }

    fn total_resources(&self, failure: &TypeFailure) -> String {
        let with = |overhead: &Amounts| {
            let mut total = failure.requests.clone();
            total.add(overhead);
            self.amounts(&total)
        };
        match &failure.overhead {
            None => self.amounts(&failure.requests),
            Some((least, most)) if least == most => with(least),
            Some((least, most)) => format!("min={}, max={}", with(least), with(most)),
        }
    }

    /// Amounts as JSON, names in order.
    pub fn amounts(&self, amounts: &Amounts) -> String {
        let mut entries: Vec<(&str, String)> = amounts
            .iter()
            .map(|(resource, amount)| {
                let resources = &self.snapshot.resources;
                (resources.name(resource), resources.quantity(resource, amount).to_string())
            })
            .collect();
        entries.sort_unstable();
        let entries: Vec<String> =
            entries.into_iter().map(|(name, amount)| format!("\"{name}\":\"{amount}\"")).collect();
        format!("{{{}}}", entries.join(","))
    }
}

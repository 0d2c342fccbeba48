//! Limits, minValues and reservations of a NodePool in words.

use super::{Reached, Said, SchedulingErrors};
use crate::intern::ResourceId;
use crate::model::PoolId;
use crate::solve::{LimitShortage, ReservedFailure, Scarce, Unusable};

impl SchedulingErrors<'_> {
    pub(super) fn limits(&self, pool: PoolId, shortages: &[LimitShortage]) -> Said {
        let brief = "limits reached";
        let limits = &self.snapshot().pools[pool.index()].limits;
        let bound =
            |resource| limits.iter().find(|limit| limit.resource == resource).map_or(0, |it| it.bound);
        let Some(LimitShortage { resource, left, needed }) = shortages.first().copied() else {
            let what = "what its limits leave is less than any node for the pod needs";
            return Said::new(Reached::Limits, brief, what, "raise spec.limits");
        };
        let limit = self.quantity(resource, bound(resource));
        let needed = self.amount(resource, needed);
        let what = if resource == ResourceId::NODES {
            format!("its limit of {limit} is reached")
        } else if left == bound(resource) {
            format!("its limit of {limit} is below the {needed} of the smallest node that fits the pod")
        } else if left <= 0 {
            format!("its limit of {limit} is used up, and the smallest node that fits the pod has {needed}")
        } else {
            let left = self.amount(resource, left);
            format!(
                "its limit of {limit} leaves {left}, and the smallest node that fits the pod has {needed}"
            )
        };
        let raised: Vec<String> = shortages
            .iter()
            .map(|LimitShortage { resource, left, needed }| {
                let least = bound(*resource).saturating_sub(*left).saturating_add(*needed);
                let name = self.snapshot().resources.name(*resource);
                format!("spec.limits.{name} to at least {}", self.to_write(*resource, least))
            })
            .collect();
        Said::new(Reached::Limits, brief, what, format!("raise {}", raised.join(" and ")))
    }

    /// An amount rounded up to what people write into a manifest.
    fn to_write(&self, resource: ResourceId, amount: i64) -> String {
        const UNITS: [(i128, &str); 3] = [(1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")];
        let quantity = self.snapshot().resources.quantity(resource, amount);
        let nanos = quantity.nanos();
        let whole = (nanos + 999_999_999).div_euclid(1_000_000_000);
        let unit =
            UNITS.iter().find(|(unit, _)| quantity.format() == units::Format::BinarySi && whole >= *unit);
        match unit {
            Some((unit, name)) => format!("{}{name}", (whole + unit - 1) / unit),
            None => whole.to_string(),
        }
    }

    /// `one` and `many` say of which values it is that there are too few.
    pub(super) fn min_values(&self, scarce: &[Scarce], one: &str, many: &str) -> Said {
        let brief = "minValues not met";
        let Some(Scarce { key, wanted, found }) = scarce.first().copied() else {
            return Said::new(Reached::MinValues, brief, "its minValues are not met", "lower minValues");
        };
        let name = self.universe().key_name(key);
        let there = if found == 1 { one } else { many };
        Said::new(
            Reached::MinValues,
            brief,
            format!("its minValues asks for {wanted} values of {name}, and {found} {there}"),
            format!("lower minValues to at most {found}, or allow more values"),
        )
    }

    /// Why nothing can be launched for a pool, whatever pods ask for.
    pub(super) fn unusable(&mut self, unusable: &Unusable) -> Said {
        if unusable.min_values.is_empty() {
            return self.without_types(unusable.pool);
        }
        self.min_values(&unusable.min_values, "can be had", "can be had")
    }
}

/// Why reserved capacity is not to be had.
pub(super) fn reserved(failure: ReservedFailure) -> Said {
    let brief = "capacity reservations taken";
    match failure {
        ReservedFailure::Full | ReservedFailure::FallsThrough => Said::new(
            Reached::MinValues,
            brief,
            "all its capacity reservations that suit the pod are full, and it has no other capacity for it",
            "allow karpenter.sh/capacity-type on-demand or spot",
        ),
        ReservedFailure::Taken | ReservedFailure::WouldLose => Said::new(
            Reached::MinValues,
            brief,
            "its capacity reservations that suit the pod are taken by other new nodes",
            "Karpenter tries again once those are launched",
        ),
    }
}

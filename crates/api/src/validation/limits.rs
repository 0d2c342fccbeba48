//! The limits of a NodePool: how much it may have in total.

use units::Quantity;

use crate::shared::ResourceList;

/// A resource of which a NodePool has more than it may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource usage exceeds limit (limit={}, resource-name={resource}, usage={})", decimal(*limit), decimal(*usage))]
pub struct LimitExceeded {
    /// The resource.
    pub resource: String,
    /// How much there may be.
    pub limit: Quantity,
    /// How much there is.
    pub usage: Quantity,
}

/// Fails if there is more of a resource than its limit allows. A resource without a limit is unlimited.
pub fn check(limits: &ResourceList, usage: &ResourceList) -> Result<(), LimitExceeded> {
    let exceeded = limits.iter().find_map(|(resource, limit)| {
        let usage = usage.get(resource).filter(|usage| *usage > limit)?;
        Some(LimitExceeded { resource: resource.clone(), limit: *limit, usage: *usage })
    });
    exceeded.map_or(Ok(()), Err)
}

/// A quantity as a decimal number without a suffix.
fn decimal(quantity: Quantity) -> String {
    const NANOS_PER_UNIT: u128 = 1_000_000_000;
    let nanos = quantity.nanos().unsigned_abs();
    let sign = if quantity.nanos() < 0 { "-" } else { "" };
    let number = format!("{sign}{}.{:09}", nanos / NANOS_PER_UNIT, nanos % NANOS_PER_UNIT);
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(amounts: &[(&str, &str)]) -> ResourceList {
        amounts.iter().map(|(name, amount)| (name.to_string(), amount.parse().unwrap())).collect()
    }

    #[test]
    fn usage_up_to_the_limit_is_allowed() {
        let limits = list(&[("cpu", "10"), ("memory", "1Gi"), ("nodes", "3")]);
        for usage in [
            list(&[]),
            list(&[("cpu", "10"), ("memory", "1024Mi"), ("nodes", "3")]),
            list(&[("pods", "1000")]),
        ] {
            assert_eq!(check(&limits, &usage), Ok(()));
        }
        assert_eq!(check(&list(&[]), &list(&[("cpu", "1000")])), Ok(()));
    }

    #[test]
    fn the_error_names_resource_limit_and_usage() {
        for (limit, usage, expected) in [
            (("cpu", "10"), ("cpu", "10.5"), "limit=10, resource-name=cpu, usage=10.5"),
            (("cpu", "0"), ("cpu", "1500m"), "limit=0, resource-name=cpu, usage=1.5"),
            (
                ("memory", "1Gi"),
                ("memory", "2Gi"),
                "limit=1073741824, resource-name=memory, usage=2147483648",
            ),
            (("nodes", "-1"), ("nodes", "100"), "limit=-1, resource-name=nodes, usage=100"),
        ] {
            let error = check(&list(&[limit]), &list(&[usage])).unwrap_err();
            assert_eq!(error.to_string(), format!("resource usage exceeds limit ({expected})"));
        }
    }
}

//! What no API tells about instance types, and what they cost when nobody can be asked. Read once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static LIMITS: LazyLock<BTreeMap<&'static str, Limits>> =
    LazyLock::new(|| rows(include_str!("../data/instance_types.csv")).map(limits).collect());
static PRICES: LazyLock<Prices> = LazyLock::new(|| Prices::read(include_str!("../data/prices.csv")));

/// The region whose prices stand for those of regions without a table.
const ANY_REGION: &str = "us-east-1";

/// What no API tells about an instance type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many IPv4 addresses a network interface can have.
    pub(crate) ipv4_per_interface: Option<i64>,
    /// How many network interfaces there are for single pods.
    pub(crate) branch_interfaces: i64,
    /// The network's baseline bandwidth in Mbit/s.
    pub(crate) bandwidth_mbps: Option<i64>,
}

/// What no API tells about an instance type; nothing for types that came later.
pub(crate) fn limits_of(instance_type: &str) -> Limits {
    LIMITS.get(instance_type).copied().unwrap_or_default()
}

/// What instances cost by use in a region, as of the table.
pub(crate) fn on_demand_prices(region: &str) -> &'static BTreeMap<String, f64> {
    let any = || PRICES.by_region.get(ANY_REGION).unwrap_or(&PRICES.none);
    PRICES.by_region.get(region).unwrap_or_else(any)
}

struct Prices {
    by_region: BTreeMap<&'static str, BTreeMap<String, f64>>,
    none: BTreeMap<String, f64>,
}

impl Prices {
    fn read(text: &'static str) -> Self {
        let regions: Vec<&str> = text.lines().next().unwrap_or_default().split(',').skip(1).collect();
        let mut by_region: BTreeMap<&str, BTreeMap<String, f64>> = BTreeMap::new();
        for (name, fields) in rows(text) {
            for (region, price) in regions.iter().zip(fields) {
                if let Ok(price) = price.parse() {
                    by_region.entry(region).or_default().insert(name.to_owned(), price);
                }
            }
        }
        Self { by_region, none: BTreeMap::new() }
    }
}

/// The rows below the header: the first field, and the others.
fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    text.lines().skip(1).filter_map(|line| {
        let (name, rest) = line.split_once(',')?;
        Some((name, rest.split(',')))
    })
}

fn limits((name, mut fields): (&'static str, impl Iterator<Item = &'static str>)) -> (&'static str, Limits) {
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    let (ipv4_per_interface, branch, bandwidth_mbps) = (number(), number(), number());
    (name, Limits { ipv4_per_interface, branch_interfaces: branch.unwrap_or_default(), bandwidth_mbps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_all_rows_and_what_is_missing_is_not_made_up() {
        assert_eq!(LIMITS.values().filter(|limits| limits.ipv4_per_interface.is_some()).count(), 1401);
        assert_eq!(LIMITS.values().filter(|limits| limits.bandwidth_mbps.is_some()).count(), 1350);
        let a1 = Limits { ipv4_per_interface: Some(15), branch_interfaces: 38, bandwidth_mbps: Some(2500) };
        assert_eq!(limits_of("a1.2xlarge"), a1);
        assert_eq!(limits_of("t3.large").branch_interfaces, 0);
        assert_eq!(limits_of("x99.large"), Limits::default());
    }

    #[test]
    fn every_partition_has_prices_and_other_regions_have_those_of_the_first() {
        let rows = [("us-east-1", 1367), ("cn-north-1", 316), ("us-gov-east-1", 549), ("us-gov-west-1", 770)];
        for (region, count) in rows {
            assert_eq!(on_demand_prices(region).len(), count, "{region}");
        }
        assert_eq!(on_demand_prices("eu-west-1"), on_demand_prices("us-east-1"));
        assert!((on_demand_prices("us-east-1")["a1.2xlarge"] - 0.204).abs() < 1e-9);
    }
}

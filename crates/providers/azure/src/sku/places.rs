//! Where a size can be had: regions, zones and what is forbidden there.

use std::collections::BTreeSet;

use super::capabilities::Capabilities;
use crate::arm::types::sku::{LocationInfo, ResourceSku, Restriction};

/// Whether two names mean the same region: `South Central US` is `southcentralus`.
fn same(left: &str, right: &str) -> bool {
    let plain = |text: &str| {
        text.chars().filter(|each| !each.is_whitespace()).collect::<String>().to_ascii_lowercase()
    };
    plain(left) == plain(right)
}

fn restrictions<'a>(wire: &'a ResourceSku, location: &'a str) -> impl Iterator<Item = &'a Restriction> {
    let concerns = move |each: &&Restriction| each.values.iter().flatten().any(|value| same(value, location));
    wire.restrictions.iter().flatten().filter(concerns)
}

/// Whether the subscription may not use the size anywhere in a region.
pub(super) fn is_restricted(wire: &ResourceSku, location: &str) -> bool {
    restrictions(wire, location)
        .any(|each| each.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("Location")))
}

fn infos<'a>(wire: &'a ResourceSku, location: &'a str) -> impl Iterator<Item = &'a LocationInfo> {
    let is_here =
        move |each: &&LocationInfo| each.location.as_deref().is_some_and(|name| same(name, location));
    wire.location_info.iter().flatten().filter(is_here)
}

/// The zones of a region that have the size and where the subscription may use it.
pub(super) fn zones(wire: &ResourceSku, location: &str) -> BTreeSet<String> {
    if is_restricted(wire, location) {
        return BTreeSet::new();
    }
    let forbidden: BTreeSet<&String> = restrictions(wire, location)
        .flat_map(|each| &each.restriction_info)
        .flat_map(|info| info.zones.iter().flatten())
        .collect();
    infos(wire, location)
        .flat_map(|info| info.zones.iter().flatten())
        .filter(|zone| !zone.is_empty() && !forbidden.contains(zone))
        .cloned()
        .collect()
}

/// Those of the zones where ultra disks can be attached, as labels name them.
pub(super) fn ultra_ssd_zones(
    wire: &ResourceSku,
    location: &str,
    zones: &BTreeSet<String>,
) -> BTreeSet<String> {
    let is_able = |zone: &&String| {
        infos(wire, location).flat_map(|info| info.zone_details.iter().flatten()).any(|details| {
            details.name.iter().flatten().any(|name| name.eq_ignore_ascii_case(zone))
                && Capabilities::new(details.capabilities.as_deref().unwrap_or_default())
                    .switch("UltraSSDAvailable")
        })
    };
    zones.iter().filter(is_able).map(|zone| crate::zone::label(location, zone)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(info: &Value, restrictions: &Value) -> ResourceSku {
        serde_json::from_value(json!({"locationInfo": info, "restrictions": restrictions})).unwrap()
    }

    fn in_zones() -> Value {
        json!([
            {"location": "West US 2", "zones": ["1", "2", ""]},
            {"location": "westus2", "zones": ["3"]},
            {"location": "eastus", "zones": ["4"]},
        ])
    }

    #[track_caller]
    fn check(restrictions: &Value, expected: &[&str]) {
        let found = zones(&of(&in_zones(), restrictions), "westus2");
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    // azure.md 3.1
    #[test]
    fn regions_are_the_same_whatever_their_case_and_spaces() {
        assert!(same("South Central US", "southcentralus") && !same("westus", "westus2"));
    }

    // azure.md 3.1
    #[test]
    fn zones_are_those_of_the_region_without_those_that_are_forbidden() {
        check(&Value::Null, &["1", "2", "3"]);
        let zone = |values: Value, zones: Value| json!([{"type": "Zone", "values": values, "restrictionInfo": {"zones": zones}}]);
        check(&zone(json!(["westus2"]), json!(["1", "3"])), &["2"]);
        check(&zone(json!(["eastus"]), json!(["1", "3"])), &["1", "2", "3"]);
        check(&zone(Value::Null, json!(["1"])), &["1", "2", "3"]);
        check(&json!([{"type": "Location", "values": ["WEST US 2"]}]), &[]);
        check(&json!([{"type": "Location", "values": ["eastus"]}]), &["1", "2", "3"]);
        assert_eq!(zones(&of(&Value::Null, &Value::Null), "westus2"), BTreeSet::new());
    }

    // azure.md 3.1
    #[test]
    fn a_restriction_of_the_location_forbids_the_size() {
        let wire = of(&in_zones(), &json!([{"type": "Location", "values": ["westus2"]}]));
        assert!(is_restricted(&wire, "westus2") && !is_restricted(&wire, "eastus"));
        let zonal = of(&in_zones(), &json!([{"type": "Zone", "values": ["westus2"]}]));
        assert!(!is_restricted(&zonal, "westus2"));
    }

    // azure.md 3.1
    #[test]
    fn ultra_disks_are_a_matter_of_each_zone() {
        let able = json!([{"name": "UltraSSDAvailable", "value": "True"}]);
        let unable = json!([{"name": "UltraSSDAvailable", "value": "False"}]);
        let wire = of(
            &json!([{"location": "westus2", "zones": ["1", "2", "3"], "zoneDetails": [
                {"name": ["1", "4"], "capabilities": able}, {"name": ["2"], "capabilities": unable},
            ]}]),
            &Value::Null,
        );
        let found = ultra_ssd_zones(&wire, "westus2", &zones(&wire, "westus2"));
        assert_eq!(found, BTreeSet::from(["westus2-1".to_owned()]));
    }
}

//! Sizes of virtual machines: what the SKU API says, and what follows from it for a machine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::lists;
use crate::world::{World, list as elements, text};

/// All sizes, by region.
#[derive(Clone, Debug, Default)]
pub struct Skus(BTreeMap<String, Vec<Value>>);

/// A size to add, in short; [`Skus::add`] takes the long form, too.
#[derive(Clone, Debug)]
pub struct Sku<'a> {
    /// Such as `Standard_D8s_v3`.
    pub name: &'a str,
    /// The family that its cores count for, such as `standardDSv3Family`.
    pub family: &'a str,
    /// How many cores it has.
    pub cores: u32,
    /// How much memory, in GiB.
    pub memory: u32,
    /// Where it is, such as `["1", "2"]`.
    pub zones: &'a [&'a str],
}

impl Sku<'_> {
    /// As the SKU API writes it, with capabilities that most sizes have.
    pub fn to_json(&self, location: &str) -> Value {
        let capability = |name: &str, value: &str| json!({"name": name, "value": value});
        json!({
            "resourceType": "virtualMachines", "name": self.name, "tier": "Standard",
            "size": self.name.trim_start_matches("Standard_"), "family": self.family,
            "locations": [location],
            "locationInfo": [{"location": location, "zones": self.zones, "zoneDetails": []}],
            "capabilities": [
                capability("vCPUs", &self.cores.to_string()),
                capability("MemoryGB", &self.memory.to_string()),
                capability("CpuArchitectureType", "x64"),
                capability("HyperVGenerations", "V1,V2"),
                capability("LowPriorityCapable", "True"),
                capability("PremiumIO", "True"),
                capability("AcceleratedNetworkingEnabled", "True"),
                capability("EncryptionAtHostSupported", "True"),
                capability("EphemeralOSDiskSupported", "False"),
                capability("MaxResourceVolumeMB", "0"),
                capability("MaxNetworkInterfaces", "2"),
                capability("MaxDataDiskCount", "8"),
            ],
            "restrictions": [],
        })
    }
}

impl Skus {
    /// Adds the sizes of a payload of the SKU API.
    pub(crate) fn load(&mut self, location: &str, payload: &str) {
        let payload: Value = serde_json::from_str(payload).unwrap_or_default();
        for sku in elements(&payload, "/value") {
            self.add(location, sku.clone());
        }
    }

    /// Adds a size, or replaces the one of that name.
    pub fn add(&mut self, location: &str, sku: Value) {
        let all = self.0.entry(location.to_owned()).or_default();
        all.retain(|each| each["name"] != sku["name"]);
        all.push(sku);
    }

    /// Removes a size.
    pub fn remove(&mut self, location: &str, name: &str) {
        self.0.entry(location.to_owned()).or_default().retain(|each| each["name"] != name);
    }

    /// All sizes of a region.
    pub fn of(&self, location: &str) -> &[Value] {
        self.0.get(location).map(Vec::as_slice).unwrap_or_default()
    }

    /// Nobody gets this size in these zones any more, or nowhere in the region if there are none.
    pub fn restrict(&mut self, location: &str, name: &str, zones: &[&str]) {
        let kind = if zones.is_empty() { "Location" } else { "Zone" };
        let restriction = json!({
            "type": kind, "values": [location], "reasonCode": "NotAvailableForSubscription",
            "restrictionInfo": {"locations": [location], "zones": zones},
        });
        for sku in
            self.0.entry(location.to_owned()).or_default().iter_mut().filter(|each| each["name"] == name)
        {
            if let Some(all) = sku["restrictions"].as_array_mut() {
                all.push(restriction.clone());
            }
        }
    }

    pub(crate) fn find(&self, location: &str, name: &str) -> Option<&Value> {
        self.of(location).iter().find(|sku| text(sku, "/name").eq_ignore_ascii_case(name))
    }
}

/// A capability; names are compared whatever their case.
pub(crate) fn capability<'a>(sku: &'a Value, name: &str) -> Option<&'a str> {
    let all = elements(sku, "/capabilities");
    let found = all.iter().find(|each| text(each, "/name").eq_ignore_ascii_case(name))?;
    found["value"].as_str()
}

pub(crate) fn is_able(sku: &Value, name: &str) -> bool {
    capability(sku, name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

pub(crate) fn cores(sku: &Value) -> i64 {
    capability(sku, "vCPUs").and_then(|cores| cores.parse().ok()).unwrap_or(0)
}

/// Whether the subscription gets this size in a zone, or in the region as a whole if that is empty.
pub(crate) fn is_offered(sku: &Value, location: &str, zone: &str) -> bool {
    let holds = |place: &Value, pointer: &str, wanted: &str| {
        elements(place, pointer)
            .iter()
            .any(|each| each.as_str().is_some_and(|each| each.eq_ignore_ascii_case(wanted)))
    };
    let restrictions = elements(sku, "/restrictions");
    let is_restricted = restrictions.iter().filter(|each| holds(each, "/values", location)).any(|each| {
        each["type"] == "Location" || (!zone.is_empty() && holds(each, "/restrictionInfo/zones", zone))
    });
    let in_zone = zone.is_empty()
        || elements(sku, "/locationInfo").iter().any(|each| {
            text(each, "/location").eq_ignore_ascii_case(location) && holds(each, "/zones", zone)
        });
    in_zone && !is_restricted
}

pub(crate) fn list(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let filter = call.query("$filter").unwrap_or_default();
    let location = filter.strip_prefix("location eq '").and_then(|rest| rest.strip_suffix('\''));
    let Some(location) = location.or(filter.is_empty().then_some("")) else {
        return Err(Refusal::new(
            400,
            "InvalidFilterInQueryString",
            format!("Invalid $filter '{filter}' specified in the query string."),
        ));
    };
    let all: Vec<Value> = if location.is_empty() {
        world.skus.0.values().flatten().cloned().collect()
    } else {
        world.skus.of(&location.to_ascii_lowercase().replace(' ', "")).to_vec()
    };
    Ok(lists::page(call, all, world.settings.page_size))
}

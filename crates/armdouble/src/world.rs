//! What there is: resources by their IDs, and what is known beside them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::addresses::Addresses;
use crate::gallery::Images;
use crate::graph::Graph;
use crate::prices::Prices;
use crate::quota::Quota;
use crate::route::{self, Kind};
use crate::settings::Settings;
use crate::skus::Skus;

/// How long Azure keeps a network interface for the virtual machine that it was made for.
const RESERVATION: Duration = Duration::from_mins(3);

/// What there is in this Azure. IDs are compared whatever their case.
#[derive(Clone, Debug)]
pub struct World {
    /// How it behaves.
    pub settings: Settings,
    /// Sizes of virtual machines.
    pub skus: Skus,
    /// How many cores may be used.
    pub quota: Quota,
    /// Images.
    pub images: Images,
    /// Prices.
    pub prices: Prices,
    pub(crate) now: Timestamp,
    pub(crate) graph: Graph,
    pub(crate) addresses: Addresses,
    /// By type and ID, both in lower case.
    resources: BTreeMap<String, BTreeMap<String, Value>>,
    reserved: BTreeMap<String, (String, Timestamp)>,
    serial: u64,
}

impl World {
    pub(crate) fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            settings,
            skus: Skus::default(),
            quota: Quota::default(),
            images: Images::default(),
            prices: Prices::default(),
            now,
            graph: Graph::default(),
            addresses: Addresses::default(),
            resources: BTreeMap::new(),
            reserved: BTreeMap::new(),
            serial: 0,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A resource, with everything that was ever sent, secrets included.
    pub fn get(&self, id: &str) -> Option<&Value> {
        let id = id.to_ascii_lowercase();
        self.resources.get(&type_of(&id))?.get(&id)
    }

    /// Puts a resource, whatever it is, as it is; what has no ID is ignored. Name and type follow from the ID.
    pub fn put(&mut self, mut resource: Value) {
        let Some(id) = resource["id"].as_str().map(str::to_owned) else { return };
        let route = route::route(&id);
        if resource["name"].is_null() {
            resource["name"] = json!(route.name());
        }
        if resource["type"].is_null() {
            resource["type"] = json!(route.resource_type);
        }
        let key = id.to_ascii_lowercase();
        self.graph.note(self.now, &key, Some(&resource));
        if route.kind == Kind::NetworkInterface {
            self.addresses.note(&key, Some(&resource));
        }
        self.resources.entry(route.resource_type.to_ascii_lowercase()).or_default().insert(key, resource);
    }

    /// Changes a resource, if it is there.
    pub fn change(&mut self, id: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut resource) = self.get(id).cloned() {
            change(&mut resource);
            self.put(resource);
        }
    }

    /// Removes a resource alone, with nothing that depends on it.
    pub fn remove(&mut self, id: &str) -> Option<Value> {
        let id = id.to_ascii_lowercase();
        let removed = self.resources.get_mut(&type_of(&id))?.remove(&id)?;
        self.graph.note(self.now, &id, None);
        self.addresses.note(&id, None);
        Some(removed)
    }

    /// All resources of a kind, in the order of their IDs.
    pub fn all(&self, kind: Kind) -> Vec<&Value> {
        kind.resource_type().map(|name| self.of_type(name)).unwrap_or_default()
    }

    /// All resources of a type such as `Microsoft.Compute/disks`, in the order of their IDs.
    pub fn of_type(&self, resource_type: &str) -> Vec<&Value> {
        let found = self.resources.get(&resource_type.to_ascii_lowercase());
        found.map(|found| found.values().collect()).unwrap_or_default()
    }

    /// The IDs of all resources of a kind that are parts of another one.
    pub(crate) fn parts(&self, kind: Kind, owner: &str) -> Vec<String> {
        let prefix = format!("{}/", owner.to_ascii_lowercase());
        let found = kind.resource_type().and_then(|name| self.resources.get(&name.to_ascii_lowercase()));
        let from = found.into_iter().flat_map(|found| found.range(prefix.clone()..));
        from.map(|(id, _)| id.clone()).take_while(|id| id.starts_with(&prefix)).collect()
    }

    /// The names of all resources of a kind.
    pub fn names(&self, kind: Kind) -> Vec<String> {
        self.all(kind).iter().map(|each| each["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        let part = format!("/resourcegroups/{}/", group.to_ascii_lowercase());
        let settings = &self.settings;
        [&settings.cluster_resource_group, &settings.node_resource_group]
            .iter()
            .any(|each| each.eq_ignore_ascii_case(group))
            || self.resources.values().flat_map(BTreeMap::keys).any(|id| id.contains(&part))
    }

    /// A UUID that was not there before.
    pub(crate) fn uuid(&mut self) -> String {
        self.serial += 1;
        format!("aaaaaaaa-bbbb-4ccc-8ddd-{:012x}", self.serial)
    }

    /// Lets nobody but AKS change anything in the resource group of the nodes, as `--nrg-lockdown-restriction-level
    /// ReadOnly` does.
    pub fn lock_node_resource_group(&mut self) {
        self.settings.locks_node_resource_group = true;
        let id = self.settings.cluster_id();
        self.change(&id, |cluster| {
            cluster["properties"]["nodeResourceGroupProfile"] = json!({"restrictionLevel": "ReadOnly"});
        });
    }

    /// Keeps a network interface for a virtual machine for a while.
    pub fn reserve(&mut self, interface: &str, machine: &str) {
        let until = self.now.saturating_add(RESERVATION).unwrap_or(Timestamp::MAX);
        self.reserved.insert(interface.to_ascii_lowercase(), (machine.to_owned(), until));
    }

    /// Which virtual machine a network interface is kept for.
    pub(crate) fn reserved(&self, interface: &str) -> Option<&str> {
        let (machine, until) = self.reserved.get(&interface.to_ascii_lowercase())?;
        (*until > self.now).then_some(machine.as_str())
    }
}

/// The type in an ID, in lower case.
fn type_of(id: &str) -> String {
    route::route(id).resource_type.to_ascii_lowercase()
}

/// A text in a resource; empty if it is not there.
pub(crate) fn text<'a>(resource: &'a Value, pointer: &str) -> &'a str {
    resource.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Elements of a list in a resource.
pub(crate) fn list<'a>(resource: &'a Value, pointer: &str) -> &'a [Value] {
    resource.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

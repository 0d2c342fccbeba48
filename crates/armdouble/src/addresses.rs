//! Which address of which subnet belongs to which network interface.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::world::{list, text};

/// Azure keeps the first four addresses of a subnet and the last one.
const KEPT_AT_THE_START: u32 = 4;

/// Addresses that are used, by the ID of their subnet in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    taken: BTreeMap<String, BTreeMap<u32, String>>,
    /// Subnets and addresses of an interface.
    of: BTreeMap<String, Vec<(String, u32)>>,
}

impl Addresses {
    /// Notes what a network interface has now, or that it is gone.
    pub(crate) fn note(&mut self, interface: &str, resource: Option<&Value>) {
        for (subnet, address) in self.of.remove(interface).unwrap_or_default() {
            self.taken.entry(subnet).or_default().remove(&address);
        }
        for configuration in
            resource.map(|each| list(each, "/properties/ipConfigurations")).unwrap_or_default()
        {
            let subnet = text(configuration, "/properties/subnet/id").to_ascii_lowercase();
            if let Ok(address) = text(configuration, "/properties/privateIPAddress").parse::<Ipv4Addr>() {
                self.of.entry(interface.to_owned()).or_default().push((subnet.clone(), address.into()));
                self.taken.entry(subnet).or_default().insert(address.into(), interface.to_owned());
            }
        }
    }

    /// The network interfaces that have addresses of a subnet, one for each address.
    pub(crate) fn owners(&self, subnet: &str) -> impl Iterator<Item = &str> {
        let taken = self.taken.get(&subnet.to_ascii_lowercase());
        taken.into_iter().flat_map(BTreeMap::values).map(String::as_str)
    }

    /// So many addresses of a subnet for a network interface, its own among them; none if there are not enough.
    pub(crate) fn free(
        &self,
        subnet: &str,
        prefix: &str,
        interface: &str,
        count: usize,
    ) -> Option<Vec<Ipv4Addr>> {
        let (network, bits) = prefix.split_once('/')?;
        let first = u32::from(network.parse::<Ipv4Addr>().ok()?);
        let size = 1_u64 << 32_u32.saturating_sub(bits.parse().ok()?);
        let last = u32::try_from(u64::from(first) + size - 1).unwrap_or(u32::MAX);
        let none = BTreeMap::new();
        let taken = self.taken.get(&subnet.to_ascii_lowercase()).unwrap_or(&none);
        let usable = first.saturating_add(KEPT_AT_THE_START)..last;
        let is_free = |address: &u32| taken.get(address).is_none_or(|owner| owner == interface);
        let free: Vec<Ipv4Addr> = usable.filter(is_free).take(count).map(Ipv4Addr::from).collect();
        (free.len() == count).then_some(free)
    }
}

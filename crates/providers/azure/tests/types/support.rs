//! What most tests begin with: sizes as Azure lists them, a NodeClass, and everything that changes, at rest.

use std::sync::{Arc, LazyLock};

use api::azure::AKSNodeClass;
use api::labels::LabelSets;
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use azure::arm::types::sku::{ResourceSku, Usage};
use azure::instance_type::{self, Environment, Market, Network, Profile};
use azure::prices::Prices;
use azure::quota::Quota;
use azure::ranking::{self, Ranking};
use azure::sku::{Catalogue, Sku};
use azure::unavailable::Unavailable;
use cluster::instance_types::{InstanceType, Offering, Wanted};
use jiff::Timestamp;
use serde_json::{Value, json};
use units::Resources;

pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
/// A region with zones.
pub(crate) const ZONAL: &str = "southcentralus";
/// A region without.
pub(crate) const REGIONAL: &str = "westcentralus";
pub(crate) const OVERLAY: Network<'static> = Network { plugin: "azure", mode: "overlay" };
pub(crate) const ON_DEMAND: &str = "on-demand";
pub(crate) const SPOT: &str = "spot";
pub(crate) const DS_V3: &str = "standardDSv3Family";

pub(crate) static SETS: LazyLock<LabelSets> = LazyLock::new(|| LabelSets::for_provider(Provider::Azure));

static ZONAL_PRICES: LazyLock<Prices> = LazyLock::new(|| Prices::of_region(ZONAL));
static REGIONAL_PRICES: LazyLock<Prices> = LazyLock::new(|| Prices::of_region(REGIONAL));

/// Everything that Azure lists.
pub(crate) fn listed(location: &str) -> Vec<ResourceSku> {
    let text = match location {
        ZONAL => include_str!("../data/skus_southcentralus.json"),
        _ => include_str!("../data/skus_westcentralus.json"),
    };
    let mut page: Value = serde_json::from_str(text).unwrap();
    serde_json::from_value(page["value"].take()).unwrap()
}

/// What Azure lists about one size.
#[track_caller]
pub(crate) fn one(name: &str) -> ResourceSku {
    let found = listed(ZONAL).into_iter().find(|wire| wire.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

/// A size that is like another one.
#[track_caller]
pub(crate) fn like(model: &str, name: &str, family: &str, vcpus: i64) -> ResourceSku {
    let mut wire = with(one(model), "vCPUs", &vcpus.to_string());
    wire.name = Some(name.to_owned());
    wire.size = name.split_once('_').map(|(_, size)| size.to_owned());
    wire.family = Some(family.to_owned());
    wire
}

/// The same with another value of a capability.
pub(crate) fn with(mut wire: ResourceSku, capability: &str, value: &str) -> ResourceSku {
    let all = wire.capabilities.get_or_insert_default();
    all.retain(|each| each.name.as_deref() != Some(capability));
    all.push(serde_json::from_value(json!({"name": capability, "value": value})).unwrap());
    wire
}

pub(crate) fn catalogue(location: &str) -> Catalogue {
    Catalogue::read(&listed(location), location).unwrap()
}

#[track_caller]
pub(crate) fn sku(wire: &ResourceSku) -> Sku {
    Sku::read(wire, ZONAL).unwrap()
}

/// A NodeClass as the API server returns it, with fields of the spec and the status.
pub(crate) fn class(spec: Value, status: Value) -> AKSNodeClass {
    serde_json::from_value(json!({
        "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
        "metadata": {"name": "default"}, "spec": spec, "status": status,
    }))
    .unwrap()
}

pub(crate) fn profile(spec: Value) -> Profile {
    Profile::of(&class(spec, json!({})), OVERLAY)
}

/// Everything that changes from minute to minute, at rest, and the sizes.
pub(crate) struct World {
    pub(crate) location: &'static str,
    pub(crate) catalogue: Catalogue,
    pub(crate) prices: Prices,
    pub(crate) unavailable: Unavailable,
    pub(crate) quota: Quota,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new(location: &'static str) -> Self {
        Self::of(location, catalogue(location))
    }

    pub(crate) fn of(location: &'static str, catalogue: Catalogue) -> Self {
        Self {
            location,
            catalogue,
            prices: if location == ZONAL { ZONAL_PRICES.clone() } else { REGIONAL_PRICES.clone() },
            unavailable: Unavailable::default(),
            quota: Quota::default(),
            now: NOW,
        }
    }

    /// A zonal region that has only some sizes.
    pub(crate) fn with_sizes(listed: &[ResourceSku]) -> Self {
        Self::of(ZONAL, Catalogue::read(listed, ZONAL).unwrap())
    }

    pub(crate) fn market(&self) -> Market<'_> {
        let Self { prices, unavailable, quota, now, .. } = self;
        Market { prices, unavailable, quota, now: *now }
    }

    pub(crate) fn environment(&self) -> Environment<'static> {
        Environment {
            location: self.location,
            node_resource_group: "MC_group_cluster_region",
            vm_memory_overhead: 0.075,
        }
    }

    pub(crate) fn types(&self, profile: &Profile) -> Vec<InstanceType> {
        instance_type::list(&self.catalogue, profile, &self.environment(), &self.market()).unwrap()
    }

    /// The types of a plain NodeClass.
    pub(crate) fn plain(&self) -> Vec<InstanceType> {
        self.types(&profile(json!({})))
    }

    pub(crate) fn names(&self, profile: &Profile) -> Vec<String> {
        self.types(profile).into_iter().map(|each| each.name).collect()
    }

    #[track_caller]
    pub(crate) fn sku(&self, name: &str) -> Arc<Sku> {
        Arc::clone(self.catalogue.get(name).unwrap_or_else(|| panic!("there is no {name}")))
    }

    /// How much the subscription uses and may use.
    pub(crate) fn set_quota(&mut self, rows: &[(&str, i64, i64)]) {
        let usage = |(name, used, limit): &(&str, i64, i64)| -> Usage {
            let usage = json!({"name": {"value": name}, "currentValue": used, "limit": limit});
            serde_json::from_value(usage).unwrap()
        };
        self.quota.read(&rows.iter().map(usage).collect::<Vec<_>>(), self.now);
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, minutes: i64) {
        self.now += jiff::SignedDuration::from_mins(minutes);
    }

    pub(crate) fn rank<'a>(
        &self,
        types: &'a [InstanceType],
        requirements: &[Requirement],
        seed: u64,
    ) -> Ranking<'a> {
        let mut wanted = Wanted::new(requirements, &SETS).unwrap();
        let mut request = ranking::Request { wanted: &mut wanted, requests: &Resources::default(), seed };
        ranking::rank(types, &mut request, &self.catalogue, &self.market())
    }

    /// What a launch asks for: name, zone and capacity type.
    pub(crate) fn best(&self, requirements: &[Requirement]) -> Result<(String, String, String), String> {
        let types = self.plain();
        let ranking = self.rank(&types, requirements, 0);
        let (each, offering) = ranking.best().map_err(|error| error.to_string())?;
        let value = |key| offering.value(key).unwrap().to_owned();
        Ok((each.name.clone(), value(ZONE), value("karpenter.sh/capacity-type")))
    }
}

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const SCOPE: &str = "karpenter.azure.com/placement-scope";
pub(crate) const ULTRA_SSD: &str = "karpenter.azure.com/sku-storage-ultra-ssd";

/// A requirement, with values that are separated by commas.
pub(crate) fn requirement(key: &str, operator: Operator, values: &str) -> Requirement {
    let values = values.split(',').filter(|value| !value.is_empty()).map(str::to_owned).collect();
    Requirement { key: key.to_owned(), operator, values, min_values: None }
}

pub(crate) fn is(key: &str, values: &str) -> Requirement {
    requirement(key, Operator::In, values)
}

#[track_caller]
pub(crate) fn find<'a>(types: &'a [InstanceType], name: &str) -> &'a InstanceType {
    types.iter().find(|each| each.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

/// The value of a label: `-` if it is absent, several with bars between them, nothing if none is possible.
pub(crate) fn label(requirements: &[Requirement], key: &str) -> String {
    let found = requirements.iter().find(|each| each.key == key);
    found.map_or_else(
        || "none".to_owned(),
        |each| match each.operator {
            Operator::DoesNotExist => "-".to_owned(),
            _ => each.values.join("|"),
        },
    )
}

/// The offering of a type in a zone.
#[track_caller]
pub(crate) fn offering<'a>(each: &'a InstanceType, zone: &str, kind: &str) -> &'a Offering {
    let is_meant = |offering: &&Offering| {
        offering.value(ZONE) == Some(zone) && offering.value("karpenter.sh/capacity-type") == Some(kind)
    };
    each.offerings.iter().find(is_meant).unwrap_or_else(|| panic!("{} has no {zone} {kind}", each.name))
}

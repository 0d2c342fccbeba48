//! Instance types of simulated nodes: files in upstream's format, and 144 built-in types.
//!
//! ```json
//! [{"name": "m-1", "architecture": "amd64", "operatingSystems": ["linux"],
//!   "resources": {"cpu": "1", "memory": "8Gi"},
//!   "offerings": [{"Price": 0.1, "Requirements": [
//!       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
//!       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]},
//!     {"price": 0.2, "capacityType": "on-demand", "zone": "a"}]}]
//! ```
//!
//! Upper and lower case of field names do not matter. The short form of an offering is that of upstream's example
//! file.

use std::fmt;
use std::path::Path;

use api::names::{labels, resources, values};
use api::shared::{Operator, Requirement};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use units::{Format, Quantity, Resources};

use super::{InstanceType, Offering, Overlaid};
use crate::file::{self, FileError};
use crate::objects::collections::List;
use crate::objects::pod::ResourceList;

/// How many pods a node takes if its type does not say.
const DEFAULT_PODS: i64 = 110;

/// Why a file of instance types cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file itself cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a list of instance types.
    #[error("{file}: {message}")]
    Content {
        /// The file.
        file: String,
        /// What is wrong and where.
        message: String,
    },
    /// The file has no instance types.
    #[error("{file}: the list of instance types is empty; expected at least one")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Reads a file of instance types; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<InstanceType>, CatalogueError> {
    let (name, bytes) = file::bytes(path)?;
    parse(&name, &bytes)
}

/// Reads a file of instance types that is in memory.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Vec<InstanceType>, CatalogueError> {
    let text = file::text(name, bytes)?;
    let types: Vec<Type> = match serde_json::from_str(text) {
        Ok(types) => types,
        Err(error) => {
            // Decoding again with a record of the way costs time only where something is wrong.
            let mut json = serde_json::Deserializer::from_str(text);
            let located = serde_path_to_error::deserialize::<_, Vec<Type>>(&mut json).err();
            // What has no name yet is a question mark in the way.
            let message =
                located.map_or_else(|| error.to_string(), |located| located.to_string().replace(".?", ""));
            return Err(CatalogueError::Content { file: name.to_owned(), message });
        }
    };
    if types.is_empty() {
        return Err(CatalogueError::Empty { file: name.to_owned() });
    }
    if let Some(position) = types.iter().position(|each| each.name.is_empty()) {
        let message = format!("[{position}].name: missing; expected the name of the instance type");
        return Err(CatalogueError::Content { file: name.to_owned(), message });
    }
    Ok(types.into_iter().map(Type::complete).collect())
}

/// Declares a structure whose fields are found whatever the case of their names.
macro_rules! any_case {
    ($(#[$doc:meta])* $name:ident { $($key:literal => $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        struct $name {
            $($field: $type,)*
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object with ", $("`", $key, "` "),*))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut result = $name::default();
                        while let Some(key) = map.next_key::<Box<str>>()? {
                            $(if key.eq_ignore_ascii_case($key) {
                                result.$field = map.next_value()?;
                                continue;
                            })*
                            map.next_value::<IgnoredAny>()?;
                        }
                        Ok(result)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
}

any_case! {
    /// An instance type as the file has it.
    Type {
        "name" => name: String,
        "architecture" => architecture: String,
        "operatingSystems" => operating_systems: List<String>,
        "resources" => resources: ResourceList,
        "offerings" => offerings: List<TypeOffering>,
    }
}

any_case! {
    /// An offering as the file has it, in the long or in the short form.
    TypeOffering {
        "price" => price: f64,
        "reservationCapacity" => reservation_capacity: Option<u32>,
        "requirements" => requirements: List<OfferingRequirement>,
        "capacityType" => capacity_type: Option<String>,
        "zone" => zone: Option<String>,
    }
}

any_case! {
    /// A requirement as the file has it.
    OfferingRequirement {
        "key" => key: String,
        "operator" => operator: FileOperator,
        "values" => values: List<String>,
    }
}

/// An operator; `In` where it is missing.
struct FileOperator(Operator);

impl Default for FileOperator {
    fn default() -> Self {
        Self(Operator::In)
    }
}

impl<'de> Deserialize<'de> for FileOperator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = Operator::ALL.into_iter().find(|operator| operator.as_str() == text);
        found.map(Self).ok_or_else(|| {
            let names = Operator::ALL.map(Operator::as_str).join(", ");
            D::Error::custom(format!("unknown operator {text:?}; expected one of {names}"))
        })
    }
}

impl Type {
    fn complete(self) -> InstanceType {
        let mut capacity: Resources = self.resources.iter().map(|(name, amount)| (name, *amount)).collect();
        let text = |name: &str| capacity.get(name).map(|amount| amount.to_string()).unwrap_or_default();
        let (cpu, memory) = (text(resources::CPU), text(resources::MEMORY));
        if capacity.get(resources::PODS).is_none() {
            capacity.set(resources::PODS, Quantity::from_units(DEFAULT_PODS, Format::DecimalSi));
        }
        let offerings: Vec<Offering> = self.offerings.iter().map(TypeOffering::complete).collect();
        let requirements = vec![
            one_of(labels::INSTANCE_TYPE, [self.name.clone()]),
            one_of(labels::ARCH, [self.architecture]),
            one_of(labels::OS, self.operating_systems.iter().cloned()),
            one_of(labels::ZONE, offered(&offerings, labels::ZONE)),
            one_of(labels::CAPACITY_TYPE, offered(&offerings, labels::CAPACITY_TYPE)),
            one_of(labels::kwok::INSTANCE_SIZE, [size(&self.name).unwrap_or(&cpu).to_owned()]),
            one_of(labels::kwok::INSTANCE_FAMILY, [family(&self.name).to_owned()]),
            one_of(labels::kwok::INSTANCE_CPU, [cpu.clone()]),
            one_of(labels::kwok::INSTANCE_MEMORY, [memory]),
        ];
        let overhead = overhead();
        InstanceType {
            name: self.name,
            requirements,
            offerings,
            capacity,
            overhead,
            volume_limits: Vec::new(),
            overlaid: Overlaid::default(),
        }
    }
}

impl TypeOffering {
    /// Offerings of a file are always available.
    fn complete(&self) -> Offering {
        let long = self.requirements.iter().map(|requirement| Requirement {
            key: requirement.key.clone(),
            operator: requirement.operator.0,
            values: requirement.values.to_vec(),
            min_values: None,
        });
        let short = [(labels::CAPACITY_TYPE, &self.capacity_type), (labels::ZONE, &self.zone)];
        let short = short.into_iter().filter_map(|(key, value)| Some(one_of(key, [value.clone()?])));
        Offering {
            requirements: long.chain(short).collect(),
            price: self.price,
            available: true,
            reservation_capacity: self.reservation_capacity.unwrap_or(0),
            capacity_override: None,
            overhead_override: None,
        }
    }
}

/// What the kubelet keeps for itself.
fn overhead() -> Resources {
    let cpu = Quantity::from_millis(100, Format::DecimalSi);
    let memory = Quantity::from_units(10 << 20, Format::BinarySi);
    [(resources::CPU, cpu), (resources::MEMORY, memory)].into_iter().collect()
}

fn one_of(key: &str, values: impl IntoIterator<Item = String>) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: values.into_iter().collect(),
        min_values: None,
    }
}

/// The values that offerings have for a label, in the order in which they appear.
fn offered(offerings: &[Offering], key: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for offering in offerings {
        let requirement = offering.requirements.iter().find(|requirement| requirement.key == key);
        for value in requirement.iter().flat_map(|requirement| &requirement.values) {
            if !found.contains(value) {
                found.push(value.clone());
            }
        }
    }
    found
}

/// The size in names such as `m5.2xlarge`.
fn size(name: &str) -> Option<&str> {
    let (family, size) = name.split_once('.')?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_known = matches!(size, "nano" | "micro" | "small" | "medium" | "large" | "metal")
        || size.strip_suffix("xlarge").is_some_and(|count| count.bytes().all(|b| b.is_ascii_digit()));
    (!family.is_empty() && family.chars().all(is_word) && is_known).then_some(size)
}

/// What stands before the first dot or dash of a name; the first character if there is none.
fn family(name: &str) -> &str {
    match name.split_once(['.', '-']) {
        Some((family, _)) => family,
        None => name.chars().next().map_or("", |first| &name[..first.len_utf8()]),
    }
}

/// The types that upstream has built in: twelve sizes, three shapes, two systems, two architectures.
pub fn built_in() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for cpu in [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
        for (family, factor) in [("c", 2), ("s", 4), ("m", 8)] {
            for os in ["linux", "windows"] {
                for arch in values::arch::ALL {
                    types.push(built_in_type(cpu, family, factor, os, arch));
                }
            }
        }
    }
    types
}

fn built_in_type(cpu: i64, family: &str, factor: i64, os: &str, arch: &str) -> InstanceType {
    let memory = Quantity::from_units((cpu * factor) << 30, Format::BinarySi);
    let cpu_quantity = Quantity::from_units(cpu, Format::DecimalSi);
    let price = 0.025 * cpu_quantity.as_f64() + 0.001 * memory.as_f64() / 1e9;
    let zones = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
    let offerings = zones.into_iter().flat_map(|zone| {
        let prices = [(values::capacity_type::SPOT, price * 0.7), (values::capacity_type::ON_DEMAND, price)];
        prices.map(|(capacity_type, price)| TypeOffering {
            price,
            capacity_type: Some(capacity_type.to_owned()),
            zone: Some(zone.to_owned()),
            ..TypeOffering::default()
        })
    });
    let amounts = [
        (resources::CPU, cpu_quantity),
        (resources::MEMORY, memory),
        (resources::PODS, Quantity::from_units((16 * cpu).min(1024), Format::DecimalSi)),
        (resources::EPHEMERAL_STORAGE, Quantity::from_units(20 << 30, Format::BinarySi)),
    ];
    let described = Type {
        name: format!("{family}-{cpu}x-{arch}-{os}"),
        architecture: arch.to_owned(),
        operating_systems: [os.to_owned()].into_iter().collect(),
        resources: amounts.into_iter().collect(),
        offerings: offerings.collect(),
    };
    described.complete()
}

#[cfg(test)]
mod tests;

//! AKSNodeClasses as the cluster has them, read once for each of their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::azure::AKSNodeClass;
use cluster::objects::NodeClass;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Inner;

/// AKSNodeClasses that were read, by name.
#[derive(Debug, Default)]
pub(crate) struct Classes(Mutex<BTreeMap<Box<str>, Read>>);

/// A class, and which version of it was read.
type Read = (u64, Arc<AKSNodeClass>);

/// Why a NodeClass cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// There is none.
    #[error("aksnodeclasses.karpenter.azure.com {0:?} not found")]
    Missing(String),
    /// It is on its way out.
    #[error("aksnodeclasses.karpenter.azure.com {0:?} is terminating, treating as not found")]
    Terminating(String),
    /// It cannot be read.
    #[error("reading AKSNodeClass {0:?}, {1}")]
    Unreadable(String, String),
}

impl Unresolved {
    /// Whether there is none that can be used, which somebody must be told.
    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Terminating(_))
    }
}

impl Inner {
    /// The NodeClass with a name, unless it is on its way out.
    pub(crate) fn class(&self, name: &str) -> Result<Arc<AKSNodeClass>, Unresolved> {
        let found = self.setup.cluster.read().node_classes.named(name).cloned();
        let Some(found) = found else {
            self.classes.0.lock().remove(name);
            return Err(Unresolved::Missing(name.to_owned()));
        };
        if found.metadata.is_deleting() {
            return Err(Unresolved::Terminating(name.to_owned()));
        }
        let version = found.metadata.resource_version;
        let known =
            self.classes.0.lock().get(name).filter(|(read, _)| *read == version && version > 0).cloned();
        if let Some((_, class)) = known {
            return Ok(class);
        }
        let class =
            read(&found).map_err(|error| Unresolved::Unreadable(name.to_owned(), error.to_string()))?;
        let class = Arc::new(class);
        self.classes.0.lock().insert(name.into(), (version, Arc::clone(&class)));
        Ok(class)
    }
}

/// The whole class from what is kept of it.
pub(crate) fn read(class: &NodeClass) -> Result<AKSNodeClass, serde_json::Error> {
    let metadata = &class.metadata;
    let annotations: BTreeMap<&str, &str> =
        metadata.annotations.iter().map(|(key, value)| (key, &**value)).collect();
    let mut status = class.status.found.clone();
    status.insert("conditions".to_owned(), serde_json::to_value(&class.status.conditions)?);
    serde_json::from_value(json!({
        "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
        "metadata": {
            "name": metadata.name, "uid": metadata.uid, "generation": metadata.generation,
            "annotations": annotations, "resourceVersion": metadata.resource_version.to_string(),
            "creationTimestamp": metadata.creation_timestamp,
        },
        "spec": class.spec, "status": Value::Object(status),
    }))
}

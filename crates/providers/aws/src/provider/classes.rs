//! EC2NodeClasses as the cluster has them, read once for each of their versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::aws::EC2NodeClass;
use cluster::objects::NodeClass;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Inner;
use crate::port::{Error, PlacementGroup};
use crate::selectors::placement_group_query;

/// EC2NodeClasses that were read, by name.
#[derive(Debug, Default)]
pub(crate) struct Classes(Mutex<BTreeMap<Box<str>, Read>>);

/// A class, and which version of it was read.
type Read = (u64, Arc<EC2NodeClass>);

/// Why a NodeClass cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// There is none, or it is on its way out.
    #[error("ec2nodeclasses.karpenter.k8s.aws {0:?} not found")]
    Missing(String),
    /// It cannot be read.
    #[error("reading EC2NodeClass {0:?}, {1}")]
    Unreadable(String, String),
}

impl Inner {
    /// The NodeClass with a name, unless it is on its way out.
    pub(crate) fn class(&self, name: &str) -> Result<Arc<EC2NodeClass>, Unresolved> {
        let found = self.setup.cluster.read().node_classes.named(name).cloned();
        let found = found.filter(|class| !class.metadata.is_deleting());
        let found = found.ok_or_else(|| Unresolved::Missing(name.to_owned()))?;
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

    /// The placement group of a NodeClass, asked for only if it is not known yet.
    pub(crate) async fn placement_group(
        &self,
        class: &EC2NodeClass,
    ) -> Result<Option<PlacementGroup>, Error> {
        let Some(query) = placement_group_query(class.spec.placement_group_selector.as_ref()) else {
            return Ok(None);
        };
        if let Some(known) = self.known.lock().placement_groups.get(&query).cloned() {
            return Ok(Some(known));
        }
        let ec2 = &self.setup.services.ec2;
        let found = self.counted("ec2:DescribePlacementGroups", ec2.placement_groups(&query)).await?;
        let found = found.into_iter().next();
        let Some(found) = found else {
            let message = "no placement group is selected by spec.placementGroupSelector";
            return Err(Error::new("ec2:DescribePlacementGroups", "PlacementGroupNotFound", message));
        };
        self.known.lock().placement_groups.insert(query, found.clone());
        Ok(Some(found))
    }
}

/// The whole class from what is kept of it.
pub(crate) fn read(class: &NodeClass) -> Result<EC2NodeClass, serde_json::Error> {
    let metadata = &class.metadata;
    let annotations: BTreeMap<&str, &str> =
        metadata.annotations.iter().map(|(key, value)| (key, &**value)).collect();
    let mut status = class.status.found.clone();
    status.insert("conditions".to_owned(), serde_json::to_value(&class.status.conditions)?);
    serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {
            "name": metadata.name, "uid": metadata.uid, "generation": metadata.generation,
            "annotations": annotations, "resourceVersion": metadata.resource_version.to_string(),
            "creationTimestamp": metadata.creation_timestamp,
        },
        "spec": class.spec, "status": Value::Object(status),
    }))
}

//! The little that is kept of a node's lease.
//!
//! Renewals are most of what an idle cluster does, so they are read without what nobody looks at.

use std::borrow::Cow;

use k8s_openapi::api::coordination::v1::Lease as Full;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use k8s_openapi::{NamespaceResourceScope, Resource as _};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize};

/// The lease of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// Name, namespace, identity, version and owners; nothing else.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// When it was renewed.
    #[serde(default)]
    pub spec: LeaseSpec,
}

/// When a lease was renewed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseSpec {
    /// When it was last renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<MicroTime>,
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Slim {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let slim = Slim::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: slim.name,
        namespace: slim.namespace,
        uid: slim.uid,
        resource_version: slim.resource_version,
        owner_references: slim.owner_references,
        ..ObjectMeta::default()
    })
}

impl Resource for Lease {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Full::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        Full::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        Full::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        Full::URL_PATH_SEGMENT.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_looks_at_is_not_kept() {
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {
                "name": "a", "namespace": "b", "resourceVersion": "7", "managedFields": [{"manager": "x"}],
            },
            "spec": {"holderIdentity": "a", "renewTime": "2026-01-05T09:00:00.000000Z"},
        }))
        .unwrap();
        assert_eq!(lease.metadata.managed_fields, None);
        assert_eq!(lease.metadata.resource_version.as_deref(), Some("7"));
        assert!(lease.spec.renew_time.is_some());
    }
}

//! The part of a pod that is kept.
//!
//! Pods are by far the most objects, and most fields of Kubernetes' own types are empty in each of them: these types
//! have the fields that somebody looks at, under the same names.
//! Lists of the status are written as a whole, so what is in them is kept completely.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, ContainerState, ContainerUser, HostIP, PodCondition, PodIP, PodReadinessGate,
    PodResourceClaim, PodResourceClaimStatus, PodSchedulingGate, ResourceRequirements, ResourceStatus,
    Toleration, TopologySpreadConstraint, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize};

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// Everything but who wrote which field.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: Option<PodSpec>,
    /// What is.
    pub status: Option<PodStatus>,
}

/// What is wanted of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub affinity: Option<Box<Affinity>>,
    pub containers: Vec<Container>,
    pub host_network: Option<bool>,
    pub init_containers: Option<Vec<Container>>,
    pub node_name: Option<String>,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub overhead: Option<BTreeMap<String, Quantity>>,
    pub preemption_policy: Option<String>,
    pub priority: Option<i32>,
    pub readiness_gates: Option<Vec<PodReadinessGate>>,
    pub resource_claims: Option<Vec<PodResourceClaim>>,
    pub resources: Option<Resources>,
    pub restart_policy: Option<String>,
    pub scheduler_name: Option<String>,
    pub scheduling_gates: Option<Vec<PodSchedulingGate>>,
    pub tolerations: Option<Vec<Toleration>>,
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    pub volumes: Option<Vec<Volume>>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub image: Option<String>,
    pub name: String,
    pub ports: Option<Vec<ContainerPort>>,
    pub resources: Option<Resources>,
    pub restart_policy: Option<String>,
}

/// What a container or a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// Amounts by the name of the resource.
    pub requests: Option<BTreeMap<String, Quantity>>,
}

/// A volume, as far as it is a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    pub ephemeral: Option<Ephemeral>,
    pub name: String,
    pub persistent_volume_claim: Option<ClaimName>,
}

/// That a claim is made for the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ephemeral {}

/// The claim that a volume is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimName {
    /// Its name.
    pub claim_name: String,
}

/// What is known of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    pub conditions: Option<Vec<PodCondition>>,
    pub container_statuses: Option<Vec<ContainerStatus>>,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    #[serde(rename = "hostIPs")]
    pub host_ips: Option<Vec<HostIP>>,
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    pub nominated_node_name: Option<String>,
    pub observed_generation: Option<i64>,
    pub phase: Option<String>,
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    #[serde(rename = "podIPs")]
    pub pod_ips: Option<Vec<PodIP>>,
    pub resource_claim_statuses: Option<Vec<PodResourceClaimStatus>>,
    pub resources: Option<Resources>,
    pub start_time: Option<Time>,
}

/// What is known of a container: everything, with what is rare apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_resources_status: Option<Vec<ResourceStatus>>,
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    pub image: String,
    #[serde(rename = "imageID")]
    pub image_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_state: Option<Box<ContainerState>>,
    pub name: String,
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Box<ResourceRequirements>>,
    pub restart_count: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<ContainerState>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<ContainerUser>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMountStatus>>,
}

/// Reads everything but the managed fields, which are as long as all the rest.
fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Slim {
        annotations: Option<BTreeMap<String, String>>,
        creation_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        deletion_timestamp: Option<Time>,
        finalizers: Option<Vec<String>>,
        generate_name: Option<String>,
        generation: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        name: Option<String>,
        namespace: Option<String>,
        owner_references: Option<Vec<OwnerReference>>,
        resource_version: Option<String>,
        uid: Option<String>,
    }
    let slim = Slim::deserialize(deserializer)?;
    Ok(ObjectMeta {
        annotations: slim.annotations,
        creation_timestamp: slim.creation_timestamp,
        deletion_grace_period_seconds: slim.deletion_grace_period_seconds,
        deletion_timestamp: slim.deletion_timestamp,
        finalizers: slim.finalizers,
        generate_name: slim.generate_name,
        generation: slim.generation,
        labels: slim.labels,
        name: slim.name,
        namespace: slim.namespace,
        owner_references: slim.owner_references,
        resource_version: slim.resource_version,
        uid: slim.uid,
        ..ObjectMeta::default()
    })
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
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
    use k8s_openapi::api::core::v1 as full;
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Pod {
        serde_json::from_value(value).expect("a pod")
    }

    #[test]
    fn what_nobody_looks_at_is_not_kept() {
        let pod = read(json!({
            "metadata": {"name": "a", "resourceVersion": "7", "managedFields": [{"manager": "x"}]},
            "spec": {
                "containers": [{"name": "main", "image": "web", "env": [{"name": "A", "value": "b"}]}],
                "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
                "securityContext": {},
            },
        }));
        assert_eq!(pod.metadata.managed_fields, None);
        assert_eq!(pod.metadata.resource_version.as_deref(), Some("7"));
        let spec = pod.spec.expect("a spec");
        assert_eq!(spec.containers[0].image.as_deref(), Some("web"));
        assert_eq!(spec.volumes.expect("volumes")[0].ephemeral, Some(Ephemeral {}));
    }

    /// Lists are replaced as a whole: what was not kept of a status would be lost with the next write.
    #[test]
    fn a_container_status_is_written_as_it_was_read() {
        let state = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-01-05T09:00:00Z"}});
        let mut value = json!({
            "allocatedResources": {"cpu": "1"},
            "allocatedResourcesStatus": [{"name": "gpu", "resources": [{"health": "Healthy", "resourceID": "0"}]}],
            "containerID": "c", "image": "web", "imageID": "sha", "lastState": state, "name": "main",
            "ready": true, "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            "restartCount": 3, "started": true, "state": state, "stopSignal": "SIGTERM",
            "user": {"linux": {"gid": 1, "supplementalGroups": [2], "uid": 3}},
            "volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": true}],
        });
        let known: full::ContainerStatus = serde_json::from_value(value.clone()).expect("a status");
        assert_eq!(
            serde_json::to_value(known).expect("JSON"),
            value,
            "every field of Kubernetes is in the example"
        );
        let kept: ContainerStatus = serde_json::from_value(value.clone()).expect("a status");
        assert_eq!(serde_json::to_value(kept).expect("JSON"), value);

        value = json!({"image": "", "imageID": "", "name": "main", "ready": false, "restartCount": 0});
        let kept: ContainerStatus = serde_json::from_value(value.clone()).expect("a status");
        assert_eq!(serde_json::to_value(kept).expect("JSON"), value);
    }
}

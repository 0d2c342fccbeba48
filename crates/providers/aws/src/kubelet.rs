//! The kubelet's settings of an EC2NodeClass: an open object, of which twelve fields mean something to us.
//!
//! ```text
//!   spec.kubelet ──► validate (everything that is wrong)          ──► condition of the NodeClass
//!         └────────► Kubelet (the twelve fields) ──► Resolved     ──► overhead and user data, the same for both
//! ```

pub mod expressions;
mod fields;
mod parse;
mod resolve;
mod support;
pub mod validate;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use units::GoDuration;

pub use expressions::{Expressions, fields as expression_fields};
pub use resolve::Resolved;
pub use support::unsupported;
pub use validate::mistakes;

/// Fields that we understand; all others are only passed on.
const MANAGED: [&str; 12] = [
    "clusterDNS",
    "maxPods",
    "podsPerCore",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
];

/// Why the kubelet's settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.kubelet.{field}: {message}")]
pub struct Invalid {
    /// The field.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// How many pods a node takes at most.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum MaxPods {
    /// A number.
    Count(i32),
    /// An expression in CEL, for each instance type.
    Expression(String),
}

/// The settings that we understand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kubelet {
    /// The addresses of the cluster's DNS.
    #[serde(rename = "clusterDNS")]
    pub cluster_dns: Vec<String>,
    /// How many pods a node takes at most.
    pub max_pods: Option<MaxPods>,
    /// How many pods a node takes at most for each processor.
    pub pods_per_core: Option<i32>,
    /// What is kept for the system: amounts, or expressions in CEL.
    pub system_reserved: BTreeMap<String, String>,
    /// What is kept for Kubernetes: amounts, or expressions in CEL.
    pub kube_reserved: BTreeMap<String, String>,
    /// When pods are evicted at once.
    pub eviction_hard: BTreeMap<String, String>,
    /// When pods are evicted after a while.
    pub eviction_soft: BTreeMap<String, String>,
    /// After which while.
    pub eviction_soft_grace_period: BTreeMap<String, GoDuration>,
    /// How many seconds evicted pods have at most.
    pub eviction_max_pod_grace_period: Option<i32>,
    /// How full the disk is when images are removed.
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// How full the disk is when no more images are removed.
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether limits of processors are enforced.
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: Option<bool>,
}

impl Kubelet {
    /// Reads the fields that we understand. Nothing is made up for a field that cannot be read.
    pub fn decode(settings: Option<&BTreeMap<String, Value>>) -> Result<Self, Invalid> {
        let known: serde_json::Map<String, Value> = settings
            .into_iter()
            .flatten()
            .filter(|(field, value)| MANAGED.contains(&field.as_str()) && !value.is_null())
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect();
        serde_path_to_error::deserialize(Value::Object(known))
            .map_err(|error| Invalid { field: error.path().to_string(), message: error.inner().to_string() })
    }

    /// The number of pods, if it is written as one.
    pub fn literal_max_pods(&self) -> Option<i32> {
        match self.max_pods {
            Some(MaxPods::Count(count)) => Some(count),
            Some(MaxPods::Expression(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(settings: Value) -> Result<Kubelet, String> {
        let settings: BTreeMap<String, Value> = serde_json::from_value(settings).unwrap();
        Kubelet::decode(Some(&settings)).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_that_we_do_not_know_do_not_matter_here() {
        assert_eq!(Kubelet::decode(None), Ok(Kubelet::default()));
        let kubelet = decode(json!({"maxPods": 10, "podsPerCore": null, "other": {"a": 1}})).unwrap();
        assert_eq!(kubelet, Kubelet { max_pods: Some(MaxPods::Count(10)), ..Kubelet::default() });
    }

    #[test]
    fn every_field_is_read() {
        let kubelet = decode(json!({
            "clusterDNS": ["10.0.0.10"], "maxPods": "vcpus * 8", "podsPerCore": 2,
            "systemReserved": {"cpu": "100m"}, "kubeReserved": {"memory": "1Gi"},
            "evictionHard": {"memory.available": "5%"}, "evictionSoft": {"memory.available": "10%"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"}, "evictionMaxPodGracePeriod": 3,
            "imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 10, "cpuCFSQuota": false,
        }))
        .unwrap();
        assert_eq!(kubelet.max_pods, Some(MaxPods::Expression("vcpus * 8".to_owned())));
        assert_eq!(kubelet.eviction_soft_grace_period["memory.available"], GoDuration::from_secs(90));
        assert_eq!((kubelet.cpu_cfs_quota, kubelet.image_gc_low_threshold_percent), (Some(false), Some(10)));
        assert_eq!(kubelet.literal_max_pods(), None);
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_named() {
        for (settings, field) in [
            (json!({"clusterDNS": "10.0.0.10"}), "clusterDNS"),
            (json!({"maxPods": [1]}), "maxPods"),
            (json!({"podsPerCore": "two"}), "podsPerCore"),
            (json!({"systemReserved": {"cpu": 1}}), "systemReserved.cpu"),
            (json!({"kubeReserved": ["cpu"]}), "kubeReserved"),
            (json!({"evictionHard": {"memory.available": 5}}), "evictionHard.memory.available"),
            (json!({"evictionSoft": 1}), "evictionSoft"),
            (json!({"evictionSoftGracePeriod": {"a": "soon"}}), "evictionSoftGracePeriod.a"),
            (json!({"evictionMaxPodGracePeriod": 1.5}), "evictionMaxPodGracePeriod"),
            (json!({"imageGCHighThresholdPercent": "5"}), "imageGCHighThresholdPercent"),
            (json!({"imageGCLowThresholdPercent": true}), "imageGCLowThresholdPercent"),
            (json!({"cpuCFSQuota": "yes"}), "cpuCFSQuota"),
        ] {
            let error = decode(settings).unwrap_err();
            assert!(error.starts_with(&format!("spec.kubelet.{field}: ")), "{error}");
        }
    }
}

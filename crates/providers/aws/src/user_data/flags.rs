//! Flags of the kubelet, for images that are told nothing else.

use std::collections::BTreeMap;
use std::fmt::Display;

use api::shared::Taint;

use super::Bootstrap;

/// All flags, in a fixed order; those that say nothing are left out.
pub(super) fn all(bootstrap: &Bootstrap<'_>) -> Vec<String> {
    let kubelet = &bootstrap.kubelet;
    let number = |name: &str, value: Option<i32>| value.map(|value| format!("--{name}={value}"));
    [
        labels(bootstrap),
        taints(&bootstrap.taints),
        number("max-pods", kubelet.literal_max_pods()),
        number("pods-per-core", kubelet.pods_per_core),
        map("system-reserved", "=", &kubelet.system_reserved),
        map("kube-reserved", "=", &kubelet.kube_reserved),
        map("eviction-hard", "<", &kubelet.eviction_hard),
        map("eviction-soft", "<", &kubelet.eviction_soft),
        map("eviction-soft-grace-period", "=", &kubelet.eviction_soft_grace_period),
        number("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
        number("image-gc-high-threshold", kubelet.image_gc_high_threshold_percent),
        number("image-gc-low-threshold", kubelet.image_gc_low_threshold_percent),
        kubelet.cpu_cfs_quota.map(|enforced| format!("--cpu-cfs-quota={enforced}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The flag with the node's labels.
pub(super) fn labels(bootstrap: &Bootstrap<'_>) -> Option<String> {
    map("node-labels", "=", &bootstrap.labels)
}

fn taints(taints: &[Taint]) -> Option<String> {
    let written: Vec<String> = taints
        .iter()
        .map(|Taint { key, value, effect, .. }| match value.as_str() {
            "" => format!("{key}:{effect}"),
            value => format!("{key}={value}:{effect}"),
        })
        .collect();
    (!written.is_empty()).then(|| format!("--register-with-taints=\"{}\"", written.join(",")))
}

fn map<V: Display>(name: &str, between: &str, entries: &BTreeMap<String, V>) -> Option<String> {
    let written: Vec<String> = entries.iter().map(|(key, value)| format!("{key}{between}{value}")).collect();
    (!written.is_empty()).then(|| format!("--{name}=\"{}\"", written.join(",")))
}

//! Which settings of the kubelet an image family can pass on.

use std::collections::BTreeMap;

use api::aws::AmiFamily;
use serde_json::Value;

use super::{Kubelet, MANAGED};
use crate::family::Family;

/// What an image family cannot pass on to the kubelet, as a sentence; none if everything.
pub fn unsupported(
    family: AmiFamily,
    settings: Option<&BTreeMap<String, Value>>,
    kubelet: &Kubelet,
) -> Option<String> {
    let name = family.as_str();
    let properties = Family::of(family);
    if properties.any_kubelet_field {
        return None;
    }
    let mut sentences = Vec::new();
    let others: Vec<&str> = settings
        .into_iter()
        .flatten()
        .map(|(field, _)| field.as_str())
        .filter(|field| !MANAGED.contains(field))
        .collect();
    if !others.is_empty() {
        sentences.push(format!("spec.kubelet fields [{}] are not supported by {name}", others.join(", ")));
    }
    if !properties.pods_per_core && kubelet.pods_per_core.is_some() {
        sentences.push(format!("spec.kubelet.podsPerCore is not supported by {name}"));
    }
    if kubelet.cluster_dns.len() > 1 {
        let count = kubelet.cluster_dns.len();
        sentences.push(format!("spec.kubelet.clusterDNS has {count} addresses, but {name} supports one"));
    }
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(family: AmiFamily, settings: Value) -> Option<String> {
        let settings: BTreeMap<String, Value> = serde_json::from_value(settings).unwrap();
        unsupported(family, Some(&settings), &Kubelet::decode(Some(&settings)).unwrap())
    }

    #[test]
    fn only_some_families_pass_anything_on() {
        let settings = json!({"maxPods": 1, "registryBurst": 2, "address": "", "clusterDNS": ["a", "b"]});
        for family in [AmiFamily::AL2023, AmiFamily::Custom] {
            assert_eq!(check(family, settings.clone()), None);
        }
        for family in [AmiFamily::AL2, AmiFamily::Bottlerocket, AmiFamily::Windows2022] {
            let name = family.as_str();
            assert_eq!(
                check(family, settings.clone()).unwrap(),
                format!(
                    "spec.kubelet fields [address, registryBurst] are not supported by {name}; \
                     spec.kubelet.clusterDNS has 2 addresses, but {name} supports one"
                )
            );
            assert_eq!(check(family, json!({"maxPods": 1, "clusterDNS": ["a"]})), None);
        }
    }

    #[test]
    fn bottlerocket_has_no_pods_per_core() {
        let settings = json!({"podsPerCore": 2});
        assert_eq!(check(AmiFamily::AL2, settings.clone()), None);
        assert!(check(AmiFamily::Bottlerocket, settings).unwrap().contains("podsPerCore"));
    }
}

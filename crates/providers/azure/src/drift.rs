//! Whether a machine is still what its NodeClass and its cluster ask for. The first reason that applies counts.
//!
//! First what needs no machine is compared ([`of_claim`]), then what AKS says of a machine of its own
//! ([`of_machine`]).

use std::collections::BTreeMap;

use api::azure::AKSNodeClass;
use api::hash::{Stamp, is_drifted};
use api::names::annotations::azure as annotations;
use api::names::labels::azure as labels;
use api::names::reasons::azure as reasons;
use api::nodeclaim::NodeClaim;
use cluster::objects::Node;

use crate::images::node_image_version;
use crate::node_class::version::plain;
use crate::node_class::{kubernetes_version, usable_images};

/// Why nobody knows whether a machine is what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The claim does not say which machine it has.
    #[error("the nodeclaim has no providerID in its status")]
    NoProviderId,
    /// Several Nodes say that they are this machine.
    #[error("{0} nodes have the providerID of the nodeclaim, expected one")]
    SeveralNodes(usize),
    /// The NodeClass has no images.
    #[error("no images are present in the status of the AKSNodeClass")]
    NoImages,
    /// The claim does not say which image it has.
    #[error("the nodeclaim has no imageID in its status")]
    NoImageId,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The NodeClass.
    pub class: &'a AKSNodeClass,
    /// The claim.
    pub claim: &'a NodeClaim,
    /// The Nodes that have the claim's provider ID.
    pub nodes: &'a [&'a Node],
    /// The client of the kubelet's identity that new nodes get.
    pub kubelet_identity: &'a str,
}

/// Whether the machine of a claim was made by AKS' own API.
pub fn is_machine(claim: &NodeClaim) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotations::AKS_MACHINE_RESOURCE_ID))
}

/// What can be said without the machine.
pub fn of_claim(facts: &Facts<'_>) -> Result<Option<&'static str>, Unknown> {
    let Facts { class, claim, nodes, kubelet_identity } = *facts;
    if claim.status.as_ref().is_none_or(|status| status.provider_id.is_empty()) {
        return Err(Unknown::NoProviderId);
    }
    if is_drifted(stamp(class.metadata.annotations.as_ref()), stamp(claim.metadata.annotations.as_ref())) {
        return Ok(Some(reasons::NODE_CLASS_DRIFT));
    }
    let node = match nodes {
        [] => None,
        [node] => Some(*node).filter(|node| !node.metadata.is_deleting()),
        several => return Err(Unknown::SeveralNodes(several.len())),
    };
    if let (Some(node), Ok(version)) = (node, kubernetes_version(class)) {
        let kubelet = &*node.status.node_info.kubelet_version;
        // A kubelet that has not said anything yet is no other one.
        if !kubelet.is_empty() && plain(kubelet) != plain(version) {
            return Ok(Some(reasons::K8S_VERSION_DRIFT));
        }
    }
    let identity = node.map_or("", |node| node.metadata.labels.text(labels::AKS_KUBELET_IDENTITY_CLIENT_ID));
    if !is_machine(claim) && !identity.is_empty() && identity != kubelet_identity {
        return Ok(Some(reasons::KUBELET_IDENTITY_DRIFT));
    }
    image(class, claim)
}

fn image(class: &AKSNodeClass, claim: &NodeClaim) -> Result<Option<&'static str>, Unknown> {
    let Ok(images) = usable_images(class) else { return Ok(None) };
    if images.is_empty() {
        return Err(Unknown::NoImages);
    }
    let image = claim.status.as_ref().map_or("", |status| status.image_id.as_str());
    if image.is_empty() {
        return Err(Unknown::NoImageId);
    }
    // Azure's identifiers mean the same in any case.
    let is_known = if is_machine(claim) {
        let versions = images.iter().filter_map(|each| node_image_version(&each.id).ok());
        versions.into_iter().any(|version: String| version.eq_ignore_ascii_case(image))
    } else {
        images.iter().any(|each| each.id.eq_ignore_ascii_case(image))
    };
    Ok((!is_known).then_some(reasons::IMAGE_DRIFT))
}

/// What AKS says of a machine of its own: anything but that it is in order means that it is not.
pub fn of_machine(action: Option<&str>) -> Option<&'static str> {
    let is_in_order = action.is_none_or(|action| ["", "Synced"].contains(&action));
    (!is_in_order).then_some(reasons::CLUSTER_CONFIG_DRIFT)
}

fn stamp(annotations: Option<&BTreeMap<String, String>>) -> Option<Stamp<'_>> {
    let of = |key: &str| annotations?.get(key).map(String::as_str).filter(|text| !text.is_empty());
    Some(Stamp {
        hash: of(annotations::NODE_CLASS_HASH)?,
        version: of(annotations::NODE_CLASS_HASH_VERSION)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node_class::tests::condition;

    const SIG: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu\
                       /images/2204gen2containerd/versions/2";
    const COMMUNITY: &str = "/CommunityGalleries/AKSUbuntu-1/images/2204gen2containerd/versions/2";

    fn class(hash: &str, images: &[&str], ready: &str, generation: i64) -> AKSNodeClass {
        let images: Vec<Value> = images.iter().map(|id| json!({"id": id, "requirements": []})).collect();
        serde_json::from_value(json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "default", "generation": 2, "annotations": {
                annotations::NODE_CLASS_HASH: hash, annotations::NODE_CLASS_HASH_VERSION: "v3",
            }},
            "spec": {},
            "status": {"images": images, "kubernetesVersion": "1.34.2", "conditions": [
                condition("KubernetesVersionReady", ready, generation), condition("ImagesReady", ready, generation),
            ]},
        }))
        .unwrap()
    }

    fn claim(hash: &str, image: &str, machine: bool) -> NodeClaim {
        let mut all = json!({annotations::NODE_CLASS_HASH: hash, annotations::NODE_CLASS_HASH_VERSION: "v3"});
        if machine {
            all[annotations::AKS_MACHINE_RESOURCE_ID] = "id".into();
        }
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "annotations": all},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "default"}},
            "status": {"providerID": "azure:///1", "imageID": image},
        }))
        .unwrap()
    }

    fn node(kubelet: &str, identity: &str, deleting: bool) -> Node {
        let mut node = json!({
            "metadata": {"name": "n", "labels": {labels::AKS_KUBELET_IDENTITY_CLIENT_ID: identity}},
            "status": {"nodeInfo": {"kubeletVersion": kubelet}},
        });
        if deleting {
            node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(node).unwrap()
    }

    fn of(class: &AKSNodeClass, claim: &NodeClaim, nodes: &[&Node]) -> Result<Option<&'static str>, Unknown> {
        of_claim(&Facts { class, claim, nodes, kubelet_identity: "mine" })
    }

    // azure.md 16: the first reason wins
    #[test]
    fn reasons_are_looked_at_in_their_order() {
        let fine = class("1", &[COMMUNITY], "True", 2);
        let current = node("v1.34.2", "mine", false);
        assert_eq!(of(&fine, &claim("1", COMMUNITY, false), &[&current]), Ok(None));
        let old = node("v1.33.0", "other", false);
        assert_eq!(of(&fine, &claim("2", "old", false), &[&old]), Ok(Some("NodeClassDrift")));
        assert_eq!(of(&fine, &claim("1", "old", false), &[&old]), Ok(Some("K8sVersionDrift")));
        let stranger = node("v1.34.2", "other", false);
        assert_eq!(of(&fine, &claim("1", "old", false), &[&stranger]), Ok(Some("KubeletIdentityDrift")));
        assert_eq!(of(&fine, &claim("1", "old", false), &[&current]), Ok(Some("ImageDrift")));
    }

    // azure.md 25.8: Node missing/deleting → none; label missing → no identity drift; duplicate node ⇒ error
    #[test]
    fn a_node_that_is_not_there_says_nothing_and_two_are_a_mistake() {
        let (fine, claim) = (class("1", &[COMMUNITY], "True", 2), claim("1", COMMUNITY, false));
        let old = node("v1.33.0", "", false);
        assert_eq!(of(&fine, &claim, &[]), Ok(None));
        assert_eq!(of(&fine, &claim, &[&node("v1.33.0", "other", true)]), Ok(None));
        assert_eq!(of(&fine, &claim, &[&node("v1.34.2", "", false)]), Ok(None));
        assert_eq!(of(&fine, &claim, &[&node("", "", false)]), Ok(None));
        assert_eq!(of(&fine, &claim, &[&old, &old]), Err(Unknown::SeveralNodes(2)));
    }

    // azure.md 25.8: not-ready conditions → none
    #[test]
    fn a_class_that_is_not_ready_says_nothing_about_versions_and_images() {
        let old = node("v1.33.0", "mine", false);
        for (ready, generation) in [("False", 2), ("Unknown", 2), ("True", 1)] {
            let class = class("1", &[], ready, generation);
            assert_eq!(of(&class, &claim("1", "old", false), &[&old]), Ok(None), "{ready} {generation}");
        }
    }

    // azure.md 25.8: missing providerID → error; empty list or empty imageID ⇒ error
    #[test]
    fn what_is_missing_is_an_error() {
        let fine = class("1", &[COMMUNITY], "True", 2);
        let mut unknown = claim("1", COMMUNITY, false);
        unknown.status.as_mut().unwrap().provider_id.clear();
        assert_eq!(of(&fine, &unknown, &[]), Err(Unknown::NoProviderId));
        assert_eq!(of(&fine, &claim("1", "", false), &[]), Err(Unknown::NoImageId));
        let without = class("1", &[], "True", 2);
        assert_eq!(of(&without, &claim("1", COMMUNITY, false), &[]), Err(Unknown::NoImages));
    }

    // azure.md 25.8: gallery change CIG→SIG → ImageDrift; 16: machines compare <gallery>-<def>-<version>
    #[test]
    fn machines_of_aks_have_other_names_for_images() {
        let class = class("1", &["strange", SIG], "True", 2);
        assert_eq!(of(&class, &claim("1", COMMUNITY, false), &[]), Ok(Some("ImageDrift")));
        assert_eq!(of(&class, &claim("1", &SIG.to_uppercase(), false), &[]), Ok(None));
        let machine = |image| of(&class, &claim("1", image, true), &[&node("v1.34.2", "other", false)]);
        assert_eq!(machine("AKSUbuntu-2204gen2containerd-2"), Ok(None));
        assert_eq!(machine("AKSUbuntu-2204gen2containerd-1"), Ok(Some("ImageDrift")));
    }

    // azure.md 16 row 5
    #[test]
    fn anything_but_in_order_means_that_aks_wants_another_machine() {
        for action in [None, Some(""), Some("Synced")] {
            assert_eq!(of_machine(action), None);
        }
        for action in [Some("Recreate"), Some("SomethingNew")] {
            assert_eq!(of_machine(action), Some("ClusterConfigDrift"));
        }
    }

    // azure.md 1.8: only hashes of the same version are compared
    #[test]
    fn hashes_of_other_versions_are_not_compared() {
        let mut old = claim("2", COMMUNITY, false);
        let all = old.metadata.annotations.as_mut().unwrap();
        all.insert(annotations::NODE_CLASS_HASH_VERSION.to_owned(), "v2".to_owned());
        assert_eq!(of(&class("1", &[COMMUNITY], "True", 2), &old, &[]), Ok(None));
    }
}

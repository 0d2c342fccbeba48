//! What a virtual machine does when it starts, so that it becomes a node.
//!
//! [`scriptless`] writes a script for the images of AKS; [`service`] asks the bootstrapping service of AKS for one.

mod containerd;
mod kubelet_flags;
pub mod scriptless;
pub mod service;
mod shell;

use api::names::taints::UNREGISTERED;
use api::nodeclaim::NodeClaim;
use api::shared::Taint;

use crate::version::NoVersion;

/// Why nobody can say what a machine does when it starts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// It is not known what its kubelet understands.
    #[error("status.kubernetesVersion: {0}")]
    Version(#[from] NoVersion),
    /// It is not known where the API server is.
    #[error("invalid cluster endpoint {0:?}, expected an address such as https://name:443")]
    Endpoint(String),
    /// It is not known what the image is to the bootstrapping service.
    #[error("image {0:?} is none of AKS, so that the bootstrapping service does not know it")]
    Image(String),
    /// The bootstrapping service said nothing useful.
    #[error("the bootstrapping service answered without {0}")]
    Incomplete(&'static str),
    /// The bootstrapping service said something that nobody understands.
    #[error("the bootstrapping service answered with customData that is not base64")]
    NotBase64,
}

/// The startup taints of a claim, and the one that keeps pods away until the node is registered.
pub fn startup_taints(claim: &NodeClaim) -> Vec<Taint> {
    let mut all = claim.spec.startup_taints.clone().unwrap_or_default();
    let is_unregistered =
        |taint: &Taint| taint.key == UNREGISTERED.key && taint.effect == UNREGISTERED.effect;
    if !claim.spec.taints.iter().flatten().chain(&all).any(is_unregistered) {
        all.push(Taint {
            key: UNREGISTERED.key.to_owned(),
            effect: UNREGISTERED.effect.to_owned(),
            ..Taint::default()
        });
    }
    all
}

/// All taints that a node registers with, as texts and each of them once.
pub fn all_taints(claim: &NodeClaim) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for taint in claim.spec.taints.iter().flatten().chain(&startup_taints(claim)) {
        let text = taint_text(taint);
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// A taint as kubelets and AKS read it.
pub fn taint_text(taint: &Taint) -> String {
    let Taint { key, value, effect, .. } = taint;
    if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(taints: &Value, startup: &Value) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"taints": taints, "startupTaints": startup, "requirements": [], "nodeClassRef":
                {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"}},
        }))
        .unwrap()
    }

    // azure.md 13.1, 25.6: unregistered taint always present
    #[test]
    fn a_node_registers_with_all_taints_and_the_one_that_keeps_pods_away() {
        let claim = claim(
            &json!([{"key": "a", "value": "b", "effect": "NoSchedule"}]),
            &json!([{"key": "c", "effect": "NoExecute"}]),
        );
        assert_eq!(
            all_taints(&claim),
            ["a=b:NoSchedule", "c:NoExecute", "karpenter.sh/unregistered:NoExecute"]
        );
    }

    // azure.md 13.1: appended unless present in either list
    #[test]
    fn the_taint_that_keeps_pods_away_is_there_once() {
        let own = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        let none = json!(null);
        for claim in [claim(&own, &none), claim(&none, &own), claim(&none, &none)] {
            assert_eq!(all_taints(&claim), ["karpenter.sh/unregistered:NoExecute"]);
        }
    }

    // azure.md 11.3: deduped
    #[test]
    fn taints_that_are_there_twice_are_said_once() {
        let same = json!([{"key": "a", "effect": "NoSchedule"}]);
        let claim = claim(&same, &same);
        assert_eq!(all_taints(&claim), ["a:NoSchedule", "karpenter.sh/unregistered:NoExecute"]);
    }
}

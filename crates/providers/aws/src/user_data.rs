//! What a machine does when it starts, so that it becomes a node. Entry: [`Bootstrap::render`].

mod al2;
mod al2023;
mod bottlerocket;
mod flags;
mod mime;
mod windows;

use std::collections::BTreeMap;
use std::net::IpAddr;

use api::aws::{AmiFamily, InstanceStorePolicy};
use api::names::{labels, taints};
use api::nodeclaim::NodeClaim;
use api::shared::Taint;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::kubelet::{Kubelet, MaxPods, Resolved};
use crate::node_class::Class;

pub use bottlerocket::image_version;

/// What EC2 accepts at most, in bytes before base64.
pub const MOST_BYTES: usize = 16_384;

/// Labels that the kubelet may not set are in these domains and below.
const FORBIDDEN_DOMAINS: [&str; 3] = ["node-restriction.kubernetes.io", "kubernetes.io", "k8s.io"];

/// Why there is no user data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// It cannot be merged with what the NodeClass has.
    #[error("spec.userData {0}")]
    Custom(String),
    /// It is not known which addresses services have.
    #[error("resolving cluster CIDR")]
    NoClusterCidr,
    /// The certificates of the cluster are not base64.
    #[error("the cluster's CA bundle is not base64")]
    CaBundle,
}

/// The cluster that nodes join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Its name.
    pub name: String,
    /// The address of its API server.
    pub endpoint: String,
    /// Certificates by which nodes know the API server, in base64.
    pub ca_bundle: Option<String>,
    /// The addresses of services.
    pub cidr: Option<String>,
    /// The address of the cluster's DNS.
    pub dns: Option<IpAddr>,
}

/// What a machine must know to become a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap<'a> {
    /// The image family.
    pub family: AmiFamily,
    /// The cluster.
    pub cluster: &'a ClusterInfo,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Taints of the node.
    pub taints: Vec<Taint>,
    /// The kubelet's settings that we understand.
    pub kubelet: Kubelet,
    /// All of the kubelet's settings.
    pub all_kubelet: BTreeMap<String, Value>,
    /// What is done with the disks inside the host.
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// What the user wants it to do.
    pub custom: Option<&'a str>,
    /// The version of the image, where that matters; empty if not known.
    pub image_version: String,
}

impl<'a> Bootstrap<'a> {
    /// What machines of a claim must know. `pods` and `resolved` are those of their instance types.
    pub fn new(
        class: &Class<'a>,
        claim: &NodeClaim,
        cluster: &'a ClusterInfo,
        capacity_type: &str,
        pods: i64,
        resolved: &Resolved,
    ) -> Self {
        let (kubelet, all_kubelet) = kubelet(class, cluster, pods, resolved);
        Self {
            family: class.family,
            cluster,
            labels: node_labels(class.family, claim, capacity_type),
            taints: node_taints(claim),
            kubelet,
            all_kubelet,
            instance_store_policy: class.spec.instance_store_policy,
            custom: class.spec.user_data.as_deref(),
            image_version: image_version(class),
        }
    }

    /// The user data, in base64.
    pub fn render(&self) -> Result<String, UserDataError> {
        let text = match self.family {
            AmiFamily::AL2 => al2::render(self)?,
            AmiFamily::AL2023 => al2023::render(self)?,
            AmiFamily::Bottlerocket => bottlerocket::render(self)?,
            AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => windows::render(self),
            AmiFamily::Custom => self.custom.unwrap_or_default().to_owned(),
        };
        Ok(BASE64_STANDARD.encode(text))
    }

    /// Whether the disks inside the host become one.
    fn is_striped(&self) -> bool {
        self.instance_store_policy == Some(InstanceStorePolicy::RAID0)
    }
}

/// How long user data is before base64.
pub fn raw_length(user_data: &str) -> usize {
    let padding = user_data.bytes().rev().take_while(|byte| *byte == b'=').count();
    user_data.len() / 4 * 3 - padding.min(2)
}

/// The kubelet's settings with what depends on the machine and the cluster, in both forms.
fn kubelet(
    class: &Class<'_>,
    cluster: &ClusterInfo,
    pods: i64,
    resolved: &Resolved,
) -> (Kubelet, BTreeMap<String, Value>) {
    let mut kubelet = class.kubelet.clone();
    let mut all = class.spec.kubelet.clone().unwrap_or_default();
    if kubelet.literal_max_pods().is_none() {
        let pods = i32::try_from(pods).unwrap_or(i32::MAX);
        kubelet.max_pods = Some(MaxPods::Count(pods));
        all.insert("maxPods".to_owned(), json!(pods));
    }
    for (field, amounts, own) in [
        ("kubeReserved", &resolved.kube_reserved, &mut kubelet.kube_reserved),
        ("systemReserved", &resolved.system_reserved, &mut kubelet.system_reserved),
    ] {
        own.clone_from(amounts);
        if amounts.is_empty() {
            // Expressions that could not be worked out are nothing that a kubelet understands.
            all.remove(field);
        } else {
            all.insert(field.to_owned(), json!(amounts));
        }
    }
    if let (true, Some(dns)) = (kubelet.cluster_dns.is_empty(), cluster.dns) {
        kubelet.cluster_dns = vec![dns.to_string()];
        all.insert("clusterDNS".to_owned(), json!([dns]));
    }
    (kubelet, all)
}

fn node_labels(family: AmiFamily, claim: &NodeClaim, capacity_type: &str) -> BTreeMap<String, String> {
    let mut all = claim.metadata.labels.clone().unwrap_or_default();
    all.insert(labels::CAPACITY_TYPE.to_owned(), capacity_type.to_owned());
    if family != AmiFamily::Custom {
        // The kubelet registers with all taints, so that nobody has to add them later.
        all.insert(labels::DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
    }
    all.retain(|key, _| !is_forbidden(key));
    all
}

/// Whether the kubelet may not set a label itself.
fn is_forbidden(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return false };
    FORBIDDEN_DOMAINS.iter().any(|forbidden| {
        domain.strip_suffix(forbidden).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

fn node_taints(claim: &NodeClaim) -> Vec<Taint> {
    let mut all: Vec<Taint> =
        claim.spec.taints.iter().chain(&claim.spec.startup_taints).flatten().cloned().collect();
    let unregistered = taints::UNREGISTERED;
    if !all.iter().any(|taint| taint.key == unregistered.key && taint.effect == unregistered.effect) {
        all.push(Taint {
            key: unregistered.key.to_owned(),
            effect: unregistered.effect.to_owned(),
            ..Taint::default()
        });
    }
    all
}

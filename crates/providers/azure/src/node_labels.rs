//! Labels that nodes register with. Entries: [`of_kubelet`] for virtual machines, [`of_machine`] for AKS machines.

use std::collections::BTreeMap;

use api::azure::ImageFamily;
use api::labels::LabelSets;
use api::names::labels::{self, aliases, azure};
use api::nodeclaim::NodeClaim;
use cluster::instance_types::{Wanted, single};

use crate::images::Family;
use crate::launch::{Choice, Launch};
use crate::settings::ProvisionMode;
use crate::zone::Scope;
use crate::{instance_type, version};

/// Labels by their name.
pub type Labels = BTreeMap<String, String>;

/// Labels that kubelets and cloud controllers set themselves.
const KUBELET_OWN: [&str; 11] = [
    labels::HOSTNAME,
    labels::ZONE,
    labels::REGION,
    aliases::BETA_ZONE,
    aliases::BETA_REGION,
    labels::INSTANCE_TYPE,
    aliases::BETA_INSTANCE_TYPE,
    labels::OS,
    aliases::BETA_OS,
    labels::ARCH,
    aliases::BETA_ARCH,
];

/// Labels that AKS sets itself, besides all of its domain.
const AKS_OWN: [&str; 4] = [
    azure::LEGACY_AGENT_POOL,
    azure::LEGACY_STORAGE_PROFILE,
    azure::LEGACY_STORAGE_TIER,
    azure::LEGACY_ACCELERATOR,
];

/// The labels that the kubelet of a virtual machine registers with.
pub fn of_kubelet(launch: &Launch<'_>) -> Labels {
    let mut all = base(launch);
    all.extend(of_claim(launch.claim, &launch.choice));
    all.retain(|key, _| may_be_set_by_kubelet(key));
    all
}

/// The labels that an AKS machine is told; AKS adds its own.
pub fn of_machine(claim: &NodeClaim, choice: &Choice<'_>) -> Labels {
    let mut all = of_claim(claim, choice);
    all.retain(|key, _| {
        let is_of_aks = domain(key) == Some(azure::AKS_DOMAIN) || AKS_OWN.contains(&key.as_str());
        !is_of_aks && !KUBELET_OWN.contains(&key.as_str()) && may_be_set_by_kubelet(key)
    });
    all
}

/// Labels that every node of the cluster has.
fn base(launch: &Launch<'_>) -> Labels {
    let Launch { cluster, class, choice, subnet, .. } = launch;
    let settings = cluster.settings;
    // A script of ours configures neither, whatever the NodeClass asks for.
    let is_configured = settings.provision_mode != ProvisionMode::AksScriptless;
    let has_local_dns = class.has_local_dns && is_configured;
    let family = Family::of(class);
    let requested = class.spec.image_family.map_or("", ImageFamily::as_str);
    // Upstream says `regular` of every machine until the claim's labels reach the node.
    let priority = instance_type::priority(choice.capacity_type);
    let mut all: Vec<(&str, &str)> = vec![
        (azure::AKS_ROLE, "agent"),
        (azure::AKS_KUBELET_IDENTITY_CLIENT_ID, &settings.kubelet_identity_client_id),
        (azure::AKS_MODE, "user"),
        (labels::DO_NOT_SYNC_TAINTS, "true"),
        (azure::AKS_SCALE_SET_PRIORITY, priority),
        (azure::AKS_PRIORITY, priority),
        (azure::AKS_OS_SKU, instance_type::os_sku(class.spec.image_family)),
        (azure::AKS_OS_SKU_REQUESTED, requested),
        (azure::AKS_OS_SKU_EFFECTIVE, family.label()),
        (azure::AKS_LOCALDNS_STATE, if has_local_dns { "enabled" } else { "disabled" }),
    ];
    if class.is_fips() {
        all.push((azure::AKS_FIPS_ENABLED, "true"));
    }
    if class.streams_artifacts(&choice.sku.architecture) && is_configured {
        all.push((azure::AKS_ARTIFACT_STREAMING_ENABLED, "true"));
    }
    if cluster.is_overlay() {
        let is_stateless = version::is_at_least(class.kubernetes_version, 34);
        all.extend([
            (azure::AKS_NETWORK_SUBNET, subnet.name.as_str()),
            (azure::AKS_NODE_NETWORK_VNET_GUID, cluster.vnet_guid),
            (azure::AKS_AZURE_CNI_OVERLAY, "true"),
            (azure::AKS_POD_NETWORK_TYPE, "overlay"),
            (azure::AKS_NETWORK_STATELESS_CNI, if is_stateless { "true" } else { "false" }),
        ]);
    }
    if cluster.is_cilium() {
        all.push((azure::AKS_EBPF_DATAPLANE, "cilium"));
    }
    let mut all: Labels = all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    all.insert(azure::AKS_CLUSTER.to_owned(), instance_type::cluster_label(&settings.node_resource_group));
    all
}

/// Whether a node is for pods of the system.
pub fn is_system(claim: &NodeClaim, choice: &Choice<'_>) -> bool {
    of_claim(claim, choice).get(azure::AKS_MODE).is_some_and(|mode| mode == "system")
}

/// Labels of a claim, and those that it and the size leave no choice about.
fn of_claim(claim: &NodeClaim, choice: &Choice<'_>) -> Labels {
    let sets = LabelSets::for_provider(api::provider::Provider::Azure);
    let mut all = claim.metadata.labels.clone().unwrap_or_default();
    // A claim with requirements that nobody understands is not launched.
    if let Ok(wanted) = Wanted::new(&claim.spec.requirements, &sets) {
        all.extend(wanted.settled().map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    all.extend(of_type(choice));
    for (key, value) in [
        (labels::CAPACITY_TYPE, choice.capacity_type),
        (azure::PLACEMENT_SCOPE, Scope::of(choice.zone).as_str()),
        (azure::SKU_STORAGE_ULTRA_SSD, if choice.ultra_ssd { "true" } else { "false" }),
    ] {
        all.insert(key.to_owned(), value.to_owned());
    }
    all
}

/// Labels that a size leaves no choice about.
pub fn of_type(choice: &Choice<'_>) -> Labels {
    let settled = choice.instance_type.requirements.iter();
    settled.filter_map(|each| Some((each.key.clone(), single(each)?.to_owned()))).collect()
}

/// Whether a kubelet may set a label of its own node: anything outside of Kubernetes' domains, and some within.
pub fn may_be_set_by_kubelet(key: &str) -> bool {
    let Some(domain) = domain(key) else { return true };
    let is_within = |parent: &str| {
        domain.strip_suffix(parent).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    KUBELET_OWN.contains(&key)
        || !(is_within("kubernetes.io") || is_within("k8s.io"))
        || is_within("kubelet.kubernetes.io")
        || is_within("node.kubernetes.io")
}

fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

#[cfg(test)]
mod tests;

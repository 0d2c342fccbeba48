//! The text of `karpenter-values.yaml`. It fits the original's chart, too, which does not look at `provider`.

use std::fmt::Write as _;

use api::names::flags::{self as common, azure as flags};
use serde_json::Value;

use super::{CannotConfigure, Found, Local, Wishes};
use crate::arm::types::cluster::ManagedCluster;
use crate::node_class::limits::{Facts, refusals};

/// Where the images of AKS are in the public cloud.
const IMAGES: &str = "109a5e88-712a-48ae-9078-9ca8b3c81345";
/// The administrator of nodes, unless the cluster has another one.
const USER: &str = "azureuser";

/// The values for a cluster; why nodes cannot be made for it, else.
pub fn values(wishes: &Wishes, found: &Found, local: &Local) -> Result<String, CannotConfigure> {
    wishes.check()?;
    check(wishes, &found.cluster)?;
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write!(
        text,
        "# Values for AKS cluster {} in resource group {}. There is the token in here by which nodes join: keep it to \
         yourself.\n\
         provider: azure\n\
         replicas: 1\n\
         controller:\n  env:\n",
        one_line(&wishes.cluster),
        one_line(&wishes.resource_group)
    );
    for (name, value) in variables(wishes, found, local)? {
        let _ = writeln!(text, "    - name: {name}\n      value: {}", quoted(&value));
    }
    if !local.environment.is_known() {
        text.push_str(
            "    # The cloud is described by a file: mount it into the pod (controller.extraVolumeMounts, extraVolumes)\n    \
             # and name it here, as AZURE_ENVIRONMENT_FILEPATH.\n",
        );
    }
    let _ = write!(
        text,
        "serviceAccount:\n  name: {}\n  annotations:\n    azure.workload.identity/client-id: {}\n\
         podLabels:\n  azure.workload.identity/use: \"true\"\n\
         logLevel: info\n\
         settings:\n  featureGates:\n    staticCapacity: true\n",
        quoted(&wishes.service_account),
        quoted(&found.identity_client_id)
    );
    Ok(text)
}

/// Whether nodes can be made for a cluster; everything that is against it, else.
fn check(wishes: &Wishes, cluster: &ManagedCluster) -> Result<(), CannotConfigure> {
    let mut facts = Facts::default();
    facts.learn(cluster, wishes.mode);
    let mut against: Vec<String> = refusals(&facts)
        .into_iter()
        .map(|refusal| format!("{} ({})", refusal.message, refusal.reason))
        .collect();
    if cluster.has_node_auto_provisioning() {
        against.push(
            "AKS runs a Karpenter for the cluster (node auto provisioning), and two would manage the same nodes: \
             update the cluster with --node-provisioning-mode Manual"
                .to_owned(),
        );
    }
    if against.is_empty() {
        return Ok(());
    }
    Err(CannotConfigure(format!(
        "nodes cannot be made for cluster {}: {}",
        wishes.cluster,
        against.join("; ")
    )))
}

fn variables(
    wishes: &Wishes,
    found: &Found,
    local: &Local,
) -> Result<Vec<(&'static str, String)>, CannotConfigure> {
    let cluster = &found.cluster;
    let network = cluster.properties.network_profile.clone().unwrap_or_default();
    // AKS says `none` where the controller expects nothing.
    let unless_none = |text: Option<String>| text.filter(|text| text != "none").unwrap_or_default();
    let plugin = network.network_plugin.unwrap_or_else(|| "azure".to_owned());
    // Without a plugin there is no mode of it, and `none` is a plugin that the controller knows.
    let mode = if plugin == "none" { String::new() } else { unless_none(network.network_plugin_mode) };
    let kubelet = cluster.kubelet_identity().cloned().unwrap_or_default();
    let user = user(cluster);
    let is_machine_api = wishes.mode.is_machine_api();
    let only_if = |condition: bool, text: &str| if condition { text.to_owned() } else { String::new() };
    let switch = |on: bool| on.to_string();
    let mut all = vec![
        // While a new replica replaces another, only one of them may lead.
        (common::DISABLE_LEADER_ELECTION.env, switch(false)),
        (flags::CLUSTER_NAME.env, wishes.cluster.clone()),
        (flags::CLUSTER_ENDPOINT.env, local.endpoint.clone()),
        (flags::KUBELET_BOOTSTRAP_TOKEN.env, local.bootstrap_token.reveal().to_owned()),
        (flags::SSH_PUBLIC_KEY.env, key(cluster, local, &user)?),
        (flags::NETWORK_PLUGIN.env, plugin),
        (flags::NETWORK_PLUGIN_MODE.env, mode),
        (flags::NETWORK_POLICY.env, unless_none(network.network_policy)),
        (flags::NETWORK_DATAPLANE.env, unless_none(network.network_dataplane)),
        (flags::VNET_SUBNET_ID.env, found.subnet_id.clone()),
        (flags::VNET_GUID.env, found.vnet_guid.clone()),
        (flags::NODE_IDENTITIES.env, kubelet.resource_id.unwrap_or_default()),
        (common::AZURE_SUBSCRIPTION_ID, local.subscription.clone()),
        (common::LOCATION, cluster.location.clone().unwrap_or_default()),
        (flags::KUBELET_IDENTITY_CLIENT_ID.env, kubelet.client_id.unwrap_or_default()),
        (flags::NODE_RESOURCE_GROUP.env, cluster.node_resource_group().to_owned()),
        (flags::ENABLE_AZURE_SDK_LOGGING.env, switch(wishes.log_calls)),
        (flags::USE_SIG.env, switch(is_machine_api)),
        (flags::SIG_SUBSCRIPTION_ID.env, only_if(is_machine_api, IMAGES)),
        (flags::SIG_ACCESS_TOKEN_SERVER_URL.env, String::new()),
        (flags::PROVISION_MODE.env, wishes.mode.as_str().to_owned()),
        (flags::AKS_MACHINES_POOL_NAME.env, only_if(is_machine_api, &wishes.machines_pool)),
        (common::ARM_RESOURCE_GROUP, wishes.resource_group.clone()),
    ];
    if user != USER {
        all.push((flags::LINUX_ADMIN_USERNAME.env, user));
    }
    if let Some(keys) = cluster.properties.disk_encryption_set_id.clone().filter(|id| !id.is_empty()) {
        all.push((flags::NODE_OSDISK_DISKENCRYPTIONSET_ID.env, keys));
    }
    if local.environment.is_known() && !local.environment.is_public() {
        all.push((common::ARM_CLOUD, local.environment.name.clone()));
    }
    Ok(all)
}

fn user(cluster: &ManagedCluster) -> String {
    let profile = cluster.properties.linux_profile.as_ref();
    let name = profile.and_then(|profile| profile.admin_username.clone()).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| USER.to_owned())
}

/// The key of the administrator, as OpenSSH writes it: its type, itself, and whose it is.
fn key(cluster: &ManagedCluster, local: &Local, user: &str) -> Result<String, CannotConfigure> {
    let profile = cluster.properties.linux_profile.as_ref();
    let keys = profile.and_then(|profile| profile.ssh.as_ref()?.public_keys.as_ref());
    let of_cluster = keys.and_then(|keys| keys.iter().find_map(|key| key.key_data.clone()));
    let text = local.ssh_public_key.clone().or(of_cluster).unwrap_or_default();
    let mut parts = text.split_whitespace();
    match (parts.next(), parts.next()) {
        (Some(kind), Some(key)) => Ok(format!("{kind} {key} {user}")),
        _ => Err(CannotConfigure(
            "there is no SSH key for the administrator of nodes, neither in a file nor in the cluster: \
             expected the public half of one, as `ssh-keygen` writes it, with --ssh-public-key"
                .to_owned(),
        )),
    }
}

/// A text in quotes. Every text of JSON is one of YAML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// A text in a comment.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! Everything that can be wrong with the settings.

use std::net::IpAddr;
use std::sync::LazyLock;

use api::names::flags::{self as common, Flag, azure as flags};
use regex::Regex;
use runtime::settings::Settings;
use units::GoDuration;

use super::{AzureSettings, ProvisionMode};

const LONGEST_USER: usize = 32;
/// What the API takes at once.
const LARGEST_BATCH: usize = 50;

/// A pattern that is known to be one.
type Pattern = LazyLock<Option<Regex>>;

static SUBNET: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)^/subscriptions/[^/]+/resourceGroups/[a-z0-9_\-().]{0,89}[a-z0-9_\-()]/providers/Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+$").ok()
});
static ENCRYPTION: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/diskEncryptionSets/[^/]+$",
    )
    .ok()
});
static USER: Pattern = LazyLock::new(|| Regex::new(r"^[A-Za-z][-A-Za-z0-9_]*$").ok());
static UUID: Pattern =
    LazyLock::new(|| Regex::new(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$").ok());

fn is(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Names everything that is wrong.
pub(super) fn check(read: &AzureSettings, settings: &Settings, wrong: &mut Vec<String>) {
    required(read, wrong);
    network(read, wrong);
    nodes(read, wrong);
    modes(read, wrong);
    if read.provision_mode == ProvisionMode::AksMachineApiHeaderBatch {
        batches(read, settings, wrong);
    }
}

fn required(read: &AzureSettings, wrong: &mut Vec<String>) {
    let needed = [
        (flags::CLUSTER_NAME.flag, read.cluster_name.is_empty()),
        (flags::CLUSTER_ENDPOINT.flag, read.cluster_endpoint.is_empty()),
        (flags::KUBELET_BOOTSTRAP_TOKEN.flag, read.kubelet_bootstrap_token.is_empty()),
        (flags::SSH_PUBLIC_KEY.flag, read.ssh_public_key.is_empty()),
        (flags::VNET_SUBNET_ID.flag, read.vnet_subnet_id.is_empty()),
        (flags::NODE_RESOURCE_GROUP.flag, read.node_resource_group.is_empty()),
        (common::AZURE_SUBSCRIPTION_ID, read.subscription_id.is_empty()),
        (common::LOCATION, read.location.is_empty()),
    ];
    let missing = needed.iter().filter(|(_, missing)| *missing);
    wrong.extend(missing.map(|(name, _)| format!("missing field, {name}")));
}

fn network(read: &AzureSettings, wrong: &mut Vec<String>) {
    let endpoint = &read.cluster_endpoint;
    if !endpoint.is_empty() && !is_absolute(endpoint) {
        wrong.push(format!("{endpoint:?} is not a valid cluster-endpoint URL, expected one with a host"));
    }
    let subnet = &read.vnet_subnet_id;
    if !subnet.is_empty() && !is(&SUBNET, subnet) {
        wrong.push(format!(
            "vnet-subnet-id {subnet:?} is invalid, expected /subscriptions/{{subscription}}/resourceGroups/{{group}}/providers/Microsoft.Network/virtualNetworks/{{network}}/subnets/{{subnet}}"
        ));
    }
    let (plugin, mode) = (read.network_plugin.as_str(), read.network_plugin_mode.as_str());
    one_of(&flags::NETWORK_PLUGIN, plugin, &["azure", "none"], wrong);
    one_of(&flags::NETWORK_PLUGIN_MODE, mode, &["overlay", ""], wrong);
    if plugin == "none" && !mode.is_empty() {
        wrong
            .push(format!("network-plugin-mode {mode:?} is invalid, expected none with network-plugin none"));
    }
    one_of(&flags::NETWORK_DATAPLANE, &read.network_dataplane, &["azure", "cilium", ""], wrong);
    if let Some(guid) = read.vnet_guid.as_deref().filter(|guid| !is(&UUID, guid)) {
        wrong.push(format!("vnet-guid {guid:?} is invalid, expected a UUID"));
    }
}

fn nodes(read: &AzureSettings, wrong: &mut Vec<String>) {
    if !read.vm_memory_overhead_percent.is_finite() || read.vm_memory_overhead_percent < 0.0 {
        wrong.push("vm-memory-overhead-percent cannot be negative".to_owned());
    }
    let user = &read.linux_admin_username;
    if user.len() > LONGEST_USER || !is(&USER, user) {
        wrong.push(format!(
            "linux-admin-username {user:?} is invalid, expected a letter and then letters, digits, - and _, at most {LONGEST_USER} characters"
        ));
    }
    let client = &read.kubelet_identity_client_id;
    if !client.is_empty() && !is(&UUID, client) {
        wrong.push(format!("kubelet-identity-client-id {client:?} is invalid, expected a UUID"));
    }
    if let Some(id) = read.node_osdisk_diskencryptionset_id.as_deref().filter(|id| !is(&ENCRYPTION, id)) {
        wrong.push(format!(
            "node-osdisk-diskencryptionset-id {id:?} is invalid, expected /subscriptions/{{subscription}}/resourceGroups/{{group}}/providers/Microsoft.Compute/diskEncryptionSets/{{name}}"
        ));
    }
}

fn modes(read: &AzureSettings, wrong: &mut Vec<String>) {
    let mode = read.provision_mode;
    let is_machine_api = mode.is_machine_api();
    if mode == ProvisionMode::BootstrappingClient && read.nodebootstrapping_server_url.is_empty() {
        wrong.push(
            "nodebootstrapping-server-url is required with provision-mode bootstrappingclient".to_owned(),
        );
    }
    if is_machine_api && !read.use_sig {
        wrong.push("use-sig must be true with a provision-mode that uses AKS machines".to_owned());
    }
    if is_machine_api && read.aks_machines_pool_name.is_empty() {
        wrong.push(
            "aks-machines-pool-name is required with a provision-mode that uses AKS machines".to_owned(),
        );
    }
    if (is_machine_api || read.use_sig) && read.sig_subscription_id.is_empty() {
        wrong.push("sig-subscription-id is required with use-sig".to_owned());
    }
    let server = &read.sig_access_token_server_url;
    if read.use_sig && !is_machine_api && !is_absolute(server) {
        wrong.push(format!(
            "sig-access-token-server-url {server:?} is invalid, expected a URL with a host, because of use-sig"
        ));
    }
    let manages_machines = read.manage_existing_aks_machines && !read.aks_machines_pool_name.is_empty();
    let asks_aks = is_machine_api || manages_machines || mode == ProvisionMode::BootstrappingClient;
    if asks_aks && read.cluster_resource_group.is_empty() {
        wrong.push(format!("missing field, {}: AKS is asked about the cluster", common::ARM_RESOURCE_GROUP));
    }
}

fn batches(read: &AzureSettings, settings: &Settings, wrong: &mut Vec<String>) {
    for flag in [&flags::PROVIDER_BATCH_IDLE_DURATION, &flags::PROVIDER_BATCH_MAX_DURATION] {
        let nanos = settings.of_provider(flag).parse::<GoDuration>().unwrap_or_default().as_nanos();
        if nanos < 0 {
            wrong.push(format!("{} cannot be negative", flag.flag));
        }
    }
    if read.batch.longest < read.batch.idle {
        wrong.push("provider-batch-max-duration must be at least provider-batch-idle-duration".to_owned());
    }
    let size = settings.of_provider(&flags::PROVIDER_BATCH_MAX_SIZE);
    if !(1..=LARGEST_BATCH).contains(&read.batch.size) {
        wrong.push(format!("provider-batch-max-size {size} is invalid, expected 1 to {LARGEST_BATCH}"));
    }
}

fn one_of(flag: &Flag, value: &str, known: &[&str], wrong: &mut Vec<String>) {
    if known.contains(&value) {
        return;
    }
    let known: Vec<&str> =
        known.iter().map(|known| if known.is_empty() { "nothing" } else { known }).collect();
    wrong.push(format!("{} {value:?} is not supported, expected {}", flag.flag, known.join(" or ")));
}

/// The address of the DNS service, if it is set.
pub(super) fn address(settings: &Settings, wrong: &mut Vec<String>) -> Option<IpAddr> {
    let text = settings.of_provider(&flags::DNS_SERVICE_IP);
    if text.is_empty() {
        return None;
    }
    let read = text.parse().ok();
    if read.is_none() {
        wrong.push(format!("dns-service-ip {text:?} is invalid, expected an IP address"));
    }
    read
}

/// How machines are made.
pub(super) fn mode(settings: &Settings, wrong: &mut Vec<String>) -> ProvisionMode {
    let text = settings.of_provider(&flags::PROVISION_MODE);
    ProvisionMode::named(text).unwrap_or_else(|| {
        let known = ["aksscriptless", "bootstrappingclient", "aksmachineapi", "aksmachineapiheaderbatch"];
        one_of(&flags::PROVISION_MODE, text, &known, wrong);
        ProvisionMode::default()
    })
}

/// Whether a text is an address with a scheme and a host.
fn is_absolute(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_word)
        && !host.is_empty()
        && !host.contains(char::is_whitespace)
}

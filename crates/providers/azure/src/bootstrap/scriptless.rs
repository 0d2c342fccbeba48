//! The script of ours that makes a virtual machine a node. What it says is a contract with the images of AKS, whose
//! own scripts read the variables.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Uri;

use super::{BootstrapError, containerd, kubelet_flags, shell};
use crate::launch::Launch;
use crate::node_labels;
use crate::sku::gpu;
use crate::version::KubernetesVersion;

/// Where the images get what they do not have from.
const MIRROR: &str = "https://acs-mirror.azureedge.net";

/// Where the images have their scripts.
const SCRIPTS: &str = "/opt/azure/containers";

const SYSCTLS: &str = "net.ipv4.tcp_retries2=8
net.core.message_burst=80
net.core.message_cost=40
net.core.somaxconn=16384
net.ipv4.tcp_max_syn_backlog=16384
net.ipv4.neigh.default.gc_thresh1=4096
net.ipv4.neigh.default.gc_thresh2=8192
net.ipv4.neigh.default.gc_thresh3=16384
";

const BEGIN: &str = r#"#!/bin/bash
set -o allexport
echo '#EOF' >> /opt/azure/manifest.json
mkdir -p /var/log/azure/Microsoft.Azure.Extensions.CustomScript/events
echo $(date),$(hostname) > /var/log/azure/cluster-provision-cse-output.log
for i in $(seq 1 1200); do
  grep -Fq "EOF" /opt/azure/containers/provision.sh && break
  if [ $i -eq 1200 ]; then exit 100; else sleep 1; fi
done
"#;

const END: &str = r#"/usr/bin/nohup /bin/bash -c "/bin/bash /opt/azure/containers/provision_start.sh"
"#;

/// Variables by their name. The images read the first part without quotes.
struct Variables {
    bare: Vec<(&'static str, String)>,
    quoted: Vec<(&'static str, String)>,
}

/// The custom data of a machine: the script, in base64.
pub fn custom_data(launch: &Launch<'_>) -> Result<String, BootstrapError> {
    Ok(BASE64_STANDARD.encode(script(launch)?))
}

/// The script.
pub fn script(launch: &Launch<'_>) -> Result<String, BootstrapError> {
    let variables = Variables::of(launch)?;
    let mut text = BEGIN.to_owned();
    for (name, value) in variables.bare {
        // The policy of the network may be empty, and has always been in quotes.
        let value = if name == "NETWORK_POLICY" { shell::quoted(&value) } else { shell::bare(&value) };
        text.extend([name, "=", &value, "\n"]);
    }
    for (name, value) in variables.quoted {
        text.extend([name, "=", &shell::quoted(&value), "\n"]);
    }
    text += END;
    Ok(text)
}

impl Variables {
    fn of(launch: &Launch<'_>) -> Result<Self, BootstrapError> {
        let mut all = Self { bare: Vec::new(), quoted: Vec::new() };
        let version: KubernetesVersion = launch.class.kubernetes_version.parse()?;
        all.cluster(launch, version);
        all.network(launch);
        all.cloud_provider();
        all.machine(launch, version)?;
        all.features(launch);
        all.paths();
        all.node(launch)?;
        Ok(all)
    }

    fn bare<const N: usize>(&mut self, variables: [(&'static str, &str); N]) {
        self.bare.extend(variables.map(|(name, value)| (name, value.to_owned())));
    }

    fn quoted<const N: usize>(&mut self, variables: [(&'static str, &str); N]) {
        self.quoted.extend(variables.map(|(name, value)| (name, value.to_owned())));
    }

    /// Who the machine belongs to, and what it runs.
    fn cluster(&mut self, launch: &Launch<'_>, version: KubernetesVersion) {
        let settings = launch.cluster.settings;
        self.bare([
            ("ADMINUSER", &settings.linux_admin_username),
            ("MOBY_VERSION", ""),
            ("TENANT_ID", &settings.tenant_id),
            ("KUBERNETES_VERSION", launch.class.kubernetes_version),
            ("HYPERKUBE_URL", ""),
            ("KUBE_BINARY_URL", &kube_binary_url(launch, version)),
            ("CUSTOM_KUBE_BINARY_URL", ""),
            ("KUBEPROXY_URL", ""),
            ("CREDENTIAL_PROVIDER_DOWNLOAD_URL", &credential_provider_url(launch, version)),
            ("APISERVER_PUBLIC_KEY", ""),
            ("SUBSCRIPTION_ID", &settings.subscription_id),
            ("RESOURCE_GROUP", &settings.node_resource_group),
            ("LOCATION", &settings.location),
            ("VM_TYPE", "standard"),
        ]);
    }

    fn network(&mut self, launch: &Launch<'_>) {
        let Launch { cluster, subnet, .. } = launch;
        let settings = cluster.settings;
        let arch = &launch.choice.sku.architecture;
        let is_cilium_in_subnet = settings.network_plugin == "azure"
            && settings.network_plugin_mode.is_empty()
            && cluster.is_cilium();
        let is_set_up_by_others =
            cluster.is_overlay() || is_cilium_in_subnet || settings.network_plugin == "none";
        let plugin = if is_set_up_by_others { "none" } else { "azure" };
        let azure_cni = "azure-cni/v1.4.32/binaries/azure-vnet-cni-linux";
        let plugins = "cni-plugins/v1.1.1/binaries/cni-plugins-linux";
        self.bare([
            ("SUBNET", &subnet.name),
            ("NETWORK_SECURITY_GROUP", &launch.security_group.name),
            ("VIRTUAL_NETWORK", &subnet.network),
            ("VIRTUAL_NETWORK_RESOURCE_GROUP", &subnet.resource_group),
            ("ROUTE_TABLE", &launch.security_group.route_table()),
            ("PRIMARY_AVAILABILITY_SET", ""),
            ("PRIMARY_SCALE_SET", ""),
            ("SERVICE_PRINCIPAL_CLIENT_ID", "msi"),
            ("NETWORK_PLUGIN", plugin),
            ("NETWORK_POLICY", &settings.network_policy),
            ("VNET_CNI_PLUGINS_URL", &format!("{MIRROR}/{azure_cni}-{arch}-v1.4.32.tgz")),
            ("CNI_PLUGINS_URL", &format!("{MIRROR}/{plugins}-{arch}-v1.1.1.tgz")),
        ]);
    }

    fn cloud_provider(&mut self) {
        self.bare([
            ("CLOUDPROVIDER_BACKOFF", "true"),
            ("CLOUDPROVIDER_BACKOFF_MODE", "v2"),
            ("CLOUDPROVIDER_BACKOFF_RETRIES", "6"),
            ("CLOUDPROVIDER_BACKOFF_EXPONENT", "0"),
            ("CLOUDPROVIDER_BACKOFF_DURATION", "5"),
            ("CLOUDPROVIDER_BACKOFF_JITTER", "0"),
            ("CLOUDPROVIDER_RATELIMIT", "true"),
            ("CLOUDPROVIDER_RATELIMIT_QPS", "10"),
            ("CLOUDPROVIDER_RATELIMIT_QPS_WRITE", "10"),
            ("CLOUDPROVIDER_RATELIMIT_BUCKET", "100"),
            ("CLOUDPROVIDER_RATELIMIT_BUCKET_WRITE", "100"),
            ("LOAD_BALANCER_DISABLE_OUTBOUND_SNAT", "false"),
            ("USE_MANAGED_IDENTITY_EXTENSION", "true"),
            ("USE_INSTANCE_METADATA", "true"),
            ("LOAD_BALANCER_SKU", "Standard"),
            ("EXCLUDE_MASTER_FROM_STANDARD_LB", "true"),
            ("MAXIMUM_LOADBALANCER_RULE_COUNT", "250"),
        ]);
    }

    fn machine(&mut self, launch: &Launch<'_>, version: KubernetesVersion) -> Result<(), BootstrapError> {
        let settings = launch.cluster.settings;
        let endpoint = || BootstrapError::Endpoint(settings.cluster_endpoint.clone());
        let server: Uri = settings.cluster_endpoint.parse().map_err(|_| endpoint())?;
        let is_nvidia = flag(launch.installs_gpu_driver());
        self.bare([
            ("CONTAINER_RUNTIME", "containerd"),
            ("CLI_TOOL", "ctr"),
            ("CONTAINERD_DOWNLOAD_URL_BASE", ""),
            ("NETWORK_MODE", ""),
            ("KUBE_BINARY_URL", &kube_binary_url(launch, version)),
            ("USER_ASSIGNED_IDENTITY_ID", &settings.kubelet_identity_client_id),
            ("API_SERVER_NAME", server.host().ok_or_else(endpoint)?),
            ("IS_VHD", "true"),
            ("GPU_NODE", is_nvidia),
            ("SGX_NODE", "false"),
            ("MIG_NODE", "false"),
            ("CONFIG_GPU_DRIVER_IF_NEEDED", is_nvidia),
            ("ENABLE_GPU_DEVICE_PLUGIN_IF_NEEDED", "false"),
            ("TELEPORTD_PLUGIN_DOWNLOAD_URL", ""),
            ("CONTAINERD_VERSION", ""),
            ("CONTAINERD_PACKAGE_URL", ""),
            ("RUNC_VERSION", ""),
            ("RUNC_PACKAGE_URL", ""),
        ]);
        Ok(())
    }

    fn features(&mut self, launch: &Launch<'_>) {
        let cloud = cloud(&launch.cluster.settings.environment.name);
        self.quoted([
            ("ENABLE_HOSTS_CONFIG_AGENT", "false"),
            ("DISABLE_SSH", "false"),
            ("NEEDS_CONTAINERD", "true"),
            ("TELEPORT_ENABLED", "false"),
            ("SHOULD_CONFIGURE_HTTP_PROXY", "false"),
            ("SHOULD_CONFIGURE_HTTP_PROXY_CA", "false"),
            ("HTTP_PROXY_TRUSTED_CA", ""),
            ("SHOULD_CONFIGURE_CUSTOM_CA_TRUST", "false"),
            ("CUSTOM_CA_TRUST_COUNT", "0"),
            ("IS_KRUSTLET", "false"),
            ("GPU_NEEDS_FABRIC_MANAGER", "false"),
            ("NEEDS_DOCKER_LOGIN", "false"),
            ("IPV6_DUAL_STACK_ENABLED", "false"),
            ("OUTBOUND_COMMAND", "curl -v --insecure --proxy-insecure https://mcr.microsoft.com/v2/"),
            ("ENABLE_UNATTENDED_UPGRADES", "false"),
            ("ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE", "false"),
            ("SHOULD_CONFIG_SWAP_FILE", "false"),
            ("SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE", "false"),
            ("TARGET_CLOUD", cloud),
            ("TARGET_ENVIRONMENT", cloud),
            ("CUSTOM_ENV_JSON", ""),
            ("IS_CUSTOM_CLOUD", "false"),
            ("AZURE_PRIVATE_REGISTRY_SERVER", ""),
            ("MCR_REPOSITORY_BASE", "mcr.microsoft.com"),
            ("ENABLE_IMDS_RESTRICTION", "false"),
            ("INSERT_IMDS_RESTRICTION_RULE_TO_MANGLE_TABLE", "false"),
            ("CSE_TIMEOUT", "15m"),
            ("HAS_CUSTOM_SEARCH_DOMAIN", "false"),
            ("CUSTOM_SEARCH_DOMAIN_NAME", ""),
            ("CUSTOM_SEARCH_REALM_USER", ""),
            ("CUSTOM_SEARCH_REALM_PASSWORD", ""),
            ("HTTP_PROXY_URLS", ""),
            ("HTTPS_PROXY_URLS", ""),
            ("NO_PROXY_URLS", ""),
            ("THP_ENABLED", ""),
            ("THP_DEFRAG", ""),
            ("SWAP_FILE_SIZE_MB", "0"),
            ("MESSAGE_OF_THE_DAY", ""),
            ("HAS_KUBELET_DISK_TYPE", "false"),
            ("NEEDS_CGROUPV2", "true"),
            ("IS_KATA", "false"),
        ]);
    }

    fn paths(&mut self) {
        for (name, script) in [
            ("CSE_HELPERS_FILEPATH", "provision_source.sh"),
            ("CSE_DISTRO_HELPERS_FILEPATH", "provision_source_distro.sh"),
            ("CSE_INSTALL_FILEPATH", "provision_installs.sh"),
            ("CSE_DISTRO_INSTALL_FILEPATH", "provision_installs_distro.sh"),
            ("CSE_CONFIG_FILEPATH", "provision_configs.sh"),
            ("CUSTOM_SEARCH_DOMAIN_FILEPATH", "setup-custom-search-domains.sh"),
        ] {
            self.quoted.push((name, format!("{SCRIPTS}/{script}")));
        }
        self.quoted([
            ("DHCPV6_SERVICE_FILEPATH", ""),
            ("DHCPV6_CONFIG_FILEPATH", ""),
            ("AZURE_ENVIRONMENT_FILEPATH", ""),
        ]);
    }

    /// How the machine joins the cluster.
    fn node(&mut self, launch: &Launch<'_>) -> Result<(), BootstrapError> {
        let is_nvidia = launch.installs_gpu_driver();
        let driver = is_nvidia.then(|| gpu::driver(&launch.choice.sku.name));
        let flags = kubelet_flags::of(launch)?.into_iter().map(|(name, value)| format!("--{name}={value}"));
        let labels = node_labels::of_kubelet(launch);
        let labels: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.quoted([
            ("ENABLE_TLS_BOOTSTRAPPING", "true"),
            ("ENABLE_SECURE_TLS_BOOTSTRAPPING", "false"),
            ("ENABLE_KUBELET_SERVING_CERTIFICATE_ROTATION", "false"),
            ("SERVICE_PRINCIPAL_FILE_CONTENT", &BASE64_STANDARD.encode("msi")),
            ("KUBELET_CLIENT_CONTENT", ""),
            ("KUBELET_CLIENT_CERT_CONTENT", ""),
            ("KUBELET_CONFIG_FILE_ENABLED", "false"),
            ("KUBELET_CONFIG_FILE_CONTENT", ""),
            ("GPU_DRIVER_VERSION", driver.map_or("", |driver| driver.version)),
            ("GPU_DRIVER_TYPE", driver.map_or("", |driver| driver.kind)),
            ("GPU_IMAGE_SHA", driver.map_or("", |driver| driver.image)),
            ("GPU_INSTANCE_PROFILE", ""),
            ("TLS_BOOTSTRAP_TOKEN", launch.cluster.settings.kubelet_bootstrap_token.reveal()),
            ("KUBELET_FLAGS", &flags.collect::<Vec<_>>().join(" ")),
            ("KUBELET_NODE_LABELS", &labels.join(",")),
            ("KUBE_CA_CRT", launch.cluster.ca_bundle),
            ("SYSCTL_CONTENT", &BASE64_STANDARD.encode(SYSCTLS)),
            ("CONTAINERD_CONFIG_CONTENT", &BASE64_STANDARD.encode(containerd::config(is_nvidia))),
        ]);
        Ok(())
    }
}

const fn flag(is_on: bool) -> &'static str {
    if is_on { "true" } else { "false" }
}

/// The cloud, if the images know it.
fn cloud(name: &str) -> &str {
    match name {
        "AzureChinaCloud" | "AzureUSGovernmentCloud" => name,
        _ => "AzurePublicCloud",
    }
}

/// Newer images have everything that is needed.
fn kube_binary_url(launch: &Launch<'_>, version: KubernetesVersion) -> String {
    if version >= KubernetesVersion::minor(34) {
        return String::new();
    }
    let (version, arch) = (launch.class.kubernetes_version, &launch.choice.sku.architecture);
    format!("{MIRROR}/kubernetes/v{version}/binaries/kubernetes-node-linux-{arch}.tar.gz")
}

fn credential_provider_url(launch: &Launch<'_>, version: KubernetesVersion) -> String {
    let release = match version {
        version if version < KubernetesVersion::minor(30) => return String::new(),
        version if version < KubernetesVersion::minor(31) => "1.30.12",
        version if version < KubernetesVersion::minor(32) => "1.31.6",
        version if version < KubernetesVersion::minor(33) => "1.32.5",
        _ => "1.33.0",
    };
    let arch = &launch.choice.sku.architecture;
    format!(
        "{MIRROR}/cloud-provider-azure/v{release}/binaries/azure-acr-credential-provider-linux-{arch}-v{release}.tar.gz"
    )
}

#[cfg(test)]
mod tests;

//! Settings of nodes, as AKS spells them for machines and for bootstrapping.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether containers start before their image is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactStreamingProfile {
    /// They do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Settings of the kubelet, as AKS spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfig {
    /// How CPUs are given to pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_manager_policy: Option<String>,
    /// Whether CPU limits are enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// Over which time CPU limits are enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota_period: Option<String>,
    /// Above which share of the disk images are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_gc_high_threshold: Option<i32>,
    /// Down to which share of the disk images are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_gc_low_threshold: Option<i32>,
    /// How resources are aligned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_manager_policy: Option<String>,
    /// Kernel parameters that pods may set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_unsafe_sysctls: Option<Vec<String>>,
    /// How large a log grows.
    #[serde(rename = "containerLogMaxSizeMB", skip_serializing_if = "Option::is_none")]
    pub container_log_max_size_mb: Option<i32>,
    /// How many logs a container keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_log_max_files: Option<i32>,
    /// How many processes a pod has; −1 is any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_max_pids: Option<i32>,
    /// Whether the kubelet refuses swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Settings of the kernel, as AKS spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxOsConfig {
    /// The size of the swap file.
    #[serde(rename = "swapFileSizeMB", skip_serializing_if = "Option::is_none")]
    pub swap_file_size_mb: Option<i32>,
    /// When memory is made contiguous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_page_defrag: Option<String>,
    /// For which memory huge pages are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_page_enabled: Option<String>,
    /// Kernel parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sysctls: Option<Sysctls>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Kernel parameters, as AKS spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sysctls {
    /// `fs.aio-max-nr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_aio_max_nr: Option<i32>,
    /// `fs.file-max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_file_max: Option<i32>,
    /// `fs.inotify.max_user_watches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_inotify_max_user_watches: Option<i32>,
    /// `fs.nr_open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_nr_open: Option<i32>,
    /// `kernel.threads-max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_threads_max: Option<i32>,
    /// `net.core.netdev_max_backlog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_netdev_max_backlog: Option<i32>,
    /// `net.core.optmem_max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_optmem_max: Option<i32>,
    /// `net.core.rmem_default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_rmem_default: Option<i32>,
    /// `net.core.rmem_max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_rmem_max: Option<i32>,
    /// `net.core.somaxconn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_somaxconn: Option<i32>,
    /// `net.core.wmem_default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_wmem_default: Option<i32>,
    /// `net.core.wmem_max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_core_wmem_max: Option<i32>,
    /// `net.ipv4.ip_local_port_range`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_ip_local_port_range: Option<String>,
    /// `net.ipv4.neigh.default.gc_thresh1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_neigh_default_gc_thresh1: Option<i32>,
    /// `net.ipv4.neigh.default.gc_thresh2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_neigh_default_gc_thresh2: Option<i32>,
    /// `net.ipv4.neigh.default.gc_thresh3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_neigh_default_gc_thresh3: Option<i32>,
    /// `net.ipv4.tcp_fin_timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_fin_timeout: Option<i32>,
    /// `net.ipv4.tcp_keepalive_probes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_keepalive_probes: Option<i32>,
    /// `net.ipv4.tcp_keepalive_time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_keepalive_time: Option<i32>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_max_syn_backlog: Option<i32>,
    /// `net.ipv4.tcp_max_tw_buckets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_max_tw_buckets: Option<i32>,
    /// `net.ipv4.tcp_tw_reuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_tw_reuse: Option<bool>,
    /// `net.ipv4.tcp_keepalive_intvl`.
    #[serde(rename = "netIpv4TcpkeepaliveIntvl", skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_keepalive_intvl: Option<i32>,
    /// `net.netfilter.nf_conntrack_buckets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_netfilter_nf_conntrack_buckets: Option<i32>,
    /// `net.netfilter.nf_conntrack_max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_netfilter_nf_conntrack_max: Option<i32>,
    /// `vm.max_map_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_max_map_count: Option<i32>,
    /// `vm.swappiness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_swappiness: Option<i32>,
    /// `vm.vfs_cache_pressure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_vfs_cache_pressure: Option<i32>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The DNS cache of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalDnsProfile {
    /// `Required` or `Disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Zones as seen by pods that use the DNS of the virtual network.
    #[serde(rename = "vnetDNSOverrides", skip_serializing_if = "Option::is_none")]
    pub vnet_dns_overrides: Option<BTreeMap<String, LocalDnsOverride>>,
    /// Zones as seen by pods that use the DNS of the cluster.
    #[serde(rename = "kubeDNSOverrides", skip_serializing_if = "Option::is_none")]
    pub kube_dns_overrides: Option<BTreeMap<String, LocalDnsOverride>>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How names of one zone are resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalDnsOverride {
    /// Which queries are logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_logging: Option<String>,
    /// How servers are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Which servers are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_destination: Option<String>,
    /// In which order servers are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_policy: Option<String>,
    /// How many queries are under way at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<i32>,
    /// How long answers are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_duration_in_seconds: Option<i32>,
    /// How long answers are given after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve_stale_duration_in_seconds: Option<i32>,
    /// When they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve_stale: Option<String>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

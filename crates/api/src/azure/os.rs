//! Settings of the kubelet and of the Linux kernel that an AKSNodeClass can make.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::GoDuration;

use crate::schema::rule;

/// A number with a mandatory suffix.
const SIZE: &str = r"^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$";

/// Settings of the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfiguration {
    /// Whether pods can have processors of their own.
    #[serde(default = "none_policy", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["none", "static"]))]
    pub cpu_manager_policy: String,
    /// Whether CPU limits are enforced.
    #[serde(default = "cpu_cfs_quota", rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// Over which period CPU limits are enforced.
    #[serde(
        default = "cpu_cfs_quota_period",
        rename = "cpuCFSQuotaPeriod",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub cpu_cfs_quota_period: Option<GoDuration>,
    /// Disk usage in percent above which unused images are always removed.
    #[serde(default, rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk usage in percent below which unused images are never removed.
    #[serde(default, rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// How processors and devices of a pod are placed together.
    #[serde(default = "none_policy", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["restricted", "best-effort", "none", "single-numa-node"]))]
    pub topology_manager_policy: String,
    /// Kernel settings that pods may change although they are not isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_unsafe_sysctls: Option<Vec<String>>,
    /// The size at which a container's log is rotated.
    #[serde(default = "container_log_max_size", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = SIZE))]
    pub container_log_max_size: String,
    /// How many log files a container keeps.
    #[serde(default = "container_log_max_files", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub container_log_max_files: Option<i32>,
    /// How many processes a pod may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_pids_limit: Option<i64>,
    /// Whether the kubelet refuses to start with swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
}

fn none_policy() -> String {
    "none".to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn cpu_cfs_quota() -> Option<bool> {
    Some(true)
}

fn cpu_cfs_quota_period() -> Option<GoDuration> {
    "100ms".parse().ok()
}

fn container_log_max_size() -> String {
    "50Mi".to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn container_log_max_files() -> Option<i32> {
    Some(5)
}

/// Settings of the Linux kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinuxOsConfiguration {
    /// The size of the swap file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = SIZE))]
    pub swap_file_size: Option<String>,
    /// Kernel parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = sysctl_rules()))]
    pub sysctls: Option<SysctlConfiguration>,
    /// How hard the kernel tries to make huge pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["always", "defer", "defer+madvise", "madvise", "never"]))]
    pub transparent_huge_page_defrag: Option<String>,
    /// For which memory the kernel uses huge pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["always", "madvise", "never"]))]
    pub transparent_huge_page_enabled: Option<String>,
}

fn sysctl_rules() -> Vec<crate::schema::Rule> {
    const FIRST: &str = "int(self.netIPv4IPLocalPortRange.split(' ')[0])";
    const LAST: &str = "int(self.netIPv4IPLocalPortRange.split(' ')[1])";
    let ordered = |low: &str, high: &str| {
        rule(
            format!("has(self.{low}) && has(self.{high}) ? self.{low} <= self.{high} : true"),
            format!("{low} must be <= {high}"),
        )
    };
    let port_range = |condition: String, message: &str| {
        rule(
            format!("!has(self.netIPv4IPLocalPortRange) || ({condition})"),
            format!("netIPv4IPLocalPortRange {message}"),
        )
    };
    vec![
        ordered("netCoreRmemDefault", "netCoreRmemMax"),
        ordered("netCoreWmemDefault", "netCoreWmemMax"),
        ordered("netIPv4NeighDefaultGcThresh1", "netIPv4NeighDefaultGcThresh2"),
        ordered("netIPv4NeighDefaultGcThresh2", "netIPv4NeighDefaultGcThresh3"),
        port_range(format!("{FIRST} >= 1024 && {FIRST} <= 60999"), "first port must be in [1024, 60999]"),
        port_range(format!("{LAST} >= 32768 && {LAST} <= 65535"), "last port must be in [32768, 65535]"),
        port_range(format!("{FIRST} <= {LAST}"), "first port must be <= last port"),
    ]
}

/// Kernel parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SysctlConfiguration {
    /// `fs.aio-max-nr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65536, max = 6_553_500))]
    pub fs_aio_max_nr: Option<i32>,
    /// `fs.file-max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8192, max = 12_000_500))]
    pub fs_file_max: Option<i32>,
    /// `fs.inotify.max_user_watches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 781_250, max = 2_097_152))]
    pub fs_inotify_max_user_watches: Option<i32>,
    /// `fs.nr_open`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8192, max = 20_000_500))]
    pub fs_nr_open: Option<i32>,
    /// `kernel.threads-max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 513_785))]
    pub kernel_threads_max: Option<i32>,
    /// `net.core.netdev_max_backlog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 3_240_000))]
    pub net_core_netdev_max_backlog: Option<i32>,
    /// `net.core.optmem_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20480, max = 4_194_304))]
    pub net_core_optmem_max: Option<i32>,
    /// `net.core.rmem_default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_rmem_default: Option<i32>,
    /// `net.core.rmem_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_rmem_max: Option<i32>,
    /// `net.core.somaxconn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4096, max = 3_240_000))]
    pub net_core_somaxconn: Option<i32>,
    /// `net.core.wmem_default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_wmem_default: Option<i32>,
    /// `net.core.wmem_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 212_992, max = 134_217_728))]
    pub net_core_wmem_max: Option<i32>,
    /// `net.ipv4.ip_local_port_range`.
    #[serde(default, rename = "netIPv4IPLocalPortRange", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^\d+ \d+$"))]
    pub net_ipv4_ip_local_port_range: Option<String>,
    /// `net.ipv4.neigh.default.gc_thresh1`.
    #[serde(default, rename = "netIPv4NeighDefaultGcThresh1", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 128, max = 80000))]
    pub net_ipv4_neigh_default_gc_thresh1: Option<i32>,
    /// `net.ipv4.neigh.default.gc_thresh2`.
    #[serde(default, rename = "netIPv4NeighDefaultGcThresh2", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 512, max = 90000))]
    pub net_ipv4_neigh_default_gc_thresh2: Option<i32>,
    /// `net.ipv4.neigh.default.gc_thresh3`.
    #[serde(default, rename = "netIPv4NeighDefaultGcThresh3", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 100_000))]
    pub net_ipv4_neigh_default_gc_thresh3: Option<i32>,
    /// `net.ipv4.tcp_fin_timeout`.
    #[serde(default, rename = "netIPv4TCPFinTimeout", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5, max = 120))]
    pub net_ipv4_tcp_fin_timeout: Option<i32>,
    /// `net.ipv4.tcp_keepalive_probes`.
    #[serde(default, rename = "netIPv4TCPKeepaliveProbes", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15))]
    pub net_ipv4_tcp_keepalive_probes: Option<i32>,
    /// `net.ipv4.tcp_keepalive_time`.
    #[serde(default, rename = "netIPv4TCPKeepaliveTime", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 432_000))]
    pub net_ipv4_tcp_keepalive_time: Option<i32>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    #[serde(default, rename = "netIPv4TCPMaxSynBacklog", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 128, max = 3_240_000))]
    pub net_ipv4_tcp_max_syn_backlog: Option<i32>,
    /// `net.ipv4.tcp_max_tw_buckets`.
    #[serde(default, rename = "netIPv4TCPMaxTwBuckets", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8000, max = 1_440_000))]
    pub net_ipv4_tcp_max_tw_buckets: Option<i32>,
    /// `net.ipv4.tcp_tw_reuse`.
    #[serde(default, rename = "netIPv4TCPTwReuse", skip_serializing_if = "Option::is_none")]
    pub net_ipv4_tcp_tw_reuse: Option<bool>,
    /// `net.ipv4.tcp_keepalive_intvl`.
    #[serde(default, rename = "netIPv4TCPKeepaliveIntvl", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 90))]
    pub net_ipv4_tcp_keepalive_intvl: Option<i32>,
    /// `net.netfilter.nf_conntrack_buckets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65536, max = 524_288))]
    pub net_netfilter_nf_conntrack_buckets: Option<i32>,
    /// `net.netfilter.nf_conntrack_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 131_072, max = 2_097_152))]
    pub net_netfilter_nf_conntrack_max: Option<i32>,
    /// `vm.max_map_count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65530, max = 262_144))]
    pub vm_max_map_count: Option<i32>,
    /// `vm.swappiness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub vm_swappiness: Option<i32>,
    /// `vm.vfs_cache_pressure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub vm_vfs_cache_pressure: Option<i32>,
}

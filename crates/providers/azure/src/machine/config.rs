//! Settings of a NodeClass, as AKS spells them.

use std::collections::BTreeMap;

use api::azure::{
    KubeletConfiguration, LinuxOsConfiguration, LocalDnsMode, LocalDnsZoneOverride, SysctlConfiguration,
};
use units::{NillableDuration, Quantity};

use crate::arm::types::node_config::{
    KubeletConfig, LinuxOsConfig, LocalDnsOverride, LocalDnsProfile, Sysctls,
};
use crate::class::Class;

/// The settings of the kubelet.
pub fn kubelet_config(kubelet: &KubeletConfiguration) -> KubeletConfig {
    let text = |value: &String| (!value.is_empty()).then(|| value.clone());
    let period = kubelet.cpu_cfs_quota_period.filter(|period| period.as_nanos() != 0);
    KubeletConfig {
        cpu_manager_policy: text(&kubelet.cpu_manager_policy),
        cpu_cfs_quota: kubelet.cpu_cfs_quota,
        cpu_cfs_quota_period: period.map(|period| period.to_string()),
        image_gc_high_threshold: kubelet.image_gc_high_threshold_percent,
        image_gc_low_threshold: kubelet.image_gc_low_threshold_percent,
        topology_manager_policy: text(&kubelet.topology_manager_policy),
        allowed_unsafe_sysctls: kubelet.allowed_unsafe_sysctls.clone().filter(|all| !all.is_empty()),
        container_log_max_size_mb: mebibytes(&kubelet.container_log_max_size),
        container_log_max_files: kubelet.container_log_max_files,
        pod_max_pids: kubelet.pod_pids_limit.map(pids),
        fail_swap_on: kubelet.fail_swap_on,
        ..KubeletConfig::default()
    }
}

/// Any number below zero means that there is no limit.
fn pids(limit: i64) -> i32 {
    if limit < 0 { -1 } else { i32::try_from(limit).unwrap_or(i32::MAX) }
}

/// The nearest number of MiB; what is no size is left out.
fn mebibytes(size: &str) -> Option<i32> {
    const MEBI: i128 = 1 << 20;
    const NANOS: i128 = 1_000_000_000;
    let quantity: Quantity = size.parse().ok()?;
    i32::try_from((quantity.nanos() + MEBI * NANOS / 2).div_euclid(MEBI * NANOS)).ok()
}

/// The settings of the kernel.
pub fn linux_os_config(config: &LinuxOsConfiguration) -> LinuxOsConfig {
    LinuxOsConfig {
        swap_file_size_mb: config.swap_file_size.as_deref().and_then(mebibytes),
        transparent_huge_page_defrag: config.transparent_huge_page_defrag.clone(),
        transparent_huge_page_enabled: config.transparent_huge_page_enabled.clone(),
        sysctls: config.sysctls.as_ref().map(sysctls),
        ..LinuxOsConfig::default()
    }
}

fn sysctls(own: &SysctlConfiguration) -> Sysctls {
    Sysctls {
        fs_aio_max_nr: own.fs_aio_max_nr,
        fs_file_max: own.fs_file_max,
        fs_inotify_max_user_watches: own.fs_inotify_max_user_watches,
        fs_nr_open: own.fs_nr_open,
        kernel_threads_max: own.kernel_threads_max,
        net_core_netdev_max_backlog: own.net_core_netdev_max_backlog,
        net_core_optmem_max: own.net_core_optmem_max,
        net_core_rmem_default: own.net_core_rmem_default,
        net_core_rmem_max: own.net_core_rmem_max,
        net_core_somaxconn: own.net_core_somaxconn,
        net_core_wmem_default: own.net_core_wmem_default,
        net_core_wmem_max: own.net_core_wmem_max,
        net_ipv4_ip_local_port_range: own.net_ipv4_ip_local_port_range.clone(),
        net_ipv4_neigh_default_gc_thresh1: own.net_ipv4_neigh_default_gc_thresh1,
        net_ipv4_neigh_default_gc_thresh2: own.net_ipv4_neigh_default_gc_thresh2,
        net_ipv4_neigh_default_gc_thresh3: own.net_ipv4_neigh_default_gc_thresh3,
        net_ipv4_tcp_fin_timeout: own.net_ipv4_tcp_fin_timeout,
        net_ipv4_tcp_keepalive_probes: own.net_ipv4_tcp_keepalive_probes,
        net_ipv4_tcp_keepalive_time: own.net_ipv4_tcp_keepalive_time,
        net_ipv4_tcp_max_syn_backlog: own.net_ipv4_tcp_max_syn_backlog,
        net_ipv4_tcp_max_tw_buckets: own.net_ipv4_tcp_max_tw_buckets,
        net_ipv4_tcp_tw_reuse: own.net_ipv4_tcp_tw_reuse,
        net_ipv4_tcp_keepalive_intvl: own.net_ipv4_tcp_keepalive_intvl,
        net_netfilter_nf_conntrack_buckets: own.net_netfilter_nf_conntrack_buckets,
        net_netfilter_nf_conntrack_max: own.net_netfilter_nf_conntrack_max,
        vm_max_map_count: own.vm_max_map_count,
        vm_swappiness: own.vm_swappiness,
        vm_vfs_cache_pressure: own.vm_vfs_cache_pressure,
        ..Sysctls::default()
    }
}

/// The DNS cache of a NodeClass that asks for one. AKS is never told what is preferred, only what was decided.
pub fn local_dns_profile(class: &Class<'_>) -> Option<LocalDnsProfile> {
    let dns = class.spec.local_dns.as_ref()?;
    let is_required = match dns.mode {
        LocalDnsMode::Required => true,
        LocalDnsMode::Disabled => false,
        LocalDnsMode::Preferred => class.has_local_dns,
    };
    let mode = if is_required { LocalDnsMode::Required } else { LocalDnsMode::Disabled };
    let overrides = |all: &[LocalDnsZoneOverride]| -> BTreeMap<String, LocalDnsOverride> {
        all.iter().map(|zone| (zone.zone.clone(), zone_override(zone))).collect()
    };
    Some(LocalDnsProfile {
        mode: Some(mode.as_str().to_owned()),
        vnet_dns_overrides: Some(overrides(&dns.vnet_dns_overrides)),
        kube_dns_overrides: Some(overrides(&dns.kube_dns_overrides)),
        ..LocalDnsProfile::default()
    })
}

fn zone_override(zone: &LocalDnsZoneOverride) -> LocalDnsOverride {
    let seconds = |duration: &NillableDuration| {
        let nanos = duration.duration()?.as_nanos();
        i32::try_from(nanos / 1_000_000_000).ok()
    };
    LocalDnsOverride {
        query_logging: Some(zone.query_logging.clone()),
        protocol: Some(zone.protocol.clone()),
        forward_destination: Some(zone.forward_destination.clone()),
        forward_policy: Some(zone.forward_policy.clone()),
        max_concurrent: Some(zone.max_concurrent),
        cache_duration_in_seconds: seconds(&zone.cache_duration),
        serve_stale_duration_in_seconds: seconds(&zone.serve_stale_duration),
        serve_stale: Some(zone.serve_stale.clone()),
        ..LocalDnsOverride::default()
    }
}

#[cfg(test)]
mod tests {
    use api::azure::{AKSNodeClass, LocalDnsState};
    use serde_json::{Value, json};

    use super::*;

    fn kubelet(value: Value) -> Value {
        serde_json::to_value(kubelet_config(&serde_json::from_value(value).unwrap())).unwrap()
    }

    // azure.md 11.3: kubeletConfig JSON
    #[test]
    fn the_kubelet_is_told_in_the_words_of_aks() {
        assert_eq!(
            kubelet(json!({
                "cpuManagerPolicy": "static", "cpuCFSQuota": true, "cpuCFSQuotaPeriod": "100ms",
                "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80,
                "topologyManagerPolicy": "none", "allowedUnsafeSysctls": ["net.core.somaxconn"],
                "containerLogMaxSize": "10Mi", "containerLogMaxFiles": 10, "podPidsLimit": 1024, "failSwapOn": false,
            })),
            json!({
                "cpuManagerPolicy": "static", "cpuCfsQuota": true, "cpuCfsQuotaPeriod": "100ms",
                "imageGcHighThreshold": 85, "imageGcLowThreshold": 80, "topologyManagerPolicy": "none",
                "allowedUnsafeSysctls": ["net.core.somaxconn"], "containerLogMaxSizeMB": 10,
                "containerLogMaxFiles": 10, "podMaxPids": 1024, "failSwapOn": false,
            })
        );
    }

    // azure.md 11.3: cpuCfsQuotaPeriod skipped if 0s
    #[test]
    fn no_period_is_not_told() {
        let told = kubelet(json!({"cpuCFSQuotaPeriod": "0s", "containerLogMaxSize": ""}));
        assert!(told.get("cpuCfsQuotaPeriod").is_none() && told.get("containerLogMaxSizeMB").is_none());
    }

    // azure.md 25.6: log size conversions, invalid → nil
    #[test]
    fn sizes_are_rounded_to_the_nearest_mebibyte() {
        for (size, expected) in [
            ("10Mi", Some(10)),
            ("1Gi", Some(1024)),
            ("50M", Some(48)),
            ("1500Ki", Some(1)),
            ("1536Ki", Some(2)),
            ("1Ki", Some(0)),
            ("9999Ei", None),
            ("much", None),
            ("", None),
        ] {
            assert_eq!(mebibytes(size), expected, "{size}");
        }
    }

    // azure.md 25.6: pid conversions
    #[test]
    fn limits_of_processes_fit_and_anything_negative_is_no_limit() {
        for (limit, expected) in
            [(99, 99), (0, 0), (-1, -1), (-7, -1), (i64::MAX, i32::MAX), (1 << 31, i32::MAX)]
        {
            assert_eq!(pids(limit), expected, "{limit}");
        }
    }

    // azure.md 11.3: linuxOSConfig JSON with ARM spellings
    #[test]
    fn the_kernel_is_told_in_the_words_of_aks() {
        let own = json!({
            "swapFileSize": "1500Mi", "transparentHugePageDefrag": "defer+madvise",
            "transparentHugePageEnabled": "madvise",
            "sysctls": {
                "fsAioMaxNr": 1, "fsFileMax": 2, "fsInotifyMaxUserWatches": 3, "fsNrOpen": 4, "kernelThreadsMax": 5,
                "netCoreNetdevMaxBacklog": 6, "netCoreOptmemMax": 7, "netCoreRmemDefault": 8, "netCoreRmemMax": 9,
                "netCoreSomaxconn": 10, "netCoreWmemDefault": 11, "netCoreWmemMax": 12,
                "netIPv4IPLocalPortRange": "32768 60999", "netIPv4NeighDefaultGcThresh1": 13,
                "netIPv4NeighDefaultGcThresh2": 14, "netIPv4NeighDefaultGcThresh3": 15, "netIPv4TCPFinTimeout": 16,
                "netIPv4TCPKeepaliveProbes": 17, "netIPv4TCPKeepaliveTime": 18, "netIPv4TCPMaxSynBacklog": 19,
                "netIPv4TCPMaxTwBuckets": 20, "netIPv4TCPTwReuse": true, "netIPv4TCPKeepaliveIntvl": 21,
                "netNetfilterNfConntrackBuckets": 22, "netNetfilterNfConntrackMax": 23, "vmMaxMapCount": 24,
                "vmSwappiness": 25, "vmVfsCachePressure": 26,
            },
        });
        let told = linux_os_config(&serde_json::from_value(own).unwrap());
        assert_eq!(
            serde_json::to_value(told).unwrap(),
            json!({
                "swapFileSizeMB": 1500, "transparentHugePageDefrag": "defer+madvise",
                "transparentHugePageEnabled": "madvise",
                "sysctls": {
                    "fsAioMaxNr": 1, "fsFileMax": 2, "fsInotifyMaxUserWatches": 3, "fsNrOpen": 4,
                    "kernelThreadsMax": 5, "netCoreNetdevMaxBacklog": 6, "netCoreOptmemMax": 7,
                    "netCoreRmemDefault": 8, "netCoreRmemMax": 9, "netCoreSomaxconn": 10,
                    "netCoreWmemDefault": 11, "netCoreWmemMax": 12, "netIpv4IpLocalPortRange": "32768 60999",
                    "netIpv4NeighDefaultGcThresh1": 13, "netIpv4NeighDefaultGcThresh2": 14,
                    "netIpv4NeighDefaultGcThresh3": 15, "netIpv4TcpFinTimeout": 16,
                    "netIpv4TcpKeepaliveProbes": 17, "netIpv4TcpKeepaliveTime": 18,
                    "netIpv4TcpMaxSynBacklog": 19, "netIpv4TcpMaxTwBuckets": 20, "netIpv4TcpTwReuse": true,
                    "netIpv4TcpkeepaliveIntvl": 21, "netNetfilterNfConntrackBuckets": 22,
                    "netNetfilterNfConntrackMax": 23, "vmMaxMapCount": 24, "vmSwappiness": 25,
                    "vmVfsCachePressure": 26,
                },
            })
        );
    }

    fn dns(mode: &str, state: Option<LocalDnsState>) -> Value {
        let zone = |name: &str, destination: &str| {
            json!({
                "zone": name, "queryLogging": "Log", "protocol": "ForceTCP", "forwardDestination": destination,
                "forwardPolicy": "Random", "maxConcurrent": 5, "cacheDuration": "1h30m",
                "serveStaleDuration": "90s", "serveStale": "Immediate",
            })
        };
        let class: AKSNodeClass = serde_json::from_value(json!({
            "metadata": {}, "status": {"localDNSState": state}, "spec": {"localDNS": {
                "mode": mode,
                "vnetDNSOverrides": [zone(".", "VnetDNS")],
                "kubeDNSOverrides": [zone("cluster.local", "ClusterCoreDNS")],
            }},
        }))
        .unwrap();
        serde_json::to_value(local_dns_profile(&Class::from(&class))).unwrap()
    }

    // azure.md 11.3: localDNSProfile
    #[test]
    fn the_dns_cache_is_told_with_zones_by_name_and_whole_seconds() {
        let zone = |destination: &str| {
            json!({
                "queryLogging": "Log", "protocol": "ForceTCP", "forwardDestination": destination,
                "forwardPolicy": "Random", "maxConcurrent": 5, "cacheDurationInSeconds": 5400,
                "serveStaleDurationInSeconds": 90, "serveStale": "Immediate",
            })
        };
        assert_eq!(
            dns("Required", None),
            json!({
                "mode": "Required",
                "vnetDNSOverrides": {".": zone("VnetDNS")},
                "kubeDNSOverrides": {"cluster.local": zone("ClusterCoreDNS")},
            })
        );
    }

    // azure.md 1.7: Preferred is never sent
    #[test]
    fn aks_is_told_what_was_decided_and_not_what_is_preferred() {
        for (mode, state, expected) in [
            ("Required", Some(LocalDnsState::Disabled), "Required"),
            ("Disabled", Some(LocalDnsState::Enabled), "Disabled"),
            ("Preferred", Some(LocalDnsState::Enabled), "Required"),
            ("Preferred", Some(LocalDnsState::Disabled), "Disabled"),
            ("Preferred", None, "Disabled"),
        ] {
            assert_eq!(dns(mode, state)["mode"], expected, "{mode} {state:?}");
        }
        assert_eq!(local_dns_profile(&Class::from(&AKSNodeClass::default())), None);
    }
}

//! The hash of an AKSNodeClass: everything in its spec but the tags, which are updated in place.

use super::{Struct, boolean, int32, int64, set, string};
use crate::azure::{
    AKSNodeClassSpec, KubeletConfiguration, LinuxOsConfiguration, LocalDns, LocalDnsZoneOverride, Security,
    SysctlConfiguration, TrustedLaunch,
};

/// Stored next to the hash; changes whenever the algorithm or the hashed fields do.
pub const AKS_NODE_CLASS_HASH_VERSION: &str = "v3";

/// The drift hash of an AKSNodeClass, as it stands in the annotation `karpenter.azure.com/aksnodeclass-hash`.
pub fn aks_node_class_hash(spec: &AKSNodeClassSpec) -> String {
    Struct::new("AKSNodeClassSpec")
        .field("VNETSubnetID", spec.vnet_subnet_id.as_ref().map(|id| string(id)))
        .field("OSDiskSizeGB", spec.os_disk_size_gb.map(int32))
        .field("ImageFamily", spec.image_family.map(|family| string(family.as_str())))
        .field("FIPSMode", spec.fips_mode.map(|mode| string(mode.as_str())))
        .field("Kubelet", spec.kubelet.as_ref().map(kubelet))
        .field("MaxPods", spec.max_pods.map(int32))
        .field("Security", spec.security.as_ref().map(security))
        .field("LocalDNS", spec.local_dns.as_ref().map(local_dns))
        .field(
            "GPU",
            spec.gpu.as_ref().map(|gpu| {
                Struct::new("GPU").field("Mode", gpu.mode.map(|mode| string(mode.as_str()))).hash()
            }),
        )
        .field(
            "ArtifactStreaming",
            spec.artifact_streaming.as_ref().map(|streaming| {
                Struct::new("ArtifactStreaming").field("Enabled", streaming.enabled.map(boolean)).hash()
            }),
        )
        .field("LinuxOSConfig", spec.linux_os_config.as_ref().map(linux_os_config))
        .hash()
        .to_string()
}

fn kubelet(kubelet: &KubeletConfiguration) -> u64 {
    let period = kubelet.cpu_cfs_quota_period.map(units::GoDuration::as_nanos).filter(|nanos| *nanos != 0);
    Struct::new("KubeletConfiguration")
        .text("CPUManagerPolicy", &kubelet.cpu_manager_policy)
        .field("CPUCFSQuota", kubelet.cpu_cfs_quota.map(boolean))
        .field(
            "CPUCFSQuotaPeriod",
            period.map(|nanos| Struct::new("Duration").field("Duration", Some(int64(nanos))).hash()),
        )
        .field("ImageGCHighThresholdPercent", kubelet.image_gc_high_threshold_percent.map(int32))
        .field("ImageGCLowThresholdPercent", kubelet.image_gc_low_threshold_percent.map(int32))
        .text("TopologyManagerPolicy", &kubelet.topology_manager_policy)
        .field(
            "AllowedUnsafeSysctls",
            kubelet.allowed_unsafe_sysctls.as_ref().map(|names| set(names.iter().map(|name| string(name)))),
        )
        .text("ContainerLogMaxSize", &kubelet.container_log_max_size)
        .field("ContainerLogMaxFiles", kubelet.container_log_max_files.map(int32))
        .field("PodPidsLimit", kubelet.pod_pids_limit.map(int64))
        .field("FailSwapOn", kubelet.fail_swap_on.map(boolean))
        .hash()
}

fn security(security: &Security) -> u64 {
    let trusted_launch = |launch: &TrustedLaunch| {
        Struct::new("TrustedLaunch")
            .field("VTPM", launch.vtpm.map(boolean))
            .field("SecureBoot", launch.secure_boot.map(boolean))
            .hash()
    };
    Struct::new("Security")
        .field("EncryptionAtHost", security.encryption_at_host.map(boolean))
        .field("TrustedLaunch", security.trusted_launch.as_ref().map(trusted_launch))
        .hash()
}

fn local_dns(dns: &LocalDns) -> u64 {
    let overrides = |overrides: &Vec<LocalDnsZoneOverride>| {
        (!overrides.is_empty()).then(|| set(overrides.iter().map(zone_override)))
    };
    Struct::new("LocalDNS")
        .field("Mode", Some(string(dns.mode.as_str())))
        .field("VnetDNSOverrides", overrides(&dns.vnet_dns_overrides))
        .field("KubeDNSOverrides", overrides(&dns.kube_dns_overrides))
        .hash()
}

fn zone_override(zone: &LocalDnsZoneOverride) -> u64 {
    let duration = |duration: &units::NillableDuration| {
        let nanos = duration.duration()?.as_nanos();
        Some(Struct::new("NillableDuration").field("Duration", Some(int64(nanos))).hash())
    };
    Struct::new("LocalDNSZoneOverride")
        .text("Zone", &zone.zone)
        .text("QueryLogging", &zone.query_logging)
        .text("Protocol", &zone.protocol)
        .text("ForwardDestination", &zone.forward_destination)
        .text("ForwardPolicy", &zone.forward_policy)
        .field("MaxConcurrent", Some(int32(zone.max_concurrent)))
        .field("CacheDuration", duration(&zone.cache_duration))
        .field("ServeStaleDuration", duration(&zone.serve_stale_duration))
        .text("ServeStale", &zone.serve_stale)
        .hash()
}

fn linux_os_config(config: &LinuxOsConfiguration) -> u64 {
    let text = |value: &String| string(value);
    Struct::new("LinuxOSConfiguration")
        .field("SwapFileSize", config.swap_file_size.as_ref().map(text))
        .field("Sysctls", config.sysctls.as_ref().map(sysctls))
        .field("TransparentHugePageDefrag", config.transparent_huge_page_defrag.as_ref().map(text))
        .field("TransparentHugePageEnabled", config.transparent_huge_page_enabled.as_ref().map(text))
        .hash()
}

fn sysctls(sysctls: &SysctlConfiguration) -> u64 {
    Struct::new("SysctlConfiguration")
        .field("FsAioMaxNr", sysctls.fs_aio_max_nr.map(int32))
        .field("FsFileMax", sysctls.fs_file_max.map(int32))
        .field("FsInotifyMaxUserWatches", sysctls.fs_inotify_max_user_watches.map(int32))
        .field("FsNrOpen", sysctls.fs_nr_open.map(int32))
        .field("KernelThreadsMax", sysctls.kernel_threads_max.map(int32))
        .field("NetCoreNetdevMaxBacklog", sysctls.net_core_netdev_max_backlog.map(int32))
        .field("NetCoreOptmemMax", sysctls.net_core_optmem_max.map(int32))
        .field("NetCoreRmemDefault", sysctls.net_core_rmem_default.map(int32))
        .field("NetCoreRmemMax", sysctls.net_core_rmem_max.map(int32))
        .field("NetCoreSomaxconn", sysctls.net_core_somaxconn.map(int32))
        .field("NetCoreWmemDefault", sysctls.net_core_wmem_default.map(int32))
        .field("NetCoreWmemMax", sysctls.net_core_wmem_max.map(int32))
        .field("NetIPv4IPLocalPortRange", sysctls.net_ipv4_ip_local_port_range.as_ref().map(|r| string(r)))
        .field("NetIPv4NeighDefaultGcThresh1", sysctls.net_ipv4_neigh_default_gc_thresh1.map(int32))
        .field("NetIPv4NeighDefaultGcThresh2", sysctls.net_ipv4_neigh_default_gc_thresh2.map(int32))
        .field("NetIPv4NeighDefaultGcThresh3", sysctls.net_ipv4_neigh_default_gc_thresh3.map(int32))
        .field("NetIPv4TCPFinTimeout", sysctls.net_ipv4_tcp_fin_timeout.map(int32))
        .field("NetIPv4TCPKeepaliveProbes", sysctls.net_ipv4_tcp_keepalive_probes.map(int32))
        .field("NetIPv4TCPKeepaliveTime", sysctls.net_ipv4_tcp_keepalive_time.map(int32))
        .field("NetIPv4TCPMaxSynBacklog", sysctls.net_ipv4_tcp_max_syn_backlog.map(int32))
        .field("NetIPv4TCPMaxTwBuckets", sysctls.net_ipv4_tcp_max_tw_buckets.map(int32))
        .field("NetIPv4TCPTwReuse", sysctls.net_ipv4_tcp_tw_reuse.map(boolean))
        .field("NetIPv4TCPKeepaliveIntvl", sysctls.net_ipv4_tcp_keepalive_intvl.map(int32))
        .field("NetNetfilterNfConntrackBuckets", sysctls.net_netfilter_nf_conntrack_buckets.map(int32))
        .field("NetNetfilterNfConntrackMax", sysctls.net_netfilter_nf_conntrack_max.map(int32))
        .field("VMMaxMapCount", sysctls.vm_max_map_count.map(int32))
        .field("VMSwappiness", sysctls.vm_swappiness.map(int32))
        .field("VMVfsCachePressure", sysctls.vm_vfs_cache_pressure.map(int32))
        .hash()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(base: &Value, field: &str, value: Value, expected: &str) {
        let mut spec = base.clone();
        spec[field] = value;
        assert_eq!(aks_node_class_hash(&serde_json::from_value(spec).unwrap()), expected, "{field}");
    }

    #[test]
    fn hashes_equal_upstreams() {
        let defaulted = json!({"osDiskSizeGB": 128, "imageFamily": "Ubuntu"});
        check(&defaulted, "osDiskSizeGB", json!(128), "11637731675550486674");
        check(&defaulted, "gpu", json!({"mode": "None"}), "11617942611440040208");
        check(&defaulted, "security", json!({"encryptionAtHost": true}), "308035649270860706");
        check(&defaulted, "fipsMode", json!("FIPS"), "6501609575559232715");
        check(&defaulted, "kubelet", json!({}), "10511255942522118522");

        let full = json!({
            "vnetSubnetID": "subnet-id",
            "osDiskSizeGB": 30,
            "imageFamily": "Ubuntu2204",
            "kubelet": {
                "cpuManagerPolicy": "static",
                "cpuCFSQuota": true,
                "cpuCFSQuotaPeriod": "100ms",
                "imageGCHighThresholdPercent": 85,
                "imageGCLowThresholdPercent": 80,
                "topologyManagerPolicy": "none",
                "allowedUnsafeSysctls": ["net.core.somaxconn"],
                "containerLogMaxSize": "10Mi",
                "containerLogMaxFiles": 10,
            },
            "maxPods": 100,
        });
        check(&full, "maxPods", json!(100), "4108492229247269128");
        check(&full, "vnetSubnetID", json!("subnet-id-2"), "13971920214979852468");
        check(&full, "osDiskSizeGB", json!(40), "7816855636861645563");
        check(&full, "imageFamily", json!("AzureLinux"), "15616969746300892810");
        check(&full, "maxPods", json!(200), "15508761509963240710");
        let dns = json!({"mode": "Required", "vnetDNSOverrides": [], "kubeDNSOverrides": []});
        check(&full, "localDNS", dns, "17805442572569734619");
        check(&full, "artifactStreaming", json!({"enabled": true}), "15355387647114481444");
    }

    #[test]
    fn tags_leave_the_hash_alone() {
        let defaulted = json!({"osDiskSizeGB": 128, "imageFamily": "Ubuntu"});
        check(&defaulted, "tags", json!({"a": "b"}), "11637731675550486674");
    }

    #[test]
    fn every_kernel_parameter_counts() {
        let fields = serde_json::to_value(SysctlConfiguration {
            net_ipv4_ip_local_port_range: Some("1024 65535".to_owned()),
            ..Default::default()
        })
        .unwrap();
        assert_eq!(fields.as_object().unwrap().len(), 1);
        let schema = schemars::schema_for!(SysctlConfiguration);
        let names: Vec<String> =
            schema.get("properties").unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(names.len(), 28);
        let mut hashes: Vec<u64> = names
            .iter()
            .map(|name| {
                let value = match name.as_str() {
                    "netIPv4IPLocalPortRange" => json!("1024 65535"),
                    "netIPv4TCPTwReuse" => json!(true),
                    _ => json!(1),
                };
                sysctls(&serde_json::from_value(json!({ (name.clone()): value })).unwrap())
            })
            .collect();
        hashes.push(sysctls(&SysctlConfiguration::default()));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 29);
    }
}

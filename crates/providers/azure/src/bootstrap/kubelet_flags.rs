//! The flags of the kubelet, by its version.

use std::collections::BTreeMap;

use api::azure::KubeletConfiguration;

use super::{BootstrapError, all_taints};
use crate::instance_type::KubeReserved;
use crate::launch::Launch;
use crate::version::KubernetesVersion;

/// What every pod's first container is started from.
pub(super) const PAUSE_IMAGE: &str = "mcr.microsoft.com/oss/kubernetes/pause:3.6";

/// Flags by their name, without the dashes.
pub(super) type Flags = BTreeMap<&'static str, String>;

/// What the images of AKS expect, whatever the NodeClass says.
const BASE: [(&str, &str); 28] = [
    ("address", "0.0.0.0"),
    ("anonymous-auth", "false"),
    ("authentication-token-webhook", "true"),
    ("authorization-mode", "Webhook"),
    ("cgroups-per-qos", "true"),
    ("client-ca-file", "/etc/kubernetes/certs/ca.crt"),
    ("cloud-provider", "external"),
    ("cluster-domain", "cluster.local"),
    ("enforce-node-allocatable", "pods"),
    ("event-qps", "0"),
    // Only memory: planning counts all of the disk, so the kubelet must not keep any of it.
    ("eviction-hard", "memory.available<750Mi"),
    ("image-gc-high-threshold", "85"),
    ("image-gc-low-threshold", "80"),
    ("kubeconfig", "/var/lib/kubelet/kubeconfig"),
    ("node-status-update-frequency", "10s"),
    ("pod-manifest-path", "/etc/kubernetes/manifests"),
    ("pod-max-pids", "-1"),
    ("protect-kernel-defaults", "true"),
    ("read-only-port", "0"),
    ("resolv-conf", "/run/systemd/resolve/resolv.conf"),
    ("rotate-certificates", "true"),
    ("streaming-connection-idle-timeout", "4h"),
    ("system-reserved", "cpu=0,memory=0"),
    ("tls-cert-file", "/etc/kubernetes/certs/kubeletserver.crt"),
    (
        "tls-cipher-suites",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,\
         TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,\
         TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,\
         TLS_RSA_WITH_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_GCM_SHA256",
    ),
    ("tls-private-key-file", "/etc/kubernetes/certs/kubeletserver.key"),
    // Both are dropped by newer kubelets, see below.
    ("cloud-config", "/etc/kubernetes/azure.json"),
    ("pod-infra-container-image", PAUSE_IMAGE),
];

/// The flags of the kubelet of a machine.
pub(super) fn of(launch: &Launch<'_>) -> Result<Flags, BootstrapError> {
    let version: KubernetesVersion = launch.class.kubernetes_version.parse()?;
    let choice = &launch.choice;
    let mut flags: Flags = BASE.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    by_version(&mut flags, version);
    flags.insert("cluster-dns", launch.cluster.dns_service_ip.to_string());
    flags.insert("max-pods", choice.max_pods().to_string());
    let KubeReserved { cpu_millis, memory_mib } = KubeReserved::of(choice.sku);
    flags.insert("kube-reserved", format!("cpu={cpu_millis}m,memory={memory_mib}Mi"));
    flags.insert("register-with-taints", all_taints(launch.claim).join(","));
    if let Some(kubelet) = &launch.class.spec.kubelet {
        by_class(&mut flags, kubelet);
    }
    Ok(flags)
}

fn by_version(flags: &mut Flags, version: KubernetesVersion) {
    let mut add = |name, value: &str| flags.insert(name, value.to_owned());
    if version < KubernetesVersion::minor(31) {
        add("keep-terminated-pod-volumes", "false");
    }
    if version < KubernetesVersion::minor(30) {
        add("feature-gates", "DisableKubeletCloudCredentialProviders=false");
        add("azure-container-registry-config", "/etc/kubernetes/azure.json");
    } else {
        add("image-credential-provider-config", "/var/lib/kubelet/credential-provider-config.yaml");
        add("image-credential-provider-bin-dir", "/var/lib/kubelet/credential-provider");
    }
    if version >= KubernetesVersion::minor(34) {
        flags.remove("cloud-config");
    }
    if version >= KubernetesVersion::minor(35) {
        flags.remove("pod-infra-container-image");
    }
}

fn by_class(flags: &mut Flags, kubelet: &KubeletConfiguration) {
    let text = |value: &String| (!value.is_empty()).then(|| value.clone());
    let number = |value: Option<i32>| value.map(|value| value.to_string());
    let sysctls = kubelet.allowed_unsafe_sysctls.as_ref().filter(|all| !all.is_empty());
    for (name, value) in [
        ("cpu-manager-policy", text(&kubelet.cpu_manager_policy)),
        ("cpu-cfs-quota", kubelet.cpu_cfs_quota.map(|is_on| is_on.to_string())),
        ("image-gc-high-threshold", number(kubelet.image_gc_high_threshold_percent)),
        ("image-gc-low-threshold", number(kubelet.image_gc_low_threshold_percent)),
        ("topology-manager-policy", text(&kubelet.topology_manager_policy)),
        ("allowed-unsafe-sysctls", sysctls.map(|all| all.join(","))),
        ("container-log-max-size", text(&kubelet.container_log_max_size)),
        ("container-log-max-files", number(kubelet.container_log_max_files)),
        ("pod-max-pids", kubelet.pod_pids_limit.map(|limit| limit.to_string())),
    ] {
        if let Some(value) = value {
            flags.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::launch::fixture::Fixture;

    fn flags(version: &str) -> Flags {
        let mut fixture = Fixture::default();
        version.clone_into(&mut fixture.class.status.as_mut().unwrap().kubernetes_version);
        of(&fixture.launch()).unwrap()
    }

    // azure.md 13.2, 25.6: version rules
    #[test]
    fn flags_come_and_go_with_the_version() {
        for (name, from, to) in [
            ("keep-terminated-pod-volumes", 0, 31),
            ("feature-gates", 0, 30),
            ("azure-container-registry-config", 0, 30),
            ("image-credential-provider-config", 30, 99),
            ("image-credential-provider-bin-dir", 30, 99),
            ("cloud-config", 0, 34),
            ("pod-infra-container-image", 0, 35),
            ("kubeconfig", 0, 99),
        ] {
            for minor in 28..37 {
                let expected = (from..to).contains(&minor);
                assert_eq!(flags(&format!("1.{minor}.2")).contains_key(name), expected, "{name} 1.{minor}");
            }
        }
    }

    // azure.md 13.2: overrides from the type and the settings
    #[test]
    fn what_depends_on_the_size_and_the_cluster_is_said() {
        let flags = flags("1.34.2");
        assert_eq!(flags["max-pods"], "250");
        assert_eq!(flags["kube-reserved"], "cpu=140m,memory=2662Mi");
        assert_eq!(flags["system-reserved"], "cpu=0,memory=0");
        assert_eq!(flags["eviction-hard"], "memory.available<750Mi");
        assert_eq!(flags["cluster-dns"], "10.0.0.10");
        assert_eq!(flags["register-with-taints"], "karpenter.sh/unregistered:NoExecute");
    }

    // azure.md 25.6: kubelet flags from NodeClass
    #[test]
    fn the_class_has_its_say() {
        let mut fixture = Fixture::default();
        fixture.class.spec.kubelet = Some(
            serde_json::from_value(json!({
                "cpuManagerPolicy": "static", "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "10ms",
                "imageGCHighThresholdPercent": 30, "imageGCLowThresholdPercent": 20,
                "topologyManagerPolicy": "best-effort", "allowedUnsafeSysctls": ["net.core.somaxconn", "a.b"],
                "containerLogMaxSize": "42Mi", "containerLogMaxFiles": 13, "podPidsLimit": 99, "failSwapOn": false,
            }))
            .unwrap(),
        );
        let flags = of(&fixture.launch()).unwrap();
        for (name, value) in [
            ("cpu-manager-policy", "static"),
            ("cpu-cfs-quota", "false"),
            ("image-gc-high-threshold", "30"),
            ("image-gc-low-threshold", "20"),
            ("topology-manager-policy", "best-effort"),
            ("allowed-unsafe-sysctls", "net.core.somaxconn,a.b"),
            ("container-log-max-size", "42Mi"),
            ("container-log-max-files", "13"),
            ("pod-max-pids", "99"),
        ] {
            assert_eq!(flags[name], value, "{name}");
        }
        assert!(!flags.contains_key("cpu-cfs-quota-period") && !flags.contains_key("fail-swap-on"));
    }

    // azure.md 25.6: custom DNS IP honoured
    #[test]
    fn the_address_of_the_dns_is_that_of_the_cluster() {
        let fixture = Fixture::default();
        let mut launch = fixture.launch();
        launch.cluster.dns_service_ip = [10, 1, 0, 53].into();
        assert_eq!(of(&launch).unwrap()["cluster-dns"], "10.1.0.53");
    }

    #[test]
    fn without_a_version_there_are_no_flags() {
        let mut fixture = Fixture::default();
        fixture.class.status.as_mut().unwrap().kubernetes_version.clear();
        let error = of(&fixture.launch()).unwrap_err().to_string();
        assert!(error.contains("invalid Kubernetes version \"\""), "{error}");
    }
}

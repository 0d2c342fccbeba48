//! What machines do when they start, for every family.

use api::aws::{Ami, EC2NodeClass};
use api::nodeclaim::NodeClaim;
use aws::kubelet::Resolved;
use aws::node_class::Class;
use aws::user_data::{Bootstrap, ClusterInfo, image_version, raw_length};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{claim, cluster, info, node_class};

fn rendered_for(object: &EC2NodeClass, claim: &NodeClaim, cluster: &ClusterInfo) -> Result<String, String> {
    let class = Class::new(object, None, true).map_err(|error| error.to_string())?;
    let resolved = Resolved::of(&class, &info("m5.large"), 0).unwrap();
    let bootstrap = Bootstrap::new(&class, claim, cluster, "on-demand", 110, &resolved);
    let encoded = bootstrap.render().map_err(|error| error.to_string())?;
    let text = String::from_utf8(BASE64_STANDARD.decode(&encoded).unwrap()).unwrap();
    assert_eq!(raw_length(&encoded), text.len());
    Ok(text)
}

fn rendered(family: &str, spec: &Value) -> String {
    rendered_for(&node_class(family, spec), &claim(&[]), &cluster()).unwrap()
}

#[track_caller]
fn check(family: &str, spec: Value, expected: Expect) {
    expected.assert_eq(&rendered(family, &spec));
}

fn every_setting() -> Value {
    json!({
        "clusterDNS": ["10.0.0.1"], "maxPods": 10, "podsPerCore": 2,
        "systemReserved": {"memory": "20Mi", "cpu": "10m"}, "kubeReserved": {"cpu": "vcpus * 6"},
        "evictionHard": {"nodefs.available": "10%", "memory.available": "5%"},
        "evictionSoft": {"memory.available": "10%"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "evictionMaxPodGracePeriod": 300, "imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 20,
        "cpuCFSQuota": false,
    })
}

fn without_pods_per_core() -> Value {
    let mut all = every_setting();
    all.as_object_mut().unwrap().remove("podsPerCore");
    all
}

#[test]
fn a110_al2_runs_the_script_of_the_image() {
    check(
        "AL2",
        json!({}),
        expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash -xe
        exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
        /etc/eks/bootstrap.sh 'test-cluster' --apiserver-endpoint 'https://test-cluster' --b64-cluster-ca 'Y2EtYnVuZGxl' \
        --dns-cluster-ip '10.0.100.10' \
        --use-max-pods false \
        --kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=110'
        --//--
    "#]],
    );
    check(
        "AL2",
        json!({"kubelet": every_setting(), "instanceStorePolicy": "RAID0"}),
        expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash -xe
        exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
        /etc/eks/bootstrap.sh 'test-cluster' --apiserver-endpoint 'https://test-cluster' --b64-cluster-ca 'Y2EtYnVuZGxl' \
        --dns-cluster-ip '10.0.0.1' \
        --use-max-pods false \
        --kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=10 --pods-per-core=2 --system-reserved="cpu=10m,memory=20Mi" --kube-reserved="cpu=20m" --eviction-hard="memory.available<5%,nodefs.available<10%" --eviction-soft="memory.available<10%" --eviction-soft-grace-period="memory.available=1m30s" --eviction-max-pod-grace-period=300 --image-gc-high-threshold=50 --image-gc-low-threshold=20 --cpu-cfs-quota=false' \
        --local-disks raid0
        --//--
    "#]],
    );
}

#[test]
fn a111_scripts_of_users_come_first() {
    check(
        "AL2",
        json!({"userData": "#!/bin/bash\necho 'Hello'\n"}),
        expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash
        echo 'Hello'

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash -xe
        exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
        /etc/eks/bootstrap.sh 'test-cluster' --apiserver-endpoint 'https://test-cluster' --b64-cluster-ca 'Y2EtYnVuZGxl' \
        --dns-cluster-ip '10.0.100.10' \
        --use-max-pods false \
        --kubelet-extra-args '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=110'
        --//--
    "#]],
    );
    let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n--BOUNDARY\n\
                   Content-Type: text/x-shellscript; charset=\"us-ascii\"\n\necho one\n--BOUNDARY\n\
                   Content-Type: text/cloud-config\n\nruncmd: []\n--BOUNDARY--\n";
    let merged = rendered("AL2", &json!({"userData": archive}));
    let order = ["echo one", "text/cloud-config", "runcmd: []", "/etc/eks/bootstrap.sh"];
    let places: Vec<usize> = order.iter().map(|part| merged.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{merged}");
    let content_type_first = archive.replace("MIME-Version: 1.0\n", "");
    assert!(rendered("AL2", &json!({"userData": content_type_first})).contains("echo one"));
    let broken = node_class("AL2", &json!({"userData": "Content-Type: text/plain\n\nno archive"}));
    assert!(rendered_for(&broken, &claim(&[]), &cluster()).unwrap_err().contains("spec.userData is no MIME"));
    assert!(!rendered("AL2", &json!({"userData": ""})).contains("\n\n\n"));
}

#[test]
fn a112_addresses_of_the_sixth_version_are_understood() {
    let mut cluster = cluster();
    cluster.dns = Some("fd4b:121b:812b::a".parse().unwrap());
    let text = rendered_for(&node_class("AL2", &json!({})), &claim(&[]), &cluster).unwrap();
    assert!(text.contains(" \\\n--ip-family ipv6 \\\n--dns-cluster-ip 'fd4b:121b:812b::a' \\\n"), "{text}");
    cluster.dns = None;
    cluster.ca_bundle = None;
    let text = rendered_for(&node_class("AL2", &json!({})), &claim(&[]), &cluster).unwrap();
    assert!(!text.contains("dns-cluster-ip") && !text.contains("b64-cluster-ca"), "{text}");
}

#[test]
fn a113_al2023_is_told_in_yaml() {
    check(
        "AL2023",
        json!({}),
        expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: application/node.eks.aws

        # Karpenter Generated NodeConfig
        apiVersion: node.eks.aws/v1alpha1
        kind: NodeConfig
        metadata: {}
        spec:
          cluster:
            apiServerEndpoint: https://test-cluster
            certificateAuthority: Y2EtYnVuZGxl
            cidr: 10.0.0.0/16
            name: test-cluster
          containerd: {}
          instance:
            localStorage: {}
          kubelet:
            config:
              clusterDNS:
              - "10.0.100.10"
              maxPods: 110
              registerWithTaints:
              - effect: NoExecute
                key: karpenter.sh/unregistered
            flags:
            - >-
              --node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a"

        --//--
    "#]],
    );
    let mut settings = every_setting();
    settings["registryBurst"] = json!(7);
    settings["logging"] = json!({"verbosity": 3});
    check(
        "AL2023",
        json!({"kubelet": settings, "instanceStorePolicy": "RAID0"}),
        expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: application/node.eks.aws

        # Karpenter Generated NodeConfig
        apiVersion: node.eks.aws/v1alpha1
        kind: NodeConfig
        metadata: {}
        spec:
          cluster:
            apiServerEndpoint: https://test-cluster
            certificateAuthority: Y2EtYnVuZGxl
            cidr: 10.0.0.0/16
            name: test-cluster
          containerd: {}
          instance:
            localStorage:
              strategy: RAID0
          kubelet:
            config:
              clusterDNS:
              - "10.0.0.1"
              cpuCFSQuota: false
              evictionHard:
                memory.available: 5%
                nodefs.available: 10%
              evictionMaxPodGracePeriod: 300
              evictionSoft:
                memory.available: 10%
              evictionSoftGracePeriod:
                memory.available: 1m30s
              imageGCHighThresholdPercent: 50
              imageGCLowThresholdPercent: 20
              kubeReserved:
                cpu: 20m
              logging:
                verbosity: 3
              maxPods: 10
              podsPerCore: 2
              registerWithTaints:
              - effect: NoExecute
                key: karpenter.sh/unregistered
              registryBurst: 7
              systemReserved:
                cpu: 10m
                memory: 20Mi
            flags:
            - >-
              --node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a"

        --//--
    "#]],
    );
}

#[test]
fn a114_custom_data_of_al2023_is_yaml_or_a_script_or_an_archive() {
    let yaml = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 3\n";
    let text = rendered("AL2023", &json!({"userData": yaml}));
    assert_eq!(text.matches("Content-Type: application/node.eks.aws").count(), 2, "{text}");
    assert!(text.find("maxPods: 3").unwrap() < text.find("maxPods: 110").unwrap(), "ours is last and wins");
    let script = rendered("AL2023", &json!({"userData": "#!/bin/bash\necho"}));
    assert_eq!(script.matches("Content-Type: text/x-shellscript").count(), 1);
    // Of several documents the first one decides.
    let two = format!("---\n# first\n{yaml}---\nkind: NodeConfig\n");
    let text = rendered("AL2023", &json!({"userData": two}));
    assert_eq!(text.matches("Content-Type: application/node.eks.aws").count(), 2, "{text}");
    assert!(text.contains(&two) && !text.contains("x-shellscript"), "{text}");
    let script =
        rendered("AL2023", &json!({"userData": format!("#!/bin/bash\ncat <<END\n---\n{yaml}END\n")}));
    assert_eq!(script.matches("Content-Type: text/x-shellscript").count(), 1, "{script}");
    let archive = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\
         Content-Type: application/node.eks.aws\n\n{yaml}\n--//--\n"
    );
    assert_eq!(
        rendered("AL2023", &json!({"userData": archive})).matches("application/node.eks.aws").count(),
        2
    );
    let fails = |change: fn(&mut ClusterInfo)| {
        let mut cluster = cluster();
        change(&mut cluster);
        rendered_for(&node_class("AL2023", &json!({})), &claim(&[]), &cluster).unwrap_err()
    };
    assert_eq!(fails(|cluster| cluster.cidr = None), "resolving cluster CIDR");
    assert_eq!(
        fails(|cluster| cluster.ca_bundle = Some("no base64!".to_owned())),
        "the cluster's CA bundle is not base64"
    );
}

#[test]
fn a115_bottlerocket_is_told_in_toml() {
    check(
        "Bottlerocket",
        json!({}),
        expect![[r#"
        [settings.kubernetes]
        api-server = "https://test-cluster"
        cluster-certificate = "Y2EtYnVuZGxl"
        cluster-dns-ip = "10.0.100.10"
        cluster-name = "test-cluster"
        max-pods = 110

        [settings.kubernetes.node-labels]
        "karpenter.sh/capacity-type" = "on-demand"
        "karpenter.sh/do-not-sync-taints" = "true"
        "karpenter.sh/nodepool" = "pool-1"
        team = "a"

        [settings.kubernetes.node-taints]
        "karpenter.sh/unregistered" = [":NoExecute"]
    "#]],
    );
    check(
        "Bottlerocket",
        json!({"kubelet": without_pods_per_core()}),
        expect![[r#"
        [settings.kubernetes]
        api-server = "https://test-cluster"
        cluster-certificate = "Y2EtYnVuZGxl"
        cluster-dns-ip = "10.0.0.1"
        cluster-name = "test-cluster"
        cpu-cfs-quota-enforced = false
        eviction-max-pod-grace-period = 300
        image-gc-high-threshold-percent = "50"
        image-gc-low-threshold-percent = "20"
        max-pods = 10

        [settings.kubernetes.eviction-hard]
        "memory.available" = "5%"
        "nodefs.available" = "10%"

        [settings.kubernetes.eviction-soft]
        "memory.available" = "10%"

        [settings.kubernetes.eviction-soft-grace-period]
        "memory.available" = "1m30s"

        [settings.kubernetes.kube-reserved]
        cpu = "20m"

        [settings.kubernetes.node-labels]
        "karpenter.sh/capacity-type" = "on-demand"
        "karpenter.sh/do-not-sync-taints" = "true"
        "karpenter.sh/nodepool" = "pool-1"
        team = "a"

        [settings.kubernetes.node-taints]
        "karpenter.sh/unregistered" = [":NoExecute"]

        [settings.kubernetes.system-reserved]
        cpu = "10m"
        memory = "20Mi"
    "#]],
    );
}

#[test]
fn a116_settings_of_bottlerocket_are_merged() {
    let custom = "[settings.kubernetes]\napi-server = 'theirs'\nkube-api-qps = 30\nunknown-setting = 1\n\
                  [settings.kubernetes.node-labels]\nown = 'x'\nteam = 'theirs'\n\
                  [settings.kubernetes.node-taints]\nold = ['a:NoSchedule']\n\
                  [settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nmemory = '1Gi'\n\
                  [settings.host-containers.admin]\nenabled = true\n";
    check(
        "Bottlerocket",
        json!({"userData": custom}),
        expect![[r#"
        [settings.host-containers.admin]
        enabled = true

        [settings.kubernetes]
        api-server = "https://test-cluster"
        cluster-certificate = "Y2EtYnVuZGxl"
        cluster-dns-ip = "10.0.100.10"
        cluster-name = "test-cluster"
        kube-api-qps = 30
        max-pods = 110

        [settings.kubernetes.memory-manager-reserved-memory.0]
        enabled = true
        memory = "1Gi"

        [settings.kubernetes.node-labels]
        "karpenter.sh/capacity-type" = "on-demand"
        "karpenter.sh/do-not-sync-taints" = "true"
        "karpenter.sh/nodepool" = "pool-1"
        own = "x"
        team = "a"

        [settings.kubernetes.node-taints]
        "karpenter.sh/unregistered" = [":NoExecute"]
    "#]],
    );
    let broken = node_class("Bottlerocket", &json!({"userData": "no toml"}));
    assert!(
        rendered_for(&broken, &claim(&[]), &cluster()).unwrap_err().starts_with("spec.userData is no TOML")
    );
    let odd = node_class("Bottlerocket", &json!({"userData": "settings = 1"}));
    assert!(rendered_for(&odd, &claim(&[]), &cluster()).is_err());
}

#[test]
fn a117_disks_of_bottlerocket_are_put_to_use_as_its_version_wants_it() {
    let binds = |terms: Value, images: &[(&str, &str)]| {
        let spec = json!({"instanceStorePolicy": "RAID0", "amiSelectorTerms": terms});
        let mut object = node_class("Bottlerocket", &spec);
        let status = object.status.as_mut().unwrap();
        status.amis = images
            .iter()
            .map(|(id, name)| Ami { id: (*id).to_owned(), name: (*name).to_owned(), ..Ami::default() })
            .collect();
        let version = image_version(&Class::new(&object, None, false).unwrap());
        let text = rendered_for(&object, &claim(&[]), &cluster()).unwrap();
        assert!(text.contains("000-mount-instance-storage"), "{text}");
        (version, text.contains("--dirs"))
    };
    let name = |version: &str| format!("bottlerocket-aws-k8s-1.34-x86_64-v{version}-abcdef");
    assert_eq!(binds(json!([{"alias": "bottlerocket@latest"}]), &[]), ("latest".to_owned(), false));
    assert_eq!(binds(json!([{"alias": "bottlerocket@v1.45.0"}]), &[]), ("1.45.0".to_owned(), true));
    assert_eq!(binds(json!([{"alias": "bottlerocket@1.46.0"}]), &[]), ("1.46.0".to_owned(), false));
    assert_eq!(binds(json!([{"name": name("1.50.1")}]), &[]), ("1.50.1".to_owned(), false));
    let (old, new) = (name("1.20.0"), name("1.47.0"));
    let images = [("ami-1", old.as_str()), ("ami-2", new.as_str())];
    assert_eq!(binds(json!([{"id": "ami-2"}]), &images), ("1.47.0".to_owned(), false));
    assert_eq!(binds(json!([{"tags": {"a": "b"}}]), &images), ("1.20.0".to_owned(), true));
    assert_eq!(binds(json!([{"tags": {"a": "b"}}]), &[("ami-1", "other")]), (String::new(), true));
}

#[test]
fn a118_windows_runs_the_script_of_the_image() {
    check(
        "Windows2022",
        json!({"kubelet": {"maxPods": 10}}),
        expect![[r#"
        <powershell>
        [string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
        & $EKSBootstrapScriptFile -EKSClusterName 'test-cluster' -APIServerEndpoint 'https://test-cluster' -Base64ClusterCA 'Y2EtYnVuZGxl' -KubeletExtraArgs '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=10' -DNSClusterIP '10.0.100.10'
        </powershell>"#]],
    );
    check(
        "Windows2022",
        json!({"userData": "Write-Host 'Hello'", "kubelet": {"maxPods": 10}}),
        expect![[r#"
            <powershell>
            Write-Host 'Hello'
            [string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
            & $EKSBootstrapScriptFile -EKSClusterName 'test-cluster' -APIServerEndpoint 'https://test-cluster' -Base64ClusterCA 'Y2EtYnVuZGxl' -KubeletExtraArgs '--node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=pool-1,team=a" --register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=10' -DNSClusterIP '10.0.100.10'
            </powershell>"#]],
    );
}

#[test]
fn a119_custom_images_get_what_the_user_wrote_and_nothing_else() {
    assert_eq!(rendered("Custom", &json!({"userData": "anything\r\nat all"})), "anything\r\nat all");
    assert_eq!(rendered("Custom", &json!({})), "");
}

#[test]
fn a120_labels_that_kubelets_may_not_set_are_left_out() {
    let mut asked = claim(&[]);
    let labels = asked.metadata.labels.as_mut().unwrap();
    for forbidden in [
        "node-restriction.kubernetes.io/team",
        "a.node-restriction.kubernetes.io/team",
        "kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "k8s.io/x",
        "sub.k8s.io/x",
    ] {
        labels.insert(forbidden.to_owned(), "forbidden".to_owned());
    }
    labels.insert("notkubernetes.io/x".to_owned(), "allowed".to_owned());
    labels.insert("topology.k8s.aws/zone-id".to_owned(), "use1-az1".to_owned());
    for family in ["AL2", "AL2023", "Bottlerocket", "Windows2022"] {
        let text = rendered_for(&node_class(family, &json!({})), &asked, &cluster()).unwrap();
        assert!(!text.contains("forbidden"), "{family}: {text}");
        assert!(text.contains("notkubernetes.io/x") && text.contains("use1-az1"), "{family}: {text}");
        assert!(text.contains("karpenter.sh/do-not-sync-taints"), "{family}");
    }
}

#[test]
fn a121_taints_are_set_from_the_start() {
    let mut asked = claim(&[]);
    let taint = |key: &str, value: &str, effect: &str| {
        serde_json::from_value(json!({"key": key, "value": value, "effect": effect})).unwrap()
    };
    asked.spec.taints = Some(vec![taint("one", "a", "NoSchedule")]);
    asked.spec.startup_taints = Some(vec![taint("two", "", "NoExecute")]);
    let of = |family: &str| rendered_for(&node_class(family, &json!({})), &asked, &cluster()).unwrap();
    let flag =
        "--register-with-taints=\"one=a:NoSchedule,two:NoExecute,karpenter.sh/unregistered:NoExecute\"";
    assert!(of("AL2").contains(flag) && of("Windows2022").contains(flag));
    assert!(of("Bottlerocket").contains("two = [\":NoExecute\"]"));
    asked.spec.taints = Some(vec![taint("karpenter.sh/unregistered", "", "NoExecute")]);
    let text = rendered_for(&node_class("AL2", &json!({})), &asked, &cluster()).unwrap();
    assert_eq!(text.matches("karpenter.sh/unregistered").count(), 1);
}

#[test]
fn a122_expressions_are_told_as_what_was_planned_with() {
    let kubelet = json!({"maxPods": "vcpus * 30", "kubeReserved": {"cpu": "vcpus * 7", "memory": "0 - 5"}});
    let text = rendered("AL2", &json!({"kubelet": kubelet}));
    // The number of pods is that of the group, which is made of the same evaluation.
    assert!(text.contains("--max-pods=110") && text.contains("--kube-reserved=\"cpu=20m\""), "{text}");
    let text = rendered("AL2023", &json!({"kubelet": {"kubeReserved": {"memory": "0 - 5"}}}));
    assert!(!text.contains("kubeReserved"), "{text}");
}

#[test]
fn a123_what_al2023_is_told_is_read_as_it_was_written() {
    let odd = [
        "on",
        "off",
        "yes",
        "no",
        "y",
        "n",
        "~",
        "null",
        "012",
        "0o7",
        "1_000",
        "1:30",
        "1e3",
        "2026-01-01",
        ".5",
        "-",
        "a: b",
        "#x",
        "",
        " x ",
    ];
    let options: serde_json::Map<String, Value> =
        odd.iter().enumerate().map(|(index, text)| (format!("key{index}"), json!(text))).collect();
    let text = rendered(
        "AL2023",
        &json!({"kubelet": {"cpuManagerPolicyOptions": options, "x": [[], {}, 1.5, true]}}),
    );
    let (_, yaml) = text.split_once("# Karpenter Generated NodeConfig\n").unwrap();
    let yaml = yaml.trim_end().trim_end_matches("--//--");
    let read: Value = serde_saphyr::from_str(yaml).unwrap();
    let config = &read["spec"]["kubelet"]["config"];
    assert_eq!(config["cpuManagerPolicyOptions"], json!(options), "{yaml}");
    assert_eq!(config["x"], json!([[], {}, 1.5, true]));
    for word in ["on", "off", "yes", "no", "y", "n", "1:30", "012", "1_000"] {
        // Older readers take these for something else unless they are quoted.
        assert!(
            yaml.contains(&format!(": \"{word}\"\n")) || yaml.contains(&format!(": '{word}'\n")),
            "{word}: {yaml}"
        );
    }
}

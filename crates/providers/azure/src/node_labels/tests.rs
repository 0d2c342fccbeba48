//! Which labels nodes register with.

use expect_test::expect;
use serde_json::json;

use super::*;
use crate::launch::fixture::Fixture;

fn text(labels: &Labels) -> String {
    labels.iter().flat_map(|(key, value)| [key.as_str(), "=", value.as_str(), "\n"]).collect()
}

fn label(fixture: &mut Fixture, key: &str, value: &str) {
    let labels = fixture.claim.metadata.labels.get_or_insert_default();
    labels.insert(key.to_owned(), value.to_owned());
}

// azure.md 2.3: base and final set
#[test]
fn a_kubelet_registers_with_labels_of_cluster_claim_and_size() {
    expect![[r#"
        karpenter.azure.com/placement-scope=zonal
        karpenter.azure.com/sku-cpu=4
        karpenter.azure.com/sku-family=D
        karpenter.azure.com/sku-memory=16384
        karpenter.azure.com/sku-name=Standard_D4s_v5
        karpenter.azure.com/sku-storage-ultra-ssd=false
        karpenter.sh/capacity-type=on-demand
        karpenter.sh/do-not-sync-taints=true
        karpenter.sh/nodepool=general-purpose
        kubernetes.azure.com/azure-cni-overlay=true
        kubernetes.azure.com/cluster=MC_rg_test_eastus
        kubernetes.azure.com/ebpf-dataplane=cilium
        kubernetes.azure.com/kubelet-identity-client-id=61f71907-753f-4802-a901-47361c3664f2
        kubernetes.azure.com/localdns-state=disabled
        kubernetes.azure.com/mode=user
        kubernetes.azure.com/network-stateless-cni=true
        kubernetes.azure.com/network-subnet=aks-subnet
        kubernetes.azure.com/nodenetwork-vnetguid=a519e60a-cac0-40b2-b883-084477fe6f5c
        kubernetes.azure.com/os-sku=Ubuntu
        kubernetes.azure.com/os-sku-effective=Ubuntu2204
        kubernetes.azure.com/os-sku-requested=Ubuntu2204
        kubernetes.azure.com/podnetwork-type=overlay
        kubernetes.azure.com/priority=regular
        kubernetes.azure.com/role=agent
        kubernetes.azure.com/scalesetpriority=regular
        kubernetes.io/arch=amd64
        kubernetes.io/os=linux
        node.kubernetes.io/instance-type=Standard_D4s_v5
        team=a
        topology.kubernetes.io/region=eastus
    "#]]
    .assert_eq(&text(&of_kubelet(&Fixture::default().launch())));
}

// azure.md 2.3: AKS machine modes
#[test]
fn an_aks_machine_is_told_no_labels_that_aks_or_the_kubelet_sets() {
    let mut fixture = Fixture::default();
    for key in ["agentpool", "storageprofile", "storagetier", "accelerator", "kubernetes.azure.com/mode"] {
        label(&mut fixture, key, "x");
    }
    label(&mut fixture, "node-restriction.kubernetes.io/a", "x");
    label(&mut fixture, "node.kubernetes.io/a", "x");
    label(&mut fixture, "kubernetes.io/hostname", "x");
    expect![[r#"
        karpenter.azure.com/placement-scope=zonal
        karpenter.azure.com/sku-cpu=4
        karpenter.azure.com/sku-family=D
        karpenter.azure.com/sku-memory=16384
        karpenter.azure.com/sku-name=Standard_D4s_v5
        karpenter.azure.com/sku-storage-ultra-ssd=false
        karpenter.sh/capacity-type=on-demand
        karpenter.sh/nodepool=general-purpose
        node.kubernetes.io/a=x
        team=a
    "#]]
    .assert_eq(&text(&of_machine(&fixture.claim, &fixture.choice())));
}

// azure.md 25.6: no overlay labels without overlay; cilium label without overlay for node-subnet cilium
#[test]
fn labels_of_the_overlay_and_of_cilium_are_independent() {
    let overlay = [
        "kubernetes.azure.com/network-subnet",
        "kubernetes.azure.com/nodenetwork-vnetguid",
        "kubernetes.azure.com/azure-cni-overlay",
        "kubernetes.azure.com/podnetwork-type",
        "kubernetes.azure.com/network-stateless-cni",
    ];
    for (plugin, mode, dataplane, has_overlay, has_cilium) in [
        ("azure", "overlay", "cilium", true, true),
        ("azure", "overlay", "azure", true, false),
        ("azure", "", "cilium", false, true),
        ("azure", "", "", false, false),
        ("none", "", "", false, false),
    ] {
        let mut fixture = Fixture::default();
        plugin.clone_into(&mut fixture.settings.network_plugin);
        mode.clone_into(&mut fixture.settings.network_plugin_mode);
        dataplane.clone_into(&mut fixture.settings.network_dataplane);
        let all = of_kubelet(&fixture.launch());
        for key in overlay {
            assert_eq!(all.contains_key(key), has_overlay, "{key} {plugin} {mode}");
        }
        assert_eq!(all.contains_key("kubernetes.azure.com/ebpf-dataplane"), has_cilium, "{dataplane}");
    }
}

// azure.md 25.6: stateless-CNI true/false by version
#[test]
fn the_network_plugin_keeps_no_state_in_newer_versions() {
    for (version, expected) in [("1.33.9", "false"), ("1.34.0", "true"), ("1.35.1", "true")] {
        let mut fixture = Fixture::default();
        version.clone_into(&mut fixture.class.status.as_mut().unwrap().kubernetes_version);
        let all = of_kubelet(&fixture.launch());
        assert_eq!(all["kubernetes.azure.com/network-stateless-cni"], expected, "{version}");
    }
}

// azure.md 25.6: os-sku-effective and -requested for all families and versions
#[test]
fn the_operating_system_is_told_as_requested_and_as_it_is() {
    for (family, fips, trusted, version, expected) in [
        (json!("Ubuntu"), false, false, "1.33.0", ["Ubuntu", "Ubuntu", "Ubuntu2204"]),
        (json!("Ubuntu"), false, false, "1.34.0", ["Ubuntu", "Ubuntu", "Ubuntu2404"]),
        (json!("Ubuntu"), true, false, "1.34.0", ["Ubuntu", "Ubuntu", "Ubuntu"]),
        (json!("Ubuntu"), true, true, "1.34.0", ["Ubuntu", "Ubuntu", "Ubuntu2204"]),
        (json!("Ubuntu2204"), false, false, "1.34.0", ["Ubuntu", "Ubuntu2204", "Ubuntu2204"]),
        (json!("Ubuntu2404"), false, false, "1.33.0", ["Ubuntu", "Ubuntu2404", "Ubuntu2404"]),
        (json!("AzureLinux"), false, false, "1.31.0", ["AzureLinux", "AzureLinux", "AzureLinux2"]),
        (json!("AzureLinux"), false, false, "1.32.0", ["AzureLinux", "AzureLinux", "AzureLinux3"]),
        (json!(null), false, false, "1.34.0", ["Ubuntu", "", "Ubuntu2404"]),
    ] {
        let mut fixture = Fixture::default();
        fixture.class.spec.image_family = serde_json::from_value(family.clone()).unwrap();
        fixture.class.spec.fips_mode = fips.then_some(api::azure::FipsMode::FIPS);
        let security = json!({"trustedLaunch": {"vtpm": trusted}});
        fixture.class.spec.security = serde_json::from_value(security).unwrap();
        version.clone_into(&mut fixture.class.status.as_mut().unwrap().kubernetes_version);
        let all = of_kubelet(&fixture.launch());
        let keys = ["os-sku", "os-sku-requested", "os-sku-effective"];
        let found = keys.map(|key| all[&format!("kubernetes.azure.com/{key}")].clone());
        assert_eq!(found, expected, "{family} {fips} {trusted} {version}");
        let is_fips = all.get("kubernetes.azure.com/fips_enabled").map(String::as_str);
        assert_eq!(is_fips, fips.then_some("true"));
    }
}

// azure.md 2.3, 28.3: labels of features that only AKS configures
#[test]
fn a_node_says_only_what_it_has() {
    let mut fixture = Fixture::default();
    fixture.class.status.as_mut().unwrap().local_dns_state = Some(api::azure::LocalDnsState::Enabled);
    fixture.class.spec.artifact_streaming = serde_json::from_value(json!({"enabled": true})).unwrap();
    let (dns, streaming) =
        ("kubernetes.azure.com/localdns-state", "kubernetes.azure.com/artifactstreaming-enabled");
    let all = of_kubelet(&fixture.launch());
    assert_eq!((all[dns].as_str(), all.get(streaming)), ("disabled", None));
    fixture.settings.provision_mode = ProvisionMode::BootstrappingClient;
    let all = of_kubelet(&fixture.launch());
    assert_eq!((all[dns].as_str(), all[streaming].as_str()), ("enabled", "true"));
    fixture.sku.architecture = "arm64".to_owned();
    assert_eq!(of_kubelet(&fixture.launch()).get(streaming), None);
}

// azure.md 28.0: a spot machine does not register as regular
#[test]
fn a_spot_machine_says_so_from_the_beginning() {
    let fixture = Fixture { capacity_type: "spot", ..Fixture::default() };
    let all = of_kubelet(&fixture.launch());
    for key in [
        "karpenter.sh/capacity-type",
        "kubernetes.azure.com/scalesetpriority",
        "kubernetes.azure.com/priority",
    ] {
        assert_eq!(all[key], "spot", "{key}");
    }
}

// azure.md 2.3: mode=system comes from labels or requirements
#[test]
fn a_node_is_for_the_system_if_the_claim_says_so() {
    let mut fixture = Fixture::default();
    assert!(!is_system(&fixture.claim, &fixture.choice()));
    assert_eq!(of_kubelet(&fixture.launch())["kubernetes.azure.com/mode"], "user");
    let requirement = json!({"key": "kubernetes.azure.com/mode", "operator": "In", "values": ["system"]});
    fixture.claim.spec.requirements.push(serde_json::from_value(requirement).unwrap());
    assert!(is_system(&fixture.claim, &fixture.choice()));
    assert_eq!(of_kubelet(&fixture.launch())["kubernetes.azure.com/mode"], "system");
}

// azure.md 2.3: placement scope of the choice
#[test]
fn a_machine_outside_of_zones_says_so() {
    let fixture = Fixture { zone: "0", ..Fixture::default() };
    assert_eq!(of_kubelet(&fixture.launch())["karpenter.azure.com/placement-scope"], "regional");
}

// azure.md 2.3, 25.6: which labels reach the kubelet
#[test]
fn kubelets_may_set_labels_outside_of_kubernetes_and_some_within() {
    for (key, expected) in [
        ("team", true),
        ("example.com/team", true),
        ("karpenter.sh/nodepool", true),
        ("kubernetes.azure.com/mode", true),
        ("kubernetes.io/hostname", true),
        ("kubernetes.io/os", true),
        ("beta.kubernetes.io/arch", true),
        ("topology.kubernetes.io/zone", true),
        ("failure-domain.beta.kubernetes.io/region", true),
        ("node.kubernetes.io/instance-type", true),
        ("node.kubernetes.io/own", true),
        ("kubelet.kubernetes.io/own", true),
        ("a.kubelet.kubernetes.io/own", true),
        ("a.node.kubernetes.io/own", true),
        ("mykubernetes.io/own", true),
        ("kubernetes.io/own", false),
        ("k8s.io/own", false),
        ("a.k8s.io/own", false),
        ("topology.kubernetes.io/own", false),
        ("node-restriction.kubernetes.io/own", false),
        ("a.node-restriction.kubernetes.io/own", false),
    ] {
        assert_eq!(may_be_set_by_kubelet(key), expected, "{key}");
    }
}

//! What the service is asked and what it answers.

use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::launch::fixture::Fixture;
use crate::settings::ProvisionMode;

const IMAGE: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/202512.6.0";

fn fixture() -> Fixture {
    let mut fixture = Fixture::default();
    fixture.settings.provision_mode = ProvisionMode::BootstrappingClient;
    fixture
}

fn asked(launch: &Launch<'_>) -> Value {
    serde_json::to_value(request(launch, IMAGE).unwrap()).unwrap()["provisionProfile"].clone()
}

// azure.md 13.3: the request
#[test]
fn the_service_is_told_everything_about_the_node() {
    let fixture = fixture();
    let request = request(&fixture.launch(), IMAGE).unwrap();
    expect![[r#"
        {
          "provisionProfile": {
            "name": "",
            "architecture": "x64",
            "osType": 2,
            "osSku": 1,
            "vmSize": "Standard_D4s_v5",
            "distro": "aks-ubuntu-containerd-22.04-gen2",
            "customNodeLabels": {
              "karpenter.azure.com/placement-scope": "zonal",
              "karpenter.azure.com/sku-cpu": "4",
              "karpenter.azure.com/sku-family": "D",
              "karpenter.azure.com/sku-memory": "16384",
              "karpenter.azure.com/sku-name": "Standard_D4s_v5",
              "karpenter.azure.com/sku-storage-ultra-ssd": "false",
              "karpenter.sh/capacity-type": "on-demand",
              "karpenter.sh/do-not-sync-taints": "true",
              "karpenter.sh/nodepool": "general-purpose",
              "kubernetes.azure.com/azure-cni-overlay": "true",
              "kubernetes.azure.com/cluster": "MC_rg_test_eastus",
              "kubernetes.azure.com/ebpf-dataplane": "cilium",
              "kubernetes.azure.com/kubelet-identity-client-id": "61f71907-753f-4802-a901-47361c3664f2",
              "kubernetes.azure.com/localdns-state": "disabled",
              "kubernetes.azure.com/mode": "user",
              "kubernetes.azure.com/network-stateless-cni": "true",
              "kubernetes.azure.com/network-subnet": "aks-subnet",
              "kubernetes.azure.com/nodenetwork-vnetguid": "a519e60a-cac0-40b2-b883-084477fe6f5c",
              "kubernetes.azure.com/os-sku": "Ubuntu",
              "kubernetes.azure.com/os-sku-effective": "Ubuntu2204",
              "kubernetes.azure.com/os-sku-requested": "Ubuntu2204",
              "kubernetes.azure.com/podnetwork-type": "overlay",
              "kubernetes.azure.com/priority": "regular",
              "kubernetes.azure.com/role": "agent",
              "kubernetes.azure.com/scalesetpriority": "regular",
              "kubernetes.io/arch": "amd64",
              "kubernetes.io/os": "linux",
              "node.kubernetes.io/instance-type": "Standard_D4s_v5",
              "team": "a",
              "topology.kubernetes.io/region": "eastus"
            },
            "orchestratorVersion": "1.34.2",
            "vnetSubnetID": "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/MC_rg_test_eastus/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
            "storageProfile": "Ephemeral",
            "nodeInitializationTaints": [
              "karpenter.sh/unregistered:NoExecute"
            ],
            "nodeTaints": [],
            "securityProfile": {
              "sshAccess": 0
            },
            "maxPods": 250,
            "vnetCidrs": [],
            "enableFIPS": false,
            "artifactStreamingProfile": {
              "enabled": false
            },
            "customKubeletConfig": {},
            "mode": 2
          },
          "provisionHelperValues": {
            "skuCPU": 4,
            "skuMemory": 16
          }
        }"#]].assert_eq(&serde_json::to_string_pretty(&request).unwrap());
}

// azure.md 13.3, 25.6: FIPS, trusted launch, GPU, arm and system variants
#[test]
fn what_the_class_asks_for_is_told() {
    let mut fixture = fixture();
    fixture.class.spec = serde_json::from_value(json!({
        "imageFamily": "AzureLinux", "fipsMode": "FIPS", "osDiskSizeGB": 300,
        "security": {"trustedLaunch": {"secureBoot": true}},
        "artifactStreaming": {"enabled": true},
    }))
    .unwrap();
    let labels = fixture.claim.metadata.labels.as_mut().unwrap();
    labels.insert("kubernetes.azure.com/mode".to_owned(), "system".to_owned());
    let profile = asked(&fixture.launch());
    assert_eq!(
        json!([
            profile["osSku"],
            profile["enableFIPS"],
            profile["storageProfile"],
            profile["securityProfile"],
            profile["artifactStreamingProfile"],
            profile["mode"],
            profile["gpuProfile"],
        ]),
        json!([7, true, "ManagedDisks", {"sshAccess": 0, "enableSecureBoot": true}, {"enabled": true}, 1, null])
    );
}

// azure.md 13.3: driverType
#[test]
fn drivers_are_those_of_the_size() {
    let mut fixture = fixture();
    let installed = |number: i32| json!({"driverType": number, "installGPUDriver": true});
    for (size, expected) in [
        ("Standard_NV6ads_A10_v5", installed(2)),
        ("Standard_NC24ads_A100_v4", installed(3)),
        ("Standard_NC24lds_xl_RTXPRO6000BSE_v6", installed(3)),
        ("Standard_ND96isr_MI300X_v5", json!(null)),
        ("Standard_D4s_v5", json!(null)),
    ] {
        fixture.set_size(size);
        assert_eq!(asked(&fixture.launch())["gpuProfile"], expected, "{size}");
    }
    fixture.class.spec.gpu = Some(serde_json::from_value(json!({"mode": "None"})).unwrap());
    fixture.set_size("Standard_NC24ads_A100_v4");
    assert_eq!(asked(&fixture.launch())["gpuProfile"], json!({"driverType": 3, "installGPUDriver": false}));
}

// azure.md 13.3: skuMemory
#[test]
fn memory_is_counted_in_whole_gib() {
    let mut fixture = fixture();
    fixture.sku.memory_gib = 3.5;
    let request = request(&fixture.launch(), IMAGE).unwrap();
    assert_eq!(
        serde_json::to_value(request.provision_helper_values).unwrap(),
        json!({"skuCPU": 4, "skuMemory": 3})
    );
}

// azure.md 13.3: localDNSProfile not for 20.04
#[test]
fn the_oldest_image_gets_no_dns_cache() {
    let zones = json!([zone("."), zone("cluster.local")]);
    let mut fixture = fixture();
    fixture.class.spec.local_dns = Some(
        serde_json::from_value(
            json!({"mode": "Required", "vnetDNSOverrides": zones, "kubeDNSOverrides": zones}),
        )
        .unwrap(),
    );
    assert_eq!(asked(&fixture.launch())["localDNSProfile"]["mode"], "Required");
    fixture.class.spec.image_family = None;
    fixture.class.spec.fips_mode = Some(api::azure::FipsMode::FIPS);
    assert_eq!(asked(&fixture.launch())["localDNSProfile"], json!(null));
}

fn zone(name: &str) -> Value {
    json!({
        "zone": name, "queryLogging": "Error", "protocol": "PreferUDP", "forwardDestination": "ClusterCoreDNS",
        "forwardPolicy": "Sequential", "maxConcurrent": 1000, "cacheDuration": "1h",
        "serveStaleDuration": "1h", "serveStale": "Verify",
    })
}

#[test]
fn an_image_that_is_not_of_aks_is_refused() {
    let fixture = fixture();
    for id in ["/own/image", "/CommunityGalleries/g/images/own/versions/1"] {
        let error = request(&fixture.launch(), id).unwrap_err();
        assert_eq!(error, BootstrapError::Image(id.to_owned()));
    }
}

fn answered(cse: &str, custom_data: &str) -> Result<Bootstrapping, BootstrapError> {
    let response =
        BootstrappingResponse { cse: Some(cse.to_owned()), custom_data: Some(custom_data.to_owned()) };
    answer(response, "abc.def")
}

// azure.md 13.3, 25.6: token replaced in both texts; no placeholder → unchanged
#[test]
fn the_token_replaces_its_placeholder_in_both_texts() {
    let custom_data = BASE64_STANDARD.encode("a {{.TokenID}}.{{.TokenSecret}} b");
    let answer =
        answered("run {{.TokenID}}.{{.TokenSecret}} {{.TokenID}}.{{.TokenSecret}}", &custom_data).unwrap();
    assert_eq!(answer.command, "run abc.def abc.def");
    assert_eq!(answer.custom_data, BASE64_STANDARD.encode("a abc.def b"));
    let plain = BASE64_STANDARD.encode("a {{.TokenID}} b");
    assert_eq!(
        answered("run", &plain).unwrap(),
        Bootstrapping { custom_data: plain, command: "run".to_owned() }
    );
}

// azure.md 13.3, 25.6: both non-empty; bad base64 → error
#[test]
fn an_answer_that_says_too_little_is_an_error() {
    assert_eq!(answered("", "YQ=="), Err(BootstrapError::Incomplete("cse")));
    assert_eq!(answered("run", ""), Err(BootstrapError::Incomplete("customData")));
    assert_eq!(answer(BootstrappingResponse::default(), "t"), Err(BootstrapError::Incomplete("cse")));
    assert_eq!(answered("run", "not base64!"), Err(BootstrapError::NotBase64));
}

#[test]
fn custom_data_need_not_be_text() {
    let packed = BASE64_STANDARD.encode([0x1f, 0x8b, 0xff]);
    assert_eq!(answered("run", &packed).unwrap().custom_data, packed);
}

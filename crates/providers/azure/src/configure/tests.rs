//! What is written for which cluster, and what is refused.

use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::settings::ProvisionMode;

const IDENTITY: &str = "44444444-4444-4444-4444-444444444444";

fn cluster(change: &Value) -> ManagedCluster {
    let mut cluster = json!({
        "name": "c", "location": "westus3",
        "properties": {
            "nodeResourceGroup": "MC_rg_c_westus3",
            "servicePrincipalProfile": {"clientId": "msi"},
            "networkProfile": {
                "networkPlugin": "azure", "networkPluginMode": "overlay", "networkPolicy": "none",
                "networkDataplane": "cilium", "ipFamilies": ["IPv4"],
            },
            "identityProfile": {"kubeletidentity": {"resourceId": "/identity", "clientId": IDENTITY}},
        },
    });
    for (name, value) in change.as_object().into_iter().flatten() {
        cluster["properties"][name] = value.clone();
    }
    serde_json::from_value(cluster).unwrap()
}

fn found(change: &Value) -> Found {
    Found {
        cluster: cluster(change),
        subnet_id: "/subnet".to_owned(),
        vnet_guid: "a519e60a-cac0-40b2-b883-084477fe6f5c".to_owned(),
        identity_client_id: "66666666-6666-6666-6666-666666666666".to_owned(),
    }
}

fn local() -> Local {
    Local {
        subscription: "12345678-1234-1234-1234-123456789012".to_owned(),
        endpoint: "https://c-1234.hcp.westus3.azmk8s.io:443".to_owned(),
        bootstrap_token: Secret::new("abcdef.0123456789abcdef"),
        ssh_public_key: Some("ssh-rsa AAAA me@here\n".to_owned()),
        ..Local::default()
    }
}

fn wishes(arguments: &[&str]) -> Result<Wishes, String> {
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    Wishes::read(&arguments)
        .and_then(|wishes| wishes.check().map(|()| wishes))
        .map_err(|error| error.to_string())
}

fn written(arguments: &[&str], change: &Value) -> Result<String, String> {
    values(&wishes(arguments)?, &found(change), &local()).map_err(|error| error.to_string())
}

/// The value of a variable; nothing if it is not set.
#[track_caller]
fn variable(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != format!("- name: {name}"));
    lines.next()?;
    let value = lines.next()?.trim().strip_prefix("value: ")?;
    Some(serde_json::from_str(value).expect("it is in quotes"))
}

// azure.md 22.4, 28.5: the README's four arguments
#[test]
fn the_documented_call_writes_all_values() {
    let text = written(&["c", "rg", "karpenter-sa", "karpentermsi"], &json!({})).unwrap();
    expect![[r#"
        # Values for AKS cluster c in resource group rg. There is the token in here by which nodes join: keep it to yourself.
        provider: azure
        replicas: 1
        controller:
          env:
            - name: DISABLE_LEADER_ELECTION
              value: "false"
            - name: CLUSTER_NAME
              value: "c"
            - name: CLUSTER_ENDPOINT
              value: "https://c-1234.hcp.westus3.azmk8s.io:443"
            - name: KUBELET_BOOTSTRAP_TOKEN
              value: "abcdef.0123456789abcdef"
            - name: SSH_PUBLIC_KEY
              value: "ssh-rsa AAAA azureuser"
            - name: NETWORK_PLUGIN
              value: "azure"
            - name: NETWORK_PLUGIN_MODE
              value: "overlay"
            - name: NETWORK_POLICY
              value: ""
            - name: NETWORK_DATAPLANE
              value: "cilium"
            - name: VNET_SUBNET_ID
              value: "/subnet"
            - name: VNET_GUID
              value: "a519e60a-cac0-40b2-b883-084477fe6f5c"
            - name: NODE_IDENTITIES
              value: "/identity"
            - name: AZURE_SUBSCRIPTION_ID
              value: "12345678-1234-1234-1234-123456789012"
            - name: LOCATION
              value: "westus3"
            - name: KUBELET_IDENTITY_CLIENT_ID
              value: "44444444-4444-4444-4444-444444444444"
            - name: AZURE_NODE_RESOURCE_GROUP
              value: "MC_rg_c_westus3"
            - name: ENABLE_AZURE_SDK_LOGGING
              value: "false"
            - name: USE_SIG
              value: "false"
            - name: SIG_SUBSCRIPTION_ID
              value: ""
            - name: SIG_ACCESS_TOKEN_SERVER_URL
              value: ""
            - name: PROVISION_MODE
              value: "aksscriptless"
            - name: AKS_MACHINES_POOL_NAME
              value: ""
            - name: ARM_RESOURCE_GROUP
              value: "rg"
        serviceAccount:
          name: "karpenter-sa"
          annotations:
            azure.workload.identity/client-id: "66666666-6666-6666-6666-666666666666"
        podLabels:
          azure.workload.identity/use: "true"
        logLevel: info
        settings:
          featureGates:
            staticCapacity: true
    "#]]
    .assert_eq(&text);
}

// azure.md 22.4: two, and five to seven arguments
#[test]
fn the_last_arguments_can_be_left_out() {
    assert_eq!(wishes(&["c", "rg"]), wishes(&["c", "rg", "karpenter-sa", "karpentermsi"]));
    assert!(wishes(&["c", "rg", "sa", "id", "true"]).unwrap().log_calls);
    let text = written(&["c", "rg", "sa", "id", "false", "aksmachineapi"], &json!({})).unwrap();
    assert_eq!(variable(&text, "AKS_MACHINES_POOL_NAME").as_deref(), Some("testmpool"));
    assert_eq!(variable(&text, "USE_SIG").as_deref(), Some("true"));
    let images = "109a5e88-712a-48ae-9078-9ca8b3c81345";
    assert_eq!(variable(&text, "SIG_SUBSCRIPTION_ID").as_deref(), Some(images));
    let all = ["c", "rg", "sa", "id", "false", "aksmachineapiheaderbatch", "own"];
    assert_eq!(wishes(&all).unwrap().mode, ProvisionMode::AksMachineApiHeaderBatch);
    assert_eq!(wishes(&all).unwrap().machines_pool, "own");
}

#[test]
fn what_cannot_be_configured_is_said() {
    let wrong = |arguments: &[&str]| wishes(arguments).unwrap_err();
    assert!(wrong(&["c"]).contains("its resource group are missing"));
    assert!(wrong(&["c", "rg", "sa", "id", "yes"]).contains("\"yes\", expected true or false"));
    assert!(wrong(&["c", "rg", "sa", "id", "true", "other"]).contains("\"other\" is unknown"));
    assert!(wrong(&["c", "rg", "sa", "id", "true", "bootstrappingclient"]).contains("only AKS itself has"));
    assert!(wrong(&["1", "2", "3", "4", "true", "aksmachineapi", "7", "8"]).contains("at most 7"));
}

// azure.md 28.5: plugin none is no empty text
#[test]
fn a_cluster_without_a_network_plugin_has_the_plugin_none_and_no_mode() {
    let network = json!({"networkProfile": {
        "networkPlugin": "none", "networkPluginMode": "overlay", "networkPolicy": "none", "networkDataplane": "azure",
    }});
    let text = written(&["c", "rg"], &network).unwrap();
    assert_eq!(variable(&text, "NETWORK_PLUGIN").as_deref(), Some("none"));
    assert_eq!(variable(&text, "NETWORK_PLUGIN_MODE").as_deref(), Some(""));
    assert_eq!(variable(&text, "NETWORK_DATAPLANE").as_deref(), Some("azure"));
}

#[test]
fn another_administrator_keys_of_disks_and_other_clouds_are_written_too() {
    let plain = written(&["c", "rg"], &json!({})).unwrap();
    for name in ["LINUX_ADMIN_USERNAME", "NODE_OSDISK_DISKENCRYPTIONSET_ID", "ARM_CLOUD"] {
        assert_eq!(variable(&plain, name), None);
    }
    let change = json!({
        "linuxProfile": {"adminUsername": "root2", "ssh": {"publicKeys": [{"keyData": "ssh-rsa BBBB"}]}},
        "diskEncryptionSetID": "/keys",
    });
    let here = Local { ssh_public_key: None, environment: Environment::china(), ..local() };
    let text = values(&wishes(&["c", "rg"]).unwrap(), &found(&change), &here).unwrap();
    assert_eq!(variable(&text, "LINUX_ADMIN_USERNAME").as_deref(), Some("root2"));
    assert_eq!(variable(&text, "SSH_PUBLIC_KEY").as_deref(), Some("ssh-rsa BBBB root2"));
    assert_eq!(variable(&text, "NODE_OSDISK_DISKENCRYPTIONSET_ID").as_deref(), Some("/keys"));
    assert_eq!(variable(&text, "ARM_CLOUD").as_deref(), Some("AzureChinaCloud"));
    // A cloud that only a file describes has no name that the controller knows.
    let ours = Environment { resource_manager: "https://arm.example/".to_owned(), ..Environment::public() };
    let elsewhere = Local { environment: ours, ..local() };
    let text = values(&wishes(&["c", "rg"]).unwrap(), &found(&json!({})), &elsewhere).unwrap();
    assert_eq!(variable(&text, "ARM_CLOUD"), None);
    assert!(text.contains("# and name it here, as AZURE_ENVIRONMENT_FILEPATH."), "{text}");
    assert!(!plain.contains("AZURE_ENVIRONMENT_FILEPATH"), "{plain}");
    let none = values(&wishes(&["c", "rg"]).unwrap(), &found(&json!({})), &here).unwrap_err().to_string();
    assert!(none.contains("--ssh-public-key"), "{none}");
}

// azure.md 23: service principals, kubenet, Calico, IPv6, and AKS' own Karpenter
#[test]
fn a_cluster_that_cannot_have_nodes_gets_no_values_and_every_reason() {
    let change = json!({
        "servicePrincipalProfile": {"clientId": "1"},
        "networkProfile": {"networkPlugin": "kubenet", "networkPolicy": "calico", "ipFamilies": ["IPv4", "IPv6"]},
        "nodeProvisioningProfile": {"mode": "Auto"},
    });
    let error = written(&["c", "rg"], &change).unwrap_err();
    for reason in [
        "ServicePrincipalUnsupported",
        "NetworkPluginUnsupported",
        "NetworkPolicyUnsupported",
        "IPFamilyUnsupported",
        "node auto provisioning",
    ] {
        assert!(error.contains(reason), "{error}");
    }
}

// azure.md 22.4
#[test]
fn the_first_token_that_can_be_used_is_taken() {
    let secret = |kind: &str, id: &str, more: &Value| {
        let encoded = |text: &str| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
        let mut data = json!({"token-id": encoded(id), "token-secret": encoded("0123456789abcdef")});
        for (name, value) in more.as_object().into_iter().flatten() {
            data[name] = json!(encoded(value.as_str().unwrap()));
        }
        json!({"type": kind, "data": data})
    };
    let token = "bootstrap.kubernetes.io/token";
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let list = json!({"items": [
        secret("Opaque", "aaaaaa", &json!({})),
        secret(token, "bbbbbb", &json!({"expiration": "2025-01-01T00:00:00Z"})),
        secret(token, "cccccc", &json!({"usage-bootstrap-authentication": "false"})),
        secret(token, "dddddd", &json!({"expiration": "2027-01-01T00:00:00Z"})),
    ]});
    let found = bootstrap_token(&list, now).unwrap();
    assert_eq!(found.reveal(), "dddddd.0123456789abcdef");
    assert_eq!(bootstrap_token(&json!({"items": []}), now), None);
    assert_eq!(bootstrap_token(&Value::Null, now), None);
}

#[test]
fn the_usual_subscription_is_that_of_az() {
    let profile = "\u{feff}{\"subscriptions\": [{\"id\": \"a\"}, {\"id\": \"b\", \"isDefault\": true}]}";
    assert_eq!(default_subscription(profile).as_deref(), Some("b"));
    assert_eq!(default_subscription("{}"), None);
    assert_eq!(default_subscription("no JSON"), None);
}

#[test]
fn a_kubeconfig_of_another_cluster_is_refused() {
    let named = cluster(&json!({"fqdn": "c-1.hcp.westus3.azmk8s.io", "privateFQDN": "c-1.private"}));
    for endpoint in ["https://c-1.hcp.westus3.azmk8s.io:443", "https://C-1.private"] {
        assert_eq!(check_endpoint(&named, endpoint), Ok(()), "{endpoint}");
    }
    let error = check_endpoint(&named, "https://d-1.hcp.westus3.azmk8s.io:443").unwrap_err().to_string();
    assert!(error.contains("\"d-1.hcp.westus3.azmk8s.io\"") && error.contains("--kubeconfig"), "{error}");
    assert_eq!(check_endpoint(&cluster(&json!({})), "https://d"), Ok(()), "nobody says");
}

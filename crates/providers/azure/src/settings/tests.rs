//! What can be set, and what cannot.

use api::provider::Provider;
use expect_test::expect;
use runtime::settings::Command;

use super::*;

const SUBNET: &str =
    "/subscriptions/s/resourceGroups/MC_g/providers/Microsoft.Network/virtualNetworks/v/subnets/n";
const DISKS: &str = "/subscriptions/s/resourceGroups/g/providers/microsoft.compute/diskencryptionsets/d";

/// The least that must be said.
fn least() -> Vec<(&'static str, &'static str)> {
    vec![
        ("CLUSTER_NAME", "c"),
        ("CLUSTER_ENDPOINT", "https://c.example:443"),
        ("KUBELET_BOOTSTRAP_TOKEN", "abcdef.0123456789abcdef"),
        ("SSH_PUBLIC_KEY", "ssh-rsa AAAA azureuser"),
        ("VNET_SUBNET_ID", SUBNET),
        ("AZURE_NODE_RESOURCE_GROUP", "MC_g"),
        ("AZURE_SUBSCRIPTION_ID", " s "),
        ("LOCATION", "eastus"),
    ]
}

fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<AzureSettings, String> {
    let variable = |name: &str| {
        variables.iter().rfind(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    match Settings::parse(Provider::Azure, arguments, variable) {
        Ok(Command::Run(settings)) => {
            AzureSettings::new(&settings, variable, |_| Err("no such file".to_owned()))
                .map_err(|error| error.to_string())
        }
        other => panic!("{other:?}"),
    }
}

fn with(more: &[(&'static str, &'static str)]) -> Result<AzureSettings, String> {
    let mut variables = least();
    variables.extend(more);
    read(&[], &variables)
}

// azure.md 19
#[test]
fn what_is_not_said_has_a_default() {
    let settings = with(&[]).unwrap();
    expect![[r#"{"clusterName":"c","clusterEndpoint":"https://c.example:443","vnetSubnetId":"/subscriptions/s/resourceGroups/MC_g/providers/Microsoft.Network/virtualNetworks/v/subnets/n","nodeResourceGroup":"MC_g","vmMemoryOverheadPercent":0.075,"linuxAdminUsername":"azureuser","networkPlugin":"azure","networkPluginMode":"overlay","networkPolicy":"","networkDataplane":"cilium","dnsServiceIp":null,"vnetGuid":null,"nodeIdentities":[],"kubeletIdentityClientId":"","provisionMode":"aksscriptless","nodebootstrappingServerUrl":"","useSig":false,"sigAccessTokenServerUrl":"","sigSubscriptionId":"","nodeOsdiskDiskencryptionsetId":null,"manageExistingAksMachines":false,"aksMachinesPoolName":"","batch":{"idle":"1s","longest":"5s","size":50},"additionalTags":{},"enableAzureSdkLogging":true,"subscriptionId":"s","tenantId":"","location":"eastus","clusterResourceGroup":"","environment":{"name":"AzurePublicCloud","resourceManager":"https://management.azure.com/","login":"https://login.microsoftonline.com/","audience":"https://management.azure.com/"},"systemNamespace":null}"#]]
    .assert_eq(&settings.to_json());
}

// azure.md 25.8: JSON dump omits secrets
#[test]
fn secrets_are_neither_logged_nor_shown() {
    let settings = with(&[]).unwrap();
    for shown in [settings.to_json(), format!("{settings:?}")] {
        assert!(!shown.contains("0123456789abcdef") && !shown.contains("AAAA"), "{shown}");
    }
    assert_eq!(settings.kubelet_bootstrap_token.reveal(), "abcdef.0123456789abcdef");
    assert_eq!(settings.ssh_public_key.reveal(), "ssh-rsa AAAA azureuser");
}

#[test]
fn everything_that_must_be_said_is_asked_for_at_once() {
    expect![[
        "validating Azure options, missing field, cluster-name; missing field, cluster-endpoint; missing field, kubelet-bootstrap-token; missing field, ssh-public-key; missing field, vnet-subnet-id; missing field, node-resource-group; missing field, AZURE_SUBSCRIPTION_ID; missing field, LOCATION"
    ]]
    .assert_eq(&read(&[], &[]).unwrap_err());
}

#[test]
fn flags_beat_variables_and_older_variables_stand_in_for_newer_ones() {
    let mut variables: Vec<_> =
        least().into_iter().filter(|(name, _)| *name != "AZURE_SUBSCRIPTION_ID").collect();
    variables.extend([
        ("ARM_SUBSCRIPTION_ID", "old"),
        ("ARM_TENANT_ID", "old-tenant"),
        ("AZURE_TENANT_ID", ""),
        ("ARM_RESOURCE_GROUP", " g\n"),
        ("ARM_CLOUD", "AzureChinaCloud"),
        ("SYSTEM_NAMESPACE", "kube-system"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "much"),
        ("NODE_IDENTITIES", "/a, /b,"),
    ]);
    let settings = read(&["--cluster-name=f", "--dns-service-ip=10.0.0.10"], &variables).unwrap();
    assert_eq!((settings.cluster_name.as_str(), settings.subscription_id.as_str()), ("f", "old"));
    assert_eq!((settings.tenant_id.as_str(), settings.cluster_resource_group.as_str()), ("old-tenant", "g"));
    assert_eq!(settings.environment, Environment::china());
    assert_eq!(settings.system_namespace.as_deref(), Some("kube-system"));
    assert_eq!(settings.node_identities, ["/a", "/b"]);
    assert_eq!(settings.dns_service_ip.unwrap().to_string(), "10.0.0.10");
    assert!((settings.vm_memory_overhead_percent - 0.075).abs() < f64::EPSILON, "as if it were not set");
}

#[test]
fn a_variable_that_is_empty_is_set() {
    let settings = with(&[("NETWORK_PLUGIN_MODE", ""), ("NETWORK_DATAPLANE", "")]).unwrap();
    assert_eq!((settings.network_plugin_mode.as_str(), settings.network_dataplane.as_str()), ("", ""));
    assert!(with(&[("NETWORK_PLUGIN", "")]).is_err());
}

// azure.md 25.8: each invalid value
#[test]
fn each_value_that_cannot_be_is_named_with_what_is_accepted() {
    let rows: &[(&[(&'static str, &'static str)], &str)] = &[
        (&[("CLUSTER_ENDPOINT", "c.example")], "\"c.example\" is not a valid cluster-endpoint URL"),
        (
            &[("VNET_SUBNET_ID", "/subscriptions/s/subnets/n")],
            "vnet-subnet-id \"/subscriptions/s/subnets/n\"",
        ),
        (&[("VM_MEMORY_OVERHEAD_PERCENT", "-0.1")], "vm-memory-overhead-percent cannot be negative"),
        (&[("LINUX_ADMIN_USERNAME", "1a")], "linux-admin-username \"1a\""),
        (&[("LINUX_ADMIN_USERNAME", "a23456789012345678901234567890123")], "at most 32 characters"),
        (
            &[("NETWORK_PLUGIN", "kubenet")],
            "network-plugin \"kubenet\" is not supported, expected azure or none",
        ),
        (&[("NETWORK_PLUGIN_MODE", "bridge")], "expected overlay or nothing"),
        (&[("NETWORK_PLUGIN", "none")], "network-plugin-mode \"overlay\" is invalid, expected none"),
        (&[("NETWORK_DATAPLANE", "ebpf")], "expected azure or cilium or nothing"),
        (&[("DNS_SERVICE_IP", "10.0.0")], "dns-service-ip \"10.0.0\""),
        (&[("VNET_GUID", "1-2")], "vnet-guid \"1-2\""),
        (&[("KUBELET_IDENTITY_CLIENT_ID", "me")], "kubelet-identity-client-id \"me\""),
        (
            &[("PROVISION_MODE", "auto")],
            "provision-mode \"auto\" is not supported, expected aksscriptless or",
        ),
        (&[("PROVISION_MODE", "bootstrappingclient")], "nodebootstrapping-server-url is required"),
        (&[("PROVISION_MODE", "bootstrappingclient")], "missing field, ARM_RESOURCE_GROUP"),
        (&[("PROVISION_MODE", "aksmachineapi")], "use-sig must be true"),
        (&[("PROVISION_MODE", "aksmachineapi")], "aks-machines-pool-name is required"),
        (&[("PROVISION_MODE", "aksmachineapi")], "sig-subscription-id is required"),
        (&[("USE_SIG", "true")], "sig-subscription-id is required"),
        (&[("USE_SIG", "true")], "sig-access-token-server-url \"\" is invalid"),
        (&[("NODE_OSDISK_DISKENCRYPTIONSET_ID", "/subscriptions/s")], "node-osdisk-diskencryptionset-id"),
        (&[("ADDITIONAL_TAGS", "a")], "additional-tags has \"a\", expected a key, = and a value"),
        (&[("ADDITIONAL_TAGS", "a/b=c")], "additional-tags has the key \"a/b\""),
        (&[("ADDITIONAL_TAGS", "=c")], "additional-tags has the key \"\""),
        (&[("ADDITIONAL_TAGS", "a=1,A=2")], "the key \"A\" twice"),
        (&[("ARM_CLOUD", "Moon")], "ARM_CLOUD \"Moon\" is no known cloud"),
        (&[("AZURE_ENVIRONMENT_FILEPATH", "/nowhere")], "\"/nowhere\", no such file"),
    ];
    for (variables, part) in rows {
        let error = with(variables).expect_err(part);
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error = with(&[
        ("NETWORK_PLUGIN", "kubenet"),
        ("DNS_SERVICE_IP", "x"),
        ("ADDITIONAL_TAGS", "a"),
        ("ARM_CLOUD", "Moon"),
    ]);
    let error = error.unwrap_err();
    for part in ["network-plugin", "dns-service-ip", "additional-tags", "ARM_CLOUD"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn each_mode_works_with_what_it_needs() {
    let sig = [("USE_SIG", "true"), ("SIG_SUBSCRIPTION_ID", "x"), ("ARM_RESOURCE_GROUP", "g")];
    for name in ["aksmachineapi", "aksmachineapiheaderbatch"] {
        let mut variables = sig.to_vec();
        variables.extend([("PROVISION_MODE", name), ("AKS_MACHINES_POOL_NAME", "m")]);
        assert!(with(&variables).unwrap().provision_mode.is_machine_api());
    }
    let mut variables = sig.to_vec();
    variables.extend([
        ("PROVISION_MODE", "bootstrappingclient"),
        ("NODEBOOTSTRAPPING_SERVER_URL", "nps.svc"),
        ("SIG_ACCESS_TOKEN_SERVER_URL", "http://tokens.svc/token"),
        ("NODE_OSDISK_DISKENCRYPTIONSET_ID", DISKS),
        ("VNET_GUID", "01234567-89ab-cdef-0123-456789ABCDEF"),
        ("NETWORK_PLUGIN", "none"),
        ("NETWORK_PLUGIN_MODE", ""),
    ]);
    let settings = with(&variables).unwrap();
    assert!(!settings.provision_mode.is_machine_api() && settings.use_sig);
}

#[test]
fn batches_are_looked_at_only_where_there_are_any() {
    let batch = [
        ("PROVISION_MODE", "aksmachineapiheaderbatch"),
        ("USE_SIG", "true"),
        ("SIG_SUBSCRIPTION_ID", "x"),
        ("AKS_MACHINES_POOL_NAME", "m"),
        ("ARM_RESOURCE_GROUP", "g"),
    ];
    let rows = [
        ("PROVIDER_BATCH_IDLE_DURATION", "-1s", "provider-batch-idle-duration cannot be negative"),
        ("PROVIDER_BATCH_MAX_DURATION", "-1s", "provider-batch-max-duration cannot be negative"),
        ("PROVIDER_BATCH_MAX_DURATION", "500ms", "must be at least provider-batch-idle-duration"),
        ("PROVIDER_BATCH_MAX_SIZE", "0", "provider-batch-max-size 0 is invalid, expected 1 to 50"),
        ("PROVIDER_BATCH_MAX_SIZE", "-1", "provider-batch-max-size -1"),
        ("PROVIDER_BATCH_MAX_SIZE", "51", "provider-batch-max-size 51"),
    ];
    for (name, value, part) in rows {
        let mut variables = batch.to_vec();
        variables.push((name, value));
        let error = with(&variables).expect_err(part);
        assert!(error.contains(part), "{part}: {error}");
        assert!(with(&[(name, value)]).is_ok(), "{name} {value} elsewhere");
    }
}

#[test]
fn tags_are_read_with_their_limits() {
    let settings = with(&[("ADDITIONAL_TAGS", "team=a b, cost center = 1=2 ,empty=")]).unwrap();
    let tags: Vec<_> =
        settings.additional_tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(tags, [("cost center", "1=2"), ("empty", ""), ("team", "a b")]);
    let mut wrong = Vec::new();
    tags::read(&format!("{}={}", "k".repeat(512), "v".repeat(256)), &mut wrong);
    assert!(wrong.is_empty(), "{wrong:?}");
    tags::read(&format!("{}={}", "k".repeat(513), "v".repeat(257)), &mut wrong);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

//! What the script says.

use std::collections::BTreeMap;

use expect_test::expect_file;

use super::*;
use crate::environment::Environment;
use crate::launch::fixture::Fixture;

/// The variables of a script, as a shell reads them.
fn variables(script: &str) -> BTreeMap<&str, String> {
    let lines = script.lines().filter_map(|line| line.split_once('='));
    let lines = lines.filter(|(name, _)| {
        name.chars().all(|each| each.is_ascii_uppercase() || "_0123456789".contains(each))
    });
    lines.map(|(name, value)| (name, value.trim_matches('"').to_owned())).collect()
}

fn of(fixture: &Fixture) -> BTreeMap<String, String> {
    let script = script(&fixture.launch()).unwrap();
    variables(&script).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn with_version(version: &str) -> BTreeMap<String, String> {
    let mut fixture = Fixture::default();
    version.clone_into(&mut fixture.class.status.as_mut().unwrap().kubernetes_version);
    of(&fixture)
}

fn decoded(base64: &str) -> String {
    String::from_utf8(BASE64_STANDARD.decode(base64).unwrap()).unwrap()
}

// azure.md 13.2: the whole contract
#[test]
fn the_script_says_everything_that_the_image_reads() {
    let fixture = Fixture::default();
    let script = script(&fixture.launch()).unwrap();
    expect_file!["golden.sh"].assert_eq(&script);
    assert_eq!(decoded(&custom_data(&fixture.launch()).unwrap()), script);
}

// azure.md 13.2: variables that must read literally `false`, and those that are empty
#[test]
fn what_is_not_used_is_false_or_empty() {
    let all = of(&Fixture::default());
    for name in [
        "SGX_NODE MIG_NODE ENABLE_GPU_DEVICE_PLUGIN_IF_NEEDED ENABLE_HOSTS_CONFIG_AGENT DISABLE_SSH TELEPORT_ENABLED",
        "SHOULD_CONFIGURE_HTTP_PROXY SHOULD_CONFIGURE_HTTP_PROXY_CA SHOULD_CONFIGURE_CUSTOM_CA_TRUST IS_KRUSTLET",
        "GPU_NEEDS_FABRIC_MANAGER NEEDS_DOCKER_LOGIN IPV6_DUAL_STACK_ENABLED ENABLE_UNATTENDED_UPGRADES",
        "ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE SHOULD_CONFIG_SWAP_FILE SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE IS_CUSTOM_CLOUD",
        "HAS_CUSTOM_SEARCH_DOMAIN ENABLE_SECURE_TLS_BOOTSTRAPPING ENABLE_KUBELET_SERVING_CERTIFICATE_ROTATION",
        "KUBELET_CONFIG_FILE_ENABLED HAS_KUBELET_DISK_TYPE IS_KATA GPU_NODE CONFIG_GPU_DRIVER_IF_NEEDED",
        "ENABLE_IMDS_RESTRICTION INSERT_IMDS_RESTRICTION_RULE_TO_MANGLE_TABLE LOAD_BALANCER_DISABLE_OUTBOUND_SNAT",
    ]
    .iter()
    .flat_map(|names| names.split(' '))
    {
        assert_eq!(all.get(name).map(String::as_str), Some("false"), "{name}");
    }
    for name in [
        "MOBY_VERSION HYPERKUBE_URL CUSTOM_KUBE_BINARY_URL KUBEPROXY_URL APISERVER_PUBLIC_KEY PRIMARY_AVAILABILITY_SET",
        "PRIMARY_SCALE_SET CONTAINERD_DOWNLOAD_URL_BASE NETWORK_MODE TELEPORTD_PLUGIN_DOWNLOAD_URL CONTAINERD_VERSION",
        "CONTAINERD_PACKAGE_URL RUNC_VERSION RUNC_PACKAGE_URL HTTP_PROXY_TRUSTED_CA CUSTOM_ENV_JSON",
        "AZURE_PRIVATE_REGISTRY_SERVER HTTP_PROXY_URLS HTTPS_PROXY_URLS NO_PROXY_URLS DHCPV6_SERVICE_FILEPATH",
        "DHCPV6_CONFIG_FILEPATH THP_ENABLED THP_DEFRAG KUBELET_CLIENT_CONTENT KUBELET_CLIENT_CERT_CONTENT",
        "KUBELET_CONFIG_FILE_CONTENT GPU_INSTANCE_PROFILE CUSTOM_SEARCH_DOMAIN_NAME CUSTOM_SEARCH_REALM_USER",
        "CUSTOM_SEARCH_REALM_PASSWORD MESSAGE_OF_THE_DAY AZURE_ENVIRONMENT_FILEPATH GPU_IMAGE_SHA GPU_DRIVER_VERSION",
        "GPU_DRIVER_TYPE",
    ]
    .iter()
    .flat_map(|names| names.split(' '))
    {
        assert_eq!(all.get(name).map(String::as_str), Some(""), "{name}");
    }
}

// azure.md 13.2: quoting
#[test]
fn the_first_variables_are_bare_and_the_others_in_quotes() {
    let script = script(&Fixture::default().launch()).unwrap();
    let at = |text: &str| script.find(text).unwrap_or_else(|| panic!("{text}"));
    let (bare, quoted) = script.split_at(at("ENABLE_HOSTS_CONFIG_AGENT="));
    let in_quotes = |line: &&str| line.contains("=\"");
    let bare: Vec<&str> = bare.lines().skip_while(|line| !line.starts_with("ADMINUSER=")).collect();
    assert_eq!(
        bare.iter().filter(|line| in_quotes(line)).collect::<Vec<_>>(),
        [&"NETWORK_POLICY=\"cilium\""]
    );
    assert!(bare.last().unwrap().starts_with("RUNC_PACKAGE_URL="));
    let quoted: Vec<&str> = quoted.lines().filter(|line| !line.starts_with("/usr/bin/nohup")).collect();
    assert!(quoted.iter().all(in_quotes));
    assert_eq!(script.matches("\nKUBE_BINARY_URL=").count(), 2);
}

// azure.md 13.2, 25.6: kube binary URL empty ≥ 1.34
#[test]
fn binaries_are_named_until_the_images_have_them() {
    assert_eq!(
        with_version("1.33.5")["KUBE_BINARY_URL"],
        "https://acs-mirror.azureedge.net/kubernetes/v1.33.5/binaries/kubernetes-node-linux-amd64.tar.gz"
    );
    assert_eq!(with_version("1.34.0")["KUBE_BINARY_URL"], "");
}

// azure.md 13.2, 25.6: the credential provider by version
#[test]
fn the_credential_provider_follows_the_version() {
    for (version, release) in [
        ("1.30.0", "1.30.12"),
        ("1.31.4", "1.31.6"),
        ("1.32.0", "1.32.5"),
        ("1.33.0", "1.33.0"),
        ("1.36.1", "1.33.0"),
    ] {
        assert_eq!(
            with_version(version)["CREDENTIAL_PROVIDER_DOWNLOAD_URL"],
            format!(
                "https://acs-mirror.azureedge.net/cloud-provider-azure/v{release}/binaries/azure-acr-credential-provider-linux-amd64-v{release}.tar.gz"
            )
        );
    }
    assert_eq!(with_version("1.29.9")["CREDENTIAL_PROVIDER_DOWNLOAD_URL"], "");
}

// azure.md 13.2: NETWORK_PLUGIN
#[test]
fn the_network_plugin_is_said_only_where_the_image_sets_it_up() {
    for (plugin, mode, dataplane, expected) in [
        ("azure", "overlay", "cilium", "none"),
        ("azure", "overlay", "azure", "none"),
        ("azure", "", "cilium", "none"),
        ("none", "", "", "none"),
        ("azure", "", "azure", "azure"),
        ("azure", "", "", "azure"),
    ] {
        let mut fixture = Fixture::default();
        plugin.clone_into(&mut fixture.settings.network_plugin);
        mode.clone_into(&mut fixture.settings.network_plugin_mode);
        dataplane.clone_into(&mut fixture.settings.network_dataplane);
        assert_eq!(of(&fixture)["NETWORK_PLUGIN"], expected, "{plugin} {mode} {dataplane}");
    }
}

// azure.md 13.2, 4.7: GPUs
#[test]
fn drivers_are_installed_for_nvidia_where_the_class_wants_them() {
    let mut fixture = Fixture::default();
    let check = |fixture: &mut Fixture, size: &str, expected: [&str; 5]| {
        fixture.set_size(size);
        let all = of(fixture);
        let names = [
            "GPU_NODE",
            "CONFIG_GPU_DRIVER_IF_NEEDED",
            "GPU_DRIVER_TYPE",
            "GPU_DRIVER_VERSION",
            "GPU_IMAGE_SHA",
        ];
        assert_eq!(names.map(|name| all[name].as_str()), expected, "{size}");
        let containerd = decoded(&all["CONTAINERD_CONFIG_CONTENT"]);
        assert_eq!(containerd.contains("nvidia-container-runtime"), expected[0] == "true");
    };
    let (nvidia, amd) = ("Standard_NC24ads_A100_v4", "Standard_NV4ads_V710_v5");
    check(&mut fixture, nvidia, ["true", "true", "cuda-lts", "580.159.04", "20260629214430"]);
    check(&mut fixture, amd, ["false", "false", "", "", ""]);
    check(&mut fixture, "Standard_D4s_v5", ["false", "false", "", "", ""]);
    fixture.class.spec.gpu = Some(serde_json::from_value(serde_json::json!({"mode": "None"})).unwrap());
    check(&mut fixture, nvidia, ["false", "false", "", "", ""]);
}

// azure.md 28.2: the administrator and the cloud are those of the cluster
#[test]
fn the_administrator_and_the_cloud_are_those_of_the_cluster() {
    let mut fixture = Fixture::default();
    "admin".clone_into(&mut fixture.settings.linux_admin_username);
    for (cloud, expected) in [
        (Environment::public(), "AzurePublicCloud"),
        (Environment::us_government(), "AzureUSGovernmentCloud"),
        (Environment::china(), "AzureChinaCloud"),
        (Environment { name: "Own".to_owned(), ..Environment::public() }, "AzurePublicCloud"),
    ] {
        fixture.settings.environment = cloud;
        let all = of(&fixture);
        assert_eq!((all["ADMINUSER"].as_str(), all["TARGET_CLOUD"].as_str()), ("admin", expected));
        assert_eq!(all["TARGET_ENVIRONMENT"], expected);
    }
}

#[test]
fn arm_machines_get_binaries_for_arm() {
    let mut fixture = Fixture::default();
    fixture.sku.architecture = "arm64".to_owned();
    let all = of(&fixture);
    for name in ["CREDENTIAL_PROVIDER_DOWNLOAD_URL", "VNET_CNI_PLUGINS_URL", "CNI_PLUGINS_URL"] {
        assert!(all[name].contains("-linux-arm64-"), "{}", all[name]);
    }
}

#[test]
fn an_endpoint_without_a_host_is_refused() {
    for wrong in ["", "/path", "https://"] {
        let mut fixture = Fixture::default();
        wrong.clone_into(&mut fixture.settings.cluster_endpoint);
        let error = script(&fixture.launch()).unwrap_err();
        assert_eq!(error, BootstrapError::Endpoint(wrong.to_owned()));
    }
}

// azure.md 13.2: base64 contents
#[test]
fn contents_are_what_the_image_writes_to_files() {
    let all = of(&Fixture::default());
    assert_eq!(decoded(&all["SERVICE_PRINCIPAL_FILE_CONTENT"]), "msi");
    assert_eq!(
        decoded(&all["SYSCTL_CONTENT"]).lines().collect::<Vec<_>>(),
        [
            "net.ipv4.tcp_retries2=8",
            "net.core.message_burst=80",
            "net.core.message_cost=40",
            "net.core.somaxconn=16384",
            "net.ipv4.tcp_max_syn_backlog=16384",
            "net.ipv4.neigh.default.gc_thresh1=4096",
            "net.ipv4.neigh.default.gc_thresh2=8192",
            "net.ipv4.neigh.default.gc_thresh3=16384",
        ]
    );
    assert!(decoded(&all["CONTAINERD_CONFIG_CONTENT"]).contains("default_runtime_name = \"runc\""));
    assert_eq!(all["KUBE_CA_CRT"], "Y2EtYnVuZGxl");
    assert_eq!(all["TLS_BOOTSTRAP_TOKEN"], "abcdef.0123456789abcdef");
}

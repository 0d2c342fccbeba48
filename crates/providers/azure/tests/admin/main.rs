//! What administrators use, against the double: the values of the chart for a cluster, and looking everything over.

mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::azure::AKSNodeClass;
use api::provider::Provider;
use armdouble::{Double, Failure, Kind};
use azure::arm::{Client, Setup};
use azure::auth::{FixedToken, Secret};
use azure::configure::{self, Local, Wishes};
use azure::doctor::{Subject, examine};
use azure::settings::{AzureSettings, ProvisionMode};
use clock::Clock;
use cloud::doctor::{Level, Report};
use http::Method;
use jiff::Timestamp;
use runtime::settings::{Command, Settings};
use serde_json::{Value, json};

const PERMISSIONS: &str = "Microsoft.Authorization/permissions";

fn world() -> (Double, Client) {
    let clock = Clock::starting_at(Timestamp::from_second(1_794_830_400).expect("a second of this century"));
    let double = Double::new(clock);
    let subscription = double.change(|azure| azure.settings.subscription.clone());
    let token = Arc::new(FixedToken::new("token"));
    let setup = Setup { clock, ..Setup::new(Arc::new(double.clone()), token, &subscription) };
    (double, Client::new(setup))
}

fn wishes() -> Wishes {
    let arguments = ["walk", "walk", "karpenter-sa", "karpentermsi"].map(str::to_owned);
    Wishes::read(&arguments).expect("the documented call")
}

// azure.md 22.4
#[tokio::test(start_paused = true)]
async fn everything_that_values_are_made_of_is_found() {
    let (double, client) = world();
    let found = configure::find(&client, &wishes()).await.unwrap();
    let settings = double.change(|azure| azure.settings.clone());
    assert_eq!(found.subnet_id, settings.subnet_id());
    assert_eq!(found.vnet_guid, "a519e60a-cac0-40b2-b883-084477fe6f5c");
    assert_eq!(found.identity_client_id, "66666666-6666-6666-6666-666666666666");
    let local = Local {
        subscription: settings.subscription.clone(),
        endpoint: "https://walk".to_owned(),
        bootstrap_token: Secret::new("abcdef.0123456789abcdef"),
        ..Local::default()
    };
    let text = configure::values(&wishes(), &found, &local).unwrap();
    for part in [
        "value: \"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB azureuser\"",
        "value: \"44444444-4444-4444-4444-444444444444\"",
        "value: \"MC_walk_walk_southcentralus\"",
        "value: \"southcentralus\"",
        "value: \"cilium\"",
        "azure.workload.identity/client-id: \"66666666-6666-6666-6666-666666666666\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// The variables in values.
fn variables(text: &str) -> BTreeMap<String, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pair = |pair: &[&str]| {
        let name = pair[0].strip_prefix("- name: ")?;
        Some((name.to_owned(), serde_json::from_str::<String>(pair[1].strip_prefix("value: ")?).ok()?))
    };
    lines.windows(2).filter_map(pair).collect()
}

// azure.md 22.4, 28.5
#[tokio::test(start_paused = true)]
async fn the_controller_starts_with_what_is_written() {
    for (mode, plugin) in
        [("aksscriptless", "azure"), ("aksscriptless", "none"), ("aksmachineapiheaderbatch", "azure")]
    {
        let (double, client) = world();
        let settings = double.change(|azure| {
            let id = azure.settings.cluster_id();
            azure.change(&id, |cluster| {
                cluster["properties"]["networkProfile"]["networkPlugin"] = json!(plugin);
            });
            azure.settings.clone()
        });
        let arguments = ["walk", "walk", "karpenter-sa", "karpentermsi", "false", mode].map(str::to_owned);
        let wishes = Wishes::read(&arguments).unwrap();
        let found = configure::find(&client, &wishes).await.unwrap();
        let local = Local {
            subscription: settings.subscription.clone(),
            endpoint: "https://walk.hcp.southcentralus.azmk8s.io:443".to_owned(),
            bootstrap_token: Secret::new("abcdef.0123456789abcdef"),
            ..Local::default()
        };
        let written = variables(&configure::values(&wishes, &found, &local).unwrap());
        let variable = |name: &str| written.get(name).cloned();
        let read = match Settings::parse(Provider::Azure, Vec::<String>::new(), variable) {
            Ok(Command::Run(read)) => *read,
            other => panic!("{other:?}"),
        };
        let read = AzureSettings::new(&read, variable, |_| Err("no file".to_owned())).unwrap();
        assert_eq!(read.provision_mode.as_str(), mode);
        assert_eq!(read.network_plugin, plugin);
        assert_eq!(read.vnet_subnet_id, settings.subnet_id());
        assert_eq!(read.node_resource_group, settings.node_resource_group);
        assert_eq!(read.node_identities.len(), 1);
    }
}

// azure.md 22.4: the first network of the resource group of the nodes
#[tokio::test(start_paused = true)]
async fn without_a_subnet_of_agent_pools_the_network_that_aks_made_is_taken() {
    let (double, client) = world();
    let settings = double.change(|azure| {
        let id = azure.settings.cluster_id();
        azure.change(&id, |cluster| {
            cluster["properties"]["agentPoolProfiles"] = json!([{"name": "nodepool1", "mode": "System"}]);
        });
        azure.settings.clone()
    });
    let found = configure::find(&client, &wishes()).await.unwrap();
    assert_eq!(found.subnet_id, settings.subnet_id());
    let network = settings.node_id("Microsoft.Network/virtualNetworks", "aks-vnet-12345678");
    double.change(|azure| azure.remove(&network));
    let error = configure::find(&client, &wishes()).await.unwrap_err().to_string();
    assert!(error.contains("--vnet-subnet-id"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_named() {
    let (_double, client) = world();
    let error = |wishes: Wishes| {
        let client = client.clone();
        async move { configure::find(&client, &wishes).await.unwrap_err().to_string() }
    };
    let text = error(Wishes { cluster: "other".to_owned(), ..wishes() }).await;
    assert!(text.starts_with("reading the AKS cluster \"other\" in resource group \"walk\": "), "{text}");
    let text = error(Wishes { identity: "nobody".to_owned(), ..wishes() }).await;
    assert!(text.starts_with("reading the identity \"nobody\" in resource group \"walk\": "), "{text}");
}

fn class(spec: &Value, conditions: &Value) -> AKSNodeClass {
    let object = json!({
        "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "metadata": {"name": "default"},
        "spec": spec, "status": {"kubernetesVersion": "1.34.2", "conditions": conditions},
    });
    serde_json::from_value(object).expect("tests write what Kubernetes reads")
}

fn ready() -> Value {
    json!([{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }])
}

/// What an administrator says; the rest is asked from AKS.
fn subject() -> Subject {
    Subject {
        cluster_name: "walk".to_owned(),
        cluster_resource_group: "walk".to_owned(),
        classes: Some(vec![class(&json!({"imageFamily": "Ubuntu"}), &ready())]),
        kubernetes: Some("1.34".to_owned()),
        ..Subject::default()
    }
}

/// What is bad.
fn bad(report: &Report) -> Vec<String> {
    let bad = report.checks.iter().filter(|check| check.level == Level::Bad);
    bad.map(|check| check.about.clone()).collect()
}

fn level(report: &Report, about: &str) -> Option<Level> {
    report.checks.iter().find(|check| check.about == about).map(|check| check.level)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_can_have_nodes_is_healthy_and_nothing_is_changed() {
    let (double, client) = world();
    let report = examine(&client, &subject()).await.unwrap();
    assert!(report.is_healthy(), "{}", report.text());
    assert_eq!(report.title, "Azure, region southcentralus, cluster walk");
    for about in [
        "credentials",
        "cluster walk",
        "permissions for machines in resource group MC_walk_walk_southcentralus",
        "permissions for the network in resource group MC_walk_walk_southcentralus",
        "subnet aks-subnet",
        "network security group",
        "load balancers",
        "sizes",
        "quotas of families",
        "AKSNodeClass default, images",
        "AKSNodeClass default",
    ] {
        assert_eq!(level(&report, about), Some(Level::Good), "{about}: {}", report.text());
    }
    assert!(double.requests().iter().all(|request| request.method == Method::GET));
}

// azure.md 22.3
#[tokio::test(start_paused = true)]
async fn exactly_the_actions_that_are_missing_are_named() {
    let (double, client) = world();
    double.change(|azure| {
        let id = azure.settings.node_id(PERMISSIONS, "managed-identity-operator");
        azure.remove(&id)
    });
    let report = examine(&client, &subject()).await.unwrap();
    assert_eq!(
        bad(&report),
        ["permission Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"],
        "{}",
        report.text()
    );
}

#[tokio::test(start_paused = true)]
async fn what_keeps_nodes_from_being_launched_is_found() {
    let (double, client) = world();
    double.change(|azure| {
        azure.quota.limit("cores", 10);
        azure.quota.elsewhere("cores", 10);
        let group =
            azure.settings.node_id("Microsoft.Network/networkSecurityGroups", "aks-agentpool-12345678-nsg");
        azure.remove(&group);
        let id = azure.settings.subnet_id();
        azure.change(&id, |subnet| subnet["properties"]["addressPrefix"] = json!("10.224.0.0/30"));
    });
    let mut subject = subject();
    subject.disk_encryption_set =
        Some(double.change(|azure| azure.settings.node_id("Microsoft.Compute/diskEncryptionSets", "keys")));
    subject.classes = Some(vec![class(&json!({"imageFamily": "Ubuntu", "fipsMode": "FIPS"}), &ready())]);
    let report = examine(&client, &subject).await.unwrap();
    assert_eq!(
        bad(&report),
        [
            "subnet aks-subnet",
            "network security group",
            "disk encryption set",
            "vCPUs of the region",
            "AKSNodeClass default, images",
        ],
        "{}",
        report.text()
    );
}

// azure.md 22.3: the walk-through gives no role on the cluster
#[tokio::test(start_paused = true)]
async fn without_a_role_on_the_cluster_the_rest_is_looked_at_all_the_same() {
    let (double, client) = world();
    double.fail(Failure::of(Method::GET, Kind::ManagedCluster).at_once(403, "AuthorizationFailed", "no"));
    let settings = double.change(|azure| azure.settings.clone());
    let told = Subject {
        node_resource_group: settings.node_resource_group.clone(),
        vnet_subnet_id: settings.subnet_id(),
        location: settings.location.clone(),
        ..subject()
    };
    let report = examine(&client, &told).await.unwrap();
    assert!(report.is_healthy(), "{}", report.text());
    assert_eq!(level(&report, "cluster walk"), Some(Level::Warning));
}

#[tokio::test(start_paused = true)]
async fn machines_of_aks_need_a_pool_and_rights_on_the_cluster() {
    let (double, client) = world();
    let pool = double.change(|azure| azure.settings.machines_pool.clone());
    let mut subject = Subject {
        mode: ProvisionMode::AksMachineApi,
        use_sig: true,
        machines_pool: pool.clone(),
        ..subject()
    };
    let report = examine(&client, &subject).await.unwrap();
    assert_eq!(level(&report, &format!("agent pool {pool}")), Some(Level::Good), "{}", report.text());
    let missing = bad(&report);
    assert_eq!(missing.len(), 4, "{missing:?}");
    assert!(missing.iter().all(|about| about.contains("Microsoft.ContainerService/")), "{missing:?}");
    subject.machines_pool = "nodepool1".to_owned();
    let report = examine(&client, &subject).await.unwrap();
    assert_eq!(level(&report, "agent pool nodepool1"), Some(Level::Bad));
}

#[tokio::test(start_paused = true)]
async fn what_must_be_said_is_asked_for() {
    let (_double, client) = world();
    let report =
        examine(&client, &Subject { cluster_resource_group: String::new(), ..subject() }).await.unwrap();
    assert_eq!(bad(&report), ["region", "resource group of nodes"]);
}

// AKS: nodeResourceGroupProfile.restrictionLevel ReadOnly, and pods with a subnet of their own
#[tokio::test(start_paused = true)]
async fn clusters_that_lock_their_resource_group_or_have_a_subnet_for_pods_are_refused() {
    type Change = fn(&mut armdouble::World);
    let cases: [(Change, &str); 2] = [
        (armdouble::World::lock_node_resource_group, "NodeResourceGroupReadOnly"),
        (
            |azure| {
                let id = azure.settings.cluster_id();
                azure.change(&id, |cluster| {
                    cluster["properties"]["agentPoolProfiles"][0]["podSubnetID"] = json!("/subnets/pods");
                });
            },
            "PodSubnetUnsupported",
        ),
    ];
    for (change, reason) in cases {
        let (double, client) = world();
        double.change(change);
        let report = examine(&client, &subject()).await.unwrap();
        assert!(bad(&report).contains(&"cluster walk".to_owned()), "{}", report.text());
        assert!(report.text().contains(reason), "{}", report.text());
        let found = configure::find(&client, &wishes()).await.unwrap();
        let local = Local { endpoint: "https://walk".to_owned(), ..Local::default() };
        let error = configure::values(&wishes(), &found, &local).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

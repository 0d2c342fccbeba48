//! The client against the double: every operation of azure.md section 24, in every form that it can take.

mod support;
mod table;

use std::time::Duration;

use armdouble::{Failure, Form, Kind, Lro, Throttle};
use azure::arm::types::bootstrap::BootstrappingRequest;
use azure::arm::types::nic::TagsPatch;
use azure::arm::types::vm::VirtualMachinePatch;
use azure::arm::{Client, PutMachine, Setup};
use futures::future::join_all;
use http::Method;
use support::{LOCATION, World, tags};

// azure.md 24, rows 1 to 4
#[tokio::test(start_paused = true)]
async fn what_a_region_has_can_be_listed_page_by_page() {
    let world = World::new();
    world.double.change(|azure| azure.settings.page_size = 7);
    let skus = world.client.skus(LOCATION).await.unwrap();
    assert!(skus.iter().any(|sku| sku.name.as_deref() == Some("Standard_D2s_v3")), "{}", skus.len());
    assert!(!world.client.usages(LOCATION).await.unwrap().is_empty());
    let gallery = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2";
    let versions =
        world.client.community_image_versions(LOCATION, gallery, "2204gen2containerd").await.unwrap();
    assert_eq!(versions.len(), 2);
    assert!(world.client.node_image_versions(LOCATION).await.unwrap().len() > 7);
}

// azure.md 24, rows 5 to 12
#[tokio::test(start_paused = true)]
async fn a_machine_is_made_changed_and_deleted_with_everything_that_belongs_to_it() {
    let World { client, double, group } = &World::new();
    let interface = world_interface(client, group).await;
    assert_eq!(interface, "aks-a");
    let running =
        client.put_virtual_machine(group, "aks-a", &support::machine(double, "aks-a")).await.unwrap();
    assert_eq!(running.accepted().unwrap().name.as_deref(), Some("aks-a"));
    let machine = running.wait().await.unwrap();
    assert_eq!(machine.properties.unwrap().provisioning_state.as_deref(), Some("Succeeded"));

    let extension = client.put_extension(group, "aks-a", "computeAksLinuxBilling", &support::billing()).await;
    extension.unwrap().done().await.unwrap();
    let changed = TagsPatch { tags: Some(tags(&[("karpenter.sh_nodepool", "p"), ("a", "b")])) };
    assert_eq!(client.patch_network_interface(group, "aks-a", &changed).await.unwrap().tags, changed.tags);
    let extension = client.patch_extension(group, "aks-a", "computeAksLinuxBilling", &changed).await.unwrap();
    assert_eq!(extension.wait().await.unwrap().tags, changed.tags);
    let lost = client.patch_extension(group, "aks-a", "other", &changed).await.err().unwrap();
    assert!(lost.is_not_found(), "{lost}");
    let patch = VirtualMachinePatch { tags: changed.tags.clone(), identity: None };
    let machine = client.patch_virtual_machine(group, "aks-a", &patch).await.unwrap().wait().await.unwrap();
    assert_eq!(machine.tags, changed.tags);

    let found = client.virtual_machines(&group.to_uppercase()).await.unwrap();
    assert_eq!(found.len(), 1, "in any spelling");
    assert_eq!(client.network_interfaces(group).await.unwrap().len(), 1);

    client.delete_virtual_machine(group, "aks-a").await.unwrap().done().await.unwrap();
    assert!(client.virtual_machine(group, "aks-a").await.unwrap_err().is_not_found());
    assert!(client.network_interface(group, "aks-a").await.unwrap_err().is_not_found(), "it went along");
    assert!(double.names(Kind::VirtualMachine).is_empty() && double.names(Kind::Extension).is_empty());
    let again = client.delete_network_interface(group, "aks-a").await.unwrap();
    assert!(again.done().await.is_ok(), "what is not there is deleted");
}

async fn world_interface(client: &Client, group: &str) -> String {
    let running = client.put_network_interface(group, "aks-a", &support::interface("aks-a")).await;
    let made = running.expect("it is accepted").wait().await.expect("it is made");
    made.name.expect("it has a name")
}

// azure.md 22.3, 22.4
#[tokio::test(start_paused = true)]
async fn administrators_can_look_at_the_cluster_its_identities_and_their_rights() {
    let World { client, double, group } = &World::new();
    let pool = support::pool(double);
    let cluster = client.managed_cluster(&pool.group, &pool.cluster).await.unwrap();
    assert_eq!(cluster.node_resource_group(), group);
    assert_eq!(cluster.service_principal(), None);
    assert!(
        cluster.has_workload_identity() && !cluster.is_stopped() && !cluster.has_node_auto_provisioning()
    );
    assert!(cluster.kubelet_identity().unwrap().client_id.is_some());
    assert_eq!(cluster.pools()[0].name.as_deref(), Some("nodepool1"));
    let found = client.agent_pool(&pool).await.unwrap();
    assert_eq!(found.properties.mode.as_deref(), Some("Machines"));
    let identity = client.managed_identity(&pool.group, "karpentermsi").await.unwrap();
    assert!(identity.properties.client_id.is_some());
    let networks = client.virtual_networks(group).await.unwrap();
    let subnets = networks[0].properties.as_ref().unwrap().subnets.as_ref().unwrap();
    assert_eq!(subnets[0].name.as_deref(), Some("aks-subnet"));
    let rights = client.permissions(group).await.unwrap();
    assert_eq!(rights.len(), 3);
    assert!(rights.iter().any(|role| role.actions.iter().any(|action| action == "Microsoft.Network/*")));
    assert!(client.managed_cluster(&pool.group, "other").await.unwrap_err().is_not_found());
}

// azure.md 24, rows 13 to 15
#[tokio::test(start_paused = true)]
async fn what_surrounds_machines_can_be_looked_at() {
    let World { client, double, group } = &World::new();
    assert_eq!(client.network_security_groups(group).await.unwrap().len(), 1);
    let balancers = client.load_balancers(group).await.unwrap();
    assert!(balancers.iter().any(|balancer| balancer.name.as_deref() == Some("kubernetes")));
    let subnet = double.change(|azure| azure.settings.subnet_id());
    assert_eq!(client.subnet(&subnet).await.unwrap().name.as_deref(), Some("aks-subnet"));
    let network = subnet.split("/subnets/").next().unwrap();
    let guid = client.virtual_network(network).await.unwrap().properties.unwrap().resource_guid;
    assert_eq!(guid.unwrap().len(), 36);
    assert!(client.subnet(&format!("{subnet}-2")).await.unwrap_err().is_not_found());
    let keys = double.change(|azure| azure.settings.node_id("Microsoft.Compute/diskEncryptionSets", "d"));
    assert!(client.disk_encryption_set(&keys).await.unwrap_err().is_not_found());
    let forbidden =
        Failure::of(Method::GET, Kind::DiskEncryptionSet).at_once(403, "AuthorizationFailed", "no");
    double.fail(forbidden);
    assert!(client.disk_encryption_set(&keys).await.unwrap_err().is_forbidden());
}

// azure.md 24, rows 17 to 19
#[tokio::test(start_paused = true)]
async fn aks_makes_and_deletes_machines() {
    let World { client, double, .. } = &World::new();
    let pool = support::pool(double);
    let machine = support::aks_machine();
    let running = client.put_machine(&pool, "m1", &machine, &PutMachine::default()).await.unwrap();
    let made = running.wait().await.unwrap();
    let version = made.properties.as_ref().unwrap().e_tag.clone();
    assert!(version.is_some());
    let wrong = PutMachine { if_match: Some("other".to_owned()), ..PutMachine::default() };
    let error = client.put_machine(&pool, "m1", &made, &wrong).await.err().unwrap();
    assert!(error.is_precondition_failed(), "{error}");
    let right = PutMachine { if_match: version, ..PutMachine::default() };
    client.put_machine(&pool, "m1", &made, &right).await.unwrap().done().await.unwrap();
    assert_eq!(client.machines(&pool).await.unwrap().len(), 1);
    let batch = PutMachine { batch: Some(support::batch(&["m2", "m3"])), if_match: None };
    client.put_machine(&pool, "m2", &machine, &batch).await.unwrap().done().await.unwrap();
    assert_eq!(client.machines(&pool).await.unwrap().len(), 3);
    assert!(client.machine(&pool, "m3").await.is_ok());
    client
        .delete_machines(&pool, &["m1".to_owned(), "m2".to_owned(), "m3".to_owned()])
        .await
        .unwrap()
        .done()
        .await
        .unwrap();
    let error = client.delete_machines(&pool, &["m1".to_owned()]).await.err().unwrap();
    assert!(error.is_machine_not_found(), "{error}");
    let nowhere = azure::arm::MachinePool { pool: "other".to_owned(), ..pool };
    assert!(client.machines(&nowhere).await.unwrap_err().is_not_found());
}

// azure.md 24, rows 20 to 22
#[tokio::test(start_paused = true)]
async fn prices_bootstrapping_and_tokens_come_from_elsewhere() {
    let world = World::new();
    assert!(!world.client.retail_prices(LOCATION).await.unwrap().is_empty());
    let settings = world.double.change(|azure| azure.settings.clone());
    let cluster = (settings.cluster_resource_group.as_str(), settings.cluster.as_str());
    let request = BootstrappingRequest { provision_profile: Some(support::profile()), ..support::values() };
    let answer = world.client.node_bootstrapping("nps.svc", cluster, &request).await.unwrap();
    assert!(answer.cse.is_some_and(|cse| !cse.is_empty()) && answer.custom_data.is_some());
}

// azure.md 24, LRO protocol
#[tokio::test(start_paused = true)]
async fn operations_end_in_every_form_they_can_take() {
    for form in [
        Form::AsyncOperation,
        Form::OperationLocation,
        Form::Location,
        Form::Both,
        Form::Body,
        Form::Immediate,
    ] {
        for retry_after in [None, Some(Duration::from_secs(11))] {
            let World { client, double, group } = &World::new();
            let is_silent = form == Form::Body;
            double.change(|azure| {
                azure.settings.set_every_lro(|lro| *lro = Lro { form, retry_after, ..*lro });
                // Deletions cannot be followed by what is gone.
                for kind in [Kind::VirtualMachine, Kind::NetworkInterface] {
                    let lro = Lro::new(if is_silent { Form::Location } else { form }, Duration::from_secs(5));
                    azure.settings.set_lro(kind, &Method::DELETE, lro);
                }
            });
            assert_eq!(world_interface(client, group).await, "aks-a", "{form:?}");
            let machine = support::machine(double, "aks-a");
            let machine =
                client.put_virtual_machine(group, "aks-a", &machine).await.unwrap().wait().await.unwrap();
            assert_eq!(
                machine.properties.unwrap().provisioning_state.as_deref(),
                Some("Succeeded"),
                "{form:?}"
            );
            client.delete_virtual_machine(group, "aks-a").await.unwrap().done().await.unwrap();
            assert!(double.names(Kind::VirtualMachine).is_empty(), "{form:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_forgotten_with_what_it_deleted_has_succeeded() {
    let World { client, double, group } = &World::new();
    world_interface(client, group).await;
    let machine = support::machine(double, "aks-a");
    client.put_virtual_machine(group, "aks-a", &machine).await.unwrap().done().await.unwrap();
    double.change(|azure| azure.settings.forgets_operations = true);
    client.delete_virtual_machine(group, "aks-a").await.unwrap().done().await.unwrap();
    assert!(double.names(Kind::VirtualMachine).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_fails_at_once_and_what_fails_later_say_the_same() {
    let World { client, double, group } = &World::new();
    world_interface(client, group).await;
    let machine = support::machine(double, "aks-a");
    let refusal = || Failure::of(Method::PUT, Kind::VirtualMachine);
    double.fail(refusal().at_once(409, "ZonalAllocationFailed", "no room"));
    let now = client.put_virtual_machine(group, "aks-a", &machine).await.err().unwrap();
    double.fail(refusal().later(409, "ZonalAllocationFailed", "no room"));
    let later = client.put_virtual_machine(group, "aks-a", &machine).await.unwrap().done().await.unwrap_err();
    for error in [now, later] {
        assert_eq!((error.code.as_str(), error.message.as_str()), ("ZonalAllocationFailed", "no room"));
        assert!(error.correlation_id.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_done_although_the_connection_broke_is_not_done_twice() {
    let World { client, double, group } = &World::new();
    double.fail(Failure::of(Method::PUT, Kind::NetworkInterface).lost_after());
    double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).lost_before());
    world_interface(client, group).await;
    let machine = support::machine(double, "aks-a");
    client.put_virtual_machine(group, "aks-a", &machine).await.unwrap().done().await.unwrap();
    assert_eq!(double.names(Kind::VirtualMachine), ["aks-a"]);
    assert_eq!(double.requests_of(&Method::PUT, Kind::NetworkInterface).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_beyond_what_azure_takes_is_made_in_order_and_once() {
    let World { client, double, group } = &World::new();
    double.throttle(Throttle::writes(Kind::NetworkInterface, 100, Duration::from_secs(30)));
    double.throttle(Throttle::reads(Kind::Operation, 500, Duration::from_secs(30)));
    let made =
        join_all((0..400).map(|number| {
            let name = format!("aks-{number}");
            async move {
                client.put_network_interface(group, &name, &support::interface(&name)).await?.done().await
            }
        }));
    for result in made.await {
        result.unwrap();
    }
    assert_eq!(double.names(Kind::NetworkInterface).len(), 400);
    let puts = double.requests_of(&Method::PUT, Kind::NetworkInterface);
    let accepted = puts.iter().filter(|each| each.status == Some(201)).count();
    assert_eq!(accepted, 400, "none of them twice");
    assert!(puts.len() < 900, "{} requests", puts.len());
}

#[tokio::test(start_paused = true)]
async fn images_of_aks_need_the_second_token() {
    let world = World::new();
    let gallery = Some("http://tokens.svc/sig/token".to_owned());
    let client = Client::new(Setup { gallery, ..world.setup() });
    let token = client.gallery_token().await;
    assert!(
        token.as_ref().is_ok_and(|token| token.as_ref().is_some_and(|token| !token.secret.is_empty())),
        "{token:?}"
    );
}

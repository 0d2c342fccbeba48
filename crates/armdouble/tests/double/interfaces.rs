//! Network interfaces.

use armdouble::{Failure, Kind, Reservation};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Azure, COMPUTE, NETWORK, seconds};

// azure.md 10.1 step 5
#[tokio::test(start_paused = true)]
async fn what_an_interface_refers_to_must_be_there() {
    let azure = Azure::new();
    let path = azure.interface_id("aks-a");
    let pool =
        format!("{}/backendAddressPools/old", azure.id("Microsoft.Network/loadBalancers", "kubernetes"));
    let mut body = azure.interface_body("aks-a");
    body["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] =
        json!([{"id": pool}]);
    let told =
        azure.ask(Method::PUT, &path, NETWORK, body.clone()).await.refused(400, "InvalidResourceReference");
    assert!(told.message().contains(&pool), "{}", told.message());
    body["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] =
        json!([{"id": pool.replace("old", "kubernetes")}]);
    azure.ask(Method::PUT, &path, NETWORK, body).await.is(201);
}

#[tokio::test(start_paused = true)]
async fn every_configuration_gets_an_address_until_the_subnet_is_full() {
    let azure = Azure::new();
    azure.double.change(|world| {
        let subnet = world.settings.subnet_id();
        world.change(&subnet, |subnet| subnet["properties"]["addressPrefix"] = json!("10.9.0.0/29"));
    });
    for (name, address) in [("aks-a", "10.9.0.4"), ("aks-b", "10.9.0.5"), ("aks-c", "10.9.0.6")] {
        azure.make_interface(name).await;
        let body = azure.get(&azure.interface_id(name), NETWORK).await.body;
        assert_eq!(body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"], address);
    }
    let path = azure.interface_id("aks-d");
    let body = azure.interface_body("aks-d");
    azure.ask(Method::PUT, &path, NETWORK, body.clone()).await.refused(400, "SubnetIsFull");
    azure.ask(Method::DELETE, &azure.interface_id("aks-b"), NETWORK, Value::Null).await.is(202);
    seconds(10).await;
    azure.ask(Method::PUT, &path, NETWORK, body).await.is(201);
}

// azure.md 24 row 12
#[tokio::test(start_paused = true)]
async fn a_patch_replaces_all_tags_of_an_interface() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    let path = azure.interface_id("aks-a");
    let told = azure.ask(Method::PATCH, &path, NETWORK, json!({"tags": {"a": "b"}})).await.is(200);
    assert_eq!(told.body["tags"], json!({"a": "b"}));
    let told = azure.ask(Method::PATCH, &path, NETWORK, json!({"location": "l"})).await;
    told.refused(400, "InvalidRequestFormat");
}

// azure.md 24 row 11
#[tokio::test(start_paused = true)]
async fn an_interface_that_stays_is_kept_for_its_machine_for_180_seconds() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    let mut body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    body["properties"]["networkProfile"]["networkInterfaces"][0]["properties"]["deleteOption"] =
        json!("Detach");
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body).await.is(201);
    azure.end(&told).await;
    let path = azure.interface_id("aks-a");
    azure.ask(Method::DELETE, &path, NETWORK, Value::Null).await.refused(400, "NicInUse");
    let told = azure.delete_machine("aks-a").await.is(202);
    azure.end(&told).await;
    let delete = || azure.ask(Method::DELETE, &path, NETWORK, Value::Null);
    let told = delete().await.refused(400, "NicReservedForAnotherVm");
    assert!(told.message().contains("180 seconds"), "{}", told.message());
    seconds(170).await;
    delete().await.refused(400, "NicReservedForAnotherVm");
    seconds(15).await;
    delete().await.is(202);
    seconds(5).await;
    delete().await.is(204);
}

#[tokio::test(start_paused = true)]
async fn a_refused_machine_can_keep_its_interface_too() {
    let azure = Azure::new();
    azure.double.change(|world| world.settings.refused_interfaces = Reservation::SameName);
    let failure =
        Failure::of(Method::PUT, Kind::VirtualMachine).at_once(409, "SkuNotAvailable", "None left.");
    azure.double.fail(failure);
    azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(409, "SkuNotAvailable");
    let path = azure.interface_id("aks-a");
    let told = azure.ask(Method::DELETE, &path, NETWORK, Value::Null).await;
    told.refused(400, "NicReservedForAnotherVm");
    seconds(180).await;
    azure.ask(Method::DELETE, &path, NETWORK, Value::Null).await.is(202);
}

// Azure/karpenter-provider-azure#92: NicReservedForAnotherVM
#[tokio::test(start_paused = true)]
async fn an_interface_can_be_kept_from_the_next_machine_of_the_same_name_too() {
    for (kept, status) in [(Reservation::SameName, 201), (Reservation::Strict, 400)] {
        let azure = Azure::new();
        azure.double.change(|world| world.settings.refused_interfaces = kept);
        let failure =
            Failure::of(Method::PUT, Kind::VirtualMachine).at_once(409, "SkuNotAvailable", "None left.");
        azure.double.fail(failure);
        azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(409, "SkuNotAvailable");
        let body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
        azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body).await.is(status);
    }
}

// azure.md 24 rows 13, 14
#[tokio::test(start_paused = true)]
async fn the_network_of_the_cluster_is_there_and_lists_have_pages() {
    let azure = Azure::new();
    azure.double.change(|world| world.settings.page_size = 1);
    let balancers = azure.id("Microsoft.Network/loadBalancers", "");
    let first = azure.get(balancers.trim_end_matches('/'), NETWORK).await.is(200).body;
    assert_eq!(first["value"][0]["name"], "kubernetes");
    let next = first["nextLink"].as_str().unwrap();
    let second = azure.with(Method::GET, next, &[], None).await.is(200).body;
    assert_eq!(second["value"][0]["name"], "kubernetes-internal");
    assert!(second["nextLink"].is_null());
    let network = azure.id("Microsoft.Network/virtualNetworks", "aks-vnet-12345678");
    let found = azure.get(&network, NETWORK).await.is(200).body;
    assert_eq!(found["properties"]["resourceGuid"], "a519e60a-cac0-40b2-b883-084477fe6f5c");
    azure.get(&format!("{network}/subnets/aks-subnet"), NETWORK).await.is(200);
    azure.get(&format!("{network}/subnets/none"), NETWORK).await.refused(404, "ResourceNotFound");
    let groups = azure.id("Microsoft.Network/networkSecurityGroups", "");
    let groups = azure.get(groups.trim_end_matches('/'), NETWORK).await.is(200).body;
    assert_eq!(groups["value"][0]["name"], "aks-agentpool-12345678-nsg");
}

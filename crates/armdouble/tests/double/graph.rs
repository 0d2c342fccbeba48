//! The Resource Graph.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::support::{Azure, NETWORK, seconds};

const MACHINES: &str = "microsoft.compute/virtualmachines";
const INTERFACES: &str = "microsoft.network/networkinterfaces";

// azure.md 24 row 16
#[tokio::test(start_paused = true)]
async fn machines_and_interfaces_are_found_by_type_group_and_tags() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    azure.make_interface("aks-b").await;
    let told = azure
        .ask(Method::PATCH, &azure.interface_id("aks-b"), NETWORK, json!({"tags": {"other": "x"}}))
        .await;
    told.is(200);
    assert_eq!(azure.graph(MACHINES).await, ["aks-a"]);
    assert_eq!(azure.graph(INTERFACES).await, ["aks-a"]);
    let told = azure.ask_graph(MACHINES, json!({"resultFormat": "objectArray"})).await.is(200);
    let row = &told.body["data"][0];
    assert_eq!(row["type"], MACHINES);
    assert_eq!(row["resourceGroup"], "mc_walk_walk_southcentralus");
    assert_eq!(row["zones"], json!(["1"]));
    assert_eq!(row["properties"]["hardwareProfile"]["vmSize"], "Standard_D2s_v3");
    assert!(row["properties"]["osProfile"]["customData"].is_null());
}

#[tokio::test(start_paused = true)]
async fn it_is_as_late_as_it_is_told_to_be() {
    let azure = Azure::new();
    azure.double.change(|world| world.settings.graph_lag = Duration::from_secs(30));
    azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.is(201);
    seconds(29).await;
    assert_eq!(azure.graph(MACHINES).await, Vec::<String>::new());
    seconds(1).await;
    assert_eq!(azure.graph(MACHINES).await, ["aks-a"]);
    let told = azure.delete_machine("aks-a").await;
    azure.end(&told).await;
    azure.get_machine("aks-a").await.is(404);
    assert_eq!(azure.graph(MACHINES).await, ["aks-a"], "gone for all but the graph");
    seconds(3600).await;
    assert_eq!(azure.graph(MACHINES).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn its_pages_are_followed_by_a_token() {
    let azure = Azure::new();
    for name in ["aks-a", "aks-b", "aks-c"] {
        azure.make_machine(name).await;
    }
    azure.double.change(|world| world.settings.page_size = 2);
    let first = azure.ask_graph(MACHINES, json!({"resultFormat": "objectArray"})).await.is(200).body;
    assert_eq!((first["count"].as_u64(), first["totalRecords"].as_u64()), (Some(2), Some(3)));
    let token = first["$skipToken"].clone();
    let options = json!({"resultFormat": "objectArray", "$skipToken": token});
    let second = azure.ask_graph(MACHINES, options).await.is(200).body;
    assert_eq!(second["data"][0]["name"], "aks-c");
    assert!(second["$skipToken"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_query_that_it_does_not_know_is_refused() {
    let azure = Azure::new();
    let path = "/providers/Microsoft.ResourceGraph/resources";
    let body = json!({"query": "Resources | where name == \"a\"", "subscriptions": ["s"]});
    let told = azure.ask(Method::POST, path, "2024-04-01", body).await.refused(400, "BadRequest");
    assert_eq!(told.body["error"]["details"][0]["code"], "InvalidQuery");
    let told = azure.ask(Method::POST, path, "2024-04-01", json!({"subscriptions": []})).await;
    told.refused(400, "InvalidParameter");
}

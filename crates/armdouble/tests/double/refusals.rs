//! Failures that tests ask for, throttling, and what is refused before anything else.

use std::time::Duration;

use armdouble::{Failure, Kind, Refusal, Throttle};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::{Azure, COMPUTE, NETWORK, seconds};

#[tokio::test(start_paused = true)]
async fn a_failure_hits_only_what_it_is_about_and_as_often_as_said() {
    let azure = Azure::new();
    let failure =
        Failure::of(Method::PUT, Kind::VirtualMachine).size("Standard_D2s_v3").zone("1").priority("Regular");
    azure.double.fail(failure.at_once(409, "ZonalAllocationFailed", "No capacity.").times(2));
    azure.put_machine("aks-a", "Standard_D2s_v3", "2").await.is(201);
    azure.put_machine("aks-b", "Standard_D4s_v3", "1").await.is(201);
    azure.put_machine("aks-c", "Standard_D2s_v3", "1").await.refused(409, "ZonalAllocationFailed");
    azure.put_machine("aks-c", "Standard_D2s_v3", "1").await.refused(409, "ZonalAllocationFailed");
    azure.put_machine("aks-c", "Standard_D2s_v3", "1").await.is(201);
}

#[tokio::test(start_paused = true)]
async fn a_failure_can_last_until_it_is_taken_back() {
    let azure = Azure::new();
    azure.double.fail(Failure::of(Method::GET, Kind::VirtualMachine).name("aks-a").always());
    for _ in 0..3 {
        azure.get_machine("aks-a").await.refused(500, "InternalServerError");
        azure.get_machine("aks-b").await.refused(404, "ResourceNotFound");
    }
    azure.double.fail_no_more();
    azure.get_machine("aks-a").await.refused(404, "ResourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_connection_can_break_before_and_after_the_work() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    let put = async || {
        let url = format!("https://management.azure.com{}?api-version={COMPUTE}", azure.machine_id("aks-a"));
        let body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
        let request = Request::put(url).header("authorization", "Bearer token");
        azure.send(request.body(Bytes::from(body.to_string())).unwrap()).await
    };
    azure.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).lost_before());
    assert!(put().await.is_none());
    assert_eq!(azure.machines(), Vec::<String>::new());
    azure.double.fail(Failure::of(Method::PUT, Kind::VirtualMachine).lost_after());
    assert!(put().await.is_none());
    assert_eq!(azure.machines(), ["aks-a"]);
    let recorded = azure.double.requests_of(&Method::PUT, Kind::VirtualMachine);
    assert_eq!(recorded.iter().map(|each| each.status).collect::<Vec<_>>(), [None, None]);
}

// azure.md 25.7: disk encryption sets
#[tokio::test(start_paused = true)]
async fn a_disk_encryption_set_can_be_out_of_reach() {
    let azure = Azure::new();
    let id = azure.id("Microsoft.Compute/diskEncryptionSets", "keys");
    azure.get(&id, "2025-01-02").await.refused(404, "ResourceNotFound");
    azure.double.change(|world| world.put(json!({"id": id, "location": "southcentralus", "properties": {}})));
    let failure = Failure::of(Method::GET, Kind::DiskEncryptionSet);
    azure.double.fail(failure.clone().at_once(401, "AuthenticationFailed", "No."));
    azure.double.fail(failure.at_once(403, "AuthorizationFailed", "No."));
    azure.get(&id, "2025-01-02").await.refused(401, "AuthenticationFailed");
    azure.get(&id, "2025-01-02").await.refused(403, "AuthorizationFailed");
    azure.get(&id, "2025-01-02").await.is(200);
}

#[tokio::test(start_paused = true)]
async fn a_window_has_only_so_many_calls() {
    let azure = Azure::new();
    azure.double.throttle(Throttle::writes(Kind::NetworkInterface, 2, Duration::from_secs(30)));
    let put = |name: &'static str| {
        let azure = &azure;
        async move { azure.ask(Method::PUT, &azure.interface_id(name), NETWORK, azure.interface_body(name)).await }
    };
    put("aks-a").await.is(201);
    seconds(10).await;
    put("aks-b").await.is(201);
    let told = put("aks-c").await.refused(429, "TooManyRequests");
    assert_eq!(told.header("retry-after"), Some("20"));
    // Reading is something else.
    azure.get(&azure.interface_id("aks-a"), NETWORK).await.is(200);
    seconds(19).await;
    assert_eq!(put("aks-c").await.header("retry-after"), Some("1"));
    seconds(1).await;
    put("aks-c").await.is(201);
    azure.double.throttle_no_more();
    for name in ["aks-d", "aks-e", "aks-f"] {
        put(name).await.is(201);
    }
}

#[tokio::test(start_paused = true)]
async fn the_resource_graph_says_when_its_quota_comes_back() {
    let azure = Azure::new();
    azure.double.throttle(Throttle::writes(Kind::ResourceGraph, 1, Duration::from_secs(5)));
    azure.ask_graph("t", json!({})).await.is(200);
    let told = azure.ask_graph("t", json!({})).await.refused(429, "RateLimiting");
    assert_eq!(told.header("x-ms-user-quota-resets-after"), Some("00:00:05"));
    assert_eq!(told.header("retry-after"), Some("5"));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_say_who_he_is_gets_nothing() {
    let azure = Azure::new();
    let url = format!("https://management.azure.com{}?api-version={COMPUTE}", azure.machine_id("a"));
    let told = azure.send(Request::get(&url).body(Bytes::new()).unwrap()).await.unwrap();
    told.refused(401, "AuthenticationFailed");
    let expired = Request::get(&url).header("authorization", "Bearer armdouble.entra.0");
    let told = azure.send(expired.body(Bytes::new()).unwrap()).await.unwrap();
    told.refused(401, "ExpiredAuthenticationToken");
}

#[tokio::test(start_paused = true)]
async fn versions_subscriptions_and_groups_must_be_there() {
    let azure = Azure::new();
    let path = azure.machine_id("a");
    azure.with(Method::GET, &path, &[], None).await.refused(400, "MissingApiVersionParameter");
    azure.get(&path, "2015-01-01").await.refused(400, "NoRegisteredProviderFound");
    azure.double.change(|world| world.settings.has_strict_versions = false);
    azure.get(&path, "2015-01-01").await.refused(404, "ResourceNotFound");
    let other = path.replace("12345678-1234", "00000000-1234");
    azure.get(&other, COMPUTE).await.refused(404, "SubscriptionNotFound");
    let other = path.replace("MC_walk", "MC_run");
    azure.get(&other, COMPUTE).await.refused(404, "ResourceGroupNotFound");
    azure.get("/nothing", COMPUTE).await.refused(404, "InvalidResourceType");
    azure.ask(Method::POST, &path, COMPUTE, Value::Null).await.refused(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_azure_does_not_read_are_refused() {
    let azure = Azure::new();
    let path = azure.machine_id("aks-a");
    let mut body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    body["properties"]["hardwareProfile"]["size"] = json!("big");
    azure.ask(Method::PUT, &path, COMPUTE, body).await.refused(400, "BadRequest");
    let mut body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    body["location"] = json!("westus");
    azure.ask(Method::PUT, &path, COMPUTE, body).await.refused(400, "LocationNotAvailableForResourceType");
    let told = azure.ask(Method::PUT, &path, COMPUTE, Value::Null).await;
    told.refused(400, "InvalidRequestContent");
}

#[tokio::test(start_paused = true)]
async fn a_test_says_an_error_in_the_words_it_wants() {
    let azure = Azure::new();
    let refusal =
        Refusal::new(409, "OperationNotAllowed", "outer").target("t").detail(json!({"code": "inner"})).flat();
    azure
        .double
        .fail(Failure::of(Method::GET, Kind::VirtualMachine).refused(refusal.header("retry-after", "3")));
    let told = azure.get_machine("a").await.refused(409, "OperationNotAllowed");
    assert_eq!(
        told.body,
        json!({"code": "OperationNotAllowed", "message": "outer", "target": "t", "details": [{"code": "inner"}]})
    );
    assert_eq!(told.header("retry-after"), Some("3"));
}

#[tokio::test(start_paused = true)]
async fn every_request_is_remembered() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    azure.double.forget_requests();
    let path = format!("{}?api-version={NETWORK}", azure.interface_id("aks-a"));
    let body = json!({"tags": {"a": "b"}});
    azure.with(Method::PATCH, &path, &[("user-agent", "karpenter-aks/v1")], Some(body.clone())).await.is(200);
    let all = azure.double.requests();
    let [request] = &all[..] else { panic!("{all:?}") };
    assert_eq!((request.method.as_str(), request.kind), ("PATCH", Kind::NetworkInterface));
    assert_eq!(request.name, "aks-a");
    assert_eq!(request.path, azure.interface_id("aks-a"));
    assert_eq!(request.query["api-version"], NETWORK);
    assert_eq!(request.headers["user-agent"], "karpenter-aks/v1");
    assert_eq!((&request.body, request.status), (&body, Some(200)));
    assert_eq!(request.answer["tags"], json!({"a": "b"}));
}

// AKS: nodeResourceGroupProfile.restrictionLevel ReadOnly
#[tokio::test(start_paused = true)]
async fn only_aks_changes_a_resource_group_that_is_locked() {
    let azure = Azure::new();
    azure.double.change(armdouble::World::lock_node_resource_group);
    let path = azure.interface_id("aks-a");
    let body = azure.interface_body("aks-a");
    let told = azure.ask(Method::PUT, &path, NETWORK, body).await;
    told.refused(403, "DenyAssignmentAuthorizationFailed");
    let groups = azure.id("Microsoft.Network/networkSecurityGroups", "");
    azure.get(groups.trim_end_matches('/'), NETWORK).await.is(200);
    let cluster = azure.double.change(|world| world.get(&world.settings.cluster_id()).cloned()).unwrap();
    assert_eq!(cluster["properties"]["nodeResourceGroupProfile"]["restrictionLevel"], "ReadOnly");
}

#[tokio::test(start_paused = true)]
async fn a_call_can_stay_without_an_answer_for_ever() {
    let azure = Azure::new();
    azure.double.fail(Failure::of(Method::GET, Kind::SecurityGroup).silent());
    let groups = azure.id("Microsoft.Network/networkSecurityGroups", "");
    let ask = || azure.get(groups.trim_end_matches('/'), NETWORK);
    let waited = tokio::time::timeout(std::time::Duration::from_hours(24), ask()).await;
    assert!(waited.is_err(), "nobody answers");
    assert_eq!(azure.double.requests().last().unwrap().status, None);
    ask().await.is(200);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_can_be_there_nevertheless() {
    let azure = Azure::new();
    let failure =
        Failure::of(Method::PUT, Kind::VirtualMachine).left_behind(409, "AllocationFailed", "No room.");
    azure.double.fail(failure);
    azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(409, "AllocationFailed");
    let machine = azure.get(&azure.machine_id("aks-a"), COMPUTE).await.is(200).body;
    assert_eq!(machine["properties"]["provisioningState"], "Failed");
}

//! What is asked, how often, and as whom.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::names::metrics::azure::API_CALLS;
use clock::Clock;
use futures::future::join_all;
use jiff::Timestamp;

use super::script::{Script, answer, silence};
use super::types::bootstrap::BootstrappingRequest;
use super::types::extension::Extension;
use super::types::machine::{BatchMachine, BatchPutMachine, Machine};
use super::types::nic::{NetworkInterface, TagsPatch};
use super::types::vm::{VirtualMachine, VirtualMachinePatch};
use super::{Client, Error, MachinePool, PutMachine, Setup};
use crate::environment::Environment;

const EMPTY: &str = r#"{"value":[]}"#;

fn header(script: &Script, number: usize, name: &str) -> Option<String> {
    script.request(number).headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

// azure.md 18, ARM retries
#[tokio::test(start_paused = true)]
async fn what_may_pass_by_itself_is_asked_four_times_with_growing_waits() {
    let script =
        Script::new([answer(500, &[], ""), silence(), answer(504, &[], ""), answer(200, &[], EMPTY)]);
    assert!(script.client().usages("l").await.unwrap().is_empty());
    let times = script.times();
    for (number, (low, high)) in [(0.64, 1.04), (1.92, 3.12), (4.48, 7.28)].into_iter().enumerate() {
        let wait = times[number + 1] - times[number];
        assert!((low..=high).contains(&wait), "wait {number} is {wait}");
    }
    let script = Script::new((0..9).map(|_| answer(503, &[], r#"{"error":{"code":"Busy","message":"m"}}"#)));
    let error = script.client().usages("l").await.unwrap_err();
    assert_eq!((error.status, error.code.as_str(), script.asked().len()), (Some(503), "Busy", 4));
    let script = Script::new((0..9).map(|_| silence()));
    let error = script.client().usages("l").await.unwrap_err();
    assert_eq!((error.to_string().as_str(), script.asked().len()), ("GET l/usages, connection reset", 4));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same() {
    let times = async |seed| {
        let script = Script::new((0..4).map(|_| silence()));
        let client = Client::new(Setup { seed, ..script.setup() });
        let _ = client.usages("l").await;
        script.times()
    };
    assert_eq!(times(1).await, times(1).await);
    assert_ne!(times(1).await, times(2).await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_asked_again() {
    let script = Script::new([answer(409, &[], "")]);
    assert_eq!(script.client().usages("l").await.unwrap_err().status, Some(409));
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_wait_waits_as_long_but_gives_up_beyond_a_minute() {
    let script = Script::new([answer(503, &[("retry-after", "20")], ""), answer(200, &[], EMPTY)]);
    assert!(script.client().usages("l").await.is_ok());
    assert_eq!(script.times(), [0.0, 20.0]);
    let script = Script::new([answer(503, &[("retry-after", "61")], "")]);
    assert_eq!(script.client().usages("l").await.unwrap_err().status, Some(503));
}

#[tokio::test(start_paused = true)]
async fn when_azure_has_had_enough_everybody_waits_but_only_with_requests_of_that_kind() {
    let script = Script::new([
        answer(429, &[("retry-after", "30")], ""),
        answer(200, &[], EMPTY),
        answer(200, &[], EMPTY),
        answer(200, &[], EMPTY),
        answer(200, &[], r#"{"name":"i"}"#),
    ]);
    let client = script.client();
    let first = client.usages("first");
    let later = async {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let (a, b, c) =
            tokio::join!(client.usages("second"), client.usages("third"), client.load_balancers("other"));
        (a.is_ok(), b.is_ok(), c.is_ok())
    };
    let (first, later) = tokio::join!(first, later);
    assert!(first.is_ok());
    assert_eq!(later, (true, true, true));
    assert_eq!(script.times(), [0.0, 5.0, 30.0, 30.0, 30.0]);
    assert!(script.asked()[1].contains("loadBalancers"), "{:?}", script.asked());
}

// Microsoft.Network answers 429 RetryableError while something that a request refers to is being changed
#[tokio::test(start_paused = true)]
async fn who_is_in_the_way_of_another_operation_waits_alone() {
    let busy = r#"{"error":{"code":"RetryableError","message":"A retryable error occurred.","details":[{
        "code":"RetryableErrorDueToAnotherOperation","message":"The call can be retried in 10 seconds."}]}}"#;
    let made = r#"{"properties":{"provisioningState":"Succeeded"}}"#;
    let script = Script::new([
        answer(429, &[("retry-after", "10")], busy),
        answer(201, &[], made),
        answer(201, &[], made),
        answer(201, &[], made),
    ]);
    let client = script.client();
    let body = NetworkInterface::default();
    let put = |name: &'static str| client.put_network_interface("g", name, &body);
    let later = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        put("c").await
    };
    let (a, b, c) = tokio::join!(put("a"), put("b"), later);
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let times = script.times();
    assert_eq!(times[..3], [0.0, 0.0, 1.0], "the others go on");
    assert!((10.0..=15.0).contains(&times[3]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_azure_wants_to_be_left_alone_for_long() {
    let script = Script::new([answer(429, &[("retry-after", "300")], ""), answer(200, &[], EMPTY)]);
    let client = script.client();
    assert!(client.usages("l").await.unwrap_err().is_throttled());
    let error = client.usages("l").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET l/usages, 429, TooManyRequests: not sent, because Azure wants no requests of this kind for another 300s"
    );
    assert!(error.is_throttled() && error.is_transient());
    tokio::time::advance(std::time::Duration::from_secs(270)).await;
    assert!(client.usages("l").await.is_ok());
    assert_eq!(script.times(), [0.0, 300.0]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_time_holds_only_itself_up() {
    let script = Script::new([answer(429, &[], ""), answer(200, &[], EMPTY), answer(200, &[], EMPTY)]);
    let client = script.client();
    let (a, b) = tokio::join!(client.usages("a"), client.usages("b"));
    assert!(a.is_ok() && b.is_ok());
    assert!(script.times()[1].abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_read() {
    let next = "https://management.azure.com/next?$skiptoken=a%20b";
    let script = Script::new([
        answer(200, &[], &format!(r#"{{"value":[{{"name":{{"value":"a"}}}}],"nextLink":"{next}"}}"#)),
        answer(200, &[], r#"{"value":[{"name":{"value":"b"}}],"nextLink":""}"#),
    ]);
    assert_eq!(script.client().usages("l").await.unwrap().len(), 2);
    assert_eq!(script.asked()[1], "0.0 GET /next?$skiptoken=a%20b");
    assert_eq!(header(&script, 1, "authorization").as_deref(), Some("Bearer secret"));
    let again = format!(r#"{{"value":[],"nextLink":"{next}"}}"#);
    let script = Script::new([answer(200, &[], &again), answer(200, &[], &again)]);
    let error = script.client().usages("l").await.unwrap_err();
    assert!(error.to_string().contains("its own successor"), "{error}");
    let script = Script::new([answer(200, &[], &again), answer(403, &[], "")]);
    assert!(script.client().usages("l").await.unwrap_err().is_forbidden(), "half a list is none");
}

#[tokio::test(start_paused = true)]
async fn one_size_that_cannot_be_read_hides_no_other() {
    let body = r#"{"value":[{"name":"a"},{"name":["no","text"]},{"name":"b"}]}"#;
    let found = Script::new([answer(200, &[], body)]).client().skus("l").await.unwrap();
    assert_eq!(found.len(), 2);
    let pool = MachinePool::default();
    let machines = Script::new([answer(200, &[], body)]).client().machines(&pool).await;
    assert!(machines.is_err(), "but a machine that is left out would look like one that is gone");
    let error = Script::new([answer(200, &[("x-ms-request-id", "r")], "<html>")])
        .client()
        .skus("l")
        .await
        .unwrap_err();
    assert!(
        error.to_string().ends_with("(correlation id r)") && error.to_string().contains("reading the answer")
    );
}

#[tokio::test(start_paused = true)]
async fn every_request_says_who_asks() {
    let script = Script::new([answer(200, &[], "{}")]);
    script.client().virtual_machine("g", "a").await.unwrap();
    let asked = |name| header(&script, 0, name);
    assert_eq!(asked("authorization").as_deref(), Some("Bearer secret"));
    assert_eq!(asked("user-agent").as_deref(), Some("karpenter-aks/v1.2.3"));
    assert_eq!(asked("accept").as_deref(), Some("application/json"));
    assert_eq!(asked("x-ms-authorization-auxiliary"), None);
    assert!(!format!("{:?}", script.request(0).headers()).contains("secret"), "not even in the log");
}

/// Asks for everything once.
async fn everything(client: &Client) {
    let pool = MachinePool { group: "c".to_owned(), cluster: "k".to_owned(), pool: "p".to_owned() };
    let subnet = "/subscriptions/t/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/s";
    let network = "/subscriptions/t/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v";
    let keys = "/subscriptions/t/resourceGroups/n/providers/Microsoft.Compute/diskEncryptionSets/d";
    let _ = client.skus("eastus").await;
    let _ = client.usages("eastus").await;
    let _ = client.community_image_versions("eastus", "G-1", "2204gen2containerd").await;
    let _ = client.node_image_versions("eastus").await;
    let _ = client.virtual_machine("g", "a").await;
    let _ = client.put_virtual_machine("g", "a", &VirtualMachine::default()).await;
    let _ = client.patch_virtual_machine("g", "a", &VirtualMachinePatch::default()).await;
    let _ = client.delete_virtual_machine("g", "a").await;
    let _ = client.put_extension("g", "a", "e", &Extension::default()).await;
    let _ = client.patch_extension("g", "a", "e", &TagsPatch::default()).await;
    let _ = client.put_network_interface("g", "a", &NetworkInterface::default()).await;
    let _ = client.network_interface("g", "a").await;
    let _ = client.delete_network_interface("g", "a").await;
    let _ = client.patch_network_interface("g", "a", &TagsPatch::default()).await;
    let _ = client.network_security_groups("g").await;
    let _ = client.load_balancers("g").await;
    let _ = client.virtual_network(network).await;
    let _ = client.subnet(subnet).await;
    let _ = client.disk_encryption_set(keys).await;
    let _ = client.virtual_machines("MC_g").await;
    let _ = client.network_interfaces("MC_g").await;
    let _ = client.put_machine(&pool, "m", &Machine::default(), &PutMachine::default()).await;
    let _ = client.machine(&pool, "m").await;
    let _ = client.machines(&pool).await;
    let _ = client.delete_machines(&pool, &["m".to_owned()]).await;
    let _ = client.retail_prices("eastus").await;
    let _ = client.node_bootstrapping("nps.svc:8080", ("c", "k"), &BootstrappingRequest::default()).await;
}

// azure.md 24, rows 1 to 21
#[tokio::test(start_paused = true)]
async fn every_operation_has_its_method_address_and_version() {
    let script = Script::new((0..40).map(|_| answer(404, &[], "")));
    let client = script.client();
    everything(&client).await;
    let lines: Vec<String> = script.asked().iter().map(|line| line["0.0 ".len()..].to_owned()).collect();
    expect_test::expect![[r"
        GET /subscriptions/sub/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20%27eastus%27
        GET /subscriptions/sub/providers/Microsoft.Compute/locations/eastus/usages?api-version=2025-04-01
        GET /subscriptions/sub/providers/Microsoft.Compute/locations/eastus/communityGalleries/G-1/images/2204gen2containerd/versions?api-version=2025-03-03
        GET /subscriptions/sub/providers/Microsoft.ContainerService/locations/eastus/nodeImageVersions?api-version=2026-04-02-preview
        GET /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a?api-version=2025-04-01
        PUT /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a?api-version=2025-04-01
        PATCH /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a?api-version=2025-04-01
        DELETE /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a?api-version=2025-04-01&forceDeletion=true
        PUT /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a/extensions/e?api-version=2025-04-01
        PATCH /subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a/extensions/e?api-version=2025-04-01
        PUT /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/a?api-version=2022-01-01
        GET /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/a?api-version=2022-01-01
        DELETE /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/a?api-version=2022-01-01
        PATCH /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/a?api-version=2022-01-01
        GET /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/networkSecurityGroups?api-version=2022-01-01
        GET /subscriptions/sub/resourceGroups/g/providers/Microsoft.Network/loadBalancers?api-version=2022-01-01
        GET /subscriptions/t/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v?api-version=2022-01-01
        GET /subscriptions/t/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v/subnets/s?api-version=2022-01-01
        GET /subscriptions/t/resourceGroups/n/providers/Microsoft.Compute/diskEncryptionSets/d?api-version=2025-01-02
        POST /providers/Microsoft.ResourceGraph/resources?api-version=2024-04-01
        POST /providers/Microsoft.ResourceGraph/resources?api-version=2024-04-01
        PUT /subscriptions/sub/resourceGroups/c/providers/Microsoft.ContainerService/managedClusters/k/agentPools/p/machines/m?api-version=2026-04-02-preview
        GET /subscriptions/sub/resourceGroups/c/providers/Microsoft.ContainerService/managedClusters/k/agentPools/p/machines/m?api-version=2026-04-02-preview
        GET /subscriptions/sub/resourceGroups/c/providers/Microsoft.ContainerService/managedClusters/k/agentPools/p/machines?api-version=2026-04-02-preview
        POST /subscriptions/sub/resourceGroups/c/providers/Microsoft.ContainerService/managedClusters/k/agentPools/p/deleteMachines?api-version=2026-04-02-preview
        GET /api/retail/prices?api-version=2023-01-01-preview&$filter=priceType%20eq%20%27Consumption%27%20and%20currencyCode%20eq%20%27USD%27%20and%20serviceFamily%20eq%20%27Compute%27%20and%20serviceName%20eq%20%27Virtual%20Machines%27%20and%20armRegionName%20eq%20%27eastus%27
        GET /subscriptions/sub/resourceGroups/c/providers/Microsoft.ContainerService/managedclusters/k/nodeBootstrapping"]]
    .assert_eq(&lines.join("\n"));
    let hosts: Vec<String> = (0..lines.len())
        .map(|number| script.request(number).uri().authority().unwrap().to_string())
        .collect();
    assert!(hosts[..25].iter().all(|host| host == "management.azure.com"));
    assert_eq!(hosts[25..], ["prices.azure.com", "nps.svc:8080"]);
    assert_eq!(header(&script, 25, "authorization"), None, "prices are for everybody");
    assert!(header(&script, 26, "authorization").is_some());
    assert_eq!(script.request(24).body(), r#"{"machineNames":["m"]}"#);
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_operation_with_their_repetitions() {
    let script = Script::new([silence(), answer(200, &[], EMPTY), answer(200, &[], EMPTY)]);
    let setup = script.setup();
    let metrics = setup.metrics.clone();
    let client = Client::new(setup);
    assert!(client.skus("l").await.is_ok() && client.usages("l").await.is_ok());
    assert_eq!(metrics.value(&API_CALLS, &["compute:ListSkus"]), Some(2.0));
    assert_eq!(metrics.value(&API_CALLS, &["compute:ListUsages"]), Some(1.0));
}

// azure.md 11.3, 11.4, 11.6
#[tokio::test(start_paused = true)]
async fn machines_are_put_with_headers_of_their_own() {
    let script = Script::new((0..2).map(|_| answer(412, &[], r#"{"code":"ConditionNotMet","message":"m"}"#)));
    let client = script.client();
    let pool = MachinePool { group: "c".to_owned(), cluster: "k".to_owned(), pool: "p".to_owned() };
    let tags = BTreeMap::from([("team".to_owned(), "é".to_owned())]);
    let one = BatchMachine { machine_name: "m".to_owned(), zones: vec!["1".to_owned()], tags };
    let with = PutMachine {
        batch: Some(BatchPutMachine { batch_machines: vec![one] }),
        if_match: Some("\"v1\"".to_owned()),
    };
    let error = client.put_machine(&pool, "m", &Machine::default(), &with).await.err().unwrap();
    assert!(error.is_precondition_failed() && error.has_code("ConditionNotMet"));
    assert_eq!(header(&script, 0, "AllowSpotVMSystemNode").as_deref(), Some("true"));
    assert_eq!(header(&script, 0, "If-Match").as_deref(), Some("\"v1\""));
    assert_eq!(
        header(&script, 0, "BatchPutMachine").as_deref(),
        Some(r#"{"batchMachines":[{"machineName":"m","zones":["1"],"tags":{"team":"\u00e9"}}]}"#)
    );
    let _ = client.put_machine(&pool, "m", &Machine::default(), &PutMachine::default()).await;
    assert_eq!((header(&script, 1, "BatchPutMachine"), header(&script, 1, "If-Match")), (None, None));
}

// azure.md 11.4, error contract
#[tokio::test(start_paused = true)]
async fn what_became_of_each_machine_of_a_batch_can_be_told_from_the_error() {
    let body = r#"{"code":"BatchMachineClientError","message":"some","details":[{"code":"SkuNotAvailable","message":"no","target":"m2"}]}"#;
    let script = Script::new([answer(400, &[], body)]);
    let put = script.client();
    let error =
        put.put_machine(&MachinePool::default(), "m", &Machine::default(), &PutMachine::default()).await;
    let error: Error = error.err().unwrap();
    assert_eq!(error.code, "BatchMachineClientError");
    assert_eq!(error.details[0].target.as_deref(), Some("m2"));
}

#[tokio::test(start_paused = true)]
async fn the_graph_is_asked_page_by_page() {
    let row = |name: &str| format!(r#"{{"id":"/x/{name}","name":"{name}","tags":{{"a":"b"}}}}"#);
    let script = Script::new([
        answer(200, &[], &format!(r#"{{"data":[{}],"$skipToken":"t"}}"#, row("A"))),
        answer(200, &[], &format!(r#"{{"data":[{}]}}"#, row("B"))),
    ]);
    let found = script.client().virtual_machines("MC_G").await.unwrap();
    let ids: Vec<_> = found.iter().filter_map(|machine| machine.id.as_deref()).collect();
    assert_eq!(ids, ["/x/a", "/x/b"]);
    let body = |number| String::from_utf8(script.request(number).body().to_vec()).unwrap();
    assert!(
        body(0).contains(r#""subscriptions":["sub"],"options":{"resultFormat":"objectArray"}"#),
        "{}",
        body(0)
    );
    assert!(body(1).contains(r#""$skipToken":"t""#), "{}", body(1));
    let script = Script::new([answer(200, &[], r#"{"data":[{"id":"/x/a","name":"a"}]}"#)]);
    let error = script.client().network_interfaces("g").await.unwrap_err();
    assert!(error.to_string().ends_with("the network interface a has no tags"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn prices_are_read_page_by_page() {
    let script = Script::new([
        answer(
            200,
            &[],
            r#"{"Items":[{"armSkuName":"a","retailPrice":0.5}],"NextPageLink":"https://prices.azure.com/next"}"#,
        ),
        answer(
            200,
            &[],
            r#"{"Items":[{"armSkuName":"b","retailPrice":1},{"armSkuName":3}],"NextPageLink":null}"#,
        ),
    ]);
    assert_eq!(script.client().retail_prices("eastus").await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_cloud_is_asked_elsewhere() {
    let script = Script::new([answer(200, &[], EMPTY)]);
    let client = Client::new(Setup { environment: Environment::china(), ..script.setup() });
    assert!(client.usages("chinaeast").await.is_ok());
    assert_eq!(script.request(0).uri().host(), Some("management.chinacloudapi.cn"));
    assert!(!client.environment().is_public());
}

// azure.md 18 and 25.5: the auxiliary token
#[tokio::test(start_paused = true)]
async fn machines_are_made_with_a_second_token_that_is_asked_for_when_it_must_be() {
    let token = |name: &str, expires: &str, refresh: &str| {
        answer(200, &[], &format!(r#"{{"Token":"{name}","ExpiresOn":"{expires}","RefreshOn":{refresh}}}"#))
    };
    let ok = || answer(200, &[], "{}");
    let script = Script::new([
        token("one", "1970-01-01T01:00:00Z", "\"0001-01-01T00:00:00Z\""),
        ok(),
        ok(),
        ok(),
        token("two", "1970-01-01T09:00:00Z", "\"1970-01-01T02:00:00Z\""),
        ok(),
        token("three", "1970-01-01T09:00:00Z", "null"),
        ok(),
    ]);
    let gallery = Some("http://tokens.svc/token".to_owned());
    let client = Client::new(Setup { gallery, ..script.setup() });
    let vm = async || client.virtual_machine("g", "a").await.unwrap();
    vm().await;
    vm().await;
    assert_eq!(script.asked()[0], "0.0 GET /token?scope=https%3A%2F%2Fmanagement.azure.com%2F%2F.default");
    assert_eq!(header(&script, 0, "authorization"), None);
    assert_eq!(header(&script, 2, "x-ms-authorization-auxiliary").as_deref(), Some("Bearer one"));
    client.network_interface("g", "a").await.unwrap();
    assert_eq!(header(&script, 3, "x-ms-authorization-auxiliary"), None, "only for machines");
    tokio::time::advance(std::time::Duration::from_mins(56)).await;
    vm().await;
    assert_eq!(header(&script, 5, "x-ms-authorization-auxiliary").as_deref(), Some("Bearer two"));
    tokio::time::advance(std::time::Duration::from_mins(65)).await;
    vm().await;
    assert_eq!(header(&script, 7, "x-ms-authorization-auxiliary").as_deref(), Some("Bearer three"));
    assert_eq!(client.gallery_token().await.unwrap().unwrap().secret.reveal(), "three");
    assert_eq!(script.asked().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_not_made_without_the_token_that_it_needs() {
    let script = Script::new([answer(403, &[], "no"), answer(200, &[], r#"{"Token":3}"#)]);
    let client = Client::new(Setup { gallery: Some("http://t/".to_owned()), ..script.setup() });
    let error = client.virtual_machine("g", "a").await.unwrap_err();
    assert_eq!(error.to_string(), "GET virtualMachines/a, getting a token, GET , 403, no");
    let error = client.virtual_machine("g", "a").await.unwrap_err();
    assert!(error.to_string().contains("it is no token, see line 1"), "{error}");
    assert!(Script::new([]).client().gallery_token().await.unwrap().is_none());
}

// azure.md 13.3
#[tokio::test(start_paused = true)]
async fn the_bootstrapping_service_is_asked_with_a_body_and_answers_in_plain_text_when_it_cannot() {
    let script = Script::new([
        answer(200, &[], r#"{"cse":"run","customData":"ZGF0YQ=="}"#),
        answer(400, &[], "unknown distro"),
    ]);
    let client = script.client();
    let request = BootstrappingRequest::default();
    let answered = client.node_bootstrapping("nps.svc", ("c", "k"), &request).await.unwrap();
    assert_eq!(answered.cse.as_deref(), Some("run"));
    assert_eq!(script.request(0).uri().scheme_str(), Some("http"));
    assert_eq!(script.request(0).body(), "{}");
    let error = client.node_bootstrapping("https://nps.svc", ("c", "k"), &request).await.unwrap_err();
    assert_eq!(error.to_string(), "GET k/nodeBootstrapping, 400, unknown distro");
}

#[tokio::test(start_paused = true)]
async fn the_bootstrapping_service_has_half_a_minute() {
    let script = Script::new((0..9).map(|_| answer(503, &[("retry-after", "25")], "")));
    let request = BootstrappingRequest::default();
    let error = script.client().node_bootstrapping("nps", ("c", "k"), &request).await.unwrap_err();
    assert_eq!(error.to_string(), "GET k/nodeBootstrapping, no answer came within 30s");
    assert!(error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_machines_are_made_although_azure_takes_two_hundred_in_half_a_minute() {
    let server = Arc::new(Crowded::new(200));
    let setup = Setup {
        clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
        ..Setup::new(Arc::<Crowded>::clone(&server), Arc::new(crate::auth::FixedToken::new("t")), "sub")
    };
    let client = Client::new(setup);
    let made =
        join_all(
            (0..1000).map(|number| {
                let client = client.clone();
                async move {
                    client.put_virtual_machine("g", &format!("a{number}"), &VirtualMachine::default()).await
                }
            }),
        )
        .await;
    assert!(made.iter().all(Result::is_ok));
    let (asked, machines) = server.seen();
    assert_eq!(machines, 1000, "each of them once");
    assert!(asked < 2200, "{asked} requests for 1000 machines");
}

/// A server that takes so many requests in half a minute.
struct Crowded {
    begun: tokio::time::Instant,
    capacity: usize,
    seen: parking_lot::Mutex<(BTreeMap<u64, usize>, BTreeMap<String, usize>)>,
}

impl Crowded {
    fn new(capacity: usize) -> Self {
        Self { begun: tokio::time::Instant::now(), capacity, seen: parking_lot::Mutex::default() }
    }

    /// How many requests there were, and how many machines were made once.
    fn seen(&self) -> (usize, usize) {
        let seen = self.seen.lock();
        (seen.0.values().sum(), seen.1.values().filter(|count| **count == 1).count())
    }
}

impl super::Transport for Crowded {
    fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> futures::future::BoxFuture<'_, super::script::Answer> {
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let now = self.begun.elapsed().as_secs();
            let mut seen = self.seen.lock();
            let count = seen.0.entry(now / 30).or_default();
            *count += 1;
            if *count > self.capacity {
                return answer(429, &[("retry-after", &(30 - now % 30).to_string())], "");
            }
            *seen.1.entry(request.uri().path().to_owned()).or_default() += 1;
            answer(201, &[("azure-asyncoperation", "https://management.azure.com/o")], "")
        })
    }
}

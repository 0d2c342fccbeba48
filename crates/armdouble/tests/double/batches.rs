//! Machines of the AKS Machine API, alone and in batches.

use armdouble::{Failure, Kind};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Azure, KUBERNETES, Told, seconds};

fn body(size: &str, priority: &str) -> Value {
    json!({
        "zones": ["1"],
        "properties": {
            "hardware": {"vmSize": size}, "priority": priority, "mode": "User",
            "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202606.01.0",
            "operatingSystem": {"osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128},
            "kubernetes": {"nodeLabels": {"a": "b"}, "nodeInitializationTaints": ["karpenter.sh/unregistered:NoExecute"]},
            "tags": {"karpenter.sh_nodepool": "p", "karpenter.azure.com_aksmachine_nodeclaim": "claim"},
        },
    })
}

async fn put(azure: &Azure, name: &str, headers: &[(&str, &str)], body: Value) -> Told {
    let path = format!("{}?api-version={KUBERNETES}", azure.aks_machine(name));
    azure.with(Method::PUT, &path, headers, Some(body)).await
}

async fn get(azure: &Azure, name: &str) -> Told {
    azure.get(&azure.aks_machine(name), KUBERNETES).await
}

async fn delete(azure: &Azure, names: &[&str]) -> Told {
    let path = azure.aks_machine("").replace("/machines/", "/deleteMachines");
    azure.ask(Method::POST, &path, KUBERNETES, json!({"machineNames": names})).await
}

// azure.md 24 rows 17–19
#[tokio::test(start_paused = true)]
async fn a_machine_becomes_a_virtual_machine_and_goes_with_it() {
    let azure = Azure::new();
    let told = put(&azure, "claim", &[("AllowSpotVMSystemNode", "true")], body("Standard_D2s_v3", "Regular"))
        .await
        .is(201);
    assert_eq!(told.state(), "Creating");
    let properties = &told.body["properties"];
    let vm = "aks-karpenter-claim-12345678-vm";
    assert!(properties["resourceId"].as_str().unwrap().ends_with(&format!("/virtualMachines/{vm}")));
    assert_eq!(properties["status"]["creationTimestamp"], "1970-01-01T00:00:00Z");
    assert!(properties["eTag"].is_string());
    assert_eq!(azure.end(&told).await["status"], "Succeeded");
    assert_eq!(get(&azure, "claim").await.is(200).state(), "Succeeded");
    assert_eq!(azure.machines(), [vm]);
    // What AKS looks after is not in the lists of virtual machines.
    assert_eq!(azure.graph("microsoft.compute/virtualmachines").await, Vec::<String>::new());

    let told = delete(&azure, &["claim", "other"]).await.is(202);
    assert_eq!(get(&azure, "claim").await.state(), "Deleting");
    azure.end(&told).await;
    let missing = get(&azure, "claim").await.refused(404, "NotFound");
    assert!(missing.body.get("error").is_none(), "AKS writes errors without an envelope");
    assert_eq!(azure.machines(), Vec::<String>::new());
    assert_eq!(azure.double.names(Kind::NetworkInterface), Vec::<String>::new());
    let told = delete(&azure, &["claim"]).await.refused(400, "InvalidParameter");
    assert!(told.message().contains("Cannot find any valid machines"), "{}", told.message());
}

#[tokio::test(start_paused = true)]
async fn without_the_pool_there_is_nothing() {
    let azure = Azure::new();
    azure.double.change(|world| {
        let pool = format!("{}/agentPools/karpenter", world.settings.cluster_id());
        world.remove(&pool);
    });
    put(&azure, "claim", &[], body("Standard_D2s_v3", "Regular")).await.refused(404, "NotFound");
    get(&azure, "claim").await.refused(404, "NotFound");
    azure.get(azure.aks_machine("").trim_end_matches('/'), KUBERNETES).await.refused(404, "NotFound");
    delete(&azure, &["claim"]).await.refused(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn size_priority_and_zone_of_a_machine_stay() {
    let azure = Azure::new();
    put(&azure, "claim", &[], body("Standard_D2s_v3", "Regular")).await.is(201);
    for other in [body("Standard_D4s_v3", "Regular"), body("Standard_D2s_v3", "Spot")] {
        put(&azure, "claim", &[], other).await.refused(400, "OperationNotAllowed");
    }
    let mut moved = body("Standard_D2s_v3", "Regular");
    moved["zones"] = json!(["2"]);
    put(&azure, "claim", &[], moved).await.refused(400, "OperationNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn an_update_needs_the_entity_tag_that_is_there() {
    let azure = Azure::new();
    put(&azure, "claim", &[], body("Standard_D2s_v3", "Regular")).await.is(201);
    seconds(30).await;
    // All of it is put again, with what only AKS writes.
    let mut machine = get(&azure, "claim").await.body;
    let tag = machine["properties"]["eTag"].as_str().unwrap().to_owned();
    machine["properties"]["tags"]["new"] = json!("tag");
    put(&azure, "claim", &[("If-Match", "other")], machine.clone()).await.refused(412, "ConditionNotMet");
    put(&azure, "claim", &[("If-Match", &tag)], machine.clone()).await.is(200);
    put(&azure, "claim", &[("If-Match", &tag)], machine).await.refused(412, "ConditionNotMet");
    let machine = get(&azure, "claim").await.body;
    assert_eq!(machine["properties"]["tags"]["new"], "tag");
    assert_eq!(machine["properties"]["status"]["creationTimestamp"], "1970-01-01T00:00:00Z");
    assert_ne!(machine["properties"]["eTag"], tag.as_str());
}

// azure.md 29: what AKS says about quota
#[tokio::test(start_paused = true)]
async fn quota_of_a_machine_fails_later_and_in_two_layers() {
    let azure = Azure::new();
    azure.double.change(|world| world.quota.limit("standardDSv3Family", 0));
    let told = put(&azure, "claim", &[], body("Standard_D2s_v3", "Regular")).await.is(201);
    assert_eq!(azure.end(&told).await["status"], "Failed");
    let machine = get(&azure, "claim").await.is(200);
    assert_eq!(machine.state(), "Failed");
    let error = &machine.body["properties"]["status"]["provisioningError"];
    assert_eq!(
        (error["code"].as_str(), error["details"][0]["code"].as_str()),
        (Some("QuotaExceeded"), Some("OperationNotAllowed"))
    );
    assert!(error["details"][0]["message"].as_str().unwrap().contains("Current Limit: 0"));
    assert_eq!(azure.machines(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_size_that_does_not_exist_is_refused_at_once() {
    let azure = Azure::new();
    let told =
        put(&azure, "claim", &[], body("Standard_None", "Regular")).await.refused(400, "VMSizeNotSupported");
    assert!(told.message().contains("is not supported for subscription"), "{}", told.message());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_was_never_published_is_refused() {
    let azure = Azure::new();
    let mut machine = body("Standard_D2s_v3", "Regular");
    machine["properties"]["nodeImageVersion"] = json!("AKSUbuntu-2204gen2containerd-1");
    put(&azure, "claim", &[], machine).await.refused(400, "InvalidParameter");
}

// azure.md 11.4
#[tokio::test(start_paused = true)]
async fn a_batch_makes_machines_that_differ_in_zone_and_tags() {
    let azure = Azure::new();
    let header = json!({"batchMachines": [
        {"machineName": "a", "zones": ["1"], "tags": {"claim": "a"}},
        {"machineName": "b", "zones": ["2"], "tags": {"claim": "b"}},
    ]});
    let mut shared = body("Standard_D2s_v3", "Regular");
    shared.as_object_mut().unwrap().remove("zones");
    put(&azure, "a", &[("BatchPutMachine", &header.to_string())], shared).await.is(201);
    for (name, zone) in [("a", "1"), ("b", "2")] {
        let machine = get(&azure, name).await.is(200).body;
        assert_eq!(machine["zones"], json!([zone]));
        assert_eq!(machine["properties"]["tags"]["claim"], name);
    }
    seconds(20).await;
    let told = azure.get(azure.aks_machine("").trim_end_matches('/'), KUBERNETES).await.is(200);
    let states: Vec<_> = told.body["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| &each["properties"]["provisioningState"])
        .collect();
    assert_eq!(states, ["Succeeded", "Succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn machines_of_a_batch_fail_one_by_one() {
    let header = json!({"batchMachines": [{"machineName": "a"}, {"machineName": "b"}]}).to_string();
    for (status, code) in [(400, "BatchMachineClientError"), (500, "BatchMachineInternalServerError")] {
        let azure = Azure::new();
        azure.double.fail(Failure::of(Method::PUT, Kind::Machine).name("b").at_once(
            status,
            "SomeCode",
            "Some words.",
        ));
        let shared = body("Standard_D2s_v3", "Regular");
        let told = put(&azure, "a", &[("BatchPutMachine", &header)], shared).await.refused(status, code);
        let details = if status == 400 {
            told.body["details"].clone()
        } else {
            serde_json::from_str::<Value>(told.message()).unwrap()["details"].clone()
        };
        assert_eq!(details, json!([{"code": "SomeCode", "message": "Some words.", "target": "b"}]));
        get(&azure, "a").await.is(200);
        get(&azure, "b").await.is(404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_a_batch_can_fail_later() {
    let azure = Azure::new();
    let header = json!({"batchMachines": [{"machineName": "a"}, {"machineName": "b"}]}).to_string();
    let failure =
        Failure::of(Method::PUT, Kind::Machine).name("a").later(409, "AllocationFailed", "No capacity.");
    azure.double.fail(failure.always());
    put(&azure, "a", &[("BatchPutMachine", &header)], body("Standard_D2s_v3", "Regular")).await.is(201);
    seconds(20).await;
    let failed = get(&azure, "a").await;
    assert_eq!(failed.state(), "Failed");
    let error = &failed.body["properties"]["status"]["provisioningError"];
    assert_eq!(
        (error["code"].as_str(), error["details"][0]["code"].as_str()),
        (Some("AllocationFailed"), Some("AllocationFailed"))
    );
    assert_eq!(get(&azure, "b").await.state(), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_fifty_machines() {
    let azure = Azure::new();
    let many: Vec<Value> = (0..51).map(|number| json!({"machineName": format!("m{number}")})).collect();
    let header = json!({"batchMachines": many}).to_string();
    let told = put(&azure, "m0", &[("BatchPutMachine", &header)], body("Standard_D2s_v3", "Regular")).await;
    told.refused(400, "InvalidParameter");
}

//! Quota: what is used, what is left, and what is said beyond it.

use http::Method;
use serde_json::json;

use crate::support::{Azure, COMPUTE};

async fn usage(azure: &Azure, name: &str) -> (i64, i64) {
    let subscription = azure.double.change(|world| world.settings.subscription.clone());
    let path =
        format!("/subscriptions/{subscription}/providers/Microsoft.Compute/locations/southcentralus/usages");
    let told = azure.get(&path, COMPUTE).await.is(200);
    let all = told.body["value"].as_array().unwrap().clone();
    let found = all.iter().find(|each| each["name"]["value"] == name).unwrap();
    (found["currentValue"].as_i64().unwrap(), found["limit"].as_i64().unwrap())
}

// azure.md 29, family quota
#[tokio::test(start_paused = true)]
async fn a_family_that_is_used_up_is_told_with_all_numbers() {
    let azure = Azure::new();
    azure.double.change(|world| world.quota.limit("standardDSv3Family", 5));
    azure.make_machine("aks-a").await;
    assert_eq!(usage(&azure, "standardDSv3Family").await, (2, 5));
    let told = azure.put_machine("aks-b", "Standard_D4s_v3", "1").await.refused(409, "OperationNotAllowed");
    let expected = "exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: Resource \
                    Manager, Location: southcentralus, Current Limit: 5, Current Usage: 2, Additional Required: 4, \
                    (Minimum) New Limit Required: 6.";
    assert!(told.message().contains(expected), "{}", told.message());
    // Another family has its own.
    azure.put_machine("aks-c", "Standard_D2_v5", "1").await.is(201);
}

#[tokio::test(start_paused = true)]
async fn the_last_core_can_be_used() {
    let azure = Azure::new();
    azure.double.change(|world| world.quota.limit("standardDSv3Family", 4));
    azure.put_machine("aks-a", "Standard_D4s_v3", "1").await.is(201);
    assert_eq!(usage(&azure, "standardDSv3Family").await, (4, 4));
}

#[tokio::test(start_paused = true)]
async fn the_region_has_a_limit_for_all_families() {
    let azure = Azure::new();
    azure.double.change(|world| {
        world.quota.limit("cores", 20);
        world.quota.elsewhere("cores", 19);
    });
    let told = azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(409, "OperationNotAllowed");
    assert!(told.message().contains("exceeding approved Total Regional Cores quota"), "{}", told.message());
}

#[tokio::test(start_paused = true)]
async fn spot_machines_have_a_quota_of_their_own() {
    let azure = Azure::new();
    azure.double.change(|world| {
        world.quota.limit("lowPriorityCores", 3);
        world.quota.limit("standardDSv3Family", 0);
    });
    let put = async |name: &str| {
        azure.make_interface(name).await;
        let mut body = azure.machine_body(name, "Standard_D2s_v3", "1");
        body["properties"]["priority"] = json!("Spot");
        body["properties"]["evictionPolicy"] = json!("Delete");
        body["properties"]["billingProfile"] = json!({"maxPrice": -1});
        azure.ask(Method::PUT, &azure.machine_id(name), COMPUTE, body).await
    };
    put("aks-a").await.is(201);
    let told = put("aks-b").await.refused(409, "OperationNotAllowed");
    assert!(told.message().contains("exceeding approved LowPriorityCores quota"), "{}", told.message());
    assert_eq!(usage(&azure, "lowPriorityCores").await, (2, 3));
    assert_eq!(usage(&azure, "standardDSv3Family").await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn machines_that_are_gone_or_failed_use_nothing() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    let told = azure.delete_machine("aks-a").await;
    assert_eq!(usage(&azure, "cores").await.0, 2);
    azure.end(&told).await;
    assert_eq!(usage(&azure, "cores").await.0, 0);
    let failure = armdouble::Failure::of(Method::PUT, armdouble::Kind::VirtualMachine);
    azure.double.fail(failure.later(409, "AllocationFailed", "No capacity."));
    let told = azure.put_machine("aks-b", "Standard_D2s_v3", "1").await.is(201);
    assert_eq!(usage(&azure, "cores").await.0, 2);
    azure.end(&told).await;
    assert_eq!(usage(&azure, "cores").await.0, 0);
}

// azure.md 5.1, 8.2: restrictions
#[tokio::test(start_paused = true)]
async fn a_size_is_only_where_the_sku_api_says() {
    let azure = Azure::new();
    // This one is in zones 2 and 3 only.
    azure.put_machine("aks-a", "Standard_D2as_v6", "1").await.refused(409, "SkuNotAvailable");
    azure.double.change(|world| world.skus.restrict("southcentralus", "Standard_D2s_v3", &["2"]));
    azure.put_machine("aks-b", "Standard_D2s_v3", "2").await.refused(409, "SkuNotAvailable");
    azure.put_machine("aks-b", "Standard_D2s_v3", "3").await.is(201);
    azure.double.change(|world| world.skus.restrict("southcentralus", "Standard_D4s_v3", &[]));
    azure.put_machine("aks-c", "Standard_D4s_v3", "").await.refused(409, "SkuNotAvailable");
    azure.put_machine("aks-d", "Standard_Nothing", "").await.refused(400, "InvalidParameter");
    assert_eq!(azure.machines(), ["aks-b"]);
}

//! What is only read: sizes, images, prices, the cluster.

use armdouble::Sku;
use base64::Engine as _;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Azure, COMPUTE, KUBERNETES};

async fn everything(azure: &Azure, path: &str, version: &str) -> Vec<Value> {
    let mut page = azure.get(path, version).await.is(200).body;
    let mut all = page["value"].as_array().unwrap().clone();
    while let Some(next) = page["nextLink"].as_str().map(str::to_owned) {
        page = azure.with(Method::GET, &next, &[], None).await.is(200).body;
        all.extend(page["value"].as_array().unwrap().clone());
    }
    all
}

fn provider(azure: &Azure, rest: &str) -> String {
    azure.double.change(|world| format!("/subscriptions/{}/providers/{rest}", world.settings.subscription))
}

// azure.md 24 row 1
#[tokio::test(start_paused = true)]
async fn sizes_of_a_region_come_in_pages() {
    let azure = Azure::new();
    azure.double.change(|world| world.settings.page_size = 7);
    let path = |location: &str| {
        provider(&azure, &format!("Microsoft.Compute/skus?$filter=location%20eq%20'{location}'"))
    };
    assert_eq!(everything(&azure, &path("southcentralus"), "2021-07-01").await.len(), 20);
    assert_eq!(everything(&azure, &path("westcentralus"), "2021-07-01").await.len(), 12);
    assert_eq!(everything(&azure, &path("eastus"), "2021-07-01").await.len(), 0);
    azure.get(&provider(&azure, "Microsoft.Compute/skus?$filter=x"), "2021-07-01").await.is(400);
    azure.double.change(|world| {
        let sku = Sku {
            name: "Standard_D8s_v3",
            family: "standardDSv3Family",
            cores: 8,
            memory: 32,
            zones: &["1"],
        };
        world.skus.add("southcentralus", sku.to_json("southcentralus"));
        world.skus.remove("southcentralus", "Standard_A0");
    });
    let names = everything(&azure, &path("southcentralus"), "2021-07-01").await;
    assert!(names.iter().any(|sku| sku["name"] == "Standard_D8s_v3"));
    assert_eq!(names.len(), 20);
    azure.put_machine("aks-a", "Standard_D8s_v3", "1").await.is(201);
}

// azure.md 24 rows 3, 4
#[tokio::test(start_paused = true)]
async fn images_are_there_in_two_versions() {
    let azure = Azure::new();
    let gallery = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2";
    let path = |image: &str| {
        let rest = format!(
            "Microsoft.Compute/locations/southcentralus/communityGalleries/{gallery}/images/{image}/versions"
        );
        provider(&azure, &rest)
    };
    let versions = everything(&azure, &path("2204gen2containerd"), "2025-03-03").await;
    assert_eq!(
        versions.iter().map(|each| each["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["202605.15.0", "202606.01.0"]
    );
    assert_eq!(versions[1]["properties"]["publishedDate"], "2026-06-01T00:00:00+00:00");
    azure.get(&path("2204gen2fipsTLcontainerd"), "2025-03-03").await.refused(404, "GalleryImageNotFound");
    let all = provider(&azure, "Microsoft.ContainerService/locations/southcentralus/nodeImageVersions");
    let all = everything(&azure, &all, KUBERNETES).await;
    let newest = json!({
        "os": "AKSUbuntu", "sku": "2204gen2containerd", "version": "202606.01.0",
        "fullName": "AKSUbuntu-2204gen2containerd-202606.01.0",
    });
    assert!(all.contains(&newest));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_there_cannot_be_used() {
    let azure = Azure::new();
    azure.double.change(|world| world.images.clear());
    azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(404, "GalleryImageNotFound");
}

// azure.md 6
#[tokio::test(start_paused = true)]
async fn prices_need_no_token_and_come_in_pages() {
    let azure = Azure::new();
    azure.double.change(|world| world.settings.page_size = 50);
    let filter = "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' and serviceName eq \
                  'Virtual Machines' and armRegionName eq 'southcentralus'";
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("api-version", "2023-01-01-preview")
        .append_pair("$filter", filter)
        .finish();
    let mut url = format!("https://prices.azure.com/api/retail/prices?{query}");
    let mut items = Vec::new();
    loop {
        let request = http::Request::get(&url).body(bytes::Bytes::new()).unwrap();
        let page = azure.send(request).await.unwrap().is(200).body;
        items.extend(page["Items"].as_array().unwrap().clone());
        match page["NextPageLink"].as_str() {
            Some(next) => url = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(items.len(), 80);
    let of_size: Vec<_> = items.iter().filter(|each| each["armSkuName"] == "Standard_D2s_v3").collect();
    let costs = |ending: &str, expected: f64| {
        let item = of_size.iter().find(|each| each["skuName"].as_str().unwrap().ends_with(ending)).unwrap();
        assert!((item["retailPrice"].as_f64().unwrap() - expected).abs() < 1e-9, "{item}");
    };
    costs("v3", 0.11);
    costs(" Spot", 0.022);
    assert!(of_size.iter().any(|each| each["productName"].as_str().unwrap().ends_with(" Windows")));
    assert!(of_size.iter().any(|each| each["meterName"].as_str().unwrap().ends_with(" Low Priority")));
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_as_az_aks_create_leaves_it() {
    let azure = Azure::new();
    let id = azure.double.change(|world| world.settings.cluster_id());
    let cluster = azure.get(&id, KUBERNETES).await.is(200).body;
    assert_eq!(cluster["properties"]["nodeResourceGroup"], "MC_walk_walk_southcentralus");
    assert_eq!(cluster["properties"]["networkProfile"]["networkPlugin"], "azure");
    let pools = azure.get(&format!("{id}/agentPools"), KUBERNETES).await.is(200).body;
    assert_eq!(pools["value"].as_array().unwrap().len(), 2);
    azure.get(&format!("{id}/agentPools/none"), KUBERNETES).await.is(404);
    let group = id.split("/providers").next().unwrap();
    assert_eq!(azure.get(group, "2021-04-01").await.is(200).body["name"], "walk");
    let provider = provider(&azure, "Microsoft.Compute");
    assert_eq!(azure.get(&provider, "2021-04-01").await.is(200).body["registrationState"], "Registered");
    let machines = format!("{provider}/virtualMachines");
    assert_eq!(azure.get(&machines, COMPUTE).await.is(200).body["value"], json!([]));
}

// azure.md 13.3
#[tokio::test(start_paused = true)]
async fn bootstrapping_tells_a_script_and_custom_data_with_a_place_for_the_token() {
    let azure = Azure::new();
    let id = azure.double.change(|world| world.settings.cluster_id());
    let path = format!("{}/nodeBootstrapping", id.replace("managedClusters", "managedclusters"));
    let body = json!({"provisionProfile": {"vmSize": "Standard_D2s_v3"}, "provisionHelperValues": {"skuCPU": 2, "skuMemory": 8}});
    let told = azure.with(Method::GET, &path, &[], Some(body)).await.is(200);
    let token = "{{.TokenID}}.{{.TokenSecret}}";
    assert!(told.body["cse"].as_str().unwrap().contains(token));
    let data = base64::prelude::BASE64_STANDARD.decode(told.body["customData"].as_str().unwrap()).unwrap();
    assert!(String::from_utf8(data).unwrap().contains(token));
    let told = azure.with(Method::GET, &path, &[], Some(json!({}))).await.is(400);
    assert!(told.body.is_string(), "errors are plain text");
}

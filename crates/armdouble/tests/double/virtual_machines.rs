//! Virtual machines and their extensions.

use armdouble::Kind;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Azure, COMPUTE, NETWORK, seconds};

// azure.md 24 rows 5, 6
#[tokio::test(start_paused = true)]
async fn a_machine_is_created_and_its_secrets_are_never_shown() {
    let azure = Azure::new();
    let told = azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.is(201);
    assert_eq!(told.state(), "Creating");
    azure.end(&told).await;
    let machine = azure.get_machine("aks-a").await.is(200);
    assert_eq!(machine.state(), "Succeeded");
    assert_eq!(machine.body["name"], "aks-a");
    assert_eq!(machine.body["type"], "Microsoft.Compute/virtualMachines");
    assert_eq!(machine.body["properties"]["timeCreated"], "1970-01-01T00:00:03Z");
    assert!(machine.body["properties"]["osProfile"]["customData"].is_null());
    let stored = azure.double.resources(Kind::VirtualMachine);
    assert_eq!(stored[0]["properties"]["osProfile"]["customData"], "c2VjcmV0");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_there_is_told_with_its_name_and_group() {
    let azure = Azure::new();
    let told = azure.get_machine("aks-a").await.refused(404, "ResourceNotFound");
    assert!(told.message().contains("'Microsoft.Compute/virtualMachines/aks-a'"), "{}", told.message());
    assert!(told.message().contains("'MC_walk_walk_southcentralus'"), "{}", told.message());
    assert!(told.header("x-ms-correlation-request-id").is_some());
}

// azure.md 24, behaviours worth modelling
#[tokio::test(start_paused = true)]
async fn a_machine_cannot_move_to_another_zone() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    let body = azure.machine_body("aks-a", "Standard_D2s_v3", "2");
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body).await;
    told.refused(409, "PropertyChangeNotAllowed");
    let same = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, same).await.is(200);
    azure.end(&told).await;
    assert_eq!(azure.get_machine("aks-a").await.state(), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_patch_replaces_all_tags_and_adds_identities() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    let path = azure.machine_id("aks-a");
    let identity = |id: &str| json!({"type": "UserAssigned", "userAssignedIdentities": {id: {}}});
    for id in ["/one", "/two"] {
        let told = azure.ask(Method::PATCH, &path, COMPUTE, json!({"identity": identity(id)})).await.is(200);
        azure.end(&told).await;
    }
    let told = azure.ask(Method::PATCH, &path, COMPUTE, json!({"tags": {"new": "tag"}})).await.is(200);
    assert_eq!(told.state(), "Updating");
    azure.end(&told).await;
    let machine = azure.get_machine("aks-a").await.body;
    assert_eq!(machine["tags"], json!({"new": "tag"}));
    let identities: Vec<_> =
        machine["identity"]["userAssignedIdentities"].as_object().unwrap().keys().collect();
    assert_eq!(identities, ["/one", "/two"]);
    assert!(machine["identity"]["userAssignedIdentities"]["/one"]["clientId"].is_string());
}

#[tokio::test(start_paused = true)]
async fn tags_that_azure_does_not_take_are_refused() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    let path = azure.machine_id("aks-a");
    let slash = json!({"tags": {"karpenter.sh/nodepool": "a"}});
    azure.ask(Method::PATCH, &path, COMPUTE, slash).await.refused(400, "InvalidTagNameCharacters");
    let long = json!({"tags": {"a": "b".repeat(257)}});
    azure.ask(Method::PATCH, &path, COMPUTE, long).await.refused(400, "InvalidTagNameValue");
    let many: Value = (0..51).map(|number| (format!("t{number}"), json!(""))).collect();
    azure.ask(Method::PATCH, &path, COMPUTE, json!({"tags": many})).await.refused(400, "TagsLimitExceeded");
}

// azure.md 24 row 8: cascade
#[tokio::test(start_paused = true)]
async fn what_is_only_there_for_a_machine_goes_with_it() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    let extension = format!("{}/extensions/computeAksLinuxBilling", azure.machine_id("aks-a"));
    let body =
        json!({"location": "southcentralus", "properties": {"publisher": "Microsoft.AKS", "settings": {}}});
    let told = azure.ask(Method::PUT, &extension, COMPUTE, body).await.is(201);
    azure.end(&told).await;
    let told = azure.delete_machine("aks-a").await.is(202);
    assert_eq!(azure.get_machine("aks-a").await.is(200).state(), "Deleting");
    assert_eq!(azure.end(&told).await["status"], "Succeeded");
    for kind in [Kind::VirtualMachine, Kind::NetworkInterface, Kind::Extension] {
        assert_eq!(azure.double.names(kind), Vec::<String>::new(), "{kind:?}");
    }
    let disks = azure.double.change(|world| world.of_type("Microsoft.Compute/disks").len());
    assert_eq!(disks, 0);
    azure.delete_machine("aks-a").await.is(204);
}

#[tokio::test(start_paused = true)]
async fn nothing_changes_a_machine_that_goes() {
    let azure = Azure::new();
    azure.make_machine("aks-a").await;
    azure.delete_machine("aks-a").await.is(202);
    let path = azure.machine_id("aks-a");
    azure.ask(Method::PATCH, &path, COMPUTE, json!({"tags": {}})).await.refused(409, "OperationNotAllowed");
    let body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    azure.ask(Method::PUT, &path, COMPUTE, body).await.refused(409, "OperationNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_ends_the_creation_that_still_runs() {
    let azure = Azure::new();
    let created = azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.is(201);
    azure.delete_machine("aks-a").await.is(202);
    let ended = azure.end(&created).await;
    assert_eq!(ended["status"], "Canceled");
    assert_eq!(ended["error"]["code"], "OperationPreempted");
    seconds(60).await;
    assert_eq!(azure.machines(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_machine_needs_its_network_interface() {
    let azure = Azure::new();
    let body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body.clone()).await;
    told.refused(400, "InvalidResourceReference");
    azure.make_machine("aks-a").await;
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-b"), COMPUTE, body).await;
    told.refused(400, "NicInUse");
}

// azure.md 24 row 9
#[tokio::test(start_paused = true)]
async fn extensions_need_their_machine_and_keep_their_secrets() {
    let azure = Azure::new();
    let extension = format!("{}/extensions/cse-agent-karpenter", azure.machine_id("aks-a"));
    let body = json!({
        "location": "southcentralus",
        "properties": {"publisher": "p", "settings": {}, "protectedSettings": {"commandToExecute": "secret"}},
    });
    azure.ask(Method::PUT, &extension, COMPUTE, body.clone()).await.refused(404, "ParentResourceNotFound");
    azure.make_machine("aks-a").await;
    let tags = json!({"tags": {"a": "b"}});
    azure.ask(Method::PATCH, &extension, COMPUTE, tags.clone()).await.refused(404, "ResourceNotFound");
    let told = azure.ask(Method::PUT, &extension, COMPUTE, body).await.is(201);
    azure.end(&told).await;
    let told = azure.ask(Method::PATCH, &extension, COMPUTE, tags).await.is(200);
    azure.end(&told).await;
    let extension = azure.get(&extension, COMPUTE).await.is(200).body;
    assert_eq!(extension["tags"], json!({"a": "b"}));
    assert!(extension["properties"]["protectedSettings"].is_null());
    assert!(azure.double.resources(Kind::Extension)[0]["properties"]["protectedSettings"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_size_must_be_able_to_do_what_is_asked_of_it() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    let put = async |change: &dyn Fn(&mut Value)| {
        let mut body = azure.machine_body("aks-a", "Standard_A0", "");
        change(&mut body);
        azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body).await
    };
    // The image is of generation 2, and this size boots only generation 1.
    let told = put(&|_| {}).await.refused(400, "BadRequest");
    assert!(told.message().contains("cannot boot Hypervisor Generation '2'"), "{}", told.message());
    let told = put(&|body| body["properties"]["priority"] = json!("Spot")).await;
    told.refused(409, "OperationNotAllowed");
    let old = crate::support::IMAGE.replace("2204gen2containerd", "2204containerd");
    let plain = |body: &mut Value| {
        body["properties"]["storageProfile"]["imageReference"]["communityGalleryImageId"] = json!(old);
    };
    let encrypted = |body: &mut Value| {
        plain(body);
        body["properties"]["securityProfile"] = json!({"encryptionAtHost": true});
    };
    put(&encrypted).await.refused(400, "InvalidParameter");
    let ephemeral = |body: &mut Value| {
        plain(body);
        let disk = &mut body["properties"]["storageProfile"]["osDisk"];
        disk["diffDiskSettings"] = json!({"option": "Local", "placement": "CacheDisk"});
        disk["caching"] = json!("ReadOnly");
    };
    put(&ephemeral).await.refused(400, "InvalidParameter");
    put(&plain).await.is(201);
}

#[tokio::test(start_paused = true)]
async fn an_interface_with_accelerated_networking_needs_a_size_that_has_it() {
    let azure = Azure::new();
    let mut interface = azure.interface_body("aks-a");
    interface["properties"]["enableAcceleratedNetworking"] = json!(true);
    let told = azure.ask(Method::PUT, &azure.interface_id("aks-a"), NETWORK, interface).await.is(201);
    azure.end(&told).await;
    let mut body = azure.machine_body("aks-a", "Standard_A0", "");
    let old = crate::support::IMAGE.replace("2204gen2containerd", "2204containerd");
    body["properties"]["storageProfile"]["imageReference"]["communityGalleryImageId"] = json!(old);
    let told = azure.ask(Method::PUT, &azure.machine_id("aks-a"), COMPUTE, body).await;
    told.refused(400, "VMSizeIsNotPermittedToEnableAcceleratedNetworking");
}

// azure.md 18: images of another tenant
#[tokio::test(start_paused = true)]
async fn an_image_of_another_subscription_needs_a_second_token() {
    let azure = Azure::new();
    azure.make_interface("aks-a").await;
    let mut body = azure.machine_body("aks-a", "Standard_D2s_v3", "1");
    let image = "/subscriptions/10945678-1234-1234-1234-123456789012/resourceGroups/AKS-Ubuntu/providers/\
                 Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/202606.01.0";
    body["properties"]["storageProfile"]["imageReference"] = json!({"id": image});
    let path = format!("{}?api-version={COMPUTE}", azure.machine_id("aks-a"));
    let told = azure.with(Method::PUT, &path, &[], Some(body.clone())).await;
    told.refused(403, "LinkedAuthorizationFailed");
    let token = ("x-ms-authorization-auxiliary", "Bearer token");
    azure.with(Method::PUT, &path, &[token], Some(body)).await.is(201);
}

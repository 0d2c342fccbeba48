//! Deletes everything in a terminating namespace, whatever kinds the server has, and then lets go of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::Request;
use serde_json::{Value, json};

use crate::execute::send;

/// What is left in the namespace.
pub(crate) enum Left {
    Nothing,
    Something,
}

/// Deletes what is there; once nothing is left, removes the finalizer that holds the namespace.
pub(crate) async fn empty(client: &Client, namespace: &str) -> Result<Left, u16> {
    let mut left = 0_usize;
    for collection in collections(client).await? {
        let request = Request::new(format!("{}/namespaces/{namespace}/{}", collection.0, collection.1));
        let found = list(client, &request).await?;
        if found == 0 {
            continue;
        }
        let deletion = request.delete_collection(&DeleteParams::background(), &ListParams::default());
        match send(client, deletion).await {
            // Some kinds cannot be deleted as a collection; they do not last in practice.
            Ok(_) | Err(404 | 405) => {}
            Err(code) => return Err(code),
        }
        left += list(client, &request).await?;
    }
    if left > 0 {
        return Ok(Left::Something);
    }
    finalize(client, namespace).await?;
    Ok(Left::Nothing)
}

async fn list(client: &Client, request: &Request) -> Result<usize, u16> {
    match send(client, request.list(&ListParams::default().limit(1))).await {
        Ok(text) => {
            let list: Value = serde_json::from_str(&text).map_err(|_| 0_u16)?;
            Ok(list["items"].as_array().map_or(0, Vec::len))
        }
        Err(404 | 405) => Ok(0),
        Err(code) => Err(code),
    }
}

/// The path and plural of every namespaced kind that can be listed and deleted, in a fixed order.
async fn collections(client: &Client) -> Result<Vec<(String, String)>, u16> {
    let status = |error: kube::Error| match error {
        kube::Error::Api(answer) => answer.code,
        _ => 0,
    };
    let mut all = Vec::new();
    let core = client.list_core_api_resources("v1").await.map_err(status)?;
    collect(&core, "/api/v1", &mut all);
    let groups = client.list_api_groups().await.map_err(status)?;
    for group in groups.groups {
        let Some(version) = group.preferred_version.or_else(|| group.versions.into_iter().next()) else {
            continue;
        };
        let resources = client.list_api_group_resources(&version.group_version).await.map_err(status)?;
        collect(&resources, &format!("/apis/{}", version.group_version), &mut all);
    }
    Ok(all)
}

fn collect(resources: &APIResourceList, path: &str, all: &mut Vec<(String, String)>) {
    for resource in &resources.resources {
        let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
        // Events tell of the end of everything else and go with it, not before.
        if resource.namespaced && !resource.name.contains('/') && can("list") && can("delete") {
            all.push((path.to_owned(), resource.name.clone()));
        }
    }
}

async fn finalize(client: &Client, namespace: &str) -> Result<(), u16> {
    let request = Request::new("/api/v1/namespaces");
    let text = match send(client, request.get(namespace, &kube::api::GetParams::default())).await {
        Ok(text) => text,
        Err(404) => return Ok(()),
        Err(code) => return Err(code),
    };
    let mut object: Value = serde_json::from_str(&text).map_err(|_| 0_u16)?;
    let left: Vec<Value> = object["spec"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finalizer| *finalizer != "kubernetes")
        .cloned()
        .collect();
    object["spec"] = json!({ "finalizers": left });
    let body = serde_json::to_vec(&object).map_err(|_| 0_u16)?;
    let request = request.replace_subresource("finalize", namespace, &PostParams::default(), body);
    match send(client, request).await {
        Ok(_) | Err(404) => Ok(()),
        Err(code) => Err(code),
    }
}

//! What programs do with kube-rs.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use kube::api::{
    Api, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::recorder::Stage;

struct Session<'a> {
    stage: &'a Stage,
    client: Client,
}

impl Session<'_> {
    /// Objects of a kind in the sequence's namespace.
    fn api(&self, id: &str, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        Api::namespaced_with(self.client.clone(), id, &ApiResource::from_gvk_with_plural(&kind, plural))
    }

    fn pods(&self, id: &str) -> Api<DynamicObject> {
        self.api(id, "", "v1", "Pod", "pods")
    }

    fn settings(&self, id: &str) -> Api<DynamicObject> {
        self.api(id, "", "v1", "ConfigMap", "configmaps")
    }
}

fn object(value: Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(value)?)
}

fn pod(name: &str) -> Result<DynamicObject> {
    object(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }))
}

fn setting(name: &str, value: &str) -> Result<DynamicObject> {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}}))
}

/// Records one sequence for each kind of call.
pub(crate) async fn record(stage: &Stage) -> Result<()> {
    let session = Session { stage, client: Client::new(stage.recorder.clone(), "default") };
    single_objects(&session).await?;
    patches(&session).await?;
    deletions(&session).await?;
    subresources(&session).await?;
    watches(&session).await
}

async fn single_objects(session: &Session<'_>) -> Result<()> {
    let post = PostParams::default();
    let id = session.stage.begin("create, get and list")?;
    let api = session.settings(&id);
    api.create(&post, &setting("a", "1")?).await?;
    let _ = api.create(&post, &setting("a", "1")?).await;
    api.get("a").await?;
    api.get_opt("none").await?;
    api.get_metadata("a").await?;
    api.list(&ListParams::default()).await?;
    api.list(&ListParams::default().labels("a=b").fields("metadata.name=a")).await?;
    api.list_metadata(&ListParams::default()).await?;

    let id = session.stage.begin("pages")?;
    let api = session.settings(&id);
    for name in ["a", "b", "c"] {
        api.create(&post, &setting(name, "1")?).await?;
    }
    let page = api.list(&ListParams::default().limit(2)).await?;
    let next = page.metadata.continue_.unwrap_or_default();
    api.list(&ListParams::default().limit(2).continue_token(&next)).await?;

    let id = session.stage.begin("replace and conflict")?;
    let api = session.settings(&id);
    let mut first = api.create(&post, &setting("a", "1")?).await?;
    let stale = first.clone();
    first.data["data"]["a"] = json!("2");
    api.replace("a", &post, &first).await?;
    let _ = api.replace("a", &post, &stale).await;

    let id = session.stage.begin("dry runs")?;
    let api = session.settings(&id);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &setting("a", "1")?).await?;
    api.get_opt("a").await?;

    let id = session.stage.begin("generated names")?;
    let api = session.pods(&id);
    let mut made = pod("none")?;
    made.metadata.name = None;
    made.metadata.generate_name = Some("made-".to_owned());
    let made = api.create(&post, &made).await?;
    api.get(&made.name_any()).await?;
    api.delete(&made.name_any(), &DeleteParams::default()).await?;
    Ok(())
}

async fn patches(session: &Session<'_>) -> Result<()> {
    let post = PostParams::default();
    let params = PatchParams::apply("tester");
    let id = session.stage.begin("merge patch")?;
    let api = session.settings(&id);
    api.create(&post, &setting("a", "1")?).await?;
    api.patch("a", &params, &Patch::Merge(json!({"data": {"b": "2"}}))).await?;
    api.patch_metadata("a", &params, &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}))).await?;

    let id = session.stage.begin("strategic patch")?;
    let api = session.pods(&id);
    api.create(&post, &pod("a")?).await?;
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
    api.patch("a", &params, &Patch::Strategic(patch)).await?;

    let id = session.stage.begin("server-side apply")?;
    let api = session.settings(&id);
    api.patch("a", &params, &Patch::Apply(setting("a", "1")?)).await?;
    let other = PatchParams::apply("other");
    let _ = api.patch("a", &other, &Patch::Apply(setting("a", "2")?)).await;
    api.patch("a", &other.force(), &Patch::Apply(setting("a", "2")?)).await?;

    let id = session.stage.begin("status patch")?;
    let api = session.pods(&id);
    api.create(&post, &pod("a")?).await?;
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    api.patch_status("a", &params, &Patch::Merge(status)).await?;
    api.get_status("a").await?;
    Ok(())
}

async fn deletions(session: &Session<'_>) -> Result<()> {
    let post = PostParams::default();
    let id = session.stage.begin("delete with preconditions")?;
    let api = session.settings(&id);
    let made = api.create(&post, &setting("a", "1")?).await?;
    let with = |uid: &str| {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
    };
    let _ = api.delete("a", &with("00000000-0000-0000-0000-000000000000")).await;
    api.delete("a", &with(&made.uid().unwrap_or_default())).await?;

    let id = session.stage.begin("delete in the foreground")?;
    let api = session.settings(&id);
    api.create(&post, &setting("a", "1")?).await?;
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    api.delete("a", &params).await?;

    let id = session.stage.begin("delete a collection")?;
    let api = session.settings(&id);
    api.create(&post, &setting("a", "1")?).await?;
    api.create(&post, &setting("b", "1")?).await?;
    api.delete_collection(&DeleteParams::default(), &ListParams::default().fields("metadata.name=a")).await?;
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;

    let id = session.stage.begin("finalizers")?;
    let api = session.settings(&id);
    let mut held = setting("a", "1")?;
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    api.create(&post, &held).await?;
    api.delete("a", &DeleteParams::default()).await?;
    let free = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    let patch: Patch<DynamicObject> = Patch::Json(serde_json::from_value(free)?);
    api.patch("a", &PatchParams::default(), &patch).await?;
    api.get_opt("a").await?;
    Ok(())
}

async fn subresources(session: &Session<'_>) -> Result<()> {
    let post = PostParams::default();
    let id = session.stage.begin("eviction")?;
    let api = session.pods(&id);
    api.create(&post, &pod("a")?).await?;
    let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(session.client.clone(), &id);
    api.evict("a", &EvictParams::default()).await?;
    let _ = api.evict("a", &EvictParams::default()).await;

    let id = session.stage.begin("scale")?;
    let api = session.api(&id, "apps", "v1", "Deployment", "deployments");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "main"}]},
        }},
    });
    api.create(&post, &object(deployment)?).await?;
    api.get_scale("a").await?;
    let params = PatchParams::default();
    api.patch_scale("a", &params, &Patch::Merge(json!({"spec": {"replicas": 4}}))).await?;
    api.get("a").await?;
    Ok(())
}

async fn watches(session: &Session<'_>) -> Result<()> {
    let post = PostParams::default();
    for (name, config) in [
        ("watcher that lists", watcher::Config::default()),
        ("watcher that streams", watcher::Config::default().streaming_lists()),
        ("watcher with selectors", watcher::Config::default().labels("app=a")),
    ] {
        let id = session.stage.begin(name)?;
        let api = session.pods(&id);
        api.create(&post, &pod("a")?).await?;
        let mut events = std::pin::pin!(watcher(api.clone(), config));
        // The beginning, and what is there.
        for _ in 0..3 {
            let _ = tokio::time::timeout(Duration::from_secs(2), events.next()).await;
        }
        api.create(&post, &pod("b")?).await?;
        api.delete("a", &DeleteParams::default()).await?;
        let _ = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
    }
    let id = session.stage.begin("watch from a version")?;
    let api = session.pods(&id);
    let made = api.create(&post, &pod("a")?).await?;
    api.create(&post, &pod("b")?).await?;
    let version = made.resource_version().unwrap_or_default();
    let mut events = api.watch(&WatchParams::default(), &version).await?.boxed();
    let _ = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
    Ok(())
}

//! Requests of a smoke test to the API server.

use anyhow::{Context as _, Result};
use http::Request;
use kube::Client;
use serde_json::Value;

use super::manifests::LABEL;

pub(super) const NODE_POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
pub(super) const NODE_CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
pub(super) const NODES: &str = "/api/v1/nodes";

/// The objects of a cluster.
pub(super) struct Objects(pub(super) Client);

impl Objects {
    /// An object; nothing if there is none.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>> {
        let request = Request::get(path).body(Vec::new()).with_context(|| format!("asking for {path}"))?;
        match self.0.request(request).await {
            Ok(found) => Ok(Some(found)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("asking for {path}")),
        }
    }

    /// The objects of a collection that belong to a smoke test.
    pub(super) async fn of_test(&self, path: &str, test: &str) -> Result<Vec<Value>> {
        self.list(&format!("{path}?labelSelector={LABEL}%3D{test}")).await
    }

    pub(super) async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    pub(super) async fn create(&self, path: &str, object: &Value) -> Result<()> {
        let body = serde_json::to_vec(object).context("writing an object")?;
        let name = text(object, "/metadata/name");
        let what = || format!("creating {} {name}", text(object, "/kind"));
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body).with_context(what)?;
        self.0.request::<Value>(request).await.with_context(what)?;
        Ok(())
    }

    /// Deletes an object that may be gone already.
    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        let request = Request::delete(path).body(Vec::new()).with_context(|| format!("deleting {path}"))?;
        match self.0.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            result => result.map(|_| ()).with_context(|| format!("deleting {path}")),
        }
    }
}

/// A text of an object; empty if there is none.
pub(super) fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A condition of an object.
pub(super) fn condition<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

pub(super) fn is_true(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}

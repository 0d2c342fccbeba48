//! A real API server that knows the CRDs of one provider, spoken to in plain HTTP so that warnings and the
//! whole of every answer are seen.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::crds::documents;
use api::provider::Provider;
use e2e::ControlPlane;
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A CRD is established in well under a second.
const PATIENCE: Duration = Duration::from_secs(30);
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An API server with the CRDs of one provider.
pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) crds: Vec<Value>,
    /// What the API server warned of when the CRDs were applied.
    pub(crate) warnings: Vec<String>,
    runtime: Runtime,
    client: Client,
}

/// What the API server answered.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The message of a refusal.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// The cluster of one provider, which all tests share.
pub(crate) fn cluster(provider: Provider) -> &'static Cluster {
    static CLUSTERS: [OnceLock<Cluster>; 3] = [const { OnceLock::new() }; 3];
    let index = Provider::ALL.iter().position(|known| *known == provider).expect("every provider is known");
    CLUSTERS[index].get_or_init(|| Cluster::start(provider).expect("the API server accepts the CRDs"))
}

impl Cluster {
    fn start(provider: Provider) -> Result<Self> {
        let plane = ControlPlane::builder().start()?;
        let runtime = Runtime::new()?;
        let client = runtime.block_on(connect(&plane))?;
        let crds = documents(provider).into_iter().map(|crd| crd.document).collect();
        let mut cluster = Self { plane, crds, warnings: vec![], runtime, client };
        for crd in cluster.crds.clone() {
            let reply = cluster.send(Method::POST, &format!("{CRDS}?fieldValidation=Strict"), Some(&crd))?;
            let name = text(&crd, "/metadata/name");
            ensure!(reply.is_success(), "{name}: {}", reply.message());
            cluster.warnings.extend(reply.warnings.into_iter().map(|warning| format!("{name}: {warning}")));
        }
        for crd in &cluster.crds {
            cluster.wait_for(crd)?;
        }
        Ok(cluster)
    }

    /// Waits until objects of the kind can be listed in every version.
    fn wait_for(&self, crd: &Value) -> Result<()> {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        for version in versions(crd) {
            let path = format!("/apis/{group}/{}/{plural}", text(version, "/name"));
            e2e::poll(&format!("{path} to be served"), PATIENCE, || {
                Ok(self.send(Method::GET, &path, None)?.is_success().then_some(()))
            })?;
        }
        Ok(())
    }

    /// What the API server says about a CRD it has.
    pub(crate) fn conditions(&self, crd: &Value) -> Result<Vec<(String, String)>> {
        let reply = self.send(Method::GET, &format!("{CRDS}/{}", text(crd, "/metadata/name")), None)?;
        let conditions = reply.body.pointer("/status/conditions").and_then(Value::as_array);
        let conditions = conditions.context("the CRD has no conditions")?;
        Ok(conditions
            .iter()
            .map(|condition| (text(condition, "/type").to_owned(), text(condition, "/status").to_owned()))
            .collect())
    }

    /// Sends one request; any answer is a success.
    pub(crate) fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply> {
        let content_type =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type)
            .body(bytes.into())?;
        self.runtime.block_on(async {
            let response = self.client.send(request).await?;
            let code = response.status().as_u16();
            let warnings = response.headers().get_all("Warning").iter();
            let warnings =
                warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
            let bytes = response.into_body().collect_bytes().await?;
            // Before a CRD is established the answer is plain text.
            let body = serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
            Ok(Reply { code, warnings, body })
        })
    }
}

async fn connect(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // A refusal must be seen as it is.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// The versions of a CRD.
pub(crate) fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).expect("a CRD has versions")
}

/// The text at a JSON pointer that must be there.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}"))
}

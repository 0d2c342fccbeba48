//! The two servers that get the same requests.

use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::{Component, ControlPlane};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// A server that does not answer fails the test instead of blocking it.
const PATIENCE: Duration = Duration::from_secs(30);
/// What these plugins add is taken away again by controllers that are no part of an API server.
const PLUGINS: &str =
    "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition";
/// How often a request may meet a connection that just closed.
const ATTEMPTS: u32 = 4;

/// One of the servers.
#[derive(Clone)]
pub(crate) struct Target {
    client: Client,
}

/// What a server answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    /// JSON, the lines of a watch as a list, or text as a string.
    pub(crate) body: Value,
}

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) agent: String,
    pub(crate) body: Vec<u8>,
    pub(crate) watch: bool,
}

impl Target {
    /// The real one: etcd, the API server, and the controllers that the embedded server contains.
    pub(crate) async fn real() -> Result<(Option<ControlPlane>, Self)> {
        // A cluster that runs already saves its start when sequences are written.
        let (plane, path) = match std::env::var_os("CONFORMANCE_KUBECONFIG") {
            Some(path) => (None, path.into()),
            None => {
                let controllers = "--controllers=garbage-collector-controller,namespace-controller";
                let plane = ControlPlane::builder()
                    .with_controller_manager()
                    .arg(Component::ControllerManager, controllers)
                    .arg(Component::ApiServer, PLUGINS)
                    .start()?;
                let path = plane.kubeconfig_path();
                (Some(plane), path)
            }
        };
        let kubeconfig = Kubeconfig::read_from(path)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok((plane, Self { client: Client::try_from(config)? }))
    }

    pub(crate) fn embedded(server: &embedded::Server) -> Self {
        Self { client: Client::new(server.service(), "default") }
    }

    /// Sends a request; of a watch all lines are read until it ends.
    pub(crate) async fn send(&self, message: &Message) -> Result<Reply> {
        let mut attempt = 1;
        loop {
            match self.try_send(message).await {
                // The real server closes a connection whose request it did not read, also for those behind it.
                Err(error) if attempt < ATTEMPTS && error.is::<kube::Error>() => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn try_send(&self, message: &Message) -> Result<Reply> {
        let request = Request::builder()
            .method(message.method.as_str())
            .uri(&message.target)
            .header("User-Agent", &message.agent)
            .header("Accept", &message.accept)
            .header("Content-Type", &message.content_type)
            .body(kube::client::Body::from(message.body.clone()))?;
        let answer = async {
            let response = self.client.send(request).await?;
            let headers = response.headers().clone();
            let code = response.status().as_u16();
            let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let bytes = response.into_body().collect_bytes().await?;
            let body = if message.watch && code == 200 {
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                lines.map(read).collect()
            } else {
                read(&bytes)
            };
            anyhow::Ok(Reply {
                code,
                content_type: headers.get("Content-Type").map(text).unwrap_or_default(),
                warnings: headers.get_all("Warning").iter().map(text).collect(),
                body,
            })
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        answer.with_context(|| format!("no answer in time to {}", message.target)).flatten()
    }
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes).into_owned()))
}

//! A real control plane that knows our kinds, with played machines.

use anyhow::Result;
use api::provider::Provider;
use clock::Clock;
use controlplane::{KubeletOptions, NodeSelection, Options};
use e2e::{Builder, ControlPlane};
use http::{Method, Request, StatusCode};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Who plays the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machines {
    /// Our simulator, in this process.
    Simulator,
    /// The real KWOK.
    Kwok,
}

/// A control plane, and what is needed to talk to it.
pub(crate) struct Real {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
}

impl Real {
    /// Starts the components, together with what the builder adds.
    pub(crate) fn start(builder: Builder, machines: Machines) -> Result<Self> {
        Self::start_for(Provider::Kwok, builder, machines)
    }

    /// Starts the components for a cloud.
    pub(crate) fn start_for(provider: Provider, builder: Builder, machines: Machines) -> Result<Self> {
        let builder = builder.with_scheduler().with_controller_manager();
        let plane = if machines == Machines::Kwok { builder.with_kwok() } else { builder }.start()?;
        for definition in api::crds::documents(provider) {
            let document = definition.document.to_string();
            plane.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &document)?;
        }
        plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        let runtime = Runtime::new()?;
        let client = runtime.block_on(client(&plane))?;
        if machines == Machines::Simulator {
            let client = client.clone();
            let options = Options {
                scheduler: false,
                workloads: false,
                node_lifecycle: false,
                kubelet: Some(KubeletOptions {
                    nodes: NodeSelection::Annotated,
                    ..KubeletOptions::default()
                }),
                ..Options::default()
            };
            runtime.spawn(async move {
                let _ = controlplane::run(client, Clock::system(), options).await;
            });
        }
        Ok(Self { plane, client, runtime })
    }

    /// Sends one request to the API server.
    pub(crate) fn send(
        &self,
        method: Method,
        target: &str,
        content_type: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(target);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(body.into()).expect("paths of scenarios are valid");
        self.runtime.block_on(async {
            let answer = self.client.send(request).await.expect("the API server answers");
            let code = answer.status();
            let body =
                http_body_util::BodyExt::collect(answer.into_body()).await.expect("the answer is complete");
            (code, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
        })
    }

    /// Applies manifests.
    pub(crate) fn apply(&self, yaml: &str) {
        if let Err(error) = self.plane.kubectl_with_input(&["apply", "--filename=-"], yaml) {
            panic!("{error:#}");
        }
    }
}

async fn client(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

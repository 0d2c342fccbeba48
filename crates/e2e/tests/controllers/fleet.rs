//! Bad answers of a real API server cost no node.
//!
//! Several operators run in this process on one cluster, each with an API server of its own that answers badly in
//! another way. Whichever of them believes it would delete nodes that all of them see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::api::names::metrics::{GARBAGE_COLLECTION_STOPPED, runtime::RECONCILES};
use ::api::provider::Provider;
use anyhow::Result;
use clock::Clock;
use e2e::{ControlPlane, poll};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use kube::Client;
use kube::client::Body;
use kwok::Kwok;
use operator::Parts;
use runtime::Settings;
use serde_json::json;
use testkit::scenarios::manifests::{deployment_with, manifest, node_class, pool};
use testkit::stage::{CLAIMS, NODES, Stage};
use tokio::sync::watch;

use crate::cluster::{Cluster, name};
use crate::real::{Machines, Real};

const FLEET: usize = 5;
/// Collectors look every two minutes.
const A_PASS: Duration = Duration::from_mins(8);
const COLLECTORS: [&str; 2] = ["instance.garbagecollection", "nodeclaim.garbagecollection"];

/// How the API server answers.
#[derive(Clone)]
enum Answers {
    Well,
    /// With a status code, for a resource.
    With(StatusCode, &'static str),
    /// As if there were no objects of a resource.
    Empty(&'static str),
    /// Never, about a resource.
    Never(&'static str),
    /// As another API server does.
    AsAnother(Client),
}

/// An API server that can be made to answer badly.
#[derive(Clone)]
struct Bad {
    client: Client,
    answers: watch::Receiver<Answers>,
}

/// The body of an answer that may end early.
type Answer = UnsyncBoxBody<bytes::Bytes, Box<dyn std::error::Error + Send + Sync>>;

impl tower::Service<Request<Body>> for Bad {
    type Response = Response<Answer>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Answer>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { client, mut answers } = self.clone();
        let (answer, path) = (answers.borrow_and_update().clone(), request.uri().path().to_owned());
        let is_about = move |resource: &str| path.split('/').any(|part| part == resource);
        Box::pin(async move {
            let answer = match answer {
                Answers::With(code, resource) if is_about(resource) => {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "message": "on purpose", "reason": "OnPurpose", "code": code.as_u16(),
                    });
                    let body = Body::from(status.to_string().into_bytes());
                    Ok(Response::builder().status(code).body(body).expect("it is an answer"))
                }
                Answers::Never(resource) if is_about(resource) => std::future::pending().await,
                Answers::Empty(resource) if is_about(resource) => {
                    let joiner = if request.uri().query().is_some() { '&' } else { '?' };
                    let uri = format!("{}{joiner}labelSelector=nobody%3Dhas", request.uri());
                    *request.uri_mut() = uri.parse().expect("it was one before");
                    client.send(request).await
                }
                Answers::AsAnother(other) => other.send(request).await,
                _ => client.send(request).await,
            };
            // Watches end when the server begins to answer otherwise.
            let changed = async move {
                let _ = answers.changed().await;
            };
            answer.map(|response| {
                response.map(|body| {
                    let frames = BodyStream::new(body).take_until(Box::pin(changed));
                    StreamBody::new(frames.map(|frame| frame.map_err(Into::into))).boxed_unsync()
                })
            })
        })
    }
}

/// An operator, and the API server that it sees.
struct Operator {
    how: String,
    parts: Parts,
    answers: watch::Sender<Answers>,
}

impl Operator {
    fn start(real: &Real, how: &str) -> Self {
        let (answers, seen) = watch::channel(Answers::Well);
        let bad = Bad { client: real.client.clone(), answers: seen };
        let _entered = real.runtime.enter();
        let client = Client::new(bad, "default");
        let parts = Parts::new(client, Provider::Kwok, Clock::system(), Settings::default());
        let running = parts.clone();
        real.runtime.spawn(async move {
            let Parts { api, cluster, clock, .. } = running.clone();
            let kwok = Kwok::new(api, cluster, clock, 1, cluster::instance_types::kwok::built_in());
            let of_cloud = kwok.controllers(&running.events, &running.metrics);
            let (_leads, leading) = watch::channel(true);
            operator::run(running.context(Arc::new(kwok)), of_cloud, leading).await;
        });
        Self { how: how.to_owned(), parts, answers }
    }

    /// How often each collector has looked.
    fn passes(&self) -> BTreeMap<&'static str, u64> {
        let count = |collector: &'static str| {
            let of = |result| self.parts.metrics.value(&RECONCILES, &[collector, result]).unwrap_or(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
            let all = ["success", "requeue", "requeue_after", "error"].map(of).iter().sum::<f64>() as u64;
            (collector, all)
        };
        COLLECTORS.into_iter().map(count).collect()
    }

    fn has_stopped(&self) -> bool {
        let of = |collector, reason| {
            self.parts.metrics.value(&GARBAGE_COLLECTION_STOPPED, &[collector, reason]).unwrap_or(0.0)
        };
        COLLECTORS.iter().any(|collector| of(collector, "stale") + of(collector, "limit") > 0.5)
    }
}

/// Waits until every collector of every operator has looked again.
fn wait_for_passes(operators: &[Operator]) -> Result<()> {
    let before: Vec<_> = operators.iter().map(Operator::passes).collect();
    poll("every collector to look", A_PASS, || {
        let have_looked = operators.iter().zip(&before).all(|(operator, before)| {
            operator.passes().iter().all(|(collector, passes)| *passes > before[collector])
        });
        Ok(have_looked.then_some(()))
    })
}

/// Whether the API server serves NodeClaims.
fn serve_claims(cluster: &Cluster, served: bool) -> Result<()> {
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": served}]);
    let patch = format!("--patch={patch}");
    cluster.real.plane.kubectl(&["patch", "crd", "nodeclaims.karpenter.sh", "--type=json", &patch])?;
    Ok(())
}

/// The names of nodes and claims that stay.
fn fleet(stage: &dyn Stage) -> Vec<String> {
    let all = [stage.list(NODES), stage.list(CLAIMS)].concat();
    let staying = all.iter().filter(|object| object["metadata"]["deletionTimestamp"].is_null());
    let mut names: Vec<String> = staying.map(|object| name(object).to_owned()).collect();
    names.sort();
    names
}

#[test]
fn no_bad_answer_of_a_real_api_server_costs_a_node() -> Result<()> {
    let mut cluster = Cluster::start(ControlPlane::builder(), Machines::Simulator)?;
    let another = Real::start(ControlPlane::builder(), Machines::Simulator)?;
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
    }]}}});
    let web = deployment_with("web", FLEET, "500m", &apart);
    cluster.apply(&manifest(&[node_class(), pool("default"), web]));
    let mut operators = vec![Operator::start(&cluster.real, "as usual")];
    cluster.stage().until_running("web", FLEET);

    let troubles = [
        ("404 for NodeClaims", Answers::With(StatusCode::NOT_FOUND, "nodeclaims")),
        ("403 for NodeClaims", Answers::With(StatusCode::FORBIDDEN, "nodeclaims")),
        ("503 for NodeClaims", Answers::With(StatusCode::SERVICE_UNAVAILABLE, "nodeclaims")),
        ("no NodeClaims", Answers::Empty("nodeclaims")),
        ("no Nodes", Answers::Empty("nodes")),
        ("no answer about NodeClaims", Answers::Never("nodeclaims")),
        ("an empty API server", Answers::AsAnother(another.client.clone())),
    ];
    operators.extend(troubles.iter().map(|(how, _)| Operator::start(&cluster.real, how)));
    poll("all operators to know the cluster", Duration::from_mins(2), || {
        Ok(operators.iter().all(|operator| operator.parts.cluster.is_listed()).then_some(()))
    })?;
    let before = fleet(&cluster);
    assert_eq!(before.len(), 2 * FLEET, "{before:?}");
    for (operator, (_, answers)) in operators.iter().skip(1).zip(&troubles) {
        operator.answers.send_replace(answers.clone());
    }
    wait_for_passes(&operators)?;
    assert_eq!(fleet(&cluster), before);
    for operator in &operators {
        println!("{}: {} nodes before and after, stopped: {}", operator.how, FLEET, operator.has_stopped());
    }
    assert!(!operators[0].has_stopped());

    // What was seen on a cluster of a user: the version of the CRD is not served for a while.
    for operator in &operators {
        operator.answers.send_replace(Answers::Well);
    }
    serve_claims(&cluster, false)?;
    wait_for_passes(&operators)?;
    assert!(operators.iter().all(Operator::has_stopped), "all of them know that they do not know");
    let nodes = cluster.stage().list(NODES).len();
    serve_claims(&cluster, true)?;
    poll("collectors to work again", A_PASS, || {
        Ok((!operators.iter().any(Operator::has_stopped)).then_some(()))
    })?;
    let after = cluster.stage().list(NODES).len();
    println!("NodeClaims not served: {FLEET} nodes before, {nodes} then, {after} after");
    assert_eq!(fleet(&cluster), before);
    Ok(())
}

//! A service around the embedded server that notes every request and its answer.

use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use anyhow::{Context as _, Result, ensure};
use embedded::Body;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

/// Which groups there are differs between any two servers, and clients ask for it all the time.
const UNRECORDED: [&str; 5] = ["/api", "/apis", "/openapi", "/version", "/healthz"];

/// An embedded server that is recorded, and where it listens.
pub(crate) struct Stage {
    pub(crate) server: embedded::Server,
    pub(crate) recorder: Recorder,
    pub(crate) folder: TempDir,
    client: String,
}

impl Stage {
    pub(crate) async fn new(client: &str) -> Result<Self> {
        let server = embedded::Server::new(clock::Clock::system(), &embedded::Options::default());
        let recorder = Recorder { inner: server.service(), log: Arc::default() };
        let (listener, address) = embedded::http_server::bind_loopback().await?;
        tokio::spawn(embedded::http_server::serve_plain(recorder.clone(), listener));
        let folder = TempDir::new()?;
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: e\nclusters: [{{name: e, cluster: {{server: \
             'http://{address}'}}}}]\nusers: [{{name: e, user: {{}}}}]\ncontexts: [{{name: e, context: {{cluster: \
             e, user: e}}}}]\n"
        );
        std::fs::write(folder.path().join("kubeconfig"), config)?;
        let stage = Self { server, recorder, folder, client: client.to_owned() };
        stage.define()?;
        Ok(stage)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The custom resources that the tests have, too.
    fn define(&self) -> Result<()> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/definitions.yaml");
        let mut all: Vec<Value> = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
        let provider = api::provider::Provider::Kwok;
        all.extend(api::crds::documents(provider).into_iter().map(|crd| crd.document));
        for definition in all {
            self.server
                .apply(&definition, "test")
                .map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        }
        Ok(())
    }

    /// Begins a sequence in a namespace of its own, which is also the prefix of its other names.
    pub(crate) fn begin(&self, name: &str) -> Result<String> {
        let mut log = self.recorder.lock();
        let number = log.sequences.len() + 1;
        let id = format!("recorded-{number}x");
        let name = format!("{}: {name}", self.client);
        log.sequences.push((json!({"name": name, "source": self.client, "steps": []}), id.clone()));
        log.paused = true;
        drop(log);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": id}});
        let made = self.server.apply(&namespace, "test");
        ensure!(made.is_ok(), "{made:?}");
        self.recorder.lock().paused = false;
        Ok(id)
    }
}

/// The recorded service.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: embedded::Service,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    /// Sequences with the id that their names have.
    sequences: Vec<(Value, String)>,
    paused: bool,
}

impl Recorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sequences with requests, with `$id` in the place of their own names.
    pub(crate) fn sequences(&self) -> Vec<Value> {
        let log = self.lock();
        let used = log
            .sequences
            .iter()
            .filter(|(sequence, _)| sequence["steps"].as_array().is_some_and(|steps| !steps.is_empty()));
        used.filter_map(|(sequence, id)| serde_json::from_str(&sequence.to_string().replace(id, "$id")).ok())
            .collect()
    }

    /// Notes a request; returns its place.
    fn note(&self, step: Value) -> Option<(usize, usize)> {
        let mut log = self.lock();
        if log.paused {
            return None;
        }
        let number = log.sequences.len().checked_sub(1)?;
        let steps = log.sequences[number].0["steps"].as_array_mut()?;
        steps.push(step);
        Some((number, steps.len() - 1))
    }

    fn note_answer(&self, place: Option<(usize, usize)>, answer: Value) {
        if let Some((sequence, step)) = place {
            self.lock().sequences[sequence].0["steps"][step]["recorded"] = answer;
        }
    }
}

impl<B> tower::Service<Request<B>> for Recorder
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Debug,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let recorder = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let watch = parts.uri.query().is_some_and(|query| query.contains("watch="));
            let place = step(&parts, &body).and_then(|step| recorder.note(step));
            let answer = recorder.inner.clone().oneshot(Request::from_parts(parts, Full::new(body))).await?;
            if watch {
                return Ok(answer);
            }
            let (parts, body) = answer.into_parts();
            let bytes = body.collect().await?.to_bytes();
            if let Ok(value) = serde_json::from_slice(&bytes) {
                recorder.note_answer(place, essence(&value));
            }
            Ok(Response::from_parts(parts, Full::new(bytes).boxed_unsync()))
        })
    }
}

/// Of an answer, what later requests may repeat: names, UIDs, versions.
fn essence(value: &Value) -> Value {
    let metadata = |object: &Value| {
        let mut kept = json!({});
        for field in ["name", "uid", "resourceVersion", "continue"] {
            if let Some(value) = object["metadata"].get(field) {
                kept[field] = value.clone();
            }
        }
        json!({"metadata": kept})
    };
    let mut kept = metadata(value);
    if let Some(items) = value["items"].as_array() {
        kept["items"] = items.iter().map(metadata).collect();
    }
    if let Some(rows) = value["rows"].as_array() {
        kept["rows"] = rows.iter().map(|row| json!({"object": metadata(&row["object"])})).collect();
    }
    kept
}

/// A request as the sequences write it; nothing for those that are not compared.
fn step(parts: &http::request::Parts, body: &[u8]) -> Option<Value> {
    let path = parts.uri.path();
    let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.split('/').count() <= 3);
    if UNRECORDED.contains(&path) || path.starts_with("/openapi") || path == "/" {
        return None;
    }
    // Lists of resources.
    if parts.method == http::Method::GET
        && (path == "/api/v1" || (path.starts_with("/apis/") && below("/apis")))
    {
        return None;
    }
    let text = |name| {
        parts.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or_default()
    };
    // The real server would answer in protobuf.
    let accept: Vec<&str> =
        text(header::ACCEPT).split(',').filter(|one| !one.contains("protobuf")).map(str::trim).collect();
    let mut step = json!({
        "do": format!("{} {path}{}", parts.method, query(path, parts.uri.query())),
        "accept": accept.join(","),
        "agent": text(header::USER_AGENT).split(' ').next(),
    });
    if !body.is_empty() {
        step["type"] = Value::from(text(header::CONTENT_TYPE));
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => step["body"] = value,
            Err(_) => match std::str::from_utf8(body) {
                Ok(text) if !body.contains(&0) => step["raw"] = Value::from(text),
                _ => step["hex"] = Value::from(hex(body)),
            },
        }
    }
    Some(step)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The query, in which watches end soon and lists of the whole cluster, which others fill, have one page.
fn query(path: &str, query: Option<&str>) -> String {
    let Some(query) = query else { return String::new() };
    let whole = !path.contains("/namespaces/");
    let dropped = |pair: &str| pair.starts_with("timeout") || (whole && pair.starts_with("limit"));
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !dropped(pair)).collect();
    if pairs.iter().any(|pair| pair.starts_with("watch=")) {
        pairs.push("timeoutSeconds=2");
    }
    format!("?{}", pairs.join("&"))
}

/// Waits for something that a client does by itself.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..300 {
        if holds() {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err(anyhow::anyhow!("no {what} in time")).context("the client")
}

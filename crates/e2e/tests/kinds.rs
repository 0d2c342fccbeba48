//! What a real API server answers to the requests in `crates/embedded/tests/kinds`, which the embedded one is
//! compared with. With `UPDATE_EXPECT=1` the answers are recorded anew.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use e2e::{Component, ControlPlane};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

const FILES: [&str; 3] = ["pods", "workloads", "others"];
const UID: &str = "00000000-0000-0000-0000-000000000000";
const TIME: &str = "2026-01-01T00:00:00Z";
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn recorded_answers_are_those_of_a_real_server() -> Result<()> {
    let server = Server::start()?;
    let bases: Value = serde_saphyr::from_str(&std::fs::read_to_string(folder().join("bases.yaml"))?)?;
    for file in FILES {
        let requests = std::fs::read_to_string(folder().join(format!("{file}.yaml")))?;
        let requests: Vec<Value> = serde_saphyr::from_str(&requests)?;
        let answers: Result<Vec<Value>> =
            requests.iter().map(|request| server.play(&bases, request)).collect();
        let answers = Value::Array(answers?);
        let path = folder().join(format!("{file}.answers.json"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, serde_json::to_string_pretty(&answers)? + "\n")?;
        } else {
            let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            compare(&recorded, &answers)?;
        }
    }
    Ok(())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../embedded/tests/kinds")
}

fn compare(recorded: &Value, answers: &Value) -> Result<()> {
    let (recorded, answers) = (recorded.as_array().context("a list")?, answers.as_array().context("a list")?);
    ensure!(recorded.len() == answers.len(), "cases were added or removed");
    for (recorded, answer) in recorded.iter().zip(answers) {
        ensure!(sorted(recorded) == sorted(answer), "recorded: {recorded:#}\nnow: {answer:#}");
    }
    Ok(())
}

/// Messages with their parts in order: Go walks through maps as it likes.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| match (key.as_str(), value) {
                ("message", Value::String(text)) => {
                    let text = text.split('\n').next().unwrap_or_default();
                    let mut parts: Vec<&str> = text.split([',', '[', ']']).map(str::trim).collect();
                    parts.sort_unstable();
                    (key.clone(), json!(parts))
                }
                _ => (key.clone(), sorted(value)),
            });
            Value::Object(entries.collect())
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

struct Server {
    // Held for as long as it is asked.
    _plane: ControlPlane,
    runtime: Runtime,
    client: Client,
    resources: Value,
}

impl Server {
    /// A server without the admission that only makes sense with controllers.
    fn start() -> Result<Self> {
        let disabled =
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection";
        let plane = ControlPlane::builder().arg(Component::ApiServer, disabled).start()?;
        let runtime = Runtime::new()?;
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
        let client = runtime.block_on(async {
            let mut config =
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            config.default_retry = false;
            anyhow::Ok(Client::try_from(config)?)
        })?;
        let resources = folder().join("../../data/resources.json");
        let resources = serde_json::from_str(&std::fs::read_to_string(resources)?)?;
        let server = Self { _plane: plane, runtime, client, resources };
        let namespace = json!({"metadata": {"name": "kinds"}});
        server.send(Method::POST, "/api/v1/namespaces", Some(&namespace))?;
        Ok(server)
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        self.send_for("application/json", method, path, body)
    }

    fn send_for(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json").header("Accept", accept);
        let request = request.body(bytes.into())?;
        self.runtime.block_on(async {
            let response = self.client.send(request).await?;
            let code = response.status().as_u16();
            Ok((code, serde_json::from_slice(&response.into_body().collect_bytes().await?)?))
        })
    }

    /// Where objects of this kind are.
    fn collection(&self, object: &Value) -> Result<String> {
        let version = object["apiVersion"].as_str().context("an API version")?;
        let groups = self.resources.as_array().into_iter().flatten();
        let group =
            groups.into_iter().find(|group| group["groupVersion"] == version).context("a known group")?;
        let resource = group["resources"].as_array().into_iter().flatten().find(|resource| {
            let subresource = resource["name"].as_str().is_some_and(|name| name.contains('/'));
            resource["kind"] == object["kind"] && !subresource
        });
        let resource = resource.context("a known kind")?;
        let prefix = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        let namespace = if resource["namespaced"] == true { "/namespaces/kinds" } else { "" };
        Ok(format!("{prefix}{namespace}/{}", resource["name"].as_str().unwrap_or_default()))
    }

    fn play(&self, bases: &Value, request: &Value) -> Result<Value> {
        let base = request["of"].as_str().and_then(|name| bases.get(name)).context("a known base")?;
        let object = merged(base, request.get("with"));
        let collection = self.collection(&object)?;
        let (code, mut stored) = self.send(Method::POST, &collection, Some(&object))?;
        let mut answers = vec![answer(code, &stored)];
        if code < 300 {
            let path = format!("{collection}/{}", stored["metadata"]["name"].as_str().unwrap_or_default());
            for step in request["then"].as_array().into_iter().flatten() {
                let (verb, change) =
                    step.as_object().and_then(|step| step.iter().next()).context("a step")?;
                if verb == "established" {
                    stored = self.established(&path)?;
                    answers.push(answer(200, &stored));
                    continue;
                }
                let path = if verb == "status" { format!("{path}/status") } else { path.clone() };
                let (code, body) = self.send(Method::PUT, &path, Some(&merged(&stored, Some(change))))?;
                answers.push(answer(code, &body));
                if code < 300 {
                    stored = body;
                }
            }
            answers.push(json!({"row": self.row(&path)?}));
            self.delete(&path)?;
        }
        Ok(json!({"case": request["case"], "answers": answers}))
    }

    /// A definition when the API server is ready to serve it.
    fn established(&self, path: &str) -> Result<Value> {
        e2e::poll("the definition to be established", PATIENCE, || {
            let (_, crd) = self.send(Method::GET, path, None)?;
            let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.filter(|condition| condition["status"] == "True").count() == 2;
            Ok(ready.then_some(crd))
        })
    }

    /// The object's line in a table.
    fn row(&self, path: &str) -> Result<Value> {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let (_, table) = self.send_for(accept, Method::GET, path, None)?;
        let cells = table["rows"][0]["cells"].as_array().context("a row")?;
        let cell = |cell: &Value| match cell.as_str() {
            Some(text) if is_age(text) => json!("AGE"),
            _ => steady(cell),
        };
        Ok(cells.iter().map(cell).collect())
    }

    fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        self.send(Method::DELETE, path, Some(&options))?;
        let (code, mut namespace) = self.send(Method::GET, path, None)?;
        if code == 200 && namespace["kind"] == "Namespace" {
            namespace["spec"] = json!({"finalizers": []});
            self.send(Method::PUT, &format!("{path}/finalize"), Some(&namespace))?;
        }
        e2e::poll(&format!("{path} to go"), PATIENCE, || {
            Ok((self.send(Method::GET, path, None)?.0 == 404).then_some(()))
        })
    }
}

/// The object with a merge patch applied.
fn merged(object: &Value, patch: Option<&Value>) -> Value {
    let Some(patch) = patch else { return object.clone() };
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut map = object.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            map.remove(key);
        } else {
            let value = merged(map.get(key).unwrap_or(&Value::Null), Some(change));
            map.insert(key.clone(), value);
        }
    }
    Value::Object(map)
}

fn answer(code: u16, body: &Value) -> Value {
    if code < 300 {
        return json!({"stored": steady(body)});
    }
    let message = body["message"].as_str().unwrap_or_default();
    json!({"code": code, "reason": body["reason"], "message": steady_text(message)})
}

/// The value without what is different in every run.
fn steady(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept =
                map.iter().filter(|(key, _)| !matches!(key.as_str(), "managedFields" | "resourceVersion"));
            Value::Object(kept.map(|(key, value)| (key.clone(), steady(value))).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.iter().map(steady).collect(),
        Value::String(text) => Value::String(steady_text(text)),
        other => other.clone(),
    }
}

/// The text with every UID and every present time replaced.
fn steady_text(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let (known, width) = if rest.get(..UID.len()).is_some_and(is_uid) {
            (UID, UID.len())
        } else if rest.get(..TIME.len()).is_some_and(is_present) {
            (TIME, TIME.len())
        } else {
            (&rest[..letter.len_utf8()], letter.len_utf8())
        };
        steady.push_str(known);
        rest = &rest[width..];
    }
    steady
}

fn is_age(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.ends_with(|letter: char| "smhdy".contains(letter))
        && text.chars().all(|letter| letter.is_ascii_digit() || "smhdy".contains(letter))
}

fn is_uid(text: &str) -> bool {
    let pairs = text.bytes().zip(UID.bytes());
    pairs.into_iter().all(|(byte, shape)| if shape == b'-' { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Times in the requests are round; others are those of the server's clock.
fn is_present(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok() && !text.ends_with("T00:00:00Z")
}

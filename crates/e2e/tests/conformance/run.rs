//! Sends a sequence to one server.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::normalise::Normaliser;
use crate::replay::Correspondence;
use crate::sequence::{Sequence, Step, Until, Variables, at, merge};
use crate::target::{Message, Reply, Target};

/// The garbage collector and the namespace controller take a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// A watch is in place well before this; without it the steps after it might come first.
const WATCH_START: Duration = Duration::from_millis(150);

/// The answers to one sequence, normalised, in order.
pub(crate) type Answers = Vec<Value>;

/// Sends a sequence; `id` is its namespace and the prefix of its other names.
pub(crate) async fn run(target: &Target, sequence: &Sequence, id: &str) -> Result<(Answers, Vec<u16>)> {
    let mut variables = Variables::default();
    variables.set("ns", Value::from(id));
    variables.set("id", Value::from(id));
    prepare(target, id).await?;
    let mut normaliser = Normaliser::new(id);
    let mut correspondence = Correspondence::default();
    let mut answers = Vec::new();
    let mut codes = Vec::new();
    let mut watches = Vec::new();
    for (number, step) in sequence.steps.iter().enumerate() {
        let message = message(step, &variables, &correspondence)?;
        if step.is_watch() {
            let (target, message) = (target.clone(), message.clone());
            watches.push((number, tokio::spawn(async move { target.send(&message).await })));
            answers.push(Value::Null);
            codes.push(200);
            sleep(WATCH_START).await;
            continue;
        }
        let reply = send_until(target, &message, step.until.as_ref()).await?;
        if !step.recorded.is_null() {
            correspondence.learn(&step.recorded, &reply.body);
        }
        if !step.name.is_empty() {
            variables.set(&step.name, reply.body.clone());
        }
        codes.push(reply.code);
        answers.push(normalised(&mut normaliser, step, &reply, id));
    }
    for (number, watch) in watches {
        let reply = watch.await?.context("a watch")?;
        codes[number] = reply.code;
        answers[number] = normalised(&mut normaliser, &sequence.steps[number], &reply, id);
    }
    Ok((answers, codes))
}

fn normalised(normaliser: &mut Normaliser, step: &Step, reply: &Reply, id: &str) -> Value {
    let path = step.target().split('?').next().unwrap_or_default();
    let in_place = ["$ns", "$id", id].iter().any(|own| path.contains(own));
    let version = normaliser.version_number(reply);
    let mut answer = normaliser.reply(reply, !in_place);
    // A repeated question may see more or fewer changes in between.
    if step.until.is_none() && !step.is_watch() {
        answer["version"] = json!(version);
    }
    if step.only_status {
        answer = json!({"code": answer["code"]});
    }
    answer
}

async fn prepare(target: &Target, id: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": id}});
    let message = Message {
        method: "POST".to_owned(),
        target: "/api/v1/namespaces".to_owned(),
        content_type: "application/json".to_owned(),
        accept: "application/json".to_owned(),
        agent: "conformance".to_owned(),
        body: namespace.to_string().into_bytes(),
        watch: false,
    };
    let reply = target.send(&message).await?;
    anyhow::ensure!(reply.code == 201, "the namespace {id}: {}", reply.body);
    Ok(())
}

fn message(step: &Step, variables: &Variables, correspondence: &Correspondence) -> Result<Message> {
    let mut body = variables.fill(&step.body);
    if !step.from.is_empty() {
        let mut base = variables.get(&step.from)?.clone();
        if !body.is_null() {
            merge(&mut base, &body);
        }
        body = base;
    }
    let bytes = match (&step.hex, &step.raw) {
        (Some(hex), _) => unhex(hex)?,
        (None, Some(raw)) => variables.text(raw).into_bytes(),
        _ if body.is_null() => Vec::new(),
        _ => correspondence.body(body).to_string().into_bytes(),
    };
    let bytes = if step.padding > 0 { [bytes, vec![b' '; step.padding]].concat() } else { bytes };
    let agent = if step.agent.is_empty() { "conformance" } else { &step.agent };
    Ok(Message {
        method: step.method().to_owned(),
        target: correspondence.target(&variables.text(step.target())),
        content_type: step.content_type().to_owned(),
        accept: step.accept().to_owned(),
        agent: agent.to_owned(),
        body: bytes,
        watch: step.is_watch(),
    })
}

fn unhex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

async fn send_until(target: &Target, message: &Message, until: Option<&Until>) -> Result<Reply> {
    let start = Instant::now();
    loop {
        let reply = target.send(message).await?;
        let holds = until.is_none_or(|until| match until.status {
            Some(status) => reply.code == status,
            None => *at(&reply.body, &until.field) == until.is,
        });
        if holds || start.elapsed() > PATIENCE {
            return Ok(reply);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Adds a custom resource and waits until it is served.
pub(crate) async fn define(target: &Target, definition: &Value) -> Result<()> {
    let message = |method: &str, path: &str, body: Vec<u8>| Message {
        method: method.to_owned(),
        target: path.to_owned(),
        content_type: "application/json".to_owned(),
        accept: "application/json".to_owned(),
        agent: "conformance".to_owned(),
        body,
        watch: false,
    };
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let reply = target.send(&message("POST", path, definition.to_string().into_bytes())).await?;
    // A cluster that is used again has it already.
    anyhow::ensure!(matches!(reply.code, 201 | 409), "{}", reply.body);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
    let objects = format!("/apis/{group}/{version}/{}", text(&spec["names"]["plural"]));
    let served = Until { status: Some(200), field: String::new(), is: Value::Null };
    send_until(target, &message("GET", &objects, Vec::new()), Some(&served)).await?;
    Ok(())
}

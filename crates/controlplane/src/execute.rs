//! Carries out what controllers decided: one request for each action.

use jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use serde_json::{Value, json};

use crate::action::{Action, Note, Verb, Write};
use crate::empty_namespace;
use crate::object::{Key, Kind, Object};

/// Who writes, as managed fields name it.
const MANAGER: &str = "karpenter-controlplane";

/// What came of an action.
#[derive(Debug)]
pub(crate) enum Done {
    /// The object as it is after the write.
    Object(Object),
    /// The server accepted the deletion; the object as it is while it stops, if it takes time.
    Deleting(Kind, Key, String, Option<Object>),
    /// There is no such object any more.
    Gone(Kind, Key, Option<String>),
    /// Nothing that the cache needs to know.
    Nothing,
    /// It did not work, and the same item has to be looked at again.
    Failed,
    /// The server does not allow the creation of an object; what whoever controls it is to be told.
    Refused(Option<Note>),
}

pub(crate) async fn perform(client: Client, action: Action, now: Timestamp, number: u64) -> Done {
    match action {
        Action::Write(write) => self::write(&client, write).await,
        Action::Note(note) => {
            // An event that is lost harms nobody.
            let _ = post_note(&client, &note, now, number).await;
            Done::Nothing
        }
        Action::EmptyNamespace(name) => match empty_namespace::empty(&client, &name).await {
            Ok(empty_namespace::Left::Nothing) => Done::Nothing,
            Ok(empty_namespace::Left::Something) | Err(_) => Done::Failed,
        },
    }
}

async fn write(client: &Client, write: Write) -> Done {
    let Write { kind, key, verb } = write;
    let url = kind.url(&key.namespace);
    match verb {
        Verb::Create(body) => create(client, kind, &url, &body).await,
        Verb::Patch { body, subresource } => {
            let request = Request::new(url);
            let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let patch = Patch::Merge(body);
            let request = match subresource {
                None => request.patch(&key.name, &params, &patch),
                Some(part) => request.patch_subresource(part, &key.name, &params, &patch),
            };
            match send(client, request).await {
                // The next renewal of a lease is due by the clock, and the watch brings what became of this one.
                Ok(_) if kind == Kind::Lease => Done::Nothing,
                Ok(text) => kind.parse(&text).map_or(Done::Nothing, Done::Object),
                Err(404) => Done::Gone(kind, key, None),
                Err(_) => Done::Failed,
            }
        }
        Verb::Delete { uid, grace } => {
            let params = DeleteParams {
                grace_period_seconds: grace,
                preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                ..DeleteParams::default()
            };
            match send(client, Request::new(url).delete(&key.name, &params)).await {
                Ok(text) => {
                    let left = kind.parse(&text).ok().filter(|object| {
                        object.meta().deletion_timestamp.is_some()
                            && object.meta().uid.as_deref() == Some(&*uid)
                    });
                    Done::Deleting(kind, key, uid, left)
                }
                Err(404) => Done::Gone(kind, key, Some(uid)),
                Err(_) => Done::Failed,
            }
        }
        Verb::Bind { uid, node } => {
            let body = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let body = serde_json::to_vec(&body).unwrap_or_default();
            let request =
                Request::new(url).create_subresource("binding", &key.name, &PostParams::default(), body);
            match send(client, request).await {
                Ok(_) => Done::Nothing,
                Err(404) => Done::Gone(kind, key, Some(uid)),
                Err(_) => Done::Failed,
            }
        }
    }
}

async fn create(client: &Client, kind: Kind, url: &str, object: &Value) -> Done {
    let Ok(body) = serde_json::to_vec(object) else { return Done::Nothing };
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let Ok(request) = Request::new(url).create(&params, body) else { return Done::Failed };
    match client.request_text(request).await {
        Ok(text) => kind.parse(&text).map_or(Done::Nothing, Done::Object),
        // What a namespace does not allow, or what is wrong with a template, is for people to mend.
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => {
            Done::Refused(refused(object, &status.message))
        }
        Err(_) => Done::Failed,
    }
}

/// What the controller of an object is told that could not be created.
fn refused(object: &Value, why: &str) -> Option<Note> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == Value::Bool(true))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = *Kind::ALL.iter().find(|kind| owner["kind"] == kind.name())?;
    Some(Note {
        kind,
        key: Key::new(&text(&object["metadata"]["namespace"]), &text(&owner["name"])),
        uid: text(&owner["uid"]),
        component: match kind {
            Kind::ReplicaSet => "replicaset-controller",
            Kind::StatefulSet => "statefulset-controller",
            Kind::DaemonSet => "daemonset-controller",
            Kind::Job => "job-controller",
            _ => "controller-manager",
        },
        severity: "Warning",
        reason: "FailedCreate",
        message: format!("Error creating: {why}"),
    })
}

async fn post_note(client: &Client, note: &Note, now: Timestamp, number: u64) -> Result<(), u16> {
    let namespace = if note.key.namespace.is_empty() { "default" } else { &note.key.namespace };
    let stamp = crate::time::seconds(now);
    let nanos = now.as_nanosecond();
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", note.key.name, nanos + i128::from(number)), "namespace": namespace},
        "involvedObject": {
            "apiVersion": note.kind.api_version(), "kind": note.kind.name(),
            "namespace": note.key.namespace, "name": note.key.name, "uid": note.uid,
        },
        "reason": note.reason, "message": note.message, "type": note.severity, "count": 1,
        "firstTimestamp": stamp, "lastTimestamp": stamp,
        "source": {"component": note.component},
    });
    let body = serde_json::to_vec(&body).unwrap_or_default();
    let url = format!("/api/v1/namespaces/{namespace}/events");
    send(client, Request::new(url).create(&PostParams::default(), body)).await.map(|_| ())
}

/// Sends a request; an error is the status code, or zero if there was no answer.
pub(crate) async fn send<E>(
    client: &Client,
    request: Result<http::Request<Vec<u8>>, E>,
) -> Result<String, u16> {
    let request = request.map_err(|_| 0_u16)?;
    client.request_text(request).await.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    })
}

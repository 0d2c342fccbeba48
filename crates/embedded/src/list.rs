//! Lists: selectors, pages, and the state of an earlier moment.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::form::{ListMeta, Writer};
use crate::kinds;
use crate::options;
use crate::refusal::{Cause, Details, Refusal};
use crate::request::{ObjectPath, Query, Request};
use crate::resources::Resource;
use crate::selector::{self, Selection};
use crate::state::{self, State};
use crate::store::{Key, Object, Objects};

/// What a request selects.
pub(crate) fn selection(query: &Query, resource: &Resource, path: &ObjectPath) -> Result<Selection, Refusal> {
    let mut fields = selector::parse_fields(query.text("fieldSelector"))?;
    let known = state::selectable(resource);
    for test in &mut fields {
        // The newer group of events has newer names.
        if let Some(rest) = test.path.strip_prefix("regarding.") {
            test.path = format!("involvedObject.{rest}");
        } else if resource.group == "events.k8s.io" && test.path == "reportingController" {
            "reportingComponent".clone_into(&mut test.path);
        }
        let path = test.path.as_str();
        let namespaced = resource.namespaced || resource.custom.is_some();
        let meta = path == "metadata.name" || (path == "metadata.namespace" && namespaced);
        if !meta && !known.contains(&path) {
            let why = match &resource.custom {
                Some(_) => format!("field label not supported: {path}"),
                None => kinds::field_refusal(&resource.group, &resource.kind, path),
            };
            return Err(Refusal::bad_request(why));
        }
    }
    // One object's watch is told of that object alone.
    if !path.name.is_empty() {
        fields.push(selector::FieldTest {
            path: "metadata.name".to_owned(),
            value: path.name.clone(),
            equal: true,
        });
    }
    Ok(Selection {
        namespace: (!path.namespace.is_empty()).then(|| path.namespace.as_str().into()),
        labels: selector::parse_labels(query.text("labelSelector"))?,
        fields,
    })
}

/// A revision that the client has from nowhere.
pub(crate) fn too_large(revision: u64, current: u64) -> Refusal {
    let mut refusal = Refusal::new(
        StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {revision}, current: {current}"),
    );
    refusal.details = Some(Box::new(Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after_seconds: Some(1),
        ..Details::default()
    }));
    refusal
}

/// A resource version as a number.
pub(crate) fn parse_revision(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let error = crate::field_error::FieldError::invalid(
            "resourceVersion",
            &Value::from(text),
            format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
        );
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.to_string())
    })
}

/// The real server says so of a token that it did not make.
const BAD_TOKEN: &str =
    "invalid continue token: continue key is not valid: illegal base64 data at input byte 0";

/// Where a list goes on.
struct Continue {
    revision: u64,
    after: Key,
}

impl Continue {
    fn text(&self) -> String {
        let token = json!({
            "v": "meta.k8s.io/v1", "rv": self.revision, "ns": &*self.after.namespace, "name": &*self.after.name,
        });
        hex(token.to_string().as_bytes())
    }

    fn parse(text: &str) -> Option<Self> {
        let token: Value = serde_json::from_slice(&unhex(text)?).ok()?;
        Some(Self {
            revision: token["rv"].as_u64()?,
            after: Key::new(token["ns"].as_str()?, token["name"].as_str()?),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Answers a list request.
pub(crate) fn list(
    state: &State,
    request: &Request,
    resource: &Arc<Resource>,
    path: &ObjectPath,
) -> Result<Answer, Refusal> {
    let query = &request.query;
    let selection = selection(query, resource, path)?;
    let current = state.store.revision();
    let limit = options::number(query, "limit")?;
    options::number(query, "timeoutSeconds")?;
    let matching = query.text("resourceVersionMatch");
    check_match(query, matching)?;
    let asked = parse_revision(query.text("resourceVersion"))
        .map_err(|refusal| Refusal::bad_request(format!("invalid resource version: {}", refusal.message)))?;
    if asked > current {
        return Err(too_large(asked, current));
    }
    let token = query.text("continue");
    let (revision, after) = if !token.is_empty() {
        let token = Continue::parse(token).ok_or_else(|| Refusal::bad_request(BAD_TOKEN))?;
        (token.revision, Some(token.after))
    } else if matching == "Exact" {
        (asked, None)
    } else {
        (past_revision(state, request, resource), None)
    };
    let expired = || {
        if token.is_empty() {
            Refusal::expired(format!("The resourceVersion for the provided list is too old: {revision}"))
        } else {
            Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start \
                 a new list without the continue parameter.",
            )
        }
    };
    let collection = state.store.collection(resource.collection);
    let objects = collection.at(revision).ok_or_else(expired)?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    // All of a namespace are neighbours.
    let start = match (after, &selection.namespace) {
        (Some(after), _) => Bound::Excluded(after),
        (None, Some(namespace)) => Bound::Included(Key { namespace: namespace.clone(), name: "".into() }),
        (None, None) => Bound::Unbounded,
    };
    let in_scope =
        |key: &Key| selection.namespace.as_ref().is_none_or(|namespace| key.namespace == *namespace);
    let mut selected = objects
        .range((start, Bound::Unbounded))
        .take_while(|(key, _)| in_scope(key))
        .map(|(_, object)| object)
        .filter(|object| selection.matches(object));
    let page: Vec<&Arc<Object>> = match limit {
        Some(limit) => selected.by_ref().take(limit).collect(),
        None => selected.by_ref().collect(),
    };
    let mut meta = ListMeta { revision, ..ListMeta::default() };
    if let (Some(limit), Some(last)) = (limit, page.last())
        && page.len() == limit
    {
        // A page ends before it is known whether what follows is selected.
        let after = (Bound::Excluded(last.key.clone()), Bound::Unbounded);
        let rest = objects.range(after).take_while(|(key, _)| in_scope(key)).count();
        if rest > 0 {
            meta.next = Some(Continue { revision, after: last.key.clone() }.text());
            meta.remaining = (!selection.is_selective()).then_some(rest);
        }
    }
    let writer = Writer::new(request, resource, state.clock.now());
    Ok(Answer::bytes(StatusCode::OK, writer.list(page.into_iter(), &meta)))
}

/// The revision that a read without wishes sees: the current one, unless a fault sends it into the past.
fn past_revision(state: &State, request: &Request, resource: &Resource) -> u64 {
    let current = state.store.revision();
    if request.behind == 0 {
        return current;
    }
    let oldest = state.store.collection(resource.collection).compacted();
    current.saturating_sub(request.behind).max(oldest).max(1)
}

/// The objects as a read that is sent into the past sees them.
pub(crate) fn past<'a>(state: &'a State, request: &Request, resource: &Resource) -> Option<Cow<'a, Objects>> {
    (request.behind > 0)
        .then(|| state.store.collection(resource.collection).at(past_revision(state, request, resource)))
        .flatten()
}

fn check_match(query: &Query, matching: &str) -> Result<(), Refusal> {
    let forbidden = |detail: &str| {
        let error = crate::field_error::FieldError::forbidden("resourceVersionMatch", detail);
        Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[error]))
    };
    match matching {
        "" | "NotOlderThan" | "Exact" => {}
        other => {
            let error = crate::field_error::FieldError::not_supported(
                "resourceVersionMatch",
                &Value::from(other),
                &["Exact", "NotOlderThan", ""],
            );
            return Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[error]));
        }
    }
    if query.has("sendInitialEvents") {
        let error = crate::field_error::FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        );
        return Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[error]));
    }
    if matching.is_empty() {
        return Ok(());
    }
    if query.text("resourceVersion").is_empty() {
        return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if !query.text("continue").is_empty() {
        return forbidden("resourceVersionMatch is forbidden when continue is provided");
    }
    if matching == "Exact" && query.text("resourceVersion") == "0" {
        return forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    Ok(())
}

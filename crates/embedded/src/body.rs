//! Bodies of requests: JSON, YAML, and protobuf for Kubernetes' own kinds.

use serde_json::Value;

use crate::protobuf;
use crate::refusal::Refusal;
use crate::request::Request;

/// What the real server accepts at most.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;

/// Reads a body as an object.
pub(crate) fn read(request: &Request) -> Result<Value, Refusal> {
    let kind = request.content_type.split(';').next().unwrap_or_default().trim();
    match kind {
        "" | "application/json" | "*/*" => json(&request.body),
        "application/yaml" => yaml(&request.body),
        protobuf::CONTENT_TYPE => protobuf::decode(&request.body).ok_or_else(|| {
            Refusal::bad_request("the body is no protobuf message of a kind that is known here")
        }),
        _ => Err(unknown_format(kind)),
    }
}

pub(crate) fn unknown_format(kind: &str) -> Refusal {
    let _ = kind;
    Refusal::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

pub(crate) fn json(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::bad_request(format!("invalid JSON: {error}")))
}

pub(crate) fn yaml(bytes: &[u8]) -> Result<Value, Refusal> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Refusal::bad_request(format!("the body is not UTF-8: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}")))
}

/// What a deletion asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// From the body if there is one, else from the query.
    pub(crate) fn of(request: &Request) -> Result<Self, Refusal> {
        let mut options = if request.body.is_empty() {
            let text = |name: &str| {
                let text = request.query.text(name);
                (!text.is_empty()).then(|| text.to_owned())
            };
            Self {
                grace: request.query.text("gracePeriodSeconds").parse().ok(),
                propagation: text("propagationPolicy")
                    .or_else(|| orphan(request.query.text("orphanDependents"))),
                ..Self::default()
            }
        } else {
            Self::from_json(&read(request)?)
        };
        options.dry_run |= request.is_dry_run();
        if let Some(policy) = &options.propagation
            && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
        {
            let error = crate::field_error::FieldError::not_supported(
                "propagationPolicy",
                &Value::from(policy.as_str()),
                &["Foreground", "Background", "Orphan", "nil"],
            );
            return Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        }
        Ok(options)
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let orphans = value["orphanDependents"].as_bool().map(|orphans| orphans.to_string());
        Self {
            grace: value["gracePeriodSeconds"].as_i64(),
            uid: text(&value["preconditions"]["uid"]),
            resource_version: text(&value["preconditions"]["resourceVersion"]),
            propagation: text(&value["propagationPolicy"]).or_else(|| orphan(&orphans.unwrap_or_default())),
            dry_run: value["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        }
    }
}

/// The older spelling of the propagation policy.
fn orphan(flag: &str) -> Option<String> {
    match flag {
        "true" => Some("Orphan".to_owned()),
        "false" => Some("Background".to_owned()),
        _ => None,
    }
}

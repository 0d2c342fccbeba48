//! Bodies of requests: JSON, YAML, and protobuf for Kubernetes' own kinds.

use serde_json::Value;

use crate::duplicates;
use crate::field_error::FieldError;
use crate::options;
use crate::protobuf;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::write::go_type;

/// What the real server accepts at most.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;

/// Reads a body as an object of a kind, and the paths of fields that it has more than once.
pub(crate) fn read(request: &Request, kind: &str) -> Result<(Value, Vec<String>), Refusal> {
    let format = request.content_type.split(';').next().unwrap_or_default().trim();
    let unrecognized = |why: String| {
        let shown = shown(&request.body);
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
        ))
    };
    let (object, duplicates) = match format {
        "" | "application/json" | "*/*" => {
            let parsed = duplicates::parse(&request.body);
            parsed.map_err(|error| {
                unrecognized(format!("couldn't get version/kind; json parse error: {error}"))
            })?
        }
        "application/yaml" => {
            (yaml(&request.body).map_err(|error| unrecognized(format!("yaml: {error}")))?, Vec::new())
        }
        protobuf::CONTENT_TYPE => {
            let decoded = protobuf::decode(&request.body);
            (decoded.ok_or_else(|| unrecognized("proto: cannot be read".to_owned()))?, Vec::new())
        }
        _ => return Err(unknown_format()),
    };
    let object = if object.is_null() { Value::Object(serde_json::Map::new()) } else { object };
    check_head(&object).map_err(unrecognized)?;
    Ok((object, duplicates))
}

/// Custom objects must say what they are.
pub(crate) fn require_kind(request: &Request, object: &Value, kind: &str) -> Result<(), Refusal> {
    if object["kind"].as_str().is_some_and(|kind| !kind.is_empty()) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{}' ({})",
        String::from_utf8_lossy(&request.body),
        shown(&request.body)
    )))
}

/// Version and kind are read before anything else.
fn check_head(object: &Value) -> Result<(), String> {
    let wrong =
        |what: &str| format!("couldn't get version/kind; json parse error: json: cannot unmarshal {what}");
    if !object.is_object() {
        return Err(wrong(&format!(
            "{} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }}",
            go_type(object)
        )));
    }
    for field in ["apiVersion", "kind"] {
        let value = &object[field];
        if !value.is_null() && !value.is_string() {
            return Err(wrong(&format!("{} into Go struct field .{field} of type string", go_type(value))));
        }
    }
    Ok(())
}

/// The beginning of a body that cannot be read: as it is when it looks like JSON, else in hexadecimal digits.
fn shown(body: &[u8]) -> String {
    const LONGEST: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let more = if body.len() > LONGEST { " ..." } else { "" };
    let start = &body[..body.len().min(LONGEST)];
    match std::str::from_utf8(start) {
        Ok(text) if text.starts_with('{') => format!("{text}{more}"),
        _ => start.iter().map(|byte| format!("{byte:02x}")).chain([more.to_owned()]).collect(),
    }
}

fn unknown_format() -> Refusal {
    Refusal::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// Reads a patch.
pub(crate) fn patch(bytes: &[u8], prefix: &str) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::bad_request(format!("{prefix}{error}")))
}

/// Reads what is to be applied.
pub(crate) fn apply_patch(bytes: &[u8]) -> Result<Value, Refusal> {
    let refuse = |why: String| Refusal::bad_request(format!("error decoding YAML: {why}"));
    let applied =
        yaml(bytes).map_err(|error| refuse(format!("error converting YAML to JSON: yaml: {error}")))?;
    match applied {
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Object(_) => Ok(applied),
        other => Err(refuse(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            go_type(&other)
        ))),
    }
}

fn yaml(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
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
                grace: options::number(&request.query, "gracePeriodSeconds")?,
                propagation: text("propagationPolicy")
                    .or_else(|| orphan(request.query.text("orphanDependents"))),
                ..Self::default()
            }
        } else {
            let (value, _) = read(request, "DeleteOptions")?;
            check(&value)?;
            Self::from_json(&value)
        };
        refuse(&options::dry_run(request.query.all("dryRun")).into_iter().collect::<Vec<_>>())?;
        options.dry_run |= request.is_dry_run();
        if let Some(policy) = &options.propagation
            && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
        {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            let policy = Value::from(policy.as_str());
            refuse(&[FieldError::not_supported("propagationPolicy", &policy, &known)])?;
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

fn refuse(errors: &[FieldError]) -> Result<(), Refusal> {
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", errors)) }
}

/// Options that contradict each other or do not exist.
fn check(value: &Value) -> Result<(), Refusal> {
    let mut errors = Vec::new();
    if value["orphanDependents"].is_boolean() && value["propagationPolicy"].is_string() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", &value["propagationPolicy"], why));
    }
    let dry_runs = value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str);
    errors.extend(options::dry_run(dry_runs));
    refuse(&errors)
}

/// The older spelling of the propagation policy.
fn orphan(flag: &str) -> Option<String> {
    match flag {
        "true" => Some("Orphan".to_owned()),
        "false" => Some("Background".to_owned()),
        _ => None,
    }
}

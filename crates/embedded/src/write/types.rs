//! What type an object says it has.

use serde_json::Value;

use super::name_of;
use crate::field_error::FieldError;
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::schema;

/// The body must be of the type that the path names.
pub(crate) fn check_type(resource: &Resource, object: &mut Value) -> Result<(), Refusal> {
    let api_version = resource.api_version().to_owned();
    let stated = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (stated("apiVersion"), stated("kind"));
    let wrong_version = !version.is_empty() && version != api_version;
    if resource.custom.is_some() {
        if wrong_version {
            return Err(Refusal::bad_request(format!(
                "the API version in the data ({version}) does not match the expected API version ({api_version})"
            )));
        }
        if !kind.is_empty() && kind != resource.kind {
            let why = format!("must be {}", resource.kind);
            let error = FieldError::invalid("kind", &Value::from(kind.as_str()), why);
            return Err(Refusal::invalid(&resource.group, &kind, name_of(object), &[error]));
        }
    } else if wrong_version || (!kind.is_empty() && kind != resource.kind) {
        return Err(unknown_type(resource, &version, &kind));
    }
    resource.set_type(object);
    Ok(())
}

fn unknown_type(resource: &Resource, version: &str, kind: &str) -> Refusal {
    let version = if version.is_empty() { resource.api_version() } else { version };
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    let prefix = format!(
        "{kind} in version \"{}\" cannot be handled as a {}",
        version.rsplit('/').next().unwrap_or_default(),
        resource.kind
    );
    let why = if schema::Library::built_in().kind(version, kind).is_some() {
        format!("converting ({kind}) to ({}): unknown conversion", resource.kind)
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Refusal::bad_request(format!("{prefix}: {why}"))
}

/// What Go calls a JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
        Value::Object(_) => "object",
    }
}

//! Bodies of requests: JSON, YAML, and the one protobuf message that kubectl insists on.

use serde_json::Value;

use crate::refusal::Refusal;
use crate::request::Request;

/// What the real server accepts at most.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;
/// How a protobuf body of Kubernetes begins.
const PROTOBUF_MAGIC: &[u8] = b"k8s\0";

/// Reads a body as an object.
pub(crate) fn read(request: &Request) -> Result<Value, Refusal> {
    let kind = request.content_type.split(';').next().unwrap_or_default().trim();
    match kind {
        "" | "application/json" | "*/*" => json(&request.body),
        "application/yaml" => yaml(&request.body),
        _ => Err(unknown_format(kind)),
    }
}

pub(crate) fn unknown_format(kind: &str) -> Refusal {
    let _ = kind;
    Refusal::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml",
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
        } else if request.body.starts_with(PROTOBUF_MAGIC) {
            protobuf::delete_options(&request.body[PROTOBUF_MAGIC.len()..])
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

mod protobuf {
    //! Just enough protobuf to read DeleteOptions: kubectl's typed clients send them so.

    use super::DeleteOptions;

    enum Field<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    /// The fields of a message; whatever cannot be read ends it.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
        let mut fields = Vec::new();
        while let Some(tag) = varint(&mut bytes) {
            let field = match tag & 7 {
                0 => varint(&mut bytes).map(Field::Number),
                2 => varint(&mut bytes).and_then(|length| {
                    let length = usize::try_from(length).ok()?;
                    let (value, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    Some(Field::Bytes(value))
                }),
                _ => None,
            };
            match field {
                Some(field) => fields.push((tag >> 3, field)),
                None => break,
            }
        }
        fields
    }

    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn text(bytes: &[u8]) -> Option<String> {
        std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Reads the envelope (`runtime.Unknown`, whose field 2 is the message) and the options in it.
    pub(super) fn delete_options(envelope: &[u8]) -> DeleteOptions {
        let mut options = DeleteOptions::default();
        for (number, field) in fields(envelope) {
            if let (2, Field::Bytes(message)) = (number, field) {
                read_options(message, &mut options);
            }
        }
        options
    }

    fn read_options(message: &[u8], options: &mut DeleteOptions) {
        for (number, field) in fields(message) {
            match (number, field) {
                (1, Field::Number(seconds)) => options.grace = Some(seconds.cast_signed()),
                (2, Field::Bytes(preconditions)) => {
                    for (number, field) in fields(preconditions) {
                        match (number, field) {
                            (1, Field::Bytes(uid)) => options.uid = text(uid),
                            (2, Field::Bytes(version)) => options.resource_version = text(version),
                            _ => {}
                        }
                    }
                }
                (3, Field::Number(orphans)) => {
                    options.propagation = super::orphan(if orphans == 0 { "false" } else { "true" });
                }
                (4, Field::Bytes(policy)) => options.propagation = text(policy),
                (5, Field::Bytes(_)) => options.dry_run = true,
                _ => {}
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn options_of_a_protobuf_body_are_understood() {
            let message = [0x08, 30, 0x12, 3, 0x0a, 1, b'u', 0x22, 6, b'O', b'r', b'p', b'h', b'a', b'n'];
            let mut envelope = vec![0x0a, 0, 0x12, u8::try_from(message.len()).unwrap()];
            envelope.extend(message);
            let options = delete_options(&envelope);
            assert_eq!(options.grace, Some(30));
            assert_eq!(options.uid.as_deref(), Some("u"));
            assert_eq!(options.propagation.as_deref(), Some("Orphan"));
        }

        #[test]
        fn nonsense_is_no_options() {
            assert_eq!(delete_options(&[0xff; 40]), DeleteOptions::default());
        }
    }
}

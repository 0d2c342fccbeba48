//! Refused requests, as the Status objects that Kubernetes clients understand.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::field_error::FieldError;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource's plural, or the kind where Kubernetes says that.
    pub kind: String,
    /// The single mistakes.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after_seconds: Option<u32>,
}

/// A single mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// The field, when there is one.
    pub field: String,
}

/// A resource by group and plural, as refusals name it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural, such as `pods`.
    pub plural: &'a str,
}

impl Target<'_> {
    fn qualified(self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Refusal {
    /// A refusal without details.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, target: Target<'_>, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: target.group.to_owned(),
            kind: target.plural.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// The object does not exist.
    pub fn not_found(target: Target<'_>, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", target.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(target, name)
    }

    /// The path leads nowhere.
    pub fn no_such_path() -> Self {
        let mut refusal =
            Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        refusal.details = Some(Box::default());
        refusal
    }

    /// An object of this name exists.
    pub fn already_exists(target: Target<'_>, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", target.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(target, name)
    }

    /// The object changed since it was read, or another precondition does not hold.
    pub fn conflict(target: Target<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", target.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(target, name)
    }

    /// The object changed since it was read.
    pub fn stale(target: Target<'_>, name: &str) -> Self {
        Self::conflict(
            target,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// The request may not be done.
    pub fn forbidden(target: Target<'_>, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", target.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(target, name)
    }

    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The verb does not exist for the resource.
    pub fn method_not_allowed() -> Self {
        let mut refusal = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        refusal.details = Some(Box::default());
        refusal
    }

    /// The verb does not exist for a custom resource's part.
    pub fn verb_not_supported(target: Target<'_>, method: &http::Method) -> Self {
        let verb = match *method {
            http::Method::DELETE => "delete",
            http::Method::POST => "create",
            _ => "update",
        };
        let message = format!("{verb} is not supported on resources of kind \"{}\"", target.qualified());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(target, "")
    }

    /// The body is of a type that is not understood here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// The body is of a type that is no patch.
    pub fn unknown_media_type() -> Self {
        let mut refusal = Self::unsupported_media_type("415: Unsupported Media Type");
        refusal.details = Some(Box::default());
        refusal
    }

    /// The history no longer reaches back that far.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Something failed that should not.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut refusal = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        let cause = Cause { reason: String::new(), message, field: String::new() };
        refusal.details = Some(Box::new(Details { causes: vec![cause], ..Details::default() }));
        refusal
    }

    /// The object breaks rules; `kind` is the object's kind, not the plural.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            // The API server aggregates equal sentences.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{qualified} \"{name}\" is invalid: {list}");
        let message = if list.is_empty() { format!("{qualified} \"{name}\" is invalid") } else { message };
        let causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.mistake.reason().to_owned(),
                message: error.body(),
                field: error.field.clone(),
            })
            .collect();
        let mut refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        refusal.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes,
            retry_after_seconds: None,
        }));
        refusal
    }

    /// The Status object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if self.reason.is_empty()
            && let Some(map) = status.as_object_mut()
        {
            map.remove("reason");
        }
        if let Some(details) = &self.details {
            status["details"] = details.json();
        }
        status
    }
}

impl Details {
    fn json(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind)] {
            if !value.is_empty() {
                map.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::json).collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            map.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        Value::Object(map)
    }
}

impl Cause {
    fn json(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                map.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
        Value::Object(map)
    }
}

//! What is answered, and what is refused: bodies as Azure's services write them.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};

/// An answer before it becomes bytes.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

/// What an answer carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Nothing,
    Json(Value),
    Text(String),
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Body::Json(body) }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Nothing }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn value(&self) -> Value {
        match &self.body {
            Body::Nothing => Value::Null,
            Body::Json(value) => value.clone(),
            Body::Text(text) => Value::String(text.clone()),
        }
    }

    /// What the body is, as its header says.
    pub(crate) const fn content_type(&self) -> Option<&'static str> {
        match self.body {
            Body::Nothing => None,
            Body::Json(_) => Some("application/json; charset=utf-8"),
            Body::Text(_) => Some("text/plain"),
        }
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let kind = self.content_type();
        let bytes = match self.body {
            Body::Nothing => Bytes::new(),
            Body::Json(value) => Bytes::from(value.to_string()),
            Body::Text(text) => Bytes::from(text),
        };
        let mut response = Response::new(bytes);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(kind) = kind {
            response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        for (name, value) in self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// How an error is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Envelope {
    /// `{"error": {…}}`.
    #[default]
    Wrapped,
    /// `{"code": …}`, as AKS writes it.
    Flat,
    /// The message alone.
    Plain,
}

/// An error of Azure; what it says is in [`Said`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusal(Box<Said>);

/// What an error of Azure says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The status of the answer.
    pub status: u16,
    /// The machine-readable reason.
    pub code: String,
    /// The text.
    pub message: String,
    /// What it is about.
    pub target: Option<String>,
    /// Errors below it.
    pub details: Vec<Value>,
    envelope: Envelope,
    headers: Vec<(&'static str, String)>,
}

impl Deref for Refusal {
    type Target = Said;

    fn deref(&self) -> &Said {
        &self.0
    }
}

impl DerefMut for Refusal {
    fn deref_mut(&mut self) -> &mut Said {
        &mut self.0
    }
}

impl Refusal {
    /// An error.
    pub fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        let said = Said { status, code: code.into(), message: message.into(), ..Said::default() };
        Self(Box::new(said))
    }

    /// What it is about.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Adds an error below it.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.details.push(detail);
        self
    }

    /// Without the object `error` around it, as AKS answers.
    #[must_use]
    pub fn flat(mut self) -> Self {
        self.envelope = Envelope::Flat;
        self
    }

    /// As plain text, as the server for node bootstrapping answers.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.envelope = Envelope::Plain;
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The error itself, without what is around it.
    pub fn value(&self) -> Value {
        let mut value = Map::new();
        value.insert("code".to_owned(), json!(self.code));
        value.insert("message".to_owned(), json!(self.message));
        if let Some(target) = &self.target {
            value.insert("target".to_owned(), json!(target));
        }
        if !self.details.is_empty() {
            value.insert("details".to_owned(), json!(self.details));
        }
        Value::Object(value)
    }

    pub(crate) fn answer(&self) -> Answer {
        let body = match self.envelope {
            Envelope::Wrapped => Body::Json(json!({"error": self.value()})),
            Envelope::Flat => Body::Json(self.value()),
            Envelope::Plain => Body::Text(self.message.clone()),
        };
        Answer { status: self.status, headers: self.headers.clone(), body }
    }

    pub(crate) fn not_found(kind: &str, name: &str, group: &str) -> Self {
        Self::new(
            404,
            "ResourceNotFound",
            format!(
                "The Resource '{kind}/{name}' under resource group '{group}' was not found. For more details please go to \
                 https://aka.ms/ARMResourceNotFoundFix"
            ),
        )
    }

    pub(crate) fn bad_json(why: &str) -> Self {
        Self::new(
            400,
            "InvalidRequestContent",
            format!("The request content was invalid and could not be deserialized: '{why}'."),
        )
    }
}

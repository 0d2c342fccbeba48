//! What is sent back.

use std::convert::Infallible;
use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::Value;

use crate::refusal::Refusal;

/// The body of a response: complete, or the stream of a watch.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a watch sends, chunk by chunk.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// An answer before it becomes a response.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) content: Content,
    /// Sentences for the user besides the answer.
    pub(crate) warnings: Vec<String>,
}

pub(crate) enum Content {
    Json(Bytes),
    /// JSON or protobuf of a type that the content type has to tell.
    Typed(&'static str, Bytes),
    Text(String),
    Chunks(Chunks),
}

impl Answer {
    pub(crate) fn json(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, serde_json::to_vec(value).unwrap_or_default().into())
    }

    pub(crate) fn bytes(code: StatusCode, bytes: Bytes) -> Self {
        Self { code, content: Content::Json(bytes), warnings: Vec::new() }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { code: StatusCode::OK, content: Content::Text(text.into()), warnings: Vec::new() }
    }

    pub(crate) fn chunks(chunks: Chunks) -> Self {
        Self { code: StatusCode::OK, content: Content::Chunks(chunks), warnings: Vec::new() }
    }

    /// The answer as JSON; text becomes a string, and a stream has no value.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Json(bytes) | Content::Typed(_, bytes) => {
                serde_json::from_slice(bytes).unwrap_or_default()
            }
            Content::Text(text) => Value::from(text.as_str()),
            Content::Chunks(_) => Value::Null,
        }
    }

    pub(crate) fn response(self) -> Response<Body> {
        let (kind, body) = match self.content {
            Content::Json(bytes) => ("application/json", Full::new(bytes).boxed_unsync()),
            Content::Typed(kind, bytes) => (kind, Full::new(bytes).boxed_unsync()),
            Content::Text(text) => ("text/plain; charset=utf-8", Full::new(text.into()).boxed_unsync()),
            Content::Chunks(chunks) => {
                let frames = chunks.map(|chunk| Ok(Frame::data(chunk)));
                ("application/json", StreamBody::new(frames).boxed_unsync())
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        for warning in self.warnings {
            let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        response
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::json(refusal.code, &refusal.status())
    }
}

/// The response to a refused request.
pub(crate) fn refused(refusal: Refusal) -> Response<Body> {
    let retry = refusal.details.as_ref().and_then(|details| details.retry_after_seconds);
    let mut response = Answer::from(refusal).response();
    if let Some(seconds) = retry {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

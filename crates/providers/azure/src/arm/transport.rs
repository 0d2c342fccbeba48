//! How requests reach a server: over the network, or to a double in the process.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

/// Sends one request and waits for the whole answer. Any status is an answer.
pub trait Transport: Send + Sync + 'static {
    /// Sends it.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>>;
}

/// No answer came.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

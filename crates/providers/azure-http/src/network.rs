//! The network: HTTP, encrypted or not, with the certificates of the system.

use std::error::Error;
use std::time::Duration;

use azure::arm::{Transport, TransportError};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;

use crate::connector::Connector;

/// How long one answer may take, with all of its body.
const ANSWER: Duration = Duration::from_mins(2);
/// After how much silence it is asked whether somebody is there.
const PING: Duration = Duration::from_secs(30);
/// How long the answer to that may take.
const PONG: Duration = Duration::from_secs(10);

/// Sends requests over the network. Connections are kept.
#[derive(Clone, Debug)]
pub struct Network {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
}

/// Why there is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading the certificates of the system, {0}")]
pub struct NetworkError(String);

impl Network {
    /// The network, through the proxies of the environment.
    pub fn new() -> Result<Self, NetworkError> {
        Self::through(Matcher::from_env())
    }

    fn through(proxies: Matcher) -> Result<Self, NetworkError> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(default_provider())
            .map_err(|error| NetworkError(causes(&error)))?
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(Connector::new(proxies));
        Ok(Self { client: builder(PING).build(connector) })
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let answer = self.client.request(request.map(Full::new)).await;
        let (parts, body) = answer.map_err(|error| TransportError(causes(&error)))?.into_parts();
        let body = body.collect().await.map_err(|error| TransportError(causes(&error)))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

/// How connections are kept: one that is silent is asked every so often, whether or not somebody uses it, so that the next
/// request does not meet one that a firewall has forgotten.
fn builder(ping: Duration) -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(ping)
        .http2_keep_alive_timeout(PONG)
        .http2_keep_alive_while_idle(true);
    builder
}

impl Transport for Network {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            match tokio::time::timeout(ANSWER, self.answer(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(TransportError(format!("no answer came within {}s", ANSWER.as_secs()))),
            }
        })
    }
}

/// An error with everything behind it, in one line.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}, {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

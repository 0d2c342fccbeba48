//! The official library's requests, over our transport.

use std::fmt;
use std::sync::Arc;

use azure::arm::Transport;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::{HeaderName, HeaderValue, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request, StatusCode};
use bytes::Bytes;
use futures::future::BoxFuture;

/// Sends the official library's requests.
pub(super) struct OverTransport(pub(super) Arc<dyn Transport>);

impl fmt::Debug for OverTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OverTransport")
    }
}

impl OverTransport {
    async fn execute(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let answer = self.0.send(convert(request)?).await;
        let answer = answer.map_err(|error| Error::with_message(ErrorKind::Io, error.to_string()))?;
        let mut headers = Headers::new();
        for (name, value) in answer.headers() {
            if let Ok(value) = value.to_str() {
                let name = HeaderName::from(name.as_str().to_owned());
                headers.insert(name, HeaderValue::from(value.to_owned()));
            }
        }
        let status = StatusCode::from(answer.status().as_u16());
        Ok(AsyncRawResponse::from_bytes(status, headers, answer.into_body()))
    }
}

fn convert(request: &Request) -> azure_core::Result<http::Request<Bytes>> {
    let Body::Bytes(body) = request.body() else {
        return Err(Error::with_message(ErrorKind::Other, "streams are not sent"));
    };
    let mut builder = http::Request::builder().method(request.method().as_str()).uri(request.url().as_str());
    for (name, value) in request.headers().iter() {
        builder = builder.header(name.as_str(), value.as_str());
    }
    builder.body(body.clone()).map_err(|error| Error::with_message(ErrorKind::Other, error.to_string()))
}

// Written out as the library's macro would write it.
impl HttpClient for OverTransport {
    fn execute_request<'life0, 'life1, 'async_trait>(
        &'life0 self,
        request: &'life1 Request,
    ) -> BoxFuture<'async_trait, azure_core::Result<AsyncRawResponse>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.execute(request))
    }
}

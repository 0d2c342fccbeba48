//! The server over HTTP, for clients in other processes.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::answer::{self, Body};
use crate::refusal::Refusal;

/// Serves one connection until either side closes it.
///
/// With a token, requests without it are refused.
pub async fn serve_connection<S, IO>(service: S, stream: IO, token: Option<&str>)
where
    S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let service = service.clone();
        let allowed = token.is_none_or(|token| bearer(&request) == Some(token));
        async move {
            if !allowed {
                return Ok::<_, Infallible>(answer::refused(Refusal::new(
                    http::StatusCode::UNAUTHORIZED,
                    "Unauthorized",
                    "Unauthorized",
                )));
            }
            service.oneshot(request).await
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    // A client that goes away is no failure of the server.
    let _ = connection.await;
}

fn bearer<B>(request: &Request<B>) -> Option<&str> {
    request.headers().get(http::header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Serves plain HTTP on a loopback port until dropped; for tests and tools.
pub async fn serve_plain<S>(service: S, listener: TcpListener)
where
    S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    // All connections end with the listener.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let service = service.clone();
                connections.spawn(async move { serve_connection(service, stream, None).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Binds a free loopback port.
pub async fn bind_loopback() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

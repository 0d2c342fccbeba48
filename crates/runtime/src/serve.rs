//! What the process answers over HTTP: metrics, profiles, and whether it lives and is ready.
//!
//! Each port has a thread of its own, so that a busy process still answers. Entries: [`listen`], [`Server`].

mod health;
mod profiles;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use api::names::process::{HEALTH_PATH, METRICS_PATH, PROFILING_PATH, READY_PATH};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;

pub use health::{Check, find_crds};

use crate::metrics::Registry;

/// What a browser and a scraper call plain text.
const TEXT: &str = "text/plain; charset=utf-8";
/// The version of the metrics' format.
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer.
pub type Answer = Response<Bytes>;

type Answerer = dyn Fn(&str, &str) -> BoxFuture<'static, Answer> + Send + Sync;

/// What a port answers, by path and query.
#[derive(Clone)]
pub struct Pages(Arc<Answerer>);

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pages")
    }
}

impl Pages {
    /// Metrics, and profiles if they are wanted.
    pub fn metrics(metrics: Registry, profiling: bool) -> Self {
        Self(Arc::new(move |path, query| match path.strip_prefix(PROFILING_PATH) {
            _ if path == METRICS_PATH => {
                Box::pin(std::future::ready(answer(StatusCode::OK, METRICS_TEXT, metrics.page())))
            }
            Some(profile) if profiling => profiles::answer(profile, query),
            _ => Box::pin(std::future::ready(not_found())),
        }))
    }

    /// Whether the process lives, and whether it is ready.
    pub fn health(live: Vec<Check>, ready: Vec<Check>) -> Self {
        Self(Arc::new(move |path, query| {
            let below = |root: &str| {
                let rest = path.strip_prefix(root)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/').to_owned())
            };
            let answer = if let Some(check) = below(HEALTH_PATH) {
                health::answer(&live, &check, query)
            } else if let Some(check) = below(READY_PATH) {
                health::answer(&ready, &check, query)
            } else {
                not_found()
            };
            Box::pin(std::future::ready(answer))
        }))
    }

    /// The answer to one request.
    pub async fn answer(&self, path: &str, query: &str) -> Answer {
        (self.0)(path, query).await
    }
}

fn answer(status: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content));
    answer.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    answer
}

fn not_found() -> Answer {
    answer(StatusCode::NOT_FOUND, TEXT, "404 page not found\n")
}

/// Listens on a port on all addresses.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    // Where there is IPv6, its any-address also means that of IPv4.
    TcpListener::bind((IpAddr::from(Ipv6Addr::UNSPECIFIED), port))
        .or_else(|_| TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), port)))
}

/// A port that answers until this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers on a port, on a thread of its own.
    pub fn start(listener: TcpListener, pages: Pages) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread =
            std::thread::Builder::new().name(format!("http-{}", address.port())).spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        result = accept(listener, pages) => {
                            if let Err(error) = result {
                                tracing::error!(error = %error, address = %address, "failed to serve");
                            }
                        }
                        _ = stopped => {}
                    }
                });
                // A profile that is still being taken is not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The thread ends when the sender is gone.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, pages: Pages) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most likely too many files are open; others may be closed soon.
                tracing::debug!(error = %error, "failed to accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let pages = pages.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let pages = pages.clone();
                async move {
                    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
                    let answer = pages.answer(path, query).await;
                    Ok::<_, std::convert::Infallible>(answer.map(Full::new))
                }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            // A client that goes away is no failure of the server.
            let _ = server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[cfg(test)]
mod tests;

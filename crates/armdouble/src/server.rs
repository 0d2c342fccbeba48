//! The double over HTTP, for clients in other processes.

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::double::Double;

/// Azure takes no more, either.
const LIMIT: usize = 4 * 1024 * 1024;

impl Double {
    /// Serves plain HTTP until it is dropped; all connections end with it.
    pub async fn serve(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    let double = self.clone();
                    connections.spawn(async move {
                        let service = service_fn(move |request| {
                            let double = double.clone();
                            async move { double.over_http(request).await }
                        });
                        let served = hyper::server::conn::http1::Builder::new()
                            .timer(TokioTimer::new())
                            .serve_connection(TokioIo::new(stream), service);
                        // A client that goes away is no failure of the server.
                        let _ = served.await;
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn over_http(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, LIMIT).collect().await.map_err(io::Error::other)?.to_bytes();
        let answered = self.answer(Request::from_parts(head, body)).await;
        // An error here breaks the connection, which is what is to happen.
        let lost = || io::Error::from(io::ErrorKind::ConnectionReset);
        answered.map(|answer| answer.map(Full::new)).ok_or_else(lost)
    }
}

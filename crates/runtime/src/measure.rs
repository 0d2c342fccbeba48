//! Measures every request to the API server. Entry: [`MeasureLayer`], for the client's stack.

use std::task::{Context, Poll};

use api::names::metrics::runtime as names;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::metrics::{Family, Registry};

/// Measures the requests of a client.
#[derive(Clone, Debug)]
pub struct MeasureLayer {
    requests: Family,
    durations: Family,
}

impl MeasureLayer {
    /// Counts into these metrics.
    pub fn new(metrics: &Registry) -> Self {
        Self {
            requests: metrics.family(&names::CLIENT_REQUESTS),
            durations: metrics.family(&names::CLIENT_REQUEST_DURATION),
        }
    }
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, measures: self.clone() }
    }
}

/// A client whose requests are measured.
#[derive(Clone, Debug)]
pub struct Measured<S> {
    inner: S,
    measures: MeasureLayer,
}

impl<S, A, B> Service<Request<A>> for Measured<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let MeasureLayer { requests, durations } = self.measures.clone();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let (start, answer) = (Instant::now(), self.inner.call(request));
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().map(Response::status);
            let code = code.as_ref().map_or("<error>", |code| code.as_str());
            requests.add(&[code, method.as_str()], 1.0);
            durations.observe(&target(&method, &path), start.elapsed().as_secs_f64());
            answer
        })
    }
}

/// The verb, group, version, plural and subresource that a request is about, as far as it has them.
fn target<'a>(method: &Method, path: &'a str) -> [&'a str; 5] {
    let mut parts = path.trim_matches('/').split('/');
    let (group, version) = match parts.next() {
        Some("api") => ("", parts.next()),
        Some("apis") => (parts.next().unwrap_or_default(), parts.next()),
        _ => ("", None),
    };
    let Some(version) = version else { return [verb(method, true), "", "", "", ""] };
    let mut rest: Vec<&str> = parts.collect();
    // A namespace is also an object of its own.
    if let ["namespaces", _, third, ..] = rest[..]
        && !matches!(third, "status" | "finalize")
    {
        rest.drain(..2);
    }
    let at = |position: usize| rest.get(position).copied().unwrap_or_default();
    [verb(method, rest.len() > 1), group, version, at(0), at(2)]
}

fn verb(method: &Method, has_name: bool) -> &'static str {
    match (method.as_str(), has_name) {
        ("POST", _) | ("PUT", false) => "CREATE",
        ("GET", false) => "LIST",
        ("GET", true) => "GET",
        ("PUT", true) => "UPDATE",
        ("PATCH", _) => "PATCH",
        ("DELETE", _) => "DELETE",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, expected: &str) {
        assert_eq!(target(method, path).join(","), expected);
    }

    #[test]
    fn paths_say_what_requests_are_about() {
        check(&Method::GET, "/api/v1/pods", "LIST,,v1,pods,");
        check(&Method::GET, "/api/v1/namespaces/a/pods/b", "GET,,v1,pods,");
        check(&Method::POST, "/api/v1/namespaces/a/pods/b/eviction", "CREATE,,v1,pods,eviction");
        check(&Method::GET, "/api/v1/namespaces/a", "GET,,v1,namespaces,");
        check(&Method::PATCH, "/api/v1/namespaces/a/status", "PATCH,,v1,namespaces,status");
        let claims = "/apis/karpenter.sh/v1/nodeclaims";
        check(&Method::POST, claims, "CREATE,karpenter.sh,v1,nodeclaims,");
        check(&Method::PATCH, &format!("{claims}/a/status"), "PATCH,karpenter.sh,v1,nodeclaims,status");
        check(&Method::DELETE, &format!("{claims}/a"), "DELETE,karpenter.sh,v1,nodeclaims,");
        check(&Method::PUT, &format!("{claims}/a"), "UPDATE,karpenter.sh,v1,nodeclaims,");
        check(&Method::GET, "/version", "GET,,,,");
    }
}

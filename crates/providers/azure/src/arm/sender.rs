//! Sends questions: as whom they are asked, not too often, again where that helps, and counted.

use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::azure as names;
use bytes::Bytes;
use clock::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use runtime::metrics::Registry;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::call::{Call, Identity};
use super::error::Error;
use super::retry::{self, Outcome};
use super::transport::{Transport, TransportError};
use super::windows::{Bucket, Told, Windows};
use crate::auth::{Cached, TokenError, TokenSource};
use crate::random::Random;

const AUXILIARY: HeaderName = HeaderName::from_static("x-ms-authorization-auxiliary");

/// What all questions have in common.
pub(super) struct Shared {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) windows: Arc<Windows>,
    pub(super) random: Random,
    pub(super) metrics: Registry,
    pub(super) clock: Clock,
    pub(super) agent: HeaderValue,
    pub(super) log_calls: bool,
}

/// Sends questions.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) shared: Arc<Shared>,
    /// For whom tokens are.
    pub(super) scope: String,
    pub(super) tokens: Option<Cached>,
    pub(super) gallery: Option<Cached>,
}

impl Sender {
    /// Sends a question until it is answered, or until that makes no sense any more. The answer is good.
    pub(super) async fn send(&self, call: &Call) -> Result<Response<Bytes>, Error> {
        let uri = call.uri()?;
        let bucket = Bucket::of(&call.method, uri.authority().map_or("", |host| host.as_str()), uri.path());
        let ticket = self.shared.windows.ticket();
        let mut attempt = 1;
        loop {
            let pass = self.shared.windows.admit(&bucket, ticket).await;
            let pass = pass.map_err(|left| closed(call, left))?;
            let request = self.request(call).await?;
            let begun = Instant::now();
            self.shared.metrics.add(&names::API_CALLS, &[call.operation], 1.0);
            let answer = self.shared.transport.send(request).await;
            self.log(call, attempt, &answer, begun.elapsed());
            let told = answer.as_ref().ok().and_then(|answer| self.told(answer.headers()));
            let outcome = match &answer {
                Ok(answer) => Outcome::Answered(answer.status().as_u16(), told),
                Err(_) => Outcome::Unanswered,
            };
            let is_busy = answer.as_ref().is_ok_and(|answer| is_busy(call, answer));
            let refused_until = told.filter(|_| matches!(outcome, Outcome::Answered(429, _)) && !is_busy);
            pass.answered(refused_until.map_or(Told::Nothing, Told::Wait));
            let random = self.shared.random.fraction();
            match retry::wait(attempt, outcome, random) {
                // Everybody waits, and who came first goes first.
                Some(_) if refused_until.is_some() => {}
                // Those that were in each other's way come back one after the other.
                Some(wait) if is_busy => sleep(wait.mul_f64(1.0 + random / 2.0)).await,
                Some(wait) => sleep(wait).await,
                None => return good(call, answer),
            }
            attempt += 1;
        }
    }

    /// Sends a question and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let answer = self.send(call).await?;
        read(call, &answer)
    }

    /// How long an answer says to wait.
    pub(super) fn told(&self, headers: &HeaderMap) -> Option<Duration> {
        retry::told(headers, self.shared.clock.now())
    }

    async fn request(&self, call: &Call) -> Result<Request<Bytes>, Error> {
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.uri()?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.shared.agent.clone());
        if !call.body.is_empty() || call.method == Method::PUT {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &call.headers {
            headers.insert(name, value.clone());
        }
        if call.identity != Identity::Nobody
            && let Some(tokens) = &self.tokens
        {
            headers.insert(AUTHORIZATION, self.bearer(call, tokens).await?);
        }
        if call.identity == Identity::WithGallery
            && let Some(gallery) = &self.gallery
        {
            headers.insert(AUXILIARY, self.bearer(call, gallery).await?);
        }
        Ok(request)
    }

    async fn bearer(&self, call: &Call, tokens: &Cached) -> Result<HeaderValue, Error> {
        let refused = |why: String| Error::new(&call.description(), "", &format!("getting a token, {why}"));
        let token = tokens.token(&self.scope).await.map_err(|TokenError(why)| refused(why))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.secret.reveal()))
            .map_err(|_| refused("it does not fit into a header".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Bodies and headers are not logged: secrets may be in there.
    fn log(
        &self,
        call: &Call,
        attempt: u32,
        answer: &Result<Response<Bytes>, TransportError>,
        took: Duration,
    ) {
        let (status, error) = match answer {
            Ok(answer) => (answer.status().as_u16(), String::new()),
            Err(error) => (0, error.to_string()),
        };
        let (method, url, millis) = (call.method.as_str(), call.url.as_str(), took.as_millis());
        let operation = call.operation;
        if self.shared.log_calls {
            tracing::info!(operation, method, url, status, attempt, millis, error, "called Azure");
        } else {
            tracing::debug!(operation, method, url, status, attempt, millis, error, "called Azure");
        }
    }
}

/// Whether a refusal is not about how many requests there are, though its status says so: the network answers like this
/// while something that the request refers to is being changed. Nobody else is concerned.
fn is_busy(call: &Call, answer: &Response<Bytes>) -> bool {
    let is_429 = answer.status() == http::StatusCode::TOO_MANY_REQUESTS;
    is_429 && Error::of_answer(&call.description(), answer).code.starts_with("RetryableError")
}

fn closed(call: &Call, left: Duration) -> Error {
    let seconds = left.as_secs().max(1);
    Error {
        status: Some(429),
        ..Error::new(
            &call.description(),
            "TooManyRequests",
            &format!("not sent, because Azure wants no requests of this kind for another {seconds}s"),
        )
    }
}

fn good(call: &Call, answer: Result<Response<Bytes>, TransportError>) -> Result<Response<Bytes>, Error> {
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(answer),
        Ok(answer) => Err(Error::of_answer(&call.description(), &answer)),
        Err(error) => Err(Error::unanswered(&call.description(), &error)),
    }
}

/// Reads an answer.
pub(super) fn read<T: DeserializeOwned>(call: &Call, answer: &Response<Bytes>) -> Result<T, Error> {
    serde_json::from_slice(answer.body())
        .map_err(|error| Error::unreadable(&call.description(), answer, error))
}

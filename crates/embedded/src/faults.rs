//! Faults on purpose: what networks and busy API servers do to clients.
//!
//! [`Faulty`] wraps the service. Which request suffers what is decided by a seed, so that a run can be repeated.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

use crate::answer::{self, Body};
use crate::refusal::{Details, Refusal, Target};
use crate::request::{Query, Route};
use crate::service::Service;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request arrives late.
    Delay(Duration),
    /// The answer arrives late, after the write happened.
    DelayedReply(Duration),
    /// 409: somebody else wrote first.
    Conflict,
    /// 429 with a time to wait.
    TooManyRequests,
    /// 500.
    InternalError,
    /// 503.
    Unavailable,
    /// 403.
    Forbidden,
    /// 404, as if the server did not serve the kind.
    NotServed,
    /// Lists and watches show no objects, and no object is found.
    Empty,
    /// The request is never answered.
    Hang,
    /// The connection breaks before the request is read.
    Cut,
    /// The write happens, and the connection breaks before the answer.
    LostReply,
    /// 410 on lists and watches.
    Expired,
    /// A watch ends after some events, in the middle of one.
    CutWatch {
        /// How many events arrive whole.
        after: usize,
    },
    /// Reads see the cluster as it was some changes ago.
    StaleRead {
        /// How many changes.
        behind: u64,
    },
}

/// Which requests may suffer a fault, and how often.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; empty for all.
    pub verb: String,
    /// The plural; empty for all.
    pub resource: String,
    /// From 0 to 1.
    pub probability: f64,
    /// What happens.
    pub fault: Fault,
}

impl Rule {
    /// A fault for all requests.
    pub fn everywhere(probability: f64, fault: Fault) -> Self {
        Self { verb: String::new(), resource: String::new(), probability, fault }
    }

    /// A fault for some requests; an empty text means all.
    pub fn on(verb: &str, resource: &str, probability: f64, fault: Fault) -> Self {
        Self { verb: verb.to_owned(), resource: resource.to_owned(), probability, fault }
    }
}

#[derive(Debug)]
struct Plan {
    rules: Vec<Rule>,
    random: Pcg64Mcg,
    injected: u64,
}

/// The server with faults.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: Arc<Mutex<Service>>,
    plan: Arc<Mutex<Plan>>,
}

/// How a broken connection looks to a client.
#[derive(Debug)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection reset by peer (injected)")
    }
}

impl std::error::Error for Broken {}

impl Faulty {
    /// Wraps a server; without rules nothing happens.
    pub fn new(inner: Service, seed: u64) -> Self {
        let plan = Plan { rules: Vec::new(), random: Pcg64Mcg::seed_from_u64(seed), injected: 0 };
        Self { inner: Arc::new(Mutex::new(inner)), plan: Arc::new(Mutex::new(plan)) }
    }

    /// Lets another server answer from now on. Watches of the old one go on until it ends them.
    pub fn replace(&self, inner: Service) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = inner;
    }

    /// Replaces the rules; the first that fires decides.
    pub fn set_rules(&self, rules: Vec<Rule>) {
        self.lock().rules = rules;
    }

    /// How many requests suffered so far.
    pub fn injected(&self) -> u64 {
        self.lock().injected
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, verb: &str, resource: &str) -> Option<Fault> {
        let mut plan = self.lock();
        let matching: Vec<(f64, Fault)> = plan
            .rules
            .iter()
            .filter(|rule| {
                (rule.verb.is_empty() || rule.verb == verb)
                    && (rule.resource.is_empty() || rule.resource == resource)
                    && applies(rule.fault, verb)
            })
            .map(|rule| (rule.probability, rule.fault))
            .collect();
        for (probability, fault) in matching {
            if plan.random.random::<f64>() < probability {
                plan.injected += 1;
                return Some(fault);
            }
        }
        None
    }
}

/// Faults that only make sense for some verbs.
fn applies(fault: Fault, verb: &str) -> bool {
    let reads = matches!(verb, "get" | "list" | "watch");
    match fault {
        Fault::Conflict | Fault::LostReply | Fault::DelayedReply(_) => !reads,
        Fault::Expired => matches!(verb, "list" | "watch"),
        Fault::CutWatch { .. } => verb == "watch",
        Fault::StaleRead { .. } => matches!(verb, "get" | "list"),
        Fault::Empty => reads,
        _ => true,
    }
}

/// The verb and resource of a request.
fn describe<B>(request: &Request<B>) -> (&'static str, String) {
    let Route::Objects(path) = Route::of(request.uri().path()) else { return ("other", String::new()) };
    let query = Query::of(request.uri().query().unwrap_or_default());
    let verb = match *request.method() {
        Method::GET if query.flag("watch") => "watch",
        Method::GET if path.name.is_empty() => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ => "delete",
    };
    (verb, path.plural)
}

impl<B> tower::Service<Request<B>> for Faulty
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Broken>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let harmless = self.lock().rules.is_empty();
        let (verb, resource) = if harmless { Default::default() } else { describe(&request) };
        let fault = self.draw(verb, &resource);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let answer = |refusal: Refusal| Ok(answer::refused(refusal));
            match fault {
                Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
                Some(Fault::Conflict) => {
                    return answer(Refusal::stale(Target { group: "", plural: &resource }, "injected"));
                }
                Some(Fault::TooManyRequests) => return answer(too_many_requests()),
                Some(Fault::InternalError) => return answer(Refusal::internal("injected")),
                Some(Fault::Unavailable) => {
                    return answer(Refusal::new(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "ServiceUnavailable",
                        "the server is currently unable to handle the request",
                    ));
                }
                Some(Fault::Forbidden) => {
                    let message = format!("{resource} is forbidden (injected)");
                    return answer(Refusal::new(StatusCode::FORBIDDEN, "Forbidden", message));
                }
                Some(Fault::NotServed) => return answer(not_found()),
                Some(Fault::Empty) if verb == "get" => return answer(not_found()),
                Some(Fault::Empty) => select_nothing(&mut request),
                Some(Fault::Hang) => return std::future::pending().await,
                Some(Fault::Cut) => return Err(Broken),
                Some(Fault::Expired) => {
                    return answer(Refusal::expired(
                        "The resourceVersion for the provided watch is too old.",
                    ));
                }
                Some(Fault::StaleRead { behind }) => {
                    request.extensions_mut().insert(Stale { behind });
                }
                _ => {}
            }
            let Ok(response) = tower::Service::call(&mut inner, request).await;
            match fault {
                Some(Fault::LostReply) => Err(Broken),
                Some(Fault::DelayedReply(delay)) => {
                    tokio::time::sleep(delay).await;
                    Ok(response)
                }
                Some(Fault::CutWatch { after }) => Ok(cut(response, after)),
                _ => Ok(response),
            }
        })
    }
}

/// Marks a request that sees the past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale {
    pub(crate) behind: u64,
}

fn not_found() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
}

/// Asks for objects that nobody has.
fn select_nothing<B>(request: &mut Request<B>) {
    let joiner = if request.uri().query().is_some() { '&' } else { '?' };
    let uri = format!("{}{joiner}labelSelector=injected%3Dnothing", request.uri());
    if let Ok(uri) = uri.parse() {
        *request.uri_mut() = uri;
    }
}

fn too_many_requests() -> Refusal {
    let mut refusal = Refusal::new(
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        "The server has received too many requests and has asked us to try again later",
    );
    refusal.details = Some(Box::new(Details { retry_after_seconds: Some(1), ..Details::default() }));
    refusal
}

/// Ends a stream of events in the middle of one.
fn cut(response: Response<Body>, after: usize) -> Response<Body> {
    response.map(|body| {
        let frames = BodyStream::new(body).enumerate().map(move |(number, frame)| {
            let Ok(frame) = frame;
            match frame.into_data() {
                Ok(data) if number == after => Frame::data(data.slice(..data.len() / 2)),
                Ok(data) => Frame::data(data),
                Err(frame) => frame,
            }
        });
        let frames = frames.take(after + 1).map(Ok);
        StreamBody::new(frames).boxed_unsync()
    })
}

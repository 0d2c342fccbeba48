//! The double itself: who may ask, what is throttled or fails, and who answers. Entry: [`Double`].

use std::fmt;
use std::sync::Arc;

use azure::arm::{Transport, TransportError};
use bytes::Bytes;
use clock::Clock;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use parking_lot::Mutex;
use serde_json::Value;

use crate::answer::{Answer, Refusal};
use crate::call::{Call, Facts};
use crate::failures::{Failure, How};
use crate::fixtures;
use crate::record::Recorded;
use crate::route::Kind;
use crate::settings::Settings;
use crate::state::State;
use crate::throttles::Throttle;
use crate::world::World;
use crate::{
    checks, clusters, compute, extensions, gallery, graph, machines, network, others, prices, quota, skus,
    tokens,
};

/// An Azure for tests. Clones are the same one.
#[derive(Clone)]
pub struct Double {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Double").finish_non_exhaustive()
    }
}

impl Double {
    /// An Azure with an AKS cluster, its network, images, SKUs and prices, and no nodes.
    pub fn new(clock: Clock) -> Self {
        Self::with(clock, Settings::default())
    }

    /// The same with names and behaviours of its own.
    pub fn with(clock: Clock, settings: Settings) -> Self {
        let mut world = World::new(settings, clock.now());
        fixtures::fill(&mut world);
        Self { clock, state: Arc::new(Mutex::new(State::new(world))) }
    }

    /// Looks at what there is now, or changes it.
    pub fn change<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        let mut state = self.state.lock();
        state.advance(self.clock.now());
        change(&mut state.world)
    }

    /// Calls that match are told something else from now on. What was said first counts first.
    pub fn fail(&self, failure: Failure) {
        self.state.lock().failures.add(failure);
    }

    /// Nothing fails any more.
    pub fn fail_no_more(&self) {
        self.state.lock().failures.clear();
    }

    /// From now on a window has only so many calls.
    pub fn throttle(&self, throttle: Throttle) {
        self.state.lock().throttles.add(throttle);
    }

    /// Nothing is throttled any more.
    pub fn throttle_no_more(&self) {
        self.state.lock().throttles.clear();
    }

    /// Everything that was asked, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.lock().log.clone()
    }

    /// Everything that was asked after the first so many requests.
    pub fn requests_since(&self, number: usize) -> Vec<Recorded> {
        self.state.lock().log.iter().skip(number).cloned().collect()
    }

    /// What was asked with a method about a kind, in order.
    pub fn requests_of(&self, method: &Method, kind: Kind) -> Vec<Recorded> {
        let state = self.state.lock();
        state.log.iter().filter(|each| each.method == method && each.kind == kind).cloned().collect()
    }

    /// Forgets what was asked.
    pub fn forget_requests(&self) {
        self.state.lock().log.clear();
    }

    /// The resources of a kind, with everything that was ever sent.
    pub fn resources(&self, kind: Kind) -> Vec<Value> {
        self.change(|world| world.all(kind).into_iter().cloned().collect())
    }

    /// The names of the resources of a kind.
    pub fn names(&self, kind: Kind) -> Vec<String> {
        self.change(|world| world.names(kind))
    }

    /// Answers a request; none if the connection breaks.
    pub async fn answer(&self, request: Request<Bytes>) -> Option<Response<Bytes>> {
        let latency = self.state.lock().world.settings.latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let call = Call::new(request, self.clock.now());
        let facts = call.facts();
        if self.is_silent(&call, &facts) {
            return std::future::pending().await;
        }
        let mut state = self.state.lock();
        state.advance(call.now);
        let mut recorded = Recorded::of(&call);
        let lost = state.failures.take(&call.method, call.route.kind, &facts, |how| {
            matches!(how, How::LostBefore | How::LostAfter)
        });
        if lost == Some(How::LostBefore) {
            state.log.push(recorded);
            return None;
        }
        let answer = dispatch(&mut state, &call, &facts).unwrap_or_else(|refusal| refusal.answer());
        let answer = identified(&mut state, &call, answer);
        if lost.is_none() {
            recorded.status = Some(answer.status);
            recorded.answer = answer.value();
            let kind = answer.content_type().map(|kind| ("content-type".to_owned(), kind.to_owned()));
            let said = answer.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            recorded.answer_headers = kind.into_iter().chain(said).collect();
        }
        state.log.push(recorded);
        lost.is_none().then(|| answer.into_response())
    }
}

impl Double {
    /// Whether nobody answers a call. It is remembered all the same.
    fn is_silent(&self, call: &Call, facts: &Facts) -> bool {
        let mut state = self.state.lock();
        let how = state.failures.take(&call.method, call.route.kind, facts, |how| matches!(how, How::Silent));
        let is_silent = how.is_some();
        if is_silent {
            state.log.push(Recorded::of(call));
        }
        is_silent
    }
}

impl Transport for Double {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        async move {
            let answered = self.answer(request).await;
            answered.ok_or_else(|| TransportError(format!("connection to {host} was reset by the peer")))
        }
        .boxed()
    }
}

/// Every answer says how support finds it.
fn identified(state: &mut State, call: &Call, answer: Answer) -> Answer {
    state.answered += 1;
    let request = format!("eeeeeeee-0000-4000-8000-{:012x}", state.answered);
    let correlation =
        call.header("x-ms-correlation-request-id").map_or_else(|| request.clone(), str::to_owned);
    let routing =
        format!("{}:{}:{correlation}", state.world.settings.location.to_ascii_uppercase(), call.now);
    answer
        .header("x-ms-request-id", request)
        .header("x-ms-correlation-request-id", correlation)
        .header("x-ms-routing-request-id", routing)
}

fn dispatch(state: &mut State, call: &Call, facts: &Facts) -> Result<Answer, Refusal> {
    checks::authorised(call)?;
    state.throttles.count(&call.method, call.route.kind, call.now)?;
    // A batch of machines fails one by one.
    if call.header("batchputmachine").is_none() {
        let how = state.failures.take(&call.method, call.route.kind, facts, |how| {
            matches!(how, How::AtOnce(_) | How::LeftBehind(_))
        });
        match how {
            Some(How::AtOnce(refusal)) => {
                compute::refused(&mut state.world, call);
                return Err(refusal);
            }
            Some(How::LeftBehind(refusal)) => {
                serve(state, call)?;
                state.operations.spoil(&call.route.id, &refusal);
                state.world.change(&call.route.id, |made| {
                    made["properties"]["provisioningState"] = "Failed".into();
                });
                return Err(refusal);
            }
            _ => {}
        }
    }
    checks::addressed(&state.world, call)?;
    checks::unlocked(&state.world, call)?;
    serve(state, call)
}

fn serve(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let world = &state.world;
    let is_list = call.route.is_collection;
    match (call.route.kind, call.method.as_str()) {
        (Kind::Operation, "GET") => state.poll(call),
        (Kind::Sku, "GET") => skus::list(world, call),
        (Kind::Usage, "GET") => quota::list(world, call),
        (Kind::CommunityVersion, "GET") => gallery::community_versions(world, call),
        (Kind::NodeImageVersion, "GET") => Ok(gallery::node_image_versions(world, call)),
        (Kind::VirtualMachine, "PUT") if !is_list => compute::put(state, call),
        (Kind::VirtualMachine, "PATCH") if !is_list => compute::patch(state, call),
        (Kind::VirtualMachine, "DELETE") if !is_list => compute::delete(state, call),
        (Kind::Extension, "PUT") if !is_list => extensions::put(state, call),
        (Kind::Extension, "PATCH") if !is_list => extensions::patch(state, call),
        (Kind::NetworkInterface, "PUT") if !is_list => network::put(state, call),
        (Kind::NetworkInterface, "PATCH") if !is_list => network::patch(state, call),
        (Kind::NetworkInterface, "DELETE") if !is_list => network::delete(state, call),
        (Kind::Subnet, "GET") if !is_list => network::subnet(world, call),
        (Kind::ResourceGraph, "POST") => graph::query(world, call),
        (Kind::Machine, "PUT") if !is_list => machines::put(state, call),
        (Kind::Machine, "GET") if is_list => machines::list(world, call),
        (Kind::Machine, "GET") => machines::get(world, call),
        (Kind::DeleteMachines, "POST") => machines::delete(state, call),
        (Kind::ManagedCluster | Kind::AgentPool, "GET") => clusters::get(world, call),
        (Kind::NodeBootstrapping, "GET") => clusters::bootstrapping(call),
        (Kind::Price, "GET") => prices::list(world, call),
        (Kind::Token, "POST") => tokens::entra(world, call),
        (Kind::InstanceToken, "GET") => tokens::instance(call),
        (Kind::GalleryToken, "GET") => tokens::gallery(call),
        (Kind::Provider, _) => Ok(others::provider(call)),
        (Kind::ResourceGroup, "GET") => Ok(others::group(world, call)),
        (Kind::Unknown, _) => Err(others::unknown(call)),
        (_, "GET") if is_list => others::list(world, call),
        (_, "GET") => others::get(world, call),
        _ => Err(others::not_allowed(call)),
    }
}

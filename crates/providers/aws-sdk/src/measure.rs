//! Metrics of requests, under the names and labels that the Go SDK's have.

use api::names::metrics::aws as names;
use aws_sdk_ec2::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use runtime::metrics::Registry;
use tokio::time::Instant;

/// Counts and times requests.
#[derive(Debug)]
pub(crate) struct Measure(Registry);

impl Measure {
    pub(crate) fn new(metrics: &Registry) -> Self {
        Self(metrics.clone())
    }
}

/// When a request began, and how often it was sent.
#[derive(Clone, Debug)]
struct Request {
    began: Instant,
    attempts: u32,
}

/// When an attempt began.
#[derive(Debug)]
struct Attempt(Instant);

impl Storable for Request {
    type Storer = StoreReplace<Self>;
}

impl Storable for Attempt {
    type Storer = StoreReplace<Self>;
}

/// The status of the answer; zero if none came.
fn code(context: &FinalizerInterceptorContextRef<'_>) -> String {
    context.response().map_or(0, |response| response.status().as_u16()).to_string()
}

impl Intercept for Measure {
    fn name(&self) -> &'static str {
        "Measure"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        state.interceptor_state().store_put(Request { began: Instant::now(), attempts: 0 });
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(request) = state.load::<Request>().cloned() {
            let attempts = request.attempts + 1;
            state.interceptor_state().store_put(Request { attempts, ..request });
        }
        state.interceptor_state().store_put(Attempt(Instant::now()));
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (Some(asked), Some(attempt)) = (state.load::<Metadata>(), state.load::<Attempt>()) else {
            return Ok(());
        };
        let labels = [asked.service(), asked.name(), &code(context)];
        self.0.add(&names::CLIENT_ATTEMPTS, &labels, 1.0);
        self.0.observe(&names::CLIENT_ATTEMPT_DURATION, &labels, attempt.0.elapsed().as_secs_f64());
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (Some(asked), Some(request)) = (state.load::<Metadata>(), state.load::<Request>()) else {
            return Ok(());
        };
        let labels = [asked.service(), asked.name(), &code(context)];
        self.0.add(&names::CLIENT_REQUESTS, &labels, 1.0);
        self.0.observe(&names::CLIENT_REQUEST_DURATION, &labels, request.began.elapsed().as_secs_f64());
        let again = request.attempts.saturating_sub(1);
        self.0.observe(&names::CLIENT_RETRIES, &labels, f64::from(again));
        Ok(())
    }
}

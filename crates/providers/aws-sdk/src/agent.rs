//! Our name at the end of the user agent, as users look for it in their audit logs.

use aws_sdk_ec2::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;

const HEADER: &str = "user-agent";

/// Puts our name at the end of the user agent.
#[derive(Debug)]
pub(crate) struct Agent(String);

impl Agent {
    pub(crate) fn new(version: &str) -> Self {
        Self(format!("karpenter.sh-{version}"))
    }
}

impl Intercept for Agent {
    fn name(&self) -> &'static str {
        "Agent"
    }

    /// The header is not signed, so that it can be changed last.
    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request_mut().headers_mut();
        let agent = headers.get(HEADER).map_or_else(|| self.0.clone(), |agent| format!("{agent} {}", self.0));
        // A name that is no header is left out: requests matter more.
        let _ = headers.try_insert(HEADER, agent);
        Ok(())
    }
}

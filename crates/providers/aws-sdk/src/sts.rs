//! STS: who we are.

use aws::port::{CallerIdentity, Sts};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::error;

const GET: &str = "sts:GetCallerIdentity";

/// STS.
pub(crate) struct Client(pub(crate) aws_sdk_sts::Client);

impl Sts for Client {
    fn caller_identity(&self) -> Answer<'_, CallerIdentity> {
        async move {
            let answer = self.0.get_caller_identity().send().await;
            let answer = answer.map_err(|cause| error(GET, &cause))?;
            Ok(CallerIdentity {
                account: answer.account.unwrap_or_default(),
                arn: answer.arn.unwrap_or_default(),
            })
        }
        .boxed()
    }
}

//! SSM: published values.

use aws::port::Ssm;
use futures::FutureExt as _;

use crate::Answer;
use crate::error::{error, incomplete};

const GET: &str = "ssm:GetParameter";

/// SSM.
pub(crate) struct Client(pub(crate) aws_sdk_ssm::Client);

impl Ssm for Client {
    fn parameter<'a>(&'a self, name: &'a str) -> Answer<'a, String> {
        async move {
            let answer = self.0.get_parameter().name(name).send().await;
            let answer = answer.map_err(|cause| error(GET, &cause))?;
            let value = answer.parameter.and_then(|parameter| parameter.value);
            value.ok_or_else(|| incomplete(GET, "value"))
        }
        .boxed()
    }
}

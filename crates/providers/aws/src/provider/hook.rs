//! A node in a placement group with partitions takes no pods before it is known which partition it is in.

use std::sync::Weak;

use api::names::labels::aws;
use api::nodeclaim::NodeClaim;
use cloud::{Error, RegistrationHook};
use cluster::state::Watched as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use serde_json::json;

use super::Inner;
use crate::instance::provider_id;
use crate::instance::relabel::lacks_partition;

/// How long EC2 may take to say it.
const WAIT: Again = Again::secs(5);

/// Writes the partition of an instance on its claim.
pub(super) struct Partition(pub(super) Weak<Inner>);

impl Partition {
    async fn settle(&self, claim: &NodeClaim) -> Result<Again, Error> {
        if !lacks_partition(claim) {
            return Ok(Again::No);
        }
        let Some(inner) = self.0.upgrade() else { return Ok(WAIT) };
        let id = claim.status.as_ref().and_then(|status| provider_id::instance_id(&status.provider_id));
        let Some(id) = id else { return Ok(WAIT) };
        let machine = inner.fresh_machine(id).await?;
        let Some(partition) = machine.partition else { return Ok(WAIT) };
        let change = json!({"metadata": {"labels": {aws::PLACEMENT_GROUP_PARTITION: partition.to_string()}}});
        let written = inner.setup.api.patch::<NodeClaim>(&claim.key(), &change).await;
        written.map_err(|error| {
            Error::Other(format!("writing the partition of the placement group, {error}"))
        })?;
        Ok(Again::No)
    }
}

impl RegistrationHook for Partition {
    fn name(&self) -> &'static str {
        "PlacementGroupPartition"
    }

    fn registered<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Again, Error>> {
        self.settle(claim).boxed()
    }
}

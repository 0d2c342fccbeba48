//! Zonal shifts.

use aws::port::{ZonalShift, ZonalShifts};
use aws_sdk_arczonalshift::types::{AppliedStatus, ZonalShiftInResource};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::error;
use crate::time::timestamp;

const GET: &str = "arc-zonal-shift:GetManagedResource";

/// Zonal shifts.
pub(crate) struct Client(pub(crate) aws_sdk_arczonalshift::Client);

impl ZonalShift for Client {
    fn shifts<'a>(&'a self, cluster_arn: &'a str) -> Answer<'a, Vec<ZonalShifts>> {
        async move {
            let answer = self.0.get_managed_resource().resource_identifier(cluster_arn).send().await;
            let answer = answer.map_err(|cause| error(GET, &cause))?;
            Ok(answer.zonal_shifts.into_iter().filter_map(shift).collect())
        }
        .boxed()
    }
}

fn shift(described: ZonalShiftInResource) -> Option<ZonalShifts> {
    Some(ZonalShifts {
        until: timestamp(&described.expiry_time)?,
        applied: described.applied_status == AppliedStatus::Applied,
        zone_id: described.away_from,
    })
}

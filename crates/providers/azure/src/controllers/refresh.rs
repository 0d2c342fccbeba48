//! What is asked from time to time: sizes, quotas and prices.

use std::time::Duration;

use runtime::Again;
use runtime::controller::Outcome;
use tokio::time::Instant;

use super::failed;
use crate::provider::Inner;

const HALF_A_DAY: Duration = Duration::from_hours(12);
const TEN_MINUTES: Again = Again::After(Duration::from_mins(10));

/// What is left of half a day since something was asked for; none if it is time again.
fn fresh(asked: Option<Instant>) -> Option<Again> {
    let left = HALF_A_DAY.checked_sub(asked?.elapsed()).filter(|left| !left.is_zero());
    left.map(Again::After)
}

/// Asks which sizes there are. At the start somebody just did.
pub(super) async fn sizes(inner: &Inner) -> Outcome {
    if let Some(later) = fresh(inner.refreshed().sizes) {
        return Ok(later);
    }
    inner.refresh_sizes().await.map_err(failed)?;
    Ok(Again::After(HALF_A_DAY))
}

/// Asks how much the subscription may use.
pub(super) async fn quota(inner: &Inner) -> Outcome {
    // What is known stays for a while; the next answer is waited for no longer than usual.
    if let Err(error) = inner.refresh_quota().await {
        tracing::error!(error = %error, "failed to refresh quota");
    }
    Ok(TEN_MINUTES)
}

/// Asks what machines cost, where prices are published. At the start somebody just did.
pub(super) async fn prices(inner: &Inner) -> Outcome {
    let _turn = inner.turn_for_prices().await;
    if let Some(later) = fresh(inner.refreshed().prices) {
        return Ok(later);
    }
    inner.refresh_prices().await.map_err(failed)?;
    Ok(Again::After(HALF_A_DAY))
}

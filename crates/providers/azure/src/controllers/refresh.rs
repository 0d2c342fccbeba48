//! What is asked from time to time: sizes, quotas and prices.

use std::time::Duration;

use runtime::Again;
use runtime::controller::Outcome;

use super::failed;
use crate::provider::Inner;

const HALF_A_DAY: Again = Again::After(Duration::from_hours(12));
const TEN_MINUTES: Again = Again::After(Duration::from_mins(10));

/// Asks which sizes there are.
pub(super) async fn sizes(inner: &Inner) -> Outcome {
    inner.refresh_sizes().await.map_err(failed)?;
    Ok(HALF_A_DAY)
}

/// Asks how much the subscription may use.
pub(super) async fn quota(inner: &Inner) -> Outcome {
    // What is known stays for a while; the next answer is waited for no longer than usual.
    if let Err(error) = inner.refresh_quota().await {
        tracing::error!(error = %error, "failed to refresh quota");
    }
    Ok(TEN_MINUTES)
}

/// Asks what machines cost, where prices are published.
pub(super) async fn prices(inner: &Inner) -> Outcome {
    inner.refresh_prices().await.map_err(failed)?;
    Ok(HALF_A_DAY)
}

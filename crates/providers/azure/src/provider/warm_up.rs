//! What is asked for at the start without anybody waiting for it, and how old what is known of Azure is.
//!
//! Launches need the sizes. Without prices those of the table count, without quotas Azure refuses what is too much, and
//! what surrounds machines is asked for again by the launch that needs it.

use std::fmt::Display;
use std::time::Duration;

use api::names::metrics::azure::DATA_REFRESHED;
use tokio::sync::MutexGuard;

use super::Inner;

/// The sizes, as metrics name them.
pub(super) const INSTANCE_TYPES: &str = "instance_types";
/// What machines cost, as metrics name it.
pub(super) const PRICES: &str = "prices";
/// What may be used, as metrics name it.
pub(super) const QUOTAS: &str = "quotas";

/// After how long without an answer it is said what is done meanwhile.
const LATE: Duration = Duration::from_secs(30);

impl Inner {
    /// Asks for everything that launches can do without.
    pub(super) async fn warm_up(&self) {
        for data in [INSTANCE_TYPES, QUOTAS] {
            self.never_answered(data);
        }
        if self.setup.client.environment().is_public() {
            self.never_answered(PRICES);
        }
        let prices = async {
            let _turn = self.turn_for_prices().await;
            self.refresh_prices().await
        };
        futures::join!(
            told("quotas", "nothing is held back because of them", self.refresh_quota()),
            told("prices", "those that are built in count", prices),
            told("the network security group", "launches ask for it", self.security_group()),
            told("load balancers", "launches ask for them", self.pools()),
        );
    }

    /// The turn to ask for prices. Whoever has waited for it may find them to be fresh.
    pub(crate) async fn turn_for_prices(&self) -> MutexGuard<'_, ()> {
        self.asking_for_prices.lock().await
    }

    fn never_answered(&self, data: &str) {
        if self.setup.metrics.value(&DATA_REFRESHED, &[data]).is_none() {
            self.setup.metrics.set(&DATA_REFRESHED, &[data], 0.0);
        }
    }

    /// Notes that Azure has said something new.
    pub(super) fn answered(&self, data: &str) {
        let now = self.setup.clock.now().as_duration().as_secs_f64();
        self.setup.metrics.set(&DATA_REFRESHED, &[data], now);
    }
}

/// Waits for an answer, and says so if there is none or not yet.
async fn told<T, E: Display>(what: &str, meanwhile: &str, answer: impl Future<Output = Result<T, E>>) {
    let mut answer = std::pin::pin!(answer);
    let answered = if let Ok(answered) = tokio::time::timeout(LATE, answer.as_mut()).await {
        answered
    } else {
        let seconds = LATE.as_secs();
        tracing::warn!("no answer about {what} came within {seconds} s; {meanwhile} until one does");
        answer.await
    };
    if let Err(error) = answered {
        tracing::error!(error = %error, "failed to find out about {what}, it is tried again; {meanwhile} until then");
    }
}

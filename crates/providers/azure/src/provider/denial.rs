//! That only AKS may change the resource group of the nodes, learned from a refusal: whoever may not read the cluster is
//! told so only by then.

use std::time::Duration;

use tokio::time::Instant;

use super::Inner;
use crate::arm::Error;
use crate::node_class::limits::Facts;

/// How long a refusal counts. Then a launch may find out whether it still holds.
const BELIEVED: Duration = Duration::from_mins(10);

impl Inner {
    /// Notes a refusal if it says that only AKS may change the resource group.
    pub(super) fn note_denial(&self, error: &Error) {
        if error.has_code("DenyAssignmentAuthorizationFailed") {
            *self.denied.lock() = Some(Instant::now());
        }
    }

    /// What may make nodes impossible, with what refusals have said since the start.
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = self.setup.facts.clone();
        let denied = *self.denied.lock();
        facts.is_locked |= denied.is_some_and(|denied| denied.elapsed() < BELIEVED);
        facts
    }
}

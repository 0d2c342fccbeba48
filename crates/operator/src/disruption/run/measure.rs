//! What is measured of the loop.

use std::time::Duration;

use api::names::controllers::DISRUPTION;
use api::names::metrics::{DISRUPTION_COVERAGE, SCHEDULER_SCHEDULING_DURATION, SCHEDULER_UNSCHEDULABLE_PODS};

use super::Run;
use crate::disruption::Method;
use crate::disruption::scene::Pending;
use crate::provisioner::tell_zones;
use crate::unfinished_work::Running;

impl Run {
    /// Tells what part of the nodes that a kind of consolidation could do something about it looks at.
    pub(super) fn tell_coverage(&self, method: &dyn Method, looked_at: usize, eligible: usize) {
        let kind = method.consolidation_type();
        if kind.is_empty() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = if eligible == 0 { 1.0 } else { looked_at as f64 / eligible as f64 };
        self.context.metrics.set(&DISRUPTION_COVERAGE, &[kind], ratio);
    }

    /// Tells what a simulation took, if there was one, and of pods that wait: how many have no place, whatever goes,
    /// and in which zones they must be.
    pub(super) fn tell_simulated(&self, running: &Running, pending: Option<Pending>, took: Duration) {
        let Some(Pending { unplaced, zones }) = pending else { return };
        let metrics = &self.context.metrics;
        metrics.observe(&SCHEDULER_SCHEDULING_DURATION, &[DISRUPTION], took.as_secs_f64());
        running.set_queue_depth(unplaced);
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many pods")]
        metrics.set(&SCHEDULER_UNSCHEDULABLE_PODS, &[DISRUPTION], unplaced as f64);
        tell_zones(metrics, DISRUPTION, zones);
    }
}

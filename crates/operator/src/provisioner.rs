//! Gives pending pods nodes.
//!
//! ```text
//!   pods that no node takes,  ─► batcher ─► snapshot ─► plan ─► NodeClaims, nominations, events,
//!   nodes that go away,                                         conditions of buffers
//!   buffers
//! ```

pub(crate) mod batcher;
pub(crate) mod counted;
pub(crate) mod create;
pub(crate) mod outcome;
mod pass;
pub mod plan;
#[cfg(test)]
mod tests;
mod tried;
mod trigger;
mod wishes;
#[cfg(test)]
mod zone_tests;

use std::sync::Arc;

use runtime::controller::Controller;

use crate::Context;
use batcher::Batcher;
pub(crate) use pass::tell_zones;
pub(crate) use plan::options;
pub use tried::Launches;
pub(crate) use tried::Refusals;

/// The provisioner and what wakes it.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let settings = &context.settings;
    context.cluster.update(|state| state.set_unsupported_volumes(context.cloud.unsupported_volumes()));
    let batcher = Arc::new(Batcher::new(settings.batch_idle_duration, settings.batch_max_duration));
    let mut all = vec![
        pass::controller(context, &batcher),
        trigger::pods(context, &batcher),
        trigger::nodes(context, &batcher),
    ];
    if settings.gates.capacity_buffer {
        all.push(crate::capacity_buffer::controller(context, &batcher));
    }
    all
}

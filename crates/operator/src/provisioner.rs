//! Gives pending pods nodes.
//!
//! ```text
//!   pods that no node takes,  ─► batcher ─► snapshot ─► plan ─► NodeClaims, nominations, events
//!   nodes that go away
//! ```

#[cfg_attr(not(test), expect(dead_code, reason = "whoever waits comes with the snapshot of the state"))]
mod batcher;
mod trigger;

use std::sync::Arc;

use runtime::controller::Controller;

use crate::Context;
use batcher::Batcher;

/// The provisioner and what wakes it.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let settings = &context.settings;
    let batcher = Arc::new(Batcher::new(settings.batch_idle_duration, settings.batch_max_duration));
    vec![trigger::pods(context, &batcher), trigger::nodes(context, &batcher)]
}

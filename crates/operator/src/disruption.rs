//! Removes and replaces nodes, as gently as their pools ask for.
//!
//! ```text
//!   state ─► glance: candidates and budgets of every method
//!              │
//!              ▼                    patience
//!   scene ─► methods, in order ─► commands ─► waiting ─► validate ─► queue: taint, launch, mark, wait, delete
//! ```
//!
//! Methods decide without a clock and without writing anything; the loop in `run` does the rest.
//! A `scene::Scene` answers what would happen if nodes went.

pub(crate) mod budget;
pub(crate) mod candidate;
mod command;
mod consolidation;
mod decision;
mod drift;
mod emptiness;
mod glance;
mod launch;
mod leftovers;
mod mark;
mod method;
mod objection;
mod oracle;
mod payback;
pub mod preview;
mod queue;
mod repair;
mod run;
mod scene;
mod static_drift;
mod stay;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use runtime::controller::Controller;
use runtime::settings::Gates;

use crate::Context;
pub(crate) use method::{Class, Method, Reason};
use queue::Commands;
pub use repair::policies as repair_policies;
pub use stay::Why;

/// The ways to disrupt nodes, in the order in which they are asked.
pub(crate) fn methods(gates: Gates) -> Vec<Arc<dyn Method>> {
    let mut all: Vec<Arc<dyn Method>> = vec![Arc::new(emptiness::Emptiness)];
    if gates.static_capacity {
        all.push(Arc::new(static_drift::StaticDrift));
    }
    all.push(Arc::new(drift::Drift));
    all.push(Arc::new(consolidation::Consolidation::Multi));
    all.push(Arc::new(consolidation::Consolidation::Single));
    all
}

/// The controllers of disruption.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let (commands, queue) = Commands::new(context);
    let mut methods = methods(context.settings.gates);
    match repair_policies(&context.settings, &*context.cloud) {
        Ok(Some(policies)) => {
            let policies = Arc::new(policies);
            repair::watch(context, &policies);
            methods.insert(0, Arc::new(repair::Repair::new(policies)));
        }
        Ok(None) => {}
        // Whoever starts the process has asked before.
        Err(error) => tracing::error!(error, "nodes are not repaired"),
    }
    vec![
        run::controller(context, methods, Arc::clone(&commands)),
        queue::controller(context, commands, queue),
    ]
}

//! What metrics tell of nodes, pods, NodePools and conditions.

mod cluster_state;
mod node;
mod node_pool;
mod pod;
mod status_condition;
#[cfg(test)]
mod tests;

use api::names::resources::CPU;
use runtime::controller::Controller;
use units::Quantity;

use crate::Context;

/// The controllers that keep metrics up to date.
pub fn controllers(context: &Context) -> Vec<Controller> {
    cluster_state::collect(context);
    if context.settings.disable_cluster_state_observability {
        return Vec::new();
    }
    let mut all = vec![node::controller(context), node_pool::controller(context), pod::controller(context)];
    all.extend(status_condition::controllers(context));
    all
}

/// A resource as metrics write it.
fn resource_type(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// An amount as metrics write it: cores, bytes, numbers.
fn amount(name: &str, quantity: Quantity) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a metric")]
    if name == CPU { quantity.as_f64() } else { quantity.value() as f64 }
}

//! NodePools: whether they make sense, whether their NodeClass is ready, what they have, what they were hashed to.

pub(crate) mod counter;
pub(crate) mod hash;
mod readiness;
pub mod registration_health;
mod validation;

use cluster::state::{Change, Object, State, Watched};
use runtime::controller::Controller;
use runtime::queue::Queue;

use crate::Context;

/// The controllers of NodePools.
pub fn controllers(context: &Context) -> Vec<Controller> {
    vec![
        hash::controller(context),
        readiness::controller(context),
        validation::controller(context),
        counter::controller(context),
        registration_health::controller(context),
    ]
}

/// A NodePool concerns itself.
fn touch_pool(change: &Change, _: &State, queue: &Queue) {
    if let Some(Object::NodePool(pool)) = &change.new {
        queue.add(pool.key());
    }
}

/// A NodeClass concerns the NodePools that refer to it, too.
fn touch_pool_and_class(change: &Change, state: &State, queue: &Queue) {
    touch_pool(change, state, queue);
    if let Object::NodeClass(class) = change.object() {
        let refers = |name: &str| *name == *class.metadata.name;
        for pool in state.node_pools.values().filter(|p| refers(&p.spec.template.spec.node_class_ref.name)) {
            queue.add(pool.key());
        }
    }
}

#[cfg(test)]
mod tests;

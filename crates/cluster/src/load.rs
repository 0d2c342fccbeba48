//! What the pods of a node mean to those who would disrupt it. Entry: [`Load`].

use std::sync::Arc;

use crate::costs::Costs;
use crate::eligibility::{is_reschedulable, speaks_of_disruption};
use crate::objects::Pod;

/// What the pods of a node mean to those who would disrupt it, whatever the time is. It stays the same until one of
/// them changes, so it is found out once and kept.
#[derive(Clone, Debug)]
pub struct Load {
    /// Pods that must go elsewhere.
    pub moved: Arc<[Arc<Pod>]>,
    /// Pods that say something about their own disruption.
    pub speaking: Vec<Arc<Pod>>,
    /// What moving those costs that must go elsewhere, as [`Costs::reschedule_disruption`] says.
    pub moving: f64,
    /// What evicting all of them costs, as [`Costs::rescheduling`] says.
    pub evicting: f64,
}

impl Load {
    /// What some pods mean.
    pub fn new<'p>(pods: &(impl Iterator<Item = &'p Arc<Pod>> + Clone), costs: Costs) -> Self {
        let those = |is: fn(&Pod) -> bool| pods.clone().filter(move |pod| is(pod)).cloned();
        let all = || pods.clone().map(Arc::as_ref);
        Self {
            moved: those(is_reschedulable).collect(),
            speaking: those(speaks_of_disruption).collect(),
            moving: costs.reschedule_disruption(all()),
            evicting: costs.rescheduling(all()),
        }
    }
}

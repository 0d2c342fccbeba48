//! What a snapshot is built for.

use api::provider::Provider;

use super::types::InstanceTypes;
use crate::buffers::Room;
use crate::instance_types::InstanceType;
use crate::scheduler_config::SchedulerConfig;
use crate::volumes::Unsupported;

/// What a snapshot is built for.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The cloud, which decides about labels and NodeClasses.
    pub provider: Provider,
    /// What NodePools choose from.
    pub instance_types: InstanceTypes<'a>,
    /// What the scheduler gives to pods.
    pub scheduler_config: SchedulerConfig,
    /// Volumes that the cloud's nodes cannot have.
    pub unsupported_volumes: Unsupported,
    /// Whether pods count that no scheduler has looked at, as in files written by hand.
    pub accept_unseen_pods: bool,
    /// Which pods are to be placed.
    pub to_place: ToPlace,
    /// The room that capacity buffers keep, which is placed like pods that wait: those of
    /// [`crate::buffers::rooms`].
    pub rooms: &'a [Room],
    /// Whether nodes on their way out still count in the limits of their pools.
    pub leaving_count: bool,
}

/// Which pods are to be placed. Others stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToPlace {
    /// Those that wait for a node.
    pub waiting: bool,
    /// Those of nodes that are on their way out.
    pub of_deleting_nodes: bool,
    /// Those of nodes that stay, in case that one of them goes: what would happen then can be asked.
    pub in_case: bool,
}

impl Default for ToPlace {
    /// All that can move.
    fn default() -> Self {
        Self { waiting: true, of_deleting_nodes: true, in_case: false }
    }
}

impl<'a> Options<'a> {
    /// The options for a provider with some instance types, and nothing else configured.
    pub fn new(provider: Provider, instance_types: &'a [InstanceType]) -> Self {
        Self {
            provider,
            instance_types: InstanceTypes::Same(instance_types),
            scheduler_config: SchedulerConfig::default(),
            unsupported_volumes: Unsupported::default(),
            accept_unseen_pods: false,
            to_place: ToPlace::default(),
            rooms: &[],
            leaving_count: false,
        }
    }
}

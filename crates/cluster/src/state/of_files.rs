//! A state made of the objects of files, for those who only plan.

use std::sync::Arc;

use api::provider::Provider;

use super::kind::{Object, StatefulSet};
use super::{Seen, State};
use crate::objects::Objects;

impl State {
    /// The state of a cluster whose objects were read from files.
    pub fn of_files(objects: Objects, provider: Provider) -> Self {
        let mut state = Self::awaiting(provider, &[]);
        let Objects { pods, nodes, daemon_sets, namespaces, .. } = objects;
        let Objects { persistent_volumes, persistent_volume_claims, storage_classes, csi_nodes, .. } =
            objects;
        let Objects { pod_disruption_budgets, priority_classes, services, replica_sets, .. } = objects;
        let Objects { stateful_sets, replication_controllers, node_pools, node_claims, .. } = objects;
        let all = []
            .into_iter()
            .chain(namespaces.into_iter().map(|it| Object::Namespace(Arc::new(it))))
            .chain(priority_classes.into_iter().map(|it| Object::PriorityClass(Arc::new(it))))
            .chain(storage_classes.into_iter().map(|it| Object::StorageClass(Arc::new(it))))
            .chain(persistent_volumes.into_iter().map(|it| Object::PersistentVolume(Arc::new(it))))
            .chain(persistent_volume_claims.into_iter().map(|it| Object::PersistentVolumeClaim(Arc::new(it))))
            .chain(node_pools.into_iter().map(|it| Object::NodePool(Arc::new(it))))
            .chain(node_claims.into_iter().map(|it| Object::NodeClaim(Arc::new(it))))
            .chain(nodes.into_iter().map(|it| Object::Node(Arc::new(it))))
            .chain(csi_nodes.into_iter().map(|it| Object::CSINode(Arc::new(it))))
            .chain(pod_disruption_budgets.into_iter().map(|it| Object::PodDisruptionBudget(Arc::new(it))))
            .chain(services.into_iter().map(|it| Object::Service(Arc::new(it))))
            .chain(replica_sets.into_iter().map(|it| Object::ReplicaSet(Arc::new(it))))
            .chain(stateful_sets.into_iter().map(|it| Object::StatefulSet(Arc::new(StatefulSet(it)))))
            .chain(replication_controllers.into_iter().map(|it| Object::ReplicationController(Arc::new(it))))
            .chain(daemon_sets.into_iter().map(|it| Object::DaemonSet(Arc::new(it))))
            .chain(pods.into_iter().map(|it| Object::Pod(Arc::new(it))));
        for object in all {
            state.observe(Seen::Applied(object));
        }
        state
    }
}

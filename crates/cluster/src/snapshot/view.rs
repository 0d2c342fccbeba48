//! The objects that a snapshot is made of, wherever they are kept.

use std::sync::Arc;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use engine::model::NodeId;

use super::nodes::Nodes;
use crate::objects::{
    CSINode, DaemonSet, Namespace, Node, Objects, PersistentVolume, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StorageClass,
};
use crate::state::{State, Store, Watched as _};
use crate::state_node::{Joined, join};

/// The objects that a snapshot is made of: those of files or those of the state, without a copy.
#[derive(Debug)]
pub struct View<'a> {
    /// Those of files; see [`View::pods`].
    pods: Vec<&'a Pod>,
    pub(crate) nodes: Vec<&'a Node>,
    pub(crate) daemon_sets: Vec<&'a DaemonSet>,
    pub(crate) namespaces: Vec<&'a Namespace>,
    pub(crate) persistent_volumes: Vec<&'a PersistentVolume>,
    pub(crate) persistent_volume_claims: Vec<&'a PersistentVolumeClaim>,
    pub(crate) storage_classes: Vec<&'a StorageClass>,
    pub(crate) csi_nodes: Vec<&'a CSINode>,
    pub(crate) pod_disruption_budgets: Vec<&'a PodDisruptionBudget>,
    pub(crate) services: Vec<&'a Service>,
    pub(crate) replica_sets: Vec<&'a ReplicaSet>,
    pub(crate) stateful_sets: Vec<&'a ReplicaSet>,
    pub(crate) replication_controllers: Vec<&'a ReplicationController>,
    pub(crate) node_pools: Vec<&'a NodePool>,
    pub(crate) node_claims: Vec<&'a NodeClaim>,
    /// Where marks and nominations are; files have none.
    state: Option<&'a State>,
}

impl<'a> View<'a> {
    /// Nodes and claims, joined by the instance behind them.
    pub(super) fn joined(&self, provider: Provider) -> Joined<'a> {
        let nodes = self.nodes.iter().copied();
        self.state.map_or_else(|| join(nodes, self.node_claims.iter().copied(), provider), State::joined)
    }

    /// All pods.
    pub(super) fn pods(&self) -> Vec<&'a Pod> {
        self.state.map_or_else(|| self.pods.clone(), |state| all(&state.pods))
    }

    /// All pods with the nodes that they are bound to; those of nodes that are not known may be missing.
    pub(super) fn pods_on(&self, nodes: &Nodes<'a>) -> Vec<(&'a Pod, Option<NodeId>)> {
        let Some(state) = self.state else {
            return self.pods.iter().map(|pod| (*pod, nodes.find(&pod.spec.node_name))).collect();
        };
        let unbound = state.unbound_pods().map(|pod| (pod.as_ref(), None));
        let bound = nodes
            .named()
            .flat_map(|(name, node)| state.pods_on(name).map(move |pod| (pod.as_ref(), Some(node))));
        unbound.chain(bound).collect()
    }

    /// The NodeClaim that a pod was nominated for.
    pub(super) fn nominated(&self, pod: &Pod) -> Option<&'a str> {
        self.state?.pod_record(&pod.key())?.claim.as_deref()
    }

    /// The namespaces that pods are in, some of them perhaps more than once.
    pub(super) fn pod_namespaces(&self) -> Vec<&'a str> {
        match self.state {
            Some(state) => state.pods.namespaces().collect(),
            None => self.pods.iter().map(|pod| pod.metadata.namespace()).collect(),
        }
    }

    /// Whether there may be two objects of one kind and name.
    pub(super) fn may_repeat(&self) -> bool {
        self.state.is_none()
    }
}

impl<'a> From<&'a Objects> for View<'a> {
    fn from(objects: &'a Objects) -> Self {
        Self {
            pods: objects.pods.iter().collect(),
            nodes: objects.nodes.iter().collect(),
            daemon_sets: objects.daemon_sets.iter().collect(),
            namespaces: objects.namespaces.iter().collect(),
            persistent_volumes: objects.persistent_volumes.iter().collect(),
            persistent_volume_claims: objects.persistent_volume_claims.iter().collect(),
            storage_classes: objects.storage_classes.iter().collect(),
            csi_nodes: objects.csi_nodes.iter().collect(),
            pod_disruption_budgets: objects.pod_disruption_budgets.iter().collect(),
            services: objects.services.iter().collect(),
            replica_sets: objects.replica_sets.iter().collect(),
            stateful_sets: objects.stateful_sets.iter().collect(),
            replication_controllers: objects.replication_controllers.iter().collect(),
            node_pools: objects.node_pools.iter().collect(),
            node_claims: objects.node_claims.iter().collect(),
            state: None,
        }
    }
}

impl<'a> From<&'a State> for View<'a> {
    fn from(state: &'a State) -> Self {
        Self {
            pods: Vec::new(),
            nodes: all(&state.nodes),
            daemon_sets: all(&state.daemon_sets),
            namespaces: all(&state.namespaces),
            persistent_volumes: all(&state.persistent_volumes),
            persistent_volume_claims: all(&state.persistent_volume_claims),
            storage_classes: all(&state.storage_classes),
            csi_nodes: all(&state.csi_nodes),
            pod_disruption_budgets: all(&state.pod_disruption_budgets),
            services: all(&state.services),
            replica_sets: all(&state.replica_sets),
            stateful_sets: state.stateful_sets.values().map(|set| &set.0).collect(),
            replication_controllers: all(&state.replication_controllers),
            node_pools: all(&state.node_pools),
            node_claims: all(&state.node_claims),
            state: Some(state),
        }
    }
}

fn all<K>(store: &Store<K>) -> Vec<&K> {
    store.values().map(Arc::as_ref).collect()
}

//! Nodes as the engine sees them: what they are, and what running pods leave of them.

use std::collections::BTreeMap;

use api::names::labels;
use api::nodepool::NodePool;
use engine::intern::ResourceId;
use engine::model::{DriverId, Node, NodeId, NodeObject, PoolId, Share};
use engine::resources::Amounts;
use engine::universe::SetId;
use hashbrown::HashMap;
use jiff::Timestamp;
use rustc_hash::FxBuildHasher;

use super::pods::Usage;
use super::{Builder, NodeOrigin};
use crate::consolidate_after;
use crate::instance_types::InstanceType;
use crate::objects::{self, CSINode};
use crate::reason::{Ignored, Reason};
use crate::state_node::{StateNode, node_taints};

/// Nodes that pods are on.
pub(super) struct Nodes<'a> {
    by_name: HashMap<&'a str, NodeId, FxBuildHasher>,
    names: Vec<(&'a str, NodeId)>,
    /// What pods use, by node.
    used: Vec<Amounts>,
    /// How many nodes count; those behind them take no pods.
    counting: usize,
    /// Which objects they stand for.
    pub(super) origins: Vec<NodeOrigin>,
}

impl<'a> Nodes<'a> {
    /// All nodes that there are objects for, in their order.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'a str, NodeId)> {
        self.names.iter().copied()
    }

    /// The node of this name, if there is an object for it.
    pub(super) fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    fn name(&mut self, node: &'a objects::Node, id: NodeId) {
        self.by_name.insert(&node.metadata.name, id);
        self.names.push((&node.metadata.name, id));
    }

    /// Whether a node takes no pods, because its state is not known.
    pub(super) fn is_bystander(&self, node: NodeId) -> bool {
        node.index() >= self.counting
    }

    /// The nodes that take pods, by the names of their claims.
    pub(super) fn by_claim(&self) -> HashMap<Box<str>, NodeId, FxBuildHasher> {
        let counting = self.origins[..self.counting].iter().enumerate();
        counting.filter_map(|(at, origin)| Some((origin.claim.clone()?, NodeId::at(at)))).collect()
    }

    /// Whether a node has a claim.
    pub(super) fn is_managed(&self, node: NodeId) -> bool {
        self.origins[node.index()].claim.is_some()
    }
}

fn origin(state: &StateNode<'_>) -> NodeOrigin {
    NodeOrigin {
        provider_id: state.provider_id().into(),
        node: state.node.map(|node| node.metadata.name.clone()),
        claim: state.claim.and_then(|claim| claim.metadata.name.as_deref()).map(Into::into),
    }
}

impl<'a> Builder<'a> {
    /// Adds all nodes to the snapshot, without pods yet.
    pub(super) fn nodes(&mut self, states: &[StateNode<'a>], now: Timestamp) -> Nodes<'a> {
        let csi_nodes: HashMap<&str, &CSINode, FxBuildHasher> =
            self.view.csi_nodes.iter().map(|node| (&*node.metadata.name, *node)).collect();
        let mut nodes = Nodes {
            by_name: HashMap::default(),
            names: Vec::new(),
            used: Vec::new(),
            counting: 0,
            origins: Vec::new(),
        };
        let limited = self.limited_pools();
        for state in states {
            match self.node(state, &csi_nodes) {
                Ok(mut node) => {
                    node.takes_moved = !self.is_unsettled(state, now);
                    node.share = self.share(state, &limited);
                    let id = NodeId::at(self.tables.snapshot.nodes.len());
                    if let Some(node) = state.node {
                        nodes.name(node, id);
                    }
                    nodes.used.push(Amounts::default());
                    nodes.origins.push(origin(state));
                    self.tables.snapshot.nodes.push(node);
                }
                Err(reason) => {
                    let kind = if state.node.is_some() { "Node" } else { "NodeClaim" };
                    let name = state.name().into();
                    self.ignored.push(Ignored { kind, namespace: None, name, reason });
                }
            }
        }
        nodes.counting = self.tables.snapshot.nodes.len();
        nodes
    }

    /// Adds nodes whose state is not known. They are closed; but pods that spread look at the pods on them.
    pub(super) fn bystanders(&mut self, bystanders: &[&'a objects::Node], nodes: &mut Nodes<'a>) {
        for node in bystanders {
            let state = StateNode { node: Some(node), ..StateNode::default() };
            if nodes.by_name.contains_key(&*node.metadata.name) {
                continue;
            }
            // What cannot be read is in the list of ignored objects for another reason already.
            let Ok(known) = self.node(&state, &HashMap::default()) else { continue };
            let id = NodeId::at(self.tables.snapshot.nodes.len());
            nodes.name(node, id);
            nodes.used.push(Amounts::default());
            nodes.origins.push(origin(&state));
            self.tables.snapshot.nodes.push(Node { open: false, available: Amounts::default(), ..known });
        }
    }

    fn node(
        &mut self,
        state: &StateNode<'a>,
        csi_nodes: &HashMap<&str, &CSINode, FxBuildHasher>,
    ) -> Result<Node, Reason> {
        let key = self.tables.snapshot.keys.hostname;
        let allocatable = state.allocatable();
        let available = self.tables.capacity(&allocatable)?;
        let resources: Result<Vec<ResourceId>, Reason> =
            allocatable.iter().map(|(name, _)| self.tables.resource(name.as_str())).collect();
        let csi_node = state.node.and_then(|node| csi_nodes.get(&*node.metadata.name).copied());
        let instance_type = self.type_of(state.pool(), state.label(labels::INSTANCE_TYPE));
        let object = match state.node {
            Some(node) => Some(NodeObject {
                labels: self.node_labels(node.metadata.labels.iter().map(|(k, v)| (k, &**v)).collect())?,
                taints: self.tables.taints(node_taints(node)),
            }),
            None => None,
        };
        Ok(Node {
            name: state.name().into(),
            hostname: self.tables.snapshot.universe.value(key, state.hostname()),
            labels: self.node_labels(state.labels())?,
            taints: self.tables.taints(state.taints()),
            available,
            resources: resources?,
            daemon_requests: Amounts::default(),
            initialized: state.is_settled(),
            open: !state.is_marked_for_deletion(),
            takes_moved: true,
            object,
            ports: Vec::new(),
            volumes: Vec::new(),
            volume_limits: self.volume_limits(csi_node, instance_type)?,
            share: None,
        })
    }

    /// Pools whose limits get something back when nodes go; only those who ask what happens then have to know.
    fn limited_pools(&self) -> BTreeMap<Box<str>, PoolId> {
        if !self.options.to_place.in_case {
            return BTreeMap::new();
        }
        let pools = self.tables.snapshot.pools.iter().enumerate();
        let limited = pools.filter(|(_, pool)| !pool.limits.is_empty());
        limited.map(|(position, pool)| (pool.name.clone(), PoolId::at(position))).collect()
    }

    /// What a node takes of the limits of its pool.
    fn share(&mut self, state: &StateNode<'_>, limited: &BTreeMap<Box<str>, PoolId>) -> Option<Box<Share>> {
        let pool = *limited.get(state.pool())?;
        let amounts = self.tables.capacity(&state.capacity()).ok()?;
        Some(Box::new(Share { pool, amounts }))
    }

    /// Whether pods must not be moved to a node to save money: it was busy lately. Only pools that take part know.
    fn is_unsettled(&self, state: &StateNode<'_>, now: Timestamp) -> bool {
        let takes_part = self.pool_names.contains(state.pool());
        let named = |pool: &&&NodePool| pool.metadata.name.as_deref() == Some(state.pool());
        let pool = self.view.node_pools.iter().find(named).filter(|_| takes_part);
        consolidate_after::is_unsettled(pool.copied(), state.claim, now)
    }

    /// The labels of a node, host name aside. Many nodes have the same.
    fn node_labels(&mut self, mut own: Vec<(&'a str, &'a str)>) -> Result<SetId, Reason> {
        own.retain(|(key, _)| *key != labels::HOSTNAME);
        if let Some(known) = self.node_labels.get(&own) {
            return Ok(*known);
        }
        let set = self.tables.node_labels(own.iter().copied())?;
        self.node_labels.insert(own, set);
        Ok(set)
    }

    /// How many volumes a node can attach: as its drivers say, otherwise as its type does. A driver that is there
    /// but sets no limit has none.
    fn volume_limits(
        &mut self,
        csi_node: Option<&CSINode>,
        type_: Option<&InstanceType>,
    ) -> Result<Vec<(DriverId, u32)>, Reason> {
        let drivers = csi_node.map_or(&[][..], |node| &node.spec.drivers);
        let mut limits = Vec::new();
        for driver in drivers {
            if let Some(count) = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count) {
                limits.push((self.tables.driver(&driver.name)?, u32::try_from(count).unwrap_or(0)));
            }
        }
        for (name, limit) in type_.map_or(&[][..], |type_| &type_.volume_limits) {
            if drivers.iter().all(|driver| *driver.name != **name) {
                limits.push((self.tables.driver(name)?, *limit));
            }
        }
        limits.sort_unstable();
        Ok(limits)
    }

    /// Puts a pod on a node.
    pub(super) fn occupy(&mut self, nodes: &mut Nodes<'_>, node: NodeId, usage: &Usage, is_daemon: bool) {
        nodes.used[node.index()].add(&usage.requests);
        let node = &mut self.tables.snapshot.nodes[node.index()];
        if is_daemon {
            node.daemon_requests.add(&usage.requests);
        }
        node.ports.extend_from_slice(&usage.ports);
        node.volumes.extend_from_slice(&usage.volumes);
    }

    /// Takes what pods use from what nodes have. A resource that a node does not mention cannot be used up.
    pub(super) fn settle(&mut self, nodes: &Nodes<'_>) {
        let snapshot = &mut self.tables.snapshot;
        for (position, node) in snapshot.nodes.iter_mut().enumerate() {
            for resource in &node.resources {
                let left = node.available.get(*resource).saturating_sub(nodes.used[position].get(*resource));
                node.available.set(*resource, left);
            }
            node.volumes.sort_unstable();
            node.volumes.dedup();
        }
    }
}

//! Placing pods on nodes that exist or are on their way.

use crate::model::{HostPort, NodeId, PodClass, Volume};
use crate::resources::Amounts;
use crate::solve::variant::Variant;
use crate::solve::{Core, Solver, template, volume_counts};
use crate::topology::{GroupId, HostId, Target};
use crate::universe::{SetId, Undefined};
use crate::world::World;

/// A node as it fills up.
#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    pub(crate) available: Amounts,
    ports: Vec<HostPort>,
    volumes: Vec<Volume>,
}

/// The nodes before any pod is placed: what DaemonSets will still take is set aside.
pub(crate) fn states(world: &mut World<'_>) -> Vec<NodeState> {
    let snapshot = world.snapshot;
    let daemons: Vec<_> = snapshot
        .daemons
        .iter()
        .map(|class| {
            let class = &snapshot.classes[class.index()];
            let tolerations = world.with_advice(class.tolerations);
            let alternatives = template::node_alternatives(class.node_selector, &class.required_terms, world);
            (class, tolerations, alternatives)
        })
        .collect();
    let mut states = Vec::with_capacity(snapshot.nodes.len());
    for node in &snapshot.nodes {
        let mut expected = Amounts::default();
        for (class, tolerations, alternatives) in &daemons {
            let runs = world.tolerates(*tolerations, node.taints)
                && alternatives.iter().any(|set| accepts(world, node.labels, node.hostname, *set));
            if runs && !class.needs_devices {
                expected.add(&class.requests);
            }
        }
        expected.subtract(&node.daemon_requests);
        expected.clamp_to_zero();
        let mut available = node.available.clone();
        for resource in &node.resources {
            available.increase(*resource, -expected.get(*resource));
        }
        states.push(NodeState { available, ports: node.ports.clone(), volumes: node.volumes.clone() });
    }
    states
}

/// Whether a node's labels meet requirements that may name its host.
fn accepts(world: &mut World<'_>, labels: SetId, hostname: crate::intern::ValueId, set: SetId) -> bool {
    let key = world.snapshot.keys.hostname;
    let host_fits = world
        .universe
        .find(set, key)
        .is_none_or(|id| world.universe.get(id).has(hostname, world.universe.values(key)));
    let rest = world.universe.without(set, key);
    host_fits && world.universe.is_compatible(labels, rest, Undefined::Refused)
}

impl Solver<'_> {
    /// Places a pod on the first node that takes it.
    pub(super) fn place_on_node(
        &mut self,
        class: &PodClass,
        variant: &mut Variant,
        guards: &[GroupId],
        obeyed: &[GroupId],
    ) -> Option<NodeId> {
        let (on_hosts, _) = self.core.by_host(class, variant, obeyed);
        let mut nodes = variant.nodes.take().unwrap_or_else(|| self.nodes_for(class, variant));
        let mut found = None;
        let mut kept = 0;
        let mut position = 0;
        while position < nodes.len() {
            let node = nodes[position];
            let trial = if self.is_closed(node as usize) {
                Trial::NotNow
            } else if self.core.topology.allows_host(&on_hosts, HostId(node)) {
                self.core.try_node(class, variant, obeyed, node as usize, &self.nodes[node as usize])
            } else {
                Trial::NotNow
            };
            match trial {
                Trial::Fits => {
                    found = Some(NodeId(node));
                    break;
                }
                Trial::NotNow => {
                    nodes[kept] = node;
                    kept += 1;
                }
                // What is only assumed must not be remembered.
                Trial::Never if self.assumed.is_some() => {
                    nodes[kept] = node;
                    kept += 1;
                }
                Trial::Never => {}
            }
            position += 1;
        }
        nodes.drain(kept..position);
        variant.nodes = Some(nodes);
        let node = found?;
        self.occupy(node, class, guards);
        Some(node)
    }

    /// Whether a node takes a pod as things are.
    pub(super) fn takes(
        &mut self,
        node: NodeId,
        class: &PodClass,
        variant: &Variant,
        obeyed: &[GroupId],
    ) -> bool {
        let (on_hosts, _) = self.core.by_host(class, variant, obeyed);
        self.suits(node.index(), variant)
            && !self.is_closed(node.index())
            && self.core.topology.allows_host(&on_hosts, HostId(node.0))
            && matches!(
                self.core.try_node(class, variant, obeyed, node.index(), &self.nodes[node.index()]),
                Trial::Fits
            )
    }

    /// Puts a pod on a node.
    pub(super) fn occupy(&mut self, node: NodeId, class: &PodClass, guards: &[GroupId]) {
        self.remember(node);
        let state = &mut self.nodes[node.index()];
        state.available.subtract(&class.requests);
        state.ports.extend(class.ports.iter().cloned());
        state.volumes.extend(class.volumes.iter().copied());
        let target = self.core.node_target(node.index());
        self.core.topology.record(&mut self.core.world, class, guards, target);
    }

    /// The nodes whose labels and taints suit a pod.
    fn nodes_for(&mut self, class: &PodClass, variant: &Variant) -> Vec<u32> {
        let snapshot = self.core.world.snapshot;
        let mut nodes = Vec::new();
        for (position, _) in snapshot.nodes.iter().enumerate().filter(|(_, node)| node.open) {
            if class.requests.fits(self.available_in_truth(position)) && self.suits(position, variant) {
                nodes.push(u32::try_from(position).expect("fewer than four billion nodes"));
            }
        }
        nodes
    }

    /// Whether labels and taints of a node suit a pod.
    fn suits(&mut self, node: usize, variant: &Variant) -> bool {
        let snapshot = self.core.world.snapshot;
        let it = &snapshot.nodes[node];
        let hostname = variant.hostname.is_none_or(|id| {
            let universe = &self.core.world.universe;
            universe.get(id).has(it.hostname, universe.values(snapshot.keys.hostname))
        });
        hostname
            && self.core.world.tolerates(variant.tolerations, it.taints)
            && self.core.world.universe.is_compatible(it.labels, variant.requirements, Undefined::Refused)
    }
}

impl Core<'_> {
    fn node_target(&self, node: usize) -> Target {
        let it = &self.world.snapshot.nodes[node];
        Target { host: HostId::at(node), requirements: it.labels, taints: it.taints }
    }

    fn try_node(
        &mut self,
        class: &PodClass,
        variant: &Variant,
        obeyed: &[GroupId],
        node: usize,
        state: &NodeState,
    ) -> Trial {
        let snapshot = self.world.snapshot;
        if !class.requests.fits(&state.available)
            || class.ports.iter().any(|port| state.ports.iter().any(|used| used.conflicts(port)))
        {
            return Trial::Never;
        }
        let it = &snapshot.nodes[node];
        if !class.volumes.is_empty() {
            let counts = volume_counts(&state.volumes, &class.volumes);
            let over = it.volume_limits.iter().any(|(driver, limit)| {
                counts.get(driver).is_some_and(|count| count > limit)
                    && class.volumes.iter().any(|volume| volume.driver == *driver)
            });
            if over {
                return Trial::Never;
            }
        }
        let volumes_reach = class.volume_terms.is_empty()
            || class.volume_terms.iter().any(|set| accepts(&mut self.world, it.labels, it.hostname, *set));
        if !volumes_reach {
            return Trial::Never;
        }
        if obeyed.is_empty() {
            return Trial::Fits;
        }
        let target = self.node_target(node);
        match self.topology.allowed(&mut self.world, class, variant.strict, obeyed, target) {
            Ok(added) if self.world.universe.is_compatible(it.labels, added, Undefined::Refused) => {
                Trial::Fits
            }
            _ => Trial::NotNow,
        }
    }
}

enum Trial {
    Fits,
    /// Topologies may change.
    NotNow,
    /// A node only fills up.
    Never,
}

//! Spreading, affinity and anti-affinity: how many pods of a kind are in each domain of a label, and which
//! domains a pod may therefore go to.
//!
//! A [`Group`] is one rule shared by all pods that state it alike. Pods that state a rule obey its group; pods
//! that a rule selects are counted by it. Required anti-affinity is also seen from the other side: pods that it
//! selects must keep away from where its owners are.
//!
//! ```text
//! direct group    owners obey it, selected pods are counted in it
//! inverse group   selected pods obey it, owners are counted in it
//! ```

mod domains;
mod group;
mod journal;

use std::sync::Arc;

use crate::intern::{KeyId, ValueId, index};
use crate::model::{
    LabelsId, NamespaceId, NodeId, PodClass, PodTerm, Snapshot, Spread, TaintsId, TolerationsId,
};
use crate::requirement::Requirement;
use crate::tolerate::untolerated;
use crate::universe::{FastMap, RequirementId, SetId, Undefined, Universe};
use crate::world::World;

use domains::Domains;
pub(crate) use group::{Allowed, Filter, Group, GroupKey, Maker, Rule};
use journal::Journal;
pub(crate) use journal::{Absent, AbsentPod};

index! {
    /// A topology group.
    GroupId(u32)
}
index! {
    /// A host: an existing node, or a claim behind them.
    HostId(u32)
}

/// A node or claim as topologies see it.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) host: HostId,
    pub(crate) requirements: SetId,
    pub(crate) taints: TaintsId,
}

/// Why a topology rule cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsatisfiable {
    /// Which rule.
    pub group: GroupId,
    /// What the pod itself asks of the label.
    pub pod_domains: Option<RequirementId>,
    /// What the node or claim has.
    pub node_domains: Option<RequirementId>,
}

/// All groups of one solve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    groups: Vec<Group>,
    ids: FastMap<Arc<GroupKey>, GroupId>,
    inverse_ids: FastMap<Arc<GroupKey>, GroupId>,
    /// Which groups select pods of a namespace with some labels, and up to which group that is known.
    selecting: FastMap<(NamespaceId, LabelsId), (usize, Vec<GroupId>)>,
    domains: Domains,
    filters: FastMap<(GroupId, SetId, TaintsId), bool>,
    /// Which direct groups counted running pods of a kind, and up to which group that is known.
    counting: FastMap<(NamespaceId, LabelsId), (usize, Vec<GroupId>)>,
    /// Pods that run, by what rules see of them.
    running: Option<Arc<RunningByKind>>,
    /// What was counted while nodes are assumed to be gone.
    journal: Option<Journal>,
    /// Nodes that are gone for good.
    gone: Vec<NodeId>,
    /// Their pods, with where they are now.
    moves: Vec<(AbsentPod, Option<NodeId>)>,
}

/// Where pods of a namespace with some labels run, and how many.
type RunningByKind = Vec<((NamespaceId, LabelsId), Vec<(NodeId, i32)>)>;

impl Topology {
    pub(crate) fn new(world: &World<'_>) -> Self {
        let mut topology = Self::default();
        let (snapshot, universe) = (world.snapshot, &world.universe);
        for guard in &snapshot.guards {
            for term in &guard.terms {
                let group = topology.inverse(world, term, guard.tolerations);
                let labels = snapshot.nodes[guard.node.index()].object.map(|object| object.labels);
                let key = topology.groups[group.index()].key.key;
                if key == snapshot.keys.hostname {
                    topology.groups[group.index()].add_hosts(HostId(guard.node.0), 1);
                } else if let Some(value) = labels
                    .and_then(|labels| universe.find(labels, key))
                    .and_then(|id| universe.get(id).single())
                {
                    // The node may be in a domain that no pool makes.
                    topology.groups[group.index()].add(value, 1, universe);
                }
            }
        }
        topology
    }

    pub(crate) fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    /// All groups.
    pub(crate) fn all(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.groups.len()).map(GroupId::at)
    }

    /// The groups that a pod with these rules obeys by its own statement.
    pub(crate) fn register(&mut self, world: &mut World<'_>, rules: &Rules<'_>) -> Vec<GroupId> {
        let mut owned = Vec::new();
        for spread in rules.spreads {
            let filter = Filter {
                alternatives: if spread.honor_affinity { rules.node_filter.to_vec() } else { Vec::new() },
                tolerations: spread.honor_taints.then_some(rules.tolerations),
            };
            let key = GroupKey {
                rule: Rule::Spread,
                key: spread.key,
                namespaces: vec![rules.class.namespace],
                selector: spread.selector.clone(),
                max_skew: spread.max_skew,
                min_domains: spread.min_domains,
                filter: Some(filter),
            };
            owned.push(self.direct(world, key, rules.class));
        }
        for (rule, terms) in [(Rule::Affinity, rules.affinities), (Rule::AntiAffinity, rules.anti_affinities)]
        {
            for term in terms {
                let key = GroupKey::of_term(rule, term);
                owned.push(self.direct(world, key, rules.class));
            }
        }
        owned
    }

    /// The inverse groups that count a class: those of its required anti-affinity.
    pub(crate) fn guarded_by(&mut self, world: &World<'_>, class: &PodClass) -> Vec<GroupId> {
        class.anti_affinities.iter().map(|term| self.inverse(world, term, class.tolerations)).collect()
    }

    fn direct(&mut self, world: &mut World<'_>, key: GroupKey, class: &PodClass) -> GroupId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let key = Arc::new(key);
        let mut group = Group::new(Arc::clone(&key), false, world.snapshot.keys.hostname);
        self.start(&mut group, world, class.tolerations);
        let id = GroupId::at(self.groups.len());
        self.count_running(&mut group, id, world);
        self.groups.push(group);
        self.ids.insert(key, id);
        self.catch_up(world, id);
        id
    }

    fn inverse(&mut self, world: &World<'_>, term: &PodTerm, tolerations: TolerationsId) -> GroupId {
        let key = GroupKey::of_term(Rule::AntiAffinity, term);
        if let Some(id) = self.inverse_ids.get(&key) {
            return *id;
        }
        // Whoever runs and keeps others away was known from the start, so there is nothing to count.
        let key = Arc::new(key);
        let mut group = Group::new(Arc::clone(&key), true, world.snapshot.keys.hostname);
        self.start(&mut group, world, tolerations);
        let id = GroupId::at(self.groups.len());
        self.groups.push(group);
        self.inverse_ids.insert(key, id);
        id
    }

    /// Gives a group the domains that pools could make.
    fn start(&mut self, group: &mut Group, world: &World<'_>, tolerations: TolerationsId) {
        if group.is_hostname() {
            return;
        }
        let ignores_taints = group.key.filter.as_ref().is_some_and(|filter| filter.tolerations.is_none());
        let (snapshot, tolerations) = (world.snapshot, world.tolerations(tolerations));
        for domain in self.domains.of(snapshot, &world.universe, group.key.key) {
            let reachable = ignores_taints
                || domain
                    .taints
                    .iter()
                    .any(|taints| untolerated(snapshot.taints.get(taints.0), tolerations).next().is_none());
            if reachable {
                group.know(domain.value, Maker::Lasting, &world.universe);
            }
        }
    }

    /// Counts the pods that run already.
    fn count_running(&mut self, group: &mut Group, id: GroupId, world: &mut World<'_>) {
        let (key, snapshot) = (group.key.key, world.snapshot);
        let mut counted = vec![None; snapshot.nodes.len()];
        for (position, node) in snapshot.nodes.iter().enumerate() {
            let Some(object) = node.object else { continue };
            if !self.passes(id, group, object.labels, object.taints, world) {
                continue;
            }
            counted[position] = Some(object.labels);
            if node.open
                && !group.is_hostname()
                && let Some(value) = single(&world.universe, node.labels, key)
            {
                group.know(value, Maker::Node, &world.universe);
            }
        }
        let running = Arc::clone(self.running.get_or_insert_with(|| Arc::new(running_by_kind(snapshot))));
        for ((namespace, labels), places) in running.iter() {
            if !group.counts_running(*namespace, snapshot.labels.get(labels.0)) {
                continue;
            }
            for (node, count) in places {
                let Some(labels) = counted[node.index()] else { continue };
                if group.is_hostname() {
                    group.add_hosts(HostId(node.0), *count);
                } else if let Some(value) = single(&world.universe, labels, key) {
                    group.add(value, *count, &world.universe);
                }
            }
        }
    }

    fn passes(
        &mut self,
        id: GroupId,
        group: &Group,
        requirements: SetId,
        taints: TaintsId,
        world: &mut World<'_>,
    ) -> bool {
        let Some(filter) = &group.key.filter else { return true };
        if let Some(known) = self.filters.get(&(id, requirements, taints)) {
            return *known;
        }
        let passes = (filter.alternatives.is_empty()
            || filter
                .alternatives
                .iter()
                .any(|set| world.universe.is_compatible(requirements, *set, Undefined::Refused)))
            && filter.tolerations.is_none_or(|tolerations| world.tolerates(tolerations, taints));
        self.filters.insert((id, requirements, taints), passes);
        passes
    }

    /// Whether the groups that look at hosts let a pod onto one; each comes with whether it selects the pod.
    pub(crate) fn allows_host(&self, groups: &[(GroupId, bool)], host: HostId) -> bool {
        groups.iter().all(|(id, own)| self.groups[id.index()].allows_host(host, *own, None))
    }

    /// The groups that select pods of a class, direct and inverse.
    pub(crate) fn selecting(&mut self, snapshot: &Snapshot, class: &PodClass) -> &[GroupId] {
        let (known, groups) = self.selecting.entry((class.namespace, class.labels)).or_default();
        let labels = snapshot.labels.get(class.labels.0);
        for (position, group) in self.groups.iter().enumerate().skip(*known) {
            if group.selects(class.namespace, labels) {
                groups.push(GroupId::at(position));
            }
        }
        *known = self.groups.len();
        groups
    }

    /// The domains a pod may go to at a target, as requirements to add to it.
    ///
    /// `obeyed` are the groups that bind the pod: those it owns and the inverse ones that select it.
    pub(crate) fn allowed(
        &mut self,
        world: &mut World<'_>,
        class: &PodClass,
        strict: SetId,
        obeyed: &[GroupId],
        target: Target,
    ) -> Result<SetId, Unsatisfiable> {
        let (snapshot, universe) = (world.snapshot, &mut world.universe);
        let mut added = SetId::EMPTY;
        let labels = snapshot.labels.get(class.labels.0);
        for id in obeyed {
            let group = &mut self.groups[id.index()];
            let key = group.key.key;
            let pod_domains = universe.find(strict, key);
            let own = group.selects(class.namespace, labels);
            if group.is_hostname() {
                let admits = pod_domains.map(|id| {
                    let (wanted, names) = (universe.get(id), universe.values(key));
                    move |host| match host_value(snapshot, host) {
                        Some(name) => wanted.has(name, names),
                        // What has no name yet is none of those that are asked for, and none that are not.
                        None => wanted.is_complement(),
                    }
                });
                let admits = admits.as_ref().map(|admits| admits as &dyn Fn(HostId) -> bool);
                if !group.allows_host(target.host, own, admits) {
                    return Err(Unsatisfiable { group: *id, pod_domains, node_domains: None });
                }
                continue;
            }
            let node_domains = universe.find(target.requirements, key);
            match group.allowed(pod_domains, node_domains, own, universe) {
                Allowed::None => return Err(Unsatisfiable { group: *id, pod_domains, node_domains }),
                Allowed::Values(values) => {
                    let requirement = universe.set([(key, Requirement::within(values))]);
                    // Rules that leave no common domain still allow a node that is in none.
                    added = universe.intersect(added, requirement);
                }
            }
        }
        Ok(added)
    }

    /// Counts a pod of a class that was placed at a target.
    pub(crate) fn record(
        &mut self,
        world: &mut World<'_>,
        class: &PodClass,
        guards: &[GroupId],
        target: Target,
    ) {
        let selecting = self.selecting(world.snapshot, class).to_vec();
        for id in selecting {
            if self.groups[id.index()].inverse {
                continue;
            }
            let group = std::mem::take(&mut self.groups[id.index()]);
            let passes = self.passes(id, &group, target.requirements, target.taints, world);
            self.groups[id.index()] = group;
            if passes {
                let every_value = self.groups[id.index()].key.rule == Rule::AntiAffinity;
                self.count(id, &world.universe, target, every_value);
            }
        }
        for id in guards {
            self.count(*id, &world.universe, target, true);
        }
    }

    fn count(&mut self, id: GroupId, universe: &Universe, target: Target, every_value: bool) {
        let group = &self.groups[id.index()];
        if group.is_hostname() {
            self.add_hosts(id, target.host, 1);
            return;
        }
        let Some(requirement) = universe.find(target.requirements, group.key.key) else { return };
        match universe.get(requirement).members() {
            Some([value]) => self.add(id, *value, 1, universe),
            Some(values) if every_value => {
                for value in values {
                    self.add(id, *value, 1, universe);
                }
            }
            _ => {}
        }
    }
}

/// The rules that a pod states, as they stand after some of its wishes were dropped.
pub(crate) struct Rules<'a> {
    pub(crate) class: &'a PodClass,
    pub(crate) tolerations: TolerationsId,
    pub(crate) spreads: &'a [Spread],
    pub(crate) affinities: &'a [PodTerm],
    pub(crate) anti_affinities: &'a [PodTerm],
    /// Alternatives of what the pod asks of its node.
    pub(crate) node_filter: &'a [SetId],
}

/// The one value that labels have for a key.
fn single(universe: &Universe, labels: SetId, key: KeyId) -> Option<ValueId> {
    universe.find(labels, key).and_then(|id| universe.get(id).single())
}

fn running_by_kind(snapshot: &Snapshot) -> RunningByKind {
    let mut kinds: RunningByKind = Vec::new();
    let mut positions: FastMap<(NamespaceId, LabelsId), usize> = FastMap::default();
    for running in &snapshot.running {
        let kind = (running.namespace, running.labels);
        let position = *positions.entry(kind).or_insert_with(|| {
            kinds.push((kind, Vec::new()));
            kinds.len() - 1
        });
        kinds[position].1.push((running.node, running.count));
    }
    kinds
}

fn host_value(snapshot: &Snapshot, host: HostId) -> Option<ValueId> {
    snapshot.nodes.get(host.index()).map(|node| node.hostname)
}

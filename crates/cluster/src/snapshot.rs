//! Kubernetes objects as the engine's snapshot. Entry: [`build`].
//!
//! ```text
//! instance types ──────────────► catalogue
//! NodePools ───────────────────► pools, with what existing nodes leave of their limits
//! Nodes + NodeClaims ──────────► nodes ◄── bound pods: requests, ports, volumes; counted for topologies
//! unschedulable pods,      ─┐
//! pods of deleting nodes,  ─┼──► classes and pods
//! room that buffers keep   ─┘
//! DaemonSets ──────────────────► daemons
//! ```
//!
//! An object that cannot be used never hides the others; it is in [`Built::ignored`] with the reason.

mod catalogue;
mod daemons;
mod namespaces;
mod nodes;
mod options;
mod pods;
mod pools;
mod tables;
mod types;
mod view;
mod workloads;

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use api::labels::LabelSets;
use api::shared::{Operator, Requirement};
use api::validation::pod::{PodError, validate_term};
use api::validation::requirement;
use engine::model::{
    ClassId, Guard, KnownKeys, LabelsId, NamespaceId, NodeId, Pod as EnginePod, PodClass, Running, Runs,
    Snapshot,
};
use engine::universe::SetId;
use hashbrown::{HashMap, HashSet, HashTable};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use rustc_hash::FxBuildHasher;

use crate::eligibility;
use crate::objects::Pod;
use crate::objects::selector::NodeSelectorTerm;
use crate::pod_disruption_budgets::Budgets;
use crate::reason::{Ignored, NotPending, Reason, Rejection};
use crate::shapes::Memo;
use crate::state::{Key, Watched};
use crate::state_node::Joined;
use crate::volumes::Volumes;
use namespaces::Namespaces;
use nodes::Nodes;
pub use options::{Options, ToPlace};
use pods::Usage;
use tables::Tables;
pub use types::InstanceTypes;
use types::Listed;
pub use view::View;
use workloads::Workloads;

/// A snapshot, and what has no part in it.
#[derive(Debug)]
pub struct Built {
    /// What the engine looks at.
    pub snapshot: Snapshot,
    /// Which objects its nodes stand for, in the same order.
    pub nodes: Vec<NodeOrigin>,
    /// Why its pods are to be placed, in the same order.
    pub pods: Vec<Origin>,
    /// Objects that were left out.
    pub ignored: Vec<Ignored>,
    /// Pods that could not be placed anywhere else if their node went, and why.
    pub stuck: Vec<Stuck>,
}

/// A pod that could not be placed anywhere else if its node went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its node.
    pub node: NodeId,
    /// Whether something keeps it from being evicted, so that it matters only to those who ask for such pods, too.
    pub blocked: bool,
    /// `namespace/name`.
    pub pod: Box<str>,
    /// Why.
    pub reason: Reason,
}

/// Why a pod is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It waits for a node.
    Waiting,
    /// Its node is on its way out.
    DeletingNode,
    /// Its node stays, but what if it went?
    InCase,
    /// It keeps room for others: a virtual pod of the room at this position of [`Options::rooms`].
    Buffer(usize),
}

/// Which objects a node of the snapshot stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeOrigin {
    /// The instance.
    pub provider_id: Box<str>,
    /// The Node, if it has joined.
    pub node: Option<Box<str>>,
    /// The NodeClaim; nodes that somebody else manages have none.
    pub claim: Option<Box<str>>,
}

/// Builds the snapshot of a cluster at a point in time, from a file's `&Objects` or from the `&State`.
pub fn build<'v>(objects: impl Into<View<'v>>, options: &Options<'_>, now: Timestamp) -> Built {
    let view = objects.into();
    let mut builder = Builder::new(&view, options);
    builder.catalogues();
    let Joined { nodes: states, bystanders, ignored } = view.joined(options.provider);
    builder.ignored.extend(ignored);
    builder.pools(&states);
    builder.pool_names = builder.tables.snapshot.pools.iter().map(|pool| pool.name.clone()).collect();
    let mut nodes = builder.nodes(&states, now);
    builder.bystanders(&bystanders, &mut nodes);
    builder.place_pods(&mut nodes, now);
    builder.place_rooms();
    builder.settle(&nodes);
    builder.daemons();
    let Builder { tables, origins, ignored, stuck, .. } = builder;
    Built { snapshot: tables.snapshot, nodes: nodes.origins, pods: origins, ignored, stuck }
}

struct Builder<'a> {
    view: &'a View<'a>,
    options: &'a Options<'a>,
    tables: Tables,
    volumes: Volumes<'a>,
    namespaces: Namespaces<'a>,
    workloads: Workloads<'a>,
    /// Lists of instance types.
    listed: Vec<Listed<'a>>,
    /// Pools that take part.
    pool_names: BTreeSet<Box<str>>,
    /// Labels of nodes that have been converted.
    node_labels: HashMap<Vec<(&'a str, &'a str)>, SetId, FxBuildHasher>,
    /// Why pods are to be placed.
    origins: Vec<Origin>,
    /// Classes by what they are.
    classes: HashTable<ClassId>,
    ignored: Vec<Ignored>,
    stuck: Vec<Stuck>,
}

impl<'a> Builder<'a> {
    fn new(view: &'a View<'a>, options: &'a Options<'a>) -> Self {
        let mut offered: Vec<&String> = Vec::new();
        let lists = options.instance_types.lists();
        let offerings = lists.into_iter().flatten().flat_map(|each| &each.offerings);
        for requirement in offerings.flat_map(|offering| &offering.requirements) {
            if !offered.contains(&&requirement.key) {
                offered.push(&requirement.key);
            }
        }
        let labels = LabelSets::for_provider(options.provider).with_well_known(offered.into_iter().cloned());
        let mut builder = Self {
            view,
            options,
            tables: Tables::new(labels),
            volumes: Volumes::new(view, &options.unsupported_volumes),
            namespaces: Namespaces::new(view),
            workloads: Workloads::new(view),
            listed: Vec::new(),
            pool_names: BTreeSet::new(),
            node_labels: HashMap::default(),
            origins: Vec::new(),
            classes: HashTable::new(),
            ignored: Vec::new(),
            stuck: Vec::new(),
        };
        builder.known_keys();
        builder.known_namespaces();
        builder
    }

    fn known_keys(&mut self) {
        let reservation = self.tables.labels.reservation_id();
        let universe = &mut self.tables.snapshot.universe;
        self.tables.snapshot.keys = KnownKeys::new(universe, reservation);
        for name in self.tables.labels.well_known() {
            let key = universe.key(name);
            universe.set_well_known(key);
        }
    }

    fn known_namespaces(&mut self) {
        let all: Vec<_> = self.namespaces.iter().collect();
        for (name, labels) in all {
            let id = self.tables.namespace(name);
            match labels.map(|labels| self.tables.labels(labels)).transpose() {
                Ok(labels) => self.tables.snapshot.namespace_labels[id.index()] = labels,
                Err(reason) => {
                    let name = name.into();
                    self.ignored.push(Ignored { kind: "Namespace", namespace: None, name, reason });
                }
            }
        }
    }

    /// Puts bound pods on their nodes, and collects those that need a place: first those that wait, then those
    /// whose node goes away.
    fn place_pods(&mut self, nodes: &mut Nodes<'a>, now: Timestamp) {
        let budgets = Budgets::new(self.view.pod_disruption_budgets.iter().copied());
        let ToPlace { waiting: place_waiting, of_deleting_nodes, in_case } = self.options.to_place;
        let with_owner = !self.options.scheduler_config.default_spreads.is_empty();
        let (mut waiting, mut moving) = (Memo::new(with_owner), Memo::new(with_owner));
        let mut running = RunningPods::default();
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        let mut seen = HashSet::<_, FxBuildHasher>::default();
        let may_repeat = self.view.may_repeat();
        let by_claim = nodes.by_claim();
        for (pod, node) in self.view.pods_on(nodes) {
            if may_repeat && !seen.insert((pod.metadata.namespace(), &*pod.metadata.name)) {
                let value = pod.metadata.name.clone();
                self.ignore_pod(pod, Reason::Duplicate { field: "metadata.name", value });
            } else if pod.spec.node_name.is_empty() {
                if place_waiting {
                    self.place_waiting(pod, &mut waiting, &by_claim);
                }
            } else if let Some(node) = node {
                if eligibility::is_terminal(pod) {
                    continue;
                }
                let usage = running.usage(self, pod);
                if nodes.is_bystander(node) {
                    running.count_in_domain(pod, node, usage);
                    continue;
                }
                self.occupy(nodes, node, &running.usages[usage], eligibility::is_daemon(pod));
                let is_open = self.tables.snapshot.nodes[node.index()].open;
                if !is_open && of_deleting_nodes && budgets.may_move(pod, now) {
                    leaving.push((pod, node, usage));
                    continue;
                }
                running.count(pod, node, usage);
                let may_go = in_case && is_open && nodes.is_managed(node);
                if may_go && eligibility::is_reschedulable(pod) {
                    staying.push((pod, node));
                }
            }
        }
        for (pod, node, usage) in leaving {
            let class = moving.get(pod).cloned().unwrap_or_else(|| {
                let class = self.intern_class(pod);
                moving.insert(pod, class.clone());
                class
            });
            // A pod that cannot be placed goes on running where it is, as far as others are concerned.
            if !self.place(pod, class, Origin::DeletingNode) {
                running.count(pod, node, usage);
            }
        }
        for (pod, on) in staying {
            let class = moving.get(pod).cloned().unwrap_or_else(|| {
                let class = self.intern_class(pod);
                moving.insert(pod, class.clone());
                class
            });
            let counted = !pod.metadata.is_deleting();
            let runs = Runs { on, counted, blocked: !budgets.may_move(pod, now) };
            self.place_in_case(pod, class, runs);
        }
        let RunningPods { counts, guards, .. } = running;
        self.tables.snapshot.running = counts;
        self.tables.snapshot.guards = guards;
    }

    fn place_waiting(
        &mut self,
        pod: &'a Pod,
        memo: &mut Memo<'a, Result<ClassId, Reason>>,
        by_claim: &HashMap<Box<str>, NodeId, FxBuildHasher>,
    ) {
        if let Err(reason) = eligibility::pending(pod, self.options.accept_unseen_pods) {
            return self.ignore_pod(pod, reason.into());
        }
        let is_unseen = self.options.accept_unseen_pods && pod.status.conditions.scheduling.is_none();
        if let Some(node) = self.volumes.awaited_on(pod).filter(|_| is_unseen) {
            return self.ignore_pod(pod, NotPending::Volumes(node.into()).into());
        }
        let class = memo.get(pod).cloned().unwrap_or_else(|| {
            let class = self.validate(pod).and_then(|()| self.intern_class(pod));
            memo.insert(pod, class.clone());
            class
        });
        if self.place(pod, class, Origin::Waiting) {
            let nominated = self.view.nominated(pod).and_then(|claim| by_claim.get(claim)).copied();
            self.tables.snapshot.pods.last_mut().expect("it was just placed").nominated = nominated;
        }
    }

    /// Adds the virtual pods of capacity buffers. Nobody has asked whether they are valid: where they cannot be
    /// placed, their buffer says so.
    fn place_rooms(&mut self) {
        for (position, room) in self.options.rooms.iter().enumerate() {
            let Ok(pods) = &room.pods else { continue };
            let class = match self.intern_class(&pods.pod) {
                Ok(class) => class,
                Err(reason) => {
                    let Key { namespace, name } = room.buffer.key();
                    let ignored =
                        Ignored { kind: "CapacityBuffer", namespace: Some(namespace), name, reason };
                    self.ignored.push(ignored);
                    continue;
                }
            };
            let namespace = pods.pod.metadata.namespace();
            for number in 1..=pods.replicas {
                let name = format!("{namespace}/{}", room.pod_name(number)).into();
                // Among pods of the same size the older come first; nothing is younger than these.
                let (uid, created) = (room.pod_uid(number).into(), i64::MAX);
                self.tables.snapshot.pods.push(EnginePod {
                    name,
                    uid,
                    created,
                    class,
                    runs: None,
                    nominated: None,
                });
                self.origins.push(Origin::Buffer(position));
            }
        }
    }

    /// Adds a pod that needs a place; whether it can be placed at all.
    fn place(&mut self, pod: &Pod, class: Result<ClassId, Reason>, origin: Origin) -> bool {
        match class {
            Ok(class) => {
                self.tables.snapshot.pods.push(engine_pod(pod, class, None));
                self.origins.push(origin);
                true
            }
            Err(reason) => {
                self.ignore_pod(pod, reason);
                false
            }
        }
    }

    /// Adds a pod that would need a place if its node went.
    fn place_in_case(&mut self, pod: &Pod, class: Result<ClassId, Reason>, runs: Runs) {
        match class {
            Ok(class) => {
                self.tables.snapshot.pods.push(engine_pod(pod, class, Some(runs)));
                self.origins.push(Origin::InCase);
            }
            Err(reason) => {
                let Runs { on: node, blocked, .. } = runs;
                self.stuck.push(Stuck { node, blocked, pod: full_name(pod), reason });
            }
        }
    }

    fn ignore_pod(&mut self, pod: &Pod, reason: Reason) {
        let namespace = Some(pod.metadata.namespace().into());
        self.ignored.push(Ignored { kind: "Pod", namespace, name: pod.metadata.name.clone(), reason });
    }

    /// The number of the class of a pod.
    fn intern_class(&mut self, pod: &Pod) -> Result<ClassId, Reason> {
        let class = self.class(pod)?;
        Ok(self.intern(class))
    }

    fn intern(&mut self, class: PodClass) -> ClassId {
        let hasher = FxBuildHasher;
        let classes = &mut self.tables.snapshot.classes;
        let hash = hasher.hash_one(&class);
        if let Some(id) = self.classes.find(hash, |id| classes[id.index()] == class) {
            return *id;
        }
        let id = ClassId::at(classes.len());
        classes.push(class);
        self.classes.insert_unique(hash, id, |id| hasher.hash_one(&classes[id.index()]));
        id
    }

    /// Finds everything that is wrong with a pod that waits.
    fn validate(&mut self, pod: &Pod) -> Result<(), Reason> {
        let mut rejections = Vec::new();
        if self.opts_out(pod) {
            rejections.push(Rejection::OptedOut);
        }
        let labels = &self.tables.labels;
        for (key, value) in pod.spec.node_selector.iter() {
            let (key, values) = (key.to_owned(), vec![value.to_string()]);
            let asked = Requirement { key, operator: Operator::In, values, min_values: None };
            let wrong = requirement::validate(&asked, labels).into_iter();
            rejections.extend(wrong.map(|error| Rejection::NodeRule(PodError::Requirement(error))));
        }
        for term in required_terms(pod) {
            rejections.extend(validate_term(&k8s_term(term), labels).into_iter().map(Rejection::NodeRule));
        }
        rejections.extend(self.volumes.validate(pod).err().map(Rejection::Volume));
        if rejections.is_empty() { Ok(()) } else { Err(Reason::Rejected(rejections)) }
    }

    /// Whether a pod asks for a node without a pool, by its selector, its first alternative or its greatest wish.
    fn opts_out(&mut self, pod: &Pod) -> bool {
        let selector = pod.spec.node_selector.iter().map(|(key, value)| (key, &**value));
        let Ok(mut asked) = self.tables.node_labels(selector) else { return false };
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let wishes = affinity.map_or(&[][..], |affinity| &affinity.preferred);
        // Of several wishes of the same weight the first counts.
        let wish = wishes.iter().rev().max_by_key(|wish| wish.weight).map(|wish| &wish.preference);
        for term in wish.into_iter().chain(required_terms(pod).first()) {
            let Ok(term) = self.tables.node_term(&term.match_expressions, "") else { return false };
            asked = self.tables.snapshot.universe.intersect(asked, term);
        }
        let universe = &self.tables.snapshot.universe;
        let pool = universe.find(asked, self.tables.snapshot.keys.node_pool);
        pool.is_some_and(|pool| universe.get(pool).operator() == engine::requirement::Operator::DoesNotExist)
    }
}

fn full_name(pod: &Pod) -> Box<str> {
    format!("{}/{}", pod.metadata.namespace(), pod.metadata.name).into()
}

fn engine_pod(pod: &Pod, class: ClassId, runs: Option<Runs>) -> EnginePod {
    let name = full_name(pod);
    let uid = if pod.metadata.uid.is_empty() { name.clone() } else { pod.metadata.uid.clone() };
    let created = pod.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
    EnginePod { name, uid, created, class, runs, nominated: None }
}

/// The alternatives that a pod has for its node.
fn required_terms(pod: &Pod) -> &[NodeSelectorTerm] {
    let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.map_or(&[], |selector| &selector.node_selector_terms)
}

/// The term as the validation takes it.
fn k8s_term(term: &NodeSelectorTerm) -> k8s::NodeSelectorTerm {
    let expressions = term.match_expressions.iter().map(|each| k8s::NodeSelectorRequirement {
        key: each.key.to_string(),
        operator: each.operator.to_string(),
        values: Some(each.values.iter().map(ToString::to_string).collect()),
    });
    k8s::NodeSelectorTerm {
        match_expressions: Some(expressions.collect()),
        match_fields: term.match_fields.as_ref().map(|_| Vec::new()),
    }
}

/// Pods that run, as topologies count them.
#[derive(Default)]
struct RunningPods<'a> {
    memo: Option<Memo<'a, usize>>,
    usages: Vec<Usage>,
    counts: Vec<Running>,
    /// Where in `counts` pods of a kind on a node are.
    positions: HashMap<(NodeId, NamespaceId, LabelsId), usize, FxBuildHasher>,
    guards: Vec<Guard>,
}

impl<'a> RunningPods<'a> {
    /// What a pod takes of its node, by its place in `usages`.
    fn usage(&mut self, builder: &mut Builder<'_>, pod: &'a Pod) -> usize {
        let memo = self.memo.get_or_insert_with(|| Memo::new(false));
        if let Some(known) = memo.get(pod) {
            return *known;
        }
        let usage = self.usages.len();
        self.usages.push(builder.usage(pod));
        memo.insert(pod, usage);
        usage
    }

    /// Counts a pod that stays. One that terminates does not count, but still keeps others away.
    fn count(&mut self, pod: &Pod, node: NodeId, usage: usize) {
        let Usage { tolerations, keeps_away, .. } = &self.usages[usage];
        if !keeps_away.is_empty() {
            self.guards.push(Guard { node, tolerations: *tolerations, terms: keeps_away.clone() });
        }
        self.count_in_domain(pod, node, usage);
    }

    /// Counts a pod for rules that select it, unless it terminates.
    fn count_in_domain(&mut self, pod: &Pod, node: NodeId, usage: usize) {
        if pod.metadata.is_deleting() {
            return;
        }
        let Usage { namespace, labels, .. } = &self.usages[usage];
        let kind = (node, *namespace, *labels);
        let position = *self.positions.entry(kind).or_insert_with(|| {
            self.counts.push(Running { node, namespace: *namespace, labels: *labels, count: 0 });
            self.counts.len() - 1
        });
        self.counts[position].count += 1;
    }
}

#[cfg(test)]
mod tests;

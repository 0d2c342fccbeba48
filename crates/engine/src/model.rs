//! What a decision looks at: pools, instance types, nodes and pods, in the engine's own terms.
//!
//! A [`Snapshot`] is built once, from a cluster or a file, and not changed afterwards. Pods that nothing can
//! tell apart share a [`PodClass`].

use std::sync::Arc;

use crate::intern::{Interner, KeyId, ResourceId, ValueId, index};
use crate::resources::{Amounts, ResourceTable};
use crate::universe::{FastMap, SetId, Universe};

index! {
    /// A NodePool, in the order in which pools are tried.
    PoolId(u16)
}
index! {
    /// A node that exists or is on its way.
    NodeId(u32)
}
index! {
    /// A pod that is to be placed.
    PodId(u32)
}
index! {
    /// A shape that pods have in common.
    ClassId(u32)
}
index! {
    /// A list of instance types that one or more pools choose from.
    CatalogueId(u16)
}
index! {
    /// A namespace.
    NamespaceId(u32)
}
index! {
    /// The labels of a pod.
    LabelsId(u32)
}
index! {
    /// A list of taints.
    TaintsId(u32)
}
index! {
    /// A list of tolerations.
    TolerationsId(u32)
}
index! {
    /// A driver that attaches volumes.
    DriverId(u16)
}
index! {
    /// A persistent volume claim.
    VolumeId(u32)
}
index! {
    /// A capacity reservation.
    ReservationId(u32)
}

/// Everything a decision looks at.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Labels and requirements.
    pub universe: Universe,
    /// Labels with a meaning of their own.
    pub keys: KnownKeys,
    /// Resources.
    pub resources: ResourceTable,
    /// Names of namespaces.
    pub namespaces: Interner,
    /// Labels of namespaces, for terms that select them; indexed by namespace, absent where unknown.
    pub namespace_labels: Vec<Option<LabelsId>>,
    /// Label sets of pods and namespaces: sorted by key.
    pub labels: Table<(KeyId, ValueId)>,
    /// Lists of taints.
    pub taints: Table<Taint>,
    /// Lists of tolerations.
    pub tolerations: Table<Toleration>,
    /// Drivers that attach volumes.
    pub drivers: Interner,
    /// Names of reservations.
    pub reservations: Interner,
    /// Lists of instance types.
    pub catalogues: Vec<Arc<Catalogue>>,
    /// Pools that may get new nodes, highest weight first, then by name backwards.
    pub pools: Vec<Pool>,
    /// Pools that may not, in the same order.
    pub unused_pools: Vec<UnusedPool>,
    /// Nodes, initialised ones first, then by name.
    pub nodes: Vec<Node>,
    /// Shapes of pods.
    pub classes: Vec<PodClass>,
    /// Pods to place, and behind them pods that run and would have to be placed if their node went.
    pub pods: Vec<Pod>,
    /// Pods that run on nodes, for counting topologies.
    pub running: Vec<Running>,
    /// Pods on nodes that keep others away.
    pub guards: Vec<Guard>,
    /// One pod of each DaemonSet.
    pub daemons: Vec<ClassId>,
}

/// Label keys with a meaning of their own.
#[derive(Clone, Copy, Debug)]
pub struct KnownKeys {
    /// `kubernetes.io/hostname`.
    pub hostname: KeyId,
    /// `topology.kubernetes.io/zone`.
    pub zone: KeyId,
    /// `karpenter.sh/capacity-type`.
    pub capacity_type: KeyId,
    /// `node.kubernetes.io/instance-type`.
    pub instance_type: KeyId,
    /// `karpenter.sh/nodepool`.
    pub node_pool: KeyId,
    /// The label that names a capacity reservation, if the cloud has them.
    pub reservation: Option<KeyId>,
}

impl Default for KnownKeys {
    /// Placeholders; [`KnownKeys::new`] makes the real ones.
    fn default() -> Self {
        let key = KeyId(0);
        Self {
            hostname: key,
            zone: key,
            capacity_type: key,
            instance_type: key,
            node_pool: key,
            reservation: None,
        }
    }
}

impl KnownKeys {
    /// Interns the keys; all but the host name are set by the cloud at launch.
    pub fn new(universe: &mut Universe, reservation: Option<&str>) -> Self {
        let keys = Self {
            hostname: universe.key("kubernetes.io/hostname"),
            zone: universe.key("topology.kubernetes.io/zone"),
            capacity_type: universe.key("karpenter.sh/capacity-type"),
            instance_type: universe.key("node.kubernetes.io/instance-type"),
            node_pool: universe.key("karpenter.sh/nodepool"),
            reservation: reservation.map(|name| universe.key(name)),
        };
        for key in [keys.zone, keys.capacity_type, keys.instance_type, keys.node_pool] {
            universe.set_well_known(key);
        }
        if let Some(key) = keys.reservation {
            universe.set_well_known(key);
        }
        keys
    }
}

/// Distinct lists, each known by the order in which it was first seen. The first is the empty one.
#[derive(Clone, Debug)]
pub struct Table<T> {
    lists: Vec<Box<[T]>>,
    ids: FastMap<Box<[T]>, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Default for Table<T> {
    fn default() -> Self {
        let mut table = Self { lists: Vec::new(), ids: FastMap::default() };
        table.intern(Vec::new());
        table
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    /// The number of a list, which is added if it is new.
    pub fn intern(&mut self, list: Vec<T>) -> u32 {
        if let Some(id) = self.ids.get(list.as_slice()) {
            return *id;
        }
        let list = list.into_boxed_slice();
        let id = u32::try_from(self.lists.len()).expect("fewer than four billion distinct lists");
        self.lists.push(list.clone());
        self.ids.insert(list, id);
        id
    }

    /// The list behind a number.
    pub fn get(&self, id: u32) -> &[T] {
        &self.lists[id as usize]
    }

    /// How many distinct lists there are.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
}

/// Keeps pods away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taint {
    /// The key.
    pub key: Box<str>,
    /// The value.
    pub value: Box<str>,
    /// What happens to pods that do not tolerate it.
    pub effect: Effect,
}

/// What happens to pods that do not tolerate a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// They are not scheduled.
    NoSchedule,
    /// They are not scheduled if there is another way.
    PreferNoSchedule,
    /// They are evicted.
    NoExecute,
}

/// Lets a pod onto tainted nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// The taint key; any when absent.
    pub key: Option<Box<str>>,
    /// How the value is compared.
    pub operator: TolerationOperator,
    /// The value it is compared with.
    pub value: Box<str>,
    /// The effect; any when absent.
    pub effect: Option<Effect>,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// The values are equal.
    Equal,
    /// Any value.
    Exists,
    /// The taint's value is a greater integer.
    Gt,
    /// The taint's value is a lesser integer.
    Lt,
}

/// A list of instance types.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The types, in the provider's order.
    pub types: Vec<InstanceType>,
}

/// A kind of machine.
#[derive(Clone, Debug)]
pub struct InstanceType {
    /// Its name, a value of the instance-type label.
    pub name: ValueId,
    /// Its labels.
    pub requirements: SetId,
    /// Where and how it can be bought.
    pub offerings: Vec<Offering>,
    /// What it has.
    pub capacity: Amounts,
    /// Resources that it says it has none of. What the system keeps of them is missing.
    pub without: Vec<ResourceId>,
    /// What the system keeps of it.
    pub overhead: Amounts,
    /// How many volumes of a driver it can attach; unknown where absent.
    pub volume_limits: Vec<(DriverId, u32)>,
    /// Whether a NodeOverlay changed its price or its capacity.
    pub overlaid: Overlaid,
}

/// What a NodeOverlay changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlaid {
    /// A price.
    pub price: bool,
    /// The capacity.
    pub capacity: bool,
}

/// One way to buy an instance type.
#[derive(Clone, Debug)]
pub struct Offering {
    /// Zone, capacity type and whatever else it fixes.
    pub requirements: SetId,
    /// Price per hour.
    pub price: f64,
    /// Whether it can be had at present.
    pub available: bool,
    /// The reservation it draws on, and how many launches that has left.
    pub reservation: Option<(ReservationId, u32)>,
    /// Capacity that differs from the type's; it may be zero.
    pub capacity_override: Vec<(ResourceId, i64)>,
    /// Overhead that differs from the type's; it may be zero.
    pub overhead_override: Vec<(ResourceId, i64)>,
}

/// A NodePool, as a template for claims.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: Box<str>,
    /// Requirements and labels of its nodes, those of the simulation included.
    pub requirements: SetId,
    /// What its own requirements and labels say, which makes the domains of topologies.
    pub declared: SetId,
    /// Taints of its nodes; startup taints do not count.
    pub taints: TaintsId,
    /// Upper bounds, and what its nodes already use of them.
    pub limits: Vec<Limit>,
    /// What it chooses from; none if the types could not be read.
    pub catalogue: Option<CatalogueId>,
}

/// An upper bound on what a pool may have.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Of what.
    pub resource: ResourceId,
    /// How much the pool may have.
    pub bound: i64,
    /// What is left of it.
    pub remaining: i64,
}

/// A pool that gets no new nodes. Nothing is decided about it; those who wait for a node want to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedPool {
    /// Its name.
    pub name: Box<str>,
    /// Why it gets none.
    pub why: Unused,
}

/// Why a pool gets no new nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unused {
    /// It is not ready; with what its status says about that.
    NotReady(Option<Box<str>>),
    /// Something in it is wrong; with what.
    Invalid(Box<str>),
    /// It is being deleted.
    Deleting,
    /// Its instance types are not known.
    NoInstanceTypes,
    /// It belongs to another provider; with the group and kind of its NodeClass.
    OtherProvider(Box<str>),
    /// It has a fixed number of nodes.
    Static,
}

/// A node that exists or is on its way.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, or that of its claim before it registers.
    pub name: Box<str>,
    /// The value of its hostname label.
    pub hostname: ValueId,
    /// Its labels, without the host name.
    pub labels: SetId,
    /// Its taints; those that go away by themselves do not count.
    pub taints: TaintsId,
    /// What pods may use in all, less what they use.
    pub available: Amounts,
    /// The resources it speaks of; others cannot be used up.
    pub resources: Vec<ResourceId>,
    /// What its daemons use already.
    pub daemon_requests: Amounts,
    /// Whether it is ready for pods.
    pub initialized: bool,
    /// Whether pods may be placed on it: it is not being deleted.
    pub open: bool,
    /// Whether pods that run elsewhere may be moved to it to save money.
    pub takes_moved: bool,
    /// What its Node object says, if there is one; running pods are counted by that.
    pub object: Option<NodeObject>,
    /// Host ports in use.
    pub ports: Vec<HostPort>,
    /// Volumes attached.
    pub volumes: Vec<Volume>,
    /// How many volumes of a driver it can attach.
    pub volume_limits: Vec<(DriverId, u32)>,
    /// What it takes of the limits of its pool, if that has any and gets it back when the node goes.
    pub share: Option<Box<Share>>,
}

/// What a node takes of the limits of its pool.
#[derive(Clone, Debug)]
pub struct Share {
    /// The pool.
    pub pool: PoolId,
    /// What the node has in all, itself as one node included.
    pub amounts: Amounts,
}

/// What a Node object says, which differs from what its claim says until the node is registered and initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeObject {
    /// Its labels, without the host name.
    pub labels: SetId,
    /// All its taints.
    pub taints: TaintsId,
}

/// A volume that a driver attaches. Pods that share it attach it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Volume {
    /// Who attaches it.
    pub driver: DriverId,
    /// Which it is.
    pub claim: VolumeId,
}

/// A port of the host that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The address; absent stands for all.
    pub address: Option<Box<str>>,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Box<str>,
}

impl HostPort {
    /// Whether two pods cannot have both on one host.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address.is_none() || other.address.is_none() || self.address == other.address)
    }
}

/// A pod that is to be placed.
#[derive(Clone, Debug)]
pub struct Pod {
    /// `namespace/name`.
    pub name: Box<str>,
    /// Its UID, which breaks ties.
    pub uid: Box<str>,
    /// When it was created, in seconds.
    pub created: i64,
    /// Its shape.
    pub class: ClassId,
    /// Where it runs, if it is to be placed only when its node goes.
    pub runs: Option<Runs>,
    /// The node it was nominated for by an earlier plan; that is where it goes if it still can.
    pub nominated: Option<NodeId>,
}

/// Where a pod runs that would have to be placed if its node went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The node.
    pub on: NodeId,
    /// Whether it is one of the [`Running`]; one that terminates is not.
    pub counted: bool,
    /// Whether something keeps it from being evicted.
    pub blocked: bool,
}

/// Everything about a pod that matters to where it can run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct PodClass {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its labels.
    pub labels: LabelsId,
    /// What it asks for, itself as one pod included.
    pub requests: Amounts,
    /// Taints it can live with.
    pub tolerations: TolerationsId,
    /// Labels its node must have.
    pub node_selector: SetId,
    /// Alternatives, one of which its node must satisfy; none at all if there is no such rule.
    pub required_terms: Vec<SetId>,
    /// What it would like its node to satisfy, with weights.
    pub preferred_terms: Vec<(i32, SetId)>,
    /// How its like shall be spread.
    pub spreads: Vec<Spread>,
    /// Pods it must be near.
    pub affinities: Vec<PodTerm>,
    /// Pods it would like to be near, with weights.
    pub preferred_affinities: Vec<(i32, PodTerm)>,
    /// Pods it must be away from.
    pub anti_affinities: Vec<PodTerm>,
    /// Pods it would like to be away from, with weights.
    pub preferred_anti_affinities: Vec<(i32, PodTerm)>,
    /// Ports of the host it uses.
    pub ports: Vec<HostPort>,
    /// Alternatives for where its volumes can be attached, one of which its node must satisfy.
    pub volume_terms: Vec<SetId>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Whether it asks for devices that are allocated dynamically.
    pub needs_devices: bool,
}

/// How pods are spread over the values of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    /// The label.
    pub key: KeyId,
    /// How much fuller than the emptiest domain another may be.
    pub max_skew: i32,
    /// How many domains there must be before any counts as emptiest.
    pub min_domains: Option<i32>,
    /// Whether it is only a wish.
    pub optional: bool,
    /// Which pods count.
    pub selector: Option<Selector>,
    /// Whether only nodes count that the pod's own node rules accept.
    pub honor_affinity: bool,
    /// Whether only nodes count whose taints the pod tolerates.
    pub honor_taints: bool,
}

/// Pods of some namespaces, by their labels, seen through a topology label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// The label whose values are the domains.
    pub key: KeyId,
    /// The namespaces, sorted.
    pub namespaces: Vec<NamespaceId>,
    /// Which pods.
    pub selector: Option<Selector>,
}

/// Which labels are selected; all expressions must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Selector {
    /// Sorted.
    pub expressions: Vec<Expression>,
}

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expression {
    /// The label.
    pub key: KeyId,
    /// What its value must be.
    pub test: Test,
}

/// What a label's value must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// One of these, sorted.
    In(Vec<ValueId>),
    /// None of these, sorted, or absent.
    NotIn(Vec<ValueId>),
    /// Anything.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl Selector {
    /// Whether labels, sorted by key, are selected.
    pub fn matches(&self, labels: &[(KeyId, ValueId)]) -> bool {
        self.expressions.iter().all(|expression| {
            let position = labels.binary_search_by_key(&expression.key, |(key, _)| *key);
            let value = position.ok().map(|position| labels[position].1);
            match &expression.test {
                Test::In(values) => value.is_some_and(|value| values.contains(&value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(&value)),
                Test::Exists => value.is_some(),
                Test::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// Pods of one kind that run on one node.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// Where.
    pub node: NodeId,
    /// Their namespace.
    pub namespace: NamespaceId,
    /// Their labels.
    pub labels: LabelsId,
    /// How many.
    pub count: i32,
}

/// A pod on a node that keeps others away.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Where it runs.
    pub node: NodeId,
    /// Taints it can live with.
    pub tolerations: TolerationsId,
    /// Whom it keeps away, and how far.
    pub terms: Vec<PodTerm>,
}

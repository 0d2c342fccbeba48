//! Nodes that could be disrupted, and what keeps the others from it. Entry: [`find`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::HasConditions;
use api::names::annotations::DO_NOT_DISRUPT;
use api::names::conditions::node_claim::{CONSOLIDATABLE, INITIALIZED};
use api::names::{events, labels};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use cluster::consolidate_after::quiet_at;
use cluster::costs::{self, Costs};
use cluster::do_not_disrupt::DoNotDisrupt;
use cluster::eligibility::is_active;
use cluster::instance_types::InstanceType;
use cluster::load::Load;
use cluster::objects::{Node, Pod};
use cluster::pod_disruption_budgets::Budgets;
use cluster::state::{Key, Kind, State};
use cluster::state_node::StateNode;
use jiff::Timestamp;
use runtime::events::About;
use units::GoDuration;

use super::Class;
use super::decision::Notice;
use super::objection::{counts, objection};
use super::repair::Repaired;
use super::stay::{Kept, Stay};
use crate::catalogue::Types;
use crate::text::sentence;
use crate::threads::in_parallel;

/// What users are told of a node that others rely on.
const RELIED_ON: &str = "node is to take pods of nodes that are being disrupted";
/// So many nodes keep a core busy for long enough to be worth one.
const NODES_PER_THREAD: usize = 256;

/// A node that could be disrupted.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The node.
    pub(crate) node: Arc<Node>,
    /// Its claim.
    pub(crate) claim: Arc<NodeClaim>,
    /// Its pool.
    pub(crate) pool: Arc<NodePool>,
    /// The instance behind it.
    pub(crate) provider_id: Box<str>,
    /// Pods that must go elsewhere; shared, because every method gets its own candidates.
    pub(crate) pods: Arc<[Arc<Pod>]>,
    /// What moving these pods costs, the node itself included.
    pub(crate) cost: f64,
    /// What the node costs per hour; zero if nobody knows.
    pub(crate) price: f64,
    /// What disrupting the node costs with all its pods, the less the sooner it expires anyway.
    pub(crate) disruption_cost: f64,
    /// Whether it is known what its instance type has and costs.
    pub(crate) type_known: bool,
    /// Whether the node is ready for pods.
    pub(crate) initialized: bool,
    /// What its pods have against it, if the method does not let them.
    pub(crate) blocked: Option<String>,
    /// How long its pods have at most once it is deleted; as its claim says if absent.
    pub(crate) drain_bound: Option<GoDuration>,
    /// Why it is repaired, if it is.
    pub(crate) repaired: Option<Arc<Repaired>>,
    /// When it was looked at.
    pub(crate) seen: Timestamp,
}

impl Candidate {
    /// The name of the node.
    pub(crate) fn name(&self) -> &str {
        &self.node.metadata.name
    }

    /// The name of the pool.
    pub(crate) fn pool_name(&self) -> &str {
        self.pool.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether no pod is worth moving.
    pub(crate) fn is_empty(&self) -> bool {
        costs::is_empty(self.cost)
    }

    /// How much is saved for what it costs.
    pub(crate) fn savings_ratio(&self) -> f64 {
        costs::savings_ratio(self.price, self.cost)
    }

    /// Whether the node has been quiet for as long as its pool asks; if not, until when.
    pub(crate) fn check_quiet(&self) -> Result<(), Stay> {
        if self.claim.is_true(CONSOLIDATABLE) {
            return Ok(());
        }
        let until = self.claim.is_true(INITIALIZED).then(|| quiet_at(&self.pool, &self.claim)).flatten();
        Err(Stay::NotQuiet(Arc::clone(&self.pool), until))
    }

    /// A label of the node.
    pub(crate) fn label(&self, key: &str) -> &str {
        self.node.metadata.labels.text(key)
    }

    /// What users are told of the node and of its claim. `repeats` is what it is not repeated for.
    pub(crate) fn notices(&self, event: &'static events::Event, message: &str, repeats: &str) -> [Notice; 2] {
        [About::object(&*self.node), About::object(&*self.claim)].map(|about| Notice {
            event,
            about,
            message: message.to_owned(),
            repeats: repeats.to_owned(),
        })
    }

    /// What users are told who wonder why the node stays. Another reason is news.
    pub(crate) fn blocked_notices(&self, message: &str) -> [Notice; 2] {
        self.notices(&events::DISRUPTION_BLOCKED, message, message)
    }
}

/// Sorts candidates so that those come first that save most for what they cost; then names decide.
pub(crate) fn by_savings(candidates: &mut [Candidate]) {
    candidates
        .sort_by(|a, b| b.savings_ratio().total_cmp(&a.savings_ratio()).then_with(|| a.name().cmp(b.name())));
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Nodes that could be disrupted, initialised ones first, then by name.
    pub(crate) candidates: Vec<Candidate>,
    /// What users are to be told.
    pub(crate) notices: Vec<Notice>,
    /// Nodes of claims that are no candidates, and why.
    pub(crate) stays: Vec<Kept>,
}

impl Found {
    /// What was found before, and what was found afterwards.
    fn and(mut self, mut more: Self) -> Self {
        self.candidates.append(&mut more.candidates);
        self.notices.append(&mut more.notices);
        self.stays.append(&mut more.stays);
        self
    }

    fn keep(&mut self, node: &StateNode<'_>, blocked: &Blocked, search: Search<'_>) {
        if !blocked.told && node.claim.is_none() {
            return;
        }
        let message = sentence(&blocked.why);
        if blocked.told {
            self.notices.extend(notices(node, &message));
        }
        let Some(claim) = node.claim else { return };
        let of_claim = || claim.metadata.name.as_deref().unwrap_or_default();
        let name = node.node.map_or_else(of_claim, |node| &*node.metadata.name).into();
        let is_taken = blocked.why == RELIED_ON || search.queued.contains(node.provider_id());
        let why = if is_taken { Stay::Taken } else { Stay::Blocked(message) };
        self.stays.push(Kept { node: name, why });
    }
}

/// Why a node cannot be disrupted.
#[derive(Debug)]
struct Blocked {
    why: String,
    /// Whether its pods are why, which does not count where they have only so much time.
    by_pods: bool,
    /// Whether users are told.
    told: bool,
}

impl Blocked {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), by_pods: false, told: true }
    }

    fn silently(why: &str) -> Self {
        Self { told: false, ..Self::new(why) }
    }

    fn by_pods(why: String) -> Self {
        Self { by_pods: true, ..Self::new(why) }
    }
}

/// How candidates are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    /// What every pool can choose from.
    pub(crate) types: &'a Types,
    /// Instances that are being disrupted already.
    pub(crate) queued: &'a BTreeSet<Box<str>>,
    /// Instances that are to take pods of those.
    pub(crate) relied_on: &'a BTreeSet<Box<str>>,
    /// Whether pods that block count.
    pub(crate) class: Class,
    /// What pods cost.
    pub(crate) costs: Costs,
    /// One time for all.
    pub(crate) now: Timestamp,
}

/// Finds the nodes that could be disrupted.
pub(crate) fn find(state: &State, search: Search<'_>) -> Found {
    find_among(&state.state_nodes(), state, search)
}

/// Finds which of some nodes could be disrupted.
pub(super) fn find_among<'n, 's: 'n>(
    nodes: impl IntoIterator<Item = &'n StateNode<'s>>,
    state: &State,
    search: Search<'_>,
) -> Found {
    let nodes: Vec<&StateNode<'s>> = nodes.into_iter().collect();
    let budgets = Budgets::new(state.pod_disruption_budgets.values().map(Arc::as_ref));
    let found = in_parallel(&nodes, NODES_PER_THREAD, |share| {
        let mut found = Found::default();
        let mut kinds = Kinds::default();
        for node in share {
            match candidate(state, node, &budgets, search, &mut kinds, &mut found.notices) {
                Ok(candidate) => found.candidates.push(candidate),
                Err(blocked) => found.keep(node, &blocked, search),
            }
        }
        found
    });
    found.into_iter().reduce(Found::and).unwrap_or_default()
}

fn notices(node: &StateNode<'_>, message: &str) -> impl Iterator<Item = Notice> {
    let about = [node.node.map(About::object), node.claim.map(About::object)];
    about.into_iter().flatten().map(|about| Notice {
        event: &events::DISRUPTION_BLOCKED,
        about,
        message: message.to_owned(),
        // Another reason is news.
        repeats: message.to_owned(),
    })
}

/// Instance types that were looked up before, by pool and name: lists are long, and nodes have few of them.
type Kinds<'a> = BTreeMap<(Box<str>, Box<str>), Option<&'a InstanceType>>;

fn candidate<'a>(
    state: &State,
    node: &StateNode<'_>,
    budgets: &Budgets<'_>,
    search: Search<'a>,
    kinds: &mut Kinds<'a>,
    notices: &mut Vec<Notice>,
) -> Result<Candidate, Blocked> {
    check_node(node, search)?;
    let (Some(object), Some(claim)) = (find_node(state, node), find_claim(state, node)) else {
        return Err(Blocked::silently("candidate is gone"));
    };
    let name = node.pool();
    let pool = state.node_pools.named(name).map(Arc::clone);
    // What a broken node is like does not matter to those who repair it.
    let unknown = (search.class == Class::Repair).then_some(&[][..]);
    let types = search.types.get(name).map(AsRef::as_ref).or(unknown);
    let Some((pool, types)) = pool.zip(types) else {
        let why = state.why_unreadable(Kind::NodePool, &Key::cluster(name));
        return Err(Blocked::new(why.map_or_else(
            || format!("NodePool not found (NodePool={name})"),
            |why| format!("NodePool {name:?} cannot be read: {why}"),
        )));
    };
    let load = state.load_of(&object.metadata.name, search.costs);
    // Nobody moves a pod that is done or has been told to stop.
    let asking = load.speaking.iter().filter(|pod| is_active(pod));
    notices.extend(asking.filter_map(|pod| protection_notice(pod, search.now)));
    let mut stopped = None;
    if let Err(blocked) = check_pods(state, &object, &load, budgets, search.now) {
        let counts = counts(search.class, claim.spec.termination_grace_period.is_some());
        if counts || !blocked.by_pods {
            return Err(blocked);
        }
        stopped = Some(blocked.why);
    }
    let wanted = node.label(labels::INSTANCE_TYPE);
    let kind = *kinds
        .entry((name.into(), wanted.into()))
        .or_insert_with(|| types.iter().find(|it| it.name == wanted));
    Ok(Candidate {
        provider_id: node.provider_id().into(),
        cost: load.moving,
        price: kind.map_or(0.0, |kind| costs::price(node, std::slice::from_ref(kind))),
        disruption_cost: load.evicting * costs::lifetime_remaining(&claim, search.now),
        type_known: kind.is_some(),
        initialized: node.is_initialized(),
        blocked: stopped,
        drain_bound: None,
        repaired: None,
        seen: search.now,
        node: object,
        claim,
        pool,
        pods: Arc::clone(&load.moved),
    })
}

fn find_node(state: &State, node: &StateNode<'_>) -> Option<Arc<Node>> {
    state.nodes.named(&node.node?.metadata.name).map(Arc::clone)
}

fn find_claim(state: &State, node: &StateNode<'_>) -> Option<Arc<NodeClaim>> {
    state.node_claims.named(node.claim?.metadata.name.as_deref()?).map(Arc::clone)
}

/// What the node itself says. The first thing that is wrong counts.
fn check_node(node: &StateNode<'_>, search: Search<'_>) -> Result<(), Blocked> {
    if search.queued.contains(node.provider_id()) {
        return Err(Blocked::silently("candidate is already being disrupted"));
    }
    if node.claim.is_none() {
        return Err(Blocked::silently("node isn't managed by karpenter"));
    }
    let repairs = search.class == Class::Repair;
    if repairs && node.node.is_some() && node.pool().is_empty() {
        return Err(Blocked::silently(
            "repair requires a NodePool to construct and budget a safe replacement",
        ));
    }
    let why = if node.node.is_none() {
        "nodeclaim does not have an associated node"
    } else if node.is_rebooting() {
        "node is rebooting"
    } else if node.is_marked_for_deletion() {
        "node is deleting or marked for deletion"
    } else if !node.is_initialized() && !node.is_registered() {
        "node isn't initialized nor registered"
    } else if !node.is_initialized() && repairs {
        // It may be broken because it is not; nobody expects pods on it.
        return Ok(());
    } else if !node.is_initialized() {
        "node isn't initialized"
    } else if node.is_nominated(search.now) {
        "node is nominated for a pending pod"
    } else if search.relied_on.contains(node.provider_id()) && !repairs {
        RELIED_ON
    } else if node.is_protected() && !repairs {
        return Err(Blocked::new(format!("disruption is blocked through the {DO_NOT_DISRUPT:?} annotation")));
    } else if node.pool().is_empty() {
        return Err(Blocked::new(format!("node doesn't have required label (label={})", labels::NODEPOOL)));
    } else {
        return Ok(());
    };
    Err(Blocked::new(why))
}

/// What the pods of the node say.
fn check_pods(
    state: &State,
    node: &Node,
    load: &Load,
    budgets: &Budgets<'_>,
    now: Timestamp,
) -> Result<(), Blocked> {
    let pods = state.pods_on(&node.metadata.name);
    objection(&pods, &load.speaking, budgets, now).map_or(Ok(()), |it| Err(Blocked::by_pods(it.why)))
}

/// What users are told about the protection of a pod.
fn protection_notice(pod: &Pod, now: Timestamp) -> Option<Notice> {
    let told = DoNotDisrupt::of(pod, now).notice()?;
    let repeats = told.message.clone();
    Some(Notice { event: told.event, about: About::object(pod), message: told.message, repeats })
}

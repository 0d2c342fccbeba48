//! Learns from Nodes how much memory instance types really have. Nothing is written down: after a start, it is
//! learned again from the Nodes that are there.

use std::sync::Arc;

use api::labels::LabelSets;
use api::names::{labels, resources};
use api::nodeclaim::NodeClaim;
use cluster::objects::Node;
use cluster::state::{Change, Key, Object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use units::Quantity;

use crate::instance_type::memory::{images_key, is_telling};
use crate::node_class::Class;
use crate::provider::Inner;

/// What a Node teaches.
#[derive(Clone, Debug, PartialEq)]
struct Lesson {
    instance_type: String,
    images: String,
    memory: Quantity,
}

fn is_registered(node: &Node) -> bool {
    node.metadata.labels.text(labels::REGISTERED) == "true"
}

/// What a Node teaches; nothing unless it runs the image that nodes of its type get today.
fn decide(node: &Node, claim: &NodeClaim, class: &Class<'_>, sets: &LabelSets) -> Option<Lesson> {
    let memory = node.status.capacity.get(resources::MEMORY).copied()?;
    let instance_type = node.metadata.labels.text(labels::INSTANCE_TYPE);
    let image = &claim.status.as_ref()?.image_id;
    if !is_registered(node) || instance_type.is_empty() || memory.is_zero() {
        return None;
    }
    let all = node.metadata.labels.iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect();
    is_telling(class, &all, image, sets).then(|| Lesson {
        instance_type: instance_type.to_owned(),
        images: images_key(&class.status.amis),
        memory,
    })
}

/// The Node to look at after a change: one that has registered, or has another amount of memory.
pub(super) fn touched(change: &Change) -> Option<Key> {
    let node = |object: &Option<Object>| match object {
        Some(Object::Node(node)) if is_registered(node) => Some(Arc::clone(node)),
        _ => None,
    };
    let new = node(&change.new)?;
    let memory = |node: &Node| node.status.capacity.get(resources::MEMORY).copied();
    let is_news = node(&change.old).is_none_or(|old| memory(&old) != memory(&new));
    is_news.then(|| change.key())
}

/// Learns the memory of instance types.
pub(super) struct Memory(pub(super) Arc<Inner>);

impl Memory {
    fn learn(&self, key: &Key) {
        let Self(inner) = self;
        let (node, claim) = {
            let state = inner.setup.cluster.read();
            let Some(node) = state.nodes.get(key).cloned() else { return };
            let Some(claim) = state.claim_of_node(&node).cloned() else { return };
            (node, claim)
        };
        // What is wrong with a class is said by its own condition.
        let Ok(object) = inner.class(&claim.spec.node_class_ref.name) else { return };
        let Ok(class) = Class::new(&object, None, inner.setup.settings.node_class_cel) else { return };
        let Some(lesson) = decide(&node, &claim, &class, &inner.sets) else { return };
        let Lesson { instance_type, images, memory } = &lesson;
        let mut known = inner.known.lock();
        if known.learned().is_news(instance_type, images, *memory) {
            known.change_learned(|all| all.note(instance_type, images, *memory));
            tracing::debug!("instance-type" = instance_type, memory = %memory, "updating discovered capacity cache");
        }
    }
}

impl Reconcile for Memory {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            self.learn(key);
            Ok(Again::No)
        }
        .boxed()
    }
}

//! Learns from Nodes how much memory instance types really have, and writes it on their NodeClass, so that another
//! process need not learn it again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::aws::EC2NodeClass;
use api::labels::LabelSets;
use api::names::annotations::aws::LEARNED_MEMORY;
use api::names::{labels, resources};
use api::nodeclaim::NodeClaim;
use cluster::objects::{Node, NodeClass};
use cluster::state::{Change, Key, Object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use units::Quantity;

use super::failed;
use crate::instance_type::memory::{images_key, is_telling};
use crate::node_class::Class;
use crate::provider::Inner;

/// What keys of NodeClasses have as their namespace, which tells them from Nodes.
const OF_CLASSES: &str = "ec2nodeclasses";
/// How often a NodeClass is written to at most.
const PACE: Duration = Duration::from_secs(10);

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

/// What is written on a NodeClass, so that it outlives the process.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Written {
    /// The images that nodes were started from.
    images: String,
    /// The memory that they had, by instance type.
    memory: BTreeMap<String, Quantity>,
}

/// The Node or NodeClass to look at after a change: a Node that has registered, or has another amount of memory.
pub(super) fn touched(change: &Change) -> Option<Key> {
    if let Some(Object::NodeClass(class)) = &change.new {
        return Some(Key::new(OF_CLASSES, &class.metadata.name));
    }
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
pub(super) struct Memory {
    inner: Arc<Inner>,
    /// When each NodeClass was written to.
    written: Mutex<BTreeMap<String, Instant>>,
}

impl Memory {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, written: Mutex::default() }
    }

    fn note(&self, lesson: &Lesson) {
        let Lesson { instance_type, images, memory } = lesson;
        let mut known = self.inner.known.lock();
        if known.learned().is_news(instance_type, images, *memory) {
            known.change_learned(|all| all.note(instance_type, images, *memory));
            tracing::debug!("instance-type" = instance_type, memory = %memory, "updating discovered capacity cache");
        }
    }

    /// Learns from a Node; the NodeClass that it learned something about.
    fn learn(&self, key: &Key) -> Option<Arc<EC2NodeClass>> {
        let inner = &self.inner;
        let (node, claim) = {
            let state = inner.setup.cluster.read();
            let node = state.nodes.get(key).cloned()?;
            let claim = state.claim_of_node(&node).cloned()?;
            (node, claim)
        };
        // What is wrong with a class is said by its own condition.
        let object = inner.class(&claim.spec.node_class_ref.name).ok()?;
        let class = Class::new(&object, None, inner.setup.settings.node_class_cel).ok()?;
        self.note(&decide(&node, &claim, &class, &inner.sets)?);
        Some(object)
    }

    /// Takes over what another process has learned about the images of a NodeClass.
    fn take_over(&self, name: &str) {
        let Ok(object) = self.inner.class(name) else { return };
        let Some(known) = written(&object) else { return };
        let images = images_of(&object);
        if known.images == images {
            for (instance_type, memory) in known.memory.into_iter().filter(|(_, memory)| !memory.is_zero()) {
                self.note(&Lesson { instance_type, images: images.clone(), memory });
            }
        }
    }

    /// Writes down what is known about the images of a NodeClass; not too often, since others look at it then.
    async fn keep(&self, object: &EC2NodeClass) -> Outcome {
        let images = images_of(object);
        let memory = self.inner.known.lock().learned().of_images(&images);
        let new = Written { images, memory };
        if written(object).as_ref() == Some(&new) {
            return Ok(Again::No);
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        let now = Instant::now();
        let is_early = self.written.lock().get(&name).is_some_and(|at| now.duration_since(*at) < PACE);
        if is_early {
            return Ok(Again::After(PACE));
        }
        let text = serde_json::to_string(&new).map_err(failed)?;
        let change = json!({"metadata": {"annotations": {LEARNED_MEMORY: text}}});
        let written = self.inner.setup.api.patch::<NodeClass>(&Key::cluster(&name), &change).await;
        match written {
            Err(error) if error.is_not_found() => {}
            written => drop(written?),
        }
        self.written.lock().insert(name, now);
        Ok(Again::No)
    }
}

fn images_of(object: &EC2NodeClass) -> String {
    images_key(object.status.as_ref().map_or(&[], |status| &status.amis))
}

/// What is written on a NodeClass. What nobody can read is written again.
fn written(object: &EC2NodeClass) -> Option<Written> {
    let text = object.metadata.annotations.as_ref()?.get(LEARNED_MEMORY)?;
    serde_json::from_str(text).ok()
}

impl Reconcile for Memory {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            if &*key.namespace == OF_CLASSES {
                self.take_over(&key.name);
                return Ok(Again::No);
            }
            match self.learn(key) {
                Some(class) => self.keep(&class).await,
                None => Ok(Again::No),
            }
        }
        .boxed()
    }
}

//! Where to find objects by what they say about others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use api::names::labels;

use super::Change;
use super::kind::{Key, Object};
use crate::costs::Costs;
use crate::load::Load;
use crate::objects::Pod;

/// Keys of objects by what they refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Index(BTreeMap<Box<str>, BTreeSet<Key>>);

impl Index {
    pub(super) fn get(&self, value: &str) -> impl ExactSizeIterator<Item = &Key> + Clone {
        const NONE: &BTreeSet<Key> = &BTreeSet::new();
        self.0.get(value).unwrap_or(NONE).iter()
    }

    fn move_key(&mut self, key: &Key, old: &str, new: &str) {
        if old == new {
            return;
        }
        if let Some(keys) = self.0.get_mut(old) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(old);
            }
        }
        if !new.is_empty() {
            self.0.entry(new.into()).or_default().insert(key.clone());
        }
    }
}

/// Pods by the node they are bound to. The pods themselves are here, because whoever asks for them asks for thousands.
#[derive(Clone, Debug, Default)]
pub(super) struct PodsByNode {
    bound: BTreeMap<Box<str>, Arc<OnNode>>,
    unbound: Pods,
}

type Pods = BTreeMap<Key, Arc<Pod>>;

/// The pods of a node. Clones of the state share them.
#[derive(Clone, Debug, Default)]
struct OnNode {
    pods: Pods,
    /// What they mean, once somebody has asked, with how costs are read.
    load: OnceLock<(Costs, Arc<Load>)>,
}

impl OnNode {
    /// The pods of a node, to change them.
    fn change(this: &mut Arc<Self>) -> &mut Pods {
        let own = Arc::make_mut(this);
        own.load.take();
        &mut own.pods
    }
}

impl PodsByNode {
    pub(super) fn on(&self, node: &str) -> impl ExactSizeIterator<Item = &Arc<Pod>> + Clone {
        const NONE: &Pods = &BTreeMap::new();
        self.bound.get(node).map_or(NONE, |own| &own.pods).values()
    }

    pub(super) fn load(&self, node: &str, costs: Costs) -> Arc<Load> {
        let find = || Arc::new(Load::new(&self.on(node), costs));
        let Some(own) = self.bound.get(node) else { return find() };
        let (read, load) = own.load.get_or_init(|| (costs, find()));
        // A process reads costs in one way only.
        if *read == costs { Arc::clone(load) } else { find() }
    }

    pub(super) fn unbound(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> + Clone {
        self.unbound.values()
    }

    fn apply(&mut self, old: Option<&Object>, new: Option<&Object>) {
        if let Some(Object::Pod(old)) = old {
            let node = &old.spec.node_name;
            let stays = matches!(new, Some(Object::Pod(new)) if new.spec.node_name == *node);
            if node.is_empty() && !stays {
                self.unbound.remove(&key(old));
            } else if let Some(own) = self.bound.get_mut(node).filter(|_| !stays) {
                let pods = OnNode::change(own);
                pods.remove(&key(old));
                if pods.is_empty() {
                    self.bound.remove(node);
                }
            }
        }
        if let Some(Object::Pod(new)) = new {
            let node = &new.spec.node_name;
            let pods = if node.is_empty() {
                &mut self.unbound
            } else {
                OnNode::change(self.bound.entry(node.clone()).or_default())
            };
            pods.insert(key(new), Arc::clone(new));
        }
    }
}

fn key(pod: &Pod) -> Key {
    Key { namespace: pod.metadata.namespace.clone(), name: pod.metadata.name.clone() }
}

/// All indexes.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    pub(super) pods_by_node: PodsByNode,
    pub(super) nodes_by_provider_id: Index,
    pub(super) claims_by_provider_id: Index,
    pub(super) claims_by_pool: Index,
    pub(super) nodes_by_pool: Index,
    pub(super) attachments_by_node: Index,
}

impl Indexes {
    pub(super) fn apply(&mut self, change: &Change) {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        if let Object::Pod(_) = change.object() {
            return self.pods_by_node.apply(old, new);
        }
        let key = change.key();
        let mut index = |index: fn(&mut Self) -> &mut Index, value: fn(&Object) -> &str| {
            let (old, new) = (old.map_or("", value), new.map_or("", value));
            index(self).move_key(&key, old, new);
        };
        index(
            |all| &mut all.nodes_by_provider_id,
            |object| match object {
                Object::Node(node) => &node.spec.provider_id,
                _ => "",
            },
        );
        index(
            |all| &mut all.nodes_by_pool,
            |object| match object {
                Object::Node(node) => node.metadata.labels.text(labels::NODEPOOL),
                _ => "",
            },
        );
        index(
            |all| &mut all.claims_by_provider_id,
            |object| match object {
                Object::NodeClaim(claim) => claim.status.as_ref().map_or("", |status| &status.provider_id),
                _ => "",
            },
        );
        index(
            |all| &mut all.claims_by_pool,
            |object| match object {
                Object::NodeClaim(claim) => {
                    let own = claim.metadata.labels.as_ref().and_then(|own| own.get(labels::NODEPOOL));
                    own.map_or("", |pool| pool)
                }
                _ => "",
            },
        );
        index(
            |all| &mut all.attachments_by_node,
            |object| match object {
                Object::VolumeAttachment(attachment) => &attachment.spec.node_name,
                _ => "",
            },
        );
    }
}

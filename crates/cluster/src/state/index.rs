//! Where to find objects by what they say about others.

use std::collections::{BTreeMap, BTreeSet};

use api::names::labels;

use super::Change;
use super::kind::{Key, Object};

/// Keys of objects by what they refer to.
#[derive(Debug, Default)]
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

/// All indexes.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub(super) pods_by_node: Index,
    pub(super) nodes_by_provider_id: Index,
    pub(super) claims_by_provider_id: Index,
    pub(super) claims_by_pool: Index,
    pub(super) nodes_by_pool: Index,
    pub(super) attachments_by_node: Index,
}

impl Indexes {
    pub(super) fn apply(&mut self, change: &Change) {
        let key = change.key();
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        let mut index = |index: fn(&mut Self) -> &mut Index, value: fn(&Object) -> &str| {
            let (old, new) = (old.map_or("", value), new.map_or("", value));
            index(self).move_key(&key, old, new);
        };
        index(
            |all| &mut all.pods_by_node,
            |object| match object {
                Object::Pod(pod) => &pod.spec.node_name,
                _ => "",
            },
        );
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

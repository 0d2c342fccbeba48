//! What is known of the cluster: one copy of every watched object, with the indexes that controllers need.
//!
//! It is filled from two sides: by watches, and at once by the answers to our own writes, so that no
//! controller decides on a state that lacks its own last write.
//! Resource versions decide which side is newer.

mod consolidation;
mod index;
mod kind;
mod nodes;
mod of_files;
mod pod_records;
mod pools;
mod staleness;
mod store;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use jiff::{SignedDuration, Timestamp};

use crate::costs::Costs;
use crate::load::Load;
use crate::objects::collections::List;
use crate::objects::{Node, Pod, VolumeAttachment};
use crate::shapes::Shapes;
use crate::volumes::Unsupported;
pub use consolidation::Consolidated;
use index::Indexes;
pub use kind::{Key, Kind, Meta, Object, StatefulSet, Stores, Watched};
use nodes::Tracked;
pub use nodes::nomination_window;
pub use pod_records::PodRecord;
pub use pools::PoolClaims;
pub use staleness::Staleness;
pub use store::Store;
pub use sync::{LAUNCH_TIMEOUT, Sync};

/// What a watch says.
#[derive(Debug)]
pub enum Seen {
    /// All objects of a kind are going to be listed again.
    Listing(Kind),
    /// One of the list.
    Listed(Object),
    /// The list is complete, as of this version: what was not on it is gone.
    Synced(Kind, u64),
    /// An object is new or has changed.
    Applied(Object),
    /// An object is gone.
    Deleted(Object),
    /// An object cannot be understood.
    Unreadable(Kind, Key, Unreadable),
}

/// An object that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its UID, if that could be understood.
    pub uid: Box<str>,
    /// Why.
    pub why: String,
}

impl From<&str> for Unreadable {
    /// Nothing but the reason is known.
    fn from(why: &str) -> Self {
        Self { uid: Box::default(), why: why.to_owned() }
    }
}

/// How an object changed; `old` is missing for new ones, `new` for those that are gone.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object as it was.
    pub old: Option<Object>,
    /// The object as it is.
    pub new: Option<Object>,
}

impl Change {
    /// The object as it is, or as it was last.
    pub fn object(&self) -> &Object {
        match (&self.new, &self.old) {
            (Some(object), _) | (None, Some(object)) => object,
            (None, None) => unreachable!("a change has one side at least"),
        }
    }

    /// Where the object is.
    pub fn key(&self) -> Key {
        self.object().key()
    }
}

/// A list that is not complete yet.
#[derive(Clone, Debug, Default)]
struct Listing {
    keys: BTreeSet<Key>,
    /// Objects that are older than what is known of them. They count if the whole list is: then the server has
    /// lost history, as after a restore of etcd.
    older: Vec<Object>,
}

/// Everything known of the cluster. A clone shares the objects and nothing else.
#[derive(Clone, Debug)]
pub struct State {
    provider: Provider,
    stores: Stores,
    indexes: Indexes,
    /// What was seen so far of kinds that are being listed.
    listing: BTreeMap<Kind, Listing>,
    /// Kinds whose watch has failed, so that what is known of them may be old.
    stale: BTreeMap<Kind, Staleness>,
    /// Kinds that have not been listed yet.
    waiting: BTreeSet<Kind>,
    /// The newest version that a watch has delivered.
    newest: BTreeMap<Kind, u64>,
    /// Objects whose deletion the server has accepted, although a watch may still say otherwise.
    doomed: BTreeSet<Box<str>>,
    /// Objects that cannot be understood, and why.
    unreadable: BTreeMap<(Kind, Key), Unreadable>,
    /// What pods have in common.
    shapes: Shapes,
    /// Whether somebody asks what the pods of ReplicaSets and StatefulSets are like.
    keeps_templates: bool,
    /// How long a claim may take to get an instance before nobody waits for it any more.
    launch_timeout: SignedDuration,
    /// Volumes that nodes of the cloud cannot have.
    unsupported_volumes: Arc<Unsupported>,
    /// How each instance looked when its Node or claim last changed.
    tracked: BTreeMap<Box<str>, Tracked>,
    /// Instances that this process has decided to give up.
    marks: BTreeSet<Box<str>>,
    /// Until when pods are expected on instances.
    nominations: BTreeMap<Box<str>, Timestamp>,
    /// Virtual pods of capacity buffers by instance.
    buffer_pods: BTreeMap<Box<str>, u32>,
    /// Claims whose replacement is under way.
    pending_disruption: BTreeSet<Box<str>>,
    /// Claims that are about to be created, by pool.
    reserved: BTreeMap<Box<str>, u64>,
    /// What became of pods that needed a place.
    pod_records: BTreeMap<Key, PodRecord>,
    /// Counts changes after which there may be something to consolidate.
    revision: u64,
}

impl Deref for State {
    type Target = Stores;

    fn deref(&self) -> &Stores {
        &self.stores
    }
}

impl State {
    /// Notes which volumes nodes of the cloud cannot have.
    pub fn set_unsupported_volumes(&mut self, unsupported: Unsupported) {
        self.unsupported_volumes = Arc::new(unsupported);
    }

    /// Volumes that nodes of the cloud cannot have.
    pub fn unsupported_volumes(&self) -> &Unsupported {
        &self.unsupported_volumes
    }

    /// A state that is complete once each of `kinds` has been listed. Without capacity buffers among them, what
    /// only they ask for is not kept.
    pub fn awaiting(provider: Provider, kinds: &[Kind]) -> Self {
        Self {
            provider,
            stores: Stores::default(),
            indexes: Indexes::default(),
            listing: BTreeMap::new(),
            stale: BTreeMap::new(),
            waiting: kinds.iter().copied().collect(),
            newest: BTreeMap::new(),
            doomed: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            shapes: Shapes::default(),
            keeps_templates: kinds.contains(&Kind::CapacityBuffer),
            launch_timeout: LAUNCH_TIMEOUT,
            unsupported_volumes: Arc::default(),
            tracked: BTreeMap::new(),
            marks: BTreeSet::new(),
            nominations: BTreeMap::new(),
            buffer_pods: BTreeMap::new(),
            pending_disruption: BTreeSet::new(),
            reserved: BTreeMap::new(),
            pod_records: BTreeMap::new(),
            revision: 0,
        }
    }

    /// The cloud whose nodes these are.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Whether every kind has been listed once.
    pub fn is_listed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Kinds that have not been listed yet.
    pub fn awaited(&self) -> impl ExactSizeIterator<Item = Kind> {
        self.waiting.iter().copied()
    }

    /// Objects that cannot be understood, and why. They have no part in anything.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = (Kind, &Key, &Unreadable)> {
        self.unreadable.iter().map(|((kind, key), unreadable)| (*kind, key, unreadable))
    }

    /// Why the object of a kind at a key cannot be understood, if so.
    pub fn why_unreadable(&self, kind: Kind, key: &Key) -> Option<&str> {
        self.unreadable.get(&(kind, key.clone())).map(|unreadable| unreadable.why.as_str())
    }

    /// Whether some object of a kind cannot be understood, so that it proves nothing that one is not found.
    pub fn has_unreadable(&self, kind: Kind) -> bool {
        self.unreadable.keys().any(|(known, _)| *known == kind)
    }

    /// The pods of a node.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> + Clone {
        self.indexes.pods_by_node.on(node)
    }

    /// What the pods of a node mean to those who would disrupt it.
    pub fn load_of(&self, node: &str, costs: Costs) -> Arc<Load> {
        self.indexes.pods_by_node.load(node, costs)
    }

    /// The pods that have no node.
    pub fn unbound_pods(&self) -> impl Iterator<Item = &Arc<Pod>> + Clone {
        self.indexes.pods_by_node.unbound()
    }

    /// The nodes of an instance; more than one if something is wrong.
    pub fn nodes_of<'a>(&'a self, provider_id: &str) -> impl Iterator<Item = &'a Arc<Node>> + Clone {
        self.indexes.nodes_by_provider_id.get(provider_id).filter_map(|key| self.stores.nodes.get(key))
    }

    /// The claims of an instance; more than one if something is wrong.
    pub fn claims_of<'a>(&'a self, provider_id: &str) -> impl Iterator<Item = &'a Arc<NodeClaim>> + Clone {
        self.indexes.claims_by_provider_id.get(provider_id).filter_map(|key| self.stores.node_claims.get(key))
    }

    /// The one claim of a node; none if there are several.
    pub fn claim_of_node(&self, node: &Node) -> Option<&Arc<NodeClaim>> {
        let mut claims = self.claims_of(&node.spec.provider_id);
        claims.next().filter(|_| claims.next().is_none())
    }

    /// The one node of a claim; none if there are several.
    pub fn node_of_claim(&self, claim: &NodeClaim) -> Option<&Arc<Node>> {
        let mut nodes = self.nodes_of(claim.status.as_ref().map_or("", |status| &status.provider_id));
        nodes.next().filter(|_| nodes.next().is_none())
    }

    /// The claims of a NodePool.
    pub fn claims_of_pool<'a>(&'a self, pool: &str) -> impl Iterator<Item = &'a Arc<NodeClaim>> + Clone {
        self.indexes.claims_by_pool.get(pool).filter_map(|key| self.stores.node_claims.get(key))
    }

    /// The nodes that bear the label of a NodePool.
    pub fn nodes_of_pool<'a>(&'a self, pool: &str) -> impl Iterator<Item = &'a Arc<Node>> + Clone {
        self.indexes.nodes_by_pool.get(pool).filter_map(|key| self.stores.nodes.get(key))
    }

    /// The volumes that are attached to a node.
    pub fn attachments_of<'a>(
        &'a self,
        node: &str,
    ) -> impl Iterator<Item = &'a Arc<VolumeAttachment>> + Clone {
        self.indexes.attachments_by_node.get(node).filter_map(|key| self.stores.volume_attachments.get(key))
    }

    /// Takes in what a watch says.
    pub fn observe(&mut self, seen: Seen) -> Vec<Change> {
        match seen {
            Seen::Listing(kind) => {
                self.listing.insert(kind, Listing::default());
                Vec::new()
            }
            Seen::Unreadable(kind, key, unreadable) => {
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.keys.insert(key.clone());
                }
                self.unreadable.insert((kind, key.clone()), unreadable);
                self.remove(kind, &key).into_iter().collect()
            }
            Seen::Listed(object) => {
                let is_older = self.is_older(&object);
                if let Some(listing) = self.listing.get_mut(&object.kind()) {
                    listing.keys.insert(object.key());
                    if is_older {
                        listing.older.push(object);
                        return Vec::new();
                    }
                }
                // The version of the list is the newest of its objects at least.
                self.store(object).into_iter().collect()
            }
            Seen::Synced(kind, version) => self.synced(kind, version),
            Seen::Applied(object) => self.apply(object).into_iter().collect(),
            Seen::Deleted(object) => {
                let (kind, key) = (object.kind(), object.key());
                self.reached(kind, object.meta().version());
                let known = self.stores.object(kind, &key);
                let is_same = known.is_some_and(|known| known.meta().uid() == object.meta().uid());
                if is_same { self.remove(kind, &key).into_iter().collect() } else { Vec::new() }
            }
        }
    }

    /// Everything of a kind has been listed, as of a version.
    fn synced(&mut self, kind: Kind, version: u64) -> Vec<Change> {
        self.waiting.remove(&kind);
        self.stale.remove(&kind);
        let Some(Listing { keys, older }) = self.listing.remove(&kind) else { return Vec::new() };
        self.unreadable.retain(|(known, key), _| *known != kind || keys.contains(key));
        let mut changes = Vec::new();
        if version != 0 && version < self.newest.get(&kind).copied().unwrap_or(0) {
            // The server has lost history. What it has now is the truth, however old it looks.
            changes.extend(older.into_iter().map(|object| self.put(object)));
            self.newest.insert(kind, version);
        } else {
            self.reached(kind, version);
        }
        let gone: Vec<_> = self.stores.keys(kind).into_iter().filter(|key| !keys.contains(key)).collect();
        changes.extend(gone.into_iter().filter_map(|key| self.remove(kind, &key)));
        changes
    }

    fn reached(&mut self, kind: Kind, version: u64) {
        let newest = self.newest.entry(kind).or_default();
        *newest = version.max(*newest);
    }

    fn apply(&mut self, object: Object) -> Option<Change> {
        self.reached(object.kind(), object.meta().version());
        self.store(object)
    }

    /// Takes in the answer to one of our own writes.
    ///
    /// The watch of the kind may have delivered it already, even followed by the deletion of the object:
    /// watches deliver in the order of versions, so an answer that is not newer says nothing new.
    pub fn answer(&mut self, object: Object) -> Option<Change> {
        let kind = object.kind();
        if object.meta().version() <= self.newest.get(&kind).copied().unwrap_or(0) {
            return None;
        }
        if let Some(listing) = self.listing.get_mut(&kind) {
            listing.keys.insert(object.key());
        }
        self.store(object)
    }

    /// Notes that the server accepted the deletion of an object.
    pub fn doom(&mut self, kind: Kind, key: &Key, uid: &str, now: Timestamp) -> Option<Change> {
        let known = self.stores.object(kind, key)?;
        if known.meta().uid() != uid || known.meta().is_deleting() {
            return None;
        }
        self.doomed.insert(uid.into());
        Some(self.put(known.deleting(now)))
    }

    /// Notes that the server does not know an object any more; with `uid`, that very one.
    pub fn gone(&mut self, kind: Kind, key: &Key, uid: Option<&str>) -> Option<Change> {
        self.unreadable.remove(&(kind, key.clone()));
        let known = self.stores.object(kind, key)?;
        if uid.is_some_and(|uid| uid != known.meta().uid()) {
            return None;
        }
        self.remove(kind, key)
    }

    /// Whether something newer is known of an object.
    fn is_older(&self, object: &Object) -> bool {
        let version = object.meta().version();
        let known = self.stores.object(object.kind(), &object.key());
        version != 0 && known.is_some_and(|known| version < known.meta().version())
    }

    fn store(&mut self, object: Object) -> Option<Change> {
        let known = self.stores.object(object.kind(), &object.key());
        let (uid, version) = (object.meta().uid(), object.meta().version());
        let is_known = known.as_ref().is_some_and(|known| {
            version != 0 && version == known.meta().version() && known.meta().uid() == uid
        });
        if is_known || self.is_older(&object) {
            return None;
        }
        let is_doomed = self.doomed.contains(uid) && !object.meta().is_deleting();
        match known {
            // The time of the deletion is that of the first notice, until a watch tells the real one.
            Some(known) if is_doomed && known.meta().uid() == uid => {
                let since = known.meta().deleting_since().unwrap_or_default();
                Some(self.put(object.deleting(since)))
            }
            _ => Some(self.put(object)),
        }
    }

    fn put(&mut self, object: Object) -> Change {
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&(object.kind(), object.key()));
        }
        let object = match object {
            Object::Pod(pod) => Object::Pod(self.shapes.note(pod)),
            Object::ReplicaSet(mut set) if !self.keeps_templates => {
                Arc::make_mut(&mut set).spec.template = None;
                Object::ReplicaSet(set)
            }
            Object::StatefulSet(mut set) if !self.keeps_templates => {
                let spec = &mut Arc::make_mut(&mut set).spec;
                (spec.template, spec.volume_claim_templates) = (None, List::default());
                Object::StatefulSet(set)
            }
            Object::ReplicationController(mut set) if !self.keeps_templates => {
                Arc::make_mut(&mut set).spec.template = None;
                Object::ReplicationController(set)
            }
            other => other,
        };
        let old = self.stores.insert(&object);
        let change = Change { old, new: Some(object) };
        self.indexes.apply(&change);
        self.note(&change);
        change
    }

    fn remove(&mut self, kind: Kind, key: &Key) -> Option<Change> {
        let old = self.stores.remove(kind, key)?;
        self.doomed.remove(old.meta().uid());
        let change = Change { old: Some(old), new: None };
        self.indexes.apply(&change);
        self.note(&change);
        Some(change)
    }

    /// Brings what is derived from objects up to date.
    fn note(&mut self, change: &Change) {
        if let Some(Object::Pod(old)) = &change.old {
            self.shapes.release(old);
        }
        match change.object() {
            Object::Node(_) | Object::NodeClaim(_) => self.note_instances(change),
            Object::Pod(_) => self.note_pod(change),
            Object::NodePool(_) => self.note_pool(change),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

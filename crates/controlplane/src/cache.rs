//! What is known of the cluster: one copy of every watched object, with the indexes that controllers need.
//!
//! It is filled from two sides: by watches, and at once by the answers to our own writes, so that no
//! controller decides on a state that lacks its own last write.
//! Resource versions decide which side is newer.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::collections::btree_map::{self, BTreeMap};
use std::net::Ipv4Addr;
use std::ops::{Bound, Deref};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::object::{Key, Kind, Object, Stores, controller, uid, version};
use crate::pod::Pod;

/// The objects of one kind.
#[derive(Debug)]
pub struct Store<K> {
    objects: BTreeMap<Key, Arc<K>>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new() }
    }
}

impl<K> Store<K> {
    /// The object at `key`.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// The object `name` of `namespace`.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Arc<K>> {
        self.objects.get(&Key::new(namespace, name))
    }

    /// All objects, ordered by key.
    pub fn values(&self) -> btree_map::Values<'_, Key, Arc<K>> {
        self.objects.values()
    }

    /// All keys, in order.
    pub fn keys(&self) -> btree_map::Keys<'_, Key, Arc<K>> {
        self.objects.keys()
    }

    /// The objects of a namespace, ordered by name.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Arc<K>)> {
        self.objects
            .range((Bound::Included(Key::new(namespace, "")), Bound::Unbounded))
            .take_while(move |(key, _)| key.namespace == namespace)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn insert(&mut self, key: Key, object: Arc<K>) -> Option<Arc<K>> {
        self.objects.insert(key, object)
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        self.objects.remove(key)
    }
}

/// What a watch says.
#[derive(Debug)]
pub(crate) enum Seen {
    /// All objects of a kind are going to be listed again.
    Listing(Kind),
    /// One of the list.
    Listed(Object),
    /// The list is complete: what was not on it is gone.
    Synced(Kind),
    Applied(Object),
    Deleted(Object),
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
}

/// When a pod was first seen on its node, and its number among all pods ever seen on one.
#[derive(Clone, Debug)]
pub struct BoundPod {
    /// When it was first seen there.
    pub since: Timestamp,
    /// Its number, from which its address is made.
    pub ordinal: u32,
}

/// When a node was first seen, and when it last gave a sign of life.
#[derive(Clone, Debug)]
pub struct NodeSigns {
    /// When the node was first seen.
    pub since: Timestamp,
    /// When its lease or its Ready condition was last seen to be renewed.
    pub alive: Timestamp,
}

/// Everything known of the cluster.
#[derive(Debug, Default)]
pub struct Cache {
    stores: Stores,
    listing: BTreeMap<Kind, BTreeSet<Key>>,
    waiting: BTreeSet<Kind>,
    newest: BTreeMap<Kind, u64>,
    /// Objects whose deletion the server has accepted, although a watch may still say otherwise.
    doomed: BTreeSet<String>,
    by_uid: BTreeMap<String, (Kind, Key)>,
    /// Objects that were seen to go while others still name them as owner.
    dead: BTreeSet<String>,
    by_owner: BTreeMap<String, BTreeSet<(Kind, Key)>>,
    orphans: BTreeSet<(Kind, Key)>,
    pods_by_node: BTreeMap<String, BTreeSet<Key>>,
    pods_by_claim: BTreeMap<Key, BTreeSet<Key>>,
    bound: BTreeMap<Key, BoundPod>,
    next_ordinal: u32,
    signs: BTreeMap<String, NodeSigns>,
    missing_nodes: BTreeMap<String, Timestamp>,
}

impl Deref for Cache {
    type Target = Stores;

    fn deref(&self) -> &Stores {
        &self.stores
    }
}

impl Cache {
    /// A cache that is complete once each of `kinds` has been listed.
    pub(crate) fn awaiting(kinds: &[Kind]) -> Self {
        Self { waiting: kinds.iter().copied().collect(), ..Self::default() }
    }

    /// Whether every kind has been listed once.
    pub fn is_synced(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The pods of a node.
    pub fn pods_on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods_by_node.get(node).into_iter().flatten().filter_map(|key| self.stores.pods.get(key))
    }

    /// The pods that mount a claim.
    pub fn pods_with_claim<'a>(&'a self, claim: &Key) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.pods_by_claim.get(claim).into_iter().flatten().filter_map(|key| self.stores.pods.get(key))
    }

    /// The objects of a kind that name `owner` (a uid) as an owner.
    pub(crate) fn owned<'a>(&'a self, owner: &str, kind: Kind) -> impl Iterator<Item = &'a Key> {
        self.by_owner.get(owner).into_iter().flatten().filter(move |(of, _)| *of == kind).map(|(_, key)| key)
    }

    /// The pods that `owner` (a uid) controls.
    pub fn owned_pods<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.owned(owner, Kind::Pod)
            .filter_map(|key| self.stores.pods.get(key))
            .filter(move |pod| crate::object::controlled_by(&pod.metadata, owner))
    }

    /// How many objects name `owner` (a uid) as an owner.
    pub(crate) fn owned_count(&self, owner: &str) -> usize {
        self.by_owner.get(owner).map_or(0, BTreeSet::len)
    }

    /// All objects that name `owner` (a uid) as an owner.
    pub(crate) fn dependents<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a (Kind, Key)> {
        self.by_owner.get(owner).into_iter().flatten()
    }

    /// The objects of a kind in a namespace that nothing controls.
    pub(crate) fn orphans<'a>(&'a self, kind: Kind, namespace: &'a str) -> impl Iterator<Item = &'a Key> {
        self.orphans
            .range((Bound::Included((kind, Key::new(namespace, ""))), Bound::Unbounded))
            .take_while(move |(of, key)| *of == kind && key.namespace == namespace)
            .map(|(_, key)| key)
    }

    /// The object with this uid.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<Object> {
        let (kind, key) = self.by_uid.get(uid)?;
        self.stores.object(*kind, key)
    }

    /// Whether an owner with this uid was seen to go.
    pub(crate) fn is_dead(&self, uid: &str) -> bool {
        self.dead.contains(uid)
    }

    /// Since when a pod is on its node.
    pub fn bound(&self, pod: &Key) -> Option<&BoundPod> {
        self.bound.get(pod)
    }

    /// When a node was first seen and last alive.
    pub fn signs(&self, node: &str) -> Option<&NodeSigns> {
        self.signs.get(node)
    }

    /// Since when a node that pods are bound to does not exist.
    pub(crate) fn missing_since(&self, node: &str) -> Option<Timestamp> {
        self.missing_nodes.get(node).copied()
    }

    /// Takes in what a watch says.
    pub(crate) fn observe(&mut self, seen: Seen, now: Timestamp) -> Vec<Change> {
        match seen {
            Seen::Listing(kind) => {
                self.listing.insert(kind, BTreeSet::new());
                Vec::new()
            }
            Seen::Listed(object) => {
                if let Some(seen) = self.listing.get_mut(&object.kind()) {
                    seen.insert(object.key());
                }
                self.apply(object, now).into_iter().collect()
            }
            Seen::Synced(kind) => {
                self.waiting.remove(&kind);
                let Some(listed) = self.listing.remove(&kind) else { return Vec::new() };
                let gone: Vec<_> =
                    self.stores.keys(kind).into_iter().filter(|key| !listed.contains(key)).collect();
                gone.into_iter().filter_map(|key| self.remove(kind, &key, now)).collect()
            }
            Seen::Applied(object) => self.apply(object, now).into_iter().collect(),
            Seen::Deleted(object) => {
                let kind = object.kind();
                self.reached(kind, version(object.meta()));
                let key = object.key();
                let same = self
                    .stores
                    .object(kind, &key)
                    .is_some_and(|known| uid(known.meta()) == uid(object.meta()));
                if same { self.remove(kind, &key, now).into_iter().collect() } else { Vec::new() }
            }
        }
    }

    fn reached(&mut self, kind: Kind, version: u64) {
        let newest = self.newest.entry(kind).or_default();
        *newest = version.max(*newest);
    }

    fn apply(&mut self, object: Object, now: Timestamp) -> Option<Change> {
        self.reached(object.kind(), version(object.meta()));
        self.store(object, now)
    }

    /// Takes in the answer to one of our own writes.
    ///
    /// The watch of the kind may have delivered it already, even followed by the deletion of the object:
    /// watches deliver in the order of versions, so an answer that is not newer says nothing new.
    pub(crate) fn answer(&mut self, object: Object, now: Timestamp) -> Option<Change> {
        let kind = object.kind();
        if version(object.meta()) <= self.newest.get(&kind).copied().unwrap_or(0) {
            return None;
        }
        if let Some(listed) = self.listing.get_mut(&kind) {
            listed.insert(object.key());
        }
        self.store(object, now)
    }

    /// Notes that the server accepted the deletion of an object.
    pub(crate) fn doom(&mut self, kind: Kind, key: &Key, of: &str, now: Timestamp) -> Option<Change> {
        let known = self.stores.object(kind, key)?;
        let meta = known.meta();
        if uid(meta) != of || meta.deletion_timestamp.is_some() {
            return None;
        }
        self.doomed.insert(of.to_owned());
        let dying = known.with_meta(|meta| meta.deletion_timestamp = Some(Time(now)));
        Some(self.put(dying, now))
    }

    /// Notes that the server does not know an object any more.
    pub(crate) fn gone(&mut self, kind: Kind, key: &Key, of: Option<&str>, now: Timestamp) -> Option<Change> {
        let known = self.stores.object(kind, key)?;
        if of.is_some_and(|of| of != uid(known.meta())) {
            return None;
        }
        self.remove(kind, key, now)
    }

    fn store(&mut self, object: Object, now: Timestamp) -> Option<Change> {
        let known = self.stores.object(object.kind(), &object.key());
        let replaced = known.as_ref().is_some_and(|known| uid(known.meta()) != uid(object.meta()));
        let stale = known.as_ref().is_some_and(|known| {
            let (old, new) = (version(known.meta()), version(object.meta()));
            new != 0 && (new < old || new == old && !replaced)
        });
        if stale {
            return None;
        }
        let object = if self.doomed.contains(uid(object.meta())) && object.meta().deletion_timestamp.is_none()
        {
            object.with_meta(|meta| meta.deletion_timestamp = Some(Time(now)))
        } else {
            object
        };
        Some(self.put(object, now))
    }

    fn put(&mut self, object: Object, now: Timestamp) -> Change {
        let old = self.stores.insert(object.key(), &object);
        let change = Change { old, new: Some(object) };
        self.index(&change, now);
        change
    }

    fn remove(&mut self, kind: Kind, key: &Key, now: Timestamp) -> Option<Change> {
        let old = self.stores.remove(kind, key)?;
        self.doomed.remove(uid(old.meta()));
        let id = uid(old.meta()).to_owned();
        let change = Change { old: Some(old), new: None };
        self.index(&change, now);
        if self.by_owner.contains_key(&id) {
            self.dead.insert(id);
        }
        Some(change)
    }

    fn index(&mut self, change: &Change, now: Timestamp) {
        if let Some(Object::Lease(_)) = change.new.as_ref().or(change.old.as_ref()) {
            self.index_lease(change, now);
            if change.old.is_some() && change.new.is_some() {
                return;
            }
        }
        if let Some(old) = &change.old {
            let same = change.new.as_ref().is_some_and(|new| same_references(old, new));
            if !same {
                self.forget(old);
            }
        }
        if let Some(new) = &change.new {
            let same = change.old.as_ref().is_some_and(|old| same_references(old, new));
            if !same {
                self.remember(new, now);
            }
        }
        self.index_node(change, now);
    }

    fn forget(&mut self, object: &Object) {
        let (kind, key, meta) = (object.kind(), object.key(), object.meta());
        self.by_uid.remove(uid(meta));
        for owner in meta.owner_references.iter().flatten() {
            forget_in(&mut self.by_owner, &owner.uid, &(kind, key.clone()));
            if !self.by_owner.contains_key(&owner.uid) {
                self.dead.remove(&owner.uid);
            }
        }
        self.orphans.remove(&(kind, key.clone()));
        if let Object::Pod(pod) = object {
            if let Some(node) = node_of(pod) {
                forget_in(&mut self.pods_by_node, node, &key);
                if !self.pods_by_node.contains_key(node) {
                    self.missing_nodes.remove(node);
                }
            }
            for claim in claims_of(pod) {
                forget_in(&mut self.pods_by_claim, &claim, &key);
            }
            self.bound.remove(&key);
        }
    }

    fn remember(&mut self, object: &Object, now: Timestamp) {
        let (kind, key, meta) = (object.kind(), object.key(), object.meta());
        if let Some(uid) = &meta.uid {
            self.by_uid.insert(uid.clone(), (kind, key.clone()));
        }
        for owner in meta.owner_references.iter().flatten() {
            self.by_owner.entry(owner.uid.clone()).or_default().insert((kind, key.clone()));
        }
        let adoptable = matches!(kind, Kind::Pod | Kind::ReplicaSet | Kind::ControllerRevision);
        if adoptable && controller(meta).is_none() {
            self.orphans.insert((kind, key.clone()));
        }
        if let Object::Pod(pod) = object {
            for claim in claims_of(pod) {
                self.pods_by_claim.entry(claim).or_default().insert(key.clone());
            }
            if let Some(node) = node_of(pod) {
                self.pods_by_node.entry(node.to_owned()).or_default().insert(key.clone());
                if self.stores.nodes.get(&Key::cluster(node)).is_none() {
                    self.missing_nodes.entry(node.to_owned()).or_insert(now);
                }
                // Addresses that other processes gave away before are not given away again.
                let taken = pod_address(pod).and_then(ordinal_of);
                let ordinal = taken.unwrap_or(self.next_ordinal);
                self.next_ordinal = self.next_ordinal.max(ordinal.saturating_add(1));
                self.bound.insert(key, BoundPod { since: now, ordinal });
            }
        }
    }

    fn index_node(&mut self, change: &Change, now: Timestamp) {
        let Object::Node(node) = change.object() else { return };
        let name = node.metadata.name.clone().unwrap_or_default();
        if change.new.is_none() {
            self.signs.remove(&name);
            if self.pods_by_node.contains_key(&name) {
                self.missing_nodes.insert(name, now);
            }
            return;
        }
        self.missing_nodes.remove(&name);
        let heartbeat = |object: &Option<Object>| match object {
            Some(Object::Node(node)) => crate::node::ready_heartbeat(node).cloned(),
            _ => None,
        };
        let renewed = heartbeat(&change.new).is_some() && heartbeat(&change.old) != heartbeat(&change.new);
        let signs = self.signs.entry(name).or_insert(NodeSigns { since: now, alive: now });
        if renewed {
            signs.alive = now;
        }
    }

    fn index_lease(&mut self, change: &Change, now: Timestamp) {
        let renewed = |object: &Option<Object>| match object {
            Some(Object::Lease(lease)) => lease.spec.renew_time.clone(),
            _ => None,
        };
        if change.new.is_some() && renewed(&change.old) != renewed(&change.new) {
            let name = change.object().meta().name.as_deref().unwrap_or_default();
            if let Some(signs) = self.signs.get_mut(name) {
                signs.alive = now;
            }
        }
    }
}

fn forget_in<K, Q, V>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &Q, value: &V)
where
    K: Ord + Borrow<Q>,
    Q: Ord + ?Sized,
    V: Ord,
{
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

/// Whether two states of an object appear in the same places of the indexes.
fn same_references(old: &Object, new: &Object) -> bool {
    let (a, b) = (old.meta(), new.meta());
    let pods = match (old, new) {
        (Object::Pod(old), Object::Pod(new)) => node_of(old) == node_of(new),
        _ => true,
    };
    pods && a.uid == b.uid && a.owner_references == b.owner_references
}

/// The node a pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// The claims that a pod mounts, those made for it included.
pub(crate) fn claims_of(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(Key::new(namespace, &claim.claim_name)),
            (None, Some(_)) => Some(Key::new(namespace, &format!("{name}-{}", volume.name))),
            (None, None) => None,
        })
        .collect()
}

fn pod_address(pod: &Pod) -> Option<&str> {
    let host_network = pod.spec.as_ref()?.host_network == Some(true);
    pod.status.as_ref()?.pod_ip.as_deref().filter(|_| !host_network)
}

/// The address of the pod with this number: 10.0.0.1 and on.
pub(crate) fn address(ordinal: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001 + ordinal % 0x00ff_fffe)
}

fn ordinal_of(address: &str) -> Option<u32> {
    let address: Ipv4Addr = address.parse().ok()?;
    u32::from(address).checked_sub(0x0a00_0001).filter(|ordinal| *ordinal < 0x00ff_fffe)
}

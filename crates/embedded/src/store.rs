//! The objects, their history, and who is told about changes.
//!
//! Objects are kept as the bytes that clients get: a list is a concatenation, and an event is encoded once for
//! all its watchers. What selectors ask about is kept beside the bytes.

mod collection;
mod object;
mod recent;
mod watchers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use collection::{Change, Collection};
pub(crate) use object::{Fields, Key, Object, Objects};
pub(crate) use recent::Recent;
pub(crate) use watchers::{Notice, Subscription, WatchId, Watcher, notice};

/// Which collection an object is in; all versions of a resource share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CollectionId(usize);

/// Where an object is.
pub(crate) type Place = (CollectionId, Key);

/// All objects of the cluster.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    history: usize,
    names: BTreeMap<(String, String), CollectionId>,
    collections: Vec<Collection>,
    /// Live objects by UID, for owner references.
    by_uid: BTreeMap<Arc<str>, Place>,
    /// Objects by the UID of an owner they name.
    dependents: BTreeMap<Arc<str>, BTreeSet<Place>>,
    next_watch: u64,
    /// A fingerprint of all changes so far, if somebody wants to compare histories.
    digest: Option<u64>,
}

impl Store {
    /// An empty store that remembers `history` changes of each collection.
    pub(crate) fn new(history: usize) -> Self {
        Self {
            // A cluster is never at revision 0: clients take that for "any".
            revision: 1,
            history: history.max(1),
            names: BTreeMap::new(),
            collections: Vec::new(),
            by_uid: BTreeMap::new(),
            dependents: BTreeMap::new(),
            next_watch: 0,
            digest: None,
        }
    }

    /// Starts to keep a fingerprint of all changes.
    pub(crate) fn keep_digest(&mut self) {
        self.digest = Some(0xcbf2_9ce4_8422_2325);
    }

    /// The fingerprint of all changes since it is kept.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.digest
    }

    fn note(&mut self, id: CollectionId, removed: bool, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            let head = [id.0.to_le_bytes(), usize::from(removed).to_le_bytes()].concat();
            *digest = head
                .iter()
                .chain(bytes)
                .fold(*digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        }
    }

    /// The revision of the latest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The collection of a resource, made on first use.
    pub(crate) fn collection_id(&mut self, group: &str, plural: &str) -> CollectionId {
        let name = (group.to_owned(), plural.to_owned());
        if let Some(id) = self.names.get(&name) {
            return *id;
        }
        let id = CollectionId(self.collections.len());
        self.collections.push(Collection::new());
        self.names.insert(name, id);
        id
    }

    pub(crate) fn collection(&self, id: CollectionId) -> &Collection {
        &self.collections[id.0]
    }

    pub(crate) fn get(&self, id: CollectionId, key: &Key) -> Option<&Arc<Object>> {
        self.collection(id).get(key)
    }

    /// Where the live object with this UID is.
    pub(crate) fn place_of(&self, uid: &str) -> Option<&Place> {
        self.by_uid.get(uid)
    }

    /// The objects that name this UID as an owner.
    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    /// The revision that the next change gets.
    pub(crate) fn next_revision(&self) -> u64 {
        self.revision + 1
    }

    /// Stores an object that carries [`Store::next_revision`] and tells the watchers.
    pub(crate) fn put(&mut self, id: CollectionId, object: Object) -> Arc<Object> {
        debug_assert_eq!(
            object.revision,
            self.next_revision(),
            "an object carries the revision of its write"
        );
        self.revision = object.revision;
        self.note(id, false, object.json.as_bytes());
        let object = Arc::new(object);
        let old = self.get(id, &object.key).cloned();
        let indexed = old.as_ref().is_some_and(|old| old.uid == object.uid && old.owners == object.owners);
        if !indexed {
            if let Some(old) = old {
                self.forget(id, &old);
            }
            let place = (id, object.key.clone());
            self.by_uid.insert(object.uid.clone(), place.clone());
            for owner in &object.owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(place.clone());
            }
        }
        self.collections[id.0].put(object.clone(), self.history);
        object
    }

    /// Removes an object; `last` is its last state with [`Store::next_revision`], which watchers see.
    pub(crate) fn remove(&mut self, id: CollectionId, last: Object) {
        debug_assert_eq!(last.revision, self.next_revision(), "a removal is a change of its own");
        self.revision = last.revision;
        self.note(id, true, last.json.as_bytes());
        let last = Arc::new(last);
        if let Some(old) = self.get(id, &last.key).cloned() {
            self.forget(id, &old);
        }
        self.collections[id.0].remove(last, self.history);
    }

    /// Takes an object out of the indexes.
    fn forget(&mut self, id: CollectionId, object: &Object) {
        self.by_uid.remove(&object.uid);
        let place = (id, object.key.clone());
        for owner in &object.owners {
            if let Some(places) = self.dependents.get_mut(&owner.uid) {
                places.remove(&place);
                if places.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Tells `watcher` about all later changes.
    pub(crate) fn subscribe(&mut self, id: CollectionId, watcher: Watcher) -> WatchId {
        self.next_watch += 1;
        let watch = WatchId { collection: id, number: self.next_watch };
        self.collections[id.0].watchers.add(watch.number, watcher);
        watch
    }

    pub(crate) fn unsubscribe(&mut self, watch: &WatchId) {
        self.collections[watch.collection.0].watchers.remove(watch.number);
    }

    /// Ends all watches.
    pub(crate) fn cut_watches(&mut self) {
        self.collections.iter_mut().for_each(|collection| collection.watchers.clear());
    }

    /// Forgets the history, so that watches and pages from before are refused as expired.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        self.collections.iter_mut().for_each(|collection| collection.compact(revision));
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.by_uid.len()
    }
}

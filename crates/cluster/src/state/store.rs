//! The objects of one kind.

use std::collections::btree_map::{self, BTreeMap};
use std::ops::Bound;
use std::sync::Arc;

use super::kind::Key;

/// The objects of one kind, in the order of their keys.
#[derive(Debug)]
pub struct Store<K>(BTreeMap<Key, Arc<K>>);

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K> Store<K> {
    /// The object at a key.
    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.0.get(key)
    }

    /// The cluster-wide object of a name.
    pub fn named(&self, name: &str) -> Option<&Arc<K>> {
        self.0.get(&Key::cluster(name))
    }

    /// All objects.
    pub fn values(&self) -> btree_map::Values<'_, Key, Arc<K>> {
        self.0.values()
    }

    /// All keys.
    pub fn keys(&self) -> btree_map::Keys<'_, Key, Arc<K>> {
        self.0.keys()
    }

    /// The objects of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        self.0
            .range((Bound::Included(Key::new(namespace, "")), Bound::Unbounded))
            .take_while(move |(key, _)| &*key.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// The namespaces that there are objects in.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        let first = self.0.keys().next();
        std::iter::successors(first, |last| {
            // Nothing sorts between a text and the same with a zero behind it.
            let next = Key::new(&format!("{}\0", last.namespace), "");
            self.0.range(next..).next().map(|(key, _)| key)
        })
        .map(|key| &*key.namespace)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, key: Key, object: Arc<K>) -> Option<Arc<K>> {
        self.0.insert(key, object)
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        self.0.remove(key)
    }
}

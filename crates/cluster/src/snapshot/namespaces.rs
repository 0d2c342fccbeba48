//! The namespaces of a cluster, and which of them a selector means.

use std::collections::BTreeMap;

use super::View;
use crate::objects::collections::Labels;
use crate::objects::selector::LabelSelector;

/// The label that every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// The namespaces of a cluster with their labels.
pub(super) struct Namespaces<'a>(BTreeMap<&'a str, Known<'a>>);

enum Known<'a> {
    /// The object is there.
    Object(&'a Labels),
    /// Only pods are there; every namespace has a label with its name.
    Named(Labels),
}

impl<'a> Namespaces<'a> {
    pub(super) fn new(view: &View<'a>) -> Self {
        let mut all: BTreeMap<&str, Known<'_>> = view
            .namespaces
            .iter()
            .map(|namespace| (&*namespace.metadata.name, Known::Object(&namespace.metadata.labels)))
            .collect();
        for name in view.pod_namespaces() {
            if !all.contains_key(name) {
                all.insert(name, Known::Named([(NAME, name.into())].into_iter().collect()));
            }
        }
        Self(all)
    }

    /// All namespaces, with their labels where they are known.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, Option<&'a Labels>)> {
        self.0.iter().map(|(name, known)| match known {
            Known::Object(labels) => (*name, Some(*labels)),
            Known::Named(_) => (*name, None),
        })
    }

    /// The names of those that a selector means.
    pub(super) fn selected(&self, selector: &LabelSelector) -> Vec<&'a str> {
        let selected = self.0.iter().filter(|(_, known)| {
            selector.matches(match known {
                Known::Object(labels) => labels,
                Known::Named(labels) => labels,
            })
        });
        selected.map(|(name, _)| *name).collect()
    }
}

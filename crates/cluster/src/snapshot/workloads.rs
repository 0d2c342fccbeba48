//! Which pods belong together, for constraints that the scheduler gives to pods without any. Entry: [`Workloads`].

use std::collections::BTreeMap;

use super::View;
use crate::objects::collections::{Labels, Map};
use crate::objects::selector::{LabelExpression, LabelSelector};
use crate::objects::{Pod, ReplicaSet};

/// Services and the controllers of pods.
pub(super) struct Workloads<'a> {
    services: BTreeMap<&'a str, Vec<&'a Labels>>,
    replication_controllers: BTreeMap<(&'a str, &'a str), &'a Labels>,
    replica_sets: BTreeMap<(&'a str, &'a str), &'a LabelSelector>,
    stateful_sets: BTreeMap<(&'a str, &'a str), &'a LabelSelector>,
}

impl<'a> Workloads<'a> {
    pub(super) fn new(view: &View<'a>) -> Self {
        let mut services = BTreeMap::<_, Vec<_>>::new();
        for service in view.services.iter().copied() {
            if let Some(selector) = &service.spec.selector {
                services.entry(service.metadata.namespace()).or_default().push(selector);
            }
        }
        let controllers = view.replication_controllers.iter().copied();
        Self {
            services,
            replication_controllers: controllers
                .map(|c| ((c.metadata.namespace(), &*c.metadata.name), &c.spec.selector))
                .collect(),
            replica_sets: selectors(&view.replica_sets),
            stateful_sets: selectors(&view.stateful_sets),
        }
    }

    /// The selector that kube-scheduler would deduce for a pod: what its services select, and its controller.
    pub(super) fn selector(&self, pod: &Pod) -> Option<LabelSelector> {
        let namespace = pod.metadata.namespace();
        let mut labels: BTreeMap<&str, &str> = BTreeMap::new();
        for selector in self.services.get(namespace).into_iter().flatten() {
            if selector.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value)) {
                labels.extend(selector.iter().map(|(key, value)| (key, &**value)));
            }
        }
        let mut expressions = Vec::new();
        if let Some(owner) = pod.metadata.controller() {
            let key = (namespace, &*owner.name);
            let set = match (&*owner.api_version, &*owner.kind) {
                ("v1", "ReplicationController") => {
                    let selector = self.replication_controllers.get(&key).into_iter();
                    labels.extend(selector.flat_map(|labels| labels.iter()).map(|(k, v)| (k, &**v)));
                    None
                }
                ("apps/v1", "ReplicaSet") => self.replica_sets.get(&key),
                ("apps/v1", "StatefulSet") => self.stateful_sets.get(&key),
                _ => None,
            };
            expressions.extend(set.into_iter().flat_map(|selector| as_expressions(selector)));
        }
        if labels.is_empty() && expressions.is_empty() {
            return None;
        }
        let match_labels: Map<Box<str>> = labels.into_iter().map(|(k, v)| (k, v.into())).collect();
        Some(LabelSelector { match_labels, match_expressions: expressions.into_iter().collect() })
    }
}

fn selectors<'a>(sets: &[&'a ReplicaSet]) -> BTreeMap<(&'a str, &'a str), &'a LabelSelector> {
    let sets = sets.iter().copied().filter_map(|set| {
        Some(((set.metadata.namespace(), &*set.metadata.name), set.spec.selector.as_ref()?))
    });
    sets.collect()
}

fn as_expressions(selector: &LabelSelector) -> impl Iterator<Item = LabelExpression> {
    let labels = selector.match_labels.iter().map(|(key, value)| LabelExpression {
        key: key.into(),
        operator: "In".into(),
        values: [value.clone()].into_iter().collect(),
    });
    labels.chain(selector.match_expressions.iter().cloned())
}

//! Namespaces: what every one starts with, and emptying those that go.

use std::sync::Arc;

use serde_json::json;

use crate::action::{Action, Outcome};
use crate::cache::Cache;
use crate::names;
use crate::object::{Key, Kind};

pub(crate) fn decide(cache: &Cache, key: &Key, root_ca: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(namespace) = cache.namespaces.get(key) else { return outcome };
    let name = &key.name;
    if namespace.metadata.deletion_timestamp.is_some() {
        let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
        if finalizers.into_iter().flatten().any(|finalizer| finalizer == "kubernetes") {
            outcome.actions.push(Action::EmptyNamespace(name.clone()));
        }
        return outcome;
    }
    if cache.service_accounts.find(name, "default").is_none() {
        let body = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name},
        });
        outcome.create(Kind::ServiceAccount, name, &Arc::new(body));
    }
    if cache.config_maps.find(name, names::ROOT_CA).is_none() {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": names::ROOT_CA, "namespace": name,
                "annotations": {"kubernetes.io/description":
                    "The certificates by which pods in this namespace recognise the API server."},
            },
            "data": {"ca.crt": root_ca},
        });
        outcome.create(Kind::ConfigMap, name, &Arc::new(body));
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, at};

    #[test]
    fn a_new_namespace_gets_its_account_and_the_authority() {
        let world = World::of(&["{apiVersion: v1, kind: Namespace, metadata: {name: a}}"]);
        let outcome = decide(&world.cache, &Key::cluster("a"), "PEM");
        assert_eq!(
            world.say(&outcome),
            ["create ServiceAccount a/default", "create ConfigMap a/kube-root-ca.crt"]
        );
        let _ = at(0);
    }

    #[test]
    fn a_terminating_namespace_is_emptied_and_gets_nothing_new() {
        let world = World::of(&["
            apiVersion: v1
            kind: Namespace
            metadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}
            spec: {finalizers: [kubernetes]}
        "]);
        let outcome = decide(&world.cache, &Key::cluster("a"), "PEM");
        assert_eq!(outcome.actions, [Action::EmptyNamespace("a".to_owned())]);
    }
}

//! The numbered pods of a StatefulSet and their claims.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::json;

use super::{COMPONENT, Look, revision_of};
use crate::action::Outcome;
use crate::names;
use crate::object::Kind;
use crate::pod::{Pod, is_active};
use crate::replicaset::count;
use crate::template;

/// The number in the name of a pod of the set.
pub(super) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let number = name.strip_prefix(set.metadata.name.as_deref()?)?.strip_prefix('-')?;
    number.parse().ok().filter(|number| *number >= 0)
}

impl Look<'_> {
    /// Whether the pod with this number still gets the template from before the update.
    fn is_held_back(&self, ordinal: i32) -> bool {
        if self.current == self.revisions.update {
            return false;
        }
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return false;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        if let Some(partition) =
            rolling.and_then(|rolling| rolling.partition).filter(|partition| *partition > 0)
        {
            ordinal < self.start().max(partition)
        } else {
            let current =
                self.pods.values().filter(|pod| is_active(pod) && revision_of(pod) == Some(&self.current));
            ordinal < self.start() + count(current.count())
        }
    }

    /// Creates the pod with this number, after the claims that it lacks; those that exist are refused again
    /// by the server at most, and stay as they are.
    pub(super) fn create(&self, ordinal: i32, outcome: &mut Outcome) {
        let meta = &self.set.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let set = meta.name.as_deref().unwrap_or_default();
        let name = format!("{set}-{ordinal}");
        let old = self.is_held_back(ordinal).then(|| self.revisions.template(&self.current)).flatten();
        let (template, revision) = match &old {
            Some(template) => (template, self.current.as_str()),
            None => (&self.spec.template, self.revisions.update.as_str()),
        };
        let mut pod = template::pod(template, Kind::StatefulSet, meta);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["labels"][names::CONTROLLER_REVISION_HASH] = json!(revision);
        pod["metadata"]["labels"][names::STATEFULSET_POD] = json!(name);
        pod["metadata"]["labels"][names::POD_INDEX] = json!(ordinal.to_string());
        pod["spec"]["hostname"] = json!(name);
        if let Some(service) = self.spec.service_name.as_ref().filter(|service| !service.is_empty()) {
            pod["spec"]["subdomain"] = json!(service);
        }
        self.add_claims(&name, &mut pod, outcome);
        outcome.create(Kind::Pod, namespace, &Arc::new(pod));
        let message = format!("create Pod {name} in StatefulSet {set} successful");
        outcome.note((Kind::StatefulSet, meta), COMPONENT, "SuccessfulCreate", message);
    }

    fn add_claims(&self, pod_name: &str, pod: &mut serde_json::Value, outcome: &mut Outcome) {
        let namespace = self.set.metadata.namespace.as_deref().unwrap_or_default();
        let mut volumes: Vec<_> = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        for template in self.spec.volume_claim_templates.iter().flatten() {
            let volume = template.metadata.name.as_deref().unwrap_or_default();
            let claim = format!("{volume}-{pod_name}");
            volumes.retain(|other| other["name"] != volume);
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
            if self.claims.find(namespace, &claim).is_some() {
                continue;
            }
            let mut labels = json!(template.metadata.labels.clone().unwrap_or_default());
            for (key, value) in self.spec.selector.match_labels.iter().flatten() {
                labels[key] = json!(value);
            }
            let body = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim, "namespace": namespace, "labels": labels,
                    "annotations": template.metadata.annotations,
                },
                "spec": template.spec,
            });
            outcome.create(Kind::PersistentVolumeClaim, namespace, &Arc::new(body));
        }
        if !volumes.is_empty() {
            pod["spec"]["volumes"] = json!(volumes);
        }
    }
}

//! The new set, revisions, and how many old sets are kept.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::{Map, Value, json};

use super::Rollout;
use crate::action::difference;
use crate::names;
use crate::object::{Kind, annotation, uid};
use crate::template;

/// Annotations that belong to a deployment or a set alone and are not copied between them.
const OWN: [&str; 6] = [
    names::LAST_APPLIED,
    names::REVISION,
    names::REVISION_HISTORY,
    names::DESIRED_REPLICAS,
    names::MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

impl Rollout<'_> {
    fn next_revision(&self) -> i64 {
        self.old.iter().map(super::Set::template_revision).max().unwrap_or(0) + 1
    }

    /// Makes sure that there is a set for the current template.
    pub(super) fn ensure_new_set(&mut self) {
        if self.new.is_some() {
            self.ensure_revision();
            return;
        }
        let deployment = self.deployment;
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = template::hash(&self.spec.template, collisions);
        let name = format!("{}-{hash}", deployment.metadata.name.as_deref().unwrap_or_default());
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(taken) = self.cache.replica_sets.find(namespace, &name) {
            self.collide(taken);
            return;
        }
        let revision = self.next_revision();
        let replicas = self.new_replicas();
        let body = Arc::new(self.new_set(&name, &hash, revision, replicas));
        self.outcome.create(Kind::ReplicaSet, namespace, &body);
        self.remember_revision(revision);
        self.creates = Some(name.clone());
        if replicas > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {replicas}");
            self.outcome.note(
                (Kind::Deployment, &deployment.metadata),
                super::COMPONENT,
                "ScalingReplicaSet",
                message,
            );
        }
    }

    /// Another template has the same hash: the next attempt hashes differently.
    fn collide(&mut self, taken: &ReplicaSet) {
        let owned = crate::object::controlled_by(&taken.metadata, uid(&self.deployment.metadata));
        if owned && taken.metadata.deletion_timestamp.is_some() {
            return;
        }
        let count = self.deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        self.outcome.patch_status(
            Kind::Deployment,
            &self.deployment.metadata,
            json!({"status": {"collisionCount": count + 1}}),
        );
        self.creates.clone_from(&taken.metadata.name);
    }

    fn new_set(&self, name: &str, hash: &str, revision: i64, replicas: i32) -> Value {
        let meta = &self.deployment.metadata;
        let mut template = json!(self.spec.template);
        template["metadata"]["labels"][names::POD_TEMPLATE_HASH] = json!(hash);
        let labels = template["metadata"]["labels"].clone();
        let mut selector = json!(self.spec.selector);
        selector["matchLabels"][names::POD_TEMPLATE_HASH] = json!(hash);
        let mut annotations = json!(self.copied_annotations());
        annotations[names::REVISION] = json!(revision.to_string());
        if let (Value::Object(all), Value::Object(scale)) = (&mut annotations, self.scale_annotations()) {
            all.extend(scale);
        }
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "namespace": meta.namespace, "labels": labels, "annotations": annotations,
                "ownerReferences": [template::owner_reference(Kind::Deployment, meta)],
            },
            "spec": {
                "replicas": replicas, "minReadySeconds": self.spec.min_ready_seconds.unwrap_or(0),
                "selector": selector, "template": template,
            },
        })
    }

    fn copied_annotations(&self) -> Map<String, Value> {
        let annotations = self.deployment.metadata.annotations.iter().flatten();
        annotations
            .filter(|(key, _)| !OWN.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect()
    }

    /// Writes the deployment's numbers into a set if they are not there.
    pub(super) fn refresh(&mut self, set: &ReplicaSet) {
        let now = json!(set.metadata.annotations.clone().unwrap_or_default());
        let mut wanted = now.clone();
        if let (Value::Object(all), Value::Object(scale)) = (&mut wanted, self.scale_annotations()) {
            all.extend(scale);
        }
        if let Some(patch) = difference(&now, &wanted) {
            self.outcome.patch(Kind::ReplicaSet, &set.metadata, json!({"metadata": {"annotations": patch}}));
        }
    }

    /// The set of the current template has the highest revision, also after a rollback to it.
    pub(super) fn ensure_revision(&mut self) {
        let Some(new) = self.new.clone() else { return };
        let revision = self.next_revision().max(new.template_revision());
        let meta = &new.object.metadata;
        let now = json!(meta.annotations.clone().unwrap_or_default());
        let mut wanted = now.clone();
        if let (Value::Object(all), Value::Object(scale)) = (&mut wanted, self.scale_annotations()) {
            all.extend(self.copied_annotations());
            all.extend(scale);
        }
        let before = annotation(meta, names::REVISION);
        if before != Some(revision.to_string().as_str()) {
            wanted[names::REVISION] = json!(revision.to_string());
            if let Some(before) = before {
                let history = annotation(meta, names::REVISION_HISTORY).filter(|text| !text.is_empty());
                let history = history.map_or_else(|| before.to_owned(), |text| format!("{text},{before}"));
                wanted[names::REVISION_HISTORY] = json!(history);
            }
        }
        let mut body = json!({});
        if let Some(patch) = difference(&now, &wanted) {
            body["metadata"] = json!({"annotations": patch});
        }
        let seconds = self.spec.min_ready_seconds.unwrap_or(0);
        let current = new.object.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        if current != seconds {
            body["spec"] = json!({"minReadySeconds": seconds});
        }
        if body != json!({}) {
            self.outcome.patch(Kind::ReplicaSet, meta, body);
        }
        self.remember_revision(revision);
    }

    fn remember_revision(&mut self, revision: i64) {
        let text = revision.to_string();
        if annotation(&self.deployment.metadata, names::REVISION) != Some(&text) {
            let body = json!({"metadata": {"annotations": {names::REVISION: text}}});
            self.outcome.patch(Kind::Deployment, &self.deployment.metadata, body);
        }
    }

    /// Deletes the oldest sets beyond the number to keep.
    pub(super) fn clean_up(&mut self) {
        let limit = usize::try_from(self.spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
        let mut alive: Vec<_> =
            self.old.iter().filter(|set| set.object.metadata.deletion_timestamp.is_none()).cloned().collect();
        alive.sort_by_key(super::Set::template_revision);
        let excess = alive.len().saturating_sub(limit);
        for set in alive.into_iter().take(excess) {
            let observed = set.object.status.as_ref().and_then(|status| status.observed_generation);
            let settled =
                set.replicas == 0 && set.actual() == 0 && set.object.metadata.generation <= observed;
            if settled {
                self.outcome.delete(Kind::ReplicaSet, &set.object.metadata, None);
            }
        }
    }
}

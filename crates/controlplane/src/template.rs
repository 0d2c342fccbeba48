//! Pods made from templates, and the hashes that name what came from which template.

use std::collections::BTreeMap;
use std::hash::Hasher;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::names;
use crate::object::Kind;

/// Characters that never spell a word and are hard to mistake for each other.
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a over 32 bits, which Kubernetes uses for names.
struct Fnv(u32);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    fn finish(&self) -> u64 {
        u64::from(self.0)
    }
}

/// The hash of a template in safe characters; `collisions` tells apart templates that share one.
pub(crate) fn hash(template: &impl Serialize, collisions: Option<i32>) -> String {
    let mut hasher = Fnv(0x811c_9dc5);
    hasher.write(&serde_json::to_vec(template).unwrap_or_default());
    if let Some(collisions) = collisions {
        hasher.write(&collisions.to_le_bytes());
    }
    let decimal = hasher.finish().to_string();
    decimal.bytes().map(|digit| char::from(SAFE[usize::from(digit) % SAFE.len()])).collect()
}

/// Whether templates are equal apart from the hash that their controller added.
pub(crate) fn same(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    let labels = |template: &PodTemplateSpec| -> BTreeMap<String, String> {
        let labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
        labels.into_iter().filter(|(key, _)| key != names::POD_TEMPLATE_HASH).collect()
    };
    let annotations = |template: &PodTemplateSpec| {
        template.metadata.as_ref().and_then(|meta| meta.annotations.clone()).unwrap_or_default()
    };
    a.spec == b.spec && labels(a) == labels(b) && annotations(a) == annotations(b)
}

/// The reference to the owner that controls.
pub(crate) fn owner_reference(kind: Kind, meta: &ObjectMeta) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name(),
        "name": meta.name, "uid": meta.uid, "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod of a template, controlled by `owner` and named by the server after it.
pub(crate) fn pod(template: &PodTemplateSpec, kind: Kind, owner: &ObjectMeta) -> Value {
    let meta = template.metadata.as_ref();
    let mut metadata = json!({
        "generateName": prefix(owner.name.as_deref().unwrap_or_default()),
        "namespace": owner.namespace,
        "ownerReferences": [owner_reference(kind, owner)],
    });
    if let Some(labels) = meta.and_then(|meta| meta.labels.as_ref()) {
        metadata["labels"] = json!(labels);
    }
    if let Some(annotations) = meta.and_then(|meta| meta.annotations.as_ref()) {
        metadata["annotations"] = json!(annotations);
    }
    if let Some(finalizers) = meta.and_then(|meta| meta.finalizers.as_ref()) {
        metadata["finalizers"] = json!(finalizers);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.spec})
}

/// The beginning of the names of an owner's pods, unless that would be too long to be a name.
fn prefix(owner: &str) -> String {
    let prefix = format!("{owner}-");
    if prefix.len() <= 253 { prefix } else { owner.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_safe_and_depend_on_collisions() {
        let template = PodTemplateSpec::default();
        let (one, two) = (hash(&template, None), hash(&template, Some(1)));
        assert_ne!(one, two);
        assert!(one.bytes().all(|byte| SAFE.contains(&byte)), "{one}");
    }

    #[test]
    fn templates_that_differ_in_the_hash_label_are_the_same() {
        let mut labelled = PodTemplateSpec::default();
        let labels = BTreeMap::from([(names::POD_TEMPLATE_HASH.to_owned(), "abc".to_owned())]);
        labelled.metadata = Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() });
        assert!(same(&PodTemplateSpec::default(), &labelled));
    }
}

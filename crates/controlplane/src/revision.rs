//! ControllerRevisions: the templates that a StatefulSet or DaemonSet has had.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::action::Outcome;
use crate::cache::Cache;
use crate::object::{Kind, controlled_by, label, uid};
use crate::{names, template};

/// The label by which revisions of StatefulSets know their hash.
const HASH: &str = "controller.kubernetes.io/hash";

/// What a set has had so far, and what it has now.
pub(crate) struct Revisions {
    /// All that are stored, oldest first.
    stored: Vec<Arc<ControllerRevision>>,
    /// The name of the revision of the current template.
    pub(crate) update: String,
    /// The hash of the current template.
    pub(crate) hash: String,
}

/// Finds the revision of the current template, or creates it.
pub(crate) fn ensure(
    cache: &Cache,
    (kind, owner): (Kind, &ObjectMeta),
    current: &PodTemplateSpec,
    collisions: Option<i32>,
    outcome: &mut Outcome,
) -> Revisions {
    let mut stored: Vec<_> = cache
        .owned(uid(owner), Kind::ControllerRevision)
        .filter_map(|key| cache.revisions.get(key))
        .filter(|revision| controlled_by(&revision.metadata, uid(owner)))
        .cloned()
        .collect();
    stored.sort_by_key(|revision| (revision.revision, revision.metadata.name.clone()));
    let last = stored.last().map_or(0, |revision| revision.revision);
    let data = data(current);
    let known =
        stored.iter().rev().find(|revision| revision.data.as_ref().is_some_and(|stored| stored.0 == data));
    if let Some(known) = known.cloned() {
        if known.revision < last {
            // A rollback: the old template is the newest again.
            outcome.patch(Kind::ControllerRevision, &known.metadata, json!({"revision": last + 1}));
        }
        let name = known.metadata.name.clone().unwrap_or_default();
        let hash =
            label(&known.metadata, names::CONTROLLER_REVISION_HASH).or_else(|| label(&known.metadata, HASH));
        let hash = hash.map_or_else(|| template::hash(current, collisions), str::to_owned);
        return Revisions { stored, update: name, hash };
    }
    let hash = template::hash(current, collisions);
    let name = format!("{}-{hash}", owner.name.as_deref().unwrap_or_default());
    let mut labels =
        json!(current.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default());
    let key = if kind == Kind::DaemonSet { names::CONTROLLER_REVISION_HASH } else { HASH };
    labels[key] = json!(hash);
    let body = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": name, "namespace": owner.namespace, "labels": labels, "annotations": owner.annotations,
            "ownerReferences": [template::owner_reference(kind, owner)],
        },
        "data": data, "revision": last + 1,
    });
    outcome.create(Kind::ControllerRevision, owner.namespace.as_deref().unwrap_or_default(), &Arc::new(body));
    Revisions { stored, update: name, hash }
}

/// A template as a revision stores it.
fn data(current: &PodTemplateSpec) -> Value {
    let mut template = json!(current);
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

impl Revisions {
    /// The template of a stored revision.
    pub(crate) fn template(&self, name: &str) -> Option<PodTemplateSpec> {
        let revision = self.stored.iter().find(|revision| revision.metadata.name.as_deref() == Some(name))?;
        let template = revision.data.as_ref()?.0.get("spec")?.get("template")?;
        // Read as text, as all other templates are: the code that reads them is large.
        serde_json::from_str(&template.to_string()).ok()
    }

    /// Deletes the oldest revisions beyond the number to keep that nothing uses.
    pub(crate) fn clean_up(&self, limit: Option<i32>, used: &BTreeSet<String>, outcome: &mut Outcome) {
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
        let in_use = |revision: &ControllerRevision| {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let hash = label(&revision.metadata, names::CONTROLLER_REVISION_HASH);
            name == self.update || used.contains(name) || hash.is_some_and(|hash| used.contains(hash))
        };
        let history: Vec<_> = self.stored.iter().filter(|revision| !in_use(revision)).collect();
        let excess = history.len().saturating_sub(limit);
        for revision in history.into_iter().take(excess) {
            outcome.delete(Kind::ControllerRevision, &revision.metadata, None);
        }
    }
}

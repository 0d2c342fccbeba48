//! One pod for each DaemonSet, as it would run on a new node.

use engine::model::ClassId;

use super::Builder;
use crate::objects::collections::List;
use crate::objects::pod::PodStatus;
use crate::objects::{DaemonSet, Metadata, Pod};
use crate::reason::{Ignored, Reason};

impl Builder<'_> {
    /// Adds a class for each DaemonSet.
    pub(super) fn daemons(&mut self) {
        for set in &self.objects.daemon_sets {
            match self.daemon(set) {
                Ok(class) => self.tables.snapshot.daemons.push(class),
                Err(reason) => self.ignored.push(Ignored {
                    kind: "DaemonSet",
                    namespace: Some(set.metadata.namespace().into()),
                    name: set.metadata.name.clone(),
                    reason,
                }),
            }
        }
    }

    /// The newest pod of the set shows what became of the template on its way through the API server. Only what
    /// decides about the overhead of nodes is kept.
    fn daemon(&mut self, set: &DaemonSet) -> Result<ClassId, Reason> {
        let pods = self.objects.pods.iter().filter(|pod| is_of(pod, set));
        let newest = pods.reduce(|newest, pod| {
            let is_newer = pod.metadata.creation_timestamp > newest.metadata.creation_timestamp;
            if is_newer { pod } else { newest }
        });
        let mut pod = newest.cloned().unwrap_or_else(|| from_template(set));
        pod.spec.volumes = List::default();
        require_as_template(&mut pod, set);
        let mut class = self.class(&pod)?;
        class.spreads.clear();
        class.preferred_terms.clear();
        class.affinities.clear();
        class.preferred_affinities.clear();
        class.anti_affinities.clear();
        class.preferred_anti_affinities.clear();
        Ok(self.intern(class))
    }
}

fn is_of(pod: &Pod, set: &DaemonSet) -> bool {
    let Some(owner) = pod.metadata.controller() else { return false };
    let is_same = if set.metadata.uid.is_empty() {
        owner.is("apps/v1", "DaemonSet") && owner.name == set.metadata.name
    } else {
        owner.uid == set.metadata.uid
    };
    is_same && pod.metadata.namespace() == set.metadata.namespace()
}

fn from_template(set: &DaemonSet) -> Pod {
    let metadata = Metadata {
        name: set.metadata.name.clone(),
        namespace: set.metadata.namespace().into(),
        ..Metadata::default()
    };
    Pod { metadata, spec: set.spec.template.spec.clone(), status: PodStatus::default() }
}

/// The controller pins each pod to its node by replacing the required terms, which a new node cannot satisfy.
fn require_as_template(pod: &mut Pod, set: &DaemonSet) {
    let template = set.spec.template.spec.affinity.as_ref();
    let required = template.and_then(|affinity| affinity.node_affinity.as_ref()?.required.as_ref());
    if let Some(required) = required {
        let affinity = pod.spec.affinity.get_or_insert_default();
        affinity.node_affinity.get_or_insert_default().required = Some(required.clone());
    }
}

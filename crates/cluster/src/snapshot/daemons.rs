//! One pod for each DaemonSet, as it would run on a new node.

use engine::model::ClassId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{Builder, View};
use crate::eligibility::is_daemon;
use crate::objects::collections::List;
use crate::objects::{DaemonSet, Metadata, Pod};
use crate::reason::{Ignored, Reason};

impl Builder<'_> {
    /// Adds a class for each DaemonSet.
    pub(super) fn daemons(&mut self) {
        let newest = newest_pods(self.view);
        for (set, pod) in self.view.daemon_sets.iter().copied().zip(newest) {
            match self.daemon(set, pod) {
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
    fn daemon(&mut self, set: &DaemonSet, newest: Option<&Pod>) -> Result<ClassId, Reason> {
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

/// The newest pod of each DaemonSet. Sets in files need not have UIDs; they are known by their names.
fn newest_pods<'a>(view: &View<'a>) -> Vec<Option<&'a Pod>> {
    let sets = || view.daemon_sets.iter().map(|set| &set.metadata).enumerate();
    let by_uid: HashMap<_, _, FxBuildHasher> = sets()
        .filter(|(_, set)| !set.uid.is_empty())
        .map(|(index, set)| ((set.namespace(), &*set.uid), index))
        .collect();
    let by_name: HashMap<_, _, FxBuildHasher> = sets()
        .filter(|(_, set)| set.uid.is_empty())
        .map(|(index, set)| ((set.namespace(), &*set.name), index))
        .collect();
    let mut newest = vec![None::<&Pod>; view.daemon_sets.len()];
    if newest.is_empty() {
        return newest;
    }
    for pod in view.pods().into_iter().filter(|pod| is_daemon(pod)) {
        let Some(owner) = pod.metadata.controller() else { continue };
        let namespace = pod.metadata.namespace();
        let set = by_uid.get(&(namespace, &*owner.uid)).or_else(|| by_name.get(&(namespace, &*owner.name)));
        let Some(known) = set.map(|set| &mut newest[*set]) else { continue };
        let is_newer =
            known.is_none_or(|it| pod.metadata.creation_timestamp > it.metadata.creation_timestamp);
        if is_newer {
            *known = Some(pod);
        }
    }
    newest
}

fn from_template(set: &DaemonSet) -> Pod {
    let metadata = Metadata {
        name: set.metadata.name.clone(),
        namespace: set.metadata.namespace().into(),
        ..Metadata::default()
    };
    Pod { metadata, spec: set.spec.template.spec.clone(), ..Pod::default() }
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

//! Volumes of a node that goes: those of pods that leave must be detached first.

use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::eligibility::is_drainable;
use cluster::objects::{Pod, VolumeAttachment};
use cluster::state::{Key, State};
use jiff::Timestamp;

use crate::text;

/// How many names an event has at most.
const NAMED: usize = 5;

/// The attachments of a node that are waited for.
pub(super) fn waited_for(node: &str, state: &State, now: Timestamp) -> Vec<Arc<VolumeAttachment>> {
    let staying = state.pods_on(node).filter(|pod| !is_drainable(pod, now));
    let kept: BTreeSet<&str> = staying.flat_map(|pod| volumes_of(pod, state)).collect();
    let name = |attachment: &VolumeAttachment| attachment.spec.source.persistent_volume_name.clone();
    let is_waited_for =
        |attachment: &VolumeAttachment| !name(attachment).is_empty() && !kept.contains(&*name(attachment));
    state.attachments_of(node).filter(|attachment| is_waited_for(attachment)).cloned().collect()
}

/// The volumes that the claims of a pod are bound to.
fn volumes_of<'a>(pod: &'a Pod, state: &'a State) -> impl Iterator<Item = &'a str> {
    pod.spec.volumes.iter().filter_map(|volume| {
        let claim = match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => claim.claim_name.clone(),
            (None, Some(_)) => format!("{}-{}", pod.metadata.name, volume.name).into(),
            (None, None) => return None,
        };
        let key = Key { namespace: pod.metadata.namespace.clone(), name: claim };
        Some(&*state.persistent_volume_claims.get(&key)?.spec.volume_name)
    })
}

/// The names of attachments, as an event has them.
pub(super) fn names(attachments: &[Arc<VolumeAttachment>]) -> String {
    let names: Vec<&str> = attachments.iter().map(|it| &*it.metadata.name).collect();
    text::some(&names, NAMED)
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use cluster::state::{Kind, Seen};
    use serde_json::{Value, json};

    use super::*;

    fn state(objects: &[(Kind, Value)]) -> State {
        let mut state = State::awaiting(Provider::Kwok, &[]);
        for (kind, object) in objects {
            state.observe(Seen::Applied(kind.decode(&object.to_string()).unwrap()));
        }
        state
    }

    fn attachment(name: &str, volume: &str) -> (Kind, Value) {
        let source = json!({"persistentVolumeName": volume});
        let spec = json!({"nodeName": "n", "source": source});
        (Kind::VolumeAttachment, json!({"metadata": {"name": name}, "spec": spec}))
    }

    fn claim(name: &str, volume: &str) -> (Kind, Value) {
        let metadata = json!({"name": name, "namespace": "d"});
        (Kind::PersistentVolumeClaim, json!({"metadata": metadata, "spec": {"volumeName": volume}}))
    }

    #[test]
    fn volumes_of_pods_that_stay_are_not_waited_for() {
        let pod = |name: &str, tolerations: Value| {
            let volumes = json!([
                {"name": "v", "persistentVolumeClaim": {"claimName": format!("claim-of-{name}")}},
                {"name": "scratch", "ephemeral": {}},
            ]);
            let spec = json!({"nodeName": "n", "tolerations": tolerations, "volumes": volumes});
            (Kind::Pod, json!({"metadata": {"name": name, "namespace": "d"}, "spec": spec}))
        };
        let state = state(&[
            pod("stays", json!([{"operator": "Exists"}])),
            pod("leaves", json!([])),
            claim("claim-of-stays", "kept"),
            claim("stays-scratch", "kept-scratch"),
            claim("claim-of-leaves", "left"),
            attachment("a", "kept"),
            attachment("b", "kept-scratch"),
            attachment("c", "left"),
            attachment("d", "nobodys"),
            attachment("inline", ""),
        ]);
        let found = waited_for("n", &state, Timestamp::UNIX_EPOCH);
        assert_eq!(names(&found), "c, d");
        assert!(waited_for("m", &state, Timestamp::UNIX_EPOCH).is_empty());
    }

    #[test]
    fn some_names_are_enough() {
        let all: Vec<(Kind, Value)> = (0..7).map(|i| attachment(&format!("a{i}"), "v")).collect();
        let found = waited_for("n", &state(&all), Timestamp::UNIX_EPOCH);
        assert_eq!(names(&found), "a0, a1, a2, a3, a4 and 2 other(s)");
    }
}

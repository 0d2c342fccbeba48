//! How a Node that goes advances, by plain objects.

use super::*;
use crate::testing;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn node(value: Value) -> Node {
    serde_json::from_value(value).unwrap()
}

fn attachment() -> Arc<VolumeAttachment> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap())
}

fn said(claim: &NodeClaim, type_: &str) -> String {
    claim.condition(type_).map(|c| format!("{} {}", c.status, c.reason)).unwrap_or_default()
}

#[test]
fn a_node_is_tainted_and_taken_from_load_balancers_once() {
    let taint = |effect: &str| json!({"key": "karpenter.sh/disrupted", "effect": effect});
    let bare = node(json!({"metadata": {"name": "n", "resourceVersion": "3"}, "spec": {"taints": [
        {"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        taint("NoExecute"),
    ]}}));
    let patch = taint_patch(&bare).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "3");
    assert_eq!(
        patch["metadata"]["labels"],
        json!({"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"})
    );
    assert_eq!(
        patch["spec"]["taints"],
        json!([
            {"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
            taint("NoSchedule"),
        ])
    );
    let labels = json!({"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"});
    let done = |taints: Value| {
        node(json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}}))
    };
    assert_eq!(taint_patch(&done(json!([taint("NoSchedule")]))), None);
    assert!(taint_patch(&done(json!([]))).is_some());
    assert!(taint_patch(&done(json!([taint("NoSchedule"), taint("NoExecute")]))).is_some());
}

#[test]
fn a_node_drains_for_five_seconds_at_least() {
    let mut claim = testing::claim("c", &json!({}));
    let empty = Drain::default();
    let mut stage = |second: i64| {
        let stage = advance(Some(&mut claim), &empty, &[], None, at(second));
        (stage, said(&claim, "Drained"))
    };
    assert_eq!(stage(0), (Stage::Soon, "Unknown Draining".to_owned()));
    assert_eq!(stage(4), (Stage::Soon, "Unknown Draining".to_owned()));
    assert_eq!(stage(5), (Stage::Empty, "True Drained".to_owned()));
    assert_eq!(said(&claim, "VolumesDetached"), "True VolumesDetached");
    assert_eq!(advance(None, &empty, &[], None, at(0)), Stage::Empty);
}

#[test]
fn pods_come_before_volumes_and_volumes_before_the_instance() {
    let mut claim = testing::claim("c", &json!({}));
    let busy = Drain { waiting: 3, ..Drain::default() };
    let volumes = [attachment()];
    assert_eq!(advance(Some(&mut claim), &busy, &volumes, None, at(0)), Stage::Pods(3));
    assert_eq!(said(&claim, "VolumesDetached"), "");
    let empty = Drain::default();
    assert_eq!(advance(Some(&mut claim), &empty, &volumes, None, at(10)), Stage::Volumes);
    assert_eq!(said(&claim, "VolumesDetached"), "Unknown AwaitingVolumeDetachment");
    assert_eq!(advance(Some(&mut claim), &empty, &[], None, at(11)), Stage::Empty);
    assert_eq!(said(&claim, "VolumesDetached"), "True VolumesDetached");
}

#[test]
fn volumes_are_not_waited_for_after_the_deadline() {
    let mut claim = testing::claim("c", &json!({}));
    let (empty, volumes, deadline) = (Drain::default(), [attachment()], Some(at(20)));
    advance(Some(&mut claim), &empty, &volumes, deadline, at(0));
    assert_eq!(advance(Some(&mut claim), &empty, &volumes, deadline, at(20)), Stage::Volumes);
    assert_eq!(advance(Some(&mut claim), &empty, &volumes, deadline, at(21)), Stage::Empty);
    assert_eq!(said(&claim, "VolumesDetached"), "False TerminationGracePeriodElapsed");
    assert_eq!(said(&claim, "Drained"), "True Drained");
}

//! Drain: which pods of a node that goes must go now.

use std::sync::Arc;
use std::time::Duration;

use cluster::eligibility::{is_daemon, is_terminating, is_waiting_eviction, outlasts};
use cluster::objects::Pod;
use cluster::requests;
use jiff::{SignedDuration, Timestamp};
use units::Quantity;

/// The shortest time that a pod is given to stop. Without any, nobody would know whether it has.
pub(super) const SHORTEST_GRACE: Duration = Duration::from_secs(1);

/// A pod with so many cores is a large one; so much memory counts as a core.
const LARGE: f64 = 4.0;
const MEMORY_PER_CORE: f64 = 4.0 * 1024.0 * 1024.0 * 1024.0;
/// How long pods let others go ahead that are twice as large, and how often at most.
const STEP: Duration = Duration::from_millis(200);
const MOST_STEPS: f64 = 5.0;

/// What is to be done about the pods of a node.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    /// Pods that must go whatever protects them.
    pub(crate) forced: Vec<Arc<Pod>>,
    /// Pods whose turn it is.
    pub(crate) turn: Vec<Arc<Pod>>,
    /// How many pods are left, those included whose turn is later.
    pub(crate) waiting: usize,
}

/// What is to be done about the pods of a node that must be empty at a deadline, if there is one.
pub(crate) fn decide<'a>(
    pods: impl Iterator<Item = &'a Arc<Pod>>,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Drain {
    let mut drain = Drain::default();
    let mut turns: [Vec<Arc<Pod>>; 4] = Default::default();
    for pod in pods.filter(|pod| is_waiting_eviction(pod, now)) {
        drain.waiting += 1;
        if must_go(pod, deadline, now) {
            drain.forced.push(Arc::clone(pod));
        } else {
            turns[turn(pod)].push(Arc::clone(pod));
        }
    }
    drain.turn = turns.into_iter().find(|turn| !turn.is_empty()).unwrap_or_default();
    drain
}

/// How long a pod lets larger ones go ahead: a fifth of a second for each time that it is half as large as a large one.
///
/// Whoever is created again first is scheduled first. Small pods find room anywhere, but the room for a large one is
/// soon taken by small ones, and then a node is launched that nobody had planned.
pub(super) fn courtesy(pod: &Pod) -> Duration {
    let requests = requests::of_pod(pod);
    let amount = |name: &str| requests.get(name).map_or(0.0, Quantity::as_f64);
    let size = amount("cpu").max(amount("memory") / MEMORY_PER_CORE);
    // A pod that asks for nothing is infinitely small.
    STEP.mul_f64((LARGE / size).log2().clamp(0.0, MOST_STEPS))
}

/// Who goes when: the unimportant before the important, and of each those that serve a node last.
fn turn(pod: &Pod) -> usize {
    let name = &*pod.spec.priority_class_name;
    let is_critical = matches!(name, "system-cluster-critical" | "system-node-critical");
    2 * usize::from(is_critical) + usize::from(is_daemon(pod))
}

/// Whether a pod must be deleted now for its node to be empty in time.
pub(super) fn must_go(pod: &Pod, deadline: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(deadline) = deadline else { return false };
    if is_terminating(pod) {
        // One that stops as soon as it can is not told again.
        return outlasts(pod, deadline.max(plus(now, SHORTEST_GRACE)));
    }
    pod.spec.termination_grace_period_seconds.is_some_and(|seconds| {
        now > deadline.saturating_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN)
    })
}

/// How many seconds a pod has left until the deadline.
pub(super) fn grace(deadline: Timestamp, now: Timestamp) -> i64 {
    deadline.duration_since(now).as_secs().max(SHORTEST_GRACE.as_secs().cast_signed())
}

fn plus(time: Timestamp, wait: Duration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(name: &str, class: &str, daemon: bool) -> Value {
        let kind = if daemon { "DaemonSet" } else { "ReplicaSet" };
        json!({
            "metadata": {"name": name, "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "o"}]},
            "spec": {"priorityClassName": class, "terminationGracePeriodSeconds": 30},
        })
    }

    #[track_caller]
    fn check(
        pods: &[Value],
        deadline: Option<i64>,
        now: i64,
        forced: &[&str],
        turn: &[&str],
        waiting: usize,
    ) {
        let pods: Vec<Arc<Pod>> =
            pods.iter().map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect();
        let drain = decide(pods.iter(), deadline.map(at), at(now));
        let names = |pods: &[Arc<Pod>]| -> Vec<String> {
            pods.iter().map(|pod| pod.metadata.name.to_string()).collect()
        };
        assert_eq!(
            (names(&drain.forced), names(&drain.turn), drain.waiting),
            (
                forced.iter().map(ToString::to_string).collect(),
                turn.iter().map(ToString::to_string).collect(),
                waiting
            )
        );
    }

    #[test]
    fn the_unimportant_go_first_and_daemons_after_others() {
        let mut pods = vec![
            pod("critical-daemon", "system-node-critical", true),
            pod("critical", "system-cluster-critical", false),
            pod("daemon", "", true),
            pod("other", "high", false),
        ];
        for (turn, waiting) in [("other", 4), ("daemon", 3), ("critical", 2), ("critical-daemon", 1)] {
            check(&pods, None, 0, &[], &[turn], waiting);
            pods.pop();
        }
        check(&[], None, 0, &[], &[], 0);
    }

    #[test]
    fn small_pods_let_large_ones_go_ahead() {
        let wait = |cpu: &str, memory: &str| {
            let mut pod = pod("a", "", false);
            pod["spec"]["containers"] =
                json!([{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]);
            courtesy(&serde_json::from_value(pod).unwrap()).as_millis()
        };
        assert_eq!([wait("16", "1Gi"), wait("4", "0"), wait("100m", "64Gi")], [0, 0, 0]);
        assert_eq!([wait("2", "1Gi"), wait("1", "1Gi"), wait("500m", "1Gi")], [200, 400, 600]);
        assert_eq!([wait("100m", "4Gi"), wait("10m", "0"), wait("0", "0")], [400, 1000, 1000]);
    }

    #[test]
    fn pods_that_stay_or_are_done_are_not_waited_for() {
        let mut done = pod("done", "", false);
        done["status"] = json!({"phase": "Succeeded"});
        let mut tolerant = pod("tolerant", "", false);
        tolerant["spec"]["tolerations"] = json!([{"key": "karpenter.sh/disrupted", "operator": "Exists"}]);
        let mut own = pod("static", "", false);
        own["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": "n"}]);
        let mut stuck = pod("stuck", "", false);
        stuck["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
        check(&[done.clone(), tolerant, own, stuck.clone()], None, 61, &[], &[], 0);
        check(&[done, stuck], None, 60, &[], &["stuck"], 1);
    }

    #[test]
    fn protected_pods_hold_a_drain_up() {
        let mut protected = pod("protected", "", false);
        protected["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        check(&[protected], None, 0, &[], &["protected"], 1);
    }

    #[test]
    fn pods_go_early_enough_to_stop_in_time_whatever_their_turn() {
        let pods = [pod("other", "", false), pod("critical", "system-node-critical", false)];
        check(&pods, Some(300), 270, &[], &["other"], 2);
        check(&pods, Some(300), 271, &["other", "critical"], &[], 2);
        let mut patient = pod("patient", "", false);
        patient["spec"]["terminationGracePeriodSeconds"] = json!(1000);
        check(&[patient, pods[1].clone()], Some(300), 0, &["patient"], &["critical"], 2);
        let mut unknown = pod("unknown", "", false);
        unknown["spec"]["terminationGracePeriodSeconds"] = Value::Null;
        check(&[unknown], Some(300), 1000, &[], &["unknown"], 1);
    }

    #[test]
    fn a_pod_that_stops_too_late_is_told_to_hurry_once() {
        let going = |end: i64| {
            let mut pod = pod("going", "", false);
            pod["metadata"]["deletionTimestamp"] = json!(at(end).to_string());
            pod
        };
        check(&[going(301)], Some(300), 100, &["going"], &[], 1);
        check(&[going(300)], Some(300), 100, &[], &["going"], 1);
        check(&[going(402)], Some(300), 400, &["going"], &[], 1);
        check(&[going(401)], Some(300), 400, &[], &["going"], 1);
    }

    #[test]
    fn a_pod_gets_what_is_left_but_a_second_at_least() {
        assert_eq!((grace(at(300), at(90)), grace(at(300), at(300)), grace(at(0), at(300))), (210, 1, 1));
    }
}

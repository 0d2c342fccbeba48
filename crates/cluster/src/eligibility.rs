//! Which pods are to be placed: those that wait, and those whose node goes away. Entries: [`pending`] and
//! [`Budgets::may_move`].

use std::collections::BTreeMap;

use api::names::{annotations, taints};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use units::GoDuration;

use crate::objects::pod::{Phase, Scheduling, Toleration, TolerationOperator};
use crate::objects::{Effect, Pod, PodDisruptionBudget};
use crate::reason::NotPending;

/// Whether a pod waits for a node. `unseen` says whether pods count that no scheduler has looked at.
pub fn pending(pod: &Pod, unseen: bool) -> Result<(), NotPending> {
    let seen = pod.status.conditions.scheduling;
    let counts_unseen = unseen && seen.is_none() && is_active(pod);
    if seen != Some(Scheduling::Unschedulable) && !counts_unseen {
        return Err(NotPending::NotUnschedulable);
    }
    if !pod.status.nominated_node_name.is_empty() {
        return Err(NotPending::Nominated(pod.status.nominated_node_name.clone()));
    }
    if is_daemon(pod) {
        return Err(NotPending::Daemon);
    }
    if is_static(pod) {
        return Err(NotPending::Static);
    }
    Ok(())
}

/// Whether a pod is done.
pub fn is_terminal(pod: &Pod) -> bool {
    matches!(pod.status.phase, Phase::Succeeded | Phase::Failed)
}

/// Whether a pod runs and is to go on.
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !pod.metadata.is_deleting()
}

/// Whether a pod belongs to a DaemonSet.
pub fn is_daemon(pod: &Pod) -> bool {
    pod.metadata.is_owned_by("apps/v1", "DaemonSet")
}

/// Whether a pod is a node's own, which the API cannot move.
pub fn is_static(pod: &Pod) -> bool {
    pod.metadata.is_owned_by("v1", "Node")
}

/// Whether a pod asks to be left alone. An annotation that cannot be understood does not count.
pub fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    let Some(value) = pod.metadata.annotations.get(annotations::DO_NOT_DISRUPT) else { return false };
    if &**value == "true" {
        return true;
    }
    let Ok(duration) = value.parse::<GoDuration>() else { return false };
    if duration.as_nanos() <= 0 {
        return false;
    }
    let age = |start: Timestamp| now.as_nanosecond() - start.as_nanosecond();
    pod.status.start_time.as_ref().is_none_or(|start| age(start.0) < i128::from(duration.as_nanos()))
}

/// What PodDisruptionBudgets allow.
#[derive(Debug)]
pub struct Budgets<'a>(BTreeMap<&'a str, Vec<&'a PodDisruptionBudget>>);

impl<'a> Budgets<'a> {
    /// The budgets of a cluster.
    pub fn new(budgets: &'a [PodDisruptionBudget]) -> Self {
        let mut by_namespace = BTreeMap::<_, Vec<_>>::new();
        for budget in budgets {
            by_namespace.entry(budget.metadata.namespace()).or_default().push(budget);
        }
        Self(by_namespace)
    }

    /// Whether a pod of a node that goes away needs a place elsewhere: it will be created again, and nothing keeps
    /// it where it is for ever.
    pub fn may_move(&self, pod: &Pod, now: Timestamp) -> bool {
        let comes_back = is_active(pod)
            || (pod.metadata.is_deleting() && pod.metadata.is_owned_by("apps/v1", "StatefulSet"));
        let stays = is_daemon(pod) || is_static(pod) || (is_active(pod) && is_protected(pod, now));
        comes_back && !stays && !self.blocks(pod, now)
    }

    /// Whether budgets keep a pod where it is for ever. What is not evicted is not blocked.
    fn blocks(&self, pod: &Pod, now: Timestamp) -> bool {
        if !is_evictable(pod, now) {
            return false;
        }
        let budgets = self.0.get(pod.metadata.namespace()).map_or(&[][..], Vec::as_slice);
        let mut matching = budgets.iter().filter(|budget| {
            budget.spec.selector.as_ref().is_some_and(|selector| selector.matches(&pod.metadata.labels))
        });
        let Some(budget) = matching.next() else { return false };
        // The API does not evict a pod that several budgets select.
        if matching.next().is_some() {
            return true;
        }
        let lets_unhealthy_go = &*budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow";
        if lets_unhealthy_go && pod.status.conditions.not_ready {
            return false;
        }
        allows_nothing(budget)
    }
}

fn is_evictable(pod: &Pod, now: Timestamp) -> bool {
    is_active(pod)
        && !tolerates(&pod.spec.tolerations, taints::DISRUPTED)
        && !is_static(pod)
        && !is_protected(pod, now)
}

fn allows_nothing(budget: &PodDisruptionBudget) -> bool {
    let is_text =
        |value: &IntOrString, text: &str| matches!(value, IntOrString::String(found) if found == text);
    let none_missing = budget
        .spec
        .max_unavailable
        .as_ref()
        .is_some_and(|max| matches!(max, IntOrString::Int(0)) || is_text(max, "0%"));
    none_missing || budget.spec.min_available.as_ref().is_some_and(|min| is_text(min, "100%"))
}

/// Whether a taint is tolerated that has no value.
fn tolerates(tolerations: &[Toleration], taint: taints::NodeTaint) -> bool {
    let effect = if taint.effect == taints::NO_EXECUTE { Effect::NoExecute } else { Effect::NoSchedule };
    tolerations.iter().any(|toleration| {
        (toleration.effect == Effect::Any || toleration.effect == effect)
            && (toleration.key.is_empty() || &*toleration.key == taint.key)
            && match toleration.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => &*toleration.value == taint.value,
                TolerationOperator::Gt | TolerationOperator::Lt => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(value: &Value) -> Pod {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn unschedulable(mut value: Value) -> Value {
        value["status"]["conditions"] = json!([{"type": "PodScheduled", "reason": "Unschedulable"}]);
        value
    }

    fn owned(api_version: &str, kind: &str) -> Value {
        json!({"metadata": {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "x"}]}})
    }

    #[test]
    fn a_pod_waits_once_the_scheduler_has_given_up() {
        for (value, expected) in [
            (unschedulable(json!({})), Ok(())),
            (unschedulable(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})), Ok(())),
            (json!({}), Err(NotPending::NotUnschedulable)),
            (
                json!({"status": {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}}),
                Err(NotPending::NotUnschedulable),
            ),
            (unschedulable(owned("apps/v1", "DaemonSet")), Err(NotPending::Daemon)),
            (unschedulable(owned("v1", "Node")), Err(NotPending::Static)),
            (unschedulable(owned("apps/v1", "ReplicaSet")), Ok(())),
            (
                unschedulable(json!({"status": {"nominatedNodeName": "n"}})),
                Err(NotPending::Nominated("n".into())),
            ),
        ] {
            assert_eq!(pending(&pod(&value), false), expected, "{value}");
        }
    }

    #[test]
    fn pods_nobody_has_looked_at_wait_if_asked_for() {
        assert_eq!(pending(&pod(&json!({})), true), Ok(()));
        let gated =
            json!({"status": {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}});
        assert_eq!(pending(&pod(&gated), true), Err(NotPending::NotUnschedulable));
        let done = json!({"status": {"phase": "Succeeded"}});
        assert_eq!(pending(&pod(&done), true), Err(NotPending::NotUnschedulable));
    }

    #[test]
    fn protection_is_for_ever_or_for_a_while() {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        for (value, started, expected) in [
            ("true", Some("2020-01-01T00:00:00Z"), true),
            ("2h", Some("2026-01-01T00:00:00Z"), true),
            ("1h", Some("2026-01-01T00:00:00Z"), false),
            ("1h", None, true),
            ("false", None, false),
            ("-1h", None, false),
            ("0s", None, false),
        ] {
            let annotations = json!({"karpenter.sh/do-not-disrupt": value});
            let pod =
                pod(&json!({"metadata": {"annotations": annotations}, "status": {"startTime": started}}));
            assert_eq!(is_protected(&pod, now), expected, "{value} {started:?}");
        }
    }

    #[track_caller]
    fn check_moves(pod_value: &Value, budgets: &[Value], expected: bool) {
        let mut value = json!({"metadata": {"name": "a", "labels": {"app": "a"}}});
        merge(&mut value, pod_value);
        let budgets: Vec<PodDisruptionBudget> = budgets
            .iter()
            .map(|spec| {
                let mut spec = spec.clone();
                spec["selector"] = json!({"matchLabels": {"app": "a"}});
                serde_json::from_value(json!({"spec": spec})).unwrap()
            })
            .collect();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(Budgets::new(&budgets).may_move(&pod(&value), now), expected, "{value} {budgets:?}");
    }

    fn merge(into: &mut Value, from: &Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key.clone()).or_insert(json!({})), value);
                }
            }
            (into, from) => *into = from.clone(),
        }
    }

    #[test]
    fn pods_of_deleting_nodes_move_if_they_come_back() {
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let with = |mut value: Value| {
            merge(&mut value, &going);
            value
        };
        check_moves(&json!({}), &[], true);
        check_moves(&going, &[], false);
        check_moves(&with(owned("apps/v1", "ReplicaSet")), &[], false);
        check_moves(&with(owned("apps/v1", "StatefulSet")), &[], true);
        check_moves(&owned("apps/v1", "DaemonSet"), &[], false);
        check_moves(&owned("v1", "Node"), &[], false);
        check_moves(&json!({"status": {"phase": "Failed"}}), &[], false);
    }

    #[test]
    fn protected_pods_stay() {
        let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        check_moves(&protected, &[], false);
        let mut going = owned("apps/v1", "StatefulSet");
        merge(&mut going, &protected);
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        check_moves(&going, &[], true);
    }

    #[test]
    fn budgets_that_allow_nothing_block() {
        for spec in
            [json!({"maxUnavailable": 0}), json!({"maxUnavailable": "0%"}), json!({"minAvailable": "100%"})]
        {
            check_moves(&json!({}), std::slice::from_ref(&spec), false);
        }
        let generous = json!({"maxUnavailable": 1});
        check_moves(&json!({}), std::slice::from_ref(&generous), true);
        check_moves(&json!({}), &[generous.clone(), generous], false);
        check_moves(&json!({}), &[json!({"minAvailable": 100})], true);
    }

    #[test]
    fn unhealthy_pods_may_go_if_the_budget_says_so() {
        let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let strict = json!({"maxUnavailable": 0});
        let lenient = json!({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
        check_moves(&sick, &[strict], false);
        check_moves(&sick, std::slice::from_ref(&lenient), true);
        check_moves(&json!({}), &[lenient], false);
    }

    #[test]
    fn pods_that_are_not_evicted_are_not_blocked() {
        let tolerant =
            json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}});
        check_moves(&tolerant, &[json!({"maxUnavailable": 0})], true);
        let other = json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "value": "x"}]}});
        check_moves(&other, &[json!({"maxUnavailable": 0})], false);
    }
}

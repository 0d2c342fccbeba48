//! A pod on a simulated node, from its start to its end.
//!
//! ```text
//!   bound ──► creating ──► running ──► succeeded (if it says when)
//!               │             ├──────► failed or starting again (by request)
//!               ▼             ▼
//!        image cannot be   deleted ──► stops ──► gone
//!          pulled
//! ```

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::pod_status::{State, status};
use super::{is_ours, is_silent};
use crate::action::Outcome;
use crate::cache::{Cache, claims_of, node_of};
use crate::devices::{self, Devices};
use crate::names::simulate;
use crate::object::{Key, Kind, annotation, controller};
use crate::options::KubeletOptions;
use crate::pod::{Pod, is_finished, phase};
use crate::time::{after, duration};

const COMPONENT: &str = "kubelet";

/// Pods that start faster than this do not show that they are being created.
const SHORT: Duration = Duration::from_millis(500);

pub(crate) fn decide(cache: &Cache, key: &Key, options: &KubeletOptions, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(pod) = cache.pods.get(key) else { return outcome };
    let Some(node) = node_of(pod).and_then(|node| cache.nodes.get(&Key::cluster(node))) else {
        return outcome;
    };
    if !is_ours(node, options) || is_silent(node) {
        return outcome;
    }
    if super::is_starting(cache, node, options, now) {
        // The node brings its pods up again once it has reported.
        return outcome;
    }
    if pod.metadata.deletion_timestamp.is_some() {
        stop(pod, node, options, now, &mut outcome);
    } else if !is_finished(pod) {
        run(cache, key, pod, node, options, now, &mut outcome);
    }
    outcome
}

/// Ends a pod that is being deleted.
fn stop(pod: &Pod, node: &Node, options: &KubeletOptions, now: Timestamp, outcome: &mut Outcome) {
    let Some(deadline) = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0) else { return };
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let asked = deadline.saturating_sub(grace).unwrap_or(deadline);
    let wanted = annotation(&pod.metadata, simulate::STOP_AFTER).and_then(duration).unwrap_or(options.stop);
    let started = matches!(phase(pod), "Running");
    let stopped = if started { after(asked, wanted.min(grace)) } else { asked };
    if stopped > now {
        outcome.look_again(stopped);
        return;
    }
    let held = pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    if held && !is_finished(pod) {
        // Somebody waits to learn how it ended.
        write(pod, node, &State::Ended { success: false, at: now }, None, now, outcome);
    }
    if grace > Duration::ZERO || !held {
        outcome.delete(Kind::Pod, &pod.metadata, Some(0));
    }
}

fn run(
    cache: &Cache,
    key: &Key,
    pod: &Pod,
    node: &Node,
    options: &KubeletOptions,
    now: Timestamp,
    outcome: &mut Outcome,
) {
    let Some(bound) = cache.bound(key) else { return };
    let address = Some(crate::cache::address(bound.ordinal).to_string());
    let given = |name: &str| annotation(&pod.metadata, name).and_then(duration);
    let fail = annotation(&pod.metadata, simulate::FAIL);
    let running = phase(pod) == "Running";
    if !running {
        let mounted = claims_of(pod).iter().all(|claim| is_bound(cache, claim))
            && devices::of(cache, pod) == Devices::Allocated;
        let inits = init_count(pod);
        let wait = options.image_pull + options.init_run.saturating_mul(inits) + options.pod_start;
        let start = after(bound.since, wait);
        if fail == Some("image-pull") {
            write(pod, node, &State::NoImage, None, now, outcome);
            return;
        }
        if !mounted || start > now {
            if start > now {
                outcome.look_again(start);
            }
            if !mounted || wait > SHORT {
                write(pod, node, &State::Creating, None, now, outcome);
            }
            return;
        }
    }
    let since = started(pod).unwrap_or(now);
    let end = match fail {
        Some("exit") => Some((false, Duration::from_secs(1))),
        _ => given(simulate::COMPLETE_AFTER)
            .or_else(|| {
                let of_job = controller(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
                (of_job && fail.is_none()).then_some(options.job_run)
            })
            .map(|wait| (true, wait)),
    };
    if let Some((success, wait)) = end {
        let at = after(since, wait);
        if at <= now && running {
            let policy =
                pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
            let again = policy == "Always" || policy == "OnFailure" && !success;
            let state = if again { State::Crashing } else { State::Ended { success, at: now } };
            write(pod, node, &state, address, now, outcome);
            return;
        }
        outcome.look_again(at.max(after(now, Duration::from_millis(1))));
    }
    if fail == Some("crash") {
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        let state =
            if policy == "Never" { State::Ended { success: false, at: now } } else { State::Crashing };
        if crate::kubelet::pod_status::needs(pod, &state) {
            outcome.note(
                (Kind::Pod, &pod.metadata),
                COMPONENT,
                "BackOff",
                "Back-off restarting failed container".to_owned(),
            );
        }
        write(pod, node, &state, address, now, outcome);
        return;
    }
    let ready_at = given(simulate::READY_AFTER).map_or(since, |wait| after(since, wait));
    if ready_at > now {
        outcome.look_again(ready_at);
    }
    let node_ready = crate::node::ready_status(node) == Some("True");
    write(pod, node, &State::Running { ready: ready_at <= now && node_ready, since }, address, now, outcome);
}

/// How many init containers have to end before the others start.
fn init_count(pod: &Pod) -> u32 {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let ending = containers.filter(|container| container.restart_policy.as_deref() != Some("Always"));
    u32::try_from(ending.count()).unwrap_or(u32::MAX)
}

fn is_bound(cache: &Cache, claim: &Key) -> bool {
    let phase = cache.claims.get(claim).and_then(|claim| claim.status.as_ref()?.phase.as_deref());
    phase == Some("Bound")
}

/// When the containers of a running pod started.
fn started(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let starts =
        statuses.iter().filter_map(|status| status.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    starts.map(|time| time.0).max()
}

/// Writes the status of a pod in this state, if it is not what the pod says already.
fn write(
    pod: &Pod,
    node: &Node,
    state: &State,
    address: Option<String>,
    now: Timestamp,
    outcome: &mut Outcome,
) {
    let old = pod.status.clone().unwrap_or_default();
    let new = status(pod, node, state, address, now);
    if old == new {
        return;
    }
    let (Ok(old), Ok(new)) = (serde_json::to_value(&old), serde_json::to_value(&new)) else { return };
    if let Some(patch) = crate::action::difference(&old, &new) {
        let body = json!({
            "metadata": {"resourceVersion": pod.metadata.resource_version}, "status": patch,
        });
        outcome.patch_status(Kind::Pod, &pod.metadata, body);
    }
}

#[cfg(test)]
mod tests;

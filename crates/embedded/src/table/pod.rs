//! What a pod's line says.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age_at;
use crate::kinds::Get;

/// What the states of a pod's containers add up to.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// When a container last ended before it was started again, as RFC 3339; empty when none did.
    last_restart: String,
}

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summary(pod);
    let restarts = if summary.restarts != 0 && !summary.last_restart.is_empty() {
        let ago = age_at(&Value::from(summary.last_restart.as_str()), now);
        format!("{} ({ago} ago)", summary.restarts)
    } else {
        summary.restarts.to_string()
    };
    let or_none = |text: &str| Value::from(if text.is_empty() { "<none>" } else { text });
    let address = pod.list("status.podIPs").first().map(|address| address.text("ip")).unwrap_or_default();
    vec![
        json!(pod.text("metadata.name")),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        json!(age_at(pod.at("metadata.creationTimestamp"), now)),
        or_none(address),
        or_none(pod.text("spec.nodeName")),
        or_none(pod.text("status.nominatedNodeName")),
        json!(gates(pod)),
    ]
}

fn gates(pod: &Value) -> String {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, gate.text("conditionType"))).count();
    format!("{open}/{}", gates.len())
}

fn is_true(pod: &Value, kind: &str) -> bool {
    let condition = pod.list("status.conditions").iter().find(|condition| condition.text("type") == kind);
    condition.is_some_and(|condition| condition.text("status") == "True")
}

/// How a container ended, in one word.
fn ended(terminated: &Value) -> String {
    let signal = terminated.number("signal").unwrap_or_default();
    match terminated.text("reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", terminated.number("exitCode").unwrap_or_default()),
        reason => reason.to_owned(),
    }
}

fn later(last: &mut String, status: &Value) {
    // Times of one form compare as texts do.
    let finished = status.text("lastState.terminated.finishedAt");
    if finished > last.as_str() {
        finished.clone_into(last);
    }
}

fn summary(pod: &Value) -> Summary {
    let phase = pod.text("status.phase");
    let mut reason = pod.text("status.reason").to_owned();
    if reason.is_empty() {
        phase.clone_into(&mut reason);
    }
    let gated = pod.list("status.conditions").iter().any(|condition| {
        condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    let sidecars = pod.list("spec.initContainers").iter().filter(|container| is_sidecar(container)).count();
    let total = pod.list("spec.containers").len() + sidecars;
    let mut summary = Summary { reason, ready: 0, total, restarts: 0, last_restart: String::new() };
    let (initializing, sidecars) = init_containers(pod, &mut summary);
    if !initializing || is_true(pod, "Initialized") {
        (summary.restarts, summary.last_restart) = sidecars;
        containers(pod, &mut summary);
    }
    if pod.has("metadata.deletionTimestamp") {
        if pod.text("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

fn is_sidecar(container: &Value) -> bool {
    container.text("restartPolicy") == "Always"
}

/// Goes through the init containers up to the first that is not done; answers whether there is one, and the
/// restarts of sidecars so far with the time of the last.
fn init_containers(pod: &Value, summary: &mut Summary) -> (bool, (i64, String)) {
    let specs = pod.list("spec.initContainers");
    let mut sidecars = (0, String::new());
    for (index, status) in pod.list("status.initContainerStatuses").iter().enumerate() {
        let restarts = status.number("restartCount").unwrap_or_default();
        summary.restarts += restarts;
        later(&mut summary.last_restart, status);
        let name = status.text("name");
        let sidecar = specs.iter().any(|container| container.text("name") == name && is_sidecar(container));
        if sidecar {
            sidecars.0 += restarts;
            later(&mut sidecars.1, status);
        }
        let terminated = status.at("state.terminated");
        let waiting = status.text("state.waiting.reason");
        if !terminated.is_null() && terminated.number("exitCode").unwrap_or_default() == 0 {
            continue;
        }
        if sidecar && status.flag("started") {
            summary.ready += usize::from(status.flag("ready"));
            continue;
        }
        summary.reason = if !terminated.is_null() {
            format!("Init:{}", ended(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs.len())
        };
        return (true, sidecars);
    }
    (false, sidecars)
}

fn containers(pod: &Value, summary: &mut Summary) {
    let mut running = false;
    let mut failure = String::new();
    for status in pod.list("status.containerStatuses").iter().rev() {
        summary.restarts += status.number("restartCount").unwrap_or_default();
        later(&mut summary.last_restart, status);
        let terminated = status.at("state.terminated");
        let waiting = status.text("state.waiting.reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if !terminated.is_null() {
            summary.reason = ended(terminated);
            if terminated.number("exitCode").unwrap_or_default() != 0 {
                failure.clone_from(&summary.reason);
            }
        } else if status.flag("ready") && status.has("state.running") {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if running && is_true(pod, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if !failure.is_empty() {
            summary.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

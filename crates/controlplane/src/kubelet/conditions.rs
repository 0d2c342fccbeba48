//! The conditions of a simulated node: its own, and those that users ask for with annotations.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeStatus};

use super::failure;
use crate::names::simulate;
use crate::object::annotation;
use crate::time::time;

/// The reason of conditions that users asked for.
const SIMULATED: &str = "SimulatedByAnnotation";
/// The condition that says what is wrong with what they wrote.
const COMPLAINT: &str = "SimulationInvalid";

struct Wanted {
    kind: String,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// Brings the conditions up to date; those that did not change are written again when a report is `due`. Says whether
/// the machine was booted since it reported what users asked for, so that this is over.
pub(super) fn update(node: &Node, status: &mut NodeStatus, due: bool, now: Timestamp) -> bool {
    let boot = status.node_info.as_ref().map(|info| info.boot_id.clone()).unwrap_or_default();
    let (wanted, booted) = wanted(node, status, &boot);
    let all = status.conditions.get_or_insert_default();
    let is_wanted = |kind: &str| wanted.iter().any(|wanted| wanted.kind == kind);
    all.retain(|known| known.reason.as_deref() != Some(SIMULATED) || is_wanted(&known.type_));
    for Wanted { kind, status, reason, message } in wanted {
        let before = all.iter().position(|condition| condition.type_ == kind);
        let same = before.map(|at| &all[at]).filter(|condition| condition.status == status);
        let told = same.is_some_and(|condition| condition.reason.as_deref() == Some(reason));
        if told && !due {
            continue;
        }
        let new = NodeCondition {
            type_: kind,
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_heartbeat_time: Some(time(now)),
            last_transition_time: same
                .map_or_else(|| Some(time(now)), |before| before.last_transition_time.clone()),
        };
        match before {
            Some(at) => all[at] = new,
            None => all.push(new),
        }
    }
    booted
}

fn wanted(node: &Node, status: &NodeStatus, boot: &str) -> (Vec<Wanted>, bool) {
    let own = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        if matches!(failure(node), Some("never-ready" | "not-ready")) {
            ("Ready", "False", "KubeletNotReady", "simulated failure")
        } else {
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
        },
    ];
    let mut wanted: Vec<Wanted> = own
        .map(|(kind, status, reason, message)| Wanted {
            kind: kind.to_owned(),
            status,
            reason,
            message: message.to_owned(),
        })
        .into();
    let (asked, complaint) = asked(node);
    let message = format!("simulated since boot {boot}");
    // Reports are told apart by the boot that they say; the first one comes before there is any.
    let known = status.conditions.iter().flatten().filter(|known| known.reason.as_deref() == Some(SIMULATED));
    let told: Vec<&str> = known.filter_map(|known| known.message.as_deref()).collect();
    let booted =
        !asked.is_empty() && told.iter().any(|told| told.starts_with("simulated since") && *told != message);
    if !booted {
        for (kind, status) in asked {
            wanted.retain(|own| own.kind != kind);
            wanted.push(Wanted { kind, status, reason: SIMULATED, message: message.clone() });
        }
    }
    if let Some(message) = complaint {
        wanted.push(Wanted { kind: COMPLAINT.to_owned(), status: "True", reason: SIMULATED, message });
    }
    (wanted, booted)
}

/// The conditions that users ask for, and what is wrong with how they ask.
fn asked(node: &Node) -> (Vec<(String, &'static str)>, Option<String>) {
    let (mut asked, mut complaints) = (Vec::new(), Vec::new());
    let text = annotation(&node.metadata, simulate::CONDITIONS).unwrap_or_default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (kind, status) = part.split_once('=').unwrap_or((part, "True"));
        let known = ["True", "False", "Unknown"].into_iter().find(|known| *known == status.trim());
        match known.filter(|_| !kind.trim().is_empty()) {
            Some(status) => asked.push((kind.trim().to_owned(), status)),
            None => complaints.push(format!(
                "{}: {part:?} is not a type with a status, as KWOKUnhealthy=True, False or Unknown",
                simulate::CONDITIONS
            )),
        }
    }
    if let Some(other) = failure(node).filter(|fail| !["never-ready", "not-ready", "silent"].contains(fail)) {
        complaints
            .push(format!("{}: {other:?} is none of never-ready, not-ready and silent", simulate::FAIL));
    }
    (asked, (!complaints.is_empty()).then(|| complaints.join("; ")))
}

//! What is to be done next about a node that is to be booted again.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::{INITIALIZED, REBOOTING};
use api::names::{annotations, labels, reasons, taints, values};
use api::nodeclaim::NodeClaim;
use cluster::objects::{Node, Pod};
use cluster::state::Meta;
use jiff::{SignedDuration, Timestamp};
use units::GoDuration;

use crate::node::termination::drain;
use crate::node::{Mark, has_taint};
use crate::node_claim::annotation;

/// How often a node is looked at that is waited for.
pub(super) const POLL: Duration = Duration::from_secs(15);
/// How long the provider may take to accept a reboot.
const ISSUING: SignedDuration = SignedDuration::from_mins(5);
/// How long a node may take to come back.
const OBSERVING: SignedDuration = SignedDuration::from_mins(20);
/// The shortest drain, so that load balancers notice.
const SHORTEST_DRAIN: SignedDuration = SignedDuration::from_secs(5);
/// For how long reboots are remembered, and how many of them are enough.
const MEMORY: SignedDuration = SignedDuration::from_hours(24);
const ENOUGH: usize = 2;

/// The next thing to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: no reboot is under way, or the claim goes.
    Nothing,
    /// Something is waited for.
    Wait(Duration),
    /// New pods are kept away.
    Fence,
    /// Pods are asked to leave by the deadline, if there is one.
    Evict { pods: Vec<Arc<Pod>>, deadline: Option<Timestamp>, again: Duration },
    /// It is written down that the provider is going to be asked, and which boot is to end.
    Begin { boot: String, history: String },
    /// The provider is asked.
    Ask { operation: String },
    /// The boot is another one already.
    Accept,
    /// The node must not count as initialized.
    Unlabel,
    /// The node has booted again.
    Unfence,
    /// The node is back.
    Succeed,
    /// It did not work.
    Fail(Failure),
}

/// Why a reboot did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// As metrics write it.
    pub(super) result: &'static str,
    /// As events write it.
    pub(super) text: String,
}

impl Failure {
    /// The provider will not do it.
    pub(super) fn refused(error: &cloud::Error) -> Self {
        let text = match error {
            cloud::Error::RebootNotImplemented => "reboot not implemented by the cloud provider".to_owned(),
            error => format!("reboot rejected by the cloud provider: {error}"),
        };
        Self { result: values::REBOOT_PROVIDER_ERROR, text }
    }

    /// Whether the request makes no sense, which is no fault of the node.
    pub(super) fn is_invalid(&self) -> bool {
        self.result == values::REBOOT_INVALID_REQUEST
    }
}

/// How long the node may be drained, if the request says so.
pub(super) fn bound(claim: &NodeClaim) -> Result<Option<SignedDuration>, Failure> {
    let Some(text) = annotation(claim, annotations::REBOOT_TERMINATION_GRACE_PERIOD) else { return Ok(None) };
    let invalid = |why: String| {
        let text = format!("invalid reboot request: {why}");
        Err(Failure { result: values::REBOOT_INVALID_REQUEST, text })
    };
    match text.parse::<GoDuration>() {
        Ok(bound) if bound < GoDuration::ZERO => {
            invalid(format!("reboot termination grace period must be non-negative, got {text:?}"))
        }
        Ok(bound) => Ok(Some(bound.into())),
        Err(error) => invalid(format!("parsing reboot termination grace period {text:?}: {error}")),
    }
}

/// Since when the provider is asked, or when it accepted.
pub(super) fn issue_time(claim: &NodeClaim) -> Option<Timestamp> {
    annotation(claim, annotations::REBOOT_ISSUE_TIME)?.parse().ok()
}

/// As [`issue_time`], unless that is left of an earlier reboot. Annotations know whole seconds.
fn issued_since(claim: &NodeClaim, requested: Timestamp) -> Option<Timestamp> {
    issue_time(claim).filter(|time| time.as_second() >= requested.as_second())
}

/// Since when the reboot of a claim's node is under way, if it is.
pub(super) fn requested_at(claim: &NodeClaim) -> Option<Timestamp> {
    let rebooting = claim.condition(REBOOTING).filter(|_| claim.is_true(REBOOTING))?;
    Some(rebooting.last_transition_time.0)
}

/// When reboots were asked for, as far as they can be read.
fn history(claim: &NodeClaim) -> impl Iterator<Item = Timestamp> {
    let text = annotation(claim, annotations::REBOOT_HISTORY).unwrap_or_default();
    text.split(',').filter_map(|time| time.trim().parse().ok())
}

/// Whether a node was booted again so often within a day that another boot would not help.
pub(crate) fn is_worn_out(claim: &NodeClaim, now: Timestamp) -> bool {
    history(claim).filter(|time| now.duration_since(*time) < MEMORY).count() >= ENOUGH
}

/// The history with one more reboot, without what is too old to matter.
fn history_with(claim: &NodeClaim, requested: Timestamp, now: Timestamp) -> String {
    let mut times: Vec<Timestamp> =
        history(claim).filter(|time| now.duration_since(*time) < MEMORY && *time != requested).collect();
    times.push(requested);
    times.sort_unstable();
    times.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn after(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// How long until a time, at most as long as between two looks.
fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default().min(POLL)
}

/// What is to be done next.
pub(super) fn decide<'a>(
    claim: &NodeClaim,
    node: Option<&Node>,
    pods: impl Iterator<Item = &'a Arc<Pod>>,
    now: Timestamp,
) -> Step {
    let Some(requested) = requested_at(claim).filter(|_| !claim.metadata.is_deleting()) else {
        return Step::Nothing;
    };
    let is_issued =
        claim.condition(REBOOTING).is_some_and(|it| it.reason == reasons::node_claim::REBOOT_ISSUED);
    let (deadline, failure) = phase(claim, requested, is_issued);
    let is_late = |deadline: Timestamp| now >= deadline;
    let Some(node) = node else {
        let deadline = deadline.unwrap_or_else(|| after(requested, ISSUING));
        return if is_late(deadline) { Step::Fail(failure) } else { Step::Wait(until(deadline, now)) };
    };
    if deadline.is_some_and(is_late) {
        return Step::Fail(failure);
    }
    if is_issued {
        observe(claim, node, deadline.unwrap_or(Timestamp::MAX), now)
    } else {
        issue(claim, node, pods, requested, now)
    }
}

/// Until when what is under way must have worked, and what it means if it has not.
fn phase(claim: &NodeClaim, requested: Timestamp, is_issued: bool) -> (Option<Timestamp>, Failure) {
    let issued = issued_since(claim, requested);
    if is_issued {
        let uninitialized = || claim.condition(INITIALIZED).map(|it| it.last_transition_time.0);
        let since = issued.or_else(uninitialized).unwrap_or(requested);
        let text = "node did not recover within the observation window".to_owned();
        let failure = Failure { result: values::REBOOT_RECOVERY_TIMEOUT, text };
        return (Some(after(since, OBSERVING)), failure);
    }
    let text = "reboot was not issued within the issuance timeout".to_owned();
    let failure = Failure { result: values::REBOOT_PROVIDER_ERROR, text };
    let is_issuing = annotation(claim, annotations::REBOOT_PRE_BOOT_ID).is_some();
    (issued.filter(|_| is_issuing).map(|since| after(since, ISSUING)), failure)
}

/// The reboot was asked for: the node is fenced and drained, then the provider is asked.
fn issue<'a>(
    claim: &NodeClaim,
    node: &Node,
    pods: impl Iterator<Item = &'a Arc<Pod>>,
    requested: Timestamp,
    now: Timestamp,
) -> Step {
    let bound = match bound(claim) {
        Ok(bound) => bound,
        Err(failure) => return Step::Fail(failure),
    };
    if !is_fenced(node) {
        return Step::Fence;
    }
    let begin =
        |boot: &str| Step::Begin { boot: boot.to_owned(), history: history_with(claim, requested, now) };
    if let Some(before) = annotation(claim, annotations::REBOOT_PRE_BOOT_ID) {
        if &*node.status.node_info.boot_id != before {
            return Step::Accept;
        }
        if issued_since(claim, requested).is_none() {
            return begin(before);
        }
        let uid = claim.metadata.uid();
        return Step::Ask { operation: format!("{uid}-{}-{before}", requested.as_nanosecond()) };
    }
    if bound.is_none_or(|bound| !bound.is_zero()) {
        let deadline = bound.map(|bound| after(requested, bound.max(SHORTEST_DRAIN)));
        let drain = drain::decide(pods, None, now);
        let is_over = deadline.is_some_and(|deadline| now >= deadline);
        if drain.waiting > 0 && !is_over {
            let again = deadline.map_or(POLL, |deadline| until(deadline, now));
            return Step::Evict { pods: drain.turn, deadline, again };
        }
        let earliest = after(requested, SHORTEST_DRAIN);
        if now < earliest {
            return Step::Wait(until(earliest, now));
        }
    }
    begin(&node.status.node_info.boot_id)
}

/// The provider has accepted: the node is to come back.
fn observe(claim: &NodeClaim, node: &Node, deadline: Timestamp, now: Timestamp) -> Step {
    if node.metadata.labels.get(labels::INITIALIZED).is_some() {
        return Step::Unlabel;
    }
    let before = annotation(claim, annotations::REBOOT_PRE_BOOT_ID).unwrap_or_default();
    if &*node.status.node_info.boot_id == before {
        return Step::Wait(until(deadline, now));
    }
    if is_fenced(node) {
        return Step::Unfence;
    }
    if node.is_ready() {
        return Step::Succeed;
    }
    Step::Wait(until(deadline, now))
}

/// Whether new pods are kept away until the node is back.
pub(super) fn is_fenced(node: &Node) -> bool {
    has_taint(node, Mark::from(taints::REBOOTING))
}

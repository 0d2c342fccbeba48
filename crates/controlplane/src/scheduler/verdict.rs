//! Why a pod fits nowhere, in kube-scheduler's words.

use std::borrow::Cow;
use std::collections::BTreeMap;

pub(crate) const NO_NODES: &str = "no nodes available to schedule pods";
/// Devices could be taken from idle claims before pods are sent away; here there are none.
pub(crate) const NO_CLAIMS: &str = "no new claims to deallocate";
pub(crate) const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Why one node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reasons: Reasons,
    /// Whether other pods leaving the node could help.
    pub(crate) resolvable: bool,
}

/// One constant reason needs no allocation, and that is nearly every case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reasons {
    One(&'static str),
    Several(Vec<Cow<'static, str>>),
}

impl Rejection {
    pub(crate) fn resolvable(reason: &'static str) -> Self {
        Self { reasons: Reasons::One(reason), resolvable: true }
    }

    pub(crate) fn final_(reason: &'static str) -> Self {
        Self { reasons: Reasons::One(reason), resolvable: false }
    }

    fn each(&self, mut call: impl FnMut(&str)) {
        match &self.reasons {
            Reasons::One(reason) => call(reason),
            Reasons::Several(reasons) => reasons.iter().for_each(|reason| call(reason)),
        }
    }
}

/// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`
///
/// `absent` is said for every one of the `nodes` that has no rejection of its own.
pub(crate) fn summary<'a>(
    nodes: usize,
    rejections: impl IntoIterator<Item = &'a Rejection>,
    absent: Option<&str>,
) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut explicit = 0;
    for rejection in rejections {
        explicit += 1;
        rejection.each(|reason| *counts.entry(reason.to_owned()).or_default() += 1);
    }
    if let Some(reason) = absent.filter(|_| explicit < nodes) {
        *counts.entry(reason.to_owned()).or_default() += nodes - explicit;
    }
    let mut lines: Vec<String> =
        counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    // As text: ten of something come before two of something else.
    lines.sort();
    let head = format!("0/{nodes} nodes are available:");
    if lines.is_empty() { head } else { format!("{head} {}.", lines.join(", ")) }
}

/// The same, where one reason about the pod itself settles it.
pub(crate) fn summary_for_all(nodes: usize, reason: &str) -> String {
    format!("0/{nodes} nodes are available: {reason}.")
}

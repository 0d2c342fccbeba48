//! What takes long: begun by a call, done when its time has come.
//!
//! ```text
//!   begin ──► running ──(due)──► settled: Succeeded, or Failed with an error
//!                │
//!                └──(a newer operation on the same resource)──► Canceled
//! ```

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use jiff::Timestamp;

use crate::answer::Refusal;
use crate::settings::Lro;

/// What happens to the resources when an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// They are there as they were asked for.
    Settle,
    /// They are gone.
    Remove,
}

/// How an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Succeeded,
    Failed,
    Canceled,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "InProgress",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: Method,
    /// IDs of resources in lower case.
    pub(crate) targets: Vec<String>,
    pub(crate) lro: Lro,
    pub(crate) effect: Effect,
    pub(crate) failure: Option<Refusal>,
    pub(crate) started: Timestamp,
    pub(crate) due: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) status: Status,
}

/// All operations since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    all: BTreeMap<String, Operation>,
    /// When those that run are due, with their IDs.
    running: BTreeSet<(Timestamp, String)>,
    /// Which operation runs on a resource.
    of: BTreeMap<String, String>,
    begun: u64,
}

impl Operations {
    pub(crate) fn begin(
        &mut self,
        method: &Method,
        targets: Vec<String>,
        lro: Lro,
        effect: Effect,
        failure: Option<Refusal>,
        now: Timestamp,
    ) -> String {
        self.begun += 1;
        let id = format!("00000000-0000-0000-0000-{:012x}", self.begun);
        for target in &targets {
            if let Some(older) = self.of.insert(target.clone(), id.clone()) {
                self.preempt(&older, target, now);
            }
        }
        let due = now.saturating_add(lro.takes).unwrap_or(Timestamp::MAX);
        self.running.insert((due, id.clone()));
        let operation = Operation {
            id: id.clone(),
            method: method.clone(),
            targets,
            lro,
            effect,
            failure,
            started: now,
            due,
            ended: None,
            status: Status::Running,
        };
        self.all.insert(id.clone(), operation);
        id
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Operation> {
        self.all.get(id)
    }

    pub(crate) fn forget(&mut self, id: &str) {
        self.all.remove(id);
    }

    /// The next operation that is due, now done; its effects are the caller's business.
    pub(crate) fn next_due(&mut self, now: Timestamp) -> Option<Operation> {
        let key = self.running.first().filter(|(due, _)| *due <= now)?.clone();
        self.running.remove(&key);
        let operation = self.all.get_mut(&key.1)?;
        operation.ended = Some(operation.due);
        operation.status = if operation.failure.is_some() { Status::Failed } else { Status::Succeeded };
        for target in &operation.targets {
            self.of.remove(target);
        }
        Some(operation.clone())
    }

    /// What runs on a resource will fail.
    pub(crate) fn spoil(&mut self, target: &str, failure: &Refusal) {
        let running = self.of.get(&target.to_ascii_lowercase()).and_then(|id| self.all.get_mut(id));
        if let Some(operation) = running {
            operation.failure = Some(failure.clone());
        }
    }

    /// A newer operation on a resource ends what runs there.
    fn preempt(&mut self, id: &str, target: &str, now: Timestamp) {
        let Some(operation) = self.all.get_mut(id) else { return };
        operation.targets.retain(|each| each != target);
        if !operation.targets.is_empty() {
            return;
        }
        operation.status = Status::Canceled;
        operation.ended = Some(now);
        operation.failure = Some(Refusal::new(
            409,
            "OperationPreempted",
            "Operation execution has been preempted by a more recent operation.",
        ));
        self.running.remove(&(operation.due, id.to_owned()));
    }
}

//! How jobs end, and when they go.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};

use super::{COMPONENT, Look};
use crate::action::Outcome;
use crate::object::Kind;
use crate::pod::Pod;
use crate::time::{after_seconds, time};

fn condition<'a>(status: &'a JobStatus, name: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == name && condition.status == "True")
}

pub(super) fn is_finished(job: &Job) -> bool {
    let status = job.status.as_ref();
    status.is_some_and(|status| {
        condition(status, "Complete").is_some() || condition(status, "Failed").is_some()
    })
}

/// Whether it is settled how the job ends, though pods are still on their way out.
pub(super) fn is_condemned(status: &JobStatus) -> bool {
    condition(status, "FailureTarget").is_some() || condition(status, "SuccessCriteriaMet").is_some()
}

pub(super) fn reason_of_condemned(status: &JobStatus) -> Option<(String, String)> {
    let target = condition(status, "FailureTarget")?;
    Some((target.reason.clone().unwrap_or_default(), target.message.clone().unwrap_or_default()))
}

/// Deletes the job when it has been finished for as long as it says.
pub(super) fn expire(job: &Job, spec: &JobSpec, now: Timestamp, outcome: &mut Outcome) {
    let Some(seconds) = spec.ttl_seconds_after_finished else { return };
    let Some(status) = &job.status else { return };
    let end = condition(status, "Complete").or_else(|| condition(status, "Failed"));
    let Some(end) = end.and_then(|condition| condition.last_transition_time.as_ref()) else { return };
    let due = after_seconds(end.0, i64::from(seconds));
    if due <= now {
        outcome.delete(Kind::Job, &job.metadata, None);
    } else {
        outcome.look_again(due);
    }
}

impl Look<'_> {
    /// Deletes what still runs; the job has ended once nothing is left and everything is counted.
    fn wind_down(&mut self, active: &[&Arc<Pod>], outcome: &mut Outcome) -> bool {
        for pod in active {
            outcome.delete(Kind::Pod, &pod.metadata, None);
        }
        let uncounted = self.uncounted();
        let settled = active.is_empty() && uncounted == (0, 0) && self.status.terminating == Some(0);
        if settled {
            self.status.ready = Some(0);
        }
        settled
    }

    pub(super) fn fail(
        &mut self,
        (reason, message): (&str, &str),
        active: &[&Arc<Pod>],
        outcome: &mut Outcome,
    ) {
        self.set("FailureTarget", reason, message);
        if self.wind_down(active, outcome) {
            self.set("Failed", reason, message);
            let about = (Kind::Job, &self.job.metadata);
            outcome.note(about, COMPONENT, "BackoffLimitExceeded", message.to_owned());
        }
    }

    pub(super) fn complete(&mut self, active: &[&Arc<Pod>], outcome: &mut Outcome) {
        let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
        self.set("SuccessCriteriaMet", reason, message);
        if self.wind_down(active, outcome) {
            self.set("Complete", reason, message);
            self.status.completion_time = Some(time(self.now));
            outcome.note((Kind::Job, &self.job.metadata), COMPONENT, "Completed", "Job completed".to_owned());
        }
    }

    fn set(&mut self, name: &str, reason: &str, message: &str) {
        if condition(&self.status, name).is_some() {
            return;
        }
        let now = Some(time(self.now));
        self.status.conditions.get_or_insert_default().push(JobCondition {
            type_: name.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_probe_time: now.clone(),
            last_transition_time: now,
        });
    }

    pub(super) fn set_suspended(&mut self, suspended: bool, outcome: &mut Outcome) {
        let state = if suspended { "True" } else { "False" };
        let found =
            self.status.conditions.iter_mut().flatten().find(|condition| condition.type_ == "Suspended");
        if found.as_ref().is_some_and(|condition| condition.status == state) || found.is_none() && !suspended
        {
            return;
        }
        let (reason, message) =
            if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        let now = Some(time(self.now));
        let new = JobCondition {
            type_: "Suspended".to_owned(),
            status: state.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_probe_time: now.clone(),
            last_transition_time: now,
        };
        match found {
            Some(condition) => *condition = new,
            None => self.status.conditions.get_or_insert_default().push(new),
        }
        let reason = if suspended { "Suspended" } else { "Resumed" };
        outcome.note((Kind::Job, &self.job.metadata), COMPONENT, reason, message.to_owned());
    }
}

//! Jobs: pods that run to their end, counted once each.
//!
//! A finalizer keeps every pod until it is counted.
//! Counting takes three writes, so that none is counted twice: the uid goes into the status as not yet
//! counted, the finalizer goes from the pod, and then the uid turns into a count.

mod finish;
mod indexes;
mod pods;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::names;
use crate::object::{Key, Kind, has_finalizer, uid};
use crate::pod::{Pod, is_active, is_ready, is_terminating, phase};
use crate::replicaset::count;
use crate::time::{after_seconds, time};

const COMPONENT: &str = "job-controller";

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(job) = cache.jobs.get(key) else { return outcome };
    let Some(spec) = &job.spec else { return outcome };
    let pods: Vec<&Arc<Pod>> = cache.owned_pods(uid(&job.metadata)).collect();
    if job.metadata.deletion_timestamp.is_some() || finish::is_finished(job) {
        release(&pods, &mut outcome);
        if job.metadata.deletion_timestamp.is_none() {
            finish::expire(job, spec, now, &mut outcome);
        }
        return outcome;
    }
    let mut look = Look { job, spec, pods, now, status: job.status.clone().unwrap_or_default() };
    look.step(&mut outcome);
    let old = job.status.clone().unwrap_or_default();
    outcome.status(Kind::Job, &job.metadata, &old, &look.status);
    outcome
}

/// Pods of a job that has ended are not held any more.
fn release(pods: &[&Arc<Pod>], outcome: &mut Outcome) {
    for pod in pods.iter().filter(|pod| has_finalizer(&pod.metadata, names::JOB_TRACKING)) {
        remove_finalizer(pod, outcome);
    }
}

fn remove_finalizer(pod: &Pod, outcome: &mut Outcome) {
    let left: Vec<_> =
        pod.metadata.finalizers.iter().flatten().filter(|name| *name != names::JOB_TRACKING).collect();
    let body = json!({"metadata": {
        "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version, "finalizers": left,
    }});
    outcome.patch(Kind::Pod, &pod.metadata, body);
}

/// One look at a job.
struct Look<'a> {
    job: &'a Job,
    spec: &'a JobSpec,
    pods: Vec<&'a Arc<Pod>>,
    now: Timestamp,
    status: JobStatus,
}

impl Look<'_> {
    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn step(&mut self, outcome: &mut Outcome) {
        let suspended = self.spec.suspend == Some(true);
        if self.status.start_time.is_none() && !suspended {
            self.status.start_time = Some(time(self.now));
        }
        self.track(outcome);
        let active: Vec<&Arc<Pod>> = self.pods.iter().copied().filter(|pod| is_active(pod)).collect();
        self.status.active = (!active.is_empty()).then(|| count(active.len()));
        self.status.ready = Some(count(active.iter().filter(|pod| is_ready(pod)).count()));
        let terminating = self.pods.iter().filter(|pod| is_terminating(pod)).count();
        self.status.terminating = Some(count(terminating));
        if self.ends(&active, outcome) || finish::is_condemned(&self.status) {
            return;
        }
        if suspended {
            for pod in &active {
                outcome.delete(Kind::Pod, &pod.metadata, None);
            }
            self.set_suspended(true, outcome);
            self.status.start_time = None;
            return;
        }
        self.set_suspended(false, outcome);
        self.manage(&active, outcome);
    }

    /// Counts the pods that have ended.
    fn track(&mut self, outcome: &mut Outcome) {
        let mut uncounted = self.status.uncounted_terminated_pods.take().unwrap_or_default();
        let mut noted: BTreeSet<String> = BTreeSet::new();
        for (list, is_success) in [(&mut uncounted.succeeded, true), (&mut uncounted.failed, false)] {
            let Some(uids) = list.take() else { continue };
            let mut left = Vec::new();
            for id in uids {
                let pod = self.pods.iter().find(|pod| uid(&pod.metadata) == id);
                match pod.filter(|pod| has_finalizer(&pod.metadata, names::JOB_TRACKING)) {
                    Some(pod) => {
                        remove_finalizer(pod, outcome);
                        noted.insert(id.clone());
                        left.push(id);
                    }
                    None if is_success => *self.status.succeeded.get_or_insert(0) += 1,
                    None => *self.status.failed.get_or_insert(0) += 1,
                }
            }
            *list = (!left.is_empty()).then_some(left);
        }
        let ended = self.pods.iter().filter(|pod| has_finalizer(&pod.metadata, names::JOB_TRACKING));
        for pod in ended.filter(|pod| !noted.contains(uid(&pod.metadata))) {
            let list = match phase(pod) {
                "Succeeded" if self.counts_success(pod) => &mut uncounted.succeeded,
                // A pod that was deleted before its node saw it never says how it ended.
                "Pending" | "" if pod.metadata.deletion_timestamp.is_some() && !is_bound(pod) => {
                    &mut uncounted.failed
                }
                "Failed" => &mut uncounted.failed,
                _ => continue,
            };
            list.get_or_insert_default().push(uid(&pod.metadata).to_owned());
        }
        if self.is_indexed() {
            self.status.completed_indexes = self.completed_indexes();
        }
        self.status.uncounted_terminated_pods = Some(uncounted);
    }

    fn counts_success(&self, pod: &Pod) -> bool {
        !self.is_indexed() || indexes::index_of(pod).is_some()
    }

    fn uncounted(&self) -> (usize, usize) {
        let none = UncountedTerminatedPods::default();
        let uncounted = self.status.uncounted_terminated_pods.as_ref().unwrap_or(&none);
        let number = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
        (number(&uncounted.succeeded), number(&uncounted.failed))
    }

    fn succeeded(&self) -> i32 {
        self.status.succeeded.unwrap_or(0) + count(self.uncounted().0)
    }

    fn failed(&self) -> i32 {
        self.status.failed.unwrap_or(0) + count(self.uncounted().1)
    }

    /// Whether the job has come to its end, and what that takes.
    fn ends(&mut self, active: &[&Arc<Pod>], outcome: &mut Outcome) -> bool {
        if let Some(seconds) = self.spec.active_deadline_seconds
            && let Some(start) = &self.status.start_time
        {
            let due = after_seconds(start.0, seconds);
            if due <= self.now {
                let why = ("DeadlineExceeded", "Job was active longer than specified deadline");
                self.fail(why, active, outcome);
                return true;
            }
            outcome.look_again(due);
        }
        let condemned = finish::reason_of_condemned(&self.status);
        if let Some((reason, message)) = condemned {
            self.fail((&reason, &message), active, outcome);
            return true;
        }
        if self.failed() > self.spec.backoff_limit.unwrap_or(6) {
            let why = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
            self.fail(why, active, outcome);
            return true;
        }
        let done = match self.spec.completions {
            Some(completions) => self.completed() >= completions,
            // Without a number of completions, one success and no pod left is the end.
            None => self.succeeded() > 0 && active.is_empty(),
        };
        if done {
            self.complete(active, outcome);
        }
        done
    }
}

fn is_bound(pod: &Pod) -> bool {
    crate::cache::node_of(pod).is_some()
}

#[cfg(test)]
mod tests;

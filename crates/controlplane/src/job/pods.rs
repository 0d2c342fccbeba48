//! The pods of a job: how many, and what is in them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{COMPONENT, Look};
use crate::action::Outcome;
use crate::names;
use crate::object::Kind;
use crate::pod::{Pod, is_terminating, phase};
use crate::template;
use crate::time::after;

/// How many pods are created before looking again.
const BURST: usize = 500;

/// The wait after the first failure of a pod; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);

const LONGEST_BACKOFF: Duration = Duration::from_mins(10);

impl Look<'_> {
    /// Brings the number of running pods to what is wanted.
    pub(super) fn manage(&self, active: &[&Arc<Pod>], outcome: &mut Outcome) {
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let wanted = match self.spec.completions {
            Some(completions) => parallelism.min(completions - self.completed()).max(0),
            // Without a number of completions, no pods follow the first success.
            None if self.succeeded() > 0 => i32::try_from(active.len()).unwrap_or(0).min(parallelism),
            None => parallelism,
        };
        let wanted = usize::try_from(wanted).unwrap_or(0);
        if active.len() > wanted {
            let mut pods = active.to_vec();
            pods.sort_by_key(|pod| {
                (phase(pod) == "Running", std::cmp::Reverse(pod.metadata.creation_timestamp.clone()))
            });
            for pod in pods.into_iter().take(active.len() - wanted) {
                outcome.delete(Kind::Pod, &pod.metadata, None);
            }
            return;
        }
        let waits_for_failed = self.spec.pod_replacement_policy.as_deref() == Some("Failed");
        let going =
            if waits_for_failed { self.pods.iter().filter(|pod| is_terminating(pod)).count() } else { 0 };
        let missing = wanted.saturating_sub(active.len() + going).min(BURST);
        if missing == 0 {
            return;
        }
        if let Some(when) = self.backoff().filter(|when| *when > self.now) {
            outcome.look_again(when);
            return;
        }
        self.create(missing, outcome);
    }

    /// When the next pod may be created, after failures.
    fn backoff(&self) -> Option<Timestamp> {
        let failures = u32::try_from(self.failed()).ok().filter(|failures| *failures > 0)?;
        let last =
            self.pods.iter().filter(|pod| phase(pod) == "Failed").filter_map(|pod| ended(pod)).max()?;
        let wait = FIRST_BACKOFF.saturating_mul(1 << (failures - 1).min(10)).min(LONGEST_BACKOFF);
        Some(after(last, wait))
    }

    fn create(&self, number: usize, outcome: &mut Outcome) {
        let namespace = self.job.metadata.namespace.as_deref().unwrap_or_default();
        let body = self.pod();
        if self.is_indexed() {
            for index in self.free_indexes(number) {
                outcome.create(Kind::Pod, namespace, &Arc::new(self.indexed(&body, index)));
            }
        } else {
            let body = Arc::new(body);
            for _ in 0..number {
                outcome.create(Kind::Pod, namespace, &body);
            }
        }
        let message = format!("Created {number} pod(s)");
        outcome.note((Kind::Job, &self.job.metadata), COMPONENT, "SuccessfulCreate", message);
    }

    fn pod(&self) -> Value {
        let mut pod = template::pod(&self.spec.template, Kind::Job, &self.job.metadata);
        let mut finalizers: Vec<Value> =
            pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        finalizers.push(json!(names::JOB_TRACKING));
        pod["metadata"]["finalizers"] = json!(finalizers);
        pod
    }

    fn indexed(&self, body: &Value, index: i32) -> Value {
        let mut pod = body.clone();
        let text = index.to_string();
        let name = self.job.metadata.name.as_deref().unwrap_or_default();
        pod["metadata"]["annotations"][names::JOB_INDEX] = json!(text);
        pod["metadata"]["labels"][names::JOB_INDEX] = json!(text);
        pod["metadata"]["generateName"] = json!(format!("{name}-{index}-"));
        pod["spec"]["hostname"] = json!(format!("{name}-{index}"));
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {
            "fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{}']", names::JOB_INDEX)},
        }});
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                let mut env = container["env"].as_array().cloned().unwrap_or_default();
                env.push(variable.clone());
                container["env"] = json!(env);
            }
        }
        pod
    }
}

/// When the last container of a pod ended.
fn ended(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.iter().flatten();
    let ends = statuses.filter_map(|status| status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    ends.map(|time| time.0).max()
}

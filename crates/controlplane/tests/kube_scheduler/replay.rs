//! What kube-scheduler did, and whether ours agrees.

use std::sync::Arc;

use controlplane::scheduler::{Decision, Key, Scheduler};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One cluster with everything that happened in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Recording {
    pub(crate) seed: u64,
    /// As stored by the API server.
    pub(crate) objects: Vec<Value>,
    pub(crate) steps: Vec<Step>,
}

/// One pod that came to be scheduled.
#[derive(Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) pod: Value,
    pub(crate) verdict: Verdict,
    /// Objects that changed afterwards; those without a `spec` or alike are gone.
    pub(crate) after: Vec<Value>,
}

/// What kube-scheduler said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Bound(String),
    Refused { reason: String, message: String, nominated: Option<String>, victims: Vec<Key> },
}

pub(crate) fn key(object: &Value) -> Key {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (part("namespace"), part("name"))
}

/// Marks an object that is gone.
pub(crate) const GONE: &str = "gone";

/// Tells our scheduler about an object.
pub(crate) fn observe(scheduler: &mut Scheduler, object: &Value) {
    let key = key(object);
    let name = key.1.clone();
    match object["kind"].as_str().unwrap_or_default() {
        "Pod" => scheduler.observe_pod(&key, parse(object)),
        "Node" => scheduler.observe_node(&name, parse(object)),
        "Namespace" => scheduler.observe_namespace(&name, parse(object)),
        "PersistentVolumeClaim" => scheduler.observe_claim(&key, parse(object)),
        "PersistentVolume" => scheduler.observe_volume(&name, parse(object)),
        "StorageClass" => scheduler.observe_storage_class(&name, parse(object)),
        "CSINode" => scheduler.observe_csi_node(&name, parse(object)),
        "PodDisruptionBudget" => scheduler.observe_budget(&key, parse(object)),
        _ => {}
    }
}

fn parse<T: DeserializeOwned>(object: &Value) -> Option<Arc<T>> {
    if object[GONE] == true {
        return None;
    }
    Some(Arc::new(serde_json::from_value(object.clone()).expect("the API server stores valid objects")))
}

/// Lets ours decide about a pod; says how it differs from the verdict.
pub(crate) fn judge(scheduler: &mut Scheduler, pod: &Value, verdict: &Verdict) -> Result<(), String> {
    let key = key(pod);
    observe(scheduler, pod);
    let feasible = scheduler.feasible(&key);
    let decisions: Vec<Decision> = std::iter::from_fn(|| scheduler.next()).collect();
    let mine = decisions.iter().find(|decision| match decision {
        Decision::Bind { pod, .. }
        | Decision::BindVolumes { pod, .. }
        | Decision::Unschedulable { pod, .. } => *pod == key,
    });
    match (mine, verdict) {
        (Some(Decision::Bind { node, .. } | Decision::BindVolumes { node, .. }), Verdict::Bound(theirs)) => {
            let known = feasible.contains(node) && feasible.contains(theirs);
            known.then_some(()).ok_or_else(|| format!("bound to {theirs}, ours has {node} of {feasible:?}"))
        }
        (
            Some(Decision::Unschedulable { reason, message, nominated, victims, .. }),
            Verdict::Refused { .. },
        ) => {
            let mut victims = victims.clone();
            victims.sort();
            let mine = Verdict::Refused {
                reason: reason.as_str().to_owned(),
                message: message.clone(),
                nominated: nominated.clone(),
                victims,
            };
            (mine == *verdict).then_some(()).ok_or_else(|| format!("theirs: {verdict:#?}\nours: {mine:#?}"))
        }
        // A gated pod has its condition from the API server.
        (None, Verdict::Refused { reason, .. }) if reason == "SchedulingGated" => Ok(()),
        (mine, verdict) => Err(format!("theirs: {verdict:#?}\nours: {mine:#?}, possible: {feasible:?}")),
    }
}

/// Goes through a recording; returns every disagreement.
pub(crate) fn replay(recording: &Recording) -> Vec<String> {
    let mut scheduler = Scheduler::new();
    for object in &recording.objects {
        observe(&mut scheduler, object);
    }
    let mut disagreements = vec![];
    for step in &recording.steps {
        if let Err(difference) = judge(&mut scheduler, &step.pod, &step.verdict) {
            let seed = recording.seed;
            disagreements.push(format!(
                "cluster {seed}, pod {:?}: {difference}\n{}",
                key(&step.pod),
                step.pod["spec"]
            ));
        }
        for object in &step.after {
            observe(&mut scheduler, object);
        }
    }
    disagreements
}

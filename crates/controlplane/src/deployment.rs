//! Deployments: one ReplicaSet for each template, replicas moving from the old ones to the new one.

mod history;
mod proportional;
mod rolling;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::action::Outcome;
use crate::cache::Cache;
use crate::object::{Key, Kind, annotation, controlled_by, uid};
use crate::pod::is_finished;
use crate::{names, selector, template};

const COMPONENT: &str = "deployment-controller";

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(deployment) = cache.deployments.get(key) else { return outcome };
    let Some(spec) = &deployment.spec else { return outcome };
    let selects_all = spec.selector.match_labels.is_none() && spec.selector.match_expressions.is_none();
    if selects_all {
        return outcome;
    }
    let mut rollout = Rollout::new(cache, deployment, spec, now);
    if deployment.metadata.deletion_timestamp.is_none() {
        rollout.adopt();
        rollout.step();
    }
    status::decide(&mut rollout);
    outcome = rollout.outcome;
    outcome
}

/// A ReplicaSet with the replicas it is going to have.
#[derive(Clone)]
struct Set {
    object: Arc<ReplicaSet>,
    replicas: i32,
}

impl Set {
    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    fn template_revision(&self) -> i64 {
        annotation(&self.object.metadata, names::REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn available(&self) -> i32 {
        self.object.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
    }

    fn actual(&self) -> i32 {
        self.object.status.as_ref().map_or(0, |status| status.replicas)
    }
}

/// One look at a deployment.
struct Rollout<'a> {
    cache: &'a Cache,
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    now: Timestamp,
    /// The set of the current template; it exists or is about to be created.
    new: Option<Set>,
    /// The sets of other templates, oldest first.
    old: Vec<Set>,
    /// The name of the set of the current template, if it is created in this step.
    creates: Option<String>,
    outcome: Outcome,
}

impl<'a> Rollout<'a> {
    fn new(cache: &'a Cache, deployment: &'a Deployment, spec: &'a DeploymentSpec, now: Timestamp) -> Self {
        let owner = uid(&deployment.metadata);
        let mut sets: Vec<Set> = cache
            .owned(owner, Kind::ReplicaSet)
            .filter_map(|key| cache.replica_sets.get(key))
            .filter(|set| controlled_by(&set.metadata, owner))
            .map(|set| Set {
                replicas: set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
                object: Arc::clone(set),
            })
            .collect();
        let age = |set: &Set| (set.object.metadata.creation_timestamp.clone(), set.name().to_owned());
        sets.sort_by_key(age);
        let current = |set: &Set| {
            let template = set.object.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.is_some_and(|of| template::same(of, &spec.template))
        };
        let new = sets.iter().position(current).map(|at| sets.remove(at));
        Self { cache, deployment, spec, now, new, old: sets, creates: None, outcome: Outcome::default() }
    }

    fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    fn recreates(&self) -> bool {
        self.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
    }

    /// How many replicas may be missing and how many may be too many while rolling.
    fn bounds(&self) -> (i32, i32) {
        if self.recreates() {
            return (0, 0);
        }
        let quarter = IntOrString::String("25%".to_owned());
        let rolling = self.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).unwrap_or(&quarter);
        let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).unwrap_or(&quarter);
        let surge = selector::scaled(surge, self.replicas(), true);
        let unavailable = selector::scaled(unavailable, self.replicas(), false).min(self.replicas());
        // Neither more nor fewer would never get anywhere.
        if surge == 0 && unavailable == 0 { (1, 0) } else { (unavailable, surge) }
    }

    fn all(&self) -> impl Iterator<Item = &Set> {
        self.old.iter().chain(&self.new)
    }

    fn total(&self) -> i32 {
        self.all().map(|set| set.replicas).sum()
    }

    fn adopt(&mut self) {
        let namespace = self.deployment.metadata.namespace.as_deref().unwrap_or_default();
        let cache = self.cache;
        for set in cache.orphans(Kind::ReplicaSet, namespace).filter_map(|key| cache.replica_sets.get(key)) {
            let ours = selector::matches(&self.spec.selector, set.metadata.labels.as_ref());
            if ours && set.metadata.deletion_timestamp.is_none() {
                let owner = template::owner_reference(Kind::Deployment, &self.deployment.metadata);
                let body = json!({"metadata": {"uid": set.metadata.uid, "ownerReferences": [owner]}});
                self.outcome.patch(Kind::ReplicaSet, &set.metadata, body);
            }
        }
    }

    /// One step of the rollout; the answers to its writes bring the next one.
    fn step(&mut self) {
        if self.spec.paused == Some(true) {
            self.ensure_revision();
            self.scale_in_proportion();
            return;
        }
        if self.is_scaled() {
            self.ensure_revision();
            self.scale_in_proportion();
            return;
        }
        if self.recreates() {
            self.recreate();
        } else {
            self.ensure_new_set();
            self.roll();
        }
        if status::is_complete(self) {
            self.clean_up();
        }
    }

    /// Whether the user changed the number of replicas since the sets were last written.
    fn is_scaled(&self) -> bool {
        let wanted = self.replicas().to_string();
        self.all()
            .filter(|set| set.replicas > 0)
            .filter_map(|set| annotation(&set.object.metadata, names::DESIRED_REPLICAS))
            .any(|desired| desired != wanted)
    }

    fn recreate(&mut self) {
        let scaled = (0..self.old.len()).filter(|at| self.old[*at].replicas > 0).collect::<Vec<_>>();
        for at in &scaled {
            self.scale_old(*at, 0);
        }
        if !scaled.is_empty() || self.old_pods_run() {
            return;
        }
        self.ensure_new_set();
        if self.new.is_some() && self.creates.is_none() {
            self.scale_new(self.replicas());
        }
    }

    fn old_pods_run(&self) -> bool {
        self.old.iter().any(|set| {
            let owner = uid(&set.object.metadata);
            self.cache.owned_pods(owner).any(|pod| !is_finished(pod))
        })
    }

    fn scale_old(&mut self, at: usize, replicas: i32) {
        let Some(set) = self.old.get(at).cloned() else { return };
        if set.replicas != replicas {
            self.write_scale(&set, replicas);
            self.old[at].replicas = replicas;
        }
    }

    fn scale_new(&mut self, replicas: i32) {
        let Some(set) = self.new.clone() else { return };
        if set.replicas != replicas {
            self.write_scale(&set, replicas);
            if let Some(new) = &mut self.new {
                new.replicas = replicas;
            }
        }
    }

    fn write_scale(&mut self, set: &Set, replicas: i32) {
        let body = json!({
            "metadata": {"annotations": self.scale_annotations()},
            "spec": {"replicas": replicas},
        });
        self.outcome.patch(Kind::ReplicaSet, &set.object.metadata, body);
        let direction = if replicas > set.replicas { "up" } else { "down" };
        let message =
            format!("Scaled {direction} replica set {} from {} to {replicas}", set.name(), set.replicas);
        let about = (Kind::Deployment, &self.deployment.metadata);
        self.outcome.note(about, COMPONENT, "ScalingReplicaSet", message);
    }

    /// What the sets remember of the deployment, to notice that it was scaled.
    fn scale_annotations(&self) -> Value {
        let (_, surge) = self.bounds();
        json!({
            names::DESIRED_REPLICAS: self.replicas().to_string(),
            names::MAX_REPLICAS: (self.replicas() + surge).to_string(),
        })
    }
}

#[cfg(test)]
mod tests;

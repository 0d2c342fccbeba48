//! Pods of the workloads in cluster files: those that a Deployment, StatefulSet, Job and the like would have, as far as
//! the files do not have them already. Entry: [`complete`].
//!
//! What `kubectl get` printed has workloads and their pods; a manifest has workloads alone. Both are treated alike:
//! pods that are missing are made, as the workload's controller would make them. DaemonSets are not among them, because
//! their pods come with the nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::eligibility::is_active;
use crate::objects::collections::List;
use crate::objects::others::{JobSpec, PersistentVolumeClaimStatus, ReplicaSetSpec};
use crate::objects::pod::{ClaimSource, Phase, Volume};
use crate::objects::{
    CronJob, Deployment, Job, Metadata, Objects, OwnerReference, PersistentVolumeClaim, Pod, PodTemplateSpec,
    ReplicaSet, ReplicationController,
};

/// The most pods that are made: no cluster is larger, and a typing error must not cost all memory.
pub const MOST_PODS: usize = 100_000;

/// The label by which the pods of a Deployment's ReplicaSets are told apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Pods that were made for workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// Workloads with how many pods were made for each: `Deployment default/web`.
    pub made: Vec<(String, usize)>,
    /// Workloads whose pods cannot be made, with the field, the value and what is accepted.
    pub refused: Vec<String>,
}

/// Adds the pods that the workloads of some files would have and the files lack, with the claims for their volumes.
pub fn complete(objects: &mut Objects) -> Completed {
    let known = Known::of(objects);
    let mut maker = Maker::new(objects);
    for set in &objects.deployments {
        let owner = Owner::new("Deployment", &set.metadata);
        maker.deployment(owner, set, known.of_deployment(&set.metadata));
    }
    for set in objects.replica_sets.iter().filter(|set| !known.has_deployment(&set.metadata)) {
        maker.replica_set(
            Owner::new("ReplicaSet", &set.metadata),
            set,
            known.of_owner("ReplicaSet", &set.metadata),
        );
    }
    for set in &objects.replication_controllers {
        let owner = Owner::new("ReplicationController", &set.metadata);
        maker.replication_controller(owner, set, known.of_owner("ReplicationController", &set.metadata));
    }
    for set in &objects.stateful_sets {
        maker.stateful_set(Owner::new("StatefulSet", &set.metadata), set);
    }
    for job in &objects.jobs {
        maker.job(Owner::new("Job", &job.metadata), job, known.of_owner("Job", &job.metadata));
    }
    for job in &objects.cron_jobs {
        maker.cron_job(Owner::new("CronJob", &job.metadata), job);
    }
    let Maker { pods, claims, replica_sets, completed, .. } = maker;
    objects.pods.extend(pods);
    objects.persistent_volume_claims.extend(claims);
    objects.replica_sets.extend(replica_sets);
    completed
}

/// Pods that a workload has in the files.
#[derive(Clone, Copy, Debug, Default)]
struct Present {
    active: usize,
    succeeded: usize,
}

/// What the files have of pods, by their owners. Owners are known by their names: files written by hand have no UIDs.
#[derive(Default)]
struct Known {
    by_owner: BTreeMap<[Box<str>; 3], Present>,
    by_deployment: BTreeMap<[Box<str>; 2], Present>,
    deployments: BTreeSet<[Box<str>; 2]>,
}

impl Known {
    fn of(objects: &Objects) -> Self {
        let key = |metadata: &Metadata, name: &str| [metadata.namespace().into(), name.into()];
        let deployments =
            objects.deployments.iter().map(|set| key(&set.metadata, &set.metadata.name)).collect();
        let mut known = Self { deployments, ..Self::default() };
        let of_sets: BTreeMap<[Box<str>; 2], &str> = objects
            .replica_sets
            .iter()
            .filter_map(|set| Some((key(&set.metadata, &set.metadata.name), deployment_of(&set.metadata)?)))
            .collect();
        for pod in &objects.pods {
            let Some(owner) = pod.metadata.controller() else { continue };
            let namespace = pod.metadata.namespace();
            let present =
                known.by_owner.entry([namespace.into(), owner.kind.clone(), owner.name.clone()]).or_default();
            present.count(pod);
            if &*owner.kind != "ReplicaSet" {
                continue;
            }
            // Where the ReplicaSet is not in the files its name tells: it ends with what the pods bear.
            let hash = pod.metadata.labels.text(TEMPLATE_HASH);
            let by_name = || owner.name.strip_suffix(hash)?.strip_suffix('-').filter(|_| !hash.is_empty());
            let found = of_sets.get(&key(&pod.metadata, &owner.name)).copied().or_else(by_name);
            if let Some(name) = found {
                known.by_deployment.entry(key(&pod.metadata, name)).or_default().count(pod);
            }
        }
        known
    }

    fn of_owner(&self, kind: &str, metadata: &Metadata) -> Present {
        let key = [metadata.namespace().into(), kind.into(), metadata.name.clone()];
        self.by_owner.get(&key).copied().unwrap_or_default()
    }

    fn of_deployment(&self, metadata: &Metadata) -> Present {
        let key = [metadata.namespace().into(), metadata.name.clone()];
        self.by_deployment.get(&key).copied().unwrap_or_default()
    }

    /// Whether the files have the Deployment of a ReplicaSet, so that the pods are its business.
    fn has_deployment(&self, set: &Metadata) -> bool {
        deployment_of(set)
            .is_some_and(|name| self.deployments.contains(&[set.namespace().into(), name.into()]))
    }
}

impl Present {
    fn count(&mut self, pod: &Pod) {
        self.active += usize::from(is_active(pod));
        self.succeeded += usize::from(pod.status.phase == Phase::Succeeded);
    }
}

fn deployment_of(set: &Metadata) -> Option<&str> {
    set.controller().filter(|owner| &*owner.kind == "Deployment").map(|owner| &*owner.name)
}

/// A workload, as its pods and messages name it.
#[derive(Clone, Copy)]
struct Owner<'a> {
    kind: &'static str,
    metadata: &'a Metadata,
}

impl<'a> Owner<'a> {
    const fn new(kind: &'static str, metadata: &'a Metadata) -> Self {
        Self { kind, metadata }
    }

    fn shown(self) -> String {
        format!("{} {}/{}", self.kind, self.metadata.namespace(), self.metadata.name)
    }

    fn reference(self) -> OwnerReference {
        let api_version = match self.kind {
            "ReplicationController" => "v1",
            "Job" | "CronJob" => "batch/v1",
            _ => "apps/v1",
        };
        OwnerReference {
            api_version: api_version.into(),
            kind: self.kind.into(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: true,
        }
    }
}

/// Makes pods.
#[derive(Default)]
struct Maker {
    pods: Vec<Pod>,
    claims: Vec<PersistentVolumeClaim>,
    replica_sets: Vec<ReplicaSet>,
    /// Names that are taken, by namespace.
    names: BTreeSet<[Box<str>; 2]>,
    claim_names: BTreeSet<[Box<str>; 2]>,
    completed: Completed,
}

impl Maker {
    fn new(objects: &Objects) -> Self {
        let key = |metadata: &Metadata| [metadata.namespace().into(), metadata.name.clone()];
        Self {
            names: objects.pods.iter().map(|pod| key(&pod.metadata)).collect(),
            claim_names: objects.persistent_volume_claims.iter().map(|claim| key(&claim.metadata)).collect(),
            ..Self::default()
        }
    }

    fn deployment(&mut self, owner: Owner<'_>, set: &Deployment, present: Present) {
        let wanted = count(set.spec.replicas).saturating_sub(present.active);
        // Its pods belong to a ReplicaSet, by whose selector the scheduler spreads them.
        let metadata = Metadata { uid: Box::default(), ..named(owner.metadata) };
        let made = self.some(owner, Owner::new("ReplicaSet", &metadata), &set.spec.template, wanted);
        if made > 0 {
            let spec = ReplicaSetSpec {
                selector: set.spec.selector.clone(),
                replicas: set.spec.replicas,
                ..ReplicaSetSpec::default()
            };
            self.replica_sets.push(ReplicaSet { metadata, spec });
        }
    }

    fn replica_set(&mut self, owner: Owner<'_>, set: &ReplicaSet, present: Present) {
        let wanted = count(set.spec.replicas).saturating_sub(present.active);
        self.some(owner, owner, &template(set.spec.template.as_deref()), wanted);
    }

    fn replication_controller(&mut self, owner: Owner<'_>, set: &ReplicationController, present: Present) {
        let wanted = count(set.spec.replicas).saturating_sub(present.active);
        self.some(owner, owner, &template(set.spec.template.as_deref()), wanted);
    }

    /// A Job that is done needs no pods; the last ones run together only as far as they must.
    fn job(&mut self, owner: Owner<'_>, job: &Job, present: Present) {
        let is_true = |kind: &str| {
            job.status
                .conditions
                .iter()
                .any(|condition| &*condition.kind == kind && &*condition.status == "True")
        };
        if is_true("Complete") || is_true("Failed") {
            return;
        }
        let succeeded = present.succeeded.max(usize::try_from(job.status.succeeded).unwrap_or_default());
        let wanted = at_once(&job.spec, succeeded).saturating_sub(present.active);
        self.some(owner, owner, &job.spec.template, wanted);
    }

    /// One run of a CronJob that no cluster has yet; the Jobs of one that runs already are in the files themselves.
    fn cron_job(&mut self, owner: Owner<'_>, job: &CronJob) {
        if owner.metadata.uid.is_empty() && !job.spec.suspend {
            let spec = &job.spec.job_template.spec;
            self.some(owner, owner, &spec.template, at_once(spec, 0));
        }
    }

    fn stateful_set(&mut self, owner: Owner<'_>, set: &ReplicaSet) {
        let namespace: Box<str> = owner.metadata.namespace().into();
        let first = count(Some(set.spec.ordinals.start));
        let name = |number: usize| format!("{}-{number}", owner.metadata.name);
        let numbers = first..first.saturating_add(count(set.spec.replicas));
        let missing =
            numbers.filter(|number| !self.names.contains(&[namespace.clone(), name(*number).into()]));
        let missing: Vec<usize> = missing.take(MOST_PODS + 1).collect();
        let template = template(set.spec.template.as_deref());
        if !self.may_make(owner, &template, missing.len()) {
            return;
        }
        for number in &missing {
            let name = name(*number);
            let mut pod = pod(owner, owner, &template, &name);
            let own = &set.spec.volume_claim_templates;
            let others =
                pod.spec.volumes.iter().filter(|it| own.iter().all(|own| own.metadata.name != it.name));
            let others: Vec<Volume> = others.cloned().collect();
            let claims = own.iter().map(|own| self.claim(&namespace, own, &name));
            pod.spec.volumes = others.into_iter().chain(claims).collect();
            self.names.insert([namespace.clone(), name.into()]);
            self.pods.push(pod);
        }
        self.completed.made.push((owner.shown(), missing.len()));
    }

    /// The volume that a pod of a StatefulSet has by a template. The claim for it is made unless there is one.
    fn claim(&mut self, namespace: &str, template: &PersistentVolumeClaim, pod: &str) -> Volume {
        let name: Box<str> = format!("{}-{pod}", template.metadata.name).into();
        if self.claim_names.insert([namespace.into(), name.clone()]) {
            self.claims.push(PersistentVolumeClaim {
                metadata: Metadata {
                    name: name.clone(),
                    namespace: namespace.into(),
                    ..template.metadata.clone()
                },
                spec: template.spec.clone(),
                status: PersistentVolumeClaimStatus::default(),
            });
        }
        let source = ClaimSource { claim_name: name };
        Volume {
            name: template.metadata.name.clone(),
            persistent_volume_claim: Some(source),
            ephemeral: None,
        }
    }

    /// Makes pods that have numbers for names, and says how many.
    fn some(
        &mut self,
        owner: Owner<'_>,
        parent: Owner<'_>,
        template: &PodTemplateSpec,
        wanted: usize,
    ) -> usize {
        if !self.may_make(owner, template, wanted) {
            return 0;
        }
        let namespace: Box<str> = owner.metadata.namespace().into();
        let mut numbers = 1..;
        for _ in 0..wanted {
            let names = numbers.by_ref().map(|number: usize| format!("{}-{number}", owner.metadata.name));
            let mut free =
                names.filter(|name| !self.names.contains(&[namespace.clone(), name.as_str().into()]));
            let Some(name) = free.next() else { break };
            self.names.insert([namespace.clone(), name.as_str().into()]);
            self.pods.push(pod(owner, parent, template, &name));
        }
        self.completed.made.push((owner.shown(), wanted));
        wanted
    }

    /// Whether pods are to be made. Says so if they cannot be.
    fn may_make(&mut self, owner: Owner<'_>, template: &PodTemplateSpec, wanted: usize) -> bool {
        if wanted == 0 || owner.metadata.is_deleting() {
            return false;
        }
        let why = if template.spec.containers.is_empty() {
            "spec.template.spec.containers: empty; expected at least one container".to_owned()
        } else if self.pods.len() + wanted > MOST_PODS {
            format!("it has too many pods; plans are made for at most {MOST_PODS} in all")
        } else {
            return true;
        };
        self.completed.refused.push(format!("{}: {why}", owner.shown()));
        false
    }
}

/// What Kubernetes makes of a number that may be missing.
fn count(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or_default()
}

/// How many pods of a Job run at the same time.
fn at_once(spec: &JobSpec, succeeded: usize) -> usize {
    if spec.suspend {
        return 0;
    }
    match spec.completions {
        Some(completions) => count(Some(completions)).saturating_sub(succeeded).min(count(spec.parallelism)),
        // Without a number, one that succeeded says that there is nothing left to do.
        None if succeeded > 0 => 0,
        None => count(spec.parallelism),
    }
}

fn template(template: Option<&PodTemplateSpec>) -> PodTemplateSpec {
    template.cloned().unwrap_or_default()
}

/// As much of a workload's metadata as names it.
fn named(metadata: &Metadata) -> Metadata {
    Metadata { name: metadata.name.clone(), namespace: metadata.namespace().into(), ..Metadata::default() }
}

fn pod(owner: Owner<'_>, parent: Owner<'_>, template: &PodTemplateSpec, name: &str) -> Pod {
    let metadata = Metadata {
        name: name.into(),
        namespace: owner.metadata.namespace().into(),
        labels: template.metadata.labels.clone(),
        owner_references: List::from_iter([parent.reference()]),
        ..Metadata::default()
    };
    Pod { metadata, spec: template.spec.clone(), ..Pod::default() }
}

#[cfg(test)]
mod tests;

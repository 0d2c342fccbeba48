//! A state made of the objects of files, for those who only plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::provider::Provider;

use super::kind::{Object, StatefulSet};
use super::{Seen, State};
use crate::eligibility::unseen_pending;
use crate::objects::pod::Scheduling;
use crate::objects::{Metadata, Objects, PersistentVolumeClaim, Pod};
use crate::volumes::awaited_on;

/// Files written by hand need not say in which namespace things are that refer to each other.
const NAMESPACE: &str = "default";

fn placed(metadata: &mut Metadata) {
    if metadata.namespace.is_empty() {
        metadata.namespace = NAMESPACE.into();
    }
}

/// Nor need they say that pods wait: those without a node that no scheduler has looked at do.
fn seen(mut pod: Pod, claims: &BTreeMap<(Box<str>, Box<str>), PersistentVolumeClaim>) -> Pod {
    let scheduling = &pod.status.conditions.scheduling;
    let claim = |namespace: &str, name: &str| claims.get(&(namespace.into(), name.into()));
    if pod.spec.node_name.is_empty()
        && scheduling.is_none()
        && unseen_pending(&pod).is_ok()
        && awaited_on(&pod, claim).is_none()
    {
        pod.status.conditions.scheduling = Some(Scheduling::Unschedulable);
    }
    pod
}

impl State {
    /// The state of a cluster whose objects were read from files.
    pub fn of_files(mut objects: Objects, provider: Provider) -> Self {
        objects.deployments.iter_mut().for_each(|it| placed(&mut it.metadata));
        objects.pod_templates.iter_mut().for_each(|it| placed(&mut it.metadata));
        objects.replica_sets.iter_mut().for_each(|it| placed(&mut it.metadata));
        objects.stateful_sets.iter_mut().for_each(|it| placed(&mut it.metadata));
        for buffer in &mut objects.capacity_buffers {
            buffer.metadata.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
        }
        let mut state = Self::awaiting(provider, &[]);
        state.keeps_templates = !objects.capacity_buffers.is_empty();
        let Objects { pods, nodes, daemon_sets, namespaces, .. } = objects;
        let Objects { persistent_volumes, persistent_volume_claims, storage_classes, csi_nodes, .. } =
            objects;
        let Objects { pod_disruption_budgets, priority_classes, services, replica_sets, .. } = objects;
        let Objects { stateful_sets, replication_controllers, node_pools, node_claims, .. } = objects;
        let Objects { deployments, pod_templates, capacity_buffers, .. } = objects;
        let claims: BTreeMap<_, _> = persistent_volume_claims
            .iter()
            .filter(|it| it.spec.volume_name.is_empty())
            .map(|it| ((it.metadata.namespace().into(), it.metadata.name.clone()), it.clone()))
            .collect();
        let all = []
            .into_iter()
            .chain(namespaces.into_iter().map(|it| Object::Namespace(Arc::new(it))))
            .chain(priority_classes.into_iter().map(|it| Object::PriorityClass(Arc::new(it))))
            .chain(storage_classes.into_iter().map(|it| Object::StorageClass(Arc::new(it))))
            .chain(persistent_volumes.into_iter().map(|it| Object::PersistentVolume(Arc::new(it))))
            .chain(persistent_volume_claims.into_iter().map(|it| Object::PersistentVolumeClaim(Arc::new(it))))
            .chain(node_pools.into_iter().map(|it| Object::NodePool(Arc::new(it))))
            .chain(node_claims.into_iter().map(|it| Object::NodeClaim(Arc::new(it))))
            .chain(nodes.into_iter().map(|it| Object::Node(Arc::new(it))))
            .chain(csi_nodes.into_iter().map(|it| Object::CSINode(Arc::new(it))))
            .chain(pod_disruption_budgets.into_iter().map(|it| Object::PodDisruptionBudget(Arc::new(it))))
            .chain(services.into_iter().map(|it| Object::Service(Arc::new(it))))
            .chain(replica_sets.into_iter().map(|it| Object::ReplicaSet(Arc::new(it))))
            .chain(stateful_sets.into_iter().map(|it| Object::StatefulSet(Arc::new(StatefulSet(it)))))
            .chain(replication_controllers.into_iter().map(|it| Object::ReplicationController(Arc::new(it))))
            .chain(daemon_sets.into_iter().map(|it| Object::DaemonSet(Arc::new(it))))
            .chain(deployments.into_iter().map(|it| Object::Deployment(Arc::new(it))))
            .chain(pod_templates.into_iter().map(|it| Object::PodTemplate(Arc::new(it))))
            .chain(capacity_buffers.into_iter().map(|it| Object::CapacityBuffer(Arc::new(it))))
            .chain(pods.into_iter().map(|it| Object::Pod(Arc::new(seen(it, &claims)))));
        for object in all {
            state.observe(Seen::Applied(object));
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::rooms;
    use crate::eligibility::is_provisionable;
    use crate::file;

    /// The state of what is in some YAML documents.
    fn state(text: &str) -> State {
        let text = format!("---\n{text}");
        State::of_files(file::parse("cluster", text.as_bytes()).unwrap().objects, Provider::Kwok)
    }

    #[test]
    fn pods_that_no_scheduler_has_looked_at_wait() {
        let state = state(
            "{apiVersion: v1, kind: Pod, metadata: {name: unseen}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: bound}, spec: {nodeName: n}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: done}, status: {phase: Succeeded}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: held}, spec: {schedulingGates: [{name: g}]}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: others}, spec: {schedulerName: volcano}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: gated}, status: {conditions: [\
             {type: PodScheduled, status: 'False', reason: SchedulingGated}]}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: being-bound}, spec: {volumes: [\
             {name: v, persistentVolumeClaim: {claimName: chosen}}]}}\n---\n\
             {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: chosen, annotations: \
             {volume.kubernetes.io/selected-node: n}}}\n",
        );
        let waiting = state.pods.values().filter(|pod| is_provisionable(pod));
        assert_eq!(waiting.map(|pod| &*pod.metadata.name).collect::<Vec<_>>(), ["unseen"]);
    }

    #[test]
    fn buffers_find_what_they_refer_to() {
        let state = state(
            "{apiVersion: v1, kind: PodTemplate, metadata: {name: t}}\n---\n\
             {apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 10}}\n---\n\
             {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w, namespace: default}, spec: \
             {replicas: 4, template: {spec: {containers: []}}}}\n---\n\
             {apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: a}, \
             spec: {podTemplateRef: {name: t}, replicas: 3}}\n---\n\
             {apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b}, \
             spec: {scalableRef: {kind: Deployment, name: w}, percentage: 20}}\n---\n\
             {apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: c}, \
             spec: {scalableRef: {kind: StatefulSet, name: w}, percentage: 50}}\n---\n\
             {apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: d}, \
             spec: {podTemplateRef: {name: nothing}, replicas: 3}}\n",
        );
        let counts: Vec<u32> = rooms(&state).iter().map(crate::buffers::Room::replicas).collect();
        assert_eq!(counts, [3, 2, 2, 0]);
    }
}

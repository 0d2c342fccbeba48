//! What capacity buffers keep room for. Entries: [`resolve`] for one, [`rooms`] for all.
//!
//! ```text
//!   buffer ─► PodTemplate, or Deployment / StatefulSet / ReplicaSet ─► what the pods are like
//!          ─► max(replicas, percentage of the workload), at most what the limits allow ─► how many
//! ```
//!
//! The room is kept by virtual pods. They are in no API: a plan finds places for them like for pods that wait,
//! the last among equals. They follow from the objects whenever a plan is made, so nothing has to be remembered.

use std::sync::Arc;

use api::capacitybuffer::{CapacityBuffer, CapacityBufferSpec, ScalableRef};
use api::names::annotations::{BUFFER_FAKE_POD, BUFFER_NAME, BUFFER_NAMESPACE};
use api::names::messages::BUFFER_WITHOUT_REFERENCE;
use api::names::reasons::capacity_buffer as reasons;
use api::shared::ResourceList;
use units::Resources;

use crate::objects::pod::{PodConditions, PodSpec, PodStatus, Scheduling};
use crate::objects::{Metadata, Pod, PodTemplateSpec};
use crate::requests;
use crate::state::{Key, Kind, State, Watched};

/// The most pods that a buffer can keep room for: no cluster is larger, and a typing error must not cost all
/// memory.
pub const MOST_REPLICAS: u32 = 100_000;

/// The most pods that all buffers together can keep room for, for the same reasons.
pub const MOST_IN_ALL: u32 = MOST_REPLICAS;

/// The priority of virtual pods: every other pod is more important.
const PRIORITY: i32 = i32::MIN;

/// The group of the workloads that buffers can refer to.
const APPS: &str = "apps";

/// What a buffer keeps room for.
#[derive(Clone, Copy, Debug)]
pub struct Resolved<'a> {
    /// What the pods are like.
    pub template: &'a PodTemplateSpec,
    /// How many there are.
    pub replicas: u32,
    /// The generation of the PodTemplate, if the buffer refers to one.
    pub pod_template_generation: Option<i64>,
}

/// Why it is not known what a buffer keeps room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// There is no such PodTemplate.
    #[error("PodTemplate {0:?} not found")]
    PodTemplateNotFound(String),
    /// There is no such workload.
    #[error("{kind}.apps {name:?} not found")]
    ScalableRefNotFound {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// The buffer refers to nothing.
    #[error("{BUFFER_WITHOUT_REFERENCE}")]
    NoReference,
    /// The buffer refers to something that has no pods, or none that we know of.
    #[error(
        "unsupported scalableRef (apiGroup={group}, kind={kind}); expected Deployment, StatefulSet or ReplicaSet of apps"
    )]
    Unsupported {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// What the buffer refers to cannot be understood.
    #[error("{kind} {name:?} cannot be read: {why}")]
    Unreadable {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// Why.
        why: String,
    },
    /// The buffer asks for more than anybody has.
    #[error("room for {0} pods cannot be kept, only for {MOST_REPLICAS}")]
    TooMany(i64),
    /// The buffers ask for more than anybody has, and this is one of the largest.
    #[error(
        "room for {asked} pods cannot be kept: the smaller buffers keep room for {others}, and all together for \
         {MOST_IN_ALL} at most"
    )]
    TooManyInAll {
        /// What this one asks for.
        asked: u32,
        /// What those keep that are smaller.
        others: u32,
    },
}

impl Unresolved {
    /// The reason of the condition.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PodTemplateNotFound(_) => reasons::POD_TEMPLATE_NOT_FOUND,
            Self::ScalableRefNotFound { .. } => reasons::SCALABLE_REF_NOT_FOUND,
            _ => reasons::RESOLUTION_FAILED,
        }
    }
}

/// The pods that a buffer refers to.
struct Reference<'a> {
    template: &'a PodTemplateSpec,
    /// How many a workload has.
    workload: Option<i32>,
    pod_template_generation: Option<i64>,
}

/// Finds out what a buffer keeps room for.
pub fn resolve<'s>(state: &'s State, buffer: &CapacityBuffer) -> Result<Resolved<'s>, Unresolved> {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or_default();
    let Reference { template, workload, pod_template_generation } =
        reference(state, namespace, &buffer.spec)?;
    let pod = Pod { spec: template.spec.clone(), ..Pod::default() };
    let asked = replicas(&buffer.spec, workload, &requests::of_pod(&pod));
    match u32::try_from(asked) {
        Ok(replicas) if replicas <= MOST_REPLICAS => {
            Ok(Resolved { template, replicas, pod_template_generation })
        }
        _ => Err(Unresolved::TooMany(asked)),
    }
}

fn reference<'s>(
    state: &'s State,
    namespace: &str,
    spec: &CapacityBufferSpec,
) -> Result<Reference<'s>, Unresolved> {
    if let Some(reference) = &spec.pod_template_ref {
        let key = Key::new(namespace, &reference.name);
        let Some(found) = state.pod_templates.get(&key) else {
            let absent = Unresolved::PodTemplateNotFound(reference.name.clone());
            return Err(unreadable(state, Kind::PodTemplate, &key).unwrap_or(absent));
        };
        let generation = Some(found.metadata.generation);
        return Ok(Reference {
            template: &found.template,
            workload: None,
            pod_template_generation: generation,
        });
    }
    let reference = spec.scalable_ref.as_ref().ok_or(Unresolved::NoReference)?;
    let kind = scalable_kind(reference).ok_or_else(|| Unresolved::Unsupported {
        group: reference.api_group.clone(),
        kind: reference.kind.clone(),
    })?;
    let key = Key::new(namespace, &reference.name);
    let found = match kind {
        Kind::Deployment => {
            state.deployments.get(&key).map(|found| (&found.spec.template, found.spec.replicas))
        }
        Kind::StatefulSet => state.stateful_sets.get(&key).and_then(|found| of_set(&found.spec)),
        _ => state.replica_sets.get(&key).and_then(|found| of_set(&found.spec)),
    };
    let Some((template, replicas)) = found else {
        let absent =
            Unresolved::ScalableRefNotFound { kind: reference.kind.clone(), name: reference.name.clone() };
        return Err(unreadable(state, kind, &key).unwrap_or(absent));
    };
    // Kubernetes runs one pod where nobody says how many.
    Ok(Reference { template, workload: Some(replicas.unwrap_or(1)), pod_template_generation: None })
}

fn of_set(spec: &crate::objects::others::ReplicaSetSpec) -> Option<(&PodTemplateSpec, Option<i32>)> {
    Some((spec.template.as_deref()?, spec.replicas))
}

/// The kind of workload that a buffer refers to, if it is one that we know.
pub fn scalable_kind(reference: &ScalableRef) -> Option<Kind> {
    if !matches!(&*reference.api_group, "" | APPS) {
        return None;
    }
    [Kind::Deployment, Kind::StatefulSet, Kind::ReplicaSet]
        .into_iter()
        .find(|kind| kind.name() == reference.kind)
}

fn unreadable(state: &State, kind: Kind, key: &Key) -> Option<Unresolved> {
    let why = state.why_unreadable(kind, key)?.to_owned();
    Some(Unresolved::Unreadable { kind: kind.name(), name: key.name.to_string(), why })
}

/// How many pods a buffer keeps room for: what it asks for, at most as many as its limits allow. One that only
/// says limits asks for as many as they allow.
fn replicas(spec: &CapacityBufferSpec, workload: Option<i32>, requests: &Resources) -> i64 {
    let percentage = spec.percentage.zip(workload).map(|(percent, all)| share(all, percent));
    let asked = spec.replicas.map(i64::from).max(percentage).map(|asked| asked.max(0));
    let allowed = spec.limits.as_ref().and_then(|limits| allowed(limits, requests));
    match (asked, allowed) {
        (Some(asked), Some(allowed)) => asked.min(allowed),
        (Some(number), None) | (None, Some(number)) => number,
        (None, None) => 0,
    }
}

/// So many percent of a workload's pods, rounded up.
fn share(pods: i32, percent: i32) -> i64 {
    let product = i64::from(pods.max(0)) * i64::from(percent.max(0));
    product / 100 + i64::from(product % 100 > 0)
}

/// For how many pods the limits suffice; nothing if they say nothing about what the pods ask for.
fn allowed(limits: &ResourceList, requests: &Resources) -> Option<i64> {
    let counts = limits.iter().filter_map(|(name, limit)| {
        let request = requests.get(name)?.milli_value();
        (request > 0).then(|| limit.milli_value().max(0) / request)
    });
    counts.min()
}

/// The room that a buffer keeps.
#[derive(Clone, Debug)]
pub struct Room {
    /// The buffer.
    pub buffer: Arc<CapacityBuffer>,
    /// The virtual pods, or why there are none.
    pub pods: Result<VirtualPods, Unresolved>,
}

/// Virtual pods, which are all alike.
#[derive(Clone, Debug)]
pub struct VirtualPods {
    /// Each of them, but for name and UID.
    pub pod: Pod,
    /// How many there are.
    pub replicas: u32,
}

/// The room that all buffers keep. A buffer that is on its way out keeps none.
pub fn rooms(state: &State) -> Vec<Room> {
    let staying = state.capacity_buffers.values().filter(|it| it.metadata.deletion_timestamp.is_none());
    let mut rooms: Vec<Room> = staying.map(|buffer| room(state, buffer)).collect();
    leave_out_the_largest(&mut rooms);
    rooms
}

/// Where all buffers together ask for too much, the smallest come first: a typing error in one must not cost the
/// others their room.
fn leave_out_the_largest(rooms: &mut [Room]) {
    if rooms.iter().map(|room| u64::from(room.replicas())).sum::<u64>() <= u64::from(MOST_IN_ALL) {
        return;
    }
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    // They come in the order of names, which decides between equals.
    order.sort_by_key(|position| rooms[*position].replicas());
    let mut others = 0;
    for position in order {
        let asked = rooms[position].replicas();
        if asked <= MOST_IN_ALL - others {
            others += asked;
        } else {
            rooms[position].pods = Err(Unresolved::TooManyInAll { asked, others });
        }
    }
}

fn room(state: &State, buffer: &Arc<CapacityBuffer>) -> Room {
    let pods = resolve(state, buffer).map(|resolved| VirtualPods {
        pod: virtual_pod(buffer, resolved.template),
        replicas: resolved.replicas,
    });
    Room { buffer: Arc::clone(buffer), pods }
}

/// A pod as a plan sees it. It has no volumes that somebody would have to make, and no node.
fn virtual_pod(buffer: &CapacityBuffer, template: &PodTemplateSpec) -> Pod {
    let Key { namespace, name } = buffer.key();
    let annotations =
        [(BUFFER_FAKE_POD, "true".into()), (BUFFER_NAME, name), (BUFFER_NAMESPACE, namespace.clone())];
    let metadata = Metadata {
        namespace,
        labels: template.metadata.labels.clone(),
        annotations: annotations.into_iter().collect(),
        ..Metadata::default()
    };
    let spec = PodSpec {
        node_name: Box::default(),
        // The only volumes that are kept of any pod are claims.
        volumes: [].into_iter().collect(),
        priority: Some(PRIORITY),
        ..template.spec.clone()
    };
    let conditions =
        PodConditions { scheduling: Some(Scheduling::Unschedulable), ..PodConditions::default() };
    Pod { metadata, spec, status: PodStatus { conditions, ..PodStatus::default() }, ..Pod::default() }
}

impl Room {
    /// How many virtual pods there are.
    pub fn replicas(&self) -> u32 {
        self.pods.as_ref().map_or(0, |pods| pods.replicas)
    }

    /// The name of a virtual pod; the first has the number 1.
    pub fn pod_name(&self, number: u32) -> String {
        format!("capacity-buffer-{}-{number}", self.buffer.metadata.name.as_deref().unwrap_or_default())
    }

    /// The UID of a virtual pod, which is the same in every plan.
    pub fn pod_uid(&self, number: u32) -> String {
        format!("{}-{number}", self.buffer.metadata.uid.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;

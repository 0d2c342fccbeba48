//! What became of pods that needed a place, for metrics and events.

use jiff::{SignedDuration, Timestamp};

use super::kind::{Key, Object};
use super::{Change, State};
use crate::eligibility::is_terminal;
use crate::objects::Pod;

/// What became of a pod that needs a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRecord {
    /// When it was first seen to need one.
    pub acknowledged: Option<Timestamp>,
    /// When it was first decided about, either way.
    pub decided: Option<Timestamp>,
    /// When a place was first found; nothing after a decision that there is none.
    pub schedulable: Option<Timestamp>,
    /// When a place was first found in a NodePool whose nodes do register.
    pub schedulable_in_healthy_pool: Option<Timestamp>,
    /// The NodeClaim it is expected on.
    pub claim: Option<Box<str>>,
}

impl PodRecord {
    /// Notes a decision; how long the first one took.
    fn decide(&mut self, now: Timestamp) -> Option<SignedDuration> {
        if self.decided.is_some() {
            return None;
        }
        self.decided = Some(now);
        self.acknowledged.map(|since| now.duration_since(since))
    }
}

impl State {
    /// What became of a pod that needed a place, if anything is known.
    pub fn pod_record(&self, pod: &Key) -> Option<&PodRecord> {
        self.pod_records.get(pod)
    }

    /// Notes that a pod needs a place; only the first time counts.
    pub fn acknowledge_pod(&mut self, pod: &Key, now: Timestamp) {
        if let Some(record) = self.record(pod) {
            record.acknowledged.get_or_insert(now);
        }
    }

    /// Notes that there is no place for a pod. Returns how long the first decision about it took.
    pub fn record_unschedulable(&mut self, pod: &Key, now: Timestamp) -> Option<SignedDuration> {
        let record = self.record(pod)?;
        record.schedulable = None;
        record.schedulable_in_healthy_pool = None;
        record.claim = None;
        record.decide(now)
    }

    /// Notes that there is a place for a pod, in a NodePool whose nodes do register or not. Pods that are bound
    /// already are not noted. Returns how long the first decision about it took.
    pub fn record_schedulable(
        &mut self,
        pod: &Key,
        in_healthy_pool: bool,
        now: Timestamp,
    ) -> Option<SignedDuration> {
        if !self.stores.pods.get(pod)?.spec.node_name.is_empty() {
            return None;
        }
        let record = self.record(pod)?;
        record.schedulable.get_or_insert(now);
        if in_healthy_pool {
            record.schedulable_in_healthy_pool.get_or_insert(now);
        } else {
            record.schedulable_in_healthy_pool = None;
        }
        record.decide(now)
    }

    /// Notes on which NodeClaim a pod is expected.
    pub fn record_claim(&mut self, pod: &Key, claim: &str) {
        if let Some(record) = self.record(pod) {
            record.claim = Some(claim.into());
        }
    }

    /// The pods that are expected on a NodeClaim.
    pub fn pods_expected_on<'a>(&'a self, claim: &'a str) -> impl Iterator<Item = &'a Key> {
        self.pod_records.iter().filter(move |(_, it)| it.claim.as_deref() == Some(claim)).map(|(key, _)| key)
    }

    /// Forgets what became of a pod: it runs, or is done. Pods that are gone are forgotten anyway.
    pub fn forget_pod(&mut self, pod: &Key) {
        self.pod_records.remove(pod);
    }

    /// The record of a pod, unless it is gone: nobody would remove it.
    fn record(&mut self, pod: &Key) -> Option<&mut PodRecord> {
        self.stores.pods.get(pod)?;
        Some(self.pod_records.entry(pod.clone()).or_default())
    }

    /// A pod has changed.
    pub(super) fn note_pod(&mut self, change: &Change) {
        let (old, new) = (pod(change.old.as_ref()), pod(change.new.as_ref()));
        let is_gone = old.is_some_and(|old| new.is_none_or(|new| new.metadata.uid != old.metadata.uid));
        if is_gone {
            self.pod_records.remove(&change.key());
        }
        let is_bound = new.is_some_and(|new| {
            let before = old.map_or("", |old| &old.spec.node_name);
            !new.spec.node_name.is_empty() && *new.spec.node_name != *before
        });
        let has_ended = new.is_some_and(is_terminal) && old.is_some_and(|old| !is_terminal(old));
        if is_gone || is_bound || has_ended {
            self.mark_unconsolidated();
        }
    }
}

fn pod(object: Option<&Object>) -> Option<&Pod> {
    match object {
        Some(Object::Pod(pod)) => Some(pod),
        _ => None,
    }
}

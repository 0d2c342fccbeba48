//! Replacing the pods of older templates, a few nodes at a time.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Look;
use crate::action::Outcome;
use crate::object::Kind;
use crate::pod::Pod;
use crate::selector::scaled;

impl Look<'_> {
    fn limit(
        &self,
        of: impl Fn(&k8s_openapi::api::apps::v1::RollingUpdateDaemonSet) -> Option<IntOrString>,
    ) -> Option<i32> {
        let strategy = self.spec.update_strategy.as_ref()?;
        let amount = of(strategy.rolling_update.as_ref()?)?;
        let nodes = i32::try_from(self.pods.len()).unwrap_or(i32::MAX);
        Some(scaled(&amount, nodes, true))
    }

    /// How many nodes may have two pods while one replaces the other.
    pub(super) fn surge(&self) -> i32 {
        self.limit(|rolling| rolling.max_surge.clone()).unwrap_or(0)
    }

    pub(super) fn update(&self, outcome: &mut Outcome) {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        if strategy == Some("OnDelete") {
            return;
        }
        let surge = self.surge();
        if surge > 0 {
            self.update_by_surge(surge, outcome);
            return;
        }
        let most = self.limit(|rolling| rolling.max_unavailable.clone()).unwrap_or(1).max(1);
        let mut unavailable = 0;
        let mut candidates: Vec<&Arc<Pod>> = Vec::new();
        for pods in self.pods.values() {
            let alive = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
            let Some(pod) = alive else {
                unavailable += 1;
                continue;
            };
            let available = self.is_available(pod, outcome);
            if !available {
                unavailable += 1;
            }
            if !self.is_updated(pod) {
                if available {
                    candidates.push(pod);
                } else {
                    // It serves nobody, so replacing it takes nothing away.
                    outcome.delete(Kind::Pod, &pod.metadata, None);
                }
            }
        }
        let room = usize::try_from(most - unavailable).unwrap_or(0);
        for pod in candidates.into_iter().take(room) {
            outcome.delete(Kind::Pod, &pod.metadata, None);
        }
    }

    fn update_by_surge(&self, surge: i32, outcome: &mut Outcome) {
        let tolerations = self.tolerations();
        let namespace = self.set.metadata.namespace.as_deref().unwrap_or_default();
        let mut room = surge;
        let mut waiting: Vec<&str> = Vec::new();
        for (node, pods) in &self.pods {
            let mut alive = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let new = alive.clone().find(|pod| self.is_updated(pod));
            let Some(old) = alive.find(|pod| !self.is_updated(pod)) else { continue };
            match new {
                Some(new) if self.is_available(new, outcome) => {
                    outcome.delete(Kind::Pod, &old.metadata, None);
                }
                Some(_) => room -= 1,
                None if !self.is_available(old, outcome) => outcome.delete(Kind::Pod, &old.metadata, None),
                None => waiting.push(node),
            }
        }
        for node in waiting.into_iter().take(usize::try_from(room).unwrap_or(0)) {
            outcome.create(Kind::Pod, namespace, &Arc::new(self.pod(node, &tolerations)));
        }
    }
}

//! A node with what is used of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use super::Key;
use super::pod::{HostPort, PodInfo};
use super::requests::Amounts;
use super::selector::{Labels, labels_of};

pub(crate) const ANY_ADDRESS: &str = "0.0.0.0";

/// The pods of a node and what they take together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) pods: BTreeMap<Key, Arc<PodInfo>>,
    pub(crate) requested: Amounts,
    /// CPU and memory with defaults for pods that ask for nothing.
    pub(crate) scored: (i64, i64),
    ports: BTreeMap<HostPort, u32>,
}

impl Usage {
    pub(crate) fn add(&mut self, pod: &Arc<PodInfo>) {
        self.requested.add(&pod.requests.taken);
        self.scored.0 += pod.requests.scored.0;
        self.scored.1 += pod.requests.scored.1;
        for port in &pod.ports {
            *self.ports.entry(port.clone()).or_default() += 1;
        }
        self.pods.insert(pod.key.clone(), Arc::clone(pod));
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<PodInfo>> {
        let pod = self.pods.remove(key)?;
        self.requested.subtract(&pod.requests.taken);
        self.scored.0 -= pod.requests.scored.0;
        self.scored.1 -= pod.requests.scored.1;
        for port in &pod.ports {
            if let Some(count) = self.ports.get_mut(port) {
                *count -= 1;
                if *count == 0 {
                    self.ports.remove(port);
                }
            }
        }
        Some(pod)
    }

    /// Whether a wanted port is taken; the address for all addresses collides with every other.
    pub(crate) fn collides(&self, wanted: &[HostPort]) -> bool {
        let collision = |wanted: &HostPort, used: &HostPort| {
            wanted.port == used.port
                && wanted.protocol == used.protocol
                && (wanted.address == used.address
                    || wanted.address == ANY_ADDRESS
                    || used.address == ANY_ADDRESS)
        };
        !self.ports.is_empty()
            && wanted.iter().any(|wanted| self.ports.keys().any(|used| collision(wanted, used)))
    }
}

/// A place for a node; pods can be there before and after the Node object.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    pub(crate) name: String,
    pub(crate) node: Option<Arc<Node>>,
    /// Another number for every change of what filters look at.
    pub(crate) version: u64,
    pub(crate) allocatable: Amounts,
    pub(crate) usage: Usage,
}

impl NodeState {
    pub(crate) fn labels(&self) -> &Labels {
        labels_of(self.node.as_ref().and_then(|node| node.metadata.labels.as_ref()))
    }
}

/// Whether two versions of a node differ in something scheduling looks at; heartbeats do not.
pub(crate) fn differs(old: &Node, new: &Node) -> bool {
    let status = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    let spec = |node: &Node| {
        let spec = node.spec.as_ref();
        (spec.and_then(|spec| spec.unschedulable), spec.and_then(|spec| spec.taints.clone()))
    };
    old.metadata.labels != new.metadata.labels || spec(old) != spec(new) || status(old) != status(new)
}

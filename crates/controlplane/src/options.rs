//! Which parts run, and how the simulated machines behave.

use std::time::Duration;

/// Which parts of the control plane run.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each part runs or not, on its own")]
pub struct Options {
    /// Where jitter comes from; the same seed gives the same run on a paused clock.
    pub seed: u64,
    /// Whether pods are bound to nodes.
    pub scheduler: bool,
    /// Whether workloads, disruption budgets, namespaces and volumes are looked after.
    pub workloads: bool,
    /// Whether what is left without its owners is deleted; an API server in this process does that itself.
    pub garbage: bool,
    /// Whether nodes are tainted by their conditions and pods leave nodes that are out of reach.
    pub node_lifecycle: bool,
    /// The simulated kubelets; none if absent.
    pub kubelet: Option<KubeletOptions>,
    /// Whether events for people are written.
    pub events: bool,
    /// How many writes are under way at the same time at most.
    pub concurrency: usize,
    /// The certificate authority that new namespaces get to know, in PEM.
    pub root_ca: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            scheduler: true,
            workloads: true,
            garbage: false,
            node_lifecycle: true,
            kubelet: Some(KubeletOptions::default()),
            events: true,
            concurrency: 16,
            root_ca: String::new(),
        }
    }
}

/// The nodes that the kubelet simulator plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSelection {
    /// Every node.
    All,
    /// Nodes with the annotation `kwok.x-k8s.io/node: fake`.
    Annotated,
}

/// How the simulated machines behave.
#[derive(Clone, Debug)]
pub struct KubeletOptions {
    /// Which nodes are simulated.
    pub nodes: NodeSelection,
    /// How long after its creation a node becomes ready.
    pub ready_after: Duration,
    /// How long a pod takes to start once its images are there.
    pub pod_start: Duration,
    /// How long images take to be pulled.
    pub image_pull: Duration,
    /// How long each init container runs.
    pub init_run: Duration,
    /// How long a pod takes to stop, if its grace period allows it.
    pub stop: Duration,
    /// How long pods of Jobs run that do not say it themselves.
    pub job_run: Duration,
    /// The version that nodes report.
    pub version: String,
    /// What nodes have that come without a capacity.
    pub capacity: Vec<(String, String)>,
}

impl Default for KubeletOptions {
    fn default() -> Self {
        Self {
            nodes: NodeSelection::All,
            ready_after: Duration::from_secs(1),
            pod_start: Duration::from_secs(1),
            image_pull: Duration::ZERO,
            init_run: Duration::from_secs(1),
            stop: Duration::from_secs(1),
            job_run: Duration::from_secs(10),
            version: "v1.36.3".to_owned(),
            capacity: [("cpu", "4"), ("memory", "16Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")]
                .map(|(name, amount)| (name.to_owned(), amount.to_owned()))
                .into(),
        }
    }
}

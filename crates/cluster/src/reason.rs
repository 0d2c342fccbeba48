//! Why an object has no part in a snapshot, or only a smaller one. The texts for pods are upstream's: they are in
//! events.

use std::fmt;

use api::validation::Errors;
use api::validation::node_pool::NodePoolError;
use api::validation::pod::PodError;
use api::validation::requirement::RequirementError;

use crate::volumes::VolumeError;

/// An object that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, if it is in one.
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Box<str>,
    /// Why it was left out.
    pub reason: Reason,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, reason } = self;
        match namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{name}: {reason}"),
            None => write!(f, "{kind} {name}: {reason}"),
        }
    }
}

/// Why an object was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The pod does not wait for a node.
    #[error(transparent)]
    NotPending(#[from] NotPending),
    /// The pod waits, but asks for what cannot be.
    #[error("{}", joined(.0))]
    Rejected(Vec<Rejection>),
    /// The pod of a deleting node has volumes that cannot be looked up.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The NodePool is wrong, and nobody has said so in its status.
    #[error(transparent)]
    Pool(#[from] Errors<NodePoolError>),
    /// The NodePool is not ready.
    #[error("not ready{}", .0.as_ref().map(|message| format!(": {message}")).unwrap_or_default())]
    NotReady(Option<String>),
    /// The NodePool keeps a fixed number of nodes, whatever the pods need.
    #[error("has a fixed number of nodes (spec.replicas); pending pods get no new node of it")]
    Static,
    /// The NodePool has nothing to choose from.
    #[error("there are no instance types for it")]
    NoInstanceTypes,
    /// The object is on its way out.
    #[error("being deleted")]
    Deleting,
    /// The object belongs to another provider.
    #[error("nodeClassRef: {found}; expected {expected}")]
    OtherProvider {
        /// Group and kind of the NodeClass.
        found: String,
        /// What this provider has.
        expected: String,
    },
    /// The NodeClaim has no instance yet.
    #[error("status.providerID: empty; it has not been launched")]
    NotLaunched,
    /// The Node of a NodePool does not say which instance it is.
    #[error("spec.providerID: empty; expected one on a node of a NodePool")]
    NoProviderId,
    /// The Node of a NodePool is not complete.
    #[error("waits for the label node.kubernetes.io/instance-type")]
    NoInstanceType,
    /// There are two of it.
    #[error("{field}: {value:?} is taken by another object")]
    Duplicate {
        /// What must be unique.
        field: &'static str,
        /// Its value.
        value: Box<str>,
    },
    /// A field has a value that cannot be understood.
    #[error("{field}: invalid value {value:?}; expected {expected}")]
    Field {
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// There are more names than the engine can number.
    #[error("{name:?} is one {what} too many; at most {limit} are supported")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The first that has no number.
        name: Box<str>,
        /// How many there can be.
        limit: usize,
    },
}

impl Reason {
    /// Why a pod was left out, as a sentence for users with what would help.
    pub fn sentence(&self) -> String {
        match self {
            Self::Rejected(rejections) => {
                let texts: Vec<String> = rejections.iter().map(Rejection::sentence).collect();
                texts.join(". ")
            }
            Self::Volume(error) => error.sentence(),
            other => other.to_string(),
        }
    }

    /// Whether the pod gets an event: not if it wants no node of ours, or waits for something else.
    pub fn is_event(&self) -> bool {
        match self {
            Self::NotPending(_) => false,
            Self::Rejected(rejections) => !rejections.contains(&Rejection::OptedOut),
            _ => true,
        }
    }

    /// Whether the object itself is wrong, and not only of no use now.
    pub fn is_mistake(&self) -> bool {
        matches!(self, Self::Pool(_) | Self::Duplicate { .. } | Self::Field { .. } | Self::TooMany { .. })
    }

    /// Whether the pod counts as ignored in metrics.
    pub fn is_rejection(&self) -> bool {
        !matches!(self, Self::NotPending(_))
    }
}

/// Why a pod without a node does not wait for one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPending {
    /// No scheduler has given up on it.
    #[error("no scheduler has reported it unschedulable")]
    NotUnschedulable,
    /// A scheduler that is not Kubernetes' own has not looked at it.
    #[error("spec.schedulerName: {0:?}, which has not reported it unschedulable")]
    OtherScheduler(Box<str>),
    /// It is not to be scheduled yet.
    #[error("spec.schedulingGates: {0:?} holds it back")]
    Gated(Box<str>),
    /// Other pods make room for it.
    #[error("waits for room on node {0}")]
    Nominated(Box<str>),
    /// It has a place once its volumes are made.
    #[error("waits for its volumes on node {0}")]
    Volumes(Box<str>),
    /// It has its own node.
    #[error("belongs to a DaemonSet")]
    Daemon,
    /// It is a node's own.
    #[error("belongs to a Node")]
    Static,
}

/// What is wrong with a pod that waits for a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It wants no node of ours.
    #[error(
        "configured to not run on a Karpenter provisioned node (requirement=karpenter.sh/nodepool DoesNotExist)"
    )]
    OptedOut,
    /// A rule for its node is wrong.
    #[error(transparent)]
    NodeRule(#[from] PodError),
    /// A volume cannot be used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl Rejection {
    fn sentence(&self) -> String {
        match self {
            Self::OptedOut => {
                "the pod asks for a node without the label karpenter.sh/nodepool, which Karpenter does not \
                               launch; remove that from the pod"
                    .to_owned()
            }
            Self::NodeRule(PodError::Requirement(RequirementError::Restricted(restricted))) => format!(
                "the pod asks for the label {}, by which new nodes cannot be chosen; use a well-known label or one of \
                 your own",
                restricted.key
            ),
            Self::NodeRule(PodError::MatchFields) => {
                "the pod's node affinity has matchFields, which new nodes cannot match; use matchExpressions"
                    .to_owned()
            }
            Self::NodeRule(error) => format!("{error}; correct the pod's node affinity"),
            Self::Volume(error) => error.sentence(),
        }
    }
}

fn joined(rejections: &[Rejection]) -> String {
    let texts: Vec<String> = rejections.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

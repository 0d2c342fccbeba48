//! What can go wrong in a cloud. The core reacts to the kind of error, never to its text.

use api::names::messages::errors;
use api::names::values;

/// Why a cloud did not do what it should.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// There is no capacity of the kind that was asked for.
    #[error("{prefix}{0}", prefix = errors::INSUFFICIENT_CAPACITY)]
    InsufficientCapacity(String),
    /// There is no such instance, or it is gone.
    #[error("{prefix}{0}", prefix = errors::NODE_CLAIM_NOT_FOUND)]
    NotFound(String),
    /// The NodeClass cannot be used now.
    #[error("{prefix}{0}", prefix = errors::NODE_CLASS_NOT_READY)]
    NodeClassNotReady(String),
    /// The launch failed for a reason that the condition shall show.
    #[error("{prefix}{message}", prefix = errors::CREATE)]
    Create {
        /// The reason, as one word.
        reason: String,
        /// What happened.
        message: String,
    },
    /// It is not known yet what a NodePool can choose from.
    #[error("nodepool {0:?} is awaiting evaluation")]
    Unevaluated(String),
    /// The instance types of a NodePool are not known, and why.
    #[error("getting cloud provider instance types, {source} (NodePool={pool})")]
    InstanceTypes {
        /// The NodePool; empty if it has no name.
        pool: String,
        /// What happened.
        source: Box<Self>,
    },
    /// Instances of this cloud cannot be booted again.
    #[error("{}", errors::REBOOT_NOT_IMPLEMENTED)]
    RebootNotImplemented,
    /// The cloud will never boot this instance again, however often it is asked.
    #[error("{0}")]
    RebootFailed(String),
    /// The cloud did not answer in time.
    #[error("{0}")]
    Timeout(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// What happened in the first place.
    pub fn root(&self) -> &Self {
        match self {
            Self::InstanceTypes { source, .. } => source.root(),
            error => error,
        }
    }

    /// Whether there is no such instance.
    pub fn is_not_found(&self) -> bool {
        matches!(self.root(), Self::NotFound(_))
    }

    /// Whether it is not known yet what a NodePool can choose from.
    pub fn is_unevaluated(&self) -> bool {
        matches!(self.root(), Self::Unevaluated(_))
    }

    /// Whether the cloud did not answer in time, so that nothing is known.
    pub fn is_timeout(&self) -> bool {
        matches!(self.root(), Self::Timeout(_))
    }

    /// Whether a reboot that failed like this would fail again.
    pub fn ends_reboot(&self) -> bool {
        matches!(self.root(), Self::RebootNotImplemented | Self::RebootFailed(_) | Self::NotFound(_))
    }

    /// What metrics call it.
    pub fn label(&self) -> &'static str {
        match self.root() {
            Self::InsufficientCapacity(_) => values::ERROR_INSUFFICIENT_CAPACITY,
            Self::NotFound(_) => values::ERROR_NODE_CLAIM_NOT_FOUND,
            Self::NodeClassNotReady(_) => values::ERROR_NODE_CLASS_NOT_READY,
            Self::Create { .. }
            | Self::Unevaluated(_)
            | Self::InstanceTypes { .. }
            | Self::RebootNotImplemented
            | Self::RebootFailed(_)
            | Self::Timeout(_)
            | Self::Other(_) => values::ERROR_UNKNOWN,
        }
    }
}

impl From<Error> for runtime::Error {
    fn from(error: Error) -> Self {
        Self::Other(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_that_users_search_for() {
        let text = |error: Error| error.to_string();
        assert_eq!(text(Error::InsufficientCapacity("all taken".into())), "insufficient capacity, all taken");
        assert_eq!(text(Error::NotFound("gone".into())), "nodeclaim not found, gone");
        assert_eq!(text(Error::NodeClassNotReady("why".into())), "NodeClassRef not ready, why");
        let create = Error::Create { reason: "Quota".into(), message: "too many".into() };
        assert_eq!(text(create), "creating nodeclaim, too many");
        assert_eq!(text(Error::Unevaluated("a".into())), "nodepool \"a\" is awaiting evaluation");
        assert_eq!(text(Error::RebootNotImplemented), "reboot is not implemented by this cloud provider");
        assert_eq!(text(Error::RebootFailed("no permission".into())), "no permission");
    }

    #[test]
    fn an_error_about_types_names_the_pool_and_stays_what_it_was() {
        let of =
            |pool: &str, source| Error::InstanceTypes { pool: pool.to_owned(), source: Box::new(source) };
        let gone = of("a", Error::NotFound("no class".into()));
        assert_eq!(
            gone.to_string(),
            "getting cloud provider instance types, nodeclaim not found, no class (NodePool=a)"
        );
        assert!(gone.is_not_found() && !gone.is_unevaluated());
        assert_eq!(gone.label(), "NodeClaimNotFoundError");
        let slow = of("", Error::Timeout("too slow".into()));
        assert_eq!(slow.to_string(), "getting cloud provider instance types, too slow (NodePool=)");
        assert_eq!((slow.root(), slow.label()), (&Error::Timeout("too slow".into()), "unknown"));
        assert!(slow.is_timeout() && !gone.is_timeout());
    }

    #[test]
    fn metrics_tell_three_kinds_of_errors_from_all_others() {
        assert_eq!(Error::InsufficientCapacity(String::new()).label(), "InsufficientCapacityError");
        assert_eq!(Error::NotFound(String::new()).label(), "NodeClaimNotFoundError");
        assert_eq!(Error::NodeClassNotReady(String::new()).label(), "NodeClassNotReadyError");
        assert_eq!(Error::Timeout(String::new()).label(), "unknown");
    }
}

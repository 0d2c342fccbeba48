//! What can go wrong in a cloud. The core reacts to the kind of error, never to its text.

/// Why a cloud did not do what it should.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// There is no capacity of the kind that was asked for.
    #[error("insufficient capacity, {0}")]
    InsufficientCapacity(String),
    /// There is no such instance, or it is gone.
    #[error("nodeclaim not found, {0}")]
    NotFound(String),
    /// The NodeClass cannot be used now.
    #[error("NodeClassRef not ready, {0}")]
    NodeClassNotReady(String),
    /// The launch failed for a reason that the condition shall show.
    #[error("creating nodeclaim, {message}")]
    Create {
        /// The reason, as one word.
        reason: String,
        /// What happened.
        message: String,
    },
    /// It is not known yet what a NodePool can choose from.
    #[error("nodepool {0:?} is awaiting evaluation")]
    Unevaluated(String),
    /// The cloud did not answer in time.
    #[error("{0}")]
    Timeout(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Whether there is no such instance.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

impl From<Error> for runtime::Error {
    fn from(error: Error) -> Self {
        Self::Other(error.to_string())
    }
}

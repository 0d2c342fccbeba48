//! What Azure refused, and everything it said about it.

/// A refusal of Azure, or none of its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What was asked for, such as `PUT virtualMachines/aks-a`.
    pub operation: String,
    /// The status, if an answer came.
    pub status: Option<u16>,
    /// The machine-readable reason; empty if there is none.
    pub code: String,
    /// The whole text, with the body where that says more.
    pub message: String,
    /// By which Azure's support finds the request.
    pub correlation_id: Option<String>,
}

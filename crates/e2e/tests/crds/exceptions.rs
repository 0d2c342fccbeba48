//! What the tests do not demand, each with the reason.

use api::provider::Provider;

/// Cases whose object the API server accepts and no typed client can read, upstream's own included: the schema
/// takes any text for a duration.
pub(crate) const UNREADABLE: [&str; 1] = ["a period that is no duration slips through"];

/// Cases whose object the API server accepts, but not once a typed client has written it, upstream's own included:
/// the pattern lets a suffix without a number pass, which is read as zero and then refused.
pub(crate) const UNWRITABLE: [&str; 1] = ["sizes of a volume"];

/// A constraint that no request can violate; one that is not needed is an error.
#[derive(Debug)]
pub(crate) struct Exception {
    /// The plural of the kind.
    pub(crate) plural: &'static str,
    /// The place in the schema, such as `spec.list[].field`.
    pub(crate) place: &'static str,
    /// The keyword, or the message of a rule.
    pub(crate) demand: &'static str,
    pub(crate) why: &'static str,
}

/// The exceptions of one provider.
pub(crate) fn exceptions(provider: Provider) -> Vec<Exception> {
    match provider {
        Provider::Kwok => vec![Exception {
            plural: "nodepools",
            place: "spec.disruption.budgets[].nodes",
            demand: "required",
            why: "a missing value gets the default",
        }],
        Provider::Aws | Provider::Azure => vec![],
    }
}

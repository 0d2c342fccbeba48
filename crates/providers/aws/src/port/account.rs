//! Who we are, what we may do, and how much the account may have: STS, IAM's simulator, service quotas.

use futures::future::BoxFuture;

use super::Error;

/// Whom AWS takes us for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerIdentity {
    /// The account.
    pub account: String,
    /// The user, or the role with the name of the session.
    pub arn: String,
}

/// Who we are. Everybody may ask that.
pub trait Sts: Send + Sync {
    /// Whom AWS takes us for.
    fn caller_identity(&self) -> BoxFuture<'_, Result<CallerIdentity, Error>>;
}

/// A quota of the account in a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// Its code, such as `L-1216C47A`.
    pub code: String,
    /// What it is called.
    pub name: String,
    /// How much there may be.
    pub value: f64,
}

/// How much the account may have.
pub trait Quotas: Send + Sync {
    /// The quotas of a service, such as `ec2`, as they are in force.
    fn quotas<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Result<Vec<Quota>, Error>>;
}

/// A request that IAM is asked about without it being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// The user or role that would make it.
    pub principal: String,
    /// What it would do, such as `iam:PassRole`.
    pub action: &'static str,
    /// What it would be about.
    pub resource: String,
    /// What would be known about it: keys of conditions with their values.
    pub context: Vec<(String, Vec<String>)>,
}

/// What the policies of a user or role say about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed,
    /// A policy forbids it.
    Forbidden,
    /// No policy allows it.
    NotAllowed,
}

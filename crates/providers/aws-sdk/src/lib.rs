//! AWS itself, behind the traits of [`aws::port`]: every question goes to the official SDK. Entry: [`connect`].
//!
//! There is a file for each service. Requests and answers are converted by plain functions, so that they can be
//! looked at without AWS. What is the same for all services is beside them: where we are and who we are
//! (`connect`), pages, errors, times, metrics, and our name.

mod agent;
mod ca_bundle;
mod connect;
mod ec2;
mod eks;
mod error;
mod iam;
mod measure;
mod pages;
mod pricing;
mod quotas;
mod sqs;
mod ssm;
mod sts;
#[cfg(test)]
mod tests;
mod time;
mod zonal_shift;

pub use connect::{ConnectError, Connection, connect};

use futures::future::BoxFuture;

/// What a service answers.
type Answer<'a, T> = BoxFuture<'a, Result<T, aws::port::Error>>;

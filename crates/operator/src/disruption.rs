//! Removes and replaces nodes, as gently as their pools ask for.
//!
//! ```text
//!   methods, in order ─► candidates ─► budgets ─► commands ─► (wait, validate) ─► queue: taint, mark, delete
//! ```
//!
//! A method looks for nodes that it could do something about; the first that finds any has its turn.

pub(crate) mod budget;
pub(crate) mod candidate;
mod command;
mod emptiness;
mod leftovers;
mod mark;
mod queue;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::nodepool::DisruptionReason;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::Error;
use runtime::controller::Controller;

use crate::Context;
use budget::Budgets;
use candidate::{Candidate, Search};
use cluster::state::State;
use command::Command;
use queue::Commands;

/// Why nodes are disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) DisruptionReason);

impl Reason {
    /// As conditions and events write it.
    pub(crate) const fn text(self) -> &'static str {
        match self.0 {
            DisruptionReason::Underutilized => "Underutilized",
            DisruptionReason::Empty => "Empty",
            DisruptionReason::Drifted => "Drifted",
            DisruptionReason::Unhealthy => "Unhealthy",
        }
    }

    /// As metrics write it.
    pub(crate) const fn lower(self) -> &'static str {
        use api::names::values::{DRIFTED, EMPTY, UNDERUTILIZED, UNHEALTHY};
        match self.0 {
            DisruptionReason::Underutilized => UNDERUTILIZED,
            DisruptionReason::Empty => EMPTY,
            DisruptionReason::Drifted => DRIFTED,
            DisruptionReason::Unhealthy => UNHEALTHY,
        }
    }
}

/// Whether pods can keep a node for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// They can.
    Graceful,
    /// They can, unless their node has a grace period.
    Eventual,
}

/// What a method works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass<'a> {
    /// Everything else.
    pub(crate) context: &'a Context,
    /// How candidates are looked for.
    pub(crate) search: Search<'a>,
    /// One time for all.
    pub(crate) now: Timestamp,
}

/// Why what was decided does not hold any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Invalid(pub(crate) String);

/// One way to disrupt nodes.
pub(crate) trait Method: Send + Sync {
    /// Why nodes are disrupted.
    fn reason(&self) -> Reason;

    /// Whether pods can keep a node for ever.
    fn class(&self) -> Class;

    /// How metrics tell kinds of consolidation apart; empty for anything else.
    fn consolidation_type(&self) -> &'static str;

    /// How long what was decided must hold before it is done.
    fn patience(&self) -> Duration;

    /// Whether the method could do something about a candidate. Where not, users may be told why.
    fn accepts(&self, state: &State, candidate: &Candidate) -> Result<(), Option<String>>;

    /// What is to be done.
    fn compute<'a>(
        &'a self,
        pass: Pass<'a>,
        candidates: Vec<Candidate>,
        budgets: Budgets,
    ) -> BoxFuture<'a, Result<Vec<Command>, Error>>;

    /// What of it is still to be done after a while, or why nothing is.
    fn validate<'a>(
        &'a self,
        pass: Pass<'a>,
        command: Command,
    ) -> BoxFuture<'a, Result<Result<Command, Invalid>, Error>>;
}

/// The controllers of disruption.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let (commands, queue) = Commands::new(context);
    let methods: Vec<Box<dyn Method>> = vec![Box::new(emptiness::Emptiness::default())];
    vec![
        run::controller(context, methods, Arc::clone(&commands)),
        queue::controller(context, commands, queue),
    ]
}

//! Commands that must hold for a while before they are begun, and what becomes of them then.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::metrics::DISRUPTION_FAILED_VALIDATIONS;
use api::names::values::CONSOLIDATION_MULTI;
use api::nodepool::DisruptionReason;
use jiff::Timestamp;
use runtime::Error;
use runtime::compute::compute;
use tokio::time::Instant;

use super::{Run, caught, costs};
use crate::catalogue::Types;
use crate::disruption::Method;
use crate::disruption::command::Command;
use crate::disruption::decision::Invalid;
use crate::disruption::glance::{Look, glance};
use crate::disruption::scene::Scene;

/// A command that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Which method decided.
    pub(super) method: usize,
    pub(super) command: Command,
    pub(super) due: Timestamp,
    /// Whether other nodes have taken the place of those that were to go at first.
    pub(super) is_second: bool,
}

/// Commands that wait.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Those decided first come before the others. Their nodes have nothing to do with each other.
    all: Vec<Waiting>,
}

impl Waits {
    pub(super) fn add(&mut self, waiting: Waiting) {
        self.all.push(waiting);
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = &Command> {
        self.all.iter().map(|waiting| &waiting.command)
    }

    /// Pools from which nodes are to go to save money.
    pub(super) fn unsettled_pools(&self) -> BTreeSet<Box<str>> {
        let commands = self.commands().filter(|command| command.is_consolidation());
        commands.flat_map(Command::pools).map(Into::into).collect()
    }

    /// The instances that are as good as gone.
    pub(super) fn instances(&self) -> BTreeSet<Box<str>> {
        self.commands().flat_map(Command::provider_ids).map(Into::into).collect()
    }

    /// The instances that commands rely on.
    pub(super) fn destinations(&self) -> BTreeSet<Box<str>> {
        let nodes = self.commands().flat_map(|command| &command.destinations);
        nodes.map(|node| node.origin.provider_id.clone()).collect()
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.all.iter().map(|waiting| waiting.due).min()
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next_due().is_some_and(|due| due <= now)
    }

    fn take_due(&mut self, now: Timestamp) -> Option<Waiting> {
        let position = self.all.iter().position(|waiting| waiting.due <= now)?;
        Some(self.all.remove(position))
    }
}

/// What may become of nodes that a command is not about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// They may go instead, if that is better.
    MayGo,
    /// They stay.
    Stay,
}

/// Whether a command has nodes that it had not before.
fn has_others(command: &Command, before: &Command) -> bool {
    let known: BTreeSet<&str> = before.provider_ids().collect();
    command.provider_ids().any(|instance| !known.contains(instance))
}

impl Run {
    /// Begins the first command whose time has come and that still holds; whether there was one. Where other nodes
    /// have turned out to be better, these wait as well, once.
    ///
    /// Only one, because the next one must be validated against what this one leaves.
    pub(super) async fn validate_due(&self, types: &Types) -> Result<bool, Error> {
        let mut failure = None;
        loop {
            let due = self.waits.lock().take_due(self.context.now());
            let Some(Waiting { method: position, command, is_second, .. }) = due else { break };
            let method = &self.methods[position];
            let before = command.clone();
            // What has waited itself makes way for nobody who has not.
            let others = if is_second { Others::Stay } else { Others::MayGo };
            match self.validate(method, command, types, others).await {
                // While pods stop everywhere, what is best now is hardly best in a moment.
                Ok(Ok(command)) if has_others(&command, &before) => {
                    let due = self.context.now() + method.patience();
                    self.waits.lock().add(Waiting { method: position, command, due, is_second: true });
                    continue;
                }
                Ok(Ok(command)) => {
                    let kept: BTreeSet<&str> = command.provider_ids().collect();
                    let lost = before.provider_ids().filter(|instance| !kept.contains(instance));
                    self.count_failed(&before, lost.count());
                    match self.start(vec![command]).await {
                        Ok(()) => return Ok(true),
                        Err(error) => failure = Some(error),
                    }
                }
                Ok(Err(invalid)) => self.reject(&before, &invalid),
                Err(error) => failure = Some(error),
            }
            if before.consolidation_type == CONSOLIDATION_MULTI {
                self.single_first.lock().extend(before.pools().into_iter().map(Into::into));
            }
        }
        failure.map_or(Ok(false), Err)
    }

    /// What still holds of a command. Nodes of other commands cannot take the place of its own, nor the pods of these.
    /// Those that commands rely on that still wait can, because what these rely on is found out again when their time
    /// has come.
    async fn validate(
        &self,
        method: &Arc<dyn Method>,
        command: Command,
        types: &Types,
        others: Others,
    ) -> Result<Result<Command, Invalid>, Error> {
        let (context, method, types) = (self.context.clone(), Arc::clone(method), types.clone());
        let ((waiting, taken), relied_on) = (self.taken(), self.commands.destinations());
        let start = Instant::now();
        let validated = compute(move || {
            let now = context.now();
            let none = BTreeSet::new();
            let refusals = context.launches.refusals(&context.cluster, now);
            let (scene, mut view) = {
                let state = context.cluster.read();
                let (taken, relied_on, leaving) = (&taken, &relied_on, &none);
                let look = Look { types: &types, taken, relied_on, leaving, costs: costs(&context), now };
                let view = glance(&state, [&*method], look).views.pop().unwrap_or_default();
                (
                    Scene::new(&state, &types, &context.settings, &none, now)
                        .closing(waiting)
                        .knowing(refusals),
                    view,
                )
            };
            if others == Others::Stay {
                let planned: BTreeSet<&str> = command.provider_ids().collect();
                view.candidates.retain(|candidate| planned.contains(&*candidate.provider_id));
            }
            let mut budgets = view.budgets;
            let validate =
                |method: &dyn Method| method.validate(&scene, command, view.candidates, &mut budgets);
            let validated = caught(&*method, validate);
            (validated, scene.take_simulated())
        });
        let running = self.work.begin();
        let (validated, simulated) = validated.await;
        self.tell_simulated(&running, simulated, start.elapsed());
        validated
    }

    fn reject(&self, command: &Command, invalid: &Invalid) {
        tracing::debug!(reason = command.reason.text(), error = %invalid, "abandoning a disruption");
        if invalid.cause.is_counted() {
            self.count_failed(command, command.candidates.len());
        }
        // An empty node that is not empty any more is no news.
        if command.reason.0 == DisruptionReason::Underutilized {
            for notice in command.rejected_notices(invalid.cause) {
                notice.publish(&self.context.events);
            }
        }
    }

    fn count_failed(&self, command: &Command, count: usize) {
        if count > 0 {
            #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
            let count = count as f64;
            let labels = [command.consolidation_type];
            self.context.metrics.add(&DISRUPTION_FAILED_VALIDATIONS, &labels, count);
        }
    }
}

//! The loop that asks one method after the other whether there is anything to do.
//!
//! What a method has decided must hold for a while. Until then nothing else is decided; afterwards it is
//! validated, and if it does not hold, the methods behind it have their turn.

use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::DISRUPTION;
use api::names::events::UNCONSOLIDATABLE;
use api::names::metrics::{DISRUPTION_ELIGIBLE_NODES, DISRUPTION_EVALUATION_DURATION};
use cluster::costs::Costs;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::Error;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};
use tokio::time::Instant;

use super::candidate::{self, Search};
use super::command::Command;
use super::queue::Commands;
use super::{Method, Pass, budget, leftovers};
use crate::wiring::Wiring;
use crate::{Context, catalogue};

/// How often there is a look while there is nothing to do.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often there is a look while the state cannot be relied on.
const UNSYNCED: Duration = Duration::from_secs(1);

/// What was decided and must hold for a while.
#[derive(Clone, Debug)]
struct Waiting {
    /// Which method decided.
    method: usize,
    command: Command,
    due: Timestamp,
}

struct Run {
    context: Context,
    methods: Vec<Box<dyn Method>>,
    commands: Arc<Commands>,
    waiting: Mutex<Option<Waiting>>,
}

impl Reconcile for Run {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        self.run().boxed()
    }
}

impl Run {
    async fn run(&self) -> Outcome {
        let now = self.context.now();
        let leftovers = {
            let state = self.context.cluster.read();
            budget::log_errors(&state);
            if !state.is_synced(now) {
                return Ok(Again::After(UNSYNCED));
            }
            leftovers::decide(&state, &self.commands.queued())
        };
        leftovers::clean_up(&self.context, &leftovers).await?;
        let waiting = self.waiting.lock().clone();
        let mut first = 0;
        if let Some(Waiting { method, command, due }) = waiting {
            if now < due {
                return Ok(Again::After(self.context.clock.until(due)));
            }
            *self.waiting.lock() = None;
            if self.validate(&*self.methods[method], command).await? {
                return Ok(Again::After(Duration::ZERO));
            }
            first = method + 1;
        }
        for (position, method) in self.methods.iter().enumerate().skip(first) {
            if let Some(again) = self.ask(position, &**method).await? {
                return Ok(again);
            }
        }
        Ok(Again::After(INTERVAL))
    }

    /// Lets a method decide; when to go on, if it decided anything.
    async fn ask(&self, position: usize, method: &dyn Method) -> Result<Option<Again>, Error> {
        let start = Instant::now();
        let decided = self.decide(method).await;
        let labels = [method.reason().lower(), method.consolidation_type()];
        let elapsed = start.elapsed().as_secs_f64();
        self.context.metrics.observe(&DISRUPTION_EVALUATION_DURATION, &labels, elapsed);
        let commands = decided?;
        let patience = method.patience();
        if patience.is_zero() {
            let is_any = !commands.is_empty();
            self.start(commands).await?;
            return Ok(is_any.then_some(Again::After(Duration::ZERO)));
        }
        // What must hold for a while is decided one by one.
        let Some(command) = commands.into_iter().next() else { return Ok(None) };
        let due = self.context.now() + patience;
        *self.waiting.lock() = Some(Waiting { method: position, command, due });
        Ok(Some(Again::After(patience)))
    }

    async fn decide(&self, method: &dyn Method) -> Result<Vec<Command>, Error> {
        let (context, reason) = (&self.context, method.reason());
        let types = catalogue::of_all(context).await;
        let queued = self.commands.queued();
        let now = context.now();
        let search = self.search(method, &types, &queued, now);
        let (candidates, notices, refused, budgets) = {
            let state = context.cluster.read();
            let found = candidate::find(&state, search);
            let (mut candidates, mut refused) = (Vec::new(), Vec::new());
            for candidate in found.candidates {
                match method.accepts(&state, &candidate) {
                    Ok(()) => candidates.push(candidate),
                    Err(Some(why)) => refused.push((candidate, why)),
                    Err(None) => {}
                }
            }
            let budgets = (!candidates.is_empty()).then(|| budget::budgets(&state, reason.0, now));
            (candidates, found.notices, refused, budgets)
        };
        for notice in notices {
            notice.publish(&context.events);
        }
        for (candidate, why) in refused {
            candidate.tell(&context.events, &UNCONSOLIDATABLE, &why);
        }
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
        context.metrics.set(&DISRUPTION_ELIGIBLE_NODES, &[reason.lower()], candidates.len() as f64);
        let Some(budgets) = budgets else { return Ok(Vec::new()) };
        budget::publish(context, &budgets, reason);
        let pass = Pass { context, search, now };
        let mut commands = method.compute(pass, candidates, budgets).await?;
        commands.retain(|command| !command.candidates.is_empty());
        Ok(commands)
    }

    fn search<'a>(
        &self,
        method: &dyn Method,
        types: &'a catalogue::Types,
        queued: &'a std::collections::BTreeSet<Box<str>>,
        now: Timestamp,
    ) -> Search<'a> {
        // What this process itself writes says nothing about what pods cost their users.
        let pod_deletion_cost = !self.context.settings.gates.pod_deletion_cost_management;
        Search { types, queued, class: method.class(), costs: Costs { pod_deletion_cost }, now }
    }

    /// Carries out what still holds of a command; whether anything does.
    async fn validate(&self, method: &dyn Method, command: Command) -> Result<bool, Error> {
        let types = catalogue::of_all(&self.context).await;
        let queued = self.commands.queued();
        let now = self.context.now();
        let pass = Pass { context: &self.context, search: self.search(method, &types, &queued, now), now };
        match method.validate(pass, command).await? {
            Ok(command) => {
                self.start(vec![command]).await?;
                Ok(true)
            }
            Err(invalid) => {
                tracing::debug!(reason = method.reason().text(), error = %invalid, "abandoning a disruption");
                Ok(false)
            }
        }
    }

    async fn start(&self, commands: Vec<Command>) -> Result<(), Error> {
        let started = join_all(commands.into_iter().map(|command| self.commands.start(command))).await;
        started.into_iter().collect()
    }
}

/// The controller.
pub(super) fn controller(
    context: &Context,
    methods: Vec<Box<dyn Method>>,
    commands: Arc<Commands>,
) -> Controller {
    // Errors that repeat must not stop consolidation for long.
    let queue = Arc::new(Queue::new(Backoff::millis(5, 10_000)));
    queue.add(Key::cluster(DISRUPTION));
    let run = Run { context: context.clone(), methods, commands, waiting: Mutex::default() };
    Wiring::new(DISRUPTION, 1).on(queue, Arc::new(run))
}

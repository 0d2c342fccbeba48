//! Instances, as far as we know them, and what is asked about them together.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::aws as metrics;
use api::names::tags::aws as tags;
use cloud::Error;
use futures::FutureExt as _;
use futures::future::join_all;
use jiff::SignedDuration;
use parking_lot::Mutex;

use super::batch::{Batcher, Window};
use super::{Calls, Inner, Setup};
use crate::instance::Machine;
use crate::port::{self, Ec2, Filter, Instance, InstanceState, Tags};

/// How long EC2 may take to describe what it launched.
const UNSEEN: SignedDuration = SignedDuration::from_secs(30);
const WINDOW: Window =
    Window { idle: Duration::from_millis(100), longest: Duration::from_secs(1), most: 500 };

type Described = Result<Option<Instance>, port::Error>;
type Terminated = Result<(), port::Error>;

/// Instances that are known.
pub(crate) struct Machines {
    known: Mutex<BTreeMap<String, Machine>>,
    describe: Batcher<String, Described>,
    terminate: Batcher<String, Terminated>,
}

impl Machines {
    pub(crate) fn new(setup: &Setup, calls: &Calls) -> Self {
        let (ec2, counter) = (Arc::clone(&setup.services.ec2), calls.clone());
        let describe = Batcher::new("describe_instances", WINDOW, setup.metrics.clone(), move |ids| {
            describe(Arc::clone(&ec2), counter.clone(), ids).boxed()
        });
        let (ec2, counter) = (Arc::clone(&setup.services.ec2), calls.clone());
        let terminate = Batcher::new("terminate_instances", WINDOW, setup.metrics.clone(), move |ids| {
            terminate(Arc::clone(&ec2), counter.clone(), ids).boxed()
        });
        Self { known: Mutex::default(), describe, terminate }
    }

    /// Remembers an instance.
    pub(crate) fn note(&self, machine: Machine) {
        self.known.lock().insert(machine.id.clone(), machine);
    }

    /// What is remembered of an instance.
    pub(crate) fn known(&self, id: &str) -> Option<Machine> {
        self.known.lock().get(id).cloned()
    }
}

/// Instances that may still be there, whatever they are doing.
fn states() -> Filter {
    let alive = InstanceState::ALL.into_iter().filter(|state| *state != InstanceState::Terminated);
    Filter::new("instance-state-name", alive.map(InstanceState::as_str))
}

async fn describe(ec2: Arc<dyn Ec2>, calls: Calls, asked: Vec<String>) -> Vec<Described> {
    let ids: Vec<String> = asked.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let filters = [states()];
    let (filters, ec2, calls) = (&filters, &ec2, &calls);
    let ask = |ids: Vec<String>| async move {
        calls.counted("ec2:DescribeInstances", ec2.instances(&ids, filters)).await
    };
    let mut found: BTreeMap<String, Described> = BTreeMap::new();
    for (ids, answer) in together(ids, ask).await {
        match answer {
            // What is not listed is over: EC2 has answered for all of them.
            Ok(all) => found.extend(all.into_iter().map(|each| (each.id.clone(), Ok(Some(each))))),
            Err(error) if error.is_not_found() => {}
            Err(error) => found.extend(ids.into_iter().map(|id| (id, Err(error.clone())))),
        }
    }
    asked.iter().map(|id| found.get(id).cloned().unwrap_or(Ok(None))).collect()
}

/// Whether a message of EC2 names an instance.
fn names(message: &str, id: &str) -> bool {
    message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == id)
}

/// How many requests for single instances are under way at the same time.
const ALONE: usize = 10;

/// Asks EC2 about instances with as few requests as possible: one that it does not know fails a request for all.
/// Those that it names are put aside, and the others are asked for once more; only if it does not say which they are,
/// each is asked for alone, until EC2 throttles or fails. Which instances each answer is about, and the answer.
async fn together<T, F>(
    ids: Vec<String>,
    ask: impl Fn(Vec<String>) -> F,
) -> Vec<(Vec<String>, Result<T, port::Error>)>
where
    F: Future<Output = Result<T, port::Error>>,
{
    let mut answers = Vec::new();
    let mut left = ids;
    for _ in 0..2 {
        let error = match ask(left.clone()).await {
            // Asking for each alone would only make a throttled or failing service worse.
            Err(error) if left.len() > 1 && !error.is_transient() => error,
            answer => {
                answers.push((left, answer));
                return answers;
            }
        };
        let (unknown, others): (Vec<String>, Vec<String>) =
            left.into_iter().partition(|id| error.is_not_found() && names(&error.message, id));
        left = others;
        if unknown.is_empty() {
            break;
        }
        answers.push((unknown, Err(error)));
        if left.is_empty() {
            return answers;
        }
    }
    let mut stopped: Option<port::Error> = None;
    for some in left.chunks(ALONE) {
        let asked = match &stopped {
            Some(error) => some.iter().map(|_| Err(error.clone())).collect(),
            None => join_all(some.iter().map(|id| ask(vec![id.clone()]))).await,
        };
        let failed = asked.iter().filter_map(|answer| answer.as_ref().err());
        stopped = failed.into_iter().find(|error| error.is_transient()).cloned().or(stopped);
        answers.extend(some.iter().zip(asked).map(|(id, answer)| (vec![id.clone()], answer)));
    }
    answers
}

async fn terminate(ec2: Arc<dyn Ec2>, calls: Calls, asked: Vec<String>) -> Vec<Terminated> {
    let ids: Vec<String> = asked.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let (ec2, calls) = (&ec2, &calls);
    let ask = |ids: Vec<String>| async move {
        calls.counted("ec2:TerminateInstances", ec2.terminate_instances(&ids)).await
    };
    let mut results: BTreeMap<String, Terminated> = BTreeMap::new();
    let mut running: Vec<String> = Vec::new();
    for (ids, answer) in together(ids, ask).await {
        match answer {
            Ok(changes) => {
                let ended = changes.into_iter().filter(|change| change.state.is_ending());
                let ended: BTreeSet<String> = ended.map(|change| change.id).collect();
                running.extend(ids.into_iter().filter(|id| !ended.contains(id)));
            }
            Err(error) => results.extend(ids.into_iter().map(|id| (id, Err(error.clone())))),
        }
    }
    // What does not end although EC2 accepted it is asked for once more.
    if !running.is_empty() {
        for (ids, answer) in together(running, ask).await {
            let answer = answer.map(|_| ());
            results.extend(ids.into_iter().map(|id| (id, answer.clone())));
        }
    }
    asked.iter().map(|id| results.get(id).cloned().unwrap_or(Ok(()))).collect()
}

impl Inner {
    /// An instance as EC2 sees it now; one that was launched a moment ago is as it was launched until EC2 knows it.
    pub(crate) async fn fresh_machine(&self, id: &str) -> Result<Machine, Error> {
        let known = self.machines.known(id);
        let answer = self.machines.describe.ask(0, id.to_owned()).await;
        let answer = answer.unwrap_or_else(|| Err(no_answer("ec2:DescribeInstances")));
        match answer {
            Ok(Some(instance)) => {
                let machine = Machine::described(instance, self.setup.gates.reserved_capacity);
                self.machines.note(machine.clone());
                Ok(machine)
            }
            Ok(None) => {
                if let Some(machine) = known.filter(|known| self.is_new(known)) {
                    return Ok(machine);
                }
                self.machines.known.lock().remove(id);
                Err(Error::NotFound(format!("no instance {id:?}")))
            }
            Err(error) => Err(Error::Other(format!("describing instance {id}, {error}"))),
        }
    }

    fn is_new(&self, machine: &Machine) -> bool {
        machine.launched.is_some_and(|at| self.setup.clock.now().duration_since(at) < UNSEEN)
    }

    /// An instance as it was last seen. Nothing is asked about zones that are avoided.
    pub(crate) async fn machine(&self, id: &str) -> Result<Machine, Error> {
        match self.machines.known(id) {
            Some(machine) => Ok(machine),
            None => self.fresh_machine(id).await,
        }
    }

    /// Whether an instance is in a zone that is avoided.
    pub(crate) fn is_shifted(&self, machine: &Machine) -> bool {
        !machine.zone_id.is_empty() && self.shifted_zones().contains(&machine.zone_id)
    }

    /// All instances of this cluster.
    pub(crate) async fn all_machines(&self) -> Result<Vec<Machine>, Error> {
        let filters = [
            Filter::tag(tags::NODEPOOL, "*"),
            Filter::tag(tags::NODE_CLASS, "*"),
            Filter::tag(tags::CLUSTER_NAME, &self.setup.settings.cluster_name),
            states(),
        ];
        let ec2 = &self.setup.services.ec2;
        let found = self.counted("ec2:DescribeInstances", ec2.instances(&[], &filters)).await;
        let found = found.map_err(|error| Error::Other(format!("listing instances, {error}")))?;
        let reserved = self.setup.gates.reserved_capacity;
        let all: Vec<Machine> = found.into_iter().map(|each| Machine::described(each, reserved)).collect();
        let seen: BTreeSet<&str> = all.iter().map(|machine| machine.id.as_str()).collect();
        let shifted = self.shifted_zones();
        let mut known = self.machines.known.lock();
        known.retain(|id, machine| {
            seen.contains(id.as_str()) || shifted.contains(&machine.zone_id) || self.is_new(machine)
        });
        known.extend(all.iter().map(|machine| (machine.id.clone(), machine.clone())));
        drop(known);
        Ok(all)
    }

    /// Tags an instance.
    pub(crate) async fn tag(&self, machine: &Machine, tags: &Tags) -> Result<(), Error> {
        if self.is_shifted(machine) {
            return Err(left_alone(machine));
        }
        let ec2 = &self.setup.services.ec2;
        match self.counted("ec2:CreateTags", ec2.create_tags(&machine.id, tags)).await {
            Ok(()) => {
                if let Some(known) = self.machines.known.lock().get_mut(&machine.id) {
                    known.tags.extend(tags.clone());
                }
                Ok(())
            }
            Err(error) if error.is_not_found() && !self.is_new(machine) => {
                Err(Error::NotFound(format!("no instance {:?}", machine.id)))
            }
            Err(error) => Err(Error::Other(format!("tagging instance {}, {error}", machine.id))),
        }
    }

    /// Starts to terminate an instance.
    pub(crate) async fn terminate(&self, machine: &Machine) -> Result<(), Error> {
        if self.is_shifted(machine) {
            return Err(left_alone(machine));
        }
        if machine.state.is_ending() {
            return Ok(());
        }
        let answer = self.machines.terminate.ask(0, machine.id.clone()).await;
        match answer.unwrap_or_else(|| Err(no_answer("ec2:TerminateInstances"))) {
            Ok(()) => {
                if let Some(known) = self.machines.known.lock().get_mut(&machine.id) {
                    known.state = InstanceState::ShuttingDown;
                }
                Ok(())
            }
            // EC2 does not know it yet: that it is gone cannot be said.
            Err(error) if error.is_not_found() && !self.is_new(machine) => {
                self.machines.known.lock().remove(&machine.id);
                Err(Error::NotFound(format!("no instance {:?}", machine.id)))
            }
            Err(error) => {
                let place = [machine.zone.as_str(), machine.zone_id.as_str()];
                self.setup.metrics.add(&metrics::INSTANCE_TERMINATION_FAILURES, &place, 1.0);
                Err(Error::Other(format!("terminating instance {}, {error}", machine.id)))
            }
        }
    }
}

fn left_alone(machine: &Machine) -> Error {
    let Machine { id, zone, .. } = machine;
    Error::Other(format!("instance {id} is in zone {zone}, which is avoided; it is left alone"))
}

fn no_answer(operation: &'static str) -> port::Error {
    port::Error { operation, message: "the question was given up".to_owned(), ..port::Error::default() }
}

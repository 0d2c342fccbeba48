//! The loop that asks one method after the other whether there is anything to do.
//!
//! What a method with patience has decided waits; its nodes are as good as gone for whoever decides afterwards. When
//! its time has come it is validated, alone, against the cluster as it is then, and begun or given up.
//! What a method without patience has decided is begun at once, and everything is looked at anew.

mod idle;
mod measure;
mod runs;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::{CONSOLIDATABLE, DRIFTED, INITIALIZED};
use api::names::controllers::DISRUPTION;
use api::names::metrics::{DISRUPTION_ELIGIBLE_NODES, DISRUPTION_EVALUATION_DURATION};
use api::names::values::CONSOLIDATION_MULTI;
use cluster::costs::Costs;
use cluster::state::{Change, Key, Object, State};
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::Error;
use runtime::compute::compute;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};
use tokio::time::Instant;

use super::command::Command;
use super::decision::Decision;
use super::glance::{Glance, Look, View, glance};
use super::queue::Commands;
use super::scene::Scene;
use super::{Method, budget, leftovers};
use crate::catalogue::Types;
use crate::unfinished_work::UnfinishedWork;
use crate::wiring::Wiring;
use crate::{Context, catalogue};
use idle::Idle;
use runs::Runs;
use waiting::{Waiting, Waits};

/// How often there is a look while there is nothing to do.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often there is a look while the state cannot be relied on.
const UNSYNCED: Duration = Duration::from_secs(1);
/// How long changes are collected before there is a look.
const DELAY: Duration = Duration::from_secs(1);

struct Run {
    context: Context,
    methods: Arc<[Arc<dyn Method>]>,
    commands: Arc<Commands>,
    waits: Mutex<Waits>,
    /// When each method last found nothing, and in what.
    idle: Mutex<Vec<Option<Idle>>>,
    /// Whether the last run began something that was due.
    has_begun_due: AtomicBool,
    /// Pools in which nodes were to go together, which came to nothing: single ones have a turn first.
    single_first: Mutex<BTreeSet<Box<str>>>,
    runs: Mutex<Runs>,
    work: UnfinishedWork,
}

/// What a pass looks at.
struct Pass {
    types: Types,
    glance: Glance,
    /// How many nodes are passed over because commands rely on them.
    relied_on: usize,
    /// Instances of commands that wait.
    leaving: BTreeSet<Box<str>>,
    scene: Option<Arc<Scene>>,
    seen: cluster::state::Consolidated,
    now: Timestamp,
}

impl Reconcile for Run {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        self.run().boxed()
    }
}

impl Run {
    async fn run(&self) -> Outcome {
        let now = self.context.now();
        self.runs.lock().note("disruption-loop", now);
        let leftovers = {
            let state = self.context.cluster.read();
            if !state.is_current(now) {
                return Ok(Again::After(UNSYNCED));
            }
            leftovers::decide(&state, &self.commands.queued())
        };
        let mut failure = leftovers::clean_up(&self.context, &leftovers).await.err();
        let types = catalogue::of_all(&self.context).await?;
        // What is due is begun one after the other, which may take a while. Nodes that are broken, drifted or empty do
        // not wait for all of it.
        if self.has_begun_due.swap(false, Ordering::Relaxed) {
            match self.ask_all(types.clone(), |method| !method.settles()).await {
                Ok(Some(again)) => return Ok(again),
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        match self.validate_due(&types).await {
            Ok(false) => {}
            Ok(true) => {
                self.has_begun_due.store(true, Ordering::Relaxed);
                return Ok(Again::After(Duration::ZERO));
            }
            Err(error) => failure = Some(error),
        }
        match self.ask_all(types, |_| true).await {
            Ok(Some(again)) => return Ok(again),
            Ok(None) => {}
            Err(error) => failure = Some(error),
        }
        self.single_first.lock().clear();
        match failure {
            Some(error) => Err(error),
            None => Ok(Again::After(self.rest())),
        }
    }

    /// How long there is nothing to do.
    fn rest(&self) -> Duration {
        let due = self.waits.lock().next_due();
        due.map_or(INTERVAL, |due| self.context.clock.until(due).min(INTERVAL))
    }

    /// Lets methods decide, one after the other; when to go on, if anything was begun or cannot be now.
    async fn ask_all(&self, types: Types, is_asked: fn(&dyn Method) -> bool) -> Result<Option<Again>, Error> {
        let mut failure = None;
        let mut position = 0;
        'anew: loop {
            let Some(mut pass) = self.look(types.clone()).await else {
                return Ok(Some(Again::After(UNSYNCED)));
            };
            while position < self.methods.len() {
                if !is_asked(&*self.methods[position]) {
                    position += 1;
                    continue;
                }
                match self.ask(position, &mut pass).await {
                    Ok(Asked::Nothing) => position += 1,
                    Ok(Asked::Begun) => return Ok(Some(Again::After(Duration::ZERO))),
                    // The same method may find more in what is left.
                    Ok(Asked::Waits) if self.waits.lock().is_due(self.context.now()) => {
                        return Ok(Some(Again::After(Duration::ZERO)));
                    }
                    Ok(Asked::Waits) => continue 'anew,
                    // What is wrong with one method does not keep the others from working.
                    Err(error) => {
                        failure = Some(error);
                        position += 1;
                    }
                }
            }
            return failure.map_or(Ok(None), Err);
        }
    }

    /// Instances of commands that wait, and all that are no candidates: those, and those of commands under way.
    fn taken(&self) -> (BTreeSet<Box<str>>, BTreeSet<Box<str>>) {
        let leaving = self.waits.lock().instances();
        let mut taken = leaving.clone();
        taken.extend(self.commands.queued());
        (leaving, taken)
    }

    /// What there is to look at now; nothing while the state cannot be relied on.
    async fn look(&self, types: Types) -> Option<Pass> {
        let (context, methods) = (self.context.clone(), Arc::clone(&self.methods));
        let (leaving, taken) = self.taken();
        let mut relied_on = self.commands.destinations();
        relied_on.extend(self.waits.lock().destinations());
        let pass = compute(move || {
            let now = context.now();
            let state = context.cluster.read();
            if !state.is_current(now) {
                return None;
            }
            let costs = costs(&context);
            let look =
                Look { types: &types, taken: &taken, relied_on: &relied_on, leaving: &leaving, costs, now };
            let glance = glance(&state, methods.iter().map(AsRef::as_ref), look);
            let relied_on = relied_on.len();
            let seen = state.consolidated_at(now);
            drop(state);
            Some(Pass { types, glance, relied_on, leaving, scene: None, seen, now })
        });
        let mut pass = pass.await?;
        for notice in std::mem::take(&mut pass.glance.notices) {
            notice.publish(&self.context.events);
        }
        self.tell_eligible(&pass.glance);
        Some(pass)
    }

    /// Tells how many nodes there is something to do about, those included that wait.
    fn tell_eligible(&self, glance: &Glance) {
        let mut names = BTreeMap::<&str, BTreeSet<&str>>::new();
        for (method, view) in self.methods.iter().zip(&glance.views) {
            let of_reason = names.entry(method.reason().lower()).or_default();
            of_reason.extend(view.candidates.iter().map(|candidate| &*candidate.provider_id));
        }
        let waits = self.waits.lock();
        for command in waits.commands() {
            names.entry(command.reason.lower()).or_default().extend(command.provider_ids());
        }
        for (reason, names) in names {
            #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
            self.context.metrics.set(&DISRUPTION_ELIGIBLE_NODES, &[reason], names.len() as f64);
        }
    }

    /// Lets a method decide.
    async fn ask(&self, position: usize, pass: &mut Pass) -> Result<Asked, Error> {
        let (method, start) = (Arc::clone(&self.methods[position]), Instant::now());
        let asked = self.ask_method(position, &method, pass).await;
        let labels = [method.reason().lower(), method.consolidation_type()];
        let elapsed = start.elapsed().as_secs_f64();
        self.context.metrics.observe(&DISRUPTION_EVALUATION_DURATION, &labels, elapsed);
        let commands = asked?;
        if commands.is_empty() {
            return Ok(Asked::Nothing);
        }
        let patience = method.patience();
        if patience.is_zero() {
            return self.start(commands).await.map(|()| Asked::Begun);
        }
        let due = self.context.now() + patience;
        let mut waits = self.waits.lock();
        for command in commands {
            waits.add(Waiting { method: position, command, due, is_second: false });
        }
        Ok(Asked::Waits)
    }

    async fn ask_method(
        &self,
        position: usize,
        method: &Arc<dyn Method>,
        pass: &mut Pass,
    ) -> Result<Vec<Command>, Error> {
        let (context, reason) = (&self.context, method.reason());
        self.runs.lock().note(run_name(&**method), pass.now);
        let View { mut candidates, mut budgets, stays: _ } = std::mem::take(&mut pass.glance.views[position]);
        let eligible = candidates.len() + pass.relied_on;
        if candidates.is_empty() {
            self.tell_coverage(&**method, 0, eligible);
            return Ok(Vec::new());
        }
        budget::publish(context, &budgets, reason);
        candidates.retain(|it| !self.commands.is_paused(it, reason, pass.now));
        if method.settles() {
            let mut unsettled = self.commands.unsettled_pools(pass.now);
            unsettled.extend(self.waits.lock().unsettled_pools());
            candidates.retain(|it| !unsettled.contains(it.pool_name()));
        }
        if method.consolidation_type() == CONSOLIDATION_MULTI {
            let single_first = self.single_first.lock();
            candidates.retain(|it| !single_first.contains(it.pool_name()));
        }
        self.tell_coverage(&**method, candidates.len(), eligible);
        let idle = Idle::new((pass.seen, pass.now), &candidates, &budgets, &pass.leaving, &pass.types);
        let is_idle = candidates.is_empty() || {
            let known = self.idle.lock();
            known[position].as_ref().is_some_and(|last| last.holds(&idle, &context.cluster.read(), pass.now))
        };
        if is_idle {
            return Ok(Vec::new());
        }
        let scene = self.scene(pass).await;
        let (asked, start) = (Arc::clone(method), Instant::now());
        let running = self.work.begin();
        let (decided, simulated) = compute(move || {
            let decided = caught(&*asked, |method| method.decide(&scene, candidates, &mut budgets));
            (decided, scene.take_simulated())
        })
        .await;
        self.tell_simulated(&running, simulated, start.elapsed());
        drop(running);
        let Decision { mut commands, notices, measures, nothing, stays: _ } = decided?;
        for notice in notices {
            notice.publish(&context.events);
        }
        for measure in measures {
            measure.publish(&context.metrics);
        }
        commands.retain(|command| !command.candidates.is_empty());
        self.idle.lock()[position] = (nothing && commands.is_empty()).then_some(idle);
        Ok(commands)
    }

    /// The scene of a pass, which is made when it is needed first.
    async fn scene(&self, pass: &mut Pass) -> Arc<Scene> {
        if let Some(scene) = &pass.scene {
            return Arc::clone(scene);
        }
        let (context, types, leaving) = (self.context.clone(), pass.types.clone(), pass.leaving.clone());
        let now = pass.now;
        let scene = compute(move || {
            let refusals = context.launches.refusals(&context.cluster, now);
            Scene::new(&context.cluster.read(), &types, &context.settings, &leaving, now).knowing(refusals)
        });
        let scene = Arc::new(scene.await);
        pass.scene = Some(Arc::clone(&scene));
        scene
    }

    async fn start(&self, commands: Vec<Command>) -> Result<(), Error> {
        let (limited, others): (Vec<_>, Vec<_>) = commands.into_iter().partition(Command::is_limited);
        // Where there are limits, each must see what those before it have launched.
        let one_by_one = async {
            let mut started = Vec::new();
            for command in limited {
                started.push(self.commands.start(command).await);
            }
            started
        };
        let others = join_all(others.into_iter().map(|command| self.commands.start(command)));
        let (mut started, others) = join(one_by_one, others).await;
        started.extend(others);
        let is_any = started.iter().any(Result::is_ok);
        for error in started.into_iter().filter_map(Result::err) {
            if !is_any {
                return Err(error);
            }
            // Those that could be begun are under way.
            tracing::error!(error = %error, "failed to start a disruption");
        }
        Ok(())
    }
}

/// What came of asking a method.
enum Asked {
    Nothing,
    /// Something waits.
    Waits,
    /// Something is under way.
    Begun,
}

fn costs(context: &Context) -> Costs {
    // What this process itself writes says nothing about what pods cost their users.
    Costs { pod_deletion_cost: !context.settings.gates.pod_deletion_cost_management }
}

fn run_name(method: &dyn Method) -> &'static str {
    match method.consolidation_type() {
        "" => method.reason().lower(),
        kind => kind,
    }
}

/// Asks a method something. One that panics fails, and nothing else does.
fn caught<R>(method: &dyn Method, ask: impl FnOnce(&dyn Method) -> R) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(|| ask(method))).map_err(|_| {
        let reason = method.reason().text();
        Error::Other(format!("disrupting for reason {reason} failed, see above"))
    })
}

/// Whether there may be something new to do after a change. Pods come and go all the time; what that means for nodes
/// is seen in the next regular look.
fn is_news(change: &Change) -> bool {
    let conditions = |object: &Option<Object>| match object {
        Some(Object::NodeClaim(claim)) => {
            Some([CONSOLIDATABLE, DRIFTED, INITIALIZED].map(|condition| claim.is_true(condition)))
        }
        _ => None,
    };
    let generation = |object: &Option<Object>| match object {
        Some(Object::NodePool(pool)) => pool.metadata.generation,
        _ => None,
    };
    match change.object() {
        Object::NodeClaim(_) => conditions(&change.old) != conditions(&change.new),
        Object::NodePool(_) => generation(&change.old) != generation(&change.new),
        _ => false,
    }
}

/// The controller.
pub(super) fn controller(
    context: &Context,
    methods: Vec<Arc<dyn Method>>,
    commands: Arc<Commands>,
) -> Controller {
    // Errors that repeat must not stop consolidation for long.
    let queue = Arc::new(Queue::new(Backoff::millis(5, 10_000)));
    queue.add(Key::cluster(DISRUPTION));
    let woken = Arc::clone(&queue);
    context.cluster.listen(Box::new(move |change: &Change, _: &State| {
        if is_news(change) {
            woken.add_after(Key::cluster(DISRUPTION), DELAY);
        }
    }));
    let run = Run {
        context: context.clone(),
        idle: Mutex::new(methods.iter().map(|_| None).collect()),
        methods: methods.into(),
        commands,
        waits: Mutex::default(),
        has_begun_due: AtomicBool::new(false),
        single_first: Mutex::default(),
        runs: Mutex::default(),
        work: UnfinishedWork::new(DISRUPTION, &context.metrics),
    };
    Wiring::new(DISRUPTION, 1).on(queue, Arc::new(run))
}

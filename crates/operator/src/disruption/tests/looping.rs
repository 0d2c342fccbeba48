//! How the loop deals with methods.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ::cloud::{RepairAction, RepairPolicy};
use api::names::controllers::DISRUPTION;
use api::names::metrics::runtime::RECONCILE_ERRORS;
use api::names::metrics::{DISRUPTION_DECISIONS, DISRUPTION_FAILED_VALIDATIONS};
use embedded::faults::{Fault, Rule};
use runtime::Settings;
use testkit::World;

use super::cluster::{add_node, cluster_by, is_tainted, pod, pod_asking, run};
use super::decided::drifted;
use super::replacing::new_claims;
use super::*;
use crate::Context;
use crate::disruption::budget::{Budget, Budgets};
use crate::disruption::command::Command;
use crate::disruption::consolidation::Consolidation;
use crate::disruption::decision::{Cause, Decision, Invalid};
use crate::disruption::emptiness::Emptiness;
use crate::disruption::queue::{self, Commands};
use crate::disruption::scene::Scene;
use crate::disruption::static_drift::one_for_one;
use crate::disruption::stay::Stay;
use crate::disruption::{Method, Reason, controllers, run as looping};
use crate::testing::{FakeCloud, Logged, NODE_POOL, Operated};

/// Consolidates so many nodes at a time, whatever is on them.
#[derive(Default)]
struct Fake {
    batch: usize,
    single: bool,
    settles: bool,
    asked: AtomicUsize,
    finds_nothing: AtomicBool,
    panics: AtomicBool,
    /// It replaces each node by another one, at once, and that is all it does.
    replaces: bool,
}

impl Method for Fake {
    fn reason(&self) -> Reason {
        Reason(DisruptionReason::Underutilized)
    }

    fn class(&self) -> Class {
        Class::Graceful
    }

    fn consolidation_type(&self) -> &'static str {
        if self.single { "single" } else { "multi" }
    }

    fn patience(&self) -> Duration {
        if self.replaces { Duration::ZERO } else { Duration::from_secs(15) }
    }

    fn settles(&self) -> bool {
        self.settles
    }

    fn accepts(&self, _: &State, _: &Candidate) -> Result<(), Option<Stay>> {
        Ok(())
    }

    fn decide(&self, scene: &Scene, mut candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics.load(Ordering::Relaxed), "on purpose");
        candidates.truncate(self.batch);
        candidates.retain(|it| budgets.get_mut(it.pool_name()).is_some_and(Budget::take));
        if self.replaces && !self.finds_nothing.swap(true, Ordering::Relaxed) {
            let commands = candidates.into_iter().map(|it| one_for_one(self, scene, it).unwrap());
            return Decision { commands: commands.collect(), ..Decision::default() };
        }
        let nothing = self.finds_nothing.load(Ordering::Relaxed);
        let commands = if nothing { vec![] } else { vec![Command::delete(self, candidates, scene.now)] };
        Decision { commands, nothing, ..Decision::default() }
    }

    fn validate(
        &self,
        _: &Scene,
        command: Command,
        candidates: Vec<Candidate>,
        budgets: &mut Budgets,
    ) -> Result<Command, Invalid> {
        let is_left = |it: &Candidate| candidates.iter().any(|now| now.name() == it.name());
        if !command.candidates.iter().all(is_left) {
            return Err(Invalid::new(Cause::Churn, "candidates are no longer valid"));
        }
        let take = |it: &Candidate| budgets.get_mut(it.pool_name()).is_some_and(Budget::take);
        if !command.candidates.iter().all(take) {
            return Err(Invalid::new(Cause::Budget, "a budget no longer allows the disruption"));
        }
        Ok(command)
    }
}

/// A cluster with some nodes and these methods.
fn cluster(budget: &str, nodes: &[&str], methods: Vec<Arc<dyn Method>>) -> Operated {
    cluster_by(budget, nodes, |context| {
        let (commands, queue) = Commands::new(context);
        vec![
            looping::controller(context, methods, Arc::clone(&commands)),
            queue::controller(context, commands, queue),
        ]
    })
}

fn fake(batch: usize) -> Arc<Fake> {
    Arc::new(Fake { batch, ..Fake::default() })
}

#[test]
fn several_commands_wait_at_the_same_time_but_no_more_than_the_budget_allows() {
    let names = ["n1", "n2", "n3", "n4"];
    let mut cluster = cluster("2", &names, vec![fake(1)]);
    let finalizers = json!({"metadata": {"finalizers": ["test/stays"]}});
    for name in names {
        cluster.patch(&format!("/apis/karpenter.sh/v1/nodeclaims/claim-{name}"), &finalizers);
    }
    run(&mut cluster, 14);
    assert!(names.iter().all(|name| !is_tainted(&cluster, name)));
    run(&mut cluster, 4);
    // Both were decided at once, and were begun at once.
    assert_eq!(names.map(|name| is_tainted(&cluster, name)), [true, true, false, false]);
    run(&mut cluster, 120);
    assert_eq!(names.map(|name| is_tainted(&cluster, name)), [true, true, false, false]);
    let decisions =
        cluster.context.metrics.value(&DISRUPTION_DECISIONS, &["delete", "underutilized", "multi"]);
    assert_eq!(decisions, Some(2.0));
    // Those that are gone make way for others.
    for name in ["n1", "n2"] {
        let claim = format!("/apis/karpenter.sh/v1/nodeclaims/claim-{name}");
        cluster.patch(&claim, &json!({"metadata": {"finalizers": null}}));
        cluster.delete(&format!("/api/v1/nodes/{name}"));
    }
    run(&mut cluster, 30);
    assert!(is_tainted(&cluster, "n3") && is_tainted(&cluster, "n4"));
}

/// Consolidation, as the loop knows it.
fn patient(batch: usize) -> Arc<Fake> {
    Arc::new(Fake { batch, settles: true, ..Fake::default() })
}

#[test]
fn other_nodes_of_a_pool_stay_until_what_was_begun_has_come_to_rest() {
    let names = ["n1", "n2"];
    let mut cluster = cluster("100%", &names, vec![patient(1)]);
    let finalizers = json!({"metadata": {"finalizers": ["test/stays"]}});
    cluster.patch("/apis/karpenter.sh/v1/nodeclaims/claim-n1", &finalizers);
    run(&mut cluster, 50);
    assert_eq!(names.map(|name| is_tainted(&cluster, name)), [true, false]);
    // A node that takes long to go does not hold up the others for ever.
    run(&mut cluster, 60);
    assert_eq!(names.map(|name| is_tainted(&cluster, name)), [true, true]);
}

#[test]
fn other_nodes_of_a_pool_follow_once_the_first_are_gone() {
    let mut cluster = cluster("100%", &["n1", "n2"], vec![patient(1)]);
    run(&mut cluster, 70);
    assert!(cluster.claims().is_empty());
}

#[test]
fn what_waits_keeps_its_budget_from_other_methods() {
    // Emptiness has its turn first, and takes all of the budget.
    let mut cluster = cluster("1", &["n1"], vec![Arc::new(Emptiness), fake(1)]);
    add_node(&cluster, "n2", &json!({}), &json!({}));
    cluster.apply(&pod("a", "n2"));
    run(&mut cluster, 25);
    let decisions = |labels: &[&str]| cluster.context.metrics.value(&DISRUPTION_DECISIONS, labels);
    assert_eq!(decisions(&["delete", "empty", "empty"]), Some(1.0));
    assert_eq!(decisions(&["delete", "underutilized", "multi"]), None);
}

#[test]
fn users_are_told_that_a_consolidation_of_several_nodes_did_not_hold() {
    let mut cluster = cluster("100%", &["n1", "n2"], vec![fake(2)]);
    run(&mut cluster, 10);
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    cluster.patch("/api/v1/nodes/n1", &protected);
    run(&mut cluster, 8);
    assert!(!is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    let told = cluster.context.events.published();
    let told: Vec<_> = told.iter().filter(|event| &*event.reason == "ConsolidationRejected").collect();
    assert_eq!(told.len(), 4);
    assert!(told[0].message.starts_with(
        "Consolidation rejected: delete: [n1] (part of 2-node consolidation), reason: churn (savings: $"
    ));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_FAILED_VALIDATIONS, &["multi"]), Some(2.0));
    // The one that is left goes by itself, after single nodes had their turn.
    run(&mut cluster, 30);
    assert!(!is_tainted(&cluster, "n1") && is_tainted(&cluster, "n2"));
}

#[test]
fn where_several_nodes_could_not_go_together_single_ones_have_a_turn_first() {
    let several = Arc::new(Fake { batch: 3, settles: true, ..Fake::default() });
    let one = Arc::new(Fake { batch: 1, single: true, settles: true, ..Fake::default() });
    let mut cluster = cluster("100%", &["n1", "n2", "n3"], vec![several, one]);
    run(&mut cluster, 10);
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    cluster.patch("/api/v1/nodes/n1", &protected);
    run(&mut cluster, 24);
    let decisions = |kind| {
        let labels = ["delete", "underutilized", kind];
        cluster.context.metrics.value(&DISRUPTION_DECISIONS, &labels)
    };
    assert_eq!((decisions("multi"), decisions("single")), (None, Some(1.0)));
    run(&mut cluster, 60);
    // The next time several have their turn again.
    assert_eq!(
        cluster.context.metrics.value(&DISRUPTION_DECISIONS, &["delete", "underutilized", "multi"]),
        Some(1.0)
    );
}

#[test]
fn what_is_due_does_not_keep_others_waiting_until_all_of_it_is_begun() {
    let names = ["n1", "n2", "n3", "n4", "n5"];
    let urgent = Arc::new(Fake { replaces: true, ..Fake::default() });
    let methods: Vec<Arc<dyn Method>> = vec![Arc::clone(&urgent) as Arc<dyn Method>, fake(1)];
    let mut cluster = cluster("4", &names, methods);
    run(&mut cluster, 14);
    let asked = || urgent.asked.load(Ordering::Relaxed);
    let before = asked();
    run(&mut cluster, 4);
    assert_eq!(names.map(|name| is_tainted(&cluster, name)), [true, true, true, true, false]);
    assert!(asked() - before >= 2, "{}", asked() - before);
}

#[test]
fn a_node_that_cannot_be_marked_keeps_no_others() {
    let mut cluster = cluster("1", &["n1", "n2"], vec![fake(1)]);
    cluster.faults.set_rules(vec![Rule::on("patch", "nodes", 1.0, Fault::InternalError)]);
    run(&mut cluster, 20);
    cluster.faults.set_rules(Vec::new());
    run(&mut cluster, 30);
    assert_eq!(["n1", "n2"].map(|name| is_tainted(&cluster, name)), [false, true]);
}

#[test]
fn what_does_not_hold_any_more_does_not_keep_the_next_one_waiting() {
    //
    let mut cluster = cluster("100%", &["n1", "n2", "n3"], vec![fake(1)]);
    run(&mut cluster, 10);
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    cluster.patch("/api/v1/nodes/n1", &protected);
    run(&mut cluster, 8);
    // They were decided after it, and are begun all the same.
    assert_eq!(["n1", "n2", "n3"].map(|name| is_tainted(&cluster, name)), [false, true, true]);
}

#[test]
fn commands_that_wait_at_the_same_time_do_not_rely_on_each_other_s_nodes() {
    // Also if there is less room after the wait than there was before.
    for late in [false, true] {
        let names = ["n1", "n2", "n3", "n4", "n5", "n6"];
        let mut cluster = cluster("100%", &names, vec![Arc::new(Consolidation::Single)]);
        let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        add_node(&cluster, "z", &protected, &json!({}));
        for name in names {
            cluster.apply(&pod_asking(&format!("on-{name}"), name, "1").to_string());
        }
        run(&mut cluster, 10);
        if late {
            cluster.apply(&pod_asking("late", "n2", "3").to_string());
        }
        run(&mut cluster, 20);
        // Three find room on the second one or, later, on the last one, which would have taken the fourth.
        let decisions = ["delete", "underutilized", "single"];
        assert_eq!(cluster.context.metrics.value(&DISRUPTION_DECISIONS, &decisions), Some(4.0));
        let told = cluster.context.events.published();
        assert!(told.iter().all(|event| &*event.reason != "ConsolidationRejected"), "{late}");
        assert_eq!(cluster.context.metrics.value(&DISRUPTION_FAILED_VALIDATIONS, &["single"]), None);
    }
}

#[test]
fn a_budget_that_shrinks_meanwhile_is_obeyed() {
    let mut cluster = cluster("2", &["n1", "n2"], vec![fake(2)]);
    run(&mut cluster, 10);
    let change = json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 8);
    assert!(!is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_FAILED_VALIDATIONS, &["multi"]), Some(2.0));
}

#[test]
fn a_method_that_fails_does_not_keep_the_others_from_working() {
    let broken = fake(1);
    broken.panics.store(true, Ordering::Relaxed);
    let methods: Vec<Arc<dyn Method>> = vec![Arc::clone(&broken) as Arc<dyn Method>, Arc::new(Emptiness)];
    let mut cluster = cluster("100%", &["n1", "n2"], methods);
    cluster.apply(&pod("a", "n2"));
    run(&mut cluster, 40);
    assert_eq!(cluster.claims().len(), 1);
    // It is asked again and again, but not all the time.
    let asked = || broken.asked.load(Ordering::Relaxed);
    assert!((2..40).contains(&asked()), "{}", asked());
    // however long that lasts.
    run(&mut cluster, 15 * 60);
    let before = asked();
    run(&mut cluster, 60);
    assert!((5..=7).contains(&(asked() - before)), "{}", asked() - before);
}

#[test]
fn a_command_that_cannot_be_begun_keeps_neither_the_others_nor_the_loop() {
    // there is room for one of the two.
    let fake = Arc::new(Fake { batch: 2, replaces: true, ..Fake::default() });
    let mut cluster = Operated::by(|context| {
        let (commands, queue) = Commands::new(context);
        vec![
            looping::controller(context, vec![fake], Arc::clone(&commands)),
            queue::controller(context, commands, queue),
        ]
    });
    let fixed =
        "spec:\n  replicas: 2\n  limits: {nodes: 3}\n  disruption: {budgets: [{nodes: '100%'}]}\n  template";
    cluster.apply(&NODE_POOL.replace("spec:\n  template", fixed));
    for name in ["n1", "n2"] {
        add_node(&cluster, name, &json!({}), &json!({}));
    }
    let logged = Logged::start();
    run(&mut cluster, 30);
    assert_eq!(["n1", "n2"].map(|name| is_tainted(&cluster, name)), [true, false]);
    assert_eq!(new_claims(&cluster).len(), 1);
    let line =
        "ERROR message=failed to start a disruption error=nodepool node limit reached (NodePool=default)";
    assert_eq!(logged.with("failed to start"), [line]);
    assert_eq!(cluster.context.metrics.value(&RECONCILE_ERRORS, &[DISRUPTION]), Some(0.0));
}

#[test]
fn broken_nodes_have_their_turn_before_all_others() {
    let mut settings = Settings::default();
    settings.gates.node_repair = true;
    let mut cluster = Operated::with(World::new(1), settings, |context| {
        let cloud = FakeCloud::default();
        *cloud.policies.lock() = vec![RepairPolicy {
            condition: "Bad",
            status: "True",
            reason_pattern: "",
            toleration: Duration::ZERO,
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::Replace,
        }];
        controllers(&Context { cloud: Arc::new(cloud), ..context.clone() })
    });
    let one = "spec:\n  disruption: {budgets: [{nodes: '1'}]}\n  template";
    cluster.apply(&NODE_POOL.replace("spec:\n  template", one));
    // One that is empty, one that has drifted, and one that is broken.
    add_node(&cluster, "a", &json!({}), &json!({}));
    add_node(&cluster, "b", &json!({}), &drifted("2026-01-01T00:00:00Z"));
    cluster.apply(&pod("of-b", "b"));
    let bad = json!({"type": "Bad", "status": "True", "reason": "Because",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, bad]}});
    add_node(&cluster, "z", &conditions, &json!({"metadata": {"finalizers": ["test/stays"]}}));
    run(&mut cluster, 60);
    assert_eq!(["a", "b", "z"].map(|name| is_tainted(&cluster, name)), [false, false, true]);
}

#[test]
fn a_method_that_found_nothing_is_not_asked_again_until_something_changes() {
    let idle = fake(1);
    idle.finds_nothing.store(true, Ordering::Relaxed);
    let mut cluster = cluster("100%", &["n1"], vec![Arc::clone(&idle) as Arc<dyn Method>]);
    run(&mut cluster, 30);
    let asked = || idle.asked.load(Ordering::Relaxed);
    let before = asked();
    run(&mut cluster, 120);
    assert_eq!(asked(), before);
    // A node that comes, a budget that changes, five minutes that pass.
    add_node(&cluster, "n2", &json!({}), &json!({}));
    run(&mut cluster, 15);
    let after_node = asked();
    assert!(after_node > before);
    let change = json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 15);
    let after_budget = asked();
    assert!(after_budget > after_node);
    run(&mut cluster, 6 * 60);
    assert!(asked() > after_budget);
}

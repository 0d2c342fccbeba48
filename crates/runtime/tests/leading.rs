//! Leadership against the embedded API server: several candidates, and what goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use embedded::faults::{Fault, Faulty, Rule};
use parking_lot::Mutex;
use runtime::leader::{Candidate, Election, Ended};
use runtime::metrics::Registry;
use testkit::World;
use tokio::sync::{Notify, watch};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/karpenter-leader-election";

/// A candidate that runs.
struct Running {
    leads: watch::Receiver<bool>,
    stop: Arc<Notify>,
    ended: Arc<Mutex<Option<Ended>>>,
    metrics: Registry,
    faulty: Faulty,
}

impl Running {
    fn leads(&self) -> bool {
        *self.leads.borrow()
    }
}

/// How many lead at the same time, looked at every tenth of a second; more than one is never right.
fn start(world: &World, name: &str, seed: u64) -> Running {
    let faulty = Faulty::new(world.server().service(), seed);
    let candidate = Candidate {
        name: "karpenter-leader-election".to_owned(),
        namespace: "default".to_owned(),
        identity: name.to_owned(),
    };
    let metrics = Registry::default();
    let client = world.block_on(async { kube::Client::new(faulty.clone(), "default") });
    let election = Election::new(client, world.clock(), candidate, seed, &metrics);
    let leads = election.leads();
    let (stop, ended) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
    let running = Running { leads, stop: Arc::clone(&stop), ended: Arc::clone(&ended), metrics, faulty };
    world.spawn(async move {
        let end = election.run(async move { stop.notified().await }).await;
        *ended.lock() = Some(end);
    });
    running
}

fn world() -> World {
    World::builder(3).without_scheduler().start()
}

/// Lets time pass in small steps; never do both lead.
#[track_caller]
fn run(world: &mut World, a: &Running, b: &Running, seconds: u64) {
    for _ in 0..seconds * 10 {
        world.run_for(Duration::from_millis(100));
        assert!(!(a.leads() && b.leads()), "two leaders");
    }
}

#[test]
fn the_first_leads_and_the_other_waits() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(1));
    let b = start(&world, "b", 2);
    run(&mut world, &a, &b, 120);
    assert!(a.leads() && !b.leads());
    let lease = world.get(LEASE).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "a");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    assert_eq!(lease["spec"]["acquireTime"], "2026-01-05T09:00:00.000000Z");
    let page = a.metrics.page();
    assert!(page.contains("leader_election_master_status{name=\"karpenter-leader-election\"} 1\n"), "{page}");
    assert!(
        page.contains("leader_election_slowpath_total{name=\"karpenter-leader-election\"} 0\n"),
        "{page}"
    );
    assert!(
        b.metrics.page().contains("leader_election_master_status{name=\"karpenter-leader-election\"} 0\n")
    );
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(1));
    let b = start(&world, "b", 2);
    run(&mut world, &a, &b, 31);
    a.stop.notify_one();
    run(&mut world, &a, &b, 1);
    assert_eq!(*a.ended.lock(), Some(Ended::Released));
    assert!(b.leads(), "{}", world.get(LEASE).unwrap());
    assert_eq!(world.get(LEASE).unwrap()["spec"]["leaseTransitions"], 1);
}

#[test]
fn a_leader_without_connection_gives_up_before_another_takes_over() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(1));
    let b = start(&world, "b", 2);
    run(&mut world, &a, &b, 10);
    a.faulty.set_rules(vec![Rule::everywhere(1.0, Fault::Cut)]);
    run(&mut world, &a, &b, 13);
    assert!(!a.leads() && !b.leads());
    assert_eq!(*a.ended.lock(), Some(Ended::Lost));
    run(&mut world, &a, &b, 8);
    assert!(b.leads());
}

#[test]
fn a_leader_whose_requests_hang_gives_up_in_time() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(1));
    let b = start(&world, "b", 2);
    run(&mut world, &a, &b, 10);
    a.faulty.set_rules(vec![Rule::everywhere(1.0, Fault::Delay(Duration::from_mins(1)))]);
    run(&mut world, &a, &b, 40);
    assert_eq!(*a.ended.lock(), Some(Ended::Lost));
    assert!(b.leads());
}

#[test]
fn short_troubles_cost_no_leadership() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(1));
    let b = start(&world, "b", 2);
    for fault in [Fault::Cut, Fault::LostReply, Fault::InternalError, Fault::Conflict, Fault::Unavailable] {
        a.faulty.set_rules(vec![Rule::everywhere(0.3, fault)]);
        run(&mut world, &a, &b, 60);
        assert!(a.leads(), "{fault:?}");
    }
    assert!(a.faulty.injected() > 10);
}

#[test]
fn a_lease_that_somebody_else_took_is_lost() {
    let mut world = world();
    let a = start(&world, "a", 1);
    world.run_for(Duration::from_secs(5));
    assert!(a.leads());
    world.patch(LEASE, &serde_json::json!({"spec": {"holderIdentity": "thief"}}));
    world.run_for(Duration::from_secs(3));
    assert_eq!((a.leads(), *a.ended.lock()), (false, Some(Ended::Lost)));
}

#[test]
fn whatever_happens_there_is_at_most_one_leader() {
    for seed in 0..5 {
        let mut world = World::builder(seed).without_scheduler().start();
        let faults = || {
            vec![
                Rule::everywhere(0.1, Fault::Cut),
                Rule::everywhere(0.1, Fault::LostReply),
                Rule::everywhere(0.1, Fault::Delay(Duration::from_secs(4))),
                Rule::everywhere(0.1, Fault::DelayedReply(Duration::from_secs(7))),
                Rule::everywhere(0.1, Fault::Conflict),
                Rule::everywhere(0.1, Fault::StaleRead { behind: 3 }),
            ]
        };
        let mut all: Vec<Running> = Vec::new();
        let changes = AtomicUsize::new(0);
        for step in 0..3000_u64 {
            let alive = all.iter().filter(|running| running.ended.lock().is_none()).count();
            if alive < 3 {
                let running = start(&world, &format!("candidate-{step}"), seed * 1000 + step);
                running.faulty.set_rules(faults());
                all.push(running);
            }
            if step % 600 == 599
                && let Some(leader) = all.iter().find(|running| running.leads())
            {
                leader.stop.notify_one();
                changes.fetch_add(1, Ordering::Relaxed);
            }
            world.run_for(Duration::from_millis(100));
            let leaders = all.iter().filter(|running| running.leads()).count();
            assert!(leaders <= 1, "{leaders} leaders at step {step} of seed {seed}");
        }
        assert!(changes.load(Ordering::Relaxed) > 1, "hardly anybody ever led");
    }
}

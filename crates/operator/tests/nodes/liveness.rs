//! 16.22: liveness of NodeClaims, and what it says about their pool.

use std::time::Duration;

use api::names::metrics::NODECLAIMS_DISRUPTED;
use cloud::Error;
use embedded::faults::{Fault, Rule};
use serde_json::json;
use testkit::World;

use crate::support::{FakeCloud, Operated};

#[test]
fn a_claim_whose_node_never_joins_is_given_up_after_fifteen_minutes() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("a", &json!({}));
    world.pass(15 * 60 - 5);
    assert_eq!((world.is_claim_gone("a"), world.cloud.running()), (false, 1));
    world.pass(30);
    assert_eq!((world.is_claim_gone("a"), world.cloud.running()), (true, 0));
    let series = ["registration_timeout", "pool", "on-demand", "", "graceful"];
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &series), 1);
}

#[test]
fn a_claim_that_cannot_be_launched_is_given_up_after_five_minutes() {
    let mut world = Operated::start();
    world.cloud.create_failures.lock().extend(vec![Error::Other("broken".to_owned()); 100]);
    world.add_claim("a", &json!({}));
    world.pass(5 * 60 - 5);
    assert!(!world.is_claim_gone("a"));
    world.pass(60);
    assert!(world.is_claim_gone("a"));
    assert_eq!(world.cloud.terminations(), 0, "there is nothing to terminate");
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &["launch_timeout", "pool", "", "", "graceful"]), 1);
}

#[test]
fn a_cloud_can_give_launches_more_time() {
    let cloud = FakeCloud::default();
    *cloud.launch_timeout.lock() = Some(Duration::from_mins(10));
    let mut world = Operated::with(World::new(1), cloud);
    world.cloud.create_failures.lock().extend(vec![Error::Other("broken".to_owned()); 100]);
    world.add_claim("a", &json!({}));
    world.pass(10 * 60 - 5);
    assert!(!world.is_claim_gone("a"));
    // As long as it has time, others wait for it.
    assert!(!world.context.cluster.read().is_synced(world.context.now()));
    world.pass(65);
    assert!(world.is_claim_gone("a"));
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &["launch_timeout", "pool", "", "", "graceful"]), 1);
}

#[test]
fn a_registered_claim_is_never_given_up() {
    let mut world = Operated::start();
    let startup = json!([{"key": "example.com/starts", "effect": "NoSchedule"}]);
    world.add_claim("a", &json!({"spec": {"startupTaints": startup}}));
    world.pass(3600);
    assert_eq!(
        (world.condition("a", "Registered"), world.condition("a", "Initialized")),
        ("True".into(), "Unknown".into())
    );
}

#[test]
fn two_failures_make_a_pool_unhealthy_and_a_success_does_not_hide_them() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("a", &json!({}));
    world.pass(16 * 60);
    assert_ne!(world.pool_said("NodeRegistrationHealthy").split(' ').next(), Some("False"));
    world.add_claim("b", &json!({}));
    world.pass(16 * 60);
    assert_eq!(
        world.pool_said("NodeRegistrationHealthy"),
        "False RegistrationFailed: Failed to register node"
    );
    *world.cloud.nodes_fail.lock() = false;
    world.add_node("c", &json!({}));
    assert!(world.pool_said("NodeRegistrationHealthy").starts_with("False"));
    for name in ["d", "e"] {
        world.add_node(name, &json!({}));
    }
    assert!(world.pool_said("NodeRegistrationHealthy").starts_with("True"));
}

#[test]
fn a_claim_that_cannot_be_deleted_at_once_has_failed_once() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    // Two failures would make the pool unhealthy.
    world.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    world.add_claim("a", &json!({}));
    world.pass(16 * 60);
    assert!(!world.is_claim_gone("a"));
    world.faults.set_rules(Vec::new());
    world.pass(5 * 60);
    assert!(world.is_claim_gone("a"));
    assert_ne!(world.pool_said("NodeRegistrationHealthy").split(' ').next(), Some("False"));
}

#[test]
fn a_pool_says_why_its_claims_cannot_be_launched() {
    let mut world = Operated::start();
    world.cloud.create_failures.lock().extend(vec![Error::Other("no quota".to_owned()); 1000]);
    world.add_claim("a", &json!({}));
    world.add_claim("b", &json!({}));
    world.pass(7 * 60);
    assert_eq!(world.pool_said("NodeRegistrationHealthy"), "False LaunchFailed: no quota");
}

//! The operator may end at any moment.

use std::time::Duration;

use super::manifests::{deployment, manifest, node_class, pool};
use crate::stage::{CLAIMS, Stage};

pub(super) fn an_operator_that_is_killed_at_any_moment_launches_nothing_twice(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("inflate", 5, "1")]));
    // Each time it gets a little further: to the batch, the claim, the launch, the registration.
    for step in 1..12 {
        stage.pass(Duration::from_millis(250 * step));
        stage.kill_operator();
        stage.pass(Duration::from_millis(300));
        stage.start_operator();
    }
    stage.until_running("inflate", 5);
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.list(CLAIMS).len(), stage.nodes().len()), (1, 1), "{}", stage.describe());
}

pub(super) fn an_operator_that_is_killed_while_nodes_leave_finishes_afterwards(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("inflate", 5, "1")]));
    stage.until_running("inflate", 5);
    stage.delete("/apis/apps/v1/namespaces/default/deployments/inflate");
    for step in 1..12 {
        stage.pass(Duration::from_millis(700 * step));
        stage.kill_operator();
        stage.pass(Duration::from_millis(300));
        stage.start_operator();
    }
    stage.until_nodes(0);
    stage.until("no claim is left", Duration::from_mins(1), |stage| stage.list(CLAIMS).is_empty());
}

pub(super) fn pods_that_wait_while_there_is_no_operator_are_served_afterwards(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class()]));
    stage.kill_operator();
    stage.apply(&manifest(&[deployment("a", 3, "1")]));
    stage.pass(Duration::from_secs(3));
    assert_eq!(stage.running("a"), 0);
    stage.start_operator();
    stage.until_running("a", 3);
}

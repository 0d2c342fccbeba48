//! What became of pods that needed a place.

use super::instances::{apply, listed};
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key() -> Key {
    Key::new("default", "a")
}

#[test]
fn the_first_decision_about_a_pod_is_measured_once() {
    let mut state = listed();
    apply(&mut state, pod(1, ""));
    state.acknowledge_pod(&key(), at(10));
    state.acknowledge_pod(&key(), at(11));
    assert_eq!(state.record_unschedulable(&key(), at(15)), Some(SignedDuration::from_secs(5)));
    assert_eq!(state.record_schedulable(&key(), true, at(20)), None);
    let record = state.pod_record(&key()).unwrap();
    assert_eq!((record.acknowledged, record.decided), (Some(at(10)), Some(at(15))));
    assert_eq!(record.schedulable, Some(at(20)));
}

#[test]
fn a_pod_that_fits_nowhere_any_more_is_not_schedulable() {
    let mut state = listed();
    apply(&mut state, pod(1, ""));
    state.record_schedulable(&key(), true, at(1));
    state.record_schedulable(&key(), true, at(2));
    state.record_claim(&key(), "c");
    let record = state.pod_record(&key()).unwrap();
    assert_eq!((record.schedulable, record.schedulable_in_healthy_pool), (Some(at(1)), Some(at(1))));
    assert_eq!(state.pods_expected_on("c").collect::<Vec<_>>(), [&key()]);
    state.record_schedulable(&key(), false, at(3));
    let record = state.pod_record(&key()).unwrap();
    assert_eq!((record.schedulable, record.schedulable_in_healthy_pool), (Some(at(1)), None));
    state.record_unschedulable(&key(), at(4));
    let record = state.pod_record(&key()).unwrap();
    assert_eq!((record.schedulable, &record.claim, record.decided), (None, &None, Some(at(1))));
}

#[test]
fn bound_pods_are_not_recorded_as_schedulable() {
    let mut state = listed();
    apply(&mut state, pod(1, "n"));
    assert_eq!(state.record_schedulable(&key(), true, at(1)), None);
    assert_eq!(state.pod_record(&key()), None);
}

#[test]
fn nothing_is_known_of_pods_that_are_gone() {
    let mut state = listed();
    state.acknowledge_pod(&key(), at(1));
    assert_eq!(state.pod_record(&key()), None, "it never was");
    apply(&mut state, pod(1, ""));
    state.acknowledge_pod(&key(), at(1));
    state.observe(Seen::Deleted(pod(2, "")));
    assert_eq!(state.pod_record(&key()), None);
    apply(&mut state, pod(3, ""));
    state.acknowledge_pod(&key(), at(1));
    let successor =
        json!({"metadata": {"name": "a", "namespace": "default", "uid": "v", "resourceVersion": "4"}});
    apply(&mut state, object(Kind::Pod, &successor));
    assert_eq!(state.pod_record(&key()), None, "another of the same name");
    state.acknowledge_pod(&key(), at(1));
    state.forget_pod(&key());
    assert_eq!(state.pod_record(&key()), None);
}

//! What is decided about pods that are to leave, and what is remembered of them.

use runtime::queue::Backoff;
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn pod(name: &str, uid: &str, change: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "d", "uid": uid},
        "spec": {"terminationGracePeriodSeconds": 30},
    });
    crate::testing::merge(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn item(deadline: Option<i64>, mode: Mode) -> Item {
    Item { uid: "u".into(), deadline: deadline.map(at), mode }
}

#[track_caller]
fn check(change: &Value, deadline: Option<i64>, mode: Mode, now: i64, expected: &Step) {
    assert_eq!(decide(&pod("a", "u", change), &item(deadline, mode), at(now)), *expected);
}

#[test]
fn a_pod_is_evicted_unless_it_is_protected_or_going() {
    check(&json!({}), None, Mode::Force, 0, &Step::Evict);
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    check(&protected, None, Mode::Force, 0, &Step::Wait);
    check(&json!({"status": {"phase": "Failed"}}), None, Mode::Force, 0, &Step::Drop);
    check(&json!({"metadata": {"deletionTimestamp": at(30).to_string()}}), None, Mode::Force, 0, &Step::Drop);
}

#[test]
fn a_pod_is_deleted_when_time_runs_out_whatever_protects_it() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    check(&protected, Some(300), Mode::Force, 270, &Step::Wait);
    check(&protected, Some(300), Mode::Force, 271, &Step::Delete { grace: 29 });
    check(&protected, Some(300), Mode::Force, 400, &Step::Delete { grace: 1 });
    let slow = json!({"metadata": {"deletionTimestamp": at(1000).to_string()}});
    check(&slow, Some(300), Mode::Force, 90, &Step::Delete { grace: 210 });
}

#[test]
fn a_drain_that_forces_nobody_leaves_pods_alone_in_the_end() {
    check(&json!({}), Some(300), Mode::Leave, 299, &Step::Evict);
    check(&json!({}), Some(300), Mode::Leave, 300, &Step::Evict);
    check(&json!({}), Some(300), Mode::Leave, 301, &Step::Drop);
    check(&json!({}), None, Mode::Leave, 301, &Step::Evict);
}

#[test]
fn the_stricter_wish_counts() {
    for (one, other, expected) in [
        (item(Some(1), Mode::Force), item(Some(2), Mode::Force), item(Some(1), Mode::Force)),
        (item(None, Mode::Force), item(Some(2), Mode::Force), item(Some(2), Mode::Force)),
        (item(Some(1), Mode::Leave), item(None, Mode::Leave), item(Some(1), Mode::Leave)),
        (item(Some(1), Mode::Leave), item(Some(2), Mode::Force), item(Some(2), Mode::Force)),
        (item(None, Mode::Force), item(Some(1), Mode::Leave), item(None, Mode::Force)),
    ] {
        assert_eq!(one.clone().stricter(other.clone()), expected);
        assert_eq!(other.stricter(one), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_remembered_until_it_is_gone_and_its_successor_is_another_one() {
    let queue = Arc::new(Queue::new(Backoff::DEFAULT));
    let evictions = Evictions::new(Arc::clone(&queue));
    let old = pod("a", "u", &json!({}));
    evictions.add(std::slice::from_ref(&old), None, Mode::Force, false);
    let key = queue.next().await;
    queue.failed(&key);
    evictions.add(std::slice::from_ref(&old), Some(at(5)), Mode::Force, false);
    assert_eq!(queue.depth(), 0, "the back-off stays");
    assert_eq!(evictions.get(&key), Some(item(Some(5), Mode::Force)));
    evictions.add(std::slice::from_ref(&old), Some(at(9)), Mode::Force, true);
    assert_eq!(queue.depth(), 1, "what is urgent is done at once");
    assert_eq!(evictions.get(&key), Some(item(Some(5), Mode::Force)));
    evictions.add(&[pod("a", "v", &json!({}))], None, Mode::Force, false);
    assert_eq!(evictions.get(&key).unwrap().deadline, None);
    let gone = Change { old: Some(Object::Pod(old)), new: None };
    assert_eq!(evictions.watch(&gone), None);
    assert_eq!(evictions.len(), 0);
}

#[test]
fn budgets_refuse_in_two_ways() {
    let error = |code: u16, message: &str| Error::Refused {
        code,
        reason: String::new(),
        message: message.to_owned(),
    };
    assert_eq!(refusal(&error(429, "no")), Some("evicting pod violates a PDB"));
    assert_eq!(refusal(&error(500, SEVERAL_BUDGETS)), Some("eviction does not support multiple PDBs"));
    assert_eq!(refusal(&error(500, "broken")), None);
}

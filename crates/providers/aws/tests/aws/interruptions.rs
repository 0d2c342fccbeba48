//! What AWS says about instances, and what becomes of their nodes.

use std::collections::VecDeque;

use api::names::metrics::NODECLAIMS_DISRUPTED;
use api::names::metrics::aws as metrics;
use api::names::values::capacity_type::{ON_DEMAND, SPOT};
use aws::double::Times;
use aws::port::{InstanceStatus, Message, ScheduledEvent, StatusCheck};
use cloud::unavailable::Asked;
use cluster::state::Kind;
use embedded::faults::{Fault, Rule};
use serde_json::{Value, json};

use crate::play::{CLAIMS, Play};
use crate::support::ZONES;

const SPOT_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[SPOT]);
const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);
const STATE: &str = "EC2 Instance State-change Notification";

/// A cluster that listens to a queue.
fn play() -> Play {
    let mut play = Play::with(&["m5.large"], &["--interruption-queue=queue"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| world.queue = Some(VecDeque::new()));
    play
}

impl Play {
    fn send(&self, body: &str) {
        self.double.change(|world| {
            let number = world.queue.as_ref().map_or(0, VecDeque::len) + world.invisible.len();
            let message = Message { body: body.to_owned(), receipt: format!("{body}-{number}") };
            world.queue.as_mut().unwrap().push_back(message);
        });
    }

    fn send_event(&self, source: &str, kind: &str, detail: &Value) {
        let time = self.world.now() - std::time::Duration::from_secs(2);
        let body = json!({
            "version": "0", "source": source, "detail-type": kind, "time": time.to_string(), "detail": detail,
        });
        self.send(&body.to_string());
    }

    fn left(&self) -> usize {
        self.double.change(|world| world.queue.as_ref().map_or(0, VecDeque::len))
    }

    fn disrupted(&self, reason: &str, kind: &str) -> f64 {
        let labels = [reason, "pool-1", kind, "", "graceful"];
        self.metrics.value(&NODECLAIMS_DISRUPTED, &labels).unwrap_or_default()
    }
}

#[test]
fn a170_a_spot_instance_that_is_taken_away_drains_and_is_not_asked_for_again() {
    let mut play = play();
    let id = play.node("one", &[SPOT_ONLY, ("topology.kubernetes.io/zone", "In", &[ZONES[0]])]);
    play.start();
    play.pass(2);
    play.send_event("aws.ec2", "EC2 Spot Instance Interruption Warning", &json!({"instance-id": id}));
    play.pass(2);
    assert!(play.is_ending("one"));
    let expected = ["SpotInterrupted", "TerminatingOnInterruption"].map(str::to_owned).into();
    assert_eq!(play.told(Kind::NodeClaim, "one"), expected);
    assert_eq!(play.told(Kind::Node, "node-one"), expected);
    let asked = |zone| Asked { instance_type: "m5.large", zone, capacity_type: SPOT, ..Asked::default() };
    let unavailable = play.aws.unavailable();
    assert!(unavailable.contains_asked(&asked(ZONES[0])) && !unavailable.contains_asked(&asked(ZONES[1])));
    assert_eq!(play.left(), 0);
    assert!((play.disrupted("spot_interrupted", SPOT) - 1.0).abs() < 1e-9);
    let value = |metric, labels: &[&str]| play.metrics.value(metric, labels);
    assert_eq!(value(&metrics::INTERRUPTION_RECEIVED_MESSAGES, &["spot_interrupted"]), Some(1.0));
    assert_eq!(value(&metrics::INTERRUPTION_DELETED_MESSAGES, &[]), Some(1.0));
    assert_eq!(value(&metrics::INTERRUPTION_MESSAGE_QUEUE_DURATION, &[]), Some(1.0));
}

/// Source, kind, detail, the reason in metrics if the node ends, the event.
type Case = (&'static str, &'static str, fn(&str) -> Value, Option<&'static str>, &'static str);

#[test]
fn a171_every_kind_of_message_does_what_it_should() {
    let cases: [Case; 6] = [
        (
            "aws.ec2",
            "EC2 Instance Rebalance Recommendation",
            |id| json!({"instance-id": id}),
            None,
            "SpotRebalanceRecommendation",
        ),
        (
            "aws.ec2",
            STATE,
            |id| json!({"instance-id": id, "state": "stopping"}),
            Some("instance_stopped"),
            "InstanceStopping",
        ),
        (
            "aws.ec2",
            STATE,
            |id| json!({"instance-id": id, "state": "Terminated"}),
            Some("instance_terminated"),
            "InstanceTerminating",
        ),
        ("aws.ec2", STATE, |id| json!({"instance-id": id, "state": "running"}), None, ""),
        (
            "aws.ec2",
            "EC2 Capacity Reservation Instance Interruption Warning",
            |id| json!({"instance-id": id}),
            Some("capacity_reservation_interrupted"),
            "CapacityReservationInstanceInterrupted",
        ),
        (
            "aws.health",
            "AWS Health Event",
            |id| {
                json!({
                    "service": "EC2", "eventTypeCategory": "scheduledChange",
                    "affectedEntities": [{"entityValue": "i-other"}, {"entityValue": id}],
                })
            },
            Some("scheduled_change"),
            "InstanceUnhealthy",
        ),
    ];
    let mut play = play();
    play.start();
    for (index, (source, kind, detail, reason, event)) in cases.into_iter().enumerate() {
        let name = format!("claim-{index}");
        let id = play.node(&name, &[ON_DEMAND_ONLY]);
        play.send_event(source, kind, &detail(&id));
        play.pass(3);
        assert_eq!(play.is_ending(&name), reason.is_some(), "{index}");
        let told = play.told(Kind::NodeClaim, &name);
        assert_eq!(told.contains(event), !event.is_empty(), "{index}: {told:?}");
        assert_eq!(told.contains("TerminatingOnInterruption"), reason.is_some(), "{index}: {told:?}");
        if let Some(reason) = reason {
            assert!((play.disrupted(reason, ON_DEMAND) - 1.0).abs() < 1e-9, "{reason}");
        }
        assert_eq!(play.left(), 0, "{index}");
    }
}

#[test]
fn a172_messages_that_make_no_sense_go_and_stop_nothing() {
    let mut play = play();
    play.start();
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    for body in [
        "",
        "no JSON",
        "{}",
        "[1,2]",
        r#"{"version":"0","source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":7}"#,
    ] {
        play.send(body);
    }
    play.send_event("aws.ec2", STATE, &json!({"instance-id": "i-of-somebody-else", "state": "stopped"}));
    for _ in 0..20 {
        play.send_event("aws.ec2", "EC2 Something New", &json!({"instance-id": id}));
    }
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "stopped"}));
    play.pass(5);
    assert_eq!(play.left(), 0);
    assert!(play.is_ending("one"), "it is behind two batches of others");
    assert_eq!(play.metrics.value(&metrics::INTERRUPTION_RECEIVED_MESSAGES, &["no_op"]), Some(22.0));
    assert_eq!(play.metrics.value(&metrics::INTERRUPTION_DELETED_MESSAGES, &[]), Some(27.0));
}

#[test]
fn a173_messages_about_one_instance_end_it_once() {
    let mut play = play();
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    for state in ["stopping", "stopped", "shutting-down"] {
        play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": state}));
    }
    play.start();
    play.pass(3);
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "stopped"}));
    play.pass(3);
    assert!(play.is_ending("one"));
    assert!((play.disrupted("instance_stopped", ON_DEMAND) - 1.0).abs() < 1e-9);
    assert!(play.disrupted("instance_terminated", ON_DEMAND).abs() < 1e-9);
    assert_eq!(play.left(), 0);
}

#[test]
fn a174_a_queue_that_fails_or_comes_late_is_asked_again() {
    let mut play = play();
    play.double.change(|world| world.queue = None);
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    play.start();
    play.pass(60);
    let asked = play.double.count("sqs:GetQueueUrl");
    assert!((8..30).contains(&asked), "{asked}");
    play.double.change(|world| world.queue = Some(VecDeque::new()));
    play.double.fail("sqs:ReceiveMessage", "InternalError", "no", Times::Next(1));
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "stopped"}));
    play.pass(25);
    assert!(play.is_ending("one"));
}

#[test]
fn a175_a_message_that_could_not_be_handled_comes_again() {
    let mut play = play();
    play.start();
    let (one, two) = (play.node("one", &[ON_DEMAND_ONLY]), play.node("two", &[ON_DEMAND_ONLY]));
    let deleted = |play: &Play| play.metrics.value(&metrics::INTERRUPTION_DELETED_MESSAGES, &[]);
    // The API server refuses: the message stays, and comes again when the queue shows it again.
    play.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    play.send_event("aws.ec2", STATE, &json!({"instance-id": one, "state": "stopped"}));
    // One that asks for nothing is handled beside it.
    play.send_event("aws.ec2", STATE, &json!({"instance-id": two, "state": "running"}));
    play.pass(15);
    assert!(!play.is_ending("one"));
    assert_eq!((play.left(), deleted(&play)), (1, Some(1.0)), "only what was handled is deleted");
    assert!(play.faults.injected() > 0);
    play.faults.set_rules(Vec::new());
    play.pass(25);
    assert!(play.is_ending("one") && !play.is_ending("two"));
    assert_eq!((play.left(), deleted(&play)), (0, Some(2.0)));
    assert!((play.disrupted("instance_stopped", ON_DEMAND) - 1.0).abs() < 1e-9, "it went once");
}

#[test]
fn a263_a_message_that_could_not_be_deleted_comes_again_and_ends_nothing_twice() {
    let mut play = play();
    play.start();
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    play.double.fail("sqs:DeleteMessage", "InternalError", "no", Times::Next(1));
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "stopped"}));
    play.pass(5);
    assert_eq!(play.left(), 1);
    play.pass(25);
    assert_eq!(play.left(), 0);
    assert!((play.disrupted("instance_stopped", ON_DEMAND) - 1.0).abs() < 1e-9, "it went once");
}

#[test]
fn a176_a_claim_that_is_gone_already_is_no_mistake() {
    let mut play = play();
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    play.world.patch(&format!("{CLAIMS}/one"), &json!({"metadata": {"finalizers": null}}));
    play.start();
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "stopped"}));
    play.pass(3);
    assert!(play.world.get(&format!("{CLAIMS}/one")).is_none());
    play.send_event("aws.ec2", STATE, &json!({"instance-id": id, "state": "terminated"}));
    play.pass(3);
    assert_eq!(play.left(), 0);
}

fn failing(id: &str, since: jiff::Timestamp) -> InstanceStatus {
    let check = StatusCheck {
        name: "reachability".to_owned(),
        status: "failed".to_owned(),
        impaired_since: Some(since),
    };
    InstanceStatus { id: id.to_owned(), instance: vec![check], ..InstanceStatus::default() }
}

#[test]
fn a177_a_broken_instance_goes_without_waiting_for_its_pods() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    play.node("two", &[ON_DEMAND_ONLY]);
    let since = play.world.now();
    play.double.change(|world| world.statuses = vec![failing(&id, since), failing("i-other", since)]);
    play.start();
    play.pass(90);
    assert!(!play.is_ending("one"), "it may recover");
    play.pass(60);
    assert!(play.is_ending("one") && !play.is_ending("two"));
    let deadline =
        play.claim("one")["metadata"]["annotations"]["karpenter.sh/nodeclaim-termination-timestamp"].clone();
    let deadline: jiff::Timestamp = deadline.as_str().unwrap().parse().unwrap();
    assert!(deadline <= play.world.now() && deadline > since);
    assert!(play.told(Kind::NodeClaim, "one").contains("InstanceUnhealthy"));
    let count = |play: &Play| {
        play.metrics.value(&metrics::INTERRUPTION_INSTANCE_STATUS_UNHEALTHY, &["InstanceStatus"])
    };
    assert_eq!(count(&play), Some(1.0));
    play.pass(180);
    assert_eq!(count(&play), Some(1.0), "once until it recovers");
    let kept =
        play.claim("one")["metadata"]["annotations"]["karpenter.sh/nodeclaim-termination-timestamp"].clone();
    assert_eq!(kept.as_str().unwrap().parse().ok(), Some(deadline));
}

#[test]
fn a178_a_planned_end_drains_the_node() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    let event = ScheduledEvent { code: "instance-retirement".to_owned(), ..ScheduledEvent::default() };
    let status = InstanceStatus { id, events: vec![event], ..InstanceStatus::default() };
    play.double.change(|world| world.statuses = vec![status]);
    play.start();
    play.pass(5);
    assert!(play.is_ending("one"));
    let annotations = &play.claim("one")["metadata"]["annotations"];
    assert!(annotations["karpenter.sh/nodeclaim-termination-timestamp"].is_null());
    assert!((play.disrupted("scheduled_change", ON_DEMAND) - 1.0).abs() < 1e-9);
    assert_eq!(
        play.metrics.value(&metrics::INTERRUPTION_INSTANCE_STATUS_UNHEALTHY, &["EventStatus"]),
        Some(1.0)
    );
}

#[test]
fn a179_without_the_permission_the_status_is_asked_for_once() {
    let mut play = Play::new(&["m5.large"]);
    play.double.fail("ec2:DescribeInstanceStatus", "UnauthorizedOperation", "no", Times::Always);
    play.start();
    play.pass(5);
    let asked = play.double.count("ec2:DescribeInstanceStatus");
    assert!((1..=3).contains(&asked), "{asked}");
    play.double.mend("ec2:DescribeInstanceStatus");
    play.pass(300);
    assert_eq!(play.double.count("ec2:DescribeInstanceStatus"), asked, "not before the next start");
    let mut other = Play::new(&["m5.large"]);
    other.double.fail("ec2:DescribeInstanceStatus", "InternalError", "no", Times::Next(3));
    other.start();
    other.pass(130);
    assert!(other.double.count("ec2:DescribeInstanceStatus") >= 9, "other failures pass");
}

#[test]
fn a193_fifteen_thousand_messages_are_handled_ten_at_a_time() {
    const MESSAGES: usize = 15_000;
    let mut play = play();
    let ids: Vec<String> =
        (0..41).map(|number| play.node(&format!("claim-{number}"), &[SPOT_ONLY])).collect();
    // A storm: what happens to our instances, to those of others, and what is none of our business.
    for number in 0..MESSAGES {
        let id = match number % 3 {
            0 => ids[number / 3 % ids.len()].clone(),
            _ => format!("i-of-somebody-else-{number}"),
        };
        let (kind, detail) = match number % 4 {
            0 => ("EC2 Spot Instance Interruption Warning", json!({"instance-id": id})),
            1 => ("EC2 Instance Rebalance Recommendation", json!({"instance-id": id})),
            2 => (STATE, json!({"instance-id": id, "state": "stopping"})),
            _ => ("EC2 Something New", json!({"instance-id": id})),
        };
        let body = json!({
            "version": "0", "source": "aws.ec2", "detail-type": kind, "time": play.world.now().to_string(),
            "detail": detail,
        });
        let message = Message { body: body.to_string(), receipt: format!("receipt-{number}") };
        play.double.change(|world| world.queue.as_mut().unwrap().push_back(message));
    }
    // As far away as a queue is.
    play.double.change(|world| world.latency = std::time::Duration::from_millis(15));
    play.double.forget_calls();
    let before = play.world.now();
    play.start_some(|name| name == api::names::controllers::aws::INTERRUPTION);
    while play.left() > 0 {
        play.pass(1);
        assert!(play.world.now().duration_since(before).as_secs() < 300, "{} are left", play.left());
    }
    let took = play.world.now().duration_since(before).as_secs();
    let (received, deleted) =
        (play.double.count("sqs:ReceiveMessage"), play.double.count("sqs:DeleteMessage"));
    println!("{MESSAGES} messages: {took} s of virtual time, {received} received, {deleted} deleted");
    // Messages are dropped after five minutes, and nothing of ours takes that long.
    assert!(took <= 60, "{took} s");
    assert!(received <= MESSAGES / 10 + 2, "{received}");
    assert_eq!(deleted, MESSAGES / 10);
    assert_eq!(play.metrics.value(&metrics::INTERRUPTION_DELETED_MESSAGES, &[]), Some(15_000.0));
    for number in 0..ids.len() {
        assert!(play.is_ending(&format!("claim-{number}")), "{number}");
    }
    let ended = play.disrupted("spot_interrupted", SPOT) + play.disrupted("instance_stopped", SPOT);
    assert!((ended - 41.0).abs() < 1e-9, "each once: {ended}");
}

//! Messages of the interruption queue.

use api::names::values;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::port::InstanceState;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A spot instance is taken away within two minutes.
    SpotInterrupted,
    /// A spot instance may be taken away.
    RebalanceRecommendation,
    /// An instance is stopped.
    InstanceStopped,
    /// An instance ends.
    InstanceTerminated,
    /// An instance of a reservation is taken away.
    CapacityReservationInterrupted,
    /// Something is planned for an instance.
    ScheduledChange,
    /// Nothing that concerns us.
    NoOp,
}

impl Kind {
    /// What metrics call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpotInterrupted => values::AWS_SPOT_INTERRUPTED,
            Self::RebalanceRecommendation => "rebalance_recommendation",
            Self::InstanceStopped => values::AWS_INSTANCE_STOPPED,
            Self::InstanceTerminated => values::AWS_INSTANCE_TERMINATED,
            Self::CapacityReservationInterrupted => values::AWS_CAPACITY_RESERVATION_INTERRUPTED,
            Self::ScheduledChange => values::AWS_SCHEDULED_CHANGE,
            Self::NoOp => "no_op",
        }
    }

    /// Whether the node must go.
    pub const fn ends_node(self) -> bool {
        !matches!(self, Self::RebalanceRecommendation | Self::NoOp)
    }
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: Kind,
    /// The instances.
    pub instances: Vec<String>,
    /// When it was sent.
    pub time: Option<Timestamp>,
}

/// A message cannot be read; it will never be, so it can go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parsing the message, {0}")]
pub struct NotUnderstood(String);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Envelope {
    version: String,
    source: String,
    detail_type: String,
    time: Option<Timestamp>,
    detail: Detail,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Detail {
    instance_id: String,
    state: String,
    service: String,
    #[serde(rename = "eventTypeCategory")]
    event_type_category: String,
    #[serde(rename = "affectedEntities")]
    affected_entities: Vec<Entity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entity {
    entity_value: String,
}

/// What a message says. One of a kind that we do not know says nothing.
pub fn parse(body: &str) -> Result<Notice, NotUnderstood> {
    let wrong = |error: serde_json::Error| NotUnderstood(error.to_string());
    let document: Value = serde_json::from_str(body).map_err(wrong)?;
    // What others send need not have our fields at all.
    let of = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let kinds = [of("version"), of("source"), of("detail-type")];
    if !KNOWN.contains(&kinds) {
        let time = of("time").parse().ok();
        return Ok(Notice { kind: Kind::NoOp, instances: Vec::new(), time });
    }
    let Envelope { source, detail_type, time, detail, version: _ } =
        serde_json::from_value(document.clone()).map_err(wrong)?;
    let (kind, instances) = match (source.as_str(), detail_type.as_str()) {
        ("aws.ec2", SPOT) => (Kind::SpotInterrupted, vec![detail.instance_id]),
        ("aws.ec2", REBALANCE) => (Kind::RebalanceRecommendation, vec![detail.instance_id]),
        ("aws.ec2", RESERVATION) => (Kind::CapacityReservationInterrupted, vec![detail.instance_id]),
        ("aws.ec2", STATE) => (state_kind(&detail.state), vec![detail.instance_id]),
        _ => health(&detail),
    };
    let is_named = |id: &String| kind != Kind::NoOp && !id.is_empty();
    let instances = instances.into_iter().filter(is_named).collect();
    Ok(Notice { kind, instances, time })
}

const SPOT: &str = "EC2 Spot Instance Interruption Warning";
const REBALANCE: &str = "EC2 Instance Rebalance Recommendation";
const STATE: &str = "EC2 Instance State-change Notification";
const RESERVATION: &str = "EC2 Capacity Reservation Instance Interruption Warning";
const HEALTH: &str = "AWS Health Event";
/// Version, source and kind of messages that we understand.
const KNOWN: [[&str; 3]; 5] = [
    ["0", "aws.ec2", SPOT],
    ["0", "aws.ec2", REBALANCE],
    ["0", "aws.ec2", STATE],
    ["0", "aws.ec2", RESERVATION],
    ["0", "aws.health", HEALTH],
];

fn state_kind(state: &str) -> Kind {
    match InstanceState::named(state) {
        Some(InstanceState::Stopping | InstanceState::Stopped) => Kind::InstanceStopped,
        Some(InstanceState::ShuttingDown | InstanceState::Terminated) => Kind::InstanceTerminated,
        Some(InstanceState::Pending | InstanceState::Running) | None => Kind::NoOp,
    }
}

fn health(detail: &Detail) -> (Kind, Vec<String>) {
    if detail.service != "EC2" || detail.event_type_category != "scheduledChange" {
        return (Kind::NoOp, Vec::new());
    }
    let instances = detail.affected_entities.iter().map(|entity| entity.entity_value.clone());
    (Kind::ScheduledChange, instances.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(source: &str, detail_type: &str, detail: &Value) -> Notice {
        let body = json!({
            "version": "0", "source": source, "detail-type": detail_type, "time": "2026-01-01T00:00:00Z",
            "detail": detail, "region": "us-west-2", "resources": [],
        });
        parse(&body.to_string()).unwrap()
    }

    #[test]
    fn every_kind_is_understood() {
        for (detail_type, kind) in [
            (SPOT, Kind::SpotInterrupted),
            (REBALANCE, Kind::RebalanceRecommendation),
            (RESERVATION, Kind::CapacityReservationInterrupted),
        ] {
            let notice =
                message("aws.ec2", detail_type, &json!({"instance-id": "i-1", "instance-action": "x"}));
            assert_eq!((notice.kind, notice.instances), (kind, vec!["i-1".to_owned()]));
            assert_eq!(notice.time, "2026-01-01T00:00:00Z".parse().ok());
        }
        let health = json!({
            "service": "EC2", "eventTypeCategory": "scheduledChange",
            "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "i-2"}],
        });
        let notice = message("aws.health", HEALTH, &health);
        assert_eq!(notice.kind, Kind::ScheduledChange);
        assert_eq!(notice.instances, ["i-1", "i-2"]);
    }

    #[test]
    fn states_that_end_an_instance_count_in_any_case() {
        for (state, kind) in [
            ("stopping", Kind::InstanceStopped),
            ("STOPPED", Kind::InstanceStopped),
            ("shutting-down", Kind::InstanceTerminated),
            ("Terminated", Kind::InstanceTerminated),
            ("running", Kind::NoOp),
            ("pending", Kind::NoOp),
            ("confused", Kind::NoOp),
        ] {
            let notice = message("aws.ec2", STATE, &json!({"instance-id": "i-1", "state": state}));
            assert_eq!(notice.kind, kind, "{state}");
            assert_eq!(notice.instances.is_empty(), kind == Kind::NoOp);
        }
    }

    #[test]
    fn what_does_not_concern_us_is_nothing() {
        let detail = || json!({"instance-id": "i-1"});
        assert_eq!(message("aws.ec2", "EC2 AMI State Change", &detail()).kind, Kind::NoOp);
        assert_eq!(message("aws.other", SPOT, &detail()).kind, Kind::NoOp);
        for health in [
            json!({"service": "RDS", "eventTypeCategory": "scheduledChange"}),
            json!({"service": "EC2", "eventTypeCategory": "issue"}),
        ] {
            assert_eq!(message("aws.health", HEALTH, &health).kind, Kind::NoOp);
        }
        assert_eq!(parse("{}").unwrap().kind, Kind::NoOp);
        assert_eq!(parse("[1]").unwrap().kind, Kind::NoOp);
        let newer = json!({"version": "1", "source": "aws.ec2", "detail-type": SPOT, "detail": 7});
        assert_eq!(parse(&newer.to_string()).unwrap().kind, Kind::NoOp);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for body in [
            "",
            "no JSON",
            r#"{"version":"0","source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":7}"#,
        ] {
            assert!(parse(body).unwrap_err().to_string().starts_with("parsing the message, "), "{body}");
        }
    }

    #[test]
    fn only_a_recommendation_leaves_the_node_alone() {
        assert!(Kind::SpotInterrupted.ends_node() && Kind::ScheduledChange.ends_node());
        assert!(!Kind::RebalanceRecommendation.ends_node() && !Kind::NoOp.ends_node());
        assert_eq!(Kind::CapacityReservationInterrupted.as_str(), "capacity_reservation_interrupted");
    }
}

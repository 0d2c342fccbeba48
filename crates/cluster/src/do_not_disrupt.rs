//! Pods that ask to be left alone. Entry: [`DoNotDisrupt::of`].

use api::names::annotations::DO_NOT_DISRUPT;
use api::names::events::{self, Event};
use jiff::{SignedDuration, Timestamp};
use units::GoDuration;

use crate::eligibility::speaks_of_disruption;
use crate::objects::Pod;

/// What a pod asks for with the annotation `karpenter.sh/do-not-disrupt`, at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoNotDisrupt {
    /// Nothing.
    Absent,
    /// To be left alone: for ever, or for a time that begins when the pod starts, which it has not.
    Active,
    /// To be left alone until then.
    Until(Timestamp),
    /// To be left alone for a time that is over.
    Elapsed,
    /// Something that cannot be understood, and why. It does not count.
    Invalid(String),
}

/// What the pod's owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind of event.
    pub event: &'static Event,
    /// Its text.
    pub message: String,
}

impl DoNotDisrupt {
    /// What a pod asks for. Nodes know only `"true"`, see
    /// [`StateNode::is_protected`](crate::state_node::StateNode::is_protected).
    pub fn of(pod: &Pod, now: Timestamp) -> Self {
        if !speaks_of_disruption(pod) {
            return Self::Absent;
        }
        let Some(value) = pod.metadata.annotations.get(DO_NOT_DISRUPT) else { return Self::Absent };
        if &**value == "true" {
            return Self::Active;
        }
        let duration = match value.parse::<GoDuration>() {
            Ok(duration) if duration > GoDuration::ZERO => SignedDuration::from(duration),
            Ok(_) => return Self::Invalid(format!("duration {value:?} must be positive")),
            Err(error) => return Self::Invalid(format!("failed to parse {value:?} as a duration: {error}")),
        };
        let Some(start) = &pod.status.start_time else { return Self::Active };
        let until = start.0.saturating_add(duration).unwrap_or(Timestamp::MAX);
        if now < until { Self::Until(until) } else { Self::Elapsed }
    }

    /// Whether the pod is to be left alone now.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Active | Self::Until(_))
    }

    /// What the pod's owner should know, if anything.
    pub fn notice(&self) -> Option<Notice> {
        let (event, message) = match self {
            Self::Absent | Self::Active => return None,
            Self::Until(until) => {
                let until = until.strftime("%Y-%m-%dT%H:%M:%SZ");
                let message = format!("The {DO_NOT_DISRUPT} grace period will elapse at {until}");
                (&events::DO_NOT_DISRUPT_UNTIL, message)
            }
            Self::Elapsed => {
                let message =
                    format!("The {DO_NOT_DISRUPT} grace period has elapsed, pod is now disruptable");
                (&events::DO_NOT_DISRUPT_ELAPSED, message)
            }
            Self::Invalid(why) => {
                let message = format!("Invalid {DO_NOT_DISRUPT} annotation: {why}, ignoring annotation");
                (&events::INVALID_DO_NOT_DISRUPT, message)
            }
        };
        Some(Notice { event, message })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn asks(value: &str, started: Option<&str>) -> DoNotDisrupt {
        let annotations = json!({"karpenter.sh/do-not-disrupt": value});
        let value = json!({"metadata": {"annotations": annotations}, "status": {"startTime": started}});
        DoNotDisrupt::of(&serde_json::from_value(value).unwrap(), at("2026-01-01T01:00:00Z"))
    }

    #[test]
    fn protection_is_for_ever_or_for_a_while() {
        for (value, started, expected) in [
            ("true", Some("2020-01-01T00:00:00Z"), DoNotDisrupt::Active),
            ("2h", Some("2026-01-01T00:00:00Z"), DoNotDisrupt::Until(at("2026-01-01T02:00:00Z"))),
            ("1h", Some("2026-01-01T00:00:00Z"), DoNotDisrupt::Elapsed),
            ("1h", None, DoNotDisrupt::Active),
            ("0s", None, DoNotDisrupt::Invalid("duration \"0s\" must be positive".into())),
            ("-1h", None, DoNotDisrupt::Invalid("duration \"-1h\" must be positive".into())),
        ] {
            assert_eq!(asks(value, started), expected, "{value} {started:?}");
        }
        assert!(!asks("false", None).is_active());
        assert_eq!(DoNotDisrupt::of(&Pod::default(), Timestamp::UNIX_EPOCH), DoNotDisrupt::Absent);
    }

    #[test]
    fn owners_are_told_what_a_duration_comes_to_and_what_is_wrong() {
        let text = |value, started| asks(value, started).notice().map(|it| (it.event.reason, it.message));
        let started = Some("2026-01-01T00:00:00Z");
        assert_eq!(text("true", started), None);
        assert_eq!(text("1h", None), None);
        for (value, reason, message) in [
            (
                "90m",
                "DoNotDisruptUntil",
                "The karpenter.sh/do-not-disrupt grace period will elapse at 2026-01-01T01:30:00Z",
            ),
            (
                "5m",
                "DoNotDisruptGracePeriodElapsed",
                "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable",
            ),
            (
                "0s",
                "InvalidDoNotDisruptAnnotation",
                "Invalid karpenter.sh/do-not-disrupt annotation: duration \"0s\" must be positive, ignoring annotation",
            ),
        ] {
            assert_eq!(text(value, started), Some((reason, message.to_owned())));
        }
        let (_, message) = text("false", started).unwrap();
        assert!(
            message.starts_with(
                "Invalid karpenter.sh/do-not-disrupt annotation: failed to parse \"false\" as a duration: "
            ),
            "{message}"
        );
    }
}

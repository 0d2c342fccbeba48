//! Times as Kubernetes writes them, and durations as annotations give them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use units::GoDuration;

/// `now` as objects show it: in whole seconds.
pub(crate) fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// `now` as leases show it.
pub(crate) fn micros(now: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now))
}

/// `now` in whole seconds, as text.
pub(crate) fn seconds(now: Timestamp) -> String {
    jiff::fmt::strtime::format("%Y-%m-%dT%H:%M:%SZ", now).unwrap_or_default()
}

/// `when` plus `wait`.
pub(crate) fn after(when: Timestamp, wait: Duration) -> Timestamp {
    when.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// `when` plus a number of seconds as fields give them.
pub(crate) fn after_seconds(when: Timestamp, seconds: i64) -> Timestamp {
    after(when, Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A duration in Go's syntax; anything else is nothing.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let parsed: GoDuration = text.parse().ok()?;
    u64::try_from(parsed.as_nanos()).ok().map(Duration::from_nanos)
}

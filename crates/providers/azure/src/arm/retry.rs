//! Which requests are sent once more, and when.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;

use super::error::header;

/// Statuses after which the same request may succeed.
pub(super) const STATUSES: [u16; 6] = [408, 429, 500, 502, 503, 504];
/// How often a request is sent once more.
const RETRIES: u32 = 3;
/// The first wait; later ones are longer.
const FIRST: Duration = Duration::from_millis(800);
/// Nobody waits longer than this for one answer; who is told to, gives up.
pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// What came of one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// No answer came.
    Unanswered,
    /// An answer with this status, and how long it says to wait.
    Answered(u16, Option<Duration>),
}

/// How long to wait before the request is sent once more, or that it is not. `attempt` counts from one; `random`
/// is from 0 to 1.
pub(super) fn wait(attempt: u32, outcome: Outcome, random: f64) -> Option<Duration> {
    if attempt > RETRIES {
        return None;
    }
    match outcome {
        Outcome::Answered(status, _) if !STATUSES.contains(&status) => None,
        Outcome::Answered(_, Some(told)) => (told <= LONGEST).then_some(told),
        Outcome::Unanswered | Outcome::Answered(_, None) => {
            let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempt) - 1);
            Some(doubled.mul_f64(0.8 + random.clamp(0.0, 1.0) / 2.0).min(LONGEST))
        }
    }
}

/// How long an answer says to wait, in any of the forms there are.
pub(super) fn told(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let millis = ["retry-after-ms", "x-ms-retry-after-ms"].iter().find_map(|name| header(headers, name));
    if let Some(millis) = millis.and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(millis)).filter(|wait| !wait.is_zero());
    }
    let text = header(headers, "retry-after")?;
    let wait = if let Ok(seconds) = text.parse::<f64>() {
        Duration::try_from_secs_f64(seconds).ok()?
    } else {
        let until = jiff::fmt::rfc2822::parse(&text).ok()?.timestamp();
        Duration::try_from(until.duration_since(now)).ok()?
    };
    (!wait.is_zero()).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(attempt: u32, outcome: Outcome, random: f64) -> Option<u128> {
        wait(attempt, outcome, random).map(|wait| wait.as_millis())
    }

    // azure.md 18, ARM retries
    #[test]
    fn a_request_is_sent_three_times_more_with_growing_waits() {
        let failed = Outcome::Answered(503, None);
        let waits: Vec<_> = (1..=4).map(|attempt| millis(attempt, failed, 0.4)).collect();
        assert_eq!(waits, [Some(800), Some(2400), Some(5600), None]);
        assert_eq!((millis(1, failed, 0.0), millis(1, failed, 1.0)), (Some(640), Some(1040)));
        assert_eq!(millis(2, Outcome::Unanswered, 0.4), Some(2400));
    }

    #[test]
    fn only_what_may_pass_by_itself_is_sent_once_more() {
        let again: Vec<u16> =
            (100..600).filter(|status| wait(1, Outcome::Answered(*status, None), 0.0).is_some()).collect();
        assert_eq!(again, STATUSES);
    }

    #[test]
    fn who_is_told_to_wait_waits_as_told_but_not_for_more_than_a_minute() {
        let told = |seconds| Outcome::Answered(429, Some(Duration::from_secs(seconds)));
        assert_eq!(millis(1, told(60), 0.9), Some(60_000));
        assert_eq!(millis(1, told(61), 0.9), None);
        assert_eq!(millis(4, told(1), 0.9), None);
    }

    #[test]
    fn waits_are_told_in_seconds_milliseconds_and_dates() {
        let now = "2026-11-16T16:00:00Z".parse().unwrap();
        let rows = [
            ("retry-after", "30", Some(30_000)),
            ("retry-after", "1.5", Some(1500)),
            ("retry-after-ms", "250", Some(250)),
            ("x-ms-retry-after-ms", "4000", Some(4000)),
            ("retry-after", "Mon, 16 Nov 2026 16:00:20 GMT", Some(20_000)),
            ("retry-after", "Mon, 16 Nov 2026 15:00:20 GMT", None),
            ("retry-after", "0", None),
            ("retry-after", "-3", None),
            ("retry-after", "1e300", None),
            ("retry-after", "soon", None),
            ("other", "1", None),
        ];
        for (name, value, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(told(&headers, now).map(|wait| wait.as_millis()), expected, "{name}: {value}");
        }
    }
}

//! Times of the SDK.

use aws_sdk_ec2::primitives::DateTime;
use jiff::Timestamp;

/// A time of the SDK; none if it is beyond all calendars.
pub(crate) fn timestamp(time: &DateTime) -> Option<Timestamp> {
    Timestamp::from_nanosecond(time.as_nanos()).ok()
}

/// A time as the SDK has it, in whole seconds.
pub(crate) fn date_time(time: Timestamp) -> DateTime {
    DateTime::from_secs(time.as_second())
}

/// A time that is written out.
pub(crate) fn written(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_there_and_back() {
        let time: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(timestamp(&date_time(time)), Some(time));
        assert_eq!(timestamp(&DateTime::from_secs(i64::MAX)), None);
        assert_eq!(written(Some("2026-01-02T03:04:05.000Z")), Some(time));
        assert_eq!((written(Some("soon")), written(None)), (None, None));
    }
}

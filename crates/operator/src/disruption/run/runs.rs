//! When the parts of the loop ran last, for operators who wonder.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// After this time something is wrong.
const LONG: SignedDuration = SignedDuration::from_mins(15);

/// When the parts of the loop ran last.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<&'static str, Timestamp>);

impl Runs {
    /// Notes that something runs, and logs what has not for long.
    pub(super) fn note(&mut self, name: &'static str, now: Timestamp) {
        for (name, since) in self.overdue(now) {
            tracing::debug!(run = name, duration = %since, "abnormal time between runs");
        }
        self.0.insert(name, now);
    }

    fn overdue(&self, now: Timestamp) -> Vec<(&'static str, SignedDuration)> {
        let all = self.0.iter().map(|(name, last)| (*name, now.duration_since(*last)));
        all.filter(|(_, since)| *since > LONG).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_not_run_for_a_quarter_of_an_hour_is_told() {
        let (mut runs, start) = (Runs::default(), Timestamp::UNIX_EPOCH);
        runs.note("a", start);
        runs.note("b", start + SignedDuration::from_mins(10));
        assert!(runs.overdue(start + SignedDuration::from_mins(15)).is_empty());
        let late = SignedDuration::from_mins(16);
        assert_eq!(runs.overdue(start + late), [("a", late)]);
    }
}

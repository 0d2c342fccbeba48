//! Which events become objects of their own, which count up one that exists, and which are too many.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::names::events::EventKind;
use jiff::Timestamp;

use super::{About, Published};

/// How many different messages of one kind about one object are written before they are combined.
const SIMILAR: usize = 10;
/// For how long messages count as similar.
const SIMILAR_FOR: Duration = Duration::from_mins(10);
/// How many events about one object are written at once.
const BURST: f64 = 25.0;
/// How long it takes until one more may be written.
const REFILL: Duration = Duration::from_mins(5);
/// How many series are remembered.
const REMEMBERED: usize = 4096;
/// What the message of combined events begins with.
const COMBINED: &str = "(combined from similar events): ";

/// What to do about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is a new one.
    Create {
        /// Its message.
        message: String,
        /// How to find it again.
        series: SeriesKey,
    },
    /// It is one that was written before.
    Count {
        /// The namespace and name of the object.
        name: String,
        /// How often it has been seen.
        count: u32,
        /// Its message.
        message: String,
        /// How to find it again.
        series: SeriesKey,
    },
    /// There are too many about this object.
    Drop,
}

/// Events that differ in nothing but their time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    about: About,
    is_warning: bool,
    reason: Box<str>,
    /// Nothing for combined events.
    message: Option<String>,
}

#[derive(Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last: Timestamp,
}

#[derive(Debug)]
struct Written {
    name: String,
    count: u32,
    last: Timestamp,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

/// What is known of earlier events.
#[derive(Debug, Default)]
pub(super) struct Series {
    similar: BTreeMap<SeriesKey, Similar>,
    written: BTreeMap<SeriesKey, Written>,
    buckets: BTreeMap<About, Bucket>,
}

impl Series {
    /// Judges an event.
    pub(super) fn judge(&mut self, event: &Published, now: Timestamp) -> Verdict {
        let (series, message) = self.combine(event, now);
        let seen = self.written.get_mut(&series).map(|written| {
            written.count = written.count.saturating_add(1);
            written.last = now;
            (written.name.clone(), written.count)
        });
        if !self.allows(&event.about, now) {
            return Verdict::Drop;
        }
        match seen {
            Some((name, count)) => Verdict::Count { name, count, message, series },
            None => Verdict::Create { message, series },
        }
    }

    /// Notes that an event was written.
    pub(super) fn wrote(&mut self, series: SeriesKey, name: String, now: Timestamp) {
        shrink(&mut self.written, |written| written.last);
        self.written.insert(series, Written { name, count: 1, last: now });
    }

    /// Notes that the object of a series is gone.
    pub(super) fn forget(&mut self, series: &SeriesKey) {
        self.written.remove(series);
    }

    /// The series of an event: its own, or that of all similar ones when there are many.
    fn combine(&mut self, event: &Published, now: Timestamp) -> (SeriesKey, String) {
        let mut series = SeriesKey {
            about: event.about.clone(),
            is_warning: event.kind == EventKind::Warning,
            reason: event.reason.clone(),
            message: None,
        };
        shrink(&mut self.similar, |similar| similar.last);
        let new = || Similar { messages: BTreeSet::new(), last: now };
        let similar = self.similar.entry(series.clone()).or_insert_with(new);
        if now.duration_since(similar.last).unsigned_abs() > SIMILAR_FOR {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(event.message.clone());
        if similar.messages.len() < SIMILAR {
            series.message = Some(event.message.clone());
            return (series, event.message.clone());
        }
        // It is combined from now on whatever it says, so the set need not grow.
        similar.messages.pop_last();
        (series, format!("{COMBINED}{}", event.message))
    }

    fn allows(&mut self, about: &About, now: Timestamp) -> bool {
        shrink(&mut self.buckets, |bucket| bucket.at);
        let new = || Bucket { tokens: BURST, at: now };
        let bucket = self.buckets.entry(about.clone()).or_insert_with(new);
        let elapsed = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + elapsed / REFILL.as_secs_f64()).min(BURST);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

/// Forgets the older half of what is remembered when there is too much of it.
fn shrink<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, last: impl Fn(&V) -> Timestamp) {
    if map.len() < REMEMBERED {
        return;
    }
    let mut times: Vec<Timestamp> = map.values().map(&last).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    let mut excess = times.len() / 2;
    map.retain(|_, value| {
        let goes = excess > 0 && last(value) <= middle;
        excess -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use ::cluster::state::Kind;

    use super::*;

    fn event(name: &str, message: &str) -> Published {
        let about = About { kind: Kind::Node, namespace: "".into(), name: name.into(), uid: name.into() };
        Published { about, kind: EventKind::Normal, reason: "Tested".into(), message: message.to_owned() }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Judges, and writes what is to be written; says so in a few words.
    fn put(series: &mut Series, name: &str, message: &str, seconds: i64) -> String {
        match series.judge(&event(name, message), at(seconds)) {
            Verdict::Create { message, series: key } => {
                series.wrote(key, format!("{name}.{seconds}"), at(seconds));
                format!("create {message}")
            }
            Verdict::Count { name, count, message, .. } => format!("count {name} {count} {message}"),
            Verdict::Drop => "drop".to_owned(),
        }
    }

    #[test]
    fn the_same_event_is_counted() {
        let mut series = Series::default();
        assert_eq!(put(&mut series, "a", "m", 1), "create m");
        assert_eq!(put(&mut series, "a", "m", 2), "count a.1 2 m");
        assert_eq!(put(&mut series, "a", "m", 3), "count a.1 3 m");
        assert_eq!(put(&mut series, "b", "m", 4), "create m");
        assert_eq!(put(&mut series, "a", "n", 5), "create n");
        let Verdict::Count { series: key, .. } = series.judge(&event("a", "m"), at(6)) else { panic!() };
        series.forget(&key);
        assert_eq!(put(&mut series, "a", "m", 7), "create m");
    }

    #[test]
    fn the_tenth_message_of_one_kind_is_combined_with_those_that_follow() {
        let mut series = Series::default();
        for i in 1..10 {
            assert_eq!(put(&mut series, "a", &i.to_string(), i), format!("create {i}"));
        }
        assert_eq!(put(&mut series, "a", "x", 20), "create (combined from similar events): x");
        assert_eq!(put(&mut series, "a", "y", 30), "count a.20 2 (combined from similar events): y");
        assert_eq!(put(&mut series, "a", "z", 700), "create z");
    }

    #[test]
    fn an_object_has_twenty_five_events_and_then_one_every_five_minutes() {
        let mut series = Series::default();
        let written = |series: &mut Series, seconds| {
            (0..30).filter(|_| put(series, "a", "m", seconds) != "drop").count()
        };
        assert_eq!(written(&mut series, 0), 25);
        assert_eq!(written(&mut series, 299), 0);
        assert_eq!(written(&mut series, 600), 2);
        assert_eq!(put(&mut series, "b", "m", 600), "create m");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut series = Series::default();
        for i in 0..10_000 {
            put(&mut series, &i.to_string(), "m", i);
        }
        let sizes = [series.similar.len(), series.written.len(), series.buckets.len()];
        assert!(sizes.iter().all(|size| *size <= REMEMBERED), "{sizes:?}");
        assert!(put(&mut series, "9999", "m", 10_000).starts_with("count"));
    }
}

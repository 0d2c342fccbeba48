//! Events that were written lately, so that the same is not said over and over.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::action::Note;
use crate::time::after;

/// How long the same is not said again.
const SILENCE: Duration = Duration::from_mins(5);
/// How many events are remembered; beyond that, something may be said twice.
const REMEMBERED: usize = 4096;

/// What was said about which object, and when.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<(String, &'static str, String), Timestamp>);

impl Notes {
    /// Whether an event was not said lately; then it is said now.
    pub(crate) fn is_new(&mut self, note: &Note, now: Timestamp) -> bool {
        let key = (note.uid.clone(), note.reason, note.message.clone());
        if self.0.get(&key).is_some_and(|said| after(*said, SILENCE) > now) {
            return false;
        }
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, said| after(*said, SILENCE) > now);
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Key, Kind};
    use crate::testing::at;

    #[test]
    fn the_same_is_said_again_only_after_a_while() {
        let mut notes = Notes::default();
        let note = |uid: &str, message: &str| Note {
            kind: Kind::Pod,
            key: Key::new("default", "p"),
            uid: uid.to_owned(),
            component: "test",
            severity: "Normal",
            reason: "Waiting",
            message: message.to_owned(),
        };
        assert!(notes.is_new(&note("1", "for a volume"), at(0)));
        assert!(!notes.is_new(&note("1", "for a volume"), at(299)));
        assert!(notes.is_new(&note("1", "for a node"), at(299)));
        assert!(notes.is_new(&note("2", "for a volume"), at(299)));
        assert!(notes.is_new(&note("1", "for a volume"), at(300)));
    }
}

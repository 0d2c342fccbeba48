//! Pods whose wishes are treated as demands: operators are told once a day, because such pods keep nodes apart that
//! could be consolidated.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use engine::model::{PodClass, Snapshot};
use jiff::{SignedDuration, Timestamp};

use crate::text::some;

/// How long nothing more is said about a pod.
const SILENCE: SignedDuration = SignedDuration::from_hours(24);
/// How many pods a line names.
const SHOWN: usize = 10;

/// What a pod wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// To be away from other pods.
    Apart,
    /// To be spread.
    Spread,
}

impl Wish {
    const ALL: [Self; 2] = [Self::Apart, Self::Spread];

    fn is_of(self, class: &PodClass) -> bool {
        match self {
            Self::Apart => !class.preferred_anti_affinities.is_empty(),
            Self::Spread => class.spreads.iter().any(|spread| spread.optional),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Apart => {
                "pods have preferred anti-affinities, which can keep nodes from being consolidated"
            }
            Self::Spread => {
                "pods have ScheduleAnyway spread constraints, which can keep nodes from being consolidated"
            }
        }
    }
}

/// What was said, and when.
#[derive(Debug, Default)]
pub(super) struct Said(BTreeMap<(Wish, Box<str>), Timestamp>);

impl Said {
    /// Those of the pods (name and UID) to tell about now; nothing is said of them again for a day.
    fn due<'a>(
        &mut self,
        wish: Wish,
        pods: impl Iterator<Item = (&'a str, &'a str)>,
        now: Timestamp,
    ) -> Vec<&'a str> {
        let is_new = |(name, uid): (&'a str, &'a str)| {
            let slot = self.0.entry((wish, uid.into()));
            let new = matches!(slot, Entry::Vacant(_));
            slot.or_insert(now);
            new.then_some(name)
        };
        pods.filter_map(is_new).collect()
    }

    /// Writes into the log what is due.
    pub(super) fn tell(&mut self, snapshot: &Snapshot, now: Timestamp) {
        self.forget(now);
        for wish in Wish::ALL {
            let wishing = snapshot.pods.iter().filter(|pod| wish.is_of(&snapshot.classes[pod.class.index()]));
            let due = self.due(wish, wishing.map(|pod| (&*pod.name, &*pod.uid)), now);
            if !due.is_empty() {
                tracing::info!(Pods = %some(&due, SHOWN), "{}", wish.text());
            }
        }
    }

    fn forget(&mut self, now: Timestamp) {
        self.0.retain(|_, said| now.duration_since(*said) < SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pod_is_named_once_a_day() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut said = Said::default();
        let mut told = |pods: &[&'static str], hours| {
            let now = start + SignedDuration::from_hours(hours);
            said.forget(now);
            let due = said.due(Wish::Spread, pods.iter().map(|pod| (*pod, *pod)), now);
            (due, said.0.len())
        };
        assert_eq!(told(&["a"], 0), (vec!["a"], 1));
        assert_eq!(told(&["a", "b"], 23), (vec!["b"], 2));
        assert_eq!(told(&["a"], 24), (vec!["a"], 2));
        assert_eq!(told(&[], 48), (vec![], 0), "what is over is forgotten");
    }

    #[test]
    fn one_wish_does_not_hide_another() {
        let (mut said, now) = (Said::default(), Timestamp::UNIX_EPOCH);
        let pods = || [("default/a", "1")].into_iter();
        assert_eq!(said.due(Wish::Apart, pods(), now), ["default/a"]);
        assert_eq!(said.due(Wish::Spread, pods(), now), ["default/a"]);
        assert_eq!(said.due(Wish::Apart, pods(), now), [""; 0]);
    }
}

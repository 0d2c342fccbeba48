//! Machines as they were a moment ago, so that many launches wait with one list.
//!
//! ```text
//!   list ─► replace ─┐                      ┌─ Fresh: the machine
//!   get ──► put ─────┼─► Cache ─► look ─────┼─ Absent: the list is fresh and does not have it
//!   delete ► forget ─┘                      └─ Stale: ask for another list, or for the machine
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::arm::types::machine::Machine;

/// How long what is kept counts.
pub const FRESH: Duration = Duration::from_secs(30);

/// How often a launch looks at its machine.
pub const LOOK: Duration = Duration::from_secs(5);

/// How long a launch waits for its machine at most.
pub const LONGEST_WAIT: Duration = Duration::from_mins(15);

/// What is known about a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Looked<'a> {
    /// It was so a moment ago.
    Fresh(&'a Machine),
    /// It was not there a moment ago.
    Absent,
    /// Nothing that is new enough.
    Stale,
}

/// Machines by their name, with when that was known.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    machines: BTreeMap<String, (Machine, Timestamp)>,
    /// Machines that were changed or deleted, with when: what was asked for before knows nothing of it.
    changed: BTreeMap<String, Timestamp>,
    listed: Option<Timestamp>,
}

impl Cache {
    /// Takes over a list that was asked for at a time. What is known since then stays.
    pub fn replace(&mut self, list: Vec<Machine>, asked: Timestamp) {
        if self.listed.is_some_and(|listed| listed > asked) {
            return;
        }
        self.changed.retain(|_, changed| *changed >= asked);
        self.machines.retain(|_, (_, known)| *known >= asked);
        for machine in list {
            if let Some(name) = own_name(&machine)
                && !self.changed.contains_key(&name)
            {
                self.machines.entry(name).or_insert((machine, asked));
            }
        }
        self.listed = Some(asked);
    }

    /// Takes over one machine that was asked for at a time, unless it was changed since then.
    pub fn put(&mut self, machine: Machine, asked: Timestamp) {
        if let Some(name) = own_name(&machine)
            && self.changed.get(&name).is_none_or(|changed| *changed <= asked)
        {
            self.machines.insert(name, (machine, asked));
        }
    }

    /// Forgets a machine that is being changed or deleted: the next look asks for it.
    pub fn forget(&mut self, name: &str, now: Timestamp) {
        self.machines.remove(name);
        self.changed.insert(name.to_owned(), now);
    }

    /// What is known about a machine.
    pub fn look(&self, name: &str, now: Timestamp) -> Looked<'_> {
        match self.machines.get(name) {
            Some((machine, known)) if is_fresh(*known, now) => Looked::Fresh(machine),
            None if self.is_fresh(now) && !self.changed.contains_key(name) => Looked::Absent,
            _ => Looked::Stale,
        }
    }

    /// Whether the list is new enough; if not, another one should be asked for.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.listed.is_some_and(|listed| is_fresh(listed, now))
    }
}

fn is_fresh(known: Timestamp, now: Timestamp) -> bool {
    now.duration_since(known) < SignedDuration::try_from(FRESH).unwrap_or(SignedDuration::MAX)
}

/// The name of a machine; AKS puts the pool's before it.
fn own_name(machine: &Machine) -> Option<String> {
    let name = machine.id.as_deref().or(machine.name.as_deref())?.rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::machine::state::{Progress, progress};

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn later(seconds: i64) -> Timestamp {
        NOW + SignedDuration::from_secs(seconds)
    }

    fn machine(name: &str, state: &str) -> Machine {
        serde_json::from_value(json!({"name": name, "properties": {"provisioningState": state}})).unwrap()
    }

    // azure.md 11.5, 25.8: fresh, stale, miss
    #[test]
    fn what_is_known_counts_for_half_a_minute() {
        let mut cache = Cache::default();
        assert_eq!(cache.look("a", NOW), Looked::Stale);
        cache.replace(vec![machine("pool/a", "Creating")], NOW);
        assert!(matches!(cache.look("a", later(29)), Looked::Fresh(_)));
        assert_eq!(cache.look("b", later(29)), Looked::Absent);
        assert_eq!(cache.look("a", later(30)), Looked::Stale);
        assert_eq!(cache.look("b", later(30)), Looked::Stale);
        assert!(cache.is_fresh(later(29)) && !cache.is_fresh(later(30)));
    }

    // azure.md 11.5: direct GET is stored; Update/Delete invalidate the entry
    #[test]
    fn a_machine_that_was_asked_for_is_known_and_one_that_is_changed_is_not() {
        let mut cache = Cache::default();
        cache.put(machine("a", "Creating"), NOW);
        assert!(matches!(cache.look("a", NOW), Looked::Fresh(_)));
        cache.replace(vec![machine("a", "Creating"), machine("b", "Succeeded")], NOW);
        cache.forget("a", NOW);
        assert_eq!(cache.look("a", NOW), Looked::Stale);
        assert!(matches!(cache.look("b", NOW), Looked::Fresh(_)));
        assert!(cache.is_fresh(NOW), "who waits for others need not ask for all of them again");
    }

    #[test]
    fn an_answer_from_before_a_change_does_not_bring_a_machine_back() {
        let mut cache = Cache::default();
        cache.replace(vec![machine("a", "Succeeded")], NOW);
        cache.forget("a", later(2));
        // Both were on their way when it was deleted.
        cache.put(machine("a", "Succeeded"), later(1));
        assert_eq!(cache.look("a", later(3)), Looked::Stale);
        cache.replace(vec![machine("a", "Succeeded")], later(1));
        assert_eq!(cache.look("a", later(3)), Looked::Stale);
        cache.put(machine("a", "Creating"), later(3));
        assert!(matches!(cache.look("a", later(3)), Looked::Fresh(_)));
        // What was asked for later knows of it, and nothing has to be remembered any more.
        cache.replace(vec![], later(4));
        assert_eq!(cache.look("a", later(4)), Looked::Absent);
        assert!(cache.changed.is_empty());
        cache.replace(vec![machine("b", "Succeeded")], later(2));
        assert_eq!(cache.look("b", later(4)), Looked::Absent, "a list that comes late is not believed");
    }

    #[test]
    fn a_list_does_not_undo_what_was_learned_while_it_was_on_its_way() {
        let mut cache = Cache::default();
        cache.put(machine("new", "Creating"), later(1));
        cache.put(machine("old", "Creating"), later(-1));
        cache.put(machine("both", "Succeeded"), later(2));
        cache.replace(vec![machine("both", "Creating")], NOW);
        assert!(matches!(cache.look("new", later(3)), Looked::Fresh(_)));
        assert_eq!(cache.look("old", later(3)), Looked::Absent);
        let Looked::Fresh(both) = cache.look("both", later(3)) else { panic!() };
        assert_eq!(progress(both), Progress::Done);
    }
}

//! Sets of fields, as `managedFields` keeps them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::field_error::quoted;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field of an object.
    Field(Box<str>),
    /// An entry of a list, by its keys as JSON.
    Key(Box<str>),
    /// An entry of a set, as JSON.
    Value(Box<str>),
    /// An entry of a list, by its position.
    Index(u64),
}

impl Step {
    /// A step to a field.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The step as FieldsV1 writes it.
    fn written(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{keys}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once(':')?;
        // JSON in keys is read and written, so that different spellings are one.
        let normal = || Some(serde_json::from_str::<Value>(rest).ok()?.to_string().into());
        match prefix {
            "f" => Some(Self::Field(rest.into())),
            "k" => normal().map(Self::Key),
            "v" => normal().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| match value {
            Value::String(text) => quoted(text),
            other => other.to_string(),
        };
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys = parsed(keys);
                let fields = keys.as_object().into_iter().flatten();
                let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(&parsed(value))),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    entries: BTreeMap<Step, Entry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Whether the path that ends here is in the set.
    member: bool,
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Reads FieldsV1; nothing when it is not of that form.
    pub(crate) fn read(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (key, below) in fields.as_object()? {
            if key == "." {
                continue;
            }
            let entry = Entry { member: is_member(below), below: Self::read(below)? };
            set.entries.insert(Step::read(key)?, entry);
        }
        Some(set)
    }

    /// Writes FieldsV1.
    pub(crate) fn written(&self) -> Value {
        let mut map = Map::new();
        for (step, entry) in &self.entries {
            let mut below = entry.below.written();
            if entry.member
                && !entry.below.is_empty()
                && let Some(below) = below.as_object_mut()
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(step.written(), below);
        }
        Value::Object(map)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path; the empty path is no member of any set.
    pub(crate) fn insert(&mut self, path: &[Step]) {
        let Some((first, rest)) = path.split_first() else { return };
        let entry = if let Some(entry) = self.entries.get_mut(first) {
            entry
        } else {
            self.entries.entry(first.clone()).or_default()
        };
        if rest.is_empty() {
            entry.member = true;
        } else {
            entry.below.insert(rest);
        }
    }

    /// Whether a single step is in the set.
    pub(crate) fn has(&self, step: &Step) -> bool {
        self.entries.get(step).is_some_and(|entry| entry.member)
    }

    /// The paths that go on below a step.
    pub(crate) fn below(&self, step: &Step) -> Option<&Self> {
        self.entries.get(step).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// All paths, in order.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = vec![];
        self.collect_members(&mut vec![], &mut paths);
        paths
    }

    /// A set's members come before what is below them.
    fn collect_members(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for (step, _) in self.entries.iter().filter(|(_, entry)| entry.member) {
            prefix.push(step.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for (step, entry) in &self.entries {
            prefix.push(step.clone());
            entry.below.collect_members(prefix, paths);
            prefix.pop();
        }
    }

    /// Both sets together.
    pub(crate) fn union(mut self, other: &Self) -> Self {
        for (step, entry) in &other.entries {
            let mine = self.entries.entry(step.clone()).or_default();
            mine.member |= entry.member;
            mine.below = std::mem::take(&mut mine.below).union(&entry.below);
        }
        self
    }

    /// What is in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut set = Self::default();
        for (step, entry) in &self.entries {
            let Some(others) = other.entries.get(step) else { continue };
            let both = Entry {
                member: entry.member && others.member,
                below: entry.below.intersection(&others.below),
            };
            if !both.is_empty() {
                set.entries.insert(step.clone(), both);
            }
        }
        set
    }

    /// What is in this set and not in the other.
    pub(crate) fn difference(mut self, other: &Self) -> Self {
        self.entries.retain(|step, entry| {
            if let Some(others) = other.entries.get(step) {
                entry.member &= !others.member;
                entry.below = std::mem::take(&mut entry.below).difference(&others.below);
            }
            !entry.is_empty()
        });
        self
    }

    /// Whether FieldsV1 has every member of this set.
    pub(crate) fn is_within(&self, fields: &Value) -> bool {
        self.entries.iter().all(|(step, entry)| {
            fields
                .get(step.written())
                .is_some_and(|below| (!entry.member || is_member(below)) && entry.below.is_within(below))
        })
    }

    /// Whether FieldsV1 has no member of this set.
    pub(crate) fn is_outside(&self, fields: &Value) -> bool {
        self.entries.iter().all(|(step, entry)| {
            fields
                .get(step.written())
                .is_none_or(|below| !(entry.member && is_member(below)) && entry.below.is_outside(below))
        })
    }

    /// The set without a path, given as names with dots, and without what is below it.
    pub(crate) fn without(mut self, path: &str) -> Self {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let step = Step::field(name);
        if rest.is_empty() {
            self.entries.remove(&step);
        } else if let Some(entry) = self.entries.get_mut(&step) {
            entry.below = std::mem::take(&mut entry.below).without(rest);
            if entry.is_empty() {
                self.entries.remove(&step);
            }
        }
        self
    }

    /// Adds every step to a field that `is_named` knows and that something is below of.
    pub(crate) fn include_parents<'a, T: Copy + 'a>(
        &self,
        place: T,
        is_named: &dyn Fn(T, &str) -> bool,
        descend: &dyn Fn(T, &Step) -> T,
    ) -> Self {
        let mut set = self.clone();
        for (step, entry) in &mut set.entries {
            if let Step::Field(name) = step
                && !entry.below.is_empty()
                && is_named(place, name)
            {
                entry.member = true;
            }
            if !entry.below.is_empty() {
                entry.below = entry.below.include_parents(descend(place, step), is_named, descend);
            }
        }
        set
    }
}

/// Whether a path of FieldsV1 is a member with `below` below it.
fn is_member(below: &Value) -> bool {
    below.as_object().is_some_and(|below| below.is_empty() || below.contains_key("."))
}

/// A path as messages show it.
pub(crate) fn shown_path(path: &[Step]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldSet, Step, shown_path};

    #[test]
    fn fields_are_written_as_they_were_read() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}, "i:3": {}}},
        });
        assert_eq!(FieldSet::read(&fields).unwrap().written(), fields);
        assert_eq!(FieldSet::read(&json!({"x": {}})), None);
        assert_eq!(FieldSet::read(&json!({"f:a": 3})), None);
    }

    #[test]
    fn paths_are_shown_as_the_real_server_does() {
        let fields = json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:port": {}}}, "v:\"a\"": {}}});
        let set = FieldSet::read(&fields).unwrap();
        let paths: Vec<_> = set.paths().iter().map(|path| shown_path(path)).collect();
        assert_eq!(paths, [".spec[=\"a\"]", ".spec.ports[port=80,protocol=\"TCP\"].port"]);
    }

    #[test]
    fn a_parent_and_its_child_are_members_on_their_own() {
        let path = |names: &[&str]| names.iter().map(|name| Step::field(name)).collect::<Vec<_>>();
        let mut both = FieldSet::default();
        both.insert(&path(&["a"]));
        both.insert(&path(&["a", "b"]));
        let mut parent = FieldSet::default();
        parent.insert(&path(&["a"]));
        assert_eq!(both.clone().difference(&parent).written(), json!({"f:a": {"f:b": {}}}));
        assert_eq!(both.intersection(&parent), parent);
        assert_eq!(parent.clone().union(&both), both);
    }
}

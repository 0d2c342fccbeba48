//! Who set which field: `metadata.managedFields`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::fields::{FieldSet, Step};
use super::typed::{self, Comparison, Type};
use crate::schema::{Schema, zero};

/// Who changes an object.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The name, such as `kubectl`.
    pub name: &'a str,
    /// The subresource through which the change comes; empty for the object itself.
    pub subresource: &'a str,
    /// The version in which the object is written.
    pub api_version: &'a str,
    /// The time, as RFC 3339 writes it.
    pub now: &'a str,
    /// Fields that such a write does not change, as paths with dots.
    pub reset: &'a [&'a str],
}

impl Manager<'_> {
    /// What of a set this manager's write can change.
    pub(crate) fn reach(&self, set: FieldSet) -> FieldSet {
        if set.is_empty() {
            return set;
        }
        self.reset.iter().fold(set, |set, path| set.without(path))
    }

    /// What of a comparison this manager's write can change.
    pub(crate) fn reach_of(&self, comparison: Comparison) -> Comparison {
        Comparison {
            added: self.reach(comparison.added),
            modified: self.reach(comparison.modified),
            removed: self.reach(comparison.removed),
        }
    }
}

/// The two ways to set fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What distinguishes entries; an applier has one entry for all versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Id {
    pub(crate) fn new(manager: &Manager<'_>, operation: Operation) -> Self {
        let name = if manager.name.is_empty() { "unknown" } else { manager.name };
        Self {
            manager: name.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => manager.api_version.to_owned(),
            },
            subresource: manager.subresource.to_owned(),
        }
    }
}

/// The fields of one manager.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
    pub(crate) set: FieldSet,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managers(pub(crate) BTreeMap<Id, Owned>);

impl Managers {
    /// Reads the `metadata.managedFields` of an object; nothing if an entry is not understood.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        Self::of(entries(object))
    }

    /// Reads entries; nothing if one is not understood.
    fn of(entries: Option<&Value>) -> Option<Self> {
        let mut managers = BTreeMap::new();
        for entry in entries.and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let operation = match text("operation").as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let id = Id {
                manager: text("manager"),
                operation,
                api_version: if operation == Operation::Apply { String::new() } else { api_version.clone() },
                subresource: text("subresource"),
            };
            let set = entry.get("fieldsV1").map_or_else(|| Some(FieldSet::default()), FieldSet::read)?;
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            managers.insert(id, Owned { api_version, time, set });
        }
        Some(Self(managers))
    }

    /// Writes `metadata.managedFields`.
    pub(crate) fn write(&self, object: &mut Value) {
        Entries::Are(self.written()).put_into(object, None);
    }

    /// What stands in `metadata.managedFields`, appliers first, then by time and name; nothing without managers.
    fn written(&self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let mut entries: Vec<(&Id, &Owned)> = self.0.iter().collect();
        entries.sort_by_key(|(id, owned)| {
            (id.operation, seconds(owned.time.as_deref()), &id.manager, &owned.api_version, &id.subresource)
        });
        let written = entries.iter().map(|(id, owned)| {
            let mut entry = Map::new();
            entry.insert("manager".to_owned(), json!(id.manager));
            entry.insert("operation".to_owned(), json!(id.operation.as_str()));
            entry.insert("apiVersion".to_owned(), json!(owned.api_version));
            if let Some(time) = &owned.time {
                entry.insert("time".to_owned(), json!(time));
            }
            entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
            entry.insert("fieldsV1".to_owned(), owned.set.written());
            if !id.subresource.is_empty() {
                entry.insert("subresource".to_owned(), json!(id.subresource));
            }
            Value::Object(entry)
        });
        Some(written.collect())
    }

    /// Takes from all managers but one what changed, and returns what each lost to changed values.
    pub(crate) fn conflicts(&self, but: Option<&Id>, comparison: &Comparison) -> BTreeMap<Id, FieldSet> {
        let changed = comparison.modified.clone().union(&comparison.added);
        let others = self.0.iter().filter(|(id, _)| Some(*id) != but);
        others
            .map(|(id, owned)| (id.clone(), owned.set.intersection(&changed)))
            .filter(|(_, conflict)| !conflict.is_empty())
            .collect()
    }

    /// Takes from all managers but one what changed or is gone.
    pub(crate) fn take(&mut self, but: Option<&Id>, comparison: &Comparison) {
        let lost = comparison.modified.clone().union(&comparison.added).union(&comparison.removed);
        for (id, owned) in &mut self.0 {
            if Some(id) != but {
                owned.set = std::mem::take(&mut owned.set).difference(&lost);
            }
        }
        self.0.retain(|_, owned| !owned.set.is_empty());
    }

    /// Notes an update of the object.
    pub(crate) fn note_update(&mut self, old: &Value, new: &Value, manager: &Manager<'_>, schema: &Schema) {
        let mut comparison = manager.reach_of(typed::compare(Type::root(schema), old, new));
        comparison.forget("metadata.managedFields");
        self.take(None, &comparison);
        let set = strip(comparison.modified.union(&comparison.added));
        if !set.is_empty() {
            let id = Id::new(manager, Operation::Update);
            let previous = self.0.remove(&id).map(|owned| owned.set).unwrap_or_default();
            let owned = Owned {
                api_version: manager.api_version.to_owned(),
                time: Some(manager.now.to_owned()),
                set: set.union(&previous),
            };
            self.0.insert(id, owned);
        }
        self.cap();
    }

    /// Joins the oldest entries of updates when there are more than ten.
    fn cap(&mut self) {
        const MOST: usize = 10;
        if self.0.len() <= MOST {
            return;
        }
        let mut updaters: Vec<(i64, Id)> = self
            .0
            .iter()
            .filter(|(id, _)| id.operation == Operation::Update)
            .map(|(id, owned)| (seconds(owned.time.as_deref()), id.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first_of: BTreeMap<String, Id> = BTreeMap::new();
        for (_, id) in updaters {
            if count <= MOST {
                break;
            }
            let Some(version) = self.0.get(&id).map(|owned| owned.api_version.clone()) else { continue };
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = Id {
                manager: "ancient-changes".to_owned(),
                operation: Operation::Update,
                api_version: version,
                subresource: String::new(),
            };
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), owned);
            }
            if let Some(joined) = self.0.remove(&id)
                && let Some(owned) = self.0.get_mut(&bucket)
            {
                owned.set = std::mem::take(&mut owned.set).union(&joined.set);
                owned.time = joined.time;
            }
            count -= 1;
        }
    }
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_second)
}

/// Removes the fields that belong to nobody.
pub(crate) fn strip(set: FieldSet) -> FieldSet {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    static NOBODY: LazyLock<FieldSet> = LazyLock::new(|| {
        let mut nobody = FieldSet::default();
        for name in ["apiVersion", "kind", "metadata"] {
            nobody.insert(&[Step::field(name)]);
        }
        for name in METADATA {
            nobody.insert(&[Step::field("metadata"), Step::field(name)]);
        }
        nobody
    });
    set.difference(&NOBODY)
}

/// A copy without `managedFields`, which are no fields of anybody.
pub(crate) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Whether a request asks for the managed fields to be forgotten.
fn is_reset(given: Option<&Value>) -> bool {
    match given {
        Some(Value::Array(entries)) => match entries.as_slice() {
            [] => true,
            [only] => only.as_object().is_some_and(Map::is_empty),
            _ => false,
        },
        _ => false,
    }
}

/// Keeps `metadata.managedFields` of `new` after a create, update or patch; `old` is nothing for a create.
pub fn track_update(old: Option<&Value>, new: &mut Value, manager: &Manager<'_>, schema: &Schema) {
    let held = old.and_then(entries);
    after_update((old, held), (&*new, entries(new)), manager, schema).put_into(new, held.cloned());
}

/// The entries of `metadata.managedFields`.
pub(crate) fn entries(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Takes the entries out of an object.
pub(crate) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Gives an object entries, or takes them away.
pub(crate) fn put(object: &mut Value, entries: Option<Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match entries {
        Some(entries) => metadata.insert("managedFields".to_owned(), entries),
        None => metadata.remove("managedFields"),
    };
}

/// What becomes of `metadata.managedFields`.
pub(crate) enum Entries {
    /// They are these, or gone.
    Are(Option<Value>),
    /// They are as before but for the time of the last.
    Renewed(String),
}

impl Entries {
    /// Gives them to an object; `held` are those from before.
    pub(crate) fn put_into(self, object: &mut Value, held: Option<Value>) {
        let entries = match self {
            Self::Are(entries) => entries,
            Self::Renewed(time) => {
                let mut entries = held;
                let list = entries.as_mut().and_then(Value::as_array_mut);
                if let Some(last) = list.and_then(|list| list.last_mut()) {
                    last["time"] = Value::from(time);
                }
                entries
            }
        };
        put(object, entries);
    }

    /// Whether nothing but times differ from those before: that a field was set again is no change.
    pub(crate) fn are_like(&self, held: Option<&Value>) -> bool {
        let Self::Are(entries) = self else { return true };
        match (entries.as_ref().and_then(Value::as_array), held.and_then(Value::as_array)) {
            (Some(entries), Some(held)) => {
                entries.len() == held.len() && entries.iter().zip(held).all(|(one, held)| is_like(one, held))
            }
            _ => entries.as_ref() == held,
        }
    }
}

/// Whether two entries differ in nothing but the time.
fn is_like(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && (one.0 == "time" || one.1 == other.1))
}

/// What becomes of the managed fields by a create, update or patch.
///
/// The old object, nothing for a create, and the new one come with their entries, which may be missing in the objects
/// themselves.
pub(crate) fn after_update(
    (old, held): (Option<&Value>, Option<&Value>),
    (new, given): (&Value, Option<&Value>),
    manager: &Manager<'_>,
    schema: &Schema,
) -> Entries {
    // Clients that do not know managed fields leave them out.
    if let (Some(old), Some(held)) = (old, held)
        && given.is_none_or(|given| given == held)
        && is_renewal((old, held), new, manager, schema).unwrap_or_default()
    {
        return Entries::Renewed(manager.now.to_owned());
    }
    let live = || Managers::of(held).unwrap_or_default();
    let mut managers = if !manager.subresource.is_empty() {
        live()
    } else if is_reset(given) {
        Managers::default()
    } else {
        Managers::of(given).filter(|managers| !managers.0.is_empty()).unwrap_or_else(live)
    };
    // An object that is not tracked stays so.
    if old.is_none() || !managers.0.is_empty() {
        match old {
            Some(old) => managers.note_update(old, new, manager, schema),
            None => managers.note_update(&empty_object(new, schema), new, manager, schema),
        }
    }
    Entries::Are(managers.written())
}

/// Whether a manager sets again what it alone owns, as heartbeats do, and its entry stays the last: the time of
/// that is all that is new then. Nothing when it has no such entry.
fn is_renewal(
    (old, held): (&Value, &Value),
    new: &Value,
    manager: &Manager<'_>,
    schema: &Schema,
) -> Option<bool> {
    let (last, others) = held.as_array()?.split_last()?;
    let text = |name: &str| last.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_own = text("manager") == manager.name
        && text("operation") == Operation::Update.as_str()
        && text("apiVersion") == manager.api_version
        && text("subresource") == manager.subresource
        && text("time") <= manager.now;
    if !is_own {
        return None;
    }
    let comparison = manager.reach_of(typed::compare(Type::root(schema), old, new));
    let set = &comparison.modified;
    let is_within = comparison.added.is_empty()
        && comparison.removed.is_empty()
        && !set.is_empty()
        && set.is_within(last.get("fieldsV1")?);
    let is_outside = |entry: &Value| entry.get("fieldsV1").is_none_or(|fields| set.is_outside(fields));
    Some(is_within && others.iter().all(is_outside))
}

/// What an object is compared with when it is created.
pub(crate) fn empty_object(object: &Value, schema: &Schema) -> Value {
    let mut empty = Value::Object(zero::empty(schema.node()));
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name) {
            empty[name] = value.clone();
        }
    }
    empty
}

//! Server-side apply: the fields that a manager says it wants, merged with those of others.

use http::StatusCode;
use serde_json::{Map, Value, json};

pub use super::managed_fields::Manager;

use super::fields::{FieldSet, shown_path};
use super::managed_fields::{Id, Managers, Operation, Owned, empty_object, strip, without_managed_fields};
use super::typed::{self, Type};
use crate::field_error::quoted;
use crate::refusal::{Cause, Details, Refusal};
use crate::schema::Schema;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Applies `applied`; `live` is nothing when the object does not exist.
///
/// Fields that this manager applied before and that nobody wants any more are removed. The result has its
/// `managedFields`; defaults are still to be filled in.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
    schema: &Schema,
) -> Result<Value, Refusal> {
    check(applied, manager, schema)?;
    let empty = empty_object(applied, schema);
    let mut managers = match live {
        Some(live) => {
            Managers::read(live).ok_or_else(|| Refusal::internal("failed to decode managed fields"))?
        }
        None => Managers::default(),
    };
    let before = live.map_or_else(|| empty.clone(), without_managed_fields);
    if managers.0.is_empty() && live.is_some() {
        // Fields of an object that was not tracked have an owner from now on.
        let first = Manager { name: "before-first-apply", ..*manager };
        managers.note_update(&empty, &before, &first, schema);
    }
    let run = Run { before: &before, applied, manager, schema, type_: Type::root(schema) };
    let (mut object, managers) = match run.apply(managers.clone(), force) {
        Ok(done) => done,
        Err(conflicts) => {
            let conflicts = match run.allowed_by_last_applied() {
                Some(allowed) => conflicts.without(&allowed),
                None => conflicts,
            };
            if !conflicts.0.is_empty() {
                return Err(conflicts.refusal());
            }
            run.apply(managers, true).map_err(|conflicts| conflicts.refusal())?
        }
    };
    if manager.name == "kubectl" && last_applied(&object).is_some() {
        set_last_applied(&mut object, applied);
    }
    managers.write(&mut object);
    Ok(object)
}

fn check(applied: &Value, manager: &Manager<'_>, schema: &Schema) -> Result<(), Refusal> {
    let version = applied.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != manager.api_version {
        return Err(Refusal::bad_request(format!("invalid object type: {}", shown_type(applied))));
    }
    let fields = applied.pointer("/metadata/managedFields");
    if fields.is_some_and(|fields| !fields.is_null()) {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    if let Some(why) = typed::unusable(Type::root(schema), applied) {
        let text = |pointer: &str| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let object = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        let message =
            format!("failed to create typed patch object ({object}; {}): {why}", shown_type(applied));
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    Ok(())
}

/// The type of an object as messages show it, with an empty group where there is none.
pub(crate) fn shown_type(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

struct Run<'a> {
    before: &'a Value,
    applied: &'a Value,
    manager: &'a Manager<'a>,
    schema: &'a Schema,
    type_: Type<'a>,
}

impl Run<'_> {
    fn apply(&self, mut managers: Managers, force: bool) -> Result<(Value, Managers), Conflicts> {
        let id = Id::new(self.manager, Operation::Apply);
        let merged = typed::merge(self.type_, self.before, self.applied);
        let set = self.manager.reach(typed::fields(self.type_, self.applied));
        let last = managers.0.remove(&id);
        let mut owned = Owned {
            api_version: self.manager.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            set,
        };
        managers.0.insert(id.clone(), owned.clone());
        let object = self.remove_unwanted(&merged, &managers, last.as_ref().map(|last| &last.set));

        let comparison = self.manager.reach_of(typed::compare(self.type_, self.before, &object));
        let conflicts = managers.conflicts(Some(&id), &comparison);
        if !force && !conflicts.is_empty() {
            return Err(Conflicts::new(conflicts));
        }
        managers.take(Some(&id), &comparison);
        owned.set = strip(owned.set);
        managers.0.remove(&id);
        // The time is that of the last change to the object.
        if object != *self.before {
            owned.time = Some(self.manager.now.to_owned());
        }
        if !owned.set.is_empty() {
            managers.0.insert(id, owned);
        }
        Ok((object, managers))
    }

    /// Removes what this manager applied last time and nobody applies or sets now.
    fn remove_unwanted(&self, merged: &Value, managers: &Managers, last: Option<&FieldSet>) -> Value {
        let Some(last) = last.filter(|last| !last.is_empty()) else { return merged.clone() };
        let with_parents = |set: &FieldSet| typed::with_parents(self.type_, set);
        let remove = |set: &FieldSet| typed::remove(self.type_, merged, set).unwrap_or_default();
        let fields = |value: &Value| with_parents(&typed::fields(self.type_, value));

        let last = with_parents(last);
        let without_last = fields(&remove(&last));
        let everybody = managers.0.values().fold(FieldSet::default(), |all, owned| all.union(&owned.set));
        let all = fields(merged);
        // Others may own something below what was removed.
        let owned_back = remove(&all.clone().difference(&without_last.union(&with_parents(&everybody))));
        // Something that nobody owns stays.
        let unwanted = all.difference(&fields(&owned_back)).intersection(&last);
        let mut object = remove(&unwanted);
        drop_emptied(&mut object, merged);
        object
    }

    /// The conflicts that `kubectl apply` without the server's help would not have seen as such: fields that its
    /// annotation lists and that are as it set them.
    fn allowed_by_last_applied(&self) -> Option<FieldSet> {
        if self.manager.name != "kubectl" {
            return None;
        }
        let last: Value = serde_json::from_str(last_applied(self.before)?).ok()?;
        if last.get("apiVersion")?.as_str()? != self.manager.api_version {
            return None;
        }
        let type_ = Type::root(self.schema);
        let comparison = typed::compare(type_, &last, self.before);
        Some(
            typed::fields(type_, &last)
                .difference(&comparison.modified)
                .difference(&comparison.added)
                .difference(&comparison.removed),
        )
    }
}

/// Objects from which everything was removed are gone.
fn drop_emptied(object: &mut Value, before: &Value) {
    match (object, before) {
        (Value::Object(fields), Value::Object(before)) => fields.retain(|name, value| {
            let Some(before) = before.get(name) else { return true };
            drop_emptied(value, before);
            !value.is_null() || before.is_null()
        }),
        (Value::Array(items), Value::Array(_)) => items.retain(|item| !item.is_null()),
        _ => {}
    }
}

fn last_applied(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str().filter(|text| !text.is_empty())
}

/// Keeps the annotation of client-side apply up to date.
fn set_last_applied(object: &mut Value, applied: &Value) {
    const LONGEST: usize = 256 * 1024;
    let mut applied = without_managed_fields(applied);
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let text = applied.to_string();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        // An annotation that would be too long is emptied.
        annotations
            .insert(LAST_APPLIED.to_owned(), json!(if text.len() > LONGEST { String::new() } else { text }));
    }
}

/// Fields that others own and that would change.
struct Conflicts(Vec<(Id, String)>);

impl Conflicts {
    fn new(conflicts: impl IntoIterator<Item = (Id, FieldSet)>) -> Self {
        let mut list = vec![];
        for (id, set) in conflicts {
            list.extend(set.paths().iter().map(|path| (id.clone(), shown_path(path))));
        }
        Self(list)
    }

    fn without(mut self, allowed: &FieldSet) -> Self {
        let allowed: Vec<String> = allowed.paths().iter().map(|path| shown_path(path)).collect();
        self.0.retain(|(_, path)| !allowed.contains(path));
        self
    }

    fn refusal(&self) -> Refusal {
        let causes = self.0.iter().map(|(id, path)| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", shown(id)),
            field: path.clone(),
        });
        let message = match self.0.as_slice() {
            [(id, path)] => format!("Apply failed with 1 conflict: conflict with {}: {path}", shown(id)),
            many => {
                let mut lines: Vec<String> = vec![];
                let mut managers: Map<String, Value> = Map::new();
                for (id, path) in many {
                    let paths = managers.entry(shown(id)).or_insert_with(|| json!([]));
                    if let Some(paths) = paths.as_array_mut() {
                        paths.push(json!(path));
                    }
                }
                for (manager, paths) in &managers {
                    lines.push(format!("conflicts with {manager}:"));
                    let paths = paths.as_array().into_iter().flatten().filter_map(Value::as_str);
                    lines.extend(paths.map(|path| format!("- {path}")));
                }
                format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
            }
        };
        let mut refusal = Refusal::new(StatusCode::CONFLICT, "Conflict", message);
        refusal.details = Some(Box::new(Details { causes: causes.collect(), ..Details::default() }));
        refusal
    }
}

fn shown(id: &Id) -> String {
    let mut text = quoted(&id.manager);
    if !id.subresource.is_empty() {
        text = format!("{text} with subresource {}", quoted(&id.subresource));
    }
    if id.operation == Operation::Update {
        text = format!("{text} using {}", id.api_version);
    }
    text
}

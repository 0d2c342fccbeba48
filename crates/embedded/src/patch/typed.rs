//! Objects seen through their schema: which fields they have, what changed, merging and removing.

use serde_json::{Map, Value};

use super::fields::{FieldSet, Step, shown_path};
use crate::field_error::quoted;
use crate::schema::{Field, List, Node, Schema};

/// What is known about a place: nothing, a node of a schema, or that the value is one whole.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    node: Option<&'a Node>,
    atomic: bool,
}

/// How a value is taken apart.
enum Shape<'a> {
    /// Not at all.
    Leaf,
    Map(&'a Map<String, Value>),
    /// By keys or as a set.
    List(&'a [Value]),
}

impl<'a> Type<'a> {
    /// The type of whole objects.
    pub(crate) fn root(schema: &'a Schema) -> Self {
        Self { node: Some(schema.node()), atomic: false }
    }

    const UNKNOWN: Self = Self { node: None, atomic: false };

    fn of(field: &'a Field) -> Self {
        Self { node: Some(field.node()), atomic: field.is_atomic() }
    }

    fn field(self, name: &str) -> Self {
        self.node.and_then(|node| node.field(name)).map_or(Self::UNKNOWN, Self::of)
    }

    /// Whether the field has a name of its own in the schema.
    fn names(self, name: &str) -> bool {
        self.node.is_some_and(|node| node.properties.contains_key(name))
    }

    fn item(self) -> Self {
        self.node.and_then(|node| node.items.as_deref()).map_or(Self::UNKNOWN, Self::of)
    }

    fn below(self, step: &Step) -> Self {
        match step {
            Step::Field(name) => self.field(name),
            _ => self.item(),
        }
    }

    fn shape(self, value: &'a Value) -> Shape<'a> {
        match value {
            Value::Object(_) if self.atomic => Shape::Leaf,
            Value::Object(fields) => Shape::Map(fields),
            Value::Array(items) if self.list().is_some() => Shape::List(items),
            _ => Shape::Leaf,
        }
    }

    /// How entries are told apart; nothing for lists that are one value.
    fn list(self) -> Option<&'a List> {
        self.node.map(|node| &node.list).filter(|list| **list != List::Atomic)
    }

    /// The step to an entry of a list; nothing when it has no keys.
    fn step_to(self, item: &Value) -> Option<Step> {
        match self.list()? {
            List::Atomic => None,
            List::Set if item.is_object() || item.is_array() || item.is_null() => None,
            List::Set => Some(Step::Value(item.to_string().into())),
            List::Map(keys) => {
                let item_type = self.item();
                let mut found = Map::new();
                for key in keys {
                    let default = item_type.node.and_then(|node| node.properties.get(&**key));
                    let value =
                        item.as_object()?.get(&**key).or(default.and_then(|field| field.default.as_ref()));
                    if let Some(value) = value {
                        found.insert(key.to_string(), value.clone());
                    }
                }
                (!found.is_empty()).then(|| Step::Key(sorted(found).into()))
            }
        }
    }
}

impl Type<'_> {
    fn why_no_step(self, item: &Value) -> String {
        match (self.list(), item) {
            (Some(List::Map(_)), Value::Null) => {
                "associative list with keys may not have a null element".to_owned()
            }
            (Some(List::Map(keys)), Value::Object(_)) => {
                let keys: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
                format!(
                    "associative list with keys has an element that omits all key fields [{}] \
                     (and doesn't have default values for any key fields)",
                    keys.join(" ")
                )
            }
            (Some(List::Map(_)), _) => "associative list with keys may not have non-map elements".to_owned(),
            (_, Value::Object(_)) => {
                "associative list without keys has an element that's a map type".to_owned()
            }
            (_, Value::Array(_)) => "not supported: associative list with lists as elements".to_owned(),
            _ => "associative list without keys has an element that's an explicit null".to_owned(),
        }
    }
}

/// Keys in alphabetical order.
fn sorted(keys: Map<String, Value>) -> String {
    let keys: std::collections::BTreeMap<String, Value> = keys.into_iter().collect();
    serde_json::to_string(&keys).unwrap_or_default()
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    }
}

/// All fields of an object.
pub(crate) fn fields(type_: Type<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(type_, value, &mut vec![], &mut set);
    set
}

fn collect(type_: Type<'_>, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match type_.shape(value) {
        Shape::Leaf if value.is_null() => {}
        Shape::Leaf => set.insert(path),
        Shape::Map(fields) => {
            for (name, value) in fields {
                path.push(Step::field(name));
                collect(type_.field(name), value, path, set);
                let empty_object = value.as_object().is_some_and(Map::is_empty);
                if value.is_null() || empty_object || !type_.names(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Shape::List(items) => {
            let steps: Vec<_> = items.iter().map(|item| type_.step_to(item)).collect();
            for (item, step) in items.iter().zip(&steps) {
                let Some(step) = step else { continue };
                path.push(step.clone());
                // Entries with the same key have no fields of their own.
                if steps.iter().filter(|other| other.as_ref() == Some(step)).count() == 1 {
                    collect(type_.item(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
    }
}

/// What keeps an applied object from being taken apart: entries without keys or with the same ones.
pub(crate) fn unusable(type_: Type<'_>, value: &Value) -> Option<String> {
    unusable_below(type_, value, &mut vec![])
}

fn unusable_below(type_: Type<'_>, value: &Value, path: &mut Vec<Step>) -> Option<String> {
    match type_.shape(value) {
        Shape::Leaf => None,
        Shape::Map(fields) => fields.iter().find_map(|(name, value)| {
            path.push(Step::field(name));
            let found = unusable_below(type_.field(name), value, path);
            path.pop();
            found
        }),
        Shape::List(items) => {
            let mut seen = vec![];
            for (index, item) in items.iter().enumerate() {
                let place = shown_path(path);
                let Some(step) = type_.step_to(item) else {
                    return Some(format!("{place}: element {index}: {}", type_.why_no_step(item)));
                };
                if seen.contains(&step) {
                    return Some(format!("{place}: duplicate entries for key {step}"));
                }
                path.push(step.clone());
                let found = unusable_below(type_.item(), item, path);
                path.pop();
                if found.is_some() {
                    return found;
                }
                seen.push(step);
            }
            None
        }
    }
}

/// What an update did.
#[derive(Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

/// Compares two versions of an object.
pub(crate) fn compare(type_: Type<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.walk(type_, Some(old), Some(new), &mut vec![]);
    comparison
}

impl Comparison {
    /// Leaves out a path, given as names with dots, and what is below it.
    pub(crate) fn forget(&mut self, path: &str) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            *set = std::mem::take(set).without(path);
        }
    }

    /// Goes into two objects, or into values that differ.
    fn walk(&mut self, type_: Type<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<Step>) {
        // Two empty ones differ as wholes.
        let leaf = is_empty(old) && is_empty(new);
        let null = Value::Null;
        let (old_value, new_value) = (old.unwrap_or(&null), new.unwrap_or(&null));
        let is = |maps: bool| {
            [old_value, new_value].into_iter().all(|value| match type_.shape(value) {
                Shape::Map(_) => maps,
                Shape::List(_) => !maps,
                Shape::Leaf => value.is_null(),
            })
        };
        if leaf {
            return self.leaf(old, new, path);
        }
        if is(true) {
            self.walk_maps(type_, old_value, new_value, path);
        } else if is(false) {
            self.walk_lists(type_, old_value, new_value, path);
        } else {
            return self.leaf(old, new, path);
        }
        if old.is_none() {
            self.added.insert(path);
        } else if new.is_none() {
            self.removed.insert(path);
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &[Step]) {
        let set = match (old, new) {
            (None, _) => &mut self.added,
            (_, None) => &mut self.removed,
            _ => &mut self.modified,
        };
        set.insert(path);
    }

    fn walk_maps(&mut self, type_: Type<'_>, old: &Value, new: &Value, path: &mut Vec<Step>) {
        let empty = Map::new();
        let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
        for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
            let (old, new) = (old.get(name), new.get(name));
            if old != new {
                path.push(Step::field(name));
                self.walk(type_.field(name), old, new, path);
                path.pop();
            }
        }
    }

    fn walk_lists(&mut self, type_: Type<'_>, old: &Value, new: &Value, path: &mut Vec<Step>) {
        let (old, new) = (by_step(type_, old), by_step(type_, new));
        let of = |list: &[(Step, Vec<&Value>)], step: &Step| -> usize {
            list.iter().find(|(other, _)| other == step).map_or(0, |(_, items)| items.len())
        };
        for (step, olds) in &old {
            let news = new.iter().find(|(other, _)| other == step).map_or(&[][..], |(_, items)| items);
            path.push(step.clone());
            match (olds.as_slice(), news) {
                ([old], []) => self.walk(type_.item(), Some(old), None, path),
                ([old], [new]) if old == new => {}
                ([old], [new]) => self.walk(type_.item(), Some(old), Some(new), path),
                // Entries with the same key are one value.
                ([old], _) => {
                    self.walk(type_.item(), Some(old), None, path);
                    self.added.insert(path);
                }
                (_, []) => self.removed.insert(path),
                (_, [new]) => {
                    self.walk(type_.item(), None, Some(new), path);
                    self.removed.insert(path);
                }
                (olds, news) => {
                    if olds != news {
                        self.modified.insert(path);
                    }
                }
            }
            path.pop();
        }
        for (step, news) in new.iter().filter(|(step, _)| of(&old, step) == 0) {
            path.push(step.clone());
            match news.as_slice() {
                [new] => self.walk(type_.item(), None, Some(new), path),
                _ => self.added.insert(path),
            }
            path.pop();
        }
    }
}

/// The entries of a list by their steps, in order.
fn by_step<'a>(type_: Type<'_>, list: &'a Value) -> Vec<(Step, Vec<&'a Value>)> {
    let mut found: Vec<(Step, Vec<&Value>)> = vec![];
    for item in list.as_array().into_iter().flatten() {
        let Some(step) = type_.step_to(item) else { continue };
        match found.iter_mut().find(|(other, _)| *other == step) {
            Some((_, items)) => items.push(item),
            None => found.push((step, vec![item])),
        }
    }
    found
}

/// Merges `new` into `old`; leaves are taken from `new`.
pub(crate) fn merge(type_: Type<'_>, old: &Value, new: &Value) -> Value {
    if is_empty(Some(old)) && is_empty(Some(new)) {
        return new.clone();
    }
    match (type_.shape(old), type_.shape(new)) {
        (Shape::Map(olds), Shape::Map(news)) => {
            let mut out = Map::new();
            for (name, old) in olds {
                let merged = match news.get(name) {
                    Some(new) => merge(type_.field(name), old, new),
                    None => old.clone(),
                };
                out.insert(name.clone(), merged);
            }
            for (name, new) in news.iter().filter(|(name, _)| !olds.contains_key(*name)) {
                out.insert(name.clone(), new.clone());
            }
            Value::Object(out)
        }
        (Shape::List(olds), Shape::List(news)) => Value::Array(merge_lists(type_, olds, news)),
        // Nothing said is nothing changed.
        (Shape::Map(_) | Shape::List(_), _) if new.is_null() => old.clone(),
        _ => new.clone(),
    }
}

/// Entries keep the order of `news` among themselves, and those of `olds` their places between them.
fn merge_lists(type_: Type<'_>, olds: &[Value], news: &[Value]) -> Vec<Value> {
    let steps = |items: &[Value]| items.iter().map(|item| type_.step_to(item)).collect::<Vec<_>>();
    let (old_steps, new_steps) = (steps(olds), steps(news));
    let find = |steps: &[Option<Step>], step: &Option<Step>| {
        step.as_ref().and_then(|_| steps.iter().position(|other| other == step))
    };
    let merged = |old: Option<usize>, new: usize| match old {
        Some(old) => merge(type_.item(), &olds[old], &news[new]),
        None => news[new].clone(),
    };
    let mut shared = new_steps.iter().filter(|step| find(&old_steps, step).is_some()).peekable();
    let mut done: Vec<&Option<Step>> = vec![];
    let mut out = vec![];
    let (mut i, mut j) = (0, 0);
    while i < olds.len() || j < news.len() {
        if i < olds.len() && j < news.len() {
            if old_steps[i].is_some() && old_steps[i] == new_steps[j] {
                out.push(merged(Some(i), j));
                done.push(&new_steps[j]);
                shared.next();
                (i, j) = (i + 1, j + 1);
                continue;
            }
            // A shared entry whose turn is later.
            if find(&new_steps, &old_steps[i]).is_some()
                && shared.peek().is_some_and(|next| **next != old_steps[i])
            {
                i += 1;
                continue;
            }
        }
        if i < olds.len() {
            if find(&new_steps, &old_steps[i]).is_none() {
                out.push(olds[i].clone());
                i += 1;
                continue;
            }
            if done.contains(&&old_steps[i]) {
                i += 1;
            }
        }
        if j < news.len() {
            out.push(merged(find(&old_steps, &new_steps[j]), j));
            done.push(&new_steps[j]);
            if shared.peek().is_some_and(|next| **next == new_steps[j]) {
                shared.next();
            }
            j += 1;
        }
    }
    out
}

/// Removes the fields of a set; what becomes empty by it goes too.
pub(crate) fn remove(type_: Type<'_>, value: &Value, set: &FieldSet) -> Option<Value> {
    if is_empty(Some(value)) {
        return None;
    }
    match type_.shape(value) {
        Shape::Leaf if value.is_object() || value.is_array() => None,
        Shape::Leaf => Some(value.clone()),
        Shape::Map(fields) => {
            let mut out = Map::new();
            for (name, value) in fields {
                let step = Step::field(name);
                if set.has(&step) {
                    continue;
                }
                let value = match set.below(&step) {
                    // What is left of it may be nothing, which is written as such.
                    Some(below) => remove(type_.field(name), value, below).unwrap_or_default(),
                    None => value.clone(),
                };
                out.insert(name.clone(), value);
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Shape::List(items) => {
            let mut out = vec![];
            for item in items {
                let step = type_.step_to(item);
                let step = step.as_ref();
                if step.is_some_and(|step| set.has(step)) {
                    continue;
                }
                match step.and_then(|step| set.below(step)) {
                    Some(below) => out.push(remove(type_.item(), item, below).unwrap_or_default()),
                    None => out.push(item.clone()),
                }
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
    }
}

/// Adds the parents that have names of their own in the schema.
pub(crate) fn with_parents(type_: Type<'_>, set: &FieldSet) -> FieldSet {
    set.include_parents(type_, &|type_: Type<'_>, name| type_.names(name), &|type_: Type<'_>, step| {
        type_.below(step)
    })
}

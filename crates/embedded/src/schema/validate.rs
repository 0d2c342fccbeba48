//! Checking objects against a schema, in the API server's order and words.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::node::{Checks, Field, Kind, List, Node, Others};
use super::rules;
use crate::field_error::{FieldError, Mistake, go_number, quoted};

/// All mistakes of an object; `old` is what it was before, if it was.
pub(super) fn validate(root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    finish(root, object, old, check(root, object, old, "").errors)
}

/// All mistakes of a new status.
pub(super) fn validate_status(root: &Node, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (Some(field), Some(status)) = (root.properties.get("status"), object.get("status")) else {
        return finish(root, object, old, vec![]);
    };
    // The validator sees the status alone, and its sentences name paths within it.
    let mut errors = check(field.node(), status, old.and_then(|old| old.get("status")), "").errors;
    for error in &mut errors {
        error.field = match error.field.as_str() {
            "<nil>" => "status".to_owned(),
            field => format!("status.{field}"),
        };
    }
    finish(root, object, old, errors)
}

/// The mistakes of a part of an object, seen alone and without rules.
pub(super) fn validate_part(node: &Node, value: &Value) -> Vec<FieldError> {
    check(node, value, None, "").errors
}

/// Adds what is checked when types and values are known to fit.
fn finish(root: &Node, object: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let lists = list_mistakes(root, object);
    // Duplicates that were there before stay allowed.
    if !lists.is_empty() && old.is_none_or(|old| list_mistakes(root, old).is_empty()) {
        errors.extend(lists);
    }
    if root.has_rules() {
        if errors.iter().any(blocks_rules) {
            errors.push(FieldError::unchecked_rules());
        } else {
            rules::evaluate(root, object, old, &mut errors);
        }
    }
    errors
}

/// Rules cannot be asked about an object with mistakes that a rule would stumble over.
fn blocks_rules(error: &FieldError) -> bool {
    use Mistake::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.mistake, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// What a check found, and how many of its parts were applicable: of several alternatives that all fail, the
/// one with the most is reported.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    matches: usize,
}

impl Outcome {
    fn add(&mut self, error: FieldError) {
        // Equal sentences are reported once.
        if !self.errors.iter().any(|known| known.field == error.field && known.body() == error.body()) {
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Self) {
        other.errors.into_iter().for_each(|error| self.add(error));
        self.matches += other.matches;
    }
}

/// The old value of an entry of a list; only lists whose entries have keys can be matched.
pub(super) fn old_item<'a>(list: &List, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let List::Map(keys) = list else { return None };
    old?.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(&**key) == item.get(&**key)))
}

fn check(node: &Node, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
    let mut outcome = check_value(node, value, old, path);
    if old == Some(value) {
        outcome.errors.clear();
    }
    outcome
}

fn check_value(node: &Node, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    check_type(node, value, path, &mut outcome);
    let checks = node.checks.as_deref();
    if value.is_null() {
        if let Some(checks) = checks {
            check_enum(checks, value, path, &mut outcome);
        }
        return outcome;
    }
    if let Some(checks) = checks {
        check_alternatives(checks, value, path, &mut outcome);
        match value {
            Value::String(text) => check_text(checks, text, path, &mut outcome),
            Value::Number(_) => check_number(node, checks, value, path, &mut outcome),
            _ => {}
        }
    }
    outcome.matches += 4;
    if let Value::Number(_) = value
        && checks.is_none()
    {
        check_range(node, value, path, &mut outcome);
    }
    if let Value::Array(items) = value {
        check_items(node, items, old, path, &mut outcome);
    }
    if let Some(checks) = checks {
        check_enum(checks, value, path, &mut outcome);
    }
    if let Value::Object(fields) = value {
        check_fields(node, fields, old, path, &mut outcome);
    }
    outcome
}

fn check_type(node: &Node, value: &Value, path: &str, outcome: &mut Outcome) {
    let types = type_names(node.kind);
    let format = format_name(node);
    if types.is_empty() && format.is_empty() {
        return;
    }
    outcome.matches += 1;
    if is_of_type(node, value) {
        outcome.matches += 1;
        return;
    }
    // For values that have a format in Go, and for those that should have one, formats are compared.
    let (expected, found) = match value {
        Value::Null | Value::String(_) | Value::Array(_) => (types, type_of(value)),
        _ if format.is_empty() => (types, type_of(value)),
        Value::Number(number) if number.is_f64() => (format, "float64"),
        Value::Number(_) => (format, "int64"),
        _ => (format, ""),
    };
    let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
    outcome.add(FieldError::type_invalid(field_path(path), &json!(found), detail));
}

fn format_name(node: &Node) -> &str {
    let text = node.checks.as_ref().filter(|checks| checks.format.is_some());
    text.map_or(node.size, |checks| &checks.format_name)
}

/// The path in a report: the validator begins paths at the root with a dot.
fn field_path(path: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

/// A mistake for which the API server gives no field.
fn fieldless(message: String) -> FieldError {
    FieldError::invalid("<nil>", &json!(""), message)
}

fn type_names(kind: Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Quantity => "",
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String | Kind::Time | Kind::MicroTime | Kind::Bytes => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of_type(node: &Node, value: &Value) -> bool {
    if value.is_null() {
        return node.nullable;
    }
    let is_integer = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    match node.kind {
        Kind::Any | Kind::Quantity => true,
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::String | Kind::Time | Kind::MicroTime | Kind::Bytes => value.is_string(),
        Kind::Integer => is_integer(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::IntOrString => value.is_string() || is_integer(),
    }
}

fn check_alternatives(checks: &Checks, value: &Value, path: &str, outcome: &mut Outcome) {
    let run =
        |nodes: &[Node]| nodes.iter().map(|node| check_value(node, value, None, path)).collect::<Vec<_>>();
    if !checks.any_of.is_empty() {
        let results = run(&checks.any_of);
        if !results.iter().any(|result| result.errors.is_empty()) {
            outcome.add(fieldless(format!("{path:?} must validate at least one schema (anyOf)")));
            outcome.merge(best(results));
        }
    }
    if !checks.one_of.is_empty() {
        let results = run(&checks.one_of);
        let valid = results.iter().filter(|result| result.errors.is_empty()).count();
        if valid == 0 {
            let detail = format!("{path:?} must validate one and only one schema (oneOf). Found none valid");
            outcome.add(fieldless(detail));
            outcome.merge(best(results));
        } else if valid > 1 {
            outcome.add(fieldless(format!(
                "{path:?} must validate one and only one schema (oneOf). Found {valid} valid alternatives"
            )));
        }
    }
    if !checks.all_of.is_empty() {
        let results = run(&checks.all_of);
        let valid = results.iter().filter(|result| result.errors.is_empty()).count();
        let all = results.len();
        for result in results {
            outcome.merge(result);
        }
        if valid != all {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(fieldless(format!("{path:?} must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &checks.not
        && check_value(not, value, None, path).errors.is_empty()
    {
        outcome.add(fieldless(format!("{path:?} must not validate the schema (not)")));
    }
}

/// The first of the failures in which most was applicable.
fn best(results: Vec<Outcome>) -> Outcome {
    let better = |best: Outcome, next: Outcome| if next.matches > best.matches { next } else { best };
    results.into_iter().reduce(better).unwrap_or_default()
}

fn check_text(checks: &Checks, text: &str, path: &str, outcome: &mut Outcome) {
    let length = text.chars().count() as u64;
    // The first of these mistakes hides the others.
    if let Some(most) = checks.max_length.filter(|most| length > *most) {
        outcome.add(FieldError::too_long(field_path(path), usize::try_from(most).unwrap_or(usize::MAX)));
    } else if let Some(least) = checks.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        outcome.add(FieldError::invalid(field_path(path), &json!(text), detail));
    } else if let Some((pattern, regex)) = &checks.pattern
        && !regex.is_match(text)
    {
        let detail = format!("{path} in body should match '{pattern}'");
        outcome.add(FieldError::invalid(field_path(path), &json!(text), detail));
    }
    if let Some(format) = checks.format
        && !format.accepts(text)
    {
        let name = &checks.format_name;
        let detail = format!("{path} in body must be of type {name}: {}", quoted(text));
        outcome.add(FieldError::type_invalid(field_path(path), &json!(text), detail));
    }
}

fn check_range(node: &Node, value: &Value, path: &str, outcome: &mut Outcome) {
    if node.kind != Kind::Integer {
        return;
    }
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = match node.size {
        "int32" => value.as_f64().is_some_and(|number| number.abs() <= f64::from(i32::MAX)),
        _ => value.is_f64() || value.is_i64(),
    };
    if !is_whole || !fits {
        let format = match node.size {
            "" => "(default format)".to_owned(),
            size => format!("with format {size}"),
        };
        outcome.add(fieldless(format!("Checked value must be of type integer {format} in {path}")));
    }
}

fn check_number(node: &Node, checks: &Checks, value: &Value, path: &str, outcome: &mut Outcome) {
    check_range(node, value, path, outcome);
    let Some(number) = value.as_f64() else { return };
    let bound = |bound: f64| if value.is_f64() { go_number(bound) } else { go_number(bound.trunc()) };
    let field = || field_path(path);
    if let Some(factor) = checks.multiple_of
        && (number / factor).fract() != 0.0
    {
        let detail = format!("{path} in body should be a multiple of {}", bound(factor));
        outcome.add(FieldError::invalid(field(), value, detail));
    }
    if let Some(least) = checks.minimum {
        let exclusive = checks.exclusive_minimum;
        if number < least || exclusive && number <= least {
            let relation = if exclusive { "greater than" } else { "greater than or equal to" };
            let detail = format!("{path} in body should be {relation} {}", bound(least));
            outcome.add(FieldError::invalid(field(), value, detail));
        }
    }
    if let Some(most) = checks.maximum {
        let exclusive = checks.exclusive_maximum;
        if number > most || exclusive && number >= most {
            let relation = if exclusive { "less than" } else { "less than or equal to" };
            let detail = format!("{path} in body should be {relation} {}", bound(most));
            outcome.add(FieldError::invalid(field(), value, detail));
        }
    }
}

fn check_items(node: &Node, items: &[Value], old: Option<&Value>, path: &str, outcome: &mut Outcome) {
    if let Some(field) = &node.items {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(&node.list, old, item);
            outcome.merge(check(field.node(), item, old, &format!("{path}[{index}]")));
        }
    }
    let Some(checks) = node.checks.as_deref() else { return };
    let count = items.len() as u64;
    if let Some(least) = checks.min_items.filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        outcome.add(FieldError::invalid(field_path(path), &json!(count), detail));
    }
    if let Some(most) = checks.max_items.filter(|most| count > *most) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        outcome.add(FieldError::too_many(field_path(path), items.len(), most));
    }
}

fn check_enum(checks: &Checks, value: &Value, path: &str, outcome: &mut Outcome) {
    let same = |accepted: &Value| match (accepted.as_f64(), value.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => accepted == value,
    };
    if checks.accepted.is_empty() || checks.accepted.iter().any(same) {
        return;
    }
    let list: Vec<String> = checks
        .accepted
        .iter()
        .map(|accepted| accepted.as_str().map_or_else(|| accepted.to_string(), str::to_owned))
        .collect();
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    outcome.add(FieldError::not_supported(field_path(path), value, &list));
}

fn check_fields(
    node: &Node,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    outcome: &mut Outcome,
) {
    let checks = node.checks.as_deref();
    let count = fields.len() as u64;
    if let Some(least) = checks.and_then(|checks| checks.min_properties).filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        outcome.add(FieldError::invalid(field_path(path), &json!(count), detail));
    }
    if let Some(most) = checks.and_then(|checks| checks.max_properties).filter(|most| count > *most) {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        outcome.add(FieldError::too_many(field_path(path), fields.len(), most));
    }
    let mut descend = |name: &str, value: &Value, field: &Field, path: String| {
        // A custom resource's metadata is checked by code that all objects share.
        if node.embedded && name == "metadata" {
            return;
        }
        let old = old.and_then(|old| old.get(name));
        outcome.merge(check(field.node(), value, old, &path));
    };
    if let Others::Each(field) = &node.others {
        for (name, value) in fields.iter().filter(|(name, _)| !node.properties.contains_key(name.as_str())) {
            descend(name, value, field, format!("{path}.{name}"));
        }
    }
    for (name, field) in &node.properties {
        if let Some(value) = fields.get(&**name) {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            descend(name, value, field, path);
        }
    }
    for name in checks.iter().flat_map(|checks| &checks.required) {
        if !fields.contains_key(name) {
            outcome.add(FieldError::required(field_path(&format!("{path}.{name}")), ""));
        }
    }
}

/// Duplicates in lists whose entries have keys or are a set.
fn list_mistakes(root: &Node, object: &Value) -> Vec<FieldError> {
    let mut errors = vec![];
    list_mistakes_below(root, object, "", &mut errors);
    errors
}

fn list_mistakes_below(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if let Others::Each(field) = &node.others {
                for (name, value) in fields {
                    list_mistakes_below(field.node(), value, &format!("{path}[{name}]"), errors);
                }
            }
            for (name, value) in fields {
                // Metadata is checked with all objects' metadata.
                if let Some(field) = node.properties.get(name.as_str())
                    && !(node.embedded && name == "metadata")
                {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    list_mistakes_below(field.node(), value, &path, errors);
                }
            }
        }
        Value::Array(items) => {
            duplicates(&node.list, items, path, errors);
            if let Some(field) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    list_mistakes_below(field.node(), item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn duplicates(list: &List, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let keys: Vec<Value> = match list {
        List::Atomic => return,
        List::Set => items.to_vec(),
        List::Map(names) => {
            if let Some((index, item)) =
                items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null())
            {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(format!("{path}[{index}]"), item, detail));
                return;
            }
            let key = |item: &Value| {
                let fields =
                    names.iter().filter_map(|name| Some((name.to_string(), item.get(&**name)?.clone())));
                Value::Object(fields.collect())
            };
            items.iter().map(key).collect()
        }
    };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, key) in keys.iter().enumerate() {
        let times = seen.entry(key.to_string()).or_default();
        *times += 1;
        // Of many equal ones only the second is reported.
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), key));
        }
    }
}

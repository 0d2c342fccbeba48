//! Rules in CEL: compiled once, asked about every object.

use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::{Value, json};

use self::convert::to_cel;
use super::node::{Kind, Node, Others};
use super::raw::{Raw, RawOrBool, RawRule};
use super::validate::old_item;
use crate::field_error::{FieldError, Mistake};

mod convert;
mod functions;

/// A compiled rule.
pub(super) struct Rule {
    program: Program,
    /// The rule's message, or the rule itself.
    text: String,
    has_message: bool,
    message: Option<Program>,
    reason: String,
    /// Where the mistake is reported, below the rule's own place.
    field: String,
    uses_old: bool,
    optional_old: bool,
}

impl Rule {
    /// Nothing for a rule that does not compile, which [`mistakes`] has reported.
    pub(super) fn compile(raw: &RawRule) -> Option<Self> {
        let program = Program::compile(&raw.rule).ok()?;
        let message = raw.message_expression.trim();
        let text = if raw.message.is_empty() { &raw.rule } else { &raw.message };
        Some(Self {
            uses_old: program.references().has_variable("oldSelf"),
            program,
            text: text.trim().to_owned(),
            has_message: !raw.message.is_empty(),
            message: if message.is_empty() { None } else { Program::compile(message).ok() },
            reason: raw.reason.clone(),
            field: normal_path(&raw.field_path),
            optional_old: raw.optional_old_self == Some(true),
        })
    }

    fn default_message(&self) -> String {
        if self.has_message { self.text.clone() } else { format!("failed rule: {}", self.text) }
    }
}

/// `.a['b']` as field paths are written.
fn normal_path(path: &str) -> String {
    path.trim().trim_start_matches('.').replace("['", "[").replace("']", "]")
}

/// What is wrong with the rules of a schema.
pub(super) fn mistakes(raw: &Raw, path: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    collect_mistakes(raw, path, &mut errors);
    errors
}

fn collect_mistakes(raw: &Raw, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(RawOrBool::Raw(raw)) = &raw.additional_properties {
        collect_mistakes(raw, &format!("{path}.additionalProperties"), errors);
    }
    for (name, raw) in &raw.properties {
        collect_mistakes(raw, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(raw) = &raw.items {
        collect_mistakes(raw, &format!("{path}.items"), errors);
    }
    for (index, rule) in raw.rules.iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        match Program::compile(&rule.rule) {
            Err(error) => {
                let detail = format!("compilation failed: {}", parse_errors(&rule.rule, &error));
                errors.push(refused_rule(rule, format!("{path}.rule"), detail));
            }
            Ok(program) => {
                let uses_old = program.references().has_variable("oldSelf");
                if let Some(optional) = rule.optional_old_self
                    && !uses_old
                {
                    let detail = "may not be set if oldSelf is not used in rule";
                    errors.push(FieldError::invalid(
                        format!("{path}.optionalOldSelf"),
                        &json!(optional),
                        detail,
                    ));
                }
            }
        }
        let message = rule.message_expression.trim();
        if !message.is_empty()
            && let Err(error) = Program::compile(message)
        {
            let detail = format!("messageExpression compilation failed: {}", parse_errors(message, &error));
            errors.push(refused_rule(rule, format!("{path}.messageExpression"), detail));
        }
    }
}

/// A rule as the API server shows it: the internal type has no names for JSON, so it shows Go's.
fn refused_rule(rule: &RawRule, field: String, detail: String) -> FieldError {
    let text = |text: &str| Value::from(text).to_string();
    let reason = if rule.reason.is_empty() { "null".to_owned() } else { text(&rule.reason) };
    let shown = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
        json!(rule.optional_old_self),
    );
    FieldError { mistake: Mistake::Invalid, field, shown: Some(shown), detail }
}

/// Mistakes with their place, as CEL's Go library shows them.
fn parse_errors(text: &str, errors: &kube_cel::cel::ParseErrors) -> String {
    let one = |error: &kube_cel::cel::ParseError| {
        let (line, column) = error.pos;
        let shown = usize::try_from(line - 1).ok().and_then(|line| text.lines().nth(line)).unwrap_or(text);
        let dots = ".".repeat(usize::try_from(column - 1).unwrap_or(0));
        format!("ERROR: <input>:{line}:{column}: {}\n | {shown}\n | {dots}^", error.msg)
    };
    errors.errors.iter().map(one).collect::<Vec<_>>().join("\n")
}

thread_local! {
    /// Kubernetes' functions are registered once.
    static FUNCTIONS: Context<'static> = functions::all();
}

/// Asks all rules below a node.
pub(super) fn evaluate(root: &Node, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    FUNCTIONS.with(|functions| {
        let mut walk = Walk { functions, errors };
        walk.node(root, root, object, Place { old, unchanged: old == Some(object) }, "");
    });
}

struct Walk<'a> {
    functions: &'a Context<'static>,
    errors: &'a mut Vec<FieldError>,
}

/// What is known about the old value at a place.
#[derive(Clone, Copy)]
struct Place<'a> {
    old: Option<&'a Value>,
    /// Whether the value, or the last one above that had an old value, is as before.
    unchanged: bool,
}

impl<'a> Place<'a> {
    fn below(self, old: Option<&'a Value>, value: &Value) -> Self {
        let unchanged = self.unchanged || old.is_some_and(|old| old == value);
        Self { old, unchanged }
    }
}

impl Walk<'_> {
    /// `node` has the rules, `shape` the structure; they differ in `allOf`.
    fn node(&mut self, node: &Node, shape: &Node, value: &Value, place: Place<'_>, path: &str) {
        let Some(checks) = node.checks.as_deref().filter(|checks| checks.rules_below) else { return };
        if value.is_null() {
            return;
        }
        if !checks.rules.is_empty() {
            self.rules(&checks.rules, shape, value, place, path);
        }
        for part in &checks.all_of {
            self.node(part, shape, value, place, path);
        }
        match value {
            Value::Array(items) => {
                let Some(field) = &node.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let below = place.below(old_item(&shape.list, place.old, item), item);
                    self.node(field.node(), field.node(), item, below, &format!("{path}[{index}]"));
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let below = place.below(place.old.and_then(|old| old.get(name)), value);
                    if let Some(field) = node.properties.get(name.as_str()) {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        self.node(field.node(), field.node(), value, below, &path);
                    } else if let Others::Each(field) = &node.others {
                        self.node(field.node(), field.node(), value, below, &format!("{path}[{name}]"));
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, rules: &[Rule], shape: &Node, value: &Value, place: Place<'_>, path: &str) {
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value("self", to_cel(shape, value));
        let old = place.old.filter(|old| !old.is_null()).map(|old| to_cel(shape, old));
        let here = if path.is_empty() { "<nil>" } else { path };
        for rule in rules {
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let mut scope = context.new_inner_scope();
            if rule.optional_old {
                let optional = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                scope.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional)));
            } else if let Some(old) = &old {
                scope.add_variable_from_value("oldSelf", old.clone());
            }
            match rule.program.execute(&scope) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => {
                    if rule.uses_old || !place.unchanged {
                        let message = message(rule, &scope);
                        self.errors.push(refused(rule, shape, value, here, message));
                    }
                }
                Err(error) => {
                    let detail = failure(&error, &rule.text);
                    self.errors.push(FieldError::invalid(here, &json!(type_name(shape)), detail));
                }
            }
        }
    }
}

fn type_name(node: &Node) -> &'static str {
    match node.kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Integer => "integer",
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        _ => "",
    }
}

fn refused(rule: &Rule, shape: &Node, value: &Value, path: &str, message: String) -> FieldError {
    let field = match (path, rule.field.as_str()) {
        (path, "") => path.to_owned(),
        ("<nil>", field) => field.to_owned(),
        (path, field) => format!("{path}.{field}"),
    };
    match rule.reason.as_str() {
        "FieldValueForbidden" => FieldError::forbidden(field, message),
        "FieldValueRequired" => FieldError::required(field, message),
        "FieldValueDuplicate" => FieldError::duplicate(field, value),
        // Large values are not shown.
        _ if matches!(shape.kind, Kind::Object | Kind::Array) => FieldError::invalid_unshown(field, message),
        _ => FieldError::invalid(field, value, message),
    }
}

/// The message of a rule that was not kept; a message that cannot be made gives way to the fixed one.
fn message(rule: &Rule, scope: &Context<'_>) -> String {
    const LONGEST: usize = 5 * 1024;
    let made = rule.message.as_ref().and_then(|program| program.execute(scope).ok());
    match made {
        Some(Cel::String(text)) => {
            let text = text.trim();
            let usable = !text.is_empty() && text.len() <= LONGEST && !text.contains('\n');
            if usable { text.to_owned() } else { rule.default_message() }
        }
        _ => rule.default_message(),
    }
}

/// Why a rule could not be asked, in the words of CEL's Go library.
fn failure(error: &ExecutionError, text: &str) -> String {
    let words = match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", plain(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "return error for overflow".to_owned(),
        ExecutionError::FunctionError { function, .. }
            if matches!(function.as_str(), "int" | "uint" | "double" | "bool" | "timestamp" | "duration") =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. } => {
            return format!(
                "'no such overload': call arguments did not match a supported operator, \
                 function or macro signature for rule: {text}"
            );
        }
        other => other.to_string(),
    };
    format!("{words} evaluating rule: {text}")
}

fn plain(value: &Cel) -> String {
    match value {
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

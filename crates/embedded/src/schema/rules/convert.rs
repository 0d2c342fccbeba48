//! JSON values as rules see them.

use std::sync::Arc;

use kube_cel::cel::objects::Map;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use crate::schema::formats::Format;
use crate::schema::node::{Node, Others};

/// Converts a value; texts of some formats become moments, durations or bytes.
pub(super) fn to_cel(node: &Node, value: &Value) -> Cel {
    convert(Some(node), value)
}

fn convert(node: Option<&Node>, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            // Where a schema says number, rules see a number with a fraction.
            _ if node.is_some_and(|node| node.kind == super::Kind::Number) => {
                Cel::Float(number.as_f64().unwrap_or(f64::NAN))
            }
            (Some(number), _) => Cel::Int(number),
            (_, Some(number)) => Cel::UInt(number),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => convert_text(node, text),
        Value::Array(items) => {
            let item = node.and_then(|node| node.items.as_ref()).map(|field| field.node());
            Cel::List(Arc::new(items.iter().map(|value| convert(item, value)).collect()))
        }
        Value::Object(fields) => {
            let is_map = node.is_none_or(|node| !matches!(node.others, Others::None));
            let entries = fields.iter().map(|(name, value)| {
                let below = node.and_then(|node| node.field(name)).map(crate::schema::Field::node);
                let name = if is_map { name.clone() } else { escape(name) };
                (name, convert(below, value))
            });
            let entries: Vec<_> = entries.collect();
            Cel::Map(Map::from_iter_of(entries))
        }
    }
}

/// Maps of the CEL library are made of its own hash maps; this hides which.
trait FromEntries {
    fn from_iter_of(entries: Vec<(String, Cel)>) -> Self;
}

impl FromEntries for Map {
    fn from_iter_of(entries: Vec<(String, Cel)>) -> Self {
        Self { map: Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()) }
    }
}

fn convert_text(node: Option<&Node>, text: &str) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    let format = node.and_then(|node| node.checks.as_ref()).and_then(|checks| checks.format);
    let made = match format {
        Some(Format::DateTime) => text.parse().ok().map(Cel::Timestamp),
        Some(Format::Duration) => call("duration(text)", text),
        Some(Format::Base64) => call("base64.decode(text)", text),
        _ => None,
    };
    made.unwrap_or_else(plain)
}

/// Lets the CEL library make a value whose type only it knows.
fn call(expression: &str, text: &str) -> Option<Cel> {
    let program = Program::compile(expression).ok()?;
    super::FUNCTIONS.with(|functions| {
        let mut scope: Context<'_> = functions.new_inner_scope();
        scope.add_variable_from_value("text", Cel::String(Arc::new(text.to_owned())));
        program.execute(&scope).ok()
    })
}

/// Names of fields that CEL's grammar has no room for are written differently in rules.
fn escape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_that_rules_cannot_write_are_escaped() {
        assert_eq!(escape("plain_name"), "plain_name");
        assert_eq!(escape("a__b"), "a__underscores__b");
        assert_eq!(escape("a.b-c/d"), "a__dot__b__dash__c__slash__d");
        assert_eq!(escape("namespace"), "__namespace__");
    }
}

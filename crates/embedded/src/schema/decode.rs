//! Reading objects as the API server's decoder does: wrong types are refused, unknown fields reported.

use serde_json::{Map, Value, json};
use units::quantity;

use super::node::{Field, Kind, Node, Others};
use super::prune::{self, push_index, push_name};
use super::{Schema, time, zero};
use crate::refusal::Refusal;

/// Reads an object of a type of Kubernetes' own.
///
/// Types are checked, nulls dropped, unknown fields removed and their paths returned. Quantities and times are
/// written as Kubernetes writes them, and fields that Go writes even when they are empty are there.
pub fn decode_built_in(schema: &Schema, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let mut decoder = Decoder::default();
    let root = schema.node();
    let context = Context::of(&root.go_type);
    decoder.value(root, object, &context).map_err(|problem| refusal(object, &problem))?;
    zero::fill(root, object);
    decoder.unknown.sort();
    Ok(decoder.unknown)
}

/// Reads a changed object like [`decode_built_in`]; its parts that are as they were `before` are right already.
pub(crate) fn decode_changed(
    schema: &Schema,
    object: &mut Value,
    before: &Value,
) -> Result<Vec<String>, Refusal> {
    let mut same = Map::new();
    if let (Some(fields), Some(before)) = (object.as_object_mut(), before.as_object()) {
        for (name, before) in before.iter().filter(|(_, before)| before.is_object()) {
            if fields.get(name) == Some(before) {
                same.extend(fields.remove_entry(name));
            }
        }
    }
    let unknown = decode_built_in(schema, object);
    if let Some(fields) = object.as_object_mut() {
        fields.append(&mut same);
    }
    unknown
}

/// Whether a merge patch does nothing but set times anew that are there, written as Kubernetes writes them.
pub(crate) fn sets_times(schema: &Schema, patch: &Value, object: &Value) -> bool {
    fn sets(node: &Node, patch: &Value, object: &Value) -> bool {
        match (node.kind, patch, object) {
            (Kind::Object, Value::Object(patch), Value::Object(object)) => {
                patch.iter().all(|(name, patch)| {
                    let place = node.properties.get(name.as_str()).zip(object.get(name));
                    place.is_some_and(|(field, object)| sets(field.node(), patch, object))
                })
            }
            (Kind::Time, Value::String(text), Value::String(_)) => {
                time::seconds(text).is_ok_and(|written| written == *text)
            }
            (Kind::MicroTime, Value::String(text), Value::String(_)) => {
                time::micros(text).is_ok_and(|written| written == *text)
            }
            _ => false,
        }
    }
    sets(schema.node(), patch, object)
}

/// Reads a custom resource: its metadata like that of all objects, the rest as its schema says.
///
/// Unknown fields are removed and their paths returned.
pub fn decode_custom(schema: &Schema, object: &mut Value) -> Result<Vec<String>, Refusal> {
    let mut decoder = Decoder::default();
    if let (Some(field), Some(metadata)) =
        (schema.node().properties.get("metadata"), object.get_mut("metadata"))
    {
        let structure = &field.node().go_type;
        // The decoder sees the metadata alone.
        let outcome = if metadata.is_object() || metadata.is_null() {
            decoder.value(field.node(), metadata, &Context::of(structure))
        } else {
            Err(format!("json: cannot unmarshal {} into Go value of type v1.{structure}", kind_of(metadata)))
        };
        outcome.map_err(|problem| refusal(object, &problem))?;
    }
    let mut unknown: Vec<String> = decoder.unknown.iter().map(|path| format!("metadata.{path}")).collect();
    unknown.extend(prune::prune(schema.node(), object));
    Ok(unknown)
}

fn refusal(object: &Value, problem: &str) -> Refusal {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
    let kind = text("kind");
    Refusal::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {problem}"))
}

/// What the decoder names when a value does not fit.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// The Go structure.
    structure: &'a str,
    above: Option<&'a Context<'a>>,
    /// The Go structure whose fields stand among those of this one, if the field is of that.
    embedded: &'static str,
    field: &'a str,
}

impl<'a> Context<'a> {
    fn of(structure: &'a str) -> Self {
        Self { structure, above: None, embedded: "", field: "" }
    }

    /// The fields from the root, without positions.
    fn path(&self) -> String {
        let above = self.above.map(Context::path).unwrap_or_default();
        let parts = [above.as_str(), self.embedded, self.field];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
    }

    fn mismatch(&self, found: &str, expected: &str) -> String {
        let (structure, path) = (self.structure, self.path());
        format!("json: cannot unmarshal {found} into Go struct field {structure}.{path} of type {expected}")
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The name of the Go type, as far as the schema knows it.
fn go_type(node: &Node) -> String {
    match node.kind {
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::Time | Kind::MicroTime | Kind::String => "string".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::Bytes => "[]uint8".to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Integer if node.size == "int32" => "int32".to_owned(),
        Kind::Integer => "int64".to_owned(),
        Kind::IntOrString => "int32".to_owned(),
        Kind::Array => {
            format!("[]{}", node.items.as_ref().map_or_else(String::new, |item| go_type(item.node())))
        }
        Kind::Object | Kind::Any if !node.go_type.is_empty() => format!("v1.{}", node.go_type),
        Kind::Object | Kind::Any => match &node.others {
            Others::Each(field) => format!("map[string]{}", go_type(field.node())),
            _ => "map[string]interface {}".to_owned(),
        },
    }
}

#[derive(Default)]
struct Decoder {
    place: String,
    unknown: Vec<String>,
}

impl Decoder {
    fn value(&mut self, node: &Node, value: &mut Value, context: &Context<'_>) -> Result<(), String> {
        let mismatch = |value: &Value| Err(context.mismatch(kind_of(value), &go_type(node)));
        match (node.kind, &mut *value) {
            (Kind::Object | Kind::Any, _) if node.preserve => Ok(()),
            (Kind::Object, Value::Object(fields)) => self.fields(node, fields, context),
            (Kind::Array, Value::Array(items)) => self.items(node, items, context),
            (_, Value::Null)
            | (Kind::Any, _)
            | (Kind::String | Kind::IntOrString, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_)) => Ok(()),
            (Kind::Integer | Kind::IntOrString, Value::Number(number)) => {
                let short = node.size == "int32" || node.kind == Kind::IntOrString;
                let fits = number.as_i64().is_some_and(|whole| !short || i32::try_from(whole).is_ok());
                if fits { Ok(()) } else { Err(context.mismatch(&format!("number {number}"), &go_type(node))) }
            }
            (Kind::Quantity, _) => read_quantity(value),
            (Kind::Time, Value::String(text)) => {
                *text = time::seconds(text)?;
                Ok(())
            }
            (Kind::MicroTime, Value::String(text)) => {
                *text = time::micros(text)?;
                Ok(())
            }
            (Kind::Bytes, Value::String(text)) => match bad_base64(text) {
                Some(index) => Err(format!("illegal base64 data at input byte {index}")),
                None => Ok(()),
            },
            (_, value) => mismatch(value),
        }
    }

    fn fields(
        &mut self,
        node: &Node,
        fields: &mut Map<String, Value>,
        context: &Context<'_>,
    ) -> Result<(), String> {
        let length = self.place.len();
        let mut outcome = Ok(());
        let mut unknown = vec![];
        for (name, value) in fields.iter_mut() {
            push_name(&mut self.place, name);
            if let Some(field) = node.properties.get(name.as_str()) {
                let below = Context {
                    structure: &node.go_type,
                    above: Some(context),
                    embedded: embedded(node, name),
                    field: name,
                };
                outcome = self.value(field.node(), value, &below);
            } else if let Others::Each(field) = &node.others {
                outcome = self.value(field.node(), value, context);
                if value.is_null() {
                    *value = empty(field);
                }
            } else {
                self.unknown.push(self.place.clone());
                unknown.push(name.clone());
            }
            self.place.truncate(length);
            outcome?;
            outcome = Ok(());
        }
        for name in unknown {
            fields.remove(&name);
        }
        if matches!(node.others, Others::None) {
            fields.retain(|_, value| !value.is_null());
        }
        Ok(())
    }

    fn items(&mut self, node: &Node, items: &mut [Value], context: &Context<'_>) -> Result<(), String> {
        let Some(field) = &node.items else { return Ok(()) };
        let length = self.place.len();
        for (index, item) in items.iter_mut().enumerate() {
            push_index(&mut self.place, index);
            let structure =
                if field.node().go_type.is_empty() { context.structure } else { &field.node().go_type };
            self.value(field.node(), item, &Context { structure, ..*context })?;
            if item.is_null() {
                *item = empty(field);
            }
            self.place.truncate(length);
        }
        Ok(())
    }
}

/// Go structures whose fields stand among those of another are named in paths.
fn embedded(node: &Node, name: &str) -> &'static str {
    match &*node.go_type {
        "Probe" if matches!(name, "exec" | "grpc" | "httpGet" | "tcpSocket") => "ProbeHandler",
        "Volume" if name != "name" => "VolumeSource",
        _ => "",
    }
}

/// What Go makes of a null where a value must be.
fn empty(field: &Field) -> Value {
    match field.node().kind {
        Kind::Object if matches!(field.node().others, Others::None) => {
            let mut object = json!({});
            zero::fill(field.node(), &mut object);
            object
        }
        Kind::String | Kind::Bytes => json!(""),
        Kind::Integer | Kind::Number => json!(0),
        Kind::Boolean => json!(false),
        Kind::Quantity => json!("0"),
        _ => Value::Null,
    }
}

fn read_quantity(value: &mut Value) -> Result<(), String> {
    const FORM: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(FORM.to_owned()),
    };
    match quantity::rewritten(&text) {
        Ok(written) => {
            *value = Value::String(written.into_owned());
            Ok(())
        }
        Err(units::QuantityError::Suffix { suffix, .. })
            if suffix.chars().all(|c| c.is_ascii_digit() || "eEinumkKMGTP+-".contains(c)) =>
        {
            Err("unable to parse quantity's suffix".to_owned())
        }
        Err(_) => Err(FORM.to_owned()),
    }
}

/// Where a text stops being base64.
fn bad_base64(text: &str) -> Option<usize> {
    // Line breaks are skipped.
    let bytes: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let digits = bytes.iter().take_while(|(_, byte)| is_digit(*byte)).count();
    let padding = bytes.len() - digits;
    let padded = bytes[digits..].iter().all(|(_, byte)| *byte == b'=');
    let right = match digits % 4 {
        0 => padding == 0,
        1 => false,
        2 => padding == 2,
        _ => padding == 1,
    };
    if padded && right {
        return None;
    }
    if padded && padding == 0 {
        // Something is missing at the end: the last group is to blame.
        return Some(digits - digits % 4);
    }
    Some(bytes.get(digits).map_or(text.len(), |(index, _)| *index))
}

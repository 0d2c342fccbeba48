//! What Go's types do to an object that passes through them: unknown fields and empty values vanish, fields that
//! are always written appear, quantities and times get their canonical text.
//!
//! The shapes come from the Go types themselves (`tools/shapes`), so every built-in kind is covered alike.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};
use units::Quantity;

use crate::time;

static TEXT: &str = include_str!("../../data/shapes.txt");

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::read(TEXT));

struct Shapes {
    /// The type of each kind, by group and kind.
    kinds: BTreeMap<(&'static str, &'static str), &'static str>,
    types: BTreeMap<&'static str, Vec<Field>>,
}

struct Field {
    name: &'static str,
    shape: Shape,
    when_empty: WhenEmpty,
}

#[derive(Clone, Copy, PartialEq)]
enum WhenEmpty {
    Written,
    LeftOut,
    /// As `LeftOut`, and for structs and times too.
    LeftOutEvenStructs,
}

enum Shape {
    Text,
    Integer,
    Bool,
    Float,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    Opaque,
    Struct(&'static str),
    Pointer(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
}

impl Shapes {
    fn read(text: &'static str) -> Self {
        let (mut kinds, mut types) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some((kind, name)) = line.split_once('=') {
                kinds.insert(kind.rsplit_once('/').unwrap_or_default(), name);
            } else {
                let mut words = line.split(' ');
                let name = words.next().unwrap_or_default();
                types.insert(name, words.filter_map(Field::read).collect());
            }
        }
        Self { kinds, types }
    }
}

impl Field {
    fn read(word: &'static str) -> Option<Self> {
        let (name, shape) = word.split_once(':')?;
        let (shape, when_empty) = match (shape.strip_suffix('!'), shape.strip_suffix('~')) {
            (Some(shape), _) => (shape, WhenEmpty::Written),
            (_, Some(shape)) => (shape, WhenEmpty::LeftOutEvenStructs),
            _ => (shape, WhenEmpty::LeftOut),
        };
        Some(Self { name, shape: Shape::read(shape), when_empty })
    }

    /// What is written for this field when it has no value; nothing when it is left out.
    fn empty(&self) -> Option<Value> {
        match &self.shape {
            _ if self.when_empty == WhenEmpty::LeftOutEvenStructs => None,
            Shape::Struct(_) => Some(Value::Object(Map::new())),
            Shape::Time | Shape::MicroTime => Some(Value::Null),
            Shape::Quantity => Some(Value::from("0")),
            Shape::Opaque => None,
            _ if self.when_empty == WhenEmpty::LeftOut => None,
            Shape::Text => Some(Value::from("")),
            Shape::Integer | Shape::Float => Some(Value::from(0)),
            Shape::Bool => Some(Value::from(false)),
            Shape::Bytes | Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) => Some(Value::Null),
        }
    }
}

impl Shape {
    fn read(word: &'static str) -> Self {
        if let Some(rest) = word.strip_prefix('*') {
            return Self::Pointer(Box::new(Self::read(rest)));
        }
        if let Some(rest) = word.strip_prefix("[]") {
            return Self::List(Box::new(Self::read(rest)));
        }
        if let Some(rest) = word.strip_prefix("{}") {
            return Self::Map(Box::new(Self::read(rest)));
        }
        if let Some(name) = word.strip_prefix('@') {
            return Self::Struct(name);
        }
        match word {
            "s" => Self::Text,
            "i" => Self::Integer,
            "b" => Self::Bool,
            "f" => Self::Float,
            "y" => Self::Bytes,
            "q" => Self::Quantity,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            _ => Self::Opaque,
        }
    }

    /// Whether the value is what Go has before anything is assigned. Pointers are only empty when missing.
    fn is_empty(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) => true,
            (Self::Text | Self::Bytes, Value::String(text)) => text.is_empty(),
            (Self::Integer | Self::Float, Value::Number(number)) => number.as_f64() == Some(0.0),
            (Self::Bool, Value::Bool(yes)) => !yes,
            (Self::List(_), Value::Array(list)) => list.is_empty(),
            (Self::Map(_) | Self::Struct(_), Value::Object(map)) => map.is_empty(),
            _ => false,
        }
    }
}

/// Called for every struct in an object, with the name of its type, outer ones first.
pub(crate) type Visit<'a> = &'a dyn Fn(&str, &mut Map<String, Value>);

/// Passes an object of a built-in kind through its type; `defaults` fills in structs while they are open.
/// Its parts that are as they were `before` passed already, and objects of other kinds are left alone.
pub(crate) fn pass_through(
    group: &str,
    kind: &str,
    object: &mut Value,
    before: Option<&Value>,
    defaults: Visit<'_>,
) {
    let Some(name) = SHAPES.kinds.get(&(group, kind)) else { return };
    let (Some(map), Some(fields)) = (object.as_object_mut(), SHAPES.types.get(name)) else { return };
    open_struct(name, fields, map, defaults);
    let is_new = |field: &&Field| before.is_none_or(|before| before.get(field.name) != map.get(field.name));
    let fields: Vec<&Field> = fields.iter().filter(is_new).collect();
    open_fields(fields.iter().copied(), map, defaults);
    close_fields(fields.iter().copied(), map);
}

/// Whether the kind is one of Kubernetes' own.
pub(crate) fn is_built_in(group: &str, kind: &str) -> bool {
    SHAPES.kinds.contains_key(&(group, kind))
}

/// A value of a type as Go writes it: fields in the type's order, not the alphabet's.
pub(crate) fn written(name: &str, value: &Value) -> String {
    SHAPES
        .types
        .get_key_value(name)
        .map_or_else(|| value.to_string(), |(name, _)| in_order(&Shape::Struct(name), value))
}

fn in_order(shape: &Shape, value: &Value) -> String {
    match (shape, value) {
        (Shape::Pointer(inner), _) => in_order(inner, value),
        (Shape::List(inner), Value::Array(list)) => {
            let all: Vec<String> = list.iter().map(|one| in_order(inner, one)).collect();
            format!("[{}]", all.join(","))
        }
        (Shape::Struct(name), Value::Object(map)) => {
            let fields = SHAPES.types.get(name).map(Vec::as_slice).unwrap_or_default();
            let all: Vec<String> = fields
                .iter()
                .filter_map(|field| Some((field, map.get(field.name)?)))
                .map(|(field, value)| format!("\"{}\":{}", field.name, in_order(&field.shape, value)))
                .collect();
            format!("{{{}}}", all.join(","))
        }
        _ => value.to_string(),
    }
}

/// Reads: drops what the type does not know and puts every struct in its place.
fn open(shape: &Shape, value: &mut Value, defaults: Visit<'_>) {
    match shape {
        Shape::Pointer(inner) => open(inner, value, defaults),
        Shape::List(inner) => {
            for one in value.as_array_mut().into_iter().flatten() {
                open(inner, one, defaults);
            }
        }
        Shape::Map(inner) => {
            for one in value.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                open(inner, one, defaults);
                if matches!(**inner, Shape::Quantity) {
                    round_up(one);
                }
            }
        }
        Shape::Struct(name) => {
            let (Some(map), Some(fields)) = (value.as_object_mut(), SHAPES.types.get(name)) else { return };
            open_struct(name, fields, map, defaults);
            open_fields(fields.iter(), map, defaults);
        }
        Shape::Quantity => canonical_quantity(value),
        Shape::Time => canonical_time(value, time::SECONDS, time::seconds),
        Shape::MicroTime => canonical_time(value, time::MICROS, time::micros),
        Shape::Text | Shape::Integer | Shape::Bool | Shape::Float | Shape::Bytes | Shape::Opaque => {}
    }
}

fn open_struct(name: &str, fields: &[Field], map: &mut Map<String, Value>, defaults: Visit<'_>) {
    map.retain(|key, value| !value.is_null() && fields.iter().any(|field| field.name == key));
    for field in fields {
        if matches!(field.shape, Shape::Struct(_)) && !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), Value::Object(Map::new()));
        }
    }
    defaults(name, map);
}

fn open_fields<'a>(
    fields: impl Iterator<Item = &'a Field>,
    map: &mut Map<String, Value>,
    defaults: Visit<'_>,
) {
    for field in fields {
        if let Some(value) = map.get_mut(field.name) {
            open(&field.shape, value, defaults);
        }
    }
}

/// Writes: leaves out empty values and adds those that are always written.
fn close(shape: &Shape, value: &mut Value) {
    match shape {
        Shape::Pointer(inner) => close(inner, value),
        Shape::List(inner) => {
            for one in value.as_array_mut().into_iter().flatten() {
                close(inner, one);
            }
        }
        Shape::Map(inner) => {
            for one in value.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                close(inner, one);
            }
        }
        Shape::Struct(name) => {
            let (Some(map), Some(fields)) = (value.as_object_mut(), SHAPES.types.get(name)) else { return };
            close_fields(fields.iter(), map);
        }
        _ => {}
    }
}

fn close_fields<'a>(fields: impl Iterator<Item = &'a Field>, map: &mut Map<String, Value>) {
    for field in fields {
        if let Some(value) = map.get_mut(field.name) {
            close(&field.shape, value);
            if field.shape.is_empty(value) {
                map.remove(field.name);
            }
        }
        if !map.contains_key(field.name)
            && let Some(mut empty) = field.empty()
        {
            close(&field.shape, &mut empty);
            map.insert(field.name.to_owned(), empty);
        }
    }
}

fn canonical_quantity(value: &mut Value) {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Ok(written) = units::quantity::rewritten(&text) {
        *value = Value::from(written.into_owned());
    }
}

/// Amounts of resources are kept in thousandths at the finest.
fn round_up(value: &mut Value) {
    const NANOS_PER_MILLI: i128 = 1_000_000;
    let Some(quantity) = value.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { return };
    if quantity.nanos() % NANOS_PER_MILLI != 0 {
        let rounded = Quantity::from_millis(quantity.milli_value(), quantity.format());
        *value = Value::from(rounded.to_string());
    }
}

fn canonical_time(value: &mut Value, form: &str, written: fn(Timestamp) -> String) {
    let text = value.as_str().filter(|text| !time::is_written_as(form, text));
    if let Some(time) = text.and_then(|text| text.parse::<Timestamp>().ok()) {
        *value = Value::from(written(time));
    }
}

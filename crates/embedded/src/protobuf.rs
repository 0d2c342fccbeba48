//! Protobuf: Go's typed clients send Kubernetes' own kinds so, and take JSON back; what is written so is a [`Message`].
//!
//! The numbers of the fields come from the Go types themselves (`tools/shapes`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::time;

/// How a protobuf body of Kubernetes begins.
pub(crate) const MAGIC: &[u8] = b"k8s\0";
/// The content type of such bodies.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Deeper than any type of Kubernetes nests.
const DEEPEST: usize = 64;

static TEXT: &str = include_str!("../data/protobuf.txt");

/// A field of a message.
struct Field {
    /// Empty when its own fields belong to the surrounding object.
    name: &'static str,
    kind: &'static str,
}

struct Table {
    /// Message by `group/Kind`.
    roots: BTreeMap<&'static str, &'static str>,
    messages: BTreeMap<&'static str, BTreeMap<u64, Field>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table { roots: BTreeMap::new(), messages: BTreeMap::new() };
        for line in TEXT.lines() {
            let mut words = line.split(' ');
            let first = words.next().unwrap_or_default();
            if let Some((root, message)) = first.split_once('=') {
                table.roots.insert(root, message);
                continue;
            }
            let fields = words.filter_map(|word| {
                let mut parts = word.splitn(3, ':');
                let number = parts.next()?.parse().ok()?;
                Some((number, Field { name: parts.next()?, kind: parts.next()? }))
            });
            table.messages.insert(first, fields.collect());
        }
        table
    })
}

/// Reads a body: the envelope says the type, and the message is in it. Nothing when it cannot be read.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let envelope = body.strip_prefix(MAGIC)?;
    let (mut api_version, mut kind, mut message) = (String::new(), String::new(), &[][..]);
    for (number, wire) in wires(envelope)? {
        match (number, wire) {
            (1, Wire::Bytes(types)) => {
                for (number, wire) in wires(types)? {
                    match (number, wire) {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
                        (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => message = bytes,
            _ => {}
        }
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let root = match kind.as_str() {
        "DeleteOptions" => "meta.DeleteOptions",
        _ => table().roots.get(format!("{group}/{kind}").as_str())?,
    };
    let mut object = Map::new();
    read_message(root, message, &mut object, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Some(Value::Object(object))
}

/// A value as it is on the wire.
pub(crate) enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
pub(crate) fn wires(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>()?;
                bytes = rest;
                Wire::Fixed(u64::from_le_bytes(*value))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            _ => return None,
        };
        all.push((tag >> 3, wire));
    }
    Some(all)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Reads the fields of a message into an object.
fn read_message(name: &str, bytes: &[u8], object: &mut Map<String, Value>, depth: usize) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    let fields = table().messages.get(name)?;
    for (number, wire) in wires(bytes)? {
        // Fields of newer versions are not known here.
        let Some(field) = fields.get(&number) else { continue };
        if field.name.is_empty() {
            if let (Some(inner), Wire::Bytes(bytes)) = (field.kind.strip_prefix('@'), wire) {
                read_message(inner, bytes, object, depth + 1)?;
            }
            continue;
        }
        if let Some(element) = field.kind.strip_prefix("[]") {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let value = read_value(element, &wire, depth)?;
            list.as_array_mut()?.push(value);
        } else if let Some(element) = field.kind.strip_prefix("{}") {
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            let (key, value) = read_entry(element, &wire, depth)?;
            map.as_object_mut()?.insert(key, value);
        } else if let Some(pointed) = field.kind.strip_prefix('*') {
            object.insert(field.name.to_owned(), read_value(pointed, &wire, depth)?);
        } else {
            let value = read_value(field.kind, &wire, depth)?;
            // Fields that are always sent say nothing when they are empty.
            if !is_empty(&value) {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Some(())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// One entry of a map: a message of key and value.
fn read_entry(kind: &str, wire: &Wire<'_>, depth: usize) -> Option<(String, Value)> {
    let Wire::Bytes(bytes) = wire else { return None };
    let (mut key, mut value) = (String::new(), None);
    for (number, wire) in wires(bytes)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, wire) => value = Some(read_value(kind, &wire, depth)?),
            _ => {}
        }
    }
    Some((key, value.unwrap_or_else(|| Value::from(""))))
}

fn read_value(kind: &str, wire: &Wire<'_>, depth: usize) -> Option<Value> {
    Some(match (kind, wire) {
        ("s", Wire::Bytes(bytes)) => Value::from(text(bytes)?),
        ("b", Wire::Number(number)) => Value::from(*number != 0),
        ("i" | "d", Wire::Number(number)) => Value::from(number.cast_signed()),
        ("f", Wire::Fixed(bits)) => Value::from(f64::from_bits(*bits)),
        ("y", Wire::Bytes(bytes)) => Value::from(BASE64_STANDARD.encode(bytes)),
        ("q", Wire::Bytes(bytes)) => inner_text(bytes, 1)?,
        ("t", Wire::Bytes(bytes)) => read_time(bytes)?,
        ("n", Wire::Bytes(bytes)) => number_or_text(bytes)?,
        ("r", Wire::Bytes(bytes)) => {
            let json = wires(bytes)?.into_iter().find_map(|(_, wire)| match wire {
                Wire::Bytes(bytes) => serde_json::from_slice(bytes).ok(),
                _ => None,
            });
            json.unwrap_or_default()
        }
        (message, Wire::Bytes(bytes)) if message.starts_with('@') => {
            let mut object = Map::new();
            read_message(&message[1..], bytes, &mut object, depth + 1)?;
            Value::Object(object)
        }
        _ => return None,
    })
}

/// The text that a message holds in one of its fields.
fn inner_text(bytes: &[u8], wanted: u64) -> Option<Value> {
    let found = wires(bytes)?.into_iter().find_map(|(number, wire)| match wire {
        Wire::Bytes(bytes) if number == wanted => text(bytes),
        _ => None,
    });
    Some(Value::from(found.unwrap_or_default()))
}

fn number_or_text(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut value) = (false, 0, String::new());
    for (field, wire) in wires(bytes)? {
        match (field, wire) {
            (1, Wire::Number(kind)) => is_text = kind != 0,
            (2, Wire::Number(bits)) => number = bits.cast_signed(),
            (3, Wire::Bytes(bytes)) => value = text(bytes)?,
            _ => {}
        }
    }
    Some(if is_text { Value::from(value) } else { Value::from(number) })
}

/// A time; the empty message is no time.
fn read_time(bytes: &[u8]) -> Option<Value> {
    if bytes.is_empty() {
        return Some(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for (number, wire) in wires(bytes)? {
        match (number, wire) {
            (1, Wire::Number(bits)) => seconds = bits.cast_signed(),
            (2, Wire::Number(bits)) => nanos = i32::try_from(bits.cast_signed()).ok()?,
            _ => {}
        }
    }
    let moment = Timestamp::new(seconds, nanos).ok()?;
    Some(Value::from(if nanos == 0 { time::seconds(moment) } else { time::micros(moment) }))
}

/// A message that is being written; what is absent or empty is left out.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn message(&mut self, number: u64, message: &Self) {
        self.bytes(number, &message.0);
    }

    pub(crate) fn text(&mut self, number: u64, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    pub(crate) fn flag(&mut self, number: u64, value: &Value) {
        if value == &Value::Bool(true) {
            self.varint(number << 3);
            self.varint(1);
        }
    }

    pub(crate) fn integer(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_i64().filter(|value| *value != 0) {
            self.varint(number << 3);
            self.varint(value.cast_unsigned());
        }
    }

    pub(crate) fn double(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.varint(number << 3 | 1);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn varint(&mut self, mut value: u64) {
        let low = |value: u64| value.to_le_bytes()[0];
        while value > 0x7f {
            self.0.push(low(value) | 0x80);
            value >>= 7;
        }
        self.0.push(low(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
        let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, message)].concat()
    }

    #[test]
    fn a_binding_is_read() {
        let metadata = [field(1, b"web"), field(3, b"default")].concat();
        let message = [field(1, &metadata), field(2, &[field(1, b"Node"), field(3, b"a")].concat())].concat();
        assert_eq!(
            decode(&envelope("v1", "Binding", &message)),
            Some(json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web", "namespace": "default"},
                "target": {"kind": "Node", "name": "a"},
            }))
        );
    }

    #[test]
    fn options_of_a_deletion_keep_a_grace_of_zero() {
        let message = [vec![0x08, 0], field(4, b"Orphan")].concat();
        let options = decode(&envelope("apps/v1", "DeleteOptions", &message)).unwrap();
        assert_eq!(options["gracePeriodSeconds"], 0);
        assert_eq!(options["propagationPolicy"], "Orphan");
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(decode(&[MAGIC, &[0xff; 40]].concat()), None);
        assert_eq!(decode(&envelope("v1", "Nothing", &[])), None);
        assert_eq!(decode(b"{}"), None);
    }
}

//! JSON with fields that are there more than once: the last one counts, and the others are reported.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads JSON; also returns the paths of fields that are there more than once.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Reader { path: String::new(), found: &mut found }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, found))
}

struct Reader<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            let Some(value) = sequence.next_element_seed(Reader { path, found: self.found })? else { break };
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            let value = fields.next_value_seed(Reader { path: path.clone(), found: self.found })?;
            if map.insert(key, value).is_some() && !self.found.contains(&path) {
                self.found.push(path);
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn fields_that_are_there_twice_are_reported_with_their_path() {
        let text = br#"{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": null, "d": 3.5}], "a": {"x": "y"}}"#;
        let (value, found) = super::parse(text).unwrap();
        assert_eq!(value, json!({"a": {"x": "y"}, "c": [{"d": 3.5}]}));
        assert_eq!(found, ["a.b", "c[0].d", "a"]);
        assert!(super::parse(b"{} {}").is_err());
    }
}

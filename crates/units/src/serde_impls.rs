//! How quantities and durations stand in JSON: as the text Kubernetes writes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{GoDuration, NillableDuration, Quantity};

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// Kubernetes accepts numbers as well as strings, ignores spaces around them, and takes null for zero.
struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 2, 100m or 1Gi")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    text.parse().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, written: &str) {
        let quantity: Quantity = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&quantity).expect("a quantity is a string"), format!("{written:?}"));
    }

    #[test]
    fn quantities_are_read_from_strings_and_numbers() {
        check(r#""1500m""#, "1500m");
        check(r#"" 2048Gi ""#, "2Ti");
        check("2", "2");
        check("1.5", "1500m");
        check("-3", "-3");
        check("18446744073709551615", "18446744073709551615");
        check("null", "0");
    }

    #[test]
    fn durations_are_written_as_go_does_and_nillable_ones_as_they_came() {
        let plain: GoDuration = serde_json::from_str(r#""48h""#).expect("a duration");
        assert_eq!(serde_json::to_string(&plain).expect("a string"), r#""48h0m0s""#);
        for text in ["720h", "Never", "90m"] {
            let json = format!("{text:?}");
            let nillable: NillableDuration = serde_json::from_str(&json).expect("a duration or Never");
            assert_eq!(serde_json::to_string(&nillable).expect("a string"), json);
        }
    }

    #[test]
    fn bad_text_is_refused_with_the_reason() {
        let error = serde_json::from_str::<Quantity>(r#""1KB""#).expect_err("not a quantity").to_string();
        assert!(error.contains("1KB"), "{error}");
        let error = serde_json::from_str::<Quantity>("true").expect_err("not a quantity").to_string();
        assert!(error.contains("expected a quantity such as 2, 100m or 1Gi"), "{error}");
        let error =
            serde_json::from_str::<GoDuration>(r#""5 minutes""#).expect_err("no duration").to_string();
        assert!(error.contains("5 minutes"), "{error}");
    }
}

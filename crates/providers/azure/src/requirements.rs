//! Short ways to write requirements.

use api::shared::{Operator, Requirement};

/// A label has one of some values.
pub(crate) fn within<V: Into<String>>(key: &str, values: impl IntoIterator<Item = V>) -> Requirement {
    let values = values.into_iter().map(Into::into).collect();
    Requirement { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

/// A label is absent.
pub(crate) fn absent(key: &str) -> Requirement {
    Requirement { key: key.to_owned(), operator: Operator::DoesNotExist, values: vec![], min_values: None }
}

/// A label has a value, or is absent where there is none.
pub(crate) fn maybe<V: Into<String>>(key: &str, value: Option<V>) -> Requirement {
    value.map_or_else(|| absent(key), |value| within(key, [value]))
}

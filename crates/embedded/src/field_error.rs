//! What is wrong with one field of an object, in the API server's words.

use serde_json::Value;

/// The kinds of mistakes the API server tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A value of the wrong shape or with forbidden content.
    Invalid,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A missing value.
    Required,
    /// A value outside the list of accepted ones.
    NotSupported,
    /// A value that may not be set here.
    Forbidden,
    /// A second value with the same key.
    Duplicate,
    /// A text that is too long.
    TooLong,
    /// Too many entries.
    TooMany,
    /// A reference to something that does not exist.
    NotFound,
}

impl Mistake {
    /// The machine-readable reason in a Status's causes.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
        }
    }
}

/// One mistake: where, which, the value and what would be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Which mistake.
    pub mistake: Mistake,
    /// The path, such as `spec.containers[0].name`.
    pub field: String,
    /// The value as it is shown; nothing for mistakes that show none.
    pub shown: Option<String>,
    /// What would be accepted; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(
        mistake: Mistake,
        field: impl Into<String>,
        shown: Option<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { mistake, field: field.into(), shown, detail: detail.into() }
    }

    /// A value of the wrong shape.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(Mistake::Invalid, field, Some(shown(value)), detail)
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(Mistake::TypeInvalid, field, Some(shown(value)), detail)
    }

    /// A missing value.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Mistake::Required, field, None, detail)
    }

    /// A value that may not be set here.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Mistake::Forbidden, field, None, detail)
    }

    /// A second value with the same key.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(Mistake::Duplicate, field, Some(shown(value)), "")
    }

    /// A reference to something that does not exist.
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(Mistake::NotFound, field, Some(shown(value)), "")
    }

    /// A value outside the list of accepted ones.
    pub fn not_supported(field: impl Into<String>, value: &Value, accepted: &[&str]) -> Self {
        let list: Vec<String> = accepted.iter().map(|one| quoted(one)).collect();
        let detail =
            if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self::new(Mistake::NotSupported, field, Some(shown(value)), detail)
    }

    /// A text longer than `most` bytes.
    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self::new(Mistake::TooLong, field, None, format!("may not be more than {most} bytes"))
    }

    /// A list with `count` entries, more than `most`.
    pub fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        let items = if most == 1 { "item" } else { "items" };
        Self::new(
            Mistake::TooMany,
            field,
            Some(count.to_string()),
            format!("must have at most {most} {items}"),
        )
    }

    /// What stands for all rules that were not asked because of other mistakes.
    pub fn unchecked_rules() -> Self {
        let detail = "some validation rules were not checked because the object was invalid; \
                      correct the existing errors to complete validation";
        Self::invalid("<nil>", &Value::Null, detail)
    }

    /// A value of the wrong shape that is too large to be shown.
    pub fn invalid_unshown(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Mistake::Invalid, field, None, detail)
    }

    /// The mistake without its field, as in a Status's cause.
    pub fn body(&self) -> String {
        let mut text = self.mistake.text().to_owned();
        if let Some(shown) = &self.shown {
            text = format!("{text}: {shown}");
        }
        if self.detail.is_empty() { text } else { format!("{text}: {}", self.detail) }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A value as the API server shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) if number.is_f64() => go_number(number.as_f64().unwrap_or_default()),
        // Go's JSON is fit for HTML.
        other => other
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029"),
    }
}

/// A number as Go prints it by default.
pub(crate) fn go_number(number: f64) -> String {
    if number != 0.0 && !(1e-4..1e21).contains(&number.abs()) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{number}")
}

/// A text in quotes, with Go's escapes.
pub(crate) fn quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x80 && c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            // Spaces other than the usual one, and what cannot be printed.
            c if c.is_control() || c != ' ' && c.is_whitespace() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::shown;

    #[test]
    fn values_are_shown_as_go_shows_them() {
        assert_eq!(shown(&json!("a\"b\\\n\u{1}é\u{a0}<")), r#""a\"b\\\n\x01é\u00a0<""#);
        assert_eq!(
            shown(&json!({"b": "<a&b>", "a": [1, 2.5]})),
            r#"{"a":[1,2.5],"b":"\u003ca\u0026b\u003e"}"#
        );
        assert_eq!(shown(&json!(1.0)), "1");
        assert_eq!(shown(&json!(1e-7)), "1e-07");
        assert_eq!(shown(&json!(null)), "null");
    }
}

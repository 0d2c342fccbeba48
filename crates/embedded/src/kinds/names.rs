//! The shapes of names, labels and keys, each answering with what is wrong in the API server's words.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::field_error::FieldError;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

/// A pattern that is known to be one: a broken one matches nothing.
fn is_all_of(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Vec<(&str, Option<Regex>)>> = LazyLock::new(|| {
        [LABEL, SUBDOMAIN, LABEL_1035, KEY, LABEL_VALUE, CONFIG_KEY]
            .into_iter()
            .map(|pattern| (pattern, Regex::new(&format!("^(?:{pattern})$")).ok()))
            .collect()
    });
    COMPILED
        .iter()
        .find(|(known, _)| *known == pattern)
        .and_then(|(_, regex)| regex.as_ref())
        .is_some_and(|regex| regex.is_match(text))
}

/// What a text has to look like, with examples.
pub(crate) fn pattern_text(what: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    if examples.is_empty() {
        return format!("{what} (regex used for validation is '{pattern}')");
    }
    format!("{what} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

/// An inclusive range.
pub(crate) fn range_text(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// A DNS label of RFC 1123.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    if !is_all_of(LABEL, text) {
        wrong.push(if is_all_of(SUBDOMAIN, text) {
            "must not contain dots".to_owned()
        } else {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                        and must start and end with an alphanumeric character";
            pattern_text(what, LABEL, &["my-name", "123-abc"])
        });
    }
    wrong
}

/// A DNS subdomain of RFC 1123.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(format!("must be no more than 253 {unit}"));
    }
    if !is_all_of(SUBDOMAIN, text) {
        let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                    '.', and must start and end with an alphanumeric character";
        wrong.push(pattern_text(what, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

/// A DNS label of RFC 1035, which starts with a letter.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 characters".to_owned());
    }
    if !is_all_of(LABEL_1035, text) {
        let what = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                    alphabetic character, and end with an alphanumeric character";
        wrong.push(pattern_text(what, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

/// A key of a label, an annotation or a resource: a name with an optional domain before it.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    const WHAT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    let shape = || pattern_text(WHAT, KEY, &["MyName", "my.name", "123-abc"]);
    let mut wrong = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong
                    .extend(subdomain(prefix, "bytes").into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            let shape = shape();
            return vec![format!(
                "a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_all_of(KEY, name) {
        wrong.push(format!("name part {}", shape()));
    }
    wrong
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !is_all_of(LABEL_VALUE, text) {
        let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                    and must start and end with an alphanumeric character";
        wrong.push(pattern_text(what, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// A key of a config map or a secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if !is_all_of(CONFIG_KEY, text) {
        let what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        wrong.push(pattern_text(what, CONFIG_KEY, &["key.name", "KEY_NAME", "key-name"]));
    }
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// A name that can be a part of a URL's path.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|forbidden| text.contains(forbidden))
        .map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

/// The name of a port.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if text.is_empty() || !text.bytes().all(|c| c == b'-' || c.is_ascii_digit() || c.is_ascii_lowercase()) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|c| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// A part of a percentage that has no number before its sign.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        return Vec::new();
    }
    let what = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern_text(what, "[0-9]+%", &["1%", "93%"])]
}

/// The name of an environment variable.
pub(crate) fn environment_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !text.chars().all(|c| (c.is_ascii_graphic() || c == ' ') && c != '=') {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// All of a checker's findings about one text.
pub(crate) fn check(
    errors: &mut Vec<FieldError>,
    field: impl Into<String>,
    text: &str,
    checker: impl Fn(&str) -> Vec<String>,
) {
    let wrong = checker(text);
    if wrong.is_empty() {
        return;
    }
    let field = field.into();
    for wrong in wrong {
        errors.push(FieldError::invalid(field.clone(), &Value::from(text), wrong));
    }
}

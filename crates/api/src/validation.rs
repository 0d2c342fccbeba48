//! What the CRDs' own rules cannot say, checked at runtime: [`node_pool::validate`], [`node_overlay::validate`]
//! and [`pod::validate`] find everything that is wrong at once. [`budget`] and [`limits`] read what NodePools
//! say about disruption and size.
//!
//! The texts of errors are part of the API: they are in conditions and events, and they are upstream's.

use std::fmt;

pub mod budget;
pub mod kubernetes;
pub mod limits;
pub mod node_overlay;
pub mod node_pool;
pub mod pod;
pub mod precedence;
pub mod requirement;

/// Everything that is wrong with an object, in the order in which it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors<E>(Vec<E>);

impl<E> Errors<E> {
    /// Fails if there are errors.
    fn check(errors: Vec<E>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// The single errors; there is at least one.
    pub fn as_slice(&self) -> &[E] {
        &self.0
    }
}

impl<E: fmt::Display> fmt::Display for Errors<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

impl<E: std::error::Error> std::error::Error for Errors<E> {}

/// Several errors as one text.
fn joined<E: fmt::Display>(errors: &[E]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// A text in quotes, with escapes as Go writes them.
fn quoted(text: &str) -> String {
    let escaped: String = text.chars().map(escaped).collect();
    format!("\"{escaped}\"")
}

fn escaped(c: char) -> String {
    let code = u32::from(c);
    match c {
        '"' | '\\' => format!(r"\{c}"),
        '\u{7}' => r"\a".to_owned(),
        '\u{8}' => r"\b".to_owned(),
        '\t' => r"\t".to_owned(),
        '\n' => r"\n".to_owned(),
        '\u{b}' => r"\v".to_owned(),
        '\u{c}' => r"\f".to_owned(),
        '\r' => r"\r".to_owned(),
        _ if c.is_ascii_control() => format!(r"\x{code:02x}"),
        _ if c.is_ascii() || c.escape_debug().len() == 1 => c.to_string(),
        _ if code > 0xffff => format!(r"\U{code:08x}"),
        _ => format!(r"\u{code:04x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_escape_as_go_does() {
        for (text, expected) in [
            ("a/b", r#""a/b""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{7f}", r#""\x00\x7f""#),
            ("\u{85}\u{a0}\u{3000} ä日", r#""\u0085\u00a0\u3000 ä日""#),
            ("\u{200b}\u{feff}\u{e0001}", r#""\u200b\ufeff\U000e0001""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}

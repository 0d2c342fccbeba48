//! Regular expressions as Go writes them.

use regex::{Error, Regex};

/// Compiles a pattern with Go's meaning.
pub(super) fn compile(pattern: &str) -> Result<Regex, Error> {
    Regex::new(&translate(pattern))
}

/// Writes a Go pattern in Rust's syntax: classes such as `\d` are ASCII, and inside brackets only few
/// characters are special.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    // A bracket right after the opening one stands for itself.
    let mut class_start = false;
    let mut previous = '\0';
    while let Some(c) = chars.next() {
        let starts = std::mem::take(&mut class_start);
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push('\\');
                    break;
                };
                match escaped {
                    'd' => out.push_str("[0-9]"),
                    'D' => out.push_str("[^0-9]"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    's' => out.push_str(r"[\t\n\f\r ]"),
                    'S' => out.push_str(r"[^\t\n\f\r ]"),
                    'b' if !in_class => out.push_str(r"(?-u:\b)"),
                    other => out.extend(['\\', other]),
                }
                previous = '\0';
                continue;
            }
            '[' if in_class && chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
                previous = '\0';
                continue;
            }
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                class_start = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
            }
            ']' if in_class && starts => out.push_str("\\]"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Doubled, these are set operations in Rust.
            '&' | '~' | '-' if in_class && previous == c => out.extend(['\\', c]),
            '{' if !in_class && !is_repetition(chars.clone()) => out.push_str("\\{"),
            other => out.push(other),
        }
        previous = c;
    }
    out
}

/// Whether what follows a brace makes it a repetition: `3}`, `3,}` or `3,5}`.
fn is_repetition(rest: impl Iterator<Item = char>) -> bool {
    let inner: String = rest.take_while(|c| *c != '}').collect();
    let mut parts = inner.splitn(2, ',');
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    parts.next().is_some_and(|first| !first.is_empty() && digits(first)) && parts.all(digits)
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[track_caller]
    fn check(pattern: &str, text: &str, matches: bool) {
        let regex = compile(pattern).unwrap();
        assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
    }

    #[test]
    fn classes_are_of_ascii() {
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "١٢", false);
        check(r"^[\w.]+$", "a_1.", true);
        check(r"^\w+$", "é", false);
        check(r"^\S+$", "a\u{a0}b", true);
    }

    #[test]
    fn brackets_hold_any_character() {
        check("^[[a]+$", "[a", true);
        check("^[]a]+$", "]a", true);
        check("^[^]]+$", "a]", false);
        check("^[a&&b]+$", "&", true);
        check("^[[:alpha:]_]+$", "ab_", true);
        check(r"^[a-z--]+$", "a-", true);
    }

    #[test]
    fn a_brace_that_repeats_nothing_is_a_brace() {
        check("^{a}$", "{a}", true);
        check("^a{2}$", "aa", true);
        check("^a{1,2}$", "aaa", false);
        check("^a{,2}$", "a{,2}", true);
    }
}

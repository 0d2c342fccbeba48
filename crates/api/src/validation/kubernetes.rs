//! Kubernetes' own rules for names. Each check gives what is wrong, in Kubernetes' words; nothing if all is well.

const NAME_MAX: usize = 63;
const LABEL_VALUE_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// What is wrong with a qualified name, such as a label key: a name of at most 63 bytes, optionally after a DNS
/// subdomain and a slash.
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                name_format()
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(dns1123_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        errors.push(format!("name part {}", too_long(NAME_MAX)));
    }
    if !is_name(name) {
        errors.push(format!("name part {}", name_format()));
    }
    errors
}

/// What is wrong with the value of a label: empty, or a name of at most 63 bytes.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_VALUE_MAX {
        errors.push(too_long(LABEL_VALUE_MAX));
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(wrong_format(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
        ));
    }
    errors
}

/// What is wrong with a DNS subdomain: lower-case labels between dots, at most 253 bytes.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        errors.push(too_long(SUBDOMAIN_MAX));
    }
    if !value.split('.').all(is_dns_label) {
        errors.push(wrong_format(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character",
            &["example.com"],
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        ));
    }
    errors
}

fn is_name(text: &str) -> bool {
    text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && text.chars().all(|c| is_alphanumeric(c) || matches!(c, '-' | '_' | '.'))
}

fn is_dns_label(text: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_edge) && text.ends_with(is_edge) && text.chars().all(|c| is_edge(c) || c == '-')
}

fn is_alphanumeric(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn name_format() -> String {
    wrong_format(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character",
        &["MyName", "my.name", "123-abc"],
        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    )
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// Kubernetes leaves two spaces before each "or".
fn wrong_format(rule: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(errors: &[String], expected: &Expect) {
        expected.assert_eq(&errors.join("\n"));
    }

    #[test]
    fn good_names_have_no_errors() {
        let longest = "x".repeat(63);
        let subdomain = format!("{0}.{0}.{0}.{1}", "a".repeat(62), "b".repeat(64));
        assert_eq!(subdomain.len(), 253);
        let with_prefix = format!("{subdomain}/{longest}");
        for name in [
            "a",
            "A",
            "1",
            "a-b",
            "a_b",
            "a.b",
            "a--b",
            "example.com/A.b_c-d",
            "1.2/3",
            &longest,
            &with_prefix,
        ] {
            assert!(qualified_name(name).is_empty(), "{name}");
        }
        for value in ["", "a", "My_value.1-2", &longest] {
            assert!(label_value(value).is_empty(), "{value}");
        }
        for domain in ["a", "1", "a-b.c1.2d", &subdomain] {
            assert!(dns1123_subdomain(domain).is_empty(), "{domain}");
        }
    }

    #[test]
    fn bad_names_have_errors_and_never_panic() {
        let long = "x".repeat(64);
        for name in [
            "", "/", "a/", "/a", "-a", "a-", "_a", "a_", ".a", "a.", "a b", "ä", "A/b/c", "a//b", "A.com/x",
            "-.a/b", "a..b/c", "a\n", "\u{0}", &long,
        ] {
            assert!(!qualified_name(name).is_empty(), "{name:?}");
        }
        for value in ["-", "a-", "_a", "a b", "a/b", "ä", "\n", "a\n", &long] {
            assert!(!label_value(value).is_empty(), "{value:?}");
        }
        for domain in ["", ".", "a.", ".a", "A", "a_b", "a.-b", "ä", &"a".repeat(254)] {
            assert!(!dns1123_subdomain(domain).is_empty(), "{domain:?}");
        }
    }

    #[test]
    fn an_empty_name_is_told_twice() {
        check(
            &qualified_name(""),
            &expect![[r"
            name part must be non-empty
            name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]],
        );
    }

    #[test]
    fn prefix_and_name_are_told_apart() {
        check(&qualified_name("/a"), &expect!["prefix part must be non-empty"]);
        check(
            &qualified_name("Example.com/a b"),
            &expect![[r"
            prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]],
        );
        check(
            &qualified_name(&format!("{}/{}", "a".repeat(254), "x".repeat(64))),
            &expect![[r"
            prefix part must be no more than 253 bytes
            name part must be no more than 63 bytes"]],
        );
    }

    #[test]
    fn more_than_one_slash_is_one_error() {
        check(
            &qualified_name("a/b/c"),
            &expect![
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ],
        );
    }

    #[test]
    fn label_values_have_their_own_text() {
        check(
            &label_value(&format!("{}!", "x".repeat(64))),
            &expect![[r"
            must be no more than 63 bytes
            a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]],
        );
    }
}

//! The formats of texts that CRDs may ask for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;
use units::GoDuration;

/// A format that the API server checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Base64,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    Mac,
    ObjectId,
    RgbColor,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

impl Format {
    /// The format of a name; nothing when the API server ignores it for values of this type.
    pub(super) fn named(name: &str, type_name: &str) -> Option<Self> {
        if !matches!(type_name, "" | "string") {
            return None;
        }
        Some(match name.replace('-', "").as_str() {
            "byte" => Self::Base64,
            "cidr" => Self::Cidr,
            "creditcard" => Self::CreditCard,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hexcolor" => Self::HexColor,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "mac" => Self::Mac,
            "bsonobjectid" => Self::ObjectId,
            "rgbcolor" => Self::RgbColor,
            "ssn" => Self::Ssn,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            _ => return None,
        })
    }

    /// Whether a text is of the format.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Base64 => is_base64(text),
            Self::Cidr => is_cidr(text),
            Self::CreditCard => is_credit_card(text),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => is_date_time(text),
            Self::Duration => is_duration(text),
            Self::Email => matches(&EMAIL, text),
            Self::HexColor => matches(&HEX_COLOR, text),
            Self::Hostname => {
                matches(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
            }
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::Mac => matches(&MAC, text),
            Self::ObjectId => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::RgbColor => matches(&RGB_COLOR, text),
            Self::Ssn => matches(&SSN, text),
            Self::Uri => is_uri(text),
            Self::Uuid => matches(&UUID, text),
            Self::Uuid3 => matches(&UUID, text) && uuid_digit(text, 12) == Some('3'),
            Self::Uuid4 => is_random_uuid(text, '4'),
            Self::Uuid5 => is_random_uuid(text, '5'),
        }
    }
}

type Lazy = LazyLock<Option<Regex>>;

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => { $(static $name: Lazy = LazyLock::new(|| Regex::new($pattern).ok());)* };
}

patterns! {
    EMAIL = r#"^([^\s<>"]+\s*<[^\s@<>]+@[^\s@<>]+>|[^\s@<>"]+@[^\s@<>]+)$"#;
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    MAC = r"^(([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}(([:-][0-9a-fA-F]{2}){2}|([:-][0-9a-fA-F]{2}){14})?)|([0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}(\.[0-9a-fA-F]{4}|(\.[0-9a-fA-F]{4}){7})?))$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    UUID = "^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    CREDIT_CARD = "^(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11})$";
    DATE_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    SPELLED_DURATION = r"([0-9]+)\s*([A-Za-zµ]+)";
}

fn matches(pattern: &Lazy, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    text.len().is_multiple_of(4)
        && !text.is_empty()
        && padding <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let plain =
        length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    plain && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_date_time(text: &str) -> bool {
    // The pattern is of lower case after the date.
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let normal = format!("{date}T{}", time.to_lowercase());
    matches(&DATE_TIME, &normal)
        && date.parse::<jiff::civil::Date>().is_ok()
        && time.get(..2).is_some_and(|hours| hours <= "23")
        && time.get(3..5).is_some_and(|minutes| minutes <= "59")
        && time.get(6..8).is_some_and(|seconds| seconds <= "59")
}

/// Go's durations, and texts such as `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    if text.parse::<GoDuration>().is_ok() {
        return true;
    }
    let Some(pattern) = SPELLED_DURATION.as_ref() else { return false };
    pattern.captures_iter(text).any(|found| {
        let unit = found[2].to_lowercase();
        UNITS.iter().any(|names| {
            names.contains(&unit.as_str()) || names.last().is_some_and(|name| unit.starts_with(name))
        })
    })
}

fn is_uri(text: &str) -> bool {
    // As for an HTTP request: an absolute path or an absolute URI.
    let spaces = text.chars().any(|c| c.is_ascii_control() || c == ' ');
    let scheme = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !spaces && (text.starts_with('/') || scheme)
}

fn uuid_digit(text: &str, index: usize) -> Option<char> {
    text.chars().filter(|c| *c != '-').nth(index)
}

fn is_random_uuid(text: &str, version: char) -> bool {
    matches(&UUID, text)
        && uuid_digit(text, 12) == Some(version)
        && uuid_digit(text, 16).is_some_and(|digit| "89abAB".contains(digit))
}

fn digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = digits(text);
    let valid = text.len() == 10
        && text.char_indices().all(|(index, c)| c.is_ascii_digit() || index == 9 && c == 'X');
    let value = |c: char| c.to_digit(10).unwrap_or(10);
    valid && (1..).zip(text.chars()).map(|(weight, c)| weight * value(c)).sum::<u32>().is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = digits(text);
    let weights = [1, 3].into_iter().cycle();
    text.len() == 13
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && weights.zip(text.chars()).map(|(weight, c)| weight * c.to_digit(10).unwrap_or(0)).sum::<u32>() % 10
            == 0
}

fn is_credit_card(text: &str) -> bool {
    let text: String = text.chars().filter(char::is_ascii_digit).collect();
    // Every second digit from the end is doubled, and its own digits are added.
    let sum: u32 = (0..)
        .zip(text.chars().rev())
        .map(|(index, c)| {
            let digit = c.to_digit(10).unwrap_or(0) * (1 + index % 2);
            digit / 10 + digit % 10
        })
        .sum();
    matches(&CREDIT_CARD, &text) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[track_caller]
    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = Format::named(name, "string").unwrap();
        for text in good {
            assert!(format.accepts(text), "{name} accepts {text}");
        }
        for text in bad {
            assert!(!format.accepts(text), "{name} refuses {text}");
        }
    }

    #[test]
    fn texts_are_of_a_format_or_not() {
        check(
            "date-time",
            &["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123+02:00"],
            &["2024-01-02", "x", "2024-13-02T03:04:05Z"],
        );
        check("date", &["2024-02-29"], &["2023-02-29", "20240229"]);
        check("duration", &["1h30m", "22 ns", "2 days"], &["", "x", "10"]);
        check("ipv4", &["10.0.0.1"], &["10.0.0", "::1"]);
        check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "x"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]);
        check("byte", &["YWJj", "YQ=="], &["a", ""]);
        check("hostname", &["example.com", "a-b"], &["-a", "a b"]);
        check("email", &["a@example.com"], &["a", "a@"]);
        check("uri", &["https://example.com/a", "/a"], &["a", ""]);
        check("mac", &["01:23:45:67:89:ab"], &["01:23"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
        check("hexcolor", &["#fff", "FFFFFF"], &["#ff"]);
        check("rgbcolor", &["rgb(255, 0, 1)"], &["rgb(256,0,0)"]);
        check("ssn", &["111-22-3333"], &["111"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
    }

    #[test]
    fn unknown_formats_and_formats_of_other_types_are_ignored() {
        assert_eq!(Format::named("made-up", "string"), None);
        assert_eq!(Format::named("date", "object"), None);
    }
}

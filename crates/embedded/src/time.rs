//! Times in the text that objects carry: UTC, in whole seconds or in microseconds.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// A time in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    PRINTER.timestamp_to_string(&time)
}

/// A time in microseconds.
pub(crate) fn micros(time: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    PRINTER.timestamp_to_string(&time)
}

/// Whether a time has the text that [`seconds`] gives it, or [`micros`] for `form` in microseconds.
///
/// The text of most times is right already, and writing it again would cost as much as reading it.
pub(crate) fn is_written_as(form: &str, text: &str) -> bool {
    let fits = |(found, expected): (u8, u8)| {
        if expected.is_ascii_digit() { found.is_ascii_digit() } else { found == expected }
    };
    // A leap second is written as the one before it.
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits) && !text[17..].starts_with("60")
}

/// The form of times in whole seconds.
pub(crate) const SECONDS: &str = "0000-00-00T00:00:00Z";
/// The form of times in microseconds.
pub(crate) const MICROS: &str = "0000-00-00T00:00:00.000000Z";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_cut_off_and_filled_up() {
        let time: Timestamp = "2024-02-29T23:59:59.9999999Z".parse().unwrap();
        assert_eq!(seconds(time), "2024-02-29T23:59:59Z");
        assert_eq!(micros(time), "2024-02-29T23:59:59.999999Z");
        let whole: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(micros(whole), "2024-01-01T00:00:00.000000Z");
    }

    #[test]
    fn only_the_text_that_would_be_written_counts_as_written() {
        assert!(is_written_as(SECONDS, "2024-01-01T00:00:59Z"));
        assert!(is_written_as(MICROS, "2024-01-01T00:00:59.000001Z"));
        for text in ["2024-01-01T00:00:60Z", "2024-01-01t00:00:00Z", "2024-01-01T00:00:00.1Z", "", "today"] {
            assert!(!is_written_as(SECONDS, text), "{text}");
        }
    }
}

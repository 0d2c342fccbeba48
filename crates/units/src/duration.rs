//! Go's durations, `time.ParseDuration` and `Duration.String`, and Karpenter's durations that may be `Never`.
//! Entries: [`GoDuration`] and [`NillableDuration`].

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;

/// Unit names with their length in nanoseconds. Microseconds have two spellings with the same look: the micro
/// sign and the Greek letter mu.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The magnitude of the most negative duration; one nanosecond more than that of the longest.
const MOST: u64 = 1 << 63;

const EXPECTED: &str = "expected numbers with units ns, us, ms, s, m or h, such as 1h30m or 1.5s";

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of numbers with units.
    #[error("invalid duration {value:?}: {EXPECTED}")]
    Malformed {
        /// The whole text.
        value: String,
    },
    /// A number has no unit.
    #[error("invalid duration {value:?}: a unit is missing; {EXPECTED}")]
    MissingUnit {
        /// The whole text.
        value: String,
    },
    /// A number has a unit that does not exist.
    #[error("invalid duration {value:?}: unknown unit {unit:?}; {EXPECTED}")]
    UnknownUnit {
        /// The whole text.
        value: String,
        /// The unit.
        unit: String,
    },
    /// The duration does not fit 64 bits of nanoseconds.
    #[error("invalid duration {value:?}: it is longer than the possible 2562047h47m16.854775807s")]
    OutOfRange {
        /// The whole text.
        value: String,
    },
}

/// A signed number of nanoseconds, about 292 years either way, read and printed as Go does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(i64);

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest of all, about 292 years.
    pub const MAX: Self = Self(i64::MAX);

    /// A number of nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// A number of seconds, saturating at the longest duration.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND.cast_signed()))
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl From<GoDuration> for SignedDuration {
    fn from(duration: GoDuration) -> Self {
        Self::from_nanos(duration.0)
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || DurationError::Malformed { value: text.to_owned() };
        let out_of_range = || DurationError::OutOfRange { value: text.to_owned() };
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return Err(malformed());
        }
        let mut total: u64 = 0;
        let mut rest = unsigned;
        while !rest.is_empty() {
            let term;
            (term, rest) = split_term(rest);
            if term.integer.is_empty() && term.fraction.is_empty() {
                return Err(malformed());
            }
            if term.unit.is_empty() {
                return Err(DurationError::MissingUnit { value: text.to_owned() });
            }
            let (_, unit) = UNITS.iter().find(|(name, _)| *name == term.unit).ok_or_else(|| {
                DurationError::UnknownUnit { value: text.to_owned(), unit: term.unit.to_owned() }
            })?;
            let nanos = term.nanos(*unit).ok_or_else(out_of_range)?;
            total = total.checked_add(nanos).filter(|total| *total <= MOST).ok_or_else(out_of_range)?;
        }
        let signed =
            if text.starts_with('-') { 0_i64.checked_sub_unsigned(total) } else { total.try_into().ok() };
        signed.map(Self).ok_or_else(out_of_range)
    }
}

/// One number with its unit.
struct Term<'a> {
    integer: &'a str,
    fraction: &'a str,
    unit: &'a str,
}

impl Term<'_> {
    fn nanos(&self, unit: u64) -> Option<u64> {
        let integer = if self.integer.is_empty() { 0 } else { self.integer.parse::<u64>().ok()? };
        let whole = integer.checked_mul(unit).filter(|nanos| *nanos <= MOST)?;
        whole.checked_add(fraction_of(unit, self.fraction)).filter(|nanos| *nanos <= MOST)
    }
}

/// The part of `unit` that the digits after a point stand for. Go computes it in floating point and drops
/// digits that do not fit 63 bits, so the same is done here.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go's result is the truncated floating-point product, which is never negative"
)]
fn fraction_of(unit: u64, digits: &str) -> u64 {
    let mut numerator: u64 = 0;
    let mut scale = 1.0;
    for digit in digits.bytes() {
        if numerator > (MOST - 1) / 10 {
            break;
        }
        let longer = numerator * 10 + u64::from(digit - b'0');
        if longer > MOST {
            break;
        }
        numerator = longer;
        scale *= 10.0;
    }
    (numerator as f64 * (unit as f64 / scale)) as u64
}

fn split_term(text: &str) -> (Term<'_>, &str) {
    let (integer, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    (Term { integer, fraction, unit }, rest)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let text = match magnitude {
            0 => "0s".to_owned(),
            1..1_000 => format!("{sign}{magnitude}ns"),
            1_000..1_000_000 => format!("{sign}{}\u{b5}s", with_fraction(magnitude, 1_000)),
            1_000_000..NANOS_PER_SECOND => format!("{sign}{}ms", with_fraction(magnitude, 1_000_000)),
            _ => {
                let minutes = magnitude / (60 * NANOS_PER_SECOND);
                let seconds = with_fraction(magnitude % (60 * NANOS_PER_SECOND), NANOS_PER_SECOND);
                match (minutes / 60, minutes % 60) {
                    (0, 0) => format!("{sign}{seconds}s"),
                    (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                    (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
                }
            }
        };
        f.pad(&text)
    }
}

/// `nanos / unit` as a decimal number without trailing zeros; `unit` is a power of ten.
fn with_fraction(nanos: u64, unit: u64) -> String {
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    // Adding the unit puts a one in front, which keeps the leading zeros of the fraction.
    let digits = (rest + unit).to_string();
    format!("{whole}.{}", digits[1..].trim_end_matches('0'))
}

/// A duration or `Never`, remembering how it was written: `720h` is written back as `720h`, so that tools
/// comparing manifests see no change.
///
/// Two of them are equal when written alike; compare [`NillableDuration::duration`] for the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NillableDuration {
    duration: Option<GoDuration>,
    text: Box<str>,
}

impl NillableDuration {
    const NEVER: &str = "Never";

    /// The duration that never ends.
    pub fn never() -> Self {
        Self { duration: None, text: Self::NEVER.into() }
    }

    /// The duration, or nothing for `Never`.
    pub const fn duration(&self) -> Option<GoDuration> {
        self.duration
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<GoDuration> for NillableDuration {
    fn from(duration: GoDuration) -> Self {
        Self { duration: Some(duration), text: duration.to_string().into() }
    }
}

impl FromStr for NillableDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let duration = match text.parse() {
            _ if text == Self::NEVER => None,
            Ok(duration) => Some(duration),
            // Centuries are as good as more centuries, and schemas accept any number.
            Err(DurationError::OutOfRange { .. }) if !text.starts_with('-') => Some(GoDuration::MAX),
            Err(error) => return Err(error),
        };
        Ok(Self { duration, text: text.into() })
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: i64, printed: &str) {
        let duration: GoDuration = text.parse().unwrap();
        assert_eq!((duration.as_nanos(), duration.to_string().as_str()), (nanos, printed), "{text}");
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        check("720h", 2_592_000_000_000_000, "720h0m0s");
        check("1.5s", 1_500_000_000, "1.5s");
        check("100ms", 100_000_000, "100ms");
        check("0", 0, "0s");
        check("1us", 1_000, "1\u{b5}s");
        check("1h90s", 3_690_000_000_000, "1h1m30s");
        check("-90s", -90_000_000_000, "-1m30s");
        check("1.001002s", 1_001_002_000, "1.001002s");
        check("999ns", 999, "999ns");
    }

    #[test]
    fn every_unit_and_fraction_is_read() {
        check("1\u{b5}s1\u{3bc}s1us1ns", 3_001, "3.001\u{b5}s");
        check(".5h", 1_800_000_000_000, "30m0s");
        check("+5.s", 5_000_000_000, "5s");
        check("0.3333333333333333333h", 1_200_000_000_000, "20m0s");
        check("0.9999999999999999999999999999s", 1_000_000_000, "1s");
    }

    #[test]
    fn the_whole_range_is_read_and_nothing_beyond() {
        check("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s");
        check("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s");
        for text in ["9223372036854775808ns", "-9223372036854775809ns", "2562048h", "99999999999999999999s"] {
            assert!(matches!(text.parse::<GoDuration>(), Err(DurationError::OutOfRange { .. })), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_errors() {
        for text in
            ["", "-", "+", "s", ".s", "-.s", "1", "1.5", "1d", "1 s", "1h ", "--1s", "1h-1m", "Never", "٣s"]
        {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn errors_name_the_value_and_what_is_accepted() {
        let message = |text: &str| text.parse::<GoDuration>().unwrap_err().to_string();
        assert!(
            message("1d")
                .starts_with("invalid duration \"1d\": unknown unit \"d\"; expected numbers with units")
        );
        assert!(message("90").starts_with("invalid duration \"90\": a unit is missing"));
    }

    #[test]
    fn a_nillable_duration_keeps_its_text() {
        let expire: NillableDuration = "720h".parse().unwrap();
        assert_eq!(expire.duration(), Some(GoDuration::from_secs(720 * 3600)));
        assert_eq!((expire.as_str(), expire.to_string().as_str()), ("720h", "720h"));
        assert_eq!(NillableDuration::from(GoDuration::from_secs(60)).as_str(), "1m0s");
    }

    #[test]
    fn a_nillable_duration_that_is_too_long_is_the_longest_there_is() {
        for text in ["9999999h", "3000000h", "2562048h", "99999999999999999999s", "1h99999999999999999999m"] {
            let long: NillableDuration = text.parse().unwrap();
            assert_eq!((long.duration(), long.as_str()), (Some(GoDuration::MAX), text));
        }
        for text in ["99999999999999999999", "9999999d", "-9999999h"] {
            assert!(text.parse::<NillableDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn never_has_no_duration() {
        let never: NillableDuration = "Never".parse().unwrap();
        assert_eq!((never.duration(), never.to_string().as_str()), (None, "Never"));
        assert_eq!(never, NillableDuration::never());
        assert!("never".parse::<NillableDuration>().is_err());
    }

    #[test]
    fn seconds_saturate() {
        assert_eq!(GoDuration::from_secs(i64::MAX), GoDuration::from_nanos(i64::MAX));
        assert_eq!(SignedDuration::from(GoDuration::from_secs(-2)), SignedDuration::from_secs(-2));
    }
}

//! Reads a quantity text: sign, decimal number, suffix. Entry: [`read`].

use super::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, Format, LIMIT, NANOS_PER_UNIT, Quantity, QuantityError};

/// Kubernetes reads decimal numbers of up to this many digits directly into an integer.
const DIRECT_DIGITS: usize = 18;

/// For binary quantities the digits of the number and of the suffix, three per power of 1024, share these.
const DIRECT_BINARY_DIGITS: usize = 14;

/// A quantity that was read from a text.
pub(super) struct Reading {
    pub(super) quantity: Quantity,
    /// Whether Kubernetes writes the text back unchanged.
    pub(super) keeps_text: bool,
}

/// The number in front of the suffix.
struct Number<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    integer: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    /// Whether there is any digit at all, including the zeros left out above.
    has_digits: bool,
}

enum Suffix {
    Decimal { exponent: i32, format: Format },
    Binary { power_of_1024: usize },
}

pub(super) fn read(text: &str) -> Result<Reading, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (number, rest) = split_number(text);
    let Some(suffix) = read_suffix(rest) else {
        return Err(if number.has_digits {
            QuantityError::Suffix { value: text.to_owned(), suffix: rest.to_owned() }
        } else {
            QuantityError::NoDigits { value: text.to_owned() }
        });
    };
    // Kubernetes takes a missing number (`-`, `.`, `Ki`) for zero, but only on its direct path.
    let direct = reads_directly(&number, &suffix);
    if !number.has_digits && !direct {
        return Err(QuantityError::NoDigits { value: text.to_owned() });
    }
    let keeps_text = text == "0" || (direct && looks_canonical(&number, &suffix));
    Ok(Reading { quantity: quantity(&number, &suffix), keeps_text })
}

fn split_number(text: &str) -> (Number<'_>, &str) {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (integer, rest) = split_digits(unsigned);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let number = Number {
        negative: text.starts_with('-'),
        integer: integer.trim_start_matches('0'),
        fraction,
        has_digits: !(integer.is_empty() && fraction.is_empty()),
    };
    (number, rest)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn read_suffix(text: &str) -> Option<Suffix> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
        return Some(Suffix::Decimal { exponent: *exponent, format: Format::DecimalSi });
    }
    if let Some(index) = BINARY_SUFFIXES.iter().position(|suffix| *suffix == text) {
        return Some(Suffix::Binary { power_of_1024: index + 1 });
    }
    let exponent: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "Kubernetes keeps the low 32 bits of an exponent")]
    let exponent = exponent as i32;
    Some(Suffix::Decimal { exponent, format: Format::DecimalExponent })
}

/// Whether Kubernetes reads the number into a 64-bit integer at once. Only these texts may be written back
/// unchanged, and only these may lack digits.
fn reads_directly(number: &Number, suffix: &Suffix) -> bool {
    let integer_digits = number.integer.len().max(1);
    match suffix {
        Suffix::Decimal { exponent, .. } => {
            integer_digits + number.fraction.len() <= DIRECT_DIGITS
                && i64::from(*exponent) - length(number.fraction) >= -9
        }
        Suffix::Binary { power_of_1024 } => {
            number.fraction.is_empty() && integer_digits + 3 * power_of_1024 <= DIRECT_BINARY_DIGITS
        }
    }
}

/// The check by which Kubernetes decides that a text needs no rewriting. It is cheap rather than right:
/// signs, leading zeros and fractions of three, six or nine digits slip through.
fn looks_canonical(number: &Number, suffix: &Suffix) -> bool {
    match suffix {
        Suffix::Decimal { exponent, .. } => {
            let scale = i64::from(*exponent) - length(number.fraction);
            let digits = [number.integer, number.fraction].concat();
            scale % 3 == 0 && !number.integer.is_empty() && !digits.ends_with("000")
        }
        // The low three bits of a multiple of 1024 are zero, so one of them set rules out a larger suffix.
        Suffix::Binary { .. } => number.integer.parse::<u64>().is_ok_and(|value| value & 7 != 0),
    }
}

fn quantity(number: &Number, suffix: &Suffix) -> Quantity {
    let (magnitude, format) = match suffix {
        Suffix::Decimal { exponent, format } => (magnitude(number, *exponent, 0), *format),
        Suffix::Binary { power_of_1024 } => {
            let most = i128::from(i64::MAX) * NANOS_PER_UNIT;
            let magnitude = magnitude(number, 0, 10 * power_of_1024).min(most);
            // Less than one unit cannot be shown in powers of 1024.
            let decimal = magnitude > 0 && magnitude < NANOS_PER_UNIT;
            (magnitude, if decimal { Format::DecimalSi } else { Format::BinarySi })
        }
    };
    Quantity::from_nanos(if number.negative { -magnitude } else { magnitude }, format)
}

/// The number times `10^exponent * 2^shift` in nanos, rounded up, at most [`LIMIT`].
fn magnitude(number: &Number, exponent: i32, shift: usize) -> i128 {
    let digits = [number.integer.as_bytes(), number.fraction.as_bytes()].concat();
    // Move the decimal point so that the digits before it count nanos.
    let point = length(number.integer) + i64::from(exponent) + 9;
    let split = usize::try_from(point).unwrap_or(0).min(digits.len());
    let (whole_digits, part_digits) = digits.split_at(split);

    let append =
        |value: i128, digit: u8| value.saturating_mul(10).saturating_add(i128::from(digit - b'0')).min(LIMIT);
    let mut whole = whole_digits.iter().copied().fold(0, append);
    let mut missing_zeros = point - length_of(split);
    while missing_zeros > 0 && whole > 0 && whole < LIMIT {
        whole = append(whole, b'0');
        missing_zeros -= 1;
    }

    // From the last digit inwards, `part` is the scaled fraction so far, cut to an integer.
    let mut part = 0;
    let mut inexact = false;
    for digit in part_digits.iter().rev() {
        let scaled = part + (i128::from(digit - b'0') << shift);
        inexact |= scaled % 10 != 0;
        part = scaled / 10;
    }
    let mut leading_zeros = -point;
    while leading_zeros > 0 && part > 0 {
        inexact |= part % 10 != 0;
        part /= 10;
        leading_zeros -= 1;
    }

    whole.saturating_mul(1 << shift).saturating_add(part + i128::from(inexact)).min(LIMIT)
}

fn length(text: &str) -> i64 {
    length_of(text.len())
}

fn length_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::rewritten;
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: i128, format: Format) {
        let quantity = read(text).unwrap().quantity;
        assert_eq!((quantity.nanos(), quantity.format()), (nanos, format), "{text}");
    }

    #[test]
    fn every_suffix_family_is_read() {
        check("1n", 1, Format::DecimalSi);
        check("3u", 3_000, Format::DecimalSi);
        check("250m", 250_000_000, Format::DecimalSi);
        check("-.5", -500_000_000, Format::DecimalSi);
        check("5.", 5 * NANOS_PER_UNIT, Format::DecimalSi);
        check("2E", 2 * 10_i128.pow(27), Format::DecimalSi);
        check("2E3", 2_000 * NANOS_PER_UNIT, Format::DecimalExponent);
        check("25e-1", 2_500_000_000, Format::DecimalExponent);
        check("1.5Ki", 1536 * NANOS_PER_UNIT, Format::BinarySi);
    }

    #[test]
    fn more_than_nano_precision_rounds_away_from_zero() {
        check("0.0000000001", 1, Format::DecimalSi);
        check("-0.0000000011", -2, Format::DecimalSi);
        check("1.0000000000000000000000000000000000000000000001", NANOS_PER_UNIT + 1, Format::DecimalSi);
        check("1e-2147483648", 1, Format::DecimalExponent);
        check("0.00000000000001Ki", 1, Format::DecimalSi);
        check("0e-20", 0, Format::DecimalExponent);
    }

    #[test]
    fn binary_values_are_capped_at_the_largest_int64() {
        let most = i128::from(i64::MAX) * NANOS_PER_UNIT;
        check("8Ei", most, Format::BinarySi);
        check("-99999999999999999999999999999999999999999999999999Ki", -most, Format::BinarySi);
        check("7.5Ei", 15 * (1 << 59) * NANOS_PER_UNIT, Format::BinarySi);
    }

    #[test]
    fn a_binary_value_below_one_becomes_decimal() {
        check("0.0001Ki", 102_400_000, Format::DecimalSi);
        check("0Ki", 0, Format::BinarySi);
    }

    #[test]
    fn exponents_keep_their_low_32_bits() {
        check("7e4294967297", 70 * NANOS_PER_UNIT, Format::DecimalExponent);
        assert!(read("1e9223372036854775808").is_err());
    }

    #[test]
    fn a_missing_number_is_zero_where_kubernetes_says_so() {
        for text in ["+", "-", ".", "-.", "m", "Ki", "Ti", "e5", ".e-9"] {
            assert!(read(text).unwrap().quantity.is_zero(), "{text}");
        }
        for text in ["Pi", ".Ei", "e-10", "-e-20"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_errors() {
        for text in
            ["", " ", "1 ", "1.2.3", "--1", "1e", "1e+", "1e1.5", "1KB", "1ki", "1mi", "1i", "0x1", "١"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_that_look_canonical_are_written_back_unchanged() {
        for text in ["0", "+5", "1.500", "01", "5.", "1E3", "1e+3", "100Ki", "+01.Mi", "1500m"] {
            assert_eq!(rewritten(text).unwrap(), text);
        }
    }

    #[test]
    fn other_texts_are_rewritten_canonically() {
        for (text, written) in [
            ("1.5", "1500m"),
            ("0.500", "500m"),
            ("1000", "1k"),
            ("1.000", "1"),
            ("1024Ki", "1Mi"),
            ("8Ki", "8Ki"),
            ("+00", "0"),
            ("1e4", "10e3"),
        ] {
            assert_eq!(rewritten(text).unwrap(), written);
        }
    }
}

//! Quantities, money and durations as people write them: `744.1 CPU`, `8 Ti memory`, `$3,287,361/month`, `2h5m`.
//!
//! These texts are for reading, not for parsing: large amounts are rounded to what an eye takes in. A quantity that
//! is not zero never looks like zero.

use jiff::SignedDuration;

use crate::{Format, Quantity};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Binary units; the entry at index `i` stands for 1024 to the power `i`.
const BINARY_UNITS: [&str; 7] = ["B", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// An amount of a resource with its name: `744.1 CPU`, `500m CPU`, `8 Ti memory`, `3 pods`, `1 nvidia.com/gpu`.
pub fn quantity(resource: &str, value: Quantity) -> String {
    let name = match resource {
        "cpu" => "CPU",
        "ephemeral-storage" => "ephemeral storage",
        "pods" if value.nanos().abs() == NANOS_PER_UNIT => "pod",
        other => other,
    };
    format!("{} {name}", amount(resource, value))
}

/// An amount of a resource without its name, for tables that name it in their head: `744.1`, `500m`, `8 Ti`, `3`.
pub fn amount(resource: &str, value: Quantity) -> String {
    let magnitude = Quantity::from_nanos(value.nanos().saturating_abs(), value.format());
    let text = if in_bytes(resource, magnitude) { bytes(magnitude) } else { count(magnitude) };
    if value.sign() < 0 { format!("-{text}") } else { text }
}

/// Whether a resource is counted in bytes: by its name, or because somebody wrote it in powers of 1024.
fn in_bytes(resource: &str, value: Quantity) -> bool {
    matches!(resource, "memory" | "ephemeral-storage" | "storage")
        || resource.starts_with("hugepages-")
        || (value.format() == Format::BinarySi && value.nanos() >= 1024 * NANOS_PER_UNIT && resource != "cpu")
}

/// Whole units and thousandths, exactly; below one unit, thousandths alone.
fn count(value: Quantity) -> String {
    let millis = divided_up(value.nanos(), NANOS_PER_MILLI);
    if millis > 0 && millis < 1000 {
        return format!("{millis}m");
    }
    let fraction = format!("{:03}", millis % 1000);
    with_fraction(millis / 1000, &fraction)
}

/// Bytes in the largest unit of which there is at least one, with at most two digits after the point.
fn bytes(value: Quantity) -> String {
    let bytes = divided_up(value.nanos(), NANOS_PER_UNIT);
    let mut unit = 0;
    // In hundredths, so that 1023.999 Gi becomes 1 Ti and not 1024 Gi.
    let hundredths = |unit: usize| (bytes * 100 + ((1_i128 << (10 * unit)) >> 1)) >> (10 * unit);
    while unit + 1 < BINARY_UNITS.len() && hundredths(unit) >= 102_400 {
        unit += 1;
    }
    let rounded = hundredths(unit);
    let fraction = format!("{:02}", rounded % 100);
    // From a hundred on, the first digit after the point is enough.
    let number = if rounded >= 10_000 {
        let tenths = (rounded + 5) / 10;
        with_fraction(tenths / 10, &(tenths % 10).to_string())
    } else {
        with_fraction(rounded / 100, &fraction)
    };
    format!("{number} {}", BINARY_UNITS[unit])
}

/// A quotient of what is not negative, rounded up.
fn divided_up(value: i128, step: i128) -> i128 {
    value / step + i128::from(value % step != 0)
}

fn with_fraction(whole: i128, fraction: &str) -> String {
    let whole = separated(&whole.to_string());
    match fraction.trim_end_matches('0') {
        "" => whole,
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Digits in groups of three.
fn separated(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The span of time that an amount of money is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// An hour.
    Hour,
    /// A month.
    Month,
}

/// An amount of US dollars with what it is for: `$0.12/hour`, `$3,287,361/month`.
///
/// From a thousand dollars on, cents are left out; below one dollar there are at least two digits that are not zero.
pub fn money(dollars: f64, per: Per) -> String {
    let per = match per {
        Per::Hour => "hour",
        Per::Month => "month",
    };
    if is_known(dollars) { format!("{}/{per}", price(dollars)) } else { price(dollars) }
}

/// Providers say that a price is unknown with the largest number.
fn is_known(dollars: f64) -> bool {
    dollars.abs() < 1e15
}

/// An amount of US dollars, for tables that say in their head what it is for: `$0.12`, `$3,287,361`.
pub fn price(dollars: f64) -> String {
    if !is_known(dollars) {
        return "an unknown price".to_owned();
    }
    let magnitude = dollars.abs();
    let decimals: usize = match magnitude {
        0.0 | 999.995.. => 0,
        0.1.. => 2,
        0.01.. => 3,
        0.001.. => 4,
        0.0001.. => 5,
        _ => 6,
    };
    let text = format!("{magnitude:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // Cents have two digits, or none at all.
    let fraction = fraction.get(..2).map_or(fraction, |cents| {
        let finer = fraction[2..].trim_end_matches('0');
        if finer.is_empty() && cents == "00" { "" } else { &fraction[..2 + finer.len()] }
    });
    let sign = if dollars < 0.0 && text.contains(|digit| ('1'..='9').contains(&digit)) { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}${}{point}{fraction}", separated(whole))
}

/// A span of time in its two largest units: `350ms`, `1.5s`, `14m`, `2h5m`, `3d`. What is smaller is cut off, as
/// `kubectl` does with ages.
pub fn duration(duration: SignedDuration) -> String {
    let sign = if duration.is_negative() { "-" } else { "" };
    let magnitude = duration.unsigned_abs();
    let (seconds, millis) = (magnitude.as_secs(), u64::from(magnitude.subsec_millis()));
    let text = match seconds {
        0 if millis == 0 && !magnitude.is_zero() => "1ms".to_owned(),
        0 if millis > 0 => format!("{millis}ms"),
        1..10 if millis >= 100 => format!("{seconds}.{}s", millis / 100),
        0..60 => format!("{seconds}s"),
        60..3_600 => two_units(seconds / 60, 'm', seconds % 60, 's'),
        3_600..86_400 => two_units(seconds / 3_600, 'h', seconds / 60 % 60, 'm'),
        _ => two_units(seconds / 86_400, 'd', seconds / 3_600 % 24, 'h'),
    };
    format!("{sign}{text}")
}

fn two_units(large: u64, large_unit: char, small: u64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_unit_and_the_name_that_people_use() {
        for (resource, value, text) in [
            ("cpu", "744100m", "744.1 CPU"),
            ("cpu", "1k", "1,000 CPU"),
            ("cpu", "4", "4 CPU"),
            ("cpu", "500m", "500m CPU"),
            ("cpu", "1500m", "1.5 CPU"),
            ("cpu", "3935m", "3.935 CPU"),
            ("cpu", "999m", "999m CPU"),
            ("cpu", "1n", "1m CPU"),
            ("cpu", "0", "0 CPU"),
            ("cpu", "-500m", "-500m CPU"),
            ("cpu", "4Ki", "4,096 CPU"),
            ("memory", "8388618Mi", "8 Ti memory"),
            ("memory", "1536Mi", "1.5 Gi memory"),
            ("memory", "15.25Gi", "15.25 Gi memory"),
            ("memory", "124987Mi", "122.1 Gi memory"),
            ("memory", "1023.999Gi", "1 Ti memory"),
            ("memory", "1G", "953.7 Mi memory"),
            ("memory", "128974848", "123 Mi memory"),
            ("memory", "100m", "1 B memory"),
            ("memory", "1000", "1,000 B memory"),
            ("memory", "0", "0 B memory"),
            ("memory", "-2Gi", "-2 Gi memory"),
            ("ephemeral-storage", "20Gi", "20 Gi ephemeral storage"),
            ("hugepages-2Mi", "4Mi", "4 Mi hugepages-2Mi"),
            ("pods", "110", "110 pods"),
            ("pods", "1", "1 pod"),
            ("nvidia.com/gpu", "8", "8 nvidia.com/gpu"),
            ("example.com/bytes", "2Gi", "2 Gi example.com/bytes"),
            ("memory", "1e29", "86,736,173,798.8 Ei memory"),
        ] {
            assert_eq!(quantity(resource, value.parse().unwrap()), text, "{resource} {value}");
        }
    }

    #[test]
    fn amounts_are_quantities_without_the_name() {
        for (resource, value, text) in
            [("cpu", "1500m", "1.5"), ("memory", "8Gi", "8 Gi"), ("pods", "1", "1")]
        {
            assert_eq!(amount(resource, value.parse().unwrap()), text);
        }
    }

    #[test]
    fn the_ends_of_the_scale_are_printed_too() {
        assert_eq!(amount("cpu", Quantity::MIN), "-100,000,000,000,000,000,000,000,000,000");
        assert_eq!(amount("memory", Quantity::MAX), amount("memory", "1e29".parse().unwrap()));
    }

    #[test]
    fn money_has_separators_a_unit_and_no_useless_digits() {
        for (dollars, text) in [
            (3_287_361.29, "$3,287,361/hour"),
            (1000.0, "$1,000/hour"),
            (999.999, "$1,000/hour"),
            (999.99, "$999.99/hour"),
            (12.0, "$12/hour"),
            (12.3, "$12.30/hour"),
            (0.12, "$0.12/hour"),
            (0.1, "$0.10/hour"),
            (0.0116, "$0.012/hour"),
            (0.0052, "$0.0052/hour"),
            (0.02, "$0.02/hour"),
            (0.000_000_1, "$0/hour"),
            (0.0, "$0/hour"),
            (-0.0, "$0/hour"),
            (-1234.5, "-$1,234/hour"),
            (-0.5, "-$0.50/hour"),
            (f64::INFINITY, "an unknown price"),
            (f64::NAN, "an unknown price"),
        ] {
            assert_eq!(money(dollars, Per::Hour), text, "{dollars}");
        }
        assert_eq!(money(3_287_361.29, Per::Month), "$3,287,361/month");
    }

    #[test]
    fn durations_have_their_two_largest_units() {
        for (milliseconds, text) in [
            (0, "0s"),
            (1, "1ms"),
            (350, "350ms"),
            (1_000, "1s"),
            (1_550, "1.5s"),
            (12_900, "12s"),
            (60_000, "1m"),
            (14 * 60_000, "14m"),
            (90_000, "1m30s"),
            (125 * 60_000 + 59_999, "2h5m"),
            (24 * 3_600_000, "1d"),
            (3 * 86_400_000, "3d"),
            (3 * 86_400_000 + 7_200_000, "3d2h"),
            (-90_000, "-1m30s"),
        ] {
            assert_eq!(duration(SignedDuration::from_millis(milliseconds)), text, "{milliseconds}");
        }
        assert_eq!(duration(SignedDuration::from_nanos(1)), "1ms");
        assert_eq!(duration(SignedDuration::MIN), "-106751991167300d15h");
    }
}

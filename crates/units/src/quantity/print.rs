//! Prints a quantity in canonical form through its `Display`.

use std::fmt;

use super::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, Format, NANOS_PER_UNIT, Quantity};

/// Binary suffixes are used from this magnitude on; below it decimal ones are easier to read.
const FIRST_BINARY: i128 = 1024 * NANOS_PER_UNIT;

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&canonical(*self))
    }
}

fn canonical(quantity: Quantity) -> String {
    let nanos = quantity.nanos();
    if nanos == 0 {
        return "0".to_owned();
    }
    let fits_binary = nanos.abs() >= FIRST_BINARY && nanos % NANOS_PER_UNIT == 0;
    match quantity.format() {
        Format::BinarySi if fits_binary => binary(nanos / NANOS_PER_UNIT),
        Format::BinarySi | Format::DecimalSi => decimal(nanos),
        Format::DecimalExponent => exponent(nanos),
    }
}

/// Kubernetes has no suffix beyond the largest one and so prints 1000E as `1`; here the number grows instead.
fn decimal(nanos: i128) -> String {
    let (number, steps) = strip_factors(nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
    format!("{number}{}", DECIMAL_SUFFIXES[steps].0)
}

fn binary(units: i128) -> String {
    match strip_factors(units, 1024, BINARY_SUFFIXES.len()) {
        (number, 0) => number.to_string(),
        (number, steps) => format!("{number}{}", BINARY_SUFFIXES[steps - 1]),
    }
}

fn exponent(nanos: i128) -> String {
    // An i128 holds no more than twelve factors of a thousand.
    let (number, steps) = strip_factors(nanos, 1000, 12);
    match steps {
        0..3 => format!("{number}e-{}", 9 - 3 * steps),
        3 => number.to_string(),
        _ => format!("{number}e{}", 3 * steps - 9),
    }
}

/// Divides by `factor` while nothing is lost, at most `most` times, and counts the divisions.
fn strip_factors(mut number: i128, factor: i128, most: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < most && number % factor == 0 {
        number /= factor;
        steps += 1;
    }
    (number, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, printed: &str) {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), printed);
    }

    #[test]
    fn decimal_values_use_the_largest_suffix_without_a_fraction() {
        check("1.5", "1500m");
        check("0.000001", "1u");
        check("1000000", "1M");
        check("-12340", "-12340");
        check("100e16", "1e18");
    }

    #[test]
    fn binary_values_use_powers_of_1024_only_when_exact_and_large_enough() {
        check("1.5Gi", "1536Mi");
        check("1.0005Ki", "1024512m");
        check("0.5Ki", "512");
        check("1.0009765625Ki", "1025");
        check("8Ei", "9223372036854775807");
        check("62.5Ki", "64000");
    }

    #[test]
    fn exponents_are_multiples_of_three() {
        check("12e4", "120e3");
        check("1e-1", "100e-3");
        check("5e0", "5");
        check("1e29", "100e27");
    }

    #[test]
    fn values_beyond_the_largest_suffix_keep_it() {
        check("5000E", "5000E");
        let zebibyte = "1Ei".parse::<Quantity>().unwrap().nanos() * 1024;
        assert_eq!(Quantity::from_nanos(zebibyte, Format::BinarySi).to_string(), "1024Ei");
    }

    #[test]
    fn width_and_alignment_are_honoured() {
        assert_eq!(format!("{:>6}", "1500m".parse::<Quantity>().unwrap()), " 1500m");
    }
}

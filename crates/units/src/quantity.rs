//! Kubernetes quantities (`500m`, `1.5Gi`, `1e3`) as exact fixed-point numbers. Entry: [`Quantity`].
//!
//! A quantity is a whole number of nanos, the smallest step Kubernetes knows, together with the suffix family
//! it is printed in. Kubernetes itself computes without an upper bound for decimal quantities; here every
//! value saturates at [`Quantity::MAX`] (10^29, a hundred billion exa), far beyond any cluster.

mod parse;
mod print;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The largest magnitude in nanos: the largest power of ten that fits, so that a saturated value prints as a
/// round number.
const LIMIT: i128 = 10_i128.pow(38);

/// Decimal suffixes with their power of ten, smallest first, without gaps in steps of three.
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Binary suffixes; the entry at index `i` stands for 1024 to the power `i + 1`.
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const EXPECTED: &str = "expected a number with an optional suffix: one of n u m k M G T P E, \
     one of Ki Mi Gi Ti Pi Ei, or an exponent such as e3 or E-3";

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is empty.
    #[error("invalid quantity \"\": it is empty; {EXPECTED}")]
    Empty,
    /// The text has no digits where a number is needed.
    #[error("invalid quantity {value:?}: it has no digits; {EXPECTED}")]
    NoDigits {
        /// The whole text.
        value: String,
    },
    /// What follows the number is not a suffix.
    #[error("invalid quantity {value:?}: unknown suffix {suffix:?}; {EXPECTED}")]
    Suffix {
        /// The whole text.
        value: String,
        /// The part after the number.
        suffix: String,
    },
}

/// The family of suffixes a quantity is printed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Powers of a thousand: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// Powers of ten written out: `e3`, `e-6`.
    DecimalExponent,
}

/// An exact amount of a resource.
///
/// Equality and order look at the value only, so `1Ki == 1024`. Printing gives the canonical form: no
/// fraction, no lost precision, the largest suffix of the quantity's own family.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing, in decimal format.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };
    /// The value at which everything larger saturates: 10^29.
    pub const MAX: Self = Self { nanos: LIMIT, format: Format::DecimalSi };
    /// The value at which everything smaller saturates: -10^29.
    pub const MIN: Self = Self { nanos: -LIMIT, format: Format::DecimalSi };

    /// A whole number of units.
    pub const fn from_units(units: i64, format: Format) -> Self {
        // An i64 times 10^9 stays below the limit of 10^38.
        Self { nanos: units as i128 * NANOS_PER_UNIT, format }
    }

    /// A whole number of thousandths.
    pub const fn from_millis(millis: i64, format: Format) -> Self {
        Self { nanos: millis as i128 * NANOS_PER_MILLI, format }
    }

    /// A whole number of billionths, saturating at [`Quantity::MIN`] and [`Quantity::MAX`].
    pub fn from_nanos(nanos: i128, format: Format) -> Self {
        Self { nanos: nanos.clamp(-LIMIT, LIMIT), format }
    }

    /// The exact value in billionths.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// The value in thousandths, rounded away from zero and saturating at the bounds of `i64`.
    pub fn milli_value(self) -> i64 {
        self.rounded_to(NANOS_PER_MILLI)
    }

    /// The value in units, rounded away from zero and saturating at the bounds of `i64`.
    pub fn value(self) -> i64 {
        self.rounded_to(NANOS_PER_UNIT)
    }

    /// The nearest floating-point value, for metrics and prices.
    #[expect(clippy::cast_precision_loss, reason = "an approximation is what the caller asks for")]
    pub fn as_f64(self) -> f64 {
        // Dividing rounds once if the nanos convert exactly; beyond that adding the fraction loses less.
        if self.nanos.unsigned_abs() < 1 << f64::MANTISSA_DIGITS {
            self.nanos as f64 / NANOS_PER_UNIT as f64
        } else {
            let fraction = (self.nanos % NANOS_PER_UNIT) as f64 / NANOS_PER_UNIT as f64;
            (self.nanos / NANOS_PER_UNIT) as f64 + fraction
        }
    }

    /// The suffix family this quantity prints with.
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same value printed in another suffix family.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { nanos: self.nanos, format }
    }

    /// Whether the value is zero.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// -1, 0 or 1, as the value is negative, zero or positive.
    pub const fn sign(self) -> i32 {
        self.nanos.signum() as i32
    }

    fn rounded_to(self, step: i128) -> i64 {
        let whole = self.nanos / step;
        let rest = (self.nanos % step).signum();
        i64::try_from(whole + rest).unwrap_or(if self.nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// The result of adding or subtracting: a zero has no suffix family of its own and takes the other's.
    fn with_result(self, other: Self, nanos: i128) -> Self {
        Self::from_nanos(nanos, if self.is_zero() { other.format } else { self.format })
    }
}

/// The text Kubernetes writes after reading `text` and changing nothing.
///
/// It keeps the text as it was when a cheap check finds it near enough to canonical (`+5`, `1.500` and `1E3`
/// stay), and otherwise writes the canonical form (`1.5` becomes `1500m`). Once a quantity took part in
/// arithmetic only the canonical form, that is `Display`, remains.
pub fn rewritten(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let reading = parse::read(text)?;
    Ok(if reading.keeps_text { Cow::Borrowed(text) } else { Cow::Owned(reading.quantity.to_string()) })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Accepts what Kubernetes accepts. Values finer than a nano are rounded away from zero, binary ones are
    /// capped at 2^63-1 in magnitude. In JSON, Kubernetes also takes bare numbers and trims white space; that
    /// is left to the caller.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::read(text).map(|reading| reading.quantity)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with_result(other, self.nanos.saturating_add(other.nanos))
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with_result(other, self.nanos.saturating_sub(other.nanos))
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { nanos: -self.nanos, format: self.format }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap()
    }

    #[test]
    fn equal_values_in_different_formats_are_equal() {
        assert_eq!(quantity("1Ki"), quantity("1024"));
        assert_eq!(quantity("1e3"), quantity("1k"));
        assert!(quantity("999m") < quantity("1"));
    }

    #[test]
    fn a_zero_takes_the_format_of_what_is_added_to_it() {
        assert_eq!((quantity("0") + quantity("1Gi")).to_string(), "1Gi");
        assert_eq!((quantity("0Ki") - quantity("2k")).to_string(), "-2k");
        assert_eq!((quantity("1k") + quantity("1Ki")).to_string(), "2024");
        assert_eq!((quantity("0") + quantity("0Ki")).format(), Format::BinarySi);
    }

    #[test]
    fn values_round_away_from_zero() {
        for (text, value, millis) in
            [("1500m", 2, 1500), ("-1500m", -2, -1500), ("1n", 1, 1), ("-1n", -1, -1), ("2", 2, 2000)]
        {
            assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, millis), "{text}");
        }
    }

    #[test]
    fn everything_saturates_instead_of_overflowing() {
        assert_eq!(quantity("1e2147483647"), Quantity::MAX);
        assert_eq!(quantity("-1e40"), Quantity::MIN);
        assert_eq!(Quantity::MAX + Quantity::MAX, Quantity::MAX);
        assert_eq!(Quantity::MIN - Quantity::MAX, Quantity::MIN);
        assert_eq!(-Quantity::MIN, Quantity::MAX);
        assert_eq!(Quantity::MAX.value(), i64::MAX);
        assert_eq!(Quantity::MIN.milli_value(), i64::MIN);
        assert_eq!(Quantity::MAX.to_string(), "100000000000E");
    }

    #[test]
    fn constructors_scale_and_keep_the_format() {
        assert_eq!(Quantity::from_units(2048, Format::BinarySi).to_string(), "2Ki");
        assert_eq!(Quantity::from_millis(1500, Format::DecimalSi).to_string(), "1500m");
        assert_eq!(Quantity::from_nanos(1_000, Format::DecimalExponent).to_string(), "1e-6");
        assert_eq!(quantity("2Ki").with_format(Format::DecimalSi).to_string(), "2048");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these conversions are exact to the last bit")]
    fn floats_are_the_nearest_ones() {
        assert_eq!(quantity("100m").as_f64(), 0.1);
        assert_eq!(quantity("8Ei").as_f64(), 9_223_372_036_854_775_807.0);
        assert_eq!(quantity("-1100m").as_f64(), -1.1);
    }

    #[test]
    fn signs_are_minus_one_zero_and_one() {
        assert_eq!(["-1n", "0", "5Gi"].map(|text| quantity(text).sign()), [-1, 0, 1]);
        assert!(quantity("0Ki").is_zero());
    }

    #[test]
    fn a_sum_takes_the_format_of_its_first_nonzero_quantity() {
        let total: Quantity = ["0", "1Gi", "1k"].into_iter().map(quantity).sum();
        assert_eq!(total.format(), Format::BinarySi);
        assert_eq!(total.nanos(), (1_073_741_824 + 1000) * NANOS_PER_UNIT);
    }

    #[test]
    fn errors_name_the_value_and_what_is_accepted() {
        let message = "1KB".parse::<Quantity>().unwrap_err().to_string();
        assert!(message.starts_with("invalid quantity \"1KB\": unknown suffix \"KB\"; expected a number"));
        assert_eq!("".parse::<Quantity>(), Err(QuantityError::Empty));
        assert!(matches!("cpu".parse::<Quantity>(), Err(QuantityError::NoDigits { .. })));
    }
}

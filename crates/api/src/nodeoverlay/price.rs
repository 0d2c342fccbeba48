//! What a NodeOverlay does to a price. Entry: [`Price`].

use std::str::FromStr;

/// What a NodeOverlay does to a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Price {
    /// It replaces it.
    Absolute(f64),
    /// It adds something to it, or takes it off.
    Difference(f64),
    /// It changes it by so many percent.
    Percent(f64),
}

/// A text that says nothing about prices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value {value:?}; expected a price such as \"1.2\", \"+0.5\" or \"-10%\"")]
pub struct InvalidPrice {
    /// The text.
    pub value: String,
}

impl FromStr for Price {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        let invalid = || InvalidPrice { value: text.to_owned() };
        let (sign, rest) = match text.as_bytes().first() {
            Some(b'+') => (1.0, &text[1..]),
            Some(b'-') => (-1.0, &text[1..]),
            _ => (0.0, text),
        };
        let (digits, is_percent) = rest.strip_suffix('%').map_or((rest, false), |digits| (digits, true));
        // Numbers as people write prices: no exponents, no infinity.
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(invalid());
        }
        let number: f64 = digits.parse().map_err(|_| invalid())?;
        if !number.is_finite() {
            return Err(invalid());
        }
        match (sign == 0.0, is_percent) {
            (true, true) => Err(invalid()),
            (true, false) => Ok(Self::Absolute(number)),
            (false, true) => Ok(Self::Percent(sign * number)),
            (false, false) => Ok(Self::Difference(sign * number)),
        }
    }
}

impl Price {
    /// What becomes of a price. Nothing costs less than nothing.
    pub fn of(self, price: f64) -> f64 {
        let changed = match self {
            Self::Absolute(price) => price,
            Self::Difference(difference) => price + difference,
            Self::Percent(percent) => price * (1.0 + percent / 100.0),
        };
        changed.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_replaced_changed_by_an_amount_or_by_percent_and_never_negative() {
        for (text, price, expected) in [
            ("-10%", 10.0, 9.0),
            ("+10%", 10.0, 11.0),
            ("-50%", 10.0, 5.0),
            ("+100%", 10.0, 20.0),
            ("-100%", 10.0, 0.0),
            ("-200%", 10.0, 0.0),
            ("-25%", 1.5, 1.125),
            ("+0", 10.0, 10.0),
            ("+5", 10.0, 15.0),
            ("-2.5", 10.0, 7.5),
            ("-10", 10.0, 0.0),
            ("-15", 10.0, 0.0),
            ("+0.75", 1.5, 2.25),
            ("+100", 1.5, 101.5),
            ("+0.0001", 1.0, 1.0001),
            ("3.5", 10.0, 3.5),
            ("0", 10.0, 0.0),
            ("-.5", 1.0, 0.5),
        ] {
            let change: Price = text.parse().unwrap();
            assert!((change.of(price) - expected).abs() < 1e-9, "{text} of {price}: {}", change.of(price));
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in ["", "+", "%", "10%", "1e3", "inf", "-inf", "nan", "1.2.3", "$1", "+-1", &"9".repeat(400)]
        {
            assert_eq!(text.parse::<Price>(), Err(InvalidPrice { value: text.to_owned() }), "{text}");
        }
    }
}

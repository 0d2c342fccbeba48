//! How many nodes a disruption budget allows: a number, or a percentage of the pool. Entry: [`BudgetNodes`].

use std::fmt;
use std::str::FromStr;

/// Why a text is not a number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetNodesError {
    /// The text is neither an integer nor an integer followed by a percent sign.
    #[error(
        "invalid number of nodes {value:?}: expected a whole number such as 5 or a percentage such as 10%"
    )]
    Malformed {
        /// The whole text.
        value: String,
    },
}

/// The `nodes` value of a disruption budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetNodes {
    /// A fixed number of nodes.
    Count(i32),
    /// A percentage of the nodes in the pool.
    Percent(i64),
}

impl BudgetNodes {
    /// How many of `nodes` may be disrupted. A share of a node counts as a whole one, so that a small pool is
    /// not blocked by a small percentage.
    ///
    /// The bounds of `i32` limit the result; the upper one is Karpenter's value for "no limit".
    pub fn resolve(self, nodes: usize) -> i32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let hundredths =
                    i128::from(percent).saturating_mul(i128::try_from(nodes).unwrap_or(i128::MAX));
                // Euclidean division rounds down; negating around it rounds up.
                let allowed = -(-hundredths).div_euclid(100);
                i32::try_from(allowed).unwrap_or(if allowed < 0 { i32::MIN } else { i32::MAX })
            }
        }
    }
}

impl FromStr for BudgetNodes {
    type Err = BudgetNodesError;

    /// Admission allows only digits and at most 100%. Like Karpenter itself, this also reads what an object
    /// that passed some other admission could hold: signs and larger percentages.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let integer = |digits: &str| {
            digits.parse::<i64>().map_err(|_| BudgetNodesError::Malformed { value: text.to_owned() })
        };
        if let Some(percent) = text.strip_suffix('%') {
            return integer(percent).map(Self::Percent);
        }
        #[expect(clippy::cast_possible_truncation, reason = "Karpenter keeps the low 32 bits of a count")]
        integer(text).map(|count| Self::Count(count as i32))
    }
}

impl fmt::Display for BudgetNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nodes: usize, allowed: i32) {
        assert_eq!(text.parse::<BudgetNodes>().unwrap().resolve(nodes), allowed, "{text} of {nodes}");
    }

    #[test]
    fn a_count_is_taken_as_it_is() {
        check("5", 100, 5);
        check("0", 100, 0);
        check("2147483647", 1, i32::MAX);
    }

    #[test]
    fn a_percentage_rounds_up() {
        check("10%", 1, 1);
        check("10%", 10, 1);
        check("10%", 11, 2);
        check("0%", 1000, 0);
        check("100%", 7, 7);
        check("1%", 0, 0);
        check("-50%", 3, -1);
    }

    #[test]
    fn a_count_beyond_32_bits_wraps_as_in_karpenter() {
        check("2147483648", 1, i32::MIN);
        check("4294967297", 1, 1);
        assert!("9223372036854775808".parse::<BudgetNodes>().is_err());
    }

    #[test]
    fn huge_percentages_saturate() {
        check("9223372036854775807%", usize::MAX, i32::MAX);
        check("-9223372036854775808%", usize::MAX, i32::MIN);
    }

    #[test]
    fn malformed_texts_are_errors_that_name_the_value() {
        for text in ["", "%", "10%%", "1.5%", "ten", " 5", "10 %", "0x5"] {
            let message = text.parse::<BudgetNodes>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("invalid number of nodes {text:?}: expected")), "{message}");
        }
    }

    #[test]
    fn values_print_as_they_are_written() {
        for text in ["10%", "5"] {
            assert_eq!(text.parse::<BudgetNodes>().unwrap().to_string(), text);
        }
    }
}

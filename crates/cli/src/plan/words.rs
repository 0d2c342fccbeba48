//! Numbers and names in words.

use units::human::{self, Per};

/// How many names a line shows.
const SHOWN: usize = 3;

/// `1 node`, `2 nodes`.
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// As [`counted`], with what is done: `1 pod stays`, `2 pods stay`.
pub(super) fn counted_verb(count: usize, what: &str, one: &str, many: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { one } else { many })
}

/// The first few of some names, and how many others there are.
pub(super) fn some(names: &[String]) -> String {
    at_most(names, SHOWN)
}

/// The first of some names, and how many others there are.
pub(super) fn at_most(names: &[String], shown: usize) -> String {
    let first = names.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > shown { format!("{first} and {} more", names.len() - shown) } else { first }
}

/// What is left of a price. Sums that cancel each other out leave no crumbs.
pub(super) fn after(before: f64, saved: f64) -> f64 {
    let after = before - saved;
    if after.abs() < 1e-9 { 0.0 } else { after }
}

/// What all costs before and after, and how much that is less or more.
pub(super) fn prices(before: f64, saved: f64) -> String {
    let share = if before > 0.0 { saved / before * 100.0 } else { 0.0 };
    let per_hour = |dollars| human::money(dollars, Per::Hour);
    let change = match share {
        _ if share.abs() < 0.05 => "no change".to_owned(),
        _ if share < 0.0 => format!("{:.1} % more", -share),
        _ => format!("{share:.1} % less: saves {}", per_month(saved)),
    };
    format!("Price: {} now, {} afterwards ({change})", per_hour(before), per_hour(after(before, saved)))
}

/// What something that costs so much per hour costs in a month.
pub(super) fn per_month(per_hour: f64) -> String {
    /// Hours in a month, as clouds count them.
    const HOURS: f64 = 730.0;
    human::money(per_hour * HOURS, Per::Month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!((counted(1, "pod"), counted(0, "pod")), ("1 pod".to_owned(), "0 pods".to_owned()));
        assert_eq!(counted_verb(2, "pod", "goes", "go"), "2 pods go");
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(
            (some(&names[..3]), some(&names)),
            ("a, b, c".to_owned(), "a, b, c and 1 more".to_owned())
        );
    }

    #[test]
    fn a_price_that_rises_is_not_called_less() {
        for (before, saved, expected) in [
            (2.0, 0.5, "Price: $2/hour now, $1.50/hour afterwards (25.0 % less: saves $365/month)"),
            (2.0, -0.5, "Price: $2/hour now, $2.50/hour afterwards (25.0 % more)"),
            (0.3, 0.1 + 0.2, "Price: $0.30/hour now, $0/hour afterwards (100.0 % less: saves $219/month)"),
            (0.0, 0.0, "Price: $0/hour now, $0/hour afterwards (no change)"),
            (2.0, -0.0, "Price: $2/hour now, $2/hour afterwards (no change)"),
        ] {
            assert_eq!(prices(before, saved), expected);
        }
    }
}

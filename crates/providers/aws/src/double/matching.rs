//! Which things satisfy filters, as EC2 sees it.

use crate::port::{Filter, Tags};

/// Whether something with these tags and attributes satisfies all filters. A star stands for any text.
pub(super) fn satisfies(filters: &[Filter], tags: &Tags, attribute: impl Fn(&str) -> Vec<String>) -> bool {
    filters.iter().all(|filter| {
        let fits = |value: &str| filter.values.iter().any(|wanted| is_like(wanted, value));
        if filter.name == "tag-key" {
            return tags.keys().any(|key| fits(key));
        }
        match filter.name.strip_prefix("tag:") {
            Some(key) => tags.get(key).is_some_and(|value| fits(value)),
            None => attribute(&filter.name).iter().any(|value| fits(value)),
        }
    })
}

fn is_like(pattern: &str, value: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == value,
        Some((before, after)) => value.strip_prefix(before).is_some_and(|rest| {
            after.is_empty()
                || (0..=rest.len()).any(|at| rest.is_char_boundary(at) && is_like(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_filters_must_hold_and_any_value_will_do() {
        let tags: Tags = [("a".to_owned(), "b".to_owned())].into();
        let has = |filters: &[Filter]| satisfies(filters, &tags, |name| vec![format!("{name}-value")]);
        assert!(has(&[]) && has(&[Filter::tag("a", "*"), Filter::tag("a", "b")]));
        assert!(!has(&[Filter::tag("a", "c")]) && !has(&[Filter::tag("b", "*")]));
        assert!(has(&[Filter::new("x", ["y", "x-*e"])]) && !has(&[Filter::new("x", ["y"])]));
    }
}

//! What Azure says about a size: names and texts, which mean numbers and switches.

use crate::arm::types::sku::{Capability, ResourceSku};

/// What a size can do. Names are compared without case, and the first entry of a name counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capabilities<'a>(&'a [Capability]);

/// A capability that must be there and is not, or is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not there.
    #[error("Azure does not say its {0}")]
    Missing(&'static str),
    /// It is something else.
    #[error("its {name} is {value:?}, which is not a number")]
    NotANumber {
        /// Which one.
        name: &'static str,
        /// What Azure says.
        value: String,
    },
}

impl<'a> Capabilities<'a> {
    pub(super) fn of(wire: &'a ResourceSku) -> Self {
        Self(wire.capabilities.as_deref().unwrap_or_default())
    }

    pub(super) fn new(all: &'a [Capability]) -> Self {
        Self(all)
    }

    fn get(self, name: &str) -> Option<&'a str> {
        let is_named =
            |each: &&Capability| each.name.as_deref().is_some_and(|given| given.eq_ignore_ascii_case(name));
        self.0.iter().find(is_named)?.value.as_deref()
    }

    /// What must be there.
    pub(super) fn text(self, name: &'static str) -> Result<&'a str, Unreadable> {
        self.get(name).ok_or(Unreadable::Missing(name))
    }

    /// A whole number that must be there.
    pub(super) fn integer(self, name: &'static str) -> Result<i64, Unreadable> {
        let value = self.text(name)?;
        value.parse().map_err(|_| Unreadable::NotANumber { name, value: value.to_owned() })
    }

    /// A number that must be there.
    pub(super) fn number(self, name: &'static str) -> Result<f64, Unreadable> {
        let value = self.text(name)?;
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| Unreadable::NotANumber { name, value: value.to_owned() })
    }

    /// Whether it is switched on.
    pub(super) fn switch(self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether it names something among others.
    pub(super) fn contains(self, name: &str, part: &str) -> bool {
        let plain = |text: &str| {
            let kept = text.chars().filter(|character| !character.is_whitespace());
            kept.collect::<String>().to_ascii_lowercase()
        };
        self.get(name).is_some_and(|value| plain(value).contains(&plain(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pairs: &[(&str, Option<&str>)]) -> Vec<Capability> {
        let one = |(name, value): &(&str, Option<&str>)| Capability {
            name: Some((*name).to_owned()),
            value: value.map(str::to_owned),
        };
        pairs.iter().map(one).collect()
    }

    // azure.md 3.1
    #[test]
    fn names_have_no_case_and_the_first_of_a_name_counts() {
        let all = all(&[("VCPUS", Some("4")), ("vCPUs", Some("8")), ("memorygb", Some("3.5"))]);
        let has = Capabilities::new(&all);
        assert_eq!(has.integer("vCPUs"), Ok(4));
        assert_eq!(has.number("MemoryGB"), Ok(3.5));
    }

    // azure.md 3.1
    #[test]
    fn what_is_missing_or_no_number_is_an_error_that_says_what() {
        let all = all(&[("vCPUs", None), ("MemoryGB", Some("much")), ("GPUs", Some("NaN"))]);
        let has = Capabilities::new(&all);
        let text = |result: Result<f64, Unreadable>| result.unwrap_err().to_string();
        assert_eq!(text(has.number("vCPUs")), "Azure does not say its vCPUs");
        assert_eq!(text(has.number("ACUs")), "Azure does not say its ACUs");
        assert_eq!(text(has.number("MemoryGB")), "its MemoryGB is \"much\", which is not a number");
        assert!(has.number("GPUs").is_err() && has.integer("GPUs").is_err());
    }

    // azure.md 3.1
    #[test]
    fn a_switch_is_on_if_it_is_true_in_any_case() {
        let all = all(&[("a", Some("True")), ("b", Some("tRUE")), ("c", Some("False")), ("d", Some("yes"))]);
        let has = Capabilities::new(&all);
        let on: Vec<&str> = ["a", "b", "c", "d", "e"].into_iter().filter(|name| has.switch(name)).collect();
        assert_eq!(on, ["a", "b"]);
    }

    // azure.md 3.1
    #[test]
    fn lists_are_searched_without_case_and_spaces() {
        let all =
            all(&[("HyperVGenerations", Some("V1, v 2")), ("Placements", Some("ResourceDisk,CacheDisk"))]);
        let has = Capabilities::new(&all);
        assert!(has.contains("hypervgenerations", "V2") && has.contains("Placements", "cachedisk"));
        assert!(!has.contains("Placements", "NvmeDisk") && !has.contains("absent", "V1"));
    }
}

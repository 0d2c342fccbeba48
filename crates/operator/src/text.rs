//! Words for users, as upstream writes them.

/// The text with its first letter upper-cased.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The first few of some names, and how many others there are.
pub(crate) fn some<T: AsRef<str>>(names: &[T], shown: usize) -> String {
    let first: Vec<&str> = names.iter().take(shown).map(AsRef::as_ref).collect();
    let text = first.join(", ");
    match names.len().saturating_sub(shown) {
        0 => text,
        others => format!("{text} and {others} other(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital() {
        assert_eq!(sentence("node is rebooting"), "Node is rebooting");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn only_some_names_are_shown() {
        assert_eq!(some(&["a", "b"], 5), "a, b");
        assert_eq!(some(&["a", "b", "c"], 2), "a, b and 1 other(s)");
    }
}

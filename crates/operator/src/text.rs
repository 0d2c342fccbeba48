//! Words for users, as upstream writes them.

/// How long a message is at most, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// A message that is not too long; characters are never cut in two.
pub(crate) fn truncated(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    format!("{}...", &message[..message.floor_char_boundary(LONGEST_MESSAGE - 3)])
}

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

/// A name in camel case as metrics write it: `KernelReady` is `kernel_ready`, `KWOKUnhealthy` is `kwok_unhealthy`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let is_word_over = before.is_ascii_lowercase() || before.is_ascii_digit();
                let is_next_lower = letters.get(index + 1).is_some_and(char::is_ascii_lowercase);
                before != '_' && (is_word_over || is_next_lower)
            });
        if begins {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(truncated("short"), "short");
        let cut = truncated(&"ä".repeat(1000));
        assert_eq!((cut.len(), cut.ends_with("ä...")), (1023, true));
        assert_eq!(truncated(&"a".repeat(1024)).len(), 1024);
        assert_eq!(truncated(&"a".repeat(1025)).len(), 1024);
    }

    #[test]
    fn sentences_begin_with_a_capital() {
        assert_eq!(sentence("node is rebooting"), "Node is rebooting");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn words_in_camel_case_are_taken_apart() {
        for (name, expected) in [
            ("Ready", "ready"),
            ("KernelReady", "kernel_ready"),
            ("KWOKUnhealthy", "kwok_unhealthy"),
            ("AcceleratedHardwareReady", "accelerated_hardware_ready"),
            ("WhenEmpty", "when_empty"),
            ("", ""),
        ] {
            assert_eq!(snake_case(name), expected);
        }
    }

    #[test]
    fn only_some_names_are_shown() {
        assert_eq!(some(&["a", "b"], 5), "a, b");
        assert_eq!(some(&["a", "b", "c"], 2), "a, b and 1 other(s)");
    }
}

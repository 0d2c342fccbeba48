//! Values as a shell reads them.

/// A value in double quotes.
pub(super) fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for each in value.chars() {
        if matches!(each, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(each);
    }
    text.push('"');
    text
}

/// A value as it is, or in quotes where the shell would read something else: resource groups may have parentheses.
pub(super) fn bare(value: &str) -> String {
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "_@%+=:,./-".contains(each);
    if value.chars().all(is_plain) { value.to_owned() } else { quoted(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_stay_and_others_are_quoted() {
        assert_eq!(bare("https://a.b/c_d-1.tgz"), "https://a.b/c_d-1.tgz");
        assert_eq!(bare(""), "");
        assert_eq!(bare("MC_my(rg)"), "\"MC_my(rg)\"");
        assert_eq!(bare("a b"), "\"a b\"");
    }

    #[test]
    fn nothing_in_a_value_is_run() {
        assert_eq!(quoted("$(reboot)`x`\"\\"), "\"\\$(reboot)\\`x\\`\\\"\\\\\"");
        assert_eq!(bare("$(reboot)"), "\"\\$(reboot)\"");
    }
}

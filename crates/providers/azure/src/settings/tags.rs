//! Tags that the administrator wants on everything.

use std::collections::BTreeMap;

use api::names::flags::azure::ADDITIONAL_TAGS;

const LONGEST_KEY: usize = 512;
const LONGEST_VALUE: usize = 256;
const FORBIDDEN: &[char] = &['<', '>', '%', '&', '\\', '?', '/'];

/// Reads `key=value`, separated by commas.
pub(super) fn read(text: &str, wrong: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut tags: BTreeMap<String, String> = BTreeMap::new();
    let flag = ADDITIONAL_TAGS.flag;
    for item in text.split(',').filter(|_| !text.trim().is_empty()) {
        let Some((key, value)) = item.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            wrong.push(format!("{flag} has {item:?}, expected a key, = and a value"));
            continue;
        };
        if key.is_empty() || key.chars().count() > LONGEST_KEY || key.contains(FORBIDDEN) {
            wrong.push(format!(
                "{flag} has the key {key:?}, expected 1 to {LONGEST_KEY} characters without <, >, %, &, \\, ? and /"
            ));
        }
        if value.chars().count() > LONGEST_VALUE {
            wrong.push(format!(
                "{flag} has a value for {key:?} that is longer than {LONGEST_VALUE} characters"
            ));
        }
        if tags.keys().any(|known| known.to_lowercase() == key.to_lowercase()) {
            wrong.push(format!("{flag} has the key {key:?} twice; upper and lower case are the same"));
        }
        tags.insert(key.to_owned(), value.to_owned());
    }
    tags
}

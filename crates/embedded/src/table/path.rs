//! The part of JSONPath that printer columns use: names, indices, `[*]` and filters by equality.

use std::borrow::Cow;

use serde_json::Value;

#[derive(Debug)]
enum Step<'a> {
    Name(Cow<'a, str>),
    Index(i64),
    All,
    /// Entries of a list whose field at the path equals the text.
    Where(Vec<Step<'a>>, &'a str),
}

/// The first value a path leads to.
pub(super) fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}');
    let steps = steps(path.trim_start_matches('$'))?;
    follow(object, &steps).into_iter().next()
}

fn follow<'a>(object: &'a Value, steps: &[Step<'_>]) -> Vec<&'a Value> {
    let mut found = vec![object];
    for step in steps {
        found = found.into_iter().flat_map(|value| next(value, step)).collect();
    }
    found
}

fn next<'a>(value: &'a Value, step: &Step<'_>) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Name(name), _) => value.get(name.as_ref()).into_iter().collect(),
        (Step::Index(index), Value::Array(list)) => {
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let index = if *index < 0 { index + length } else { *index };
            usize::try_from(index).ok().and_then(|index| list.get(index)).into_iter().collect()
        }
        (Step::All, Value::Array(list)) => list.iter().collect(),
        (Step::All, Value::Object(map)) => map.values().collect(),
        (Step::Where(path, text), Value::Array(list)) => list
            .iter()
            .filter(|entry| {
                follow(entry, path).into_iter().any(|value| match value {
                    Value::String(found) => found == text,
                    Value::Bool(found) => text.parse() == Ok(*found),
                    Value::Number(found) => text.parse().ok().as_ref() == Some(found),
                    _ => false,
                })
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after)?;
            steps.push(bracket(after.get(..end)?)?);
            rest = after.get(end + 1..)?;
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let end = name_end(after);
            let name = after.get(..end)?;
            match name {
                "" => {}
                "*" => steps.push(Step::All),
                name => steps.push(Step::Name(unescaped(name))),
            }
            rest = after.get(end..)?;
        }
    }
    Some(steps)
}

/// Where the name ends; what a backslash precedes is part of it, as the dots in keys of labels.
fn name_end(text: &str) -> usize {
    let mut escaped = false;
    for (index, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '.' | '[' => return index,
            _ => {}
        }
    }
    text.len()
}

fn unescaped(name: &str) -> Cow<'_, str> {
    if name.contains('\\') { Cow::Owned(name.replace('\\', "")) } else { Cow::Borrowed(name) }
}

/// Where the bracket ends, quotes respected.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Option<Step<'_>> {
    let inside = inside.trim();
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (left, right) = filter.split_once("==")?;
        let path = left.trim().strip_prefix('@')?;
        return Some(Step::Where(steps(path)?, unquoted(right.trim())));
    }
    match inside.parse::<i64>() {
        Ok(index) => Some(Step::Index(index)),
        Err(_) => Some(Step::Name(Cow::Borrowed(unquoted(inside)))),
    }
}

fn unquoted(text: &str) -> &str {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        let object = json!({
            "metadata": {"labels": {"karpenter.sh/nodepool": "default", "team": "web", "a[0].b": "odd"}},
            "status": {"conditions": [
                {"type": "Launched", "status": "True"}, {"type": "Ready", "status": "False"},
            ], "resources": {"cpu": "4"}},
        });
        assert_eq!(first(&object, path), expected.map(|text| json!(text)).as_ref(), "{path}");
    }

    #[test]
    fn a_dot_behind_a_backslash_belongs_to_the_name() {
        check(r".metadata.labels.karpenter\.sh/nodepool", Some("default"));
        check(r"{.metadata.labels.karpenter\.sh/nodepool}", Some("default"));
        check(r".metadata.labels.a\[0]\.b", Some("odd"));
        check(r".metadata.labels.karpenter.sh/nodepool", None);
        check(r".metadata.labels.team\", Some("web"));
    }

    #[test]
    fn names_indices_and_filters_lead_to_a_value() {
        check(".metadata.labels.team", Some("web"));
        check(".metadata.labels['karpenter.sh/nodepool']", Some("default"));
        check(r#".status.conditions[?(@.type=="Ready")].status"#, Some("False"));
        check(".status.conditions[-1].type", Some("Ready"));
        check(".status.conditions[*].type", Some("Launched"));
        check(".status.resources.cpu", Some("4"));
        check(".status.nothing.cpu", None);
    }
}

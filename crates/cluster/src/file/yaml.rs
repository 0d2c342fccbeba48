//! Cluster files in YAML: documents between lines of `---`, each an object or a list of objects.

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Options;

use super::decode::{Kind, Source};
use super::json::item_kind;
use super::{Place, Reader};

/// Reads all documents.
pub(super) fn read(reader: &mut Reader<'_>, text: &str) {
    for (number, (first_line, document)) in (1..).zip(documents(text)) {
        let place = Place { document: number, item: None };
        match serde_saphyr::from_str_with_options::<Value>(document, options()) {
            Ok(Value::Null) => {}
            Ok(tree) => read_document(reader, place, &tree),
            Err(error) => {
                let message =
                    error.render_with_options(serde_saphyr::render_options! { line_offset: first_line });
                reader.error(place, None, None, message);
            }
        }
    }
}

fn read_document(reader: &mut Reader<'_>, place: Place, tree: &Value) {
    let list = Kind::deserialize(tree).unwrap_or_default();
    let is_list = list.kind.as_deref().is_none_or(|kind| kind.ends_with("List"));
    let items = tree.get("items").or(Some(tree)).and_then(Value::as_array).filter(|_| is_list);
    let Some(items) = items else {
        return reader.object(Source::Tree(tree), place, &Kind::default());
    };
    let kind = list.kind.as_deref().and_then(item_kind).map(Into::into);
    let list = Kind { kind, api_version: list.api_version };
    for (position, item) in items.iter().enumerate() {
        reader.object(Source::Tree(item), Place { item: Some(position + 1), ..place }, &list);
    }
}

/// The documents of a file, each with the number of lines before it. A line that begins with `---` is a boundary
/// wherever it stands, even in a block of text.
fn documents(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut first_line, mut position) = (0, 0, 0);
    for (number, line) in (0..).zip(text.split_inclusive('\n')) {
        let rest = line.strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            documents.push((first_line, &text[start..position]));
            // What follows the dashes on their line belongs to the next document.
            (start, first_line) = (position + 3, number);
        }
        position += line.len();
    }
    documents.push((first_line, &text[start..]));
    documents.into_iter().filter(|(_, document)| has_content(document))
}

fn has_content(document: &str) -> bool {
    document.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with(['#', '%']))
}

/// Cluster files are large, and only `true` and `false` are truth values to Kubernetes.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        strict_booleans: true,
        with_snippet: false,
    }
}

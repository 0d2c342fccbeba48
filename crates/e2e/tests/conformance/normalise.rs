//! Answers without what differs between any two clusters: UIDs, versions, times, random names.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::target::Reply;

static UID: LazyLock<Regex> = LazyLock::new(|| pattern("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?P<rest>\.\d+)?(Z|\+00:00)"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhd])+( ago)?$"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.\d+\.\d+\.\d+\b"));
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(object meta|resource version|, current|in record|ResourceVersion)(: | )\(?\d+\)?( \(\d+\))?"));
/// The whole object, in the server's own order of fields.
static PATCHED: LazyLock<Regex> = LazyLock::new(|| pattern(r#"Invalid value: "\{.*\}": "#));
static RETRY: LazyLock<Regex> = LazyLock::new(|| pattern(r"StorageError: .*"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is fixed")
}

/// What one server's answers of one sequence have in common.
pub(crate) struct Normaliser {
    id: String,
    /// Versions of objects in the order in which they appeared.
    versions: Vec<String>,
    /// Names that the server made up, and what they are called instead.
    names: Vec<(String, String)>,
}

impl Normaliser {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), versions: Vec::new(), names: Vec::new() }
    }

    /// The answer as it is compared.
    pub(crate) fn reply(&mut self, reply: &Reply, whole_cluster: bool) -> Value {
        let mut body = reply.body.clone();
        if whole_cluster {
            self.keep_own(&mut body);
        }
        plain_bookmarks(&mut body);
        self.find_names(&body);
        self.value(&mut body, "");
        let mut warnings: Vec<String> = reply.warnings.iter().map(|text| self.text(text)).collect();
        warnings.sort();
        json!({"code": reply.code, "type": reply.content_type, "warnings": warnings, "body": body})
    }

    /// Of what the whole cluster has, only what belongs to the sequence.
    fn keep_own(&self, body: &mut Value) {
        let own = |value: &Value| {
            let meta = [&value["metadata"], &value["object"]["metadata"]];
            let texts = meta.iter().flat_map(|meta| [&meta["name"], &meta["namespace"]]);
            texts.filter_map(Value::as_str).any(|text| text.contains(&self.id))
        };
        // Where the next page begins depends on the others.
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("continue");
            metadata.remove("remainingItemCount");
        }
        for list in ["items", "rows"] {
            if let Some(items) = body.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(own);
            }
        }
        if let Some(events) = body.as_array_mut() {
            events.retain(|event| event["type"] == "BOOKMARK" || own(event));
        }
    }

    fn find_names(&mut self, value: &Value) {
        if let (Some(prefix), Some(name)) = (
            value["metadata"]["generateName"].as_str(),
            value["metadata"]["name"].as_str().filter(|name| name.len() > 5),
        ) && !self.names.iter().any(|(known, _)| known == name)
            && name.starts_with(&prefix[..prefix.len().min(name.len() - 5)])
        {
            let number = self.names.len();
            self.names.push((name.to_owned(), format!("{}<random-{number}>", &name[..name.len() - 5])));
        }
        let items = value["items"].as_array().or_else(|| value.as_array());
        for item in items.into_iter().flatten() {
            self.find_names(item);
            self.find_names(&item["object"]);
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, instead) in &self.names {
            text = text.replace(name, instead);
        }
        let text = text.replace(&self.id, "<id>");
        let text = UID.replace_all(&text, "<uid>");
        let text = TIME.replace_all(&text, |found: &regex::Captures<'_>| {
            let fraction = found.name("rest").map_or(0, |rest| rest.len());
            if fraction == 0 { "<time>".to_owned() } else { format!("<time.{}>", fraction - 1) }
        });
        let text = AGE.replace_all(&text, "<age>");
        let text = ADDRESS.replace_all(&text, "<address>");
        let text = PATCHED.replace_all(&text, "Invalid value: <object>: ");
        let text = RETRY.replace_all(&text, "<storage error>");
        VERSION.replace_all(&text, "$1$2<version>").into_owned()
    }

    fn value(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) if key == "continue" && !text.is_empty() => *text = "<continue>".to_owned(),
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => {
                for value in &mut *list {
                    self.value(value, key);
                }
                if matches!(key, "managedFields" | "items" | "groups") {
                    list.sort_by_key(sort_key);
                }
            }
            Value::Object(map) => self.object(map, key),
            _ => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, key: &str) {
        if key == "metadata" && let Some(version) = map.get_mut("resourceVersion") {
            *version = Value::from("<version>");
        }
        let renamed = std::mem::take(map);
        for (key, mut value) in renamed {
            if key == "resourceVersion" && value.as_str().is_some_and(|text| text.bytes().all(|one| one.is_ascii_digit())) {
                value = Value::from("<version>");
            }
            self.value(&mut value, &key);
            map.insert(self.text(&key), value);
        }
    }

    /// Which of the versions seen so far an object has: tells whether a write changed something.
    pub(crate) fn version_number(&mut self, reply: &Reply) -> Option<usize> {
        let metadata = &reply.body["metadata"];
        metadata["uid"].as_str()?;
        let version = metadata["resourceVersion"].as_str()?;
        if let Some(known) = self.versions.iter().position(|known| known == version) {
            return Some(known);
        }
        self.versions.push(version.to_owned());
        Some(self.versions.len() - 1)
    }
}

/// Bookmarks come when the server likes; the one after the first objects comes always, and says nothing but that.
fn plain_bookmarks(body: &mut Value) {
    let Some(events) = body.as_array_mut() else { return };
    events.retain(|event| {
        event["type"] != "BOOKMARK" || event["object"]["metadata"]["annotations"].is_object()
    });
    for event in events.iter_mut().filter(|event| event["type"] == "BOOKMARK") {
        let object = &event["object"];
        event["object"] = json!({"kind": object["kind"], "apiVersion": object["apiVersion"]});
    }
}

/// Order within lists that have none.
fn sort_key(value: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &value["metadata"];
    if meta.is_object() {
        return format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
    }
    ["operation", "manager", "subresource", "apiVersion", "name"].map(|field| text(&value[field])).join("/")
}

/// Where two answers differ, as `path: real / embedded`.
pub(crate) fn differences(real: &Value, embedded: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match (real, embedded) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let one = |map: &Map<String, Value>| map.get(key).cloned();
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (one(left), one(right)) {
                    (Some(left), Some(right)) => differences(&left, &right, &below, found),
                    (left, right) => {
                        let text = |side: Option<Value>| side.map_or("(absent)".to_owned(), |one| one.to_string());
                        found.push((below, format!("{} / {}", text(left), text(right))));
                    }
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(left, right, &format!("{path}[{index}]"), found);
            }
        }
        _ if real != embedded => found.push((path.to_owned(), format!("{real} / {embedded}"))),
        _ => {}
    }
}

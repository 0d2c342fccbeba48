//! Objects in the form that a client asked for.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::events;
use crate::patch::managed_fields;
use crate::request::{Form, Request};
use crate::resources::Resource;
use crate::store::Object;
use crate::table;

/// How objects of a resource are written into one answer.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) resource: Arc<Resource>,
    pub(crate) form: Form,
    /// What table rows carry: `Metadata`, `Object` or `None`.
    include: String,
    now: Timestamp,
}

/// What a list says besides its items.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    fn json(&self) -> Value {
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), self.revision.to_string().into());
        if let Some(next) = &self.next {
            meta.insert("continue".to_owned(), next.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            meta.insert("remainingItemCount".to_owned(), remaining.into());
        }
        Value::Object(meta)
    }
}

impl Writer {
    pub(crate) fn new(request: &Request, resource: &Arc<Resource>, now: Timestamp) -> Self {
        let include = request.query.text("includeObject");
        Self { resource: resource.clone(), form: request.form, include: include.to_owned(), now }
    }

    /// Whether the stored bytes can be sent as they are.
    fn is_plain(&self) -> bool {
        self.form == Form::Object && !self.is_converted()
    }

    fn is_converted(&self) -> bool {
        self.resource.group == "events.k8s.io"
    }

    /// The object in the version that was asked for.
    pub(crate) fn value(&self, object: &Object) -> Value {
        let mut value = object.value(&self.resource);
        if self.is_converted() {
            events::from_core(&mut value);
        }
        value
    }

    /// One object.
    pub(crate) fn object(&self, object: &Object) -> Bytes {
        if self.is_plain() {
            return object.bytes(&self.resource);
        }
        bytes(&self.formed(self.value(object)))
    }

    /// One object that is not stored in this form.
    pub(crate) fn formed(&self, mut value: Value) -> Value {
        match self.form {
            Form::Object | Form::Discovery | Form::Protobuf => value,
            Form::Metadata => metadata_only(&mut value),
            Form::Table => {
                let meta = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                self.table(Some(value), &meta, true)
            }
        }
    }

    /// The event of a watch; the columns of a table are only told once.
    pub(crate) fn event(&self, kind: &str, object: &Object, first: bool) -> Bytes {
        if self.is_plain() {
            let head = self.resource.type_head();
            let mut line = Vec::with_capacity(head.len() + object.json.len() + 40);
            line.extend_from_slice(b"{\"type\":\"");
            line.extend_from_slice(kind.as_bytes());
            line.extend_from_slice(b"\",\"object\":");
            line.extend_from_slice(head.as_bytes());
            line.extend_from_slice(&object.json.as_bytes()[1..]);
            line.extend_from_slice(b"}\n");
            return line.into();
        }
        let value = self.value(object);
        let shown = match self.form {
            Form::Table => {
                let meta = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                self.table(Some(value), &meta, first)
            }
            _ => self.formed(value),
        };
        line(kind, &shown)
    }

    /// A bookmark, which is an object with nothing but a resource version.
    pub(crate) fn bookmark(&self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            Form::Table => {
                let meta = json!({"resourceVersion": revision.to_string()});
                self.table(None, &meta, false)
            }
            _ => {
                let kind = json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version()});
                // An object of Kubernetes' own is never without the fields that are no pointers.
                let mut object = match &self.resource.custom {
                    Some(_) => kind,
                    None => managed_fields::empty_object(&kind, self.resource.schema()),
                };
                object["metadata"] = metadata;
                object
            }
        };
        line("BOOKMARK", &object)
    }

    /// A list.
    pub(crate) fn list<'a>(&self, objects: impl Iterator<Item = &'a Arc<Object>>, meta: &ListMeta) -> Bytes {
        let metadata = meta.json();
        match self.form {
            Form::Table => {
                let head = self.table_head(&metadata, true);
                with_items(&head, "rows", objects.map(|object| self.row(self.value(object))))
            }
            Form::Metadata => {
                let head = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                });
                with_items(&head, "items", objects.map(|object| metadata_only(&mut self.value(object))))
            }
            _ => self.plain_list(objects, &metadata),
        }
    }

    fn plain_list<'a>(&self, objects: impl Iterator<Item = &'a Arc<Object>>, metadata: &Value) -> Bytes {
        let resource = &self.resource;
        let mut metadata = metadata.clone();
        // Lists of custom objects always say where they go on.
        if resource.custom.is_some() && metadata["continue"].is_null() {
            metadata["continue"] = Value::from("");
        }
        let mut out = format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            resource.list_kind,
            resource.api_version()
        )
        .into_bytes();
        // Items of Kubernetes' own lists do not repeat their type; custom ones do.
        let head = if resource.custom.is_some() { resource.type_head() } else { "{" };
        for (number, object) in objects.enumerate() {
            if number > 0 {
                out.push(b',');
            }
            if self.is_converted() {
                let mut value = self.value(object);
                if let Some(map) = value.as_object_mut() {
                    map.remove("apiVersion");
                    map.remove("kind");
                }
                out.extend_from_slice(value.to_string().as_bytes());
            } else {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(&object.json.as_bytes()[1..]);
            }
        }
        out.extend_from_slice(b"]}");
        out.into()
    }

    /// A table of one object, or of none.
    fn table(&self, value: Option<Value>, metadata: &Value, with_columns: bool) -> Value {
        let mut table = self.table_head(metadata, with_columns);
        table["rows"] = value.map(|value| self.row(value)).into_iter().collect();
        table
    }

    /// A table without its rows.
    fn table_head(&self, metadata: &Value, with_columns: bool) -> Value {
        let columns = match &self.resource.custom {
            Some(custom) => table::custom_columns(&custom.printer_columns),
            None => table::columns(&self.resource.group, &self.resource.kind),
        };
        let definition = |column: &table::Column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        };
        let definitions = || columns.iter().map(definition).collect::<Value>();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": if with_columns { definitions() } else { Value::Null },
        })
    }

    /// An object's row of a table.
    fn row(&self, mut value: Value) -> Value {
        let resource = &self.resource;
        let cells = match &resource.custom {
            Some(custom) => table::custom_cells(&custom.printer_columns, &value, self.now),
            None => table::cells(&resource.group, &resource.kind, &value, self.now),
        };
        let object = match self.include.as_str() {
            "None" => Value::Null,
            "Object" => value,
            _ => metadata_only(&mut value),
        };
        json!({"cells": cells, "object": object})
    }
}

/// A list or table: `head` with its items in `field`. They are written one by one: a thousand objects as JSON in memory
/// are ten times as large as their text.
fn with_items(head: &Value, field: &str, items: impl Iterator<Item = Value>) -> Bytes {
    let mut out = head.to_string().into_bytes();
    out.pop();
    out.extend_from_slice(format!(",\"{field}\":[").as_bytes());
    for (number, item) in items.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        // JSON in memory can always be written.
        let _ = serde_json::to_writer(&mut out, &item);
    }
    out.extend_from_slice(b"]}");
    out.into()
}

fn metadata_only(value: &mut Value) -> Value {
    drop_inner_annotation(value);
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"].take(),
    })
}

/// How often a daemon set's template changed is an annotation only in the whole object.
fn drop_inner_annotation(value: &mut Value) {
    if value["kind"] != "DaemonSet" || value["apiVersion"] != "apps/v1" {
        return;
    }
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove("deprecated.daemonset.template.generation");
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// One line of a watch.
pub(crate) fn line(kind: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}

fn bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

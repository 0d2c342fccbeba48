//! OpenAPI documents: what kubectl needs for `explain`, `apply` and validation; of version 3 here, of 2 below.

mod gnostic;
pub(crate) mod v2;

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::resources::{Registry, Resource};
use crate::schema::library::Library;

const REF: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// `/openapi/v3`.
pub(crate) fn index(registry: &Registry) -> Answer {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = document_path(group, version);
            // Clients keep documents by this address, so it changes when resources do.
            let names: String =
                registry.in_version(group, version).map(|resource| fingerprint(resource)).collect();
            let hash = fnv(names.as_bytes());
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    Answer::json(StatusCode::OK, &json!({ "paths": paths }))
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn fingerprint(resource: &Resource) -> String {
    let schema = resource.custom.as_ref().map_or("", |custom| &custom.schema_text);
    format!("{}{schema}", resource.plural)
}

/// A short fingerprint; it only has to differ when the text does.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `/openapi/v3/PATH`; nothing when there is no such group and version.
pub(crate) fn document(registry: &Registry, path: &str) -> Option<Answer> {
    let words: Vec<&str> = path.split('/').collect();
    let (group, version) = match words.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    let resources: Vec<_> = registry.in_version(group, version).collect();
    if resources.is_empty() {
        return None;
    }
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    describe(resources, &Library::built_in().definitions(), &mut schemas, &mut paths);
    Some(Answer::json(
        StatusCode::OK,
        &json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "1.36"},
            "paths": paths,
            "components": {"schemas": schemas},
        }),
    ))
}

/// Adds the schemas of resources, all that these refer to, and their paths.
fn describe<'a>(
    resources: impl IntoIterator<Item = &'a Arc<Resource>>,
    library: &Map<String, Value>,
    schemas: &mut Map<String, Value>,
    paths: &mut Map<String, Value>,
) {
    let mut wanted: BTreeSet<String> = [OBJECT_META, DELETE_OPTIONS].map(str::to_owned).into();
    for resource in resources {
        let name = definition_name(resource, library);
        if let Some(custom) = &resource.custom {
            schemas.insert(name.clone(), custom_definition(resource, &custom.open_api_schema()));
            schemas.insert(format!("{name}List"), custom_list(resource, &name));
            wanted.insert("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta".to_owned());
        } else {
            wanted.insert(name.clone());
            wanted.insert(format!("{name}List"));
            wanted.extend(resource.subresources.iter().filter_map(|subresource| {
                by_kind(library, &subresource.group, &subresource.version, &subresource.kind)
            }));
        }
        add_paths(resource, &name, paths);
    }
    add_with_references(library, wanted, schemas);
}

/// Adds definitions and everything they refer to.
fn add_with_references(
    library: &Map<String, Value>,
    wanted: BTreeSet<String>,
    into: &mut Map<String, Value>,
) {
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = open.pop() {
        if into.contains_key(&name) {
            continue;
        }
        if let Some(definition) = library.get(&name) {
            references(definition, &mut open);
            into.insert(name, definition.clone());
        }
    }
}

fn references(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) =
                map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(REF))
            {
                into.push(name.to_owned());
            }
            map.values().for_each(|value| references(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, into)),
        _ => {}
    }
}

/// The name under which a kind's definition is found.
fn definition_name(resource: &Resource, library: &Map<String, Value>) -> String {
    if resource.custom.is_some() {
        let reversed: Vec<&str> = resource.group.rsplit('.').collect();
        return format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind);
    }
    by_kind(library, &resource.group, &resource.version, &resource.kind).unwrap_or_default()
}

fn by_kind(library: &Map<String, Value>, group: &str, version: &str, kind: &str) -> Option<String> {
    let is = |entry: &Value| entry["group"] == group && entry["version"] == version && entry["kind"] == kind;
    library
        .iter()
        .find(|(_, definition)| {
            definition["x-kubernetes-group-version-kind"].as_array().is_some_and(|list| list.iter().any(is))
        })
        .map(|(name, _)| name.clone())
}

fn type_of(resource: &Resource, kind: &str) -> Value {
    json!([{"group": resource.group, "version": resource.version, "kind": kind}])
}

fn custom_definition(resource: &Resource, schema: &Value) -> Value {
    let mut definition = schema.clone();
    if !definition["properties"].is_object() {
        definition["properties"] = Value::Object(Map::new());
    }
    definition["properties"]["apiVersion"] = json!({"type": "string"});
    definition["properties"]["kind"] = json!({"type": "string"});
    definition["properties"]["metadata"] = json!({"allOf": [{"$ref": format!("{REF}{OBJECT_META}")}]});
    definition["x-kubernetes-group-version-kind"] = type_of(resource, &resource.kind);
    definition
}

fn custom_list(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": format!("{REF}io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")}]},
            "items": {"type": "array", "items": {"$ref": format!("{REF}{name}")}},
        },
        "x-kubernetes-group-version-kind": type_of(resource, &resource.list_kind),
    })
}

/// The paths of a resource, with as much as clients look at: kinds, and which parameters patches take.
fn add_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let base = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{base}{scope}/{}", resource.plural);
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": parameters,
            "responses": {"200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": format!("{REF}{name}")}}},
            }},
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    let mut one = Map::new();
    let mut many = Map::new();
    for verb in &resource.verbs {
        match verb.as_str() {
            "get" => one.insert("get".to_owned(), operation("get", &[])),
            "update" => one.insert("put".to_owned(), operation("put", &write)),
            "delete" => one.insert("delete".to_owned(), operation("delete", &["dryRun"])),
            "patch" => {
                let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"];
                one.insert("patch".to_owned(), operation("patch", &parameters))
            }
            "list" => many.insert("get".to_owned(), operation("list", &["labelSelector", "fieldSelector"])),
            "create" => many.insert("post".to_owned(), operation("post", &write)),
            "deletecollection" => {
                many.insert("delete".to_owned(), operation("deletecollection", &["dryRun"]))
            }
            _ => None,
        };
    }
    paths.insert(format!("{collection}/{{name}}"), Value::Object(one));
    paths.insert(collection, Value::Object(many));
}

//! Discovery: which groups, versions and resources there are.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Content};
use crate::refusal::Refusal;
use crate::request::Form;
use crate::resources::{Registry, Resource};

/// The content type by which clients know that they got everything in one document.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`.
pub(crate) fn core_versions(registry: &Registry, form: Form) -> Answer {
    if form == Form::Discovery {
        return aggregated(registry, true);
    }
    let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]);
    ok(&json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}))
}

/// `/apis`.
pub(crate) fn groups(registry: &Registry, form: Form) -> Answer {
    if form == Form::Discovery {
        return aggregated(registry, false);
    }
    let groups: Vec<Value> =
        named_groups(registry).map(|(name, versions)| group_json(name, &versions)).collect();
    ok(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/GROUP`.
pub(crate) fn group(registry: &Registry, name: &str) -> Answer {
    let Some((_, versions)) = named_groups(registry).find(|(group, _)| *group == name) else {
        return page_not_found();
    };
    let mut group = group_json(name, &versions);
    group["kind"] = Value::from("APIGroup");
    group["apiVersion"] = Value::from("v1");
    ok(&group)
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Answer {
    let mut list = Vec::new();
    let mut group_version = String::new();
    for resource in registry.in_version(group, version) {
        resource.api_version().clone_into(&mut group_version);
        list.push(resource_json(resource));
        list.extend(resource.subresources.iter().map(|subresource| {
            let mut shown = json!({
                "name": format!("{}/{}", resource.plural, subresource.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": subresource.kind,
                "verbs": subresource.verbs,
            });
            if !subresource.group.is_empty() {
                shown["group"] = Value::from(subresource.group.as_str());
                shown["version"] = Value::from(subresource.version.as_str());
            }
            shown
        }));
    }
    if list.is_empty() {
        return missing_resource(registry, group, version);
    }
    let mut answer = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
    if !group.is_empty() {
        answer["apiVersion"] = Value::from("v1");
    }
    ok(&answer)
}

/// The answer to paths outside the API.
pub(crate) fn page_not_found() -> Answer {
    let mut answer = Answer::text("404 page not found\n");
    answer.code = StatusCode::NOT_FOUND;
    answer
}

/// Paths that are not about objects.
pub(crate) fn other(registry: &Registry, path: &str) -> Answer {
    match path {
        "/" => {
            let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
            for (name, versions) in named_groups(registry) {
                paths.push(format!("/apis/{name}"));
                paths.extend(versions.iter().map(|version| format!("/apis/{name}/{version}")));
            }
            paths.extend(
                ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
                    .map(str::to_owned),
            );
            ok(&json!({ "paths": paths }))
        }
        "/version" => ok(&json!({
            "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
            "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
            "gitVersion": "v1.36.3+karpenter", "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        })),
        "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping" => {
            Answer::text("ok")
        }
        _ => page_not_found(),
    }
}

/// The resource of a path, or the refusal of one that does not exist.
pub(crate) fn missing_resource(registry: &Registry, group: &str, version: &str) -> Answer {
    let built_in = |resource: &Resource| resource.custom.is_none();
    let served = registry.in_version(group, version).any(|resource| built_in(resource));
    let known = registry.in_group(group).any(|resource| built_in(resource));
    if served || known { Answer::from(Refusal::no_such_path()) } else { page_not_found() }
}

/// The answer to a path that does not fit the scope of its resource.
pub(crate) fn no_path(resource: &Resource) -> Result<Answer, Refusal> {
    if resource.custom.is_some() { Ok(page_not_found()) } else { Err(Refusal::no_such_path()) }
}

fn ok(value: &Value) -> Answer {
    Answer::json(StatusCode::OK, value)
}

fn named_groups(registry: &Registry) -> impl Iterator<Item = (&str, Vec<&str>)> {
    registry.groups().into_iter().filter(|(name, _)| !name.is_empty())
}

fn group_json(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn resource_json(resource: &Resource) -> Value {
    let mut shown = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        shown["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        shown["categories"] = json!(resource.categories);
    }
    shown
}

fn aggregated(registry: &Registry, core: bool) -> Answer {
    let mut items = Vec::new();
    for (name, versions) in registry.groups() {
        if name.is_empty() != core {
            continue;
        }
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let resources: Vec<Value> = registry
                    .in_version(name, version)
                    .map(|resource| aggregated_resource(resource))
                    .collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let mut metadata = Map::new();
        if !core {
            metadata.insert("name".to_owned(), name.into());
        }
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    let bytes = serde_json::to_vec(&list).unwrap_or_default().into();
    Answer { code: StatusCode::OK, content: Content::Typed(AGGREGATED, bytes), warnings: Vec::new() }
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    // Custom resources say their group; Kubernetes' own leave it to the surrounding document.
    let own = if resource.custom.is_some() {
        kind(&resource.group, &resource.version, &resource.kind)
    } else {
        kind("", "", &resource.kind)
    };
    let mut shown = json!({
        "resource": resource.plural,
        "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        shown["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        shown["categories"] = json!(resource.categories);
    }
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|subresource| {
            let response = match (&resource.custom, subresource.group.is_empty()) {
                (Some(_), true) => kind(&resource.group, &resource.version, &subresource.kind),
                _ => kind(&subresource.group, &subresource.version, &subresource.kind),
            };
            json!({
                "subresource": subresource.name, "responseKind": response, "verbs": subresource.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        shown["subresources"] = Value::from(subresources);
    }
    shown
}

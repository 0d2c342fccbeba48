//! Writes the embedded API server's data anew: Kubernetes' own schemas and resources, read from a real one.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use e2e::ControlPlane;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Serializer, Value};

/// The groups that the embedded API server serves, all in version `v1`.
const GROUPS: [&str; 16] = [
    "",
    "apps",
    "batch",
    "policy",
    "storage.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "authorization.k8s.io",
    "authentication.k8s.io",
    "node.k8s.io",
    "networking.k8s.io",
];

/// What needs a real node, or a real control plane.
const LEFT_OUT: [&str; 8] = [
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/proxy",
    "services/proxy",
    "nodes/proxy",
    "componentstatuses",
    "tokenreviews",
];

/// The resources of one group, as discovery lists them.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    group_version: String,
    resources: Vec<Resource>,
}

/// One resource; the order of the fields is the API server's.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    singular_name: String,
    namespaced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kind: String,
    verbs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    short_names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<String>>,
}

fn main() -> Result<()> {
    let plane = ControlPlane::builder().start()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../embedded/data");
    fs::write(folder.join("resources.json"), resources(&plane)?)?;
    fs::write(folder.join("openapi.json.gz"), schemas(&plane)?)?;
    plane.stop();
    Ok(())
}

fn path(group: &str) -> String {
    if group.is_empty() { "api/v1".to_owned() } else { format!("apis/{group}/v1") }
}

fn get(plane: &ControlPlane, path: &str) -> Result<String> {
    plane.kubectl(&["get", "--raw", path]).with_context(|| path.to_owned())
}

fn resources(plane: &ControlPlane) -> Result<Vec<u8>> {
    let mut groups = vec![];
    for group in GROUPS {
        let mut list: Resources = serde_json::from_str(&get(plane, &format!("/{}", path(group)))?)?;
        list.resources.retain(|resource| !LEFT_OUT.contains(&resource.name.as_str()));
        groups.push(list);
    }
    let mut text = vec![];
    groups.serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" ")))?;
    Ok(text)
}

fn schemas(plane: &ControlPlane) -> Result<Vec<u8>> {
    let mut schemas = Map::new();
    for group in GROUPS {
        let mut document: Value =
            serde_json::from_str(&get(plane, &format!("/openapi/v3/{}", path(group)))?)?;
        let definitions = document["components"]["schemas"].take();
        let Value::Object(definitions) = definitions else { anyhow::bail!("{group} has no schemas") };
        for (name, schema) in definitions {
            // Groups share types, which name the kinds of their own group; the first one is as good as any.
            schemas.entry(name).or_insert(schema);
        }
    }
    schemas.sort_keys();
    let text = ascii(&serde_json::json!({"schemas": schemas}).to_string());
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

/// Escapes what is not ASCII, which no tool that shows differences then garbles.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

//! Manifests that are applied before the cluster is used.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use embedded::Server;
use serde_json::{Value, json};

/// What users expect of a cluster: claims without a class get a volume, in the zone of the first pod.
pub(crate) fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "simulate.karpenter.sh",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// An object and where it was written.
pub(crate) struct Source {
    pub(crate) object: Value,
    pub(crate) origin: String,
}

/// Reads all documents of all files; lists are taken apart.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let text = if name == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading standard input")?;
            text
        } else {
            std::fs::read_to_string(path).with_context(|| format!("reading {name}"))?
        };
        sources.extend(parse(&text, &name)?);
    }
    Ok(sources)
}

/// Reads all documents of a manifest.
pub(crate) fn parse(text: &str, name: &str) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).with_context(|| format!("reading {name}"))?;
    for (number, document) in documents.into_iter().enumerate() {
        let origin = format!("{name}, document {}", number + 1);
        add(document, &origin, &mut sources)?;
    }
    Ok(sources)
}

fn add(document: Value, origin: &str, sources: &mut Vec<Source>) -> Result<()> {
    if document.is_null() {
        return Ok(());
    }
    let kind = document["kind"].as_str().unwrap_or_default();
    if kind.is_empty() || document["apiVersion"].as_str().unwrap_or_default().is_empty() {
        bail!("{origin}: this is no Kubernetes object: it needs apiVersion and kind");
    }
    if kind.ends_with("List")
        && let Some(items) = document["items"].as_array()
    {
        for item in items {
            add(item.clone(), origin, sources)?;
        }
        return Ok(());
    }
    sources.push(Source { object: document, origin: origin.to_owned() });
    Ok(())
}

/// Applies one object.
pub(crate) fn apply(server: &Server, object: &Value, origin: &str) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    if server.path_of(object).is_none() {
        let version = text(&object["apiVersion"]);
        if name.is_empty() {
            bail!("{origin}: {kind} has no metadata.name");
        }
        bail!("{origin}: {kind} \"{name}\": this cluster does not serve {kind} of {version}");
    }
    // What a file from another cluster says about its state there does not hold here.
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
    }
    match server.apply(&object, "karpenter-up") {
        Ok(_) => Ok(()),
        Err(refusal) => bail!("{origin}: {}", refusal.message),
    }
}

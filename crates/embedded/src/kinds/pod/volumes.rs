//! Rules on a pod's volumes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::get::Get;
use super::super::names::{check, dns_label, dns_subdomain};
use super::super::rules::{needed, supported};
use super::super::storage;
use super::containers::{descending_path, field_reference, no_steps_back, resource_reference};
use crate::field_error::FieldError;

/// The volumes that containers can mount, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// The API server's order of looking at sources.
const SOURCES: [&str; 29] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
];

/// Checks all volumes and answers with the good ones.
pub(super) fn validate<'a>(
    errors: &mut Vec<FieldError>,
    list: &str,
    volumes: &'a [Value],
    pod: Option<&Value>,
) -> Volumes<'a> {
    let mut good = Volumes::new();
    let mut names = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let (field, name) = (format!("{list}[{index}]"), volume.text("name"));
        let mut wrong = Vec::new();
        source(&mut wrong, &field, volume, pod);
        if needed(&mut wrong, format!("{field}.name"), name) {
            check(&mut wrong, format!("{field}.name"), name, dns_label);
        }
        if names.contains(name) {
            wrong.push(FieldError::duplicate(format!("{field}.name"), &Value::from(name)));
        }
        if wrong.is_empty() {
            names.insert(name);
            good.insert(name, volume);
        }
        errors.append(&mut wrong);
    }
    good
}

fn source(errors: &mut Vec<FieldError>, field: &str, volume: &Value, pod: Option<&Value>) {
    let mut given = 0;
    for key in SOURCES.into_iter().chain(["image"]) {
        let source = volume.at(key);
        if source.is_null() {
            continue;
        }
        given += 1;
        let path = format!("{field}.{key}");
        if given > 1 {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 volume type"));
            continue;
        }
        match key {
            "emptyDir" if source.text("sizeLimit").starts_with('-') => {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(format!("{path}.sizeLimit"), detail));
            }
            "hostPath" => host_path(errors, &path, source),
            "secret" => keyed(errors, &path, source, "secretName"),
            "configMap" => keyed(errors, &path, source, "name"),
            "nfs" => {
                needed(errors, format!("{path}.server"), source.text("server"));
                needed(errors, format!("{path}.path"), source.text("path"));
                if !source.text("path").starts_with('/') {
                    let value = Value::from(source.text("path"));
                    errors.push(FieldError::invalid(
                        format!("{path}.path"),
                        &value,
                        "must be an absolute path",
                    ));
                }
            }
            "persistentVolumeClaim" => {
                needed(errors, format!("{path}.claimName"), source.text("claimName"));
            }
            "downwardAPI" => {
                mode(errors, format!("{path}.defaultMode"), source.at("defaultMode"));
                for file in source.list("items") {
                    downward_file(errors, &path, file);
                }
            }
            "csi" => storage::driver_name(errors, &format!("{path}.driver"), source.text("driver")),
            "projected" => projected(errors, &path, source),
            "ephemeral" => {
                if source.has("volumeClaimTemplate") {
                    let template = source.at("volumeClaimTemplate");
                    storage::claim_spec(
                        errors,
                        &format!("{path}.volumeClaimTemplate.spec"),
                        template.at("spec"),
                    );
                } else {
                    errors.push(FieldError::required(format!("{path}.volumeClaimTemplate"), ""));
                }
                let (pod, name) = (pod.map(|pod| pod.text("name")).unwrap_or_default(), volume.text("name"));
                if !pod.is_empty() && !name.is_empty() {
                    let claim = format!("{pod}-{name}");
                    for wrong in dns_subdomain(&claim) {
                        let detail = format!("PVC name {claim:?}: {wrong}");
                        errors.push(FieldError::invalid(format!("{field}.name"), &Value::from(name), detail));
                    }
                }
            }
            _ => {}
        }
    }
    if given == 0 {
        errors.push(FieldError::required(field, "must specify a volume type"));
    }
}

fn host_path(errors: &mut Vec<FieldError>, field: &str, source: &Value) {
    if needed(errors, format!("{field}.path"), source.text("path")) {
        no_steps_back(errors, &format!("{field}.path"), source.text("path"));
        let accepted = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        supported(errors, format!("{field}.type"), source.at("type"), &accepted);
    }
}

fn mode(errors: &mut Vec<FieldError>, field: String, mode: &Value) {
    if mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(FieldError::invalid(field, mode, FILE_MODE));
    }
}

/// A source that brings the keys of another object as files.
fn keyed(errors: &mut Vec<FieldError>, field: &str, source: &Value, name: &str) {
    needed(errors, format!("{field}.{name}"), source.text(name));
    mode(errors, format!("{field}.defaultMode"), source.at("defaultMode"));
    items(errors, field, source);
}

fn items(errors: &mut Vec<FieldError>, field: &str, source: &Value) {
    for (index, item) in source.list("items").iter().enumerate() {
        let field = format!("{field}.items[{index}]");
        needed(errors, format!("{field}.key"), item.text("key"));
        needed(errors, format!("{field}.path"), item.text("path"));
        file_path(errors, &format!("{field}.path"), item.text("path"));
        mode(errors, format!("{field}.mode"), item.at("mode"));
    }
}

/// A file inside a volume, which may not look like those Kubernetes keeps there for itself.
fn file_path(errors: &mut Vec<FieldError>, field: &str, path: &str) {
    descending_path(errors, field, path);
    if path.starts_with("..") && !path.starts_with("../") && path != ".." {
        errors.push(FieldError::invalid(field, &Value::from(path), "must not start with '..'"));
    }
}

fn downward_file(errors: &mut Vec<FieldError>, field: &str, file: &Value) {
    const PATHS: [&str; 5] =
        ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
    needed(errors, format!("{field}.path"), file.text("path"));
    file_path(errors, &format!("{field}.path"), file.text("path"));
    if file.has("fieldRef") {
        field_reference(errors, &format!("{field}.fieldRef"), file.at("fieldRef"), &PATHS);
        if file.has("resourceFieldRef") {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(field, &Value::from("resource"), detail));
        }
    } else if file.has("resourceFieldRef") {
        let field = format!("{field}.resourceFieldRef");
        resource_reference(errors, &field, file.at("resourceFieldRef"), true);
    } else {
        errors.push(FieldError::required(field, "one of fieldRef and resourceFieldRef is required"));
    }
    mode(errors, format!("{field}.mode"), file.at("mode"));
}

fn projected(errors: &mut Vec<FieldError>, field: &str, source: &Value) {
    mode(errors, format!("{field}.defaultMode"), source.at("defaultMode"));
    for (index, part) in source.list("sources").iter().enumerate() {
        let path = format!("{field}.sources[{index}]");
        let mut given = 0;
        for key in ["secret", "configMap"] {
            if part.has(key) {
                given += 1;
                let (path, part) = (format!("{path}.{key}"), part.at(key));
                needed(errors, format!("{path}.name"), part.text("name"));
                items(errors, &path, part);
            }
        }
        if part.has("downwardAPI") {
            given += 1;
            for file in part.at("downwardAPI").list("items") {
                downward_file(errors, &format!("{path}.downwardAPI"), file);
            }
        }
        if part.has("serviceAccountToken") {
            given += 1;
            let seconds = part.at("serviceAccountToken.expirationSeconds");
            if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
                let detail = "may not specify a duration less than 10 minutes";
                let path = format!("{path}.serviceAccountToken.expirationSeconds");
                errors.push(FieldError::invalid(path, seconds, detail));
            }
            needed(errors, format!("{field}.path"), part.text("serviceAccountToken.path"));
        }
        if given > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(path, detail));
        }
    }
}

//! Rules on volumes, claims, their classes and drivers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use units::Quantity;

use super::get::{Get, is_empty, take_over};
use super::names::{check, dns_subdomain, qualified_name};
use super::pod;
use super::rules::{label_selector, needed, not_negative, supported, unchanged};
use crate::field_error::FieldError;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Rules on a new object, metadata aside; nothing when the kind is another one.
pub(super) fn validate(kind: &str, object: &Value) -> Option<Vec<FieldError>> {
    let mut errors = Vec::new();
    match kind {
        "PersistentVolume" => volume(&mut errors, object.at("spec")),
        "PersistentVolumeClaim" => claim_spec(&mut errors, "spec", object.at("spec")),
        "StorageClass" => class(&mut errors, object),
        "CSINode" => csi_node(&mut errors, object),
        "VolumeAttachment" => attachment(&mut errors, object.at("spec")),
        _ => return None,
    }
    Some(errors)
}

/// Rules on a changed object, metadata aside.
pub(super) fn validate_update(kind: &str, object: &Value, old: &Value) -> Option<Vec<FieldError>> {
    let mut errors = Vec::new();
    match kind {
        "PersistentVolume" => {
            volume(&mut errors, object.at("spec"));
            volume_change(&mut errors, object, old);
        }
        "PersistentVolumeClaim" => {
            claim_spec(&mut errors, "spec", object.at("spec"));
            claim_change(&mut errors, object, old);
        }
        "StorageClass" => {
            for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                unchanged(&mut errors, key, object.at(key), old.at(key));
            }
        }
        "CSINode" => {
            csi_node(&mut errors, object);
            csi_node_change(&mut errors, object, old);
        }
        "CSIDriver" => {
            let spec = |object: &Value, key: &str| object.at("spec").at(key).clone();
            for (key, field) in [
                ("attachRequired", "spec.attachedRequired"),
                ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
            ] {
                unchanged(&mut errors, field, &spec(object, key), &spec(old, key));
            }
        }
        "VolumeAttachment" => {
            attachment(&mut errors, object.at("spec"));
            unchanged(&mut errors, "spec", object.at("spec"), old.at("spec"));
        }
        _ => return None,
    }
    Some(errors)
}

fn access_modes(errors: &mut Vec<FieldError>, field: &str, spec: &Value, missing: &str) {
    let modes = spec.list("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(field, missing));
    }
    for mode in modes {
        supported(errors, field.to_owned(), mode, &ACCESS_MODES);
    }
    let known = |mode: &&Value| ACCESS_MODES.contains(&mode.as_str().unwrap_or_default());
    let alone = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    if alone && modes.iter().filter(known).any(|mode| mode != "ReadWriteOncePod") {
        errors.push(FieldError::forbidden(field, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(|text| text.parse().ok())
}

fn positive(errors: &mut Vec<FieldError>, field: &str, value: &Value) {
    if amount(value).is_some_and(|quantity| quantity.sign() <= 0) {
        errors.push(FieldError::invalid(field, value, "must be greater than zero"));
    }
}

/// Rules on the spec of a claim.
pub(super) fn claim_spec(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    access_modes(errors, &format!("{field}.accessModes"), spec, "at least 1 access mode is required");
    label_selector(errors, &format!("{field}.selector"), spec.at("selector"));
    let path = format!("{field}.resources[storage]");
    match spec.at("resources.requests").get("storage") {
        None => errors.push(FieldError::required(path, "")),
        Some(size) => positive(errors, &path, size),
    }
    if !spec.text("storageClassName").is_empty() {
        check(errors, format!("{field}.storageClassName"), spec.text("storageClassName"), dns_subdomain);
    }
    if spec.has("volumeMode") {
        supported(errors, format!("{field}.volumeMode"), spec.at("volumeMode"), &["Block", "Filesystem"]);
    }
    for key in ["dataSource", "dataSourceRef"] {
        let source = spec.at(key);
        if !source.is_null() {
            needed(errors, format!("{field}.{key}.name"), source.text("name"));
            needed(errors, format!("{field}.{key}.kind"), source.text("kind"));
            if source.text("apiGroup").is_empty() && source.text("kind") != "PersistentVolumeClaim" {
                let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                errors.push(FieldError::invalid(format!("{field}.{key}"), source.at("kind"), detail));
            }
        }
    }
}

fn claim_change(errors: &mut Vec<FieldError>, claim: &Value, old: &Value) {
    let (mut new, mut before) = (claim.at("spec").clone(), old.at("spec").clone());
    if before.text("volumeName").is_empty() {
        take_over(&mut before, &new, "volumeName");
    }
    // The class of a claim that was made before there was a default one may be filled in.
    if !before.has("storageClassName") && new.has("storageClassName") {
        take_over(&mut new, old.at("spec"), "storageClassName");
    }
    if claim.text("status.phase") == "Bound" {
        let size = before.at("resources.requests").get("storage").cloned();
        let requests = new.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        if let (Some(requests), Some(size)) = (requests.and_then(Value::as_object_mut), size) {
            requests.insert("storage".to_owned(), size);
        }
        take_over(&mut new, &before, "volumeAttributesClassName");
    }
    if new != before {
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{}",
            pod::difference(&before, &new)
        );
        errors.push(FieldError::forbidden("spec", detail));
    }
    let size = |claim: &Value| amount(claim.at("spec.resources.requests.storage"));
    if let (Some(new_size), Some(old_size)) = (size(claim), size(old))
        && new_size < old_size
    {
        let capacity = amount(old.at("status.capacity.storage"));
        if capacity.is_none_or(|capacity| new_size <= capacity) && capacity.is_some() {
            let detail = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden("spec.resources.requests.storage", detail));
        }
    }
    unchanged(errors, "volumeMode", claim.at("spec.volumeMode"), old.at("spec.volumeMode"));
}

const VOLUME_SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn volume(errors: &mut Vec<FieldError>, spec: &Value) {
    access_modes(errors, "spec.accessModes", spec, "");
    let capacity = spec.at("capacity");
    if is_empty(capacity) {
        errors.push(FieldError::required("spec.capacity", ""));
    }
    let sizes = capacity.as_object().map_or(0, serde_json::Map::len);
    if !capacity.has("storage") || sizes > 1 {
        errors.push(FieldError::not_supported("spec.capacity", capacity, &["storage"]));
    }
    for (name, value) in spec.entries("capacity") {
        positive(errors, &format!("spec.capacity[{name}]"), value);
    }
    if !spec.text("persistentVolumeReclaimPolicy").is_empty() {
        let field = "spec.persistentVolumeReclaimPolicy".to_owned();
        let policy = spec.at("persistentVolumeReclaimPolicy");
        supported(errors, field, policy, &["Delete", "Recycle", "Retain"]);
    }
    if spec.has("nodeAffinity") {
        if spec.has("nodeAffinity.required") {
            pod::node_selector(errors, "spec.nodeAffinity.required", spec.at("nodeAffinity.required"));
        } else {
            let detail = "must specify required node constraints";
            errors.push(FieldError::required("spec.nodeAffinity.required", detail));
        }
    }
    let mut given = 0;
    for key in VOLUME_SOURCES {
        if spec.has(key) {
            given += 1;
            if given > 1 {
                let detail = "may not specify more than 1 volume type";
                errors.push(FieldError::forbidden(format!("spec.{key}"), detail));
            } else {
                volume_source(errors, key, spec);
            }
        }
    }
    if given == 0 {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    if !spec.text("storageClassName").is_empty() {
        check(errors, "spec.storageClassName", spec.text("storageClassName"), dns_subdomain);
    }
    if spec.has("volumeMode") {
        supported(errors, "spec.volumeMode".to_owned(), spec.at("volumeMode"), &["Block", "Filesystem"]);
    }
}

fn volume_source(errors: &mut Vec<FieldError>, key: &str, spec: &Value) {
    let source = spec.at(key);
    match key {
        "hostPath" => {
            needed(errors, "spec.hostPath.path".to_owned(), source.text("path"));
        }
        "nfs" => {
            needed(errors, "spec.nfs.server".to_owned(), source.text("server"));
            needed(errors, "spec.nfs.path".to_owned(), source.text("path"));
        }
        "local" => {
            needed(errors, "spec.local.path".to_owned(), source.text("path"));
            if !spec.has("nodeAffinity") {
                let detail = "Local volume requires node affinity";
                errors.push(FieldError::required("spec.nodeAffinity", detail));
            }
        }
        "csi" => {
            driver_name(errors, "spec.csi.driver", source.text("driver"));
            needed(errors, "spec.csi.volumeHandle".to_owned(), source.text("volumeHandle"));
        }
        _ => {}
    }
}

fn volume_change(errors: &mut Vec<FieldError>, volume: &Value, old: &Value) {
    let source = |volume: &Value| {
        let spec = volume.at("spec");
        let given = VOLUME_SOURCES.into_iter().filter(|key| spec.has(key));
        Value::Object(given.map(|key| (key.to_owned(), spec.at(key).clone())).collect())
    };
    let (new, before) = (source(volume), source(old));
    if new != before {
        let difference = pod::difference(&before, &new);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    unchanged(errors, "volumeMode", volume.at("spec.volumeMode"), old.at("spec.volumeMode"));
}

fn class(errors: &mut Vec<FieldError>, class: &Value) {
    let provisioner = class.text("provisioner");
    if needed(errors, "provisioner".to_owned(), provisioner) {
        for wrong in qualified_name(&provisioner.to_lowercase()) {
            let value = Value::from(provisioner.to_lowercase());
            errors.push(FieldError::invalid("provisioner", &value, wrong));
        }
    }
    for (key, _) in class.entries("parameters") {
        if key.is_empty() {
            errors.push(FieldError::invalid("parameters", &Value::from(""), "field can not be empty."));
        }
    }
    supported(errors, "reclaimPolicy".to_owned(), class.at("reclaimPolicy"), &["Delete", "Retain"]);
    supported(
        errors,
        "volumeBindingMode".to_owned(),
        class.at("volumeBindingMode"),
        &["Immediate", "WaitForFirstConsumer"],
    );
    for (index, term) in class.list("allowedTopologies").iter().enumerate() {
        for (other, requirement) in term.list("matchLabelExpressions").iter().enumerate() {
            let field = format!("allowedTopologies[{index}].matchLabelExpressions[{other}]");
            if requirement.list("values").is_empty() {
                errors.push(FieldError::required(format!("{field}.values"), ""));
            }
            check(errors, format!("{field}.key"), requirement.text("key"), qualified_name);
        }
    }
}

/// The name of a storage driver.
pub(super) fn driver_name(errors: &mut Vec<FieldError>, field: &str, name: &str) {
    if !needed(errors, field.to_owned(), name) {
        return;
    }
    if name.len() > 63 {
        errors.push(FieldError::too_long(field, 63));
    }
    check(errors, field, name, |name| dns_subdomain(&name.to_lowercase()));
}

fn csi_node(errors: &mut Vec<FieldError>, node: &Value) {
    let mut names = BTreeSet::new();
    for (index, driver) in node.list("spec.drivers").iter().enumerate() {
        let field = format!("spec.drivers[{index}]");
        driver_name(errors, &format!("{field}.name"), driver.text("name"));
        needed(errors, format!("{field}.nodeID"), driver.text("nodeID"));
        if driver.text("nodeID").len() > 256 {
            let value = driver.at("nodeID");
            errors.push(FieldError::invalid(
                format!("{field}.nodeID"),
                value,
                "must be 256 characters or less",
            ));
        }
        not_negative(errors, format!("{field}.allocatable.count"), driver.at("allocatable.count"));
        if !names.insert(driver.text("name")) {
            errors.push(FieldError::duplicate(format!("{field}.name"), driver.at("name")));
        }
        let mut keys = BTreeSet::new();
        for key in driver.list("topologyKeys").iter().filter_map(Value::as_str) {
            needed(errors, field.clone(), key);
            if !keys.insert(key) {
                errors.push(FieldError::duplicate(field.clone(), &Value::from(key)));
            }
            check(errors, field.clone(), key, qualified_name);
        }
    }
}

fn csi_node_change(errors: &mut Vec<FieldError>, node: &Value, old: &Value) {
    for before in old.list("spec.drivers") {
        for driver in node.list("spec.drivers").iter().filter(|driver| driver.at("name") == before.at("name"))
        {
            let (mut driver, mut before) = (driver.clone(), before.clone());
            for one in [&mut driver, &mut before] {
                take_over(one, &json!({}), "allocatable");
            }
            if driver != before {
                let mut error = FieldError::invalid("spec.drivers", &driver, "field is immutable");
                error.shown = Some(format!(
                    "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                    driver.at("name"),
                    driver.at("nodeID"),
                    driver.at("topologyKeys")
                ));
                errors.push(error);
            }
        }
    }
}

fn attachment(errors: &mut Vec<FieldError>, spec: &Value) {
    needed(errors, "spec.attacher".to_owned(), spec.text("attacher"));
    let source = spec.at("source");
    if !source.has("persistentVolumeName") && !source.has("inlineVolumeSpec") {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required("spec.source", detail));
    }
    needed(errors, "spec.nodeName".to_owned(), spec.text("nodeName"));
}

//! The cells of volumes, claims and their classes.

use serde_json::{Value, json};

use super::cells::{is_default, or, unknown};
use crate::kinds::Get;

fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = short.iter().filter(|(mode, _)| modes.iter().any(|given| given == mode));
    given.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn phase(object: &Value) -> Value {
    let deleted = object.has("metadata.deletionTimestamp");
    json!(if deleted { "Terminating" } else { object.text("status.phase") })
}

fn or_unset(value: &Value) -> Value {
    value.as_str().map_or_else(|| json!("<unset>"), |text| json!(text))
}

/// A class that an annotation names wins.
fn class(object: &Value) -> Value {
    let annotation = object
        .at("metadata.annotations")
        .get("volume.beta.kubernetes.io/storage-class")
        .and_then(Value::as_str);
    json!(annotation.unwrap_or_else(|| object.text("spec.storageClassName")))
}

pub(super) fn volume(volume: &Value, age: &Value) -> Vec<Value> {
    let claim = volume.at("spec.claimRef");
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", claim.text("namespace"), claim.text("name"))
    };
    vec![
        json!(volume.text("metadata.name")),
        or(volume.text("spec.capacity.storage"), "0"),
        json!(access_modes(volume.list("spec.accessModes"))),
        json!(volume.text("spec.persistentVolumeReclaimPolicy")),
        phase(volume),
        json!(claim),
        class(volume),
        or_unset(volume.at("spec.volumeAttributesClassName")),
        json!(volume.text("status.reason")),
        age.clone(),
        or_unset(volume.at("spec.volumeMode")),
    ]
}

pub(super) fn claim(claim: &Value, age: &Value) -> Vec<Value> {
    let bound = !claim.text("spec.volumeName").is_empty();
    let capacity = if bound { or(claim.text("status.capacity.storage"), "0") } else { json!("") };
    let modes = if bound { access_modes(claim.list("status.accessModes")) } else { String::new() };
    vec![
        json!(claim.text("metadata.name")),
        phase(claim),
        json!(claim.text("spec.volumeName")),
        capacity,
        json!(modes),
        class(claim),
        or_unset(claim.at("spec.volumeAttributesClassName")),
        age.clone(),
        or_unset(claim.at("spec.volumeMode")),
    ]
}

pub(super) fn storage(kind: &str, object: &Value, age: &Value) -> Vec<Value> {
    let text = |path: &str| json!(object.text(path));
    let flag = |path: &str| json!(object.flag(path));
    let mut name = object.text("metadata.name").to_owned();
    let rest = match kind {
        "StorageClass" => {
            let keys = [
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ];
            if is_default(object, &keys) {
                name.push_str(" (default)");
            }
            vec![
                text("provisioner"),
                or(object.text("reclaimPolicy"), "Delete"),
                or(object.text("volumeBindingMode"), "Immediate"),
                flag("allowVolumeExpansion"),
            ]
        }
        "CSINode" => vec![json!(object.list("spec.drivers").len())],
        "CSIDriver" => {
            let join = |path: &str, key: Option<&str>| {
                let all = object.list(path).iter();
                let all: Vec<&str> =
                    all.map(|one| key.map_or(one, |key| one.at(key)).as_str().unwrap_or_default()).collect();
                all.join(",")
            };
            let tokens = if object.has("spec.tokenRequests") {
                json!(join("spec.tokenRequests", Some("audience")))
            } else {
                json!("<unset>")
            };
            vec![
                json!(object.at("spec.attachRequired").as_bool().unwrap_or(true)),
                flag("spec.podInfoOnMount"),
                flag("spec.storageCapacity"),
                tokens,
                flag("spec.requiresRepublish"),
                or(&join("spec.volumeLifecycleModes", None), "<none>"),
            ]
        }
        "VolumeAttachment" => vec![
            text("spec.attacher"),
            text("spec.source.persistentVolumeName"),
            text("spec.nodeName"),
            flag("status.attached"),
        ],
        "VolumeAttributesClass" => vec![text("driverName")],
        _ => return unknown(object),
    };
    let mut cells = vec![json!(name)];
    cells.extend(rest);
    cells.push(age.clone());
    cells
}

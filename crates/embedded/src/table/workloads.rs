//! The cells of kinds that make pods.

use serde_json::{Value, json};

use super::cells::{bare_selector, containers, labels, selector, unknown};
use crate::kinds::Get;

/// The cells of one object, one for each column.
pub(super) fn cells(kind: &str, object: &Value, age: &Value) -> Vec<Value> {
    let count = |path: &str| json!(object.number(path).unwrap_or_default());
    let age = age.clone();
    let template = if kind == "PodTemplate" { object.at("template") } else { object.at("spec.template") };
    let (containers, images) = containers(template);
    let rest = match kind {
        "PodTemplate" => {
            vec![containers, images, json!(labels(object.at("template.metadata.labels")))]
        }
        "ReplicationController" | "ReplicaSet" => {
            let selector = if kind == "ReplicaSet" {
                selector(object.at("spec.selector"))
            } else {
                labels(object.at("spec.selector"))
            };
            vec![
                count("spec.replicas"),
                count("status.replicas"),
                count("status.readyReplicas"),
                age,
                containers,
                images,
                json!(selector),
            ]
        }
        "Deployment" => {
            vec![
                json!(ready(object)),
                count("status.updatedReplicas"),
                count("status.availableReplicas"),
                age,
                containers,
                images,
                json!(bare_selector(object.at("spec.selector"))),
            ]
        }
        "StatefulSet" => {
            vec![json!(ready(object)), age, containers, images]
        }
        "DaemonSet" => {
            vec![
                count("status.desiredNumberScheduled"),
                count("status.currentNumberScheduled"),
                count("status.numberReady"),
                count("status.updatedNumberScheduled"),
                count("status.numberAvailable"),
                json!(labels(object.at("spec.template.spec.nodeSelector"))),
                age,
                containers,
                images,
                json!(selector(object.at("spec.selector"))),
            ]
        }
        "ControllerRevision" => {
            let owner = object.list("metadata.ownerReferences").iter().find(|owner| owner.flag("controller"));
            let owner = owner.map_or_else(|| "<none>".to_owned(), qualified_owner);
            vec![json!(owner), count("revision"), age]
        }
        _ => return unknown(object),
    };
    let mut cells = vec![json!(object.text("metadata.name"))];
    cells.extend(rest);
    cells
}

fn ready(object: &Value) -> String {
    let count = |path: &str| object.number(path).unwrap_or_default();
    format!("{}/{}", count("status.readyReplicas"), count("spec.replicas"))
}

fn qualified_owner(owner: &Value) -> String {
    let group = owner.text("apiVersion").split_once('/').map(|(group, _)| group);
    let kind = owner.text("kind").to_lowercase();
    let kind = group.map_or_else(|| kind.clone(), |group| format!("{kind}.{group}"));
    format!("{kind}/{}", owner.text("name"))
}

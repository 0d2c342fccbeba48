//! Rules on containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::get::Get;
use super::super::names::{
    check, config_key, dns_label, dns_subdomain, environment_name, port_name, qualified_name,
};
use super::super::rules::{needed, one_of, port_number};
use super::volumes::Volumes;
use super::{handlers, requests, security};
use crate::field_error::FieldError;

/// Rules on all containers of a pod.
pub(super) fn validate(errors: &mut Vec<FieldError>, field: &str, spec: &Value, volumes: &Volumes<'_>) {
    let regular = spec.list("containers");
    if regular.is_empty() {
        errors.push(FieldError::required(format!("{field}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in regular.iter().enumerate() {
        let field = format!("{field}.containers[{index}]");
        common(errors, &field, container, spec, volumes);
        if !names.insert(container.text("name")) {
            errors.push(FieldError::duplicate(format!("{field}.name"), &Value::from(container.text("name"))));
        }
        handlers::all(errors, &field, container, spec);
        restart_policy(errors, &field, container);
    }
    let mut ports = BTreeSet::new();
    for (index, container) in regular.iter().enumerate() {
        host_port_conflicts(errors, &format!("{field}.containers[{index}]"), container, &mut ports);
    }
    init_containers(errors, field, spec, volumes, names);
}

fn init_containers<'a>(
    errors: &mut Vec<FieldError>,
    field: &str,
    spec: &'a Value,
    volumes: &Volumes<'_>,
    mut names: BTreeSet<&'a str>,
) {
    for (index, container) in spec.list("initContainers").iter().enumerate() {
        let list = format!("{field}.initContainers");
        let field = format!("{list}[{index}]");
        common(errors, &field, container, spec, volumes);
        if container.has("restartPolicy") {
            restart_policy(errors, &field, container);
        }
        let name = container.text("name");
        if !names.insert(name) && !name.is_empty() {
            errors.push(FieldError::duplicate(format!("{field}.name"), &Value::from(name)));
        }
        // They run one after the other, and the API server counts from the start for each.
        host_port_conflicts(errors, &format!("{list}[0]"), container, &mut BTreeSet::new());
        if container.text("restartPolicy") == "Always" {
            handlers::all(errors, &field, container, spec);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(key) {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(format!("{field}.{key}"), detail));
                }
            }
        }
    }
}

/// Rules on any container.
fn common(errors: &mut Vec<FieldError>, field: &str, container: &Value, spec: &Value, volumes: &Volumes<'_>) {
    if needed(errors, format!("{field}.name"), container.text("name")) {
        check(errors, format!("{field}.name"), container.text("name"), dns_label);
    }
    needed(errors, format!("{field}.image"), container.text("image"));
    one_of(
        errors,
        format!("{field}.terminationMessagePolicy"),
        container.at("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports(errors, &format!("{field}.ports"), container.list("ports"));
    environment(errors, &format!("{field}.env"), container.list("env"));
    environment_from(errors, &format!("{field}.envFrom"), container.list("envFrom"));
    mounts(errors, field, container, volumes);
    devices(errors, field, container, volumes);
    one_of(
        errors,
        format!("{field}.imagePullPolicy"),
        container.at("imagePullPolicy"),
        &["Always", "IfNotPresent", "Never"],
    );
    let claims: Vec<&str> = spec.list("resourceClaims").iter().map(|claim| claim.text("name")).collect();
    requests::container(errors, &format!("{field}.resources"), container.at("resources"), &claims);
    resize_policy(errors, &format!("{field}.resizePolicy"), container, spec);
    security::container(errors, &format!("{field}.securityContext"), container.at("securityContext"));
}

fn restart_policy(errors: &mut Vec<FieldError>, field: &str, container: &Value) {
    if container.has("restartPolicy") {
        let accepted = ["Always", "Never", "OnFailure"];
        one_of(errors, format!("{field}.restartPolicy"), container.at("restartPolicy"), &accepted);
    } else if !container.list("restartPolicyRules").is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.push(FieldError::required(format!("{field}.restartPolicy"), detail));
    }
}

fn ports(errors: &mut Vec<FieldError>, field: &str, ports: &[Value]) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (field, name) = (format!("{field}[{index}]"), port.text("name"));
        if !name.is_empty() {
            let before = errors.len();
            check(errors, format!("{field}.name"), name, port_name);
            if errors.len() == before && !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{field}.name"), &Value::from(name)));
            }
        }
        match port.number("containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(format!("{field}.containerPort"), "")),
            number => port_number(errors, format!("{field}.containerPort"), number),
        }
        match port.number("hostPort").unwrap_or_default() {
            0 => {}
            number => port_number(errors, format!("{field}.hostPort"), number),
        }
        one_of(errors, format!("{field}.protocol"), port.at("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn host_port_conflicts(
    errors: &mut Vec<FieldError>,
    field: &str,
    container: &Value,
    taken: &mut BTreeSet<String>,
) {
    for (index, port) in container.list("ports").iter().enumerate() {
        if let Some(number) = port.number("hostPort").filter(|number| *number != 0) {
            let key = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if !taken.insert(key.clone()) {
                let field = format!("{field}.ports[{index}].hostPort");
                errors.push(FieldError::duplicate(field, &Value::from(key)));
            }
        }
    }
}

/// In the host's network a container's ports are the host's.
pub(super) fn host_network_ports(errors: &mut Vec<FieldError>, field: &str, spec: &Value, is_pod: bool) {
    for (index, container) in spec.list("containers").iter().enumerate() {
        for (other, port) in container.list("ports").iter().enumerate() {
            let host = port.number("hostPort").unwrap_or_default();
            if (is_pod || host != 0) && host != port.number("containerPort").unwrap_or_default() {
                errors.push(FieldError::invalid(
                    format!("{field}.containers[{index}].ports[{other}].hostPort"),
                    &Value::from(host),
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

const FIELD_PATHS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCE_PATHS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn environment(errors: &mut Vec<FieldError>, field: &str, variables: &[Value]) {
    for (index, variable) in variables.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if needed(errors, format!("{field}.name"), variable.text("name")) {
            check(errors, format!("{field}.name"), variable.text("name"), environment_name);
        }
        if variable.has("valueFrom") {
            value_from(errors, &format!("{field}.valueFrom"), variable);
        }
    }
}

fn value_from(errors: &mut Vec<FieldError>, field: &str, variable: &Value) {
    let from = variable.at("valueFrom");
    let mut sources = 0;
    if from.has("fieldRef") {
        sources += 1;
        field_reference(errors, &format!("{field}.fieldRef"), from.at("fieldRef"), &FIELD_PATHS);
    }
    if from.has("resourceFieldRef") {
        sources += 1;
        let field = format!("{field}.resourceFieldRef");
        resource_reference(errors, &field, from.at("resourceFieldRef"), false);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if from.has(key) {
            sources += 1;
            let (field, reference) = (format!("{field}.{key}"), from.at(key));
            check(errors, format!("{field}.name"), reference.text("name"), dns_subdomain);
            if needed(errors, format!("{field}.key"), reference.text("key")) {
                check(errors, format!("{field}.key"), reference.text("key"), config_key);
            }
        }
    }
    if from.has("fileKeyRef") {
        sources += 1;
        let (field, reference) = (format!("{field}.fileKeyRef"), from.at("fileKeyRef"));
        for key in ["key", "volumeName", "path"] {
            needed(errors, format!("{field}.{key}"), reference.text(key));
        }
    }
    let detail = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !variable.text("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(field, &Value::from(""), detail));
}

/// A reference to a field of the pod.
pub(super) fn field_reference(
    errors: &mut Vec<FieldError>,
    field: &str,
    reference: &Value,
    accepted: &[&str],
) {
    let path = reference.text("fieldPath");
    if !needed(errors, format!("{field}.fieldPath"), path) {
        return;
    }
    let subscript = path.strip_suffix("']").and_then(|path| path.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            check(errors, field, &key.to_lowercase(), qualified_name);
        }
        Some(("metadata.labels", key)) => check(errors, field, key, qualified_name),
        Some(_) => {
            let detail =
                format!("error converting fieldPath: field label does not support subscript: {path}");
            errors.push(FieldError::invalid(format!("{field}.fieldPath"), &Value::from(path), detail));
        }
        None if accepted.contains(&path) => {}
        None => {
            let known = FIELD_PATHS.contains(&path)
                || matches!(
                    path,
                    "metadata.annotations" | "metadata.labels" | "spec.restartPolicy" | "status.phase"
                );
            let field = format!("{field}.fieldPath");
            if known {
                errors.push(FieldError::not_supported(field, &Value::from(path), accepted));
            } else {
                let detail = format!("error converting fieldPath: field label not supported: {path}");
                errors.push(FieldError::invalid(field, &Value::from(path), detail));
            }
        }
    }
}

/// A reference to a resource of a container.
pub(super) fn resource_reference(
    errors: &mut Vec<FieldError>,
    field: &str,
    reference: &Value,
    in_volume: bool,
) {
    let resource = reference.text("resource");
    let pages = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if in_volume && reference.text("containerName").is_empty() {
        errors.push(FieldError::required(format!("{field}.containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(format!("{field}.resource"), ""));
    } else if !RESOURCE_PATHS.contains(&resource) && !pages {
        let value = Value::from(resource);
        errors.push(FieldError::not_supported(format!("{field}.resource"), &value, &RESOURCE_PATHS));
    }
    let divisor = reference.text("divisor");
    if matches!(resource, "limits.cpu" | "requests.cpu") && !matches!(divisor, "" | "0" | "1" | "1m") {
        let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
        errors.push(FieldError::invalid(format!("{field}.divisor"), &Value::from(resource), detail));
    }
}

fn environment_from(errors: &mut Vec<FieldError>, list: &str, sources: &[Value]) {
    for (index, source) in sources.iter().enumerate() {
        let field = format!("{list}[{index}]");
        if !source.text("prefix").is_empty() {
            check(errors, format!("{field}.prefix"), source.text("prefix"), environment_name);
        }
        let mut given = 0;
        for key in ["configMapRef", "secretRef"] {
            if source.has(key) {
                given += 1;
                let (field, name) = (format!("{field}.{key}.name"), source.at(key).text("name"));
                if needed(errors, field.clone(), name) {
                    check(errors, field, name, dns_subdomain);
                }
            }
        }
        let detail = match given {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(list, &Value::from(""), detail));
    }
}

fn mounts(errors: &mut Vec<FieldError>, field: &str, container: &Value, volumes: &Volumes<'_>) {
    let list = format!("{field}.volumeMounts");
    let devices: BTreeMap<&str, &str> = container
        .list("volumeDevices")
        .iter()
        .map(|device| (device.text("name"), device.text("devicePath")))
        .collect();
    let mut paths = BTreeSet::new();
    for (index, mount) in container.list("volumeMounts").iter().enumerate() {
        let field = format!("{list}[{index}]");
        let (name, path) = (mount.text("name"), mount.text("mountPath"));
        let invalid = |key: &str, value: &str, detail: &str| {
            FieldError::invalid(format!("{field}.{key}"), &Value::from(value), detail)
        };
        needed(errors, format!("{field}.name"), name);
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(format!("{field}.name"), &Value::from(name)));
        }
        needed(errors, format!("{field}.mountPath"), path);
        if !paths.insert(path) {
            errors.push(invalid("mountPath", path, "must be unique"));
        }
        if devices.contains_key(name) {
            errors.push(invalid("name", name, "must not already exist in volumeDevices"));
        }
        if devices.values().any(|device| *device == path) {
            errors.push(invalid("mountPath", path, "must not already exist as a path in volumeDevices"));
        }
        for key in ["subPath", "subPathExpr"] {
            let text = mount.text(key);
            if key == "subPathExpr" && !text.is_empty() && !mount.text("subPath").is_empty() {
                errors.push(invalid(key, text, "subPathExpr and subPath are mutually exclusive"));
            }
            // The API server leaves out which mount it is.
            descending_path(errors, &format!("{list}.{key}"), text);
        }
        if mount.has("mountPropagation") {
            let accepted = ["Bidirectional", "HostToContainer", "None"];
            one_of(errors, format!("{list}.mountPropagation"), mount.at("mountPropagation"), &accepted);
        }
    }
}

/// A path that stays below where it starts.
pub(super) fn descending_path(errors: &mut Vec<FieldError>, field: &str, text: &str) {
    if text.starts_with('/') {
        errors.push(FieldError::invalid(field, &Value::from(text), "must be a relative path"));
    }
    no_steps_back(errors, field, text);
}

/// A path without `..`.
pub(super) fn no_steps_back(errors: &mut Vec<FieldError>, field: &str, text: &str) {
    if text.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(field, &Value::from(text), "must not contain '..'"));
    }
}

fn devices(errors: &mut Vec<FieldError>, field: &str, container: &Value, volumes: &Volumes<'_>) {
    let mut names = BTreeSet::new();
    for (index, device) in container.list("volumeDevices").iter().enumerate() {
        let field = format!("{field}.volumeDevices[{index}]");
        let (name, path) = (device.text("name"), device.text("devicePath"));
        needed(errors, format!("{field}.name"), name);
        if !names.insert(name) {
            errors.push(FieldError::invalid(format!("{field}.name"), &Value::from(name), "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(format!("{field}.name"), &Value::from(name))),
            Some(volume) if volume.has("persistentVolumeClaim") || volume.has("ephemeral") => {}
            Some(_) => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(format!("{field}.name"), &Value::from(name), detail));
            }
        }
        needed(errors, format!("{field}.devicePath"), path);
        let mounts = container.list("volumeMounts");
        if mounts.iter().any(|mount| mount.text("name") == name) {
            let detail = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(format!("{field}.name"), &Value::from(name), detail));
        }
        if mounts.iter().any(|mount| mount.text("mountPath") == path) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(format!("{field}.devicePath"), &Value::from(path), detail));
        }
    }
}

fn resize_policy(errors: &mut Vec<FieldError>, field: &str, container: &Value, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (index, policy) in container.list("resizePolicy").iter().enumerate() {
        let resource = policy.text("resourceName");
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(format!("{field}[{index}]"), &Value::from(resource)));
        }
        one_of(errors, field.to_owned(), policy.at("resourceName"), &["cpu", "memory"]);
        one_of(errors, field.to_owned(), policy.at("restartPolicy"), &["NotRequired", "RestartContainer"]);
        if spec.text("restartPolicy") == "Never" && policy.text("restartPolicy") != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(field, policy.at("restartPolicy"), detail));
        }
    }
}

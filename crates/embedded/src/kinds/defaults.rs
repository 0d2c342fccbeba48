//! The defaults of built-in types, one function for each struct that has any.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::get::{Get, child, is_empty, set_empty, set_missing};

/// Fills in one struct; `name` is its Go type.
pub(crate) fn fill(name: &str, map: &mut Map<String, Value>) {
    match name {
        "core.Container" | "core.EphemeralContainer" => container(map),
        "core.ContainerPort" | "core.EndpointPort" => set_empty(map, "protocol", "TCP"),
        "core.Probe" => probe(map),
        "core.HTTPGetAction" => {
            set_empty(map, "path", "/");
            set_empty(map, "scheme", "HTTP");
        }
        "core.GRPCAction" => set_missing(map, "service", ""),
        "core.ObjectFieldSelector" => set_empty(map, "apiVersion", "v1"),
        "core.FileKeySelector" => set_missing(map, "optional", false),
        "core.PodSpec" => pod_spec(map),
        "core.Pod" => pod(map),
        "core.PodStatus" => pod_status(map),
        "core.Node" => node(map),
        "core.Service" => service(map),
        "core.ReplicationController" => replication_controller(map),
        "core.PersistentVolume" => persistent_volume(map),
        "core.PersistentVolumeClaim" => {
            if let Some(status) = child(map, "status") {
                set_empty(status, "phase", "Pending");
            }
        }
        "core.PersistentVolumeClaimSpec" => set_missing(map, "volumeMode", "Filesystem"),
        "core.Namespace" => namespace(map),
        "core.NamespaceStatus" => set_empty(map, "phase", "Active"),
        "core.Secret" => secret(map),
        "core.LimitRangeItem" => limit_range_item(map),
        "rbac.ClusterRoleBinding" | "rbac.RoleBinding" => {
            if let Some(reference) = child(map, "roleRef") {
                set_empty(reference, "apiGroup", RBAC);
            }
        }
        "rbac.Subject" => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
            if kind == "User" || kind == "Group" {
                set_empty(map, "apiGroup", RBAC);
            }
        }
        "scheduling.PriorityClass" => set_missing(map, "preemptionPolicy", "PreemptLowerPriority"),
        "storage.StorageClass" => {
            set_missing(map, "reclaimPolicy", "Delete");
            set_missing(map, "volumeBindingMode", "Immediate");
        }
        "storage.CSIDriverSpec" => csi_driver(map),
        "discovery.EndpointPort" => {
            set_missing(map, "name", "");
            set_missing(map, "protocol", "TCP");
        }
        "networking.NetworkPolicyPort" => set_missing(map, "protocol", "TCP"),
        "networking.NetworkPolicySpec" => {
            let egress = map.get("egress").is_some_and(|egress| !is_empty(egress));
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            set_empty(map, "policyTypes", types);
        }
        "networking.IngressClassParametersReference" => set_missing(map, "scope", "Cluster"),
        "resource.ExactDeviceRequest" | "resource.DeviceSubRequest" => {
            set_empty(map, "allocationMode", "ExactCount");
            if map.get("allocationMode").and_then(Value::as_str) == Some("ExactCount") {
                set_empty(map, "count", 1);
            }
        }
        "apiextensions.CustomResourceDefinition" => super::crd::fill(map),
        "apiextensions.ServiceReference" => set_missing(map, "port", 443),
        _ => volume(name, map).unwrap_or_else(|| super::workloads::fill(name, map)),
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn volume(name: &str, map: &mut Map<String, Value>) -> Option<()> {
    match name {
        "core.Volume" => {
            if map.iter().all(|(key, value)| key == "name" || value.is_null()) {
                map.insert("emptyDir".to_owned(), json!({}));
            }
        }
        "core.HostPathVolumeSource" => set_missing(map, "type", ""),
        "core.SecretVolumeSource"
        | "core.ConfigMapVolumeSource"
        | "core.DownwardAPIVolumeSource"
        | "core.ProjectedVolumeSource" => set_missing(map, "defaultMode", 0o644),
        "core.ServiceAccountTokenProjection" => set_missing(map, "expirationSeconds", 3600),
        "core.ImageVolumeSource" => {
            let policy = pull_policy(map.get("reference"));
            set_empty(map, "pullPolicy", policy);
        }
        "core.ISCSIVolumeSource" | "core.ISCSIPersistentVolumeSource" => {
            set_empty(map, "iscsiInterface", "default");
        }
        "core.RBDVolumeSource" | "core.RBDPersistentVolumeSource" => {
            set_empty(map, "pool", "rbd");
            set_empty(map, "user", "admin");
            set_empty(map, "keyring", "/etc/ceph/keyring");
        }
        "core.AzureDiskVolumeSource" => {
            set_missing(map, "cachingMode", "ReadWrite");
            set_missing(map, "fsType", "ext4");
            set_missing(map, "readOnly", false);
            set_missing(map, "kind", "Shared");
        }
        "core.ScaleIOVolumeSource" | "core.ScaleIOPersistentVolumeSource" => {
            set_empty(map, "storageMode", "ThinProvisioned");
            set_empty(map, "fsType", "xfs");
        }
        _ => return None,
    }
    Some(())
}

/// Images without a tag, or with `latest`, are pulled anew every time.
fn pull_policy(image: Option<&Value>) -> &'static str {
    let image = image.and_then(Value::as_str).unwrap_or_default();
    if image.contains('@') {
        return "IfNotPresent";
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn container(map: &mut Map<String, Value>) {
    let policy = pull_policy(map.get("image"));
    set_empty(map, "imagePullPolicy", policy);
    set_empty(map, "terminationMessagePath", "/dev/termination-log");
    set_empty(map, "terminationMessagePolicy", "File");
}

fn probe(map: &mut Map<String, Value>) {
    set_empty(map, "timeoutSeconds", 1);
    set_empty(map, "periodSeconds", 10);
    set_empty(map, "successThreshold", 1);
    set_empty(map, "failureThreshold", 3);
}

fn pod_spec(map: &mut Map<String, Value>) {
    set_empty(map, "dnsPolicy", "ClusterFirst");
    set_empty(map, "restartPolicy", "Always");
    set_missing(map, "securityContext", json!({}));
    set_missing(map, "terminationGracePeriodSeconds", 30);
    set_empty(map, "schedulerName", "default-scheduler");
    // Two names for one thing; the newer one wins and both are written.
    let account = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|key| map.get(*key).filter(|value| !is_empty(value)).cloned());
    if let Some(account) = account {
        map.insert("serviceAccountName".to_owned(), account.clone());
        map.insert("serviceAccount".to_owned(), account);
    }
}

/// What only pods get, not their templates.
fn pod(map: &mut Map<String, Value>) {
    let Some(spec) = child(map, "spec") else { return };
    set_missing(spec, "enableServiceLinks", true);
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                requests_from_limits(resources);
            }
            if host_network {
                host_ports(container);
            }
        }
    }
    super::pod::fill_pod_level_resources(spec);
}

/// The single address is the first of the list, and wins when they differ.
fn pod_status(map: &mut Map<String, Value>) {
    let single = map.get("podIP").filter(|address| !is_empty(address)).cloned();
    let first = map.get("podIPs").and_then(|list| list.get(0)).map(|first| first.at("ip").clone());
    match (single, first) {
        (Some(single), first) if first.as_ref() != Some(&single) => {
            map.insert("podIPs".to_owned(), json!([{"ip": single}]));
        }
        (None, Some(first)) => {
            map.insert("podIP".to_owned(), first);
        }
        _ => {}
    }
}

fn requests_from_limits(resources: &mut Map<String, Value>) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if let Some(requests) = child(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

fn host_ports(container: &mut Map<String, Value>) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        if let Some(number) = port.get("containerPort").cloned() {
            set_empty(port, "hostPort", number);
        }
    }
}

fn node(map: &mut Map<String, Value>) {
    if let Some(spec) = child(map, "spec") {
        // The list and its first entry are kept in step.
        let single = spec.get("podCIDR").filter(|cidr| !is_empty(cidr)).cloned();
        let first = spec.get("podCIDRs").and_then(|cidrs| cidrs.get(0)).cloned();
        match (single, first) {
            (Some(single), None) => {
                spec.insert("podCIDRs".to_owned(), json!([single]));
            }
            (None, Some(first)) => {
                spec.insert("podCIDR".to_owned(), first);
            }
            _ => {}
        }
    }
    if let Some(status) = child(map, "status")
        && let Some(capacity) = status.get("capacity").filter(|capacity| !capacity.is_null()).cloned()
    {
        set_missing(status, "allocatable", capacity);
    }
}

fn service(map: &mut Map<String, Value>) {
    let Some(spec) = child(map, "spec") else { return };
    set_empty(spec, "sessionAffinity", "None");
    let by_client = spec.get("sessionAffinity").and_then(Value::as_str) == Some("ClientIP");
    if by_client {
        let timeout = spec.get("sessionAffinityConfig").map(|config| config.has("clientIP.timeoutSeconds"));
        if timeout != Some(true) {
            spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
    } else {
        spec.remove("sessionAffinityConfig");
    }
    set_empty(spec, "type", "ClusterIP");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            set_empty(port, "protocol", "TCP");
            if let Some(number) = port.get("port").cloned() {
                set_empty(port, "targetPort", number);
            }
        }
    }
    let external = spec.get("externalIPs").is_some_and(|addresses| !is_empty(addresses));
    if kind == "LoadBalancer" || kind == "NodePort" || (kind == "ClusterIP" && external) {
        set_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind != "ExternalName" {
        set_missing(spec, "internalTrafficPolicy", "Cluster");
        // Both fields name the same address.
        if let Some(address) = spec.get("clusterIP").filter(|address| !is_empty(address)).cloned() {
            set_empty(spec, "clusterIPs", json!([address]));
        }
    }
    if kind == "LoadBalancer" {
        set_missing(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn replication_controller(map: &mut Map<String, Value>) {
    let labels = map.get("spec").map(|spec| spec.at("template.metadata.labels").clone()).unwrap_or_default();
    if let Some(spec) = child(map, "spec") {
        set_missing(spec, "replicas", 1);
        if !is_empty(&labels) {
            set_empty(spec, "selector", labels.clone());
        }
    }
    if !is_empty(&labels)
        && let Some(metadata) = child(map, "metadata")
    {
        set_empty(metadata, "labels", labels);
    }
}

fn persistent_volume(map: &mut Map<String, Value>) {
    if let Some(status) = child(map, "status") {
        set_empty(status, "phase", "Pending");
    }
    if let Some(spec) = child(map, "spec") {
        set_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_missing(spec, "volumeMode", "Filesystem");
    }
}

fn namespace(map: &mut Map<String, Value>) {
    let name = map.get("metadata").map(|metadata| metadata.text("name").to_owned()).unwrap_or_default();
    if !name.is_empty()
        && let Some(labels) = child(map, "metadata").and_then(|metadata| child(metadata, "labels"))
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    }
}

/// Texts given as such are kept encoded, as all data of a secret.
fn secret(map: &mut Map<String, Value>) {
    set_empty(map, "type", "Opaque");
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    if let Some(data) = child(map, "data") {
        for (key, text) in texts {
            let encoded = BASE64_STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(key, Value::from(encoded));
        }
    }
}

fn limit_range_item(map: &mut Map<String, Value>) {
    if map.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(values) = map.get(source).and_then(Value::as_object).cloned() else { continue };
        if let Some(target) = child(map, target) {
            for (name, value) in values {
                target.entry(name).or_insert(value);
            }
        }
    }
}

fn csi_driver(map: &mut Map<String, Value>) {
    set_missing(map, "attachRequired", true);
    for flag in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set_missing(map, flag, false);
    }
    set_missing(map, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set_empty(map, "volumeLifecycleModes", json!(["Persistent"]));
}

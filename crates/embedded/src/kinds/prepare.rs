//! What a write may set and what it may not: the status, the spec, the generation.

use serde_json::{Value, json};

use super::get::{Get, child, put, set_missing, take_over};
use super::{Context, pod, workloads};

/// Which changes of an object count as a new generation.
enum Generation {
    /// The kind has none.
    None,
    /// It is set once.
    Fixed,
    /// A change of the spec.
    Spec,
    /// A change of the spec or the annotations.
    SpecAndAnnotations,
    /// A change of anything but metadata.
    Content,
    /// A change of anything but metadata, or of the labels.
    ContentAndLabels,
}

fn generation(group: &str, kind: &str) -> Generation {
    match (group, kind) {
        ("apps", "Deployment") => Generation::SpecAndAnnotations,
        ("scheduling.k8s.io", "PriorityClass") => Generation::Fixed,
        ("discovery.k8s.io", "EndpointSlice") => Generation::ContentAndLabels,
        ("", "PodTemplate") => Generation::Content,
        ("", "Pod" | "ReplicationController")
        | ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job" | "CronJob")
        | ("policy", "PodDisruptionBudget")
        | ("networking.k8s.io", "Ingress" | "NetworkPolicy" | "IngressClass")
        | ("storage.k8s.io", "CSIDriver")
        | ("resource.k8s.io", "ResourceSlice" | "DeviceClass")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => Generation::Spec,
        _ => Generation::None,
    }
}

/// Whether the main resource ignores the status clients send. A node's first status is theirs to write.
fn has_status(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        (
            "",
            "Pod"
                | "Namespace"
                | "Node"
                | "Service"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "ReplicationController"
                | "ResourceQuota"
        ) | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job" | "CronJob")
            | ("policy", "PodDisruptionBudget")
            | ("networking.k8s.io", "Ingress" | "ServiceCIDR")
            | ("storage.k8s.io", "VolumeAttachment")
            | ("resource.k8s.io", "ResourceClaim")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

pub(super) fn create(context: &Context<'_>, object: &mut Value) {
    let (group, kind) = (context.group, context.kind);
    // Drivers only get one when they change.
    let generated = !matches!(generation(group, kind), Generation::None) && kind != "CSIDriver";
    if let Some(metadata) = object.as_object_mut().and_then(|map| child(map, "metadata")) {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
        if generated {
            metadata.insert("generation".to_owned(), json!(1));
        } else {
            // Kinds without a generation of their own keep what they are given, which is almost never there.
            metadata.retain(|key, value| key != "generation" || value.as_i64() != Some(0));
        }
    }
    if has_status(group, kind)
        && kind != "Node"
        && let Some(map) = object.as_object_mut()
    {
        map.insert("status".to_owned(), json!({}));
    }
    match (group, kind) {
        ("", "Pod") => {
            pod::tolerate_lost_nodes(object);
            pod::prepare_create(context, object);
        }
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolume") => {
            put(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": context.now}));
        }
        ("", "PersistentVolumeClaim") => {
            // The status is written empty; its phase is a default that readers see.
            put(object, "status", json!({"phase": "Pending"}));
            same_data_source(object);
        }
        ("", "Service") => {
            put(object, "status", json!({"loadBalancer": {}}));
            set_families(object);
        }
        ("batch", "Job") => workloads::generate_job_selector(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => super::crd::stored_versions(object),
        _ => {}
    }
    // The written status has the fields that are always there.
    super::default(context, object, None);
    if (group, kind) == ("apps", "DaemonSet")
        && let Some(annotations) = object
            .as_object_mut()
            .and_then(|map| child(map, "metadata"))
            .and_then(|metadata| child(metadata, "annotations"))
    {
        set_missing(annotations, TEMPLATE_GENERATION, "1");
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn namespace(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    map.insert("status".to_owned(), json!({"phase": "Active"}));
    let Some(spec) = child(map, "spec") else { return };
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|finalizer| finalizer == "kubernetes")
    {
        list.push(json!("kubernetes"));
    }
}

/// A claim's source has two names; whichever is missing is filled in.
fn same_data_source(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for (from, to) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
        let source = spec.get(from).filter(|source| !source.is_null() && !source.has("namespace")).cloned();
        if let Some(source) = source {
            set_missing(spec, to, source);
        }
    }
}

pub(super) fn update(context: &Context<'_>, object: &mut Value, old: &Value) {
    let (group, kind) = (context.group, context.kind);
    keep_system_metadata(object, old);
    if has_status(group, kind) {
        take_over(object, old, "status");
    }
    if adjust(context, object, old) {
        super::default(context, object, Some(old));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // Clients do not choose it.
        match old.at("metadata.generation") {
            Value::Null => metadata.remove("generation"),
            generation => metadata.insert("generation".to_owned(), generation.clone()),
        };
    }
    let changed = match generation(group, kind) {
        Generation::None | Generation::Fixed => false,
        Generation::Spec => object.at("spec") != old.at("spec"),
        Generation::SpecAndAnnotations => {
            object.at("spec") != old.at("spec")
                || object.at("metadata.annotations") != old.at("metadata.annotations")
        }
        counted @ (Generation::Content | Generation::ContentAndLabels) => {
            let body = |object: &Value| {
                let mut rest = object.clone();
                rest.as_object_mut().and_then(|map| map.remove("metadata"));
                rest
            };
            let labels = object.at("metadata.labels") != old.at("metadata.labels");
            body(object) != body(old) || (matches!(counted, Generation::ContentAndLabels) && labels)
        }
    };
    if (group, kind) == ("apps", "DaemonSet") {
        template_generation(object, old);
    }
    if changed {
        let next = old.number("metadata.generation").unwrap_or_default() + 1;
        if let Some(metadata) = object.get_mut("metadata") {
            put(metadata, "generation", next);
        }
    }
}

/// What single kinds do to a changed object; false when they do nothing.
fn adjust(context: &Context<'_>, object: &mut Value, old: &Value) -> bool {
    match (context.group, context.kind) {
        ("", "Pod") => {
            pod::tolerate_lost_nodes(object);
            pod::prepare_update(object, old);
        }
        ("", "Namespace") => take_over(object, old, "spec"),
        ("", "PersistentVolumeClaim") => same_data_source(object),
        ("", "Service") => {
            keep_addresses(object, old);
            set_families(object);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => super::crd::stored_versions(object),
        _ => return false,
    }
    true
}

/// How often a daemon set's template changed is kept in an annotation that clients cannot set.
fn template_generation(object: &mut Value, old: &Value) {
    let before = old.at("metadata.annotations").get(TEMPLATE_GENERATION).and_then(Value::as_str);
    let before = before.and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    let changed = object.at("spec.template") != old.at("spec.template");
    let now = if changed { before + 1 } else { before };
    if let Some(annotations) = object
        .as_object_mut()
        .and_then(|map| child(map, "metadata"))
        .and_then(|metadata| child(metadata, "annotations"))
    {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(now.to_string()));
    }
}

/// The server chooses the addresses' families, of which there is one here.
fn set_families(object: &mut Value) {
    if object.text("spec.type") != "ExternalName"
        && let Some(spec) = object.as_object_mut().and_then(|map| child(map, "spec"))
    {
        super::get::set_empty(spec, "ipFamilies", json!(["IPv4"]));
        set_missing(spec, "ipFamilyPolicy", "SingleStack");
    }
}

/// Addresses and ports that the server chose stay when an update leaves them out.
fn keep_addresses(object: &mut Value, old: &Value) {
    let kinds = |object: &Value| object.text("spec.type").to_owned();
    if kinds(object) == "ExternalName" || kinds(old) == "ExternalName" {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
        if let Some(value) = old.get("spec").and_then(|spec| spec.get(key)) {
            super::get::set_empty(spec, key, value.clone());
        }
    }
    let needs_ports = matches!(spec.get("type").and_then(Value::as_str), Some("NodePort" | "LoadBalancer"));
    if needs_ports {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let same = |other: &&Value| {
                ["port", "protocol"].iter().all(|key| {
                    port.at(key) == other.at(key) || (*key == "protocol" && port.at(key).is_null())
                })
            };
            let chosen = old.list("spec.ports").iter().find(same).map(|port| port.at("nodePort").clone());
            if let (Some(port), Some(chosen)) = (port.as_object_mut(), chosen)
                && !chosen.is_null()
            {
                super::get::set_empty(port, "nodePort", chosen);
            }
        }
    }
}

/// What the server wrote into the metadata stays, whatever clients say.
fn keep_system_metadata(object: &mut Value, old: &Value) {
    let Some(metadata) = object.as_object_mut().and_then(|map| child(map, "metadata")) else { return };
    let before = |key: &str| old.at("metadata").get(key).filter(|value| !value.is_null());
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = before(key) {
            super::get::set_empty(metadata, key, value.clone());
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = before(key)
            && metadata.get(key) != Some(value)
        {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
}

pub(super) fn status_update(context: &Context<'_>, object: &mut Value, old: &Value) {
    let (group, kind) = (context.group, context.kind);
    keep_system_metadata(object, old);
    for key in ["spec", "data", "template"] {
        take_over(object, old, key);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        match old.at("metadata.generation") {
            Value::Null => metadata.remove("generation"),
            generation => metadata.insert("generation".to_owned(), generation.clone()),
        };
    }
    match (group, kind) {
        ("", "Pod") => {
            keep_metadata(object, old, &["ownerReferences"]);
            pod::prepare_status_update(object, old);
        }
        ("", "PersistentVolume") => phase_time(context, object, old),
        ("apps", "Deployment") => keep_metadata(object, old, &["labels"]),
        ("storage.k8s.io", "VolumeAttachment")
        | ("resource.k8s.io", "ResourceClaim")
        | ("networking.k8s.io", "ServiceCIDR") => {
            let keys =
                ["deletionGracePeriodSeconds", "labels", "annotations", "finalizers", "ownerReferences"];
            keep_metadata(object, old, &keys);
        }
        _ => {}
    }
    super::default(context, object, Some(old));
}

fn keep_metadata(object: &mut Value, old: &Value, keys: &[&str]) {
    if let Some(metadata) = object.get_mut("metadata") {
        for key in keys {
            take_over(metadata, old.at("metadata"), key);
        }
    }
}

fn phase_time(context: &Context<'_>, object: &mut Value, old: &Value) {
    const TIME: &str = "lastPhaseTransitionTime";
    let same_phase = object.at("status.phase") == old.at("status.phase");
    let (new_time, old_time) = (object.at("status").at(TIME).clone(), old.at("status").at(TIME).clone());
    let Some(status) = object.as_object_mut().and_then(|map| child(map, "status")) else { return };
    if same_phase && new_time.is_null() {
        if !old_time.is_null() {
            status.insert(TIME.to_owned(), old_time);
        }
    } else if !same_phase && (new_time.is_null() || new_time == old_time) {
        status.insert(TIME.to_owned(), json!(context.now));
    }
}

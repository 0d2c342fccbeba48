//! What the server decides about objects by looking at others: priorities, limits, quotas, default classes.

use serde_json::{Value, json};

use crate::limits;
use crate::quota::{self, Charge};
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::state::State;
use crate::store::Object;
use crate::write::namespace_terminating;

/// New objects need a namespace that exists and stays.
pub(crate) fn check_namespace(
    state: &State,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Refusal> {
    if !resource.namespaced {
        return Ok(());
    }
    let missing =
        || Refusal::not_found(crate::refusal::Target { group: "", plural: "namespaces" }, namespace);
    let namespaces = state.registry.get("", "v1", "namespaces").ok_or_else(missing)?;
    let found = state.get(&namespaces, "", namespace).ok_or_else(missing)?;
    if found.deleting {
        return Err(namespace_terminating(resource, name, namespace));
    }
    Ok(())
}

/// What other objects say about a new one.
pub(crate) fn on_create(
    state: &State,
    resource: &Resource,
    object: &mut Value,
    namespace: &str,
) -> Result<(), Refusal> {
    if resource.is("", "Pod") {
        set_priority(state, resource, object)?;
        set_overhead(state, resource, object)?;
        limits::set_defaults(state, object, namespace);
    } else if resource.is("", "PersistentVolumeClaim") {
        set_storage_class(state, object);
    } else if resource.is("", "Node") && state.taint_new_nodes {
        taint_as_not_ready(object);
    }
    Ok(())
}

/// Whether LimitRanges and ResourceQuotas of the namespace allow an object, which was `before` if it exists; says what
/// it uses of them.
pub(crate) fn check(
    state: &State,
    resource: &Resource,
    object: &Value,
    before: Option<&Value>,
    namespace: &str,
) -> Result<Charge, Refusal> {
    let is_leaving = before.is_some_and(|before| !before["metadata"]["deletionTimestamp"].is_null());
    // The containers of a pod stay as they are.
    if !is_leaving && (before.is_none() || !resource.is("", "Pod")) {
        limits::check(state, resource, object, namespace)?;
    }
    quota::check(state, resource, object, before, namespace)
}

/// What a changed object keeps of what was decided about it when it was made.
pub(crate) fn on_update(resource: &Resource, object: &mut Value, before: &Value) {
    // The priority was decided then, whatever the class says now.
    if resource.is("", "Pod") && object["spec"]["priority"].is_null() && !before["spec"]["priority"].is_null()
    {
        object["spec"]["priority"] = before["spec"]["priority"].clone();
    }
}

/// What the server hands out: addresses of services.
pub(crate) fn allocate(state: &mut State, resource: &Resource, object: &mut Value) {
    if !resource.is("", "Service") {
        return;
    }
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" || !spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        return;
    }
    let number = state.store.next_revision();
    let address = format!("10.{}.{}.{}", 96 + (number >> 16) % 16, (number >> 8) % 256, 1 + number % 254);
    spec["clusterIP"] = Value::from(address.as_str());
    spec["clusterIPs"] = json!([address]);
}

fn objects(state: &State, group: &str, plural: &str) -> Vec<Value> {
    let Some(resource) = state.registry.get(group, "v1", plural) else { return Vec::new() };
    let all = state.store.collection(resource.collection).objects().values();
    all.map(|object: &std::sync::Arc<Object>| object.value(&resource)).collect()
}

fn set_priority(state: &State, resource: &Resource, pod: &mut Value) -> Result<(), Refusal> {
    let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        let classes = objects(state, "scheduling.k8s.io", "priorityclasses");
        // Of several defaults the lowest counts.
        classes
            .into_iter()
            .filter(|class| class["globalDefault"] == Value::Bool(true))
            .min_by_key(|class| class["value"].as_i64())
    } else {
        let class = state.built_in("scheduling.k8s.io", "priorityclasses", "", &name);
        Some(class.ok_or_else(|| {
            let why = format!("no PriorityClass with name {name} was found");
            Refusal::forbidden(resource.target(), crate::write::name_of(pod), &why)
        })?)
    };
    let value = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or_default();
    if let Some(stated) = pod["spec"]["priority"].as_i64()
        && stated != value
    {
        let why = format!(
            "the integer value of priority ({stated}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        );
        return Err(Refusal::forbidden(resource.target(), crate::write::name_of(pod), &why));
    }
    pod["spec"]["priority"] = Value::from(value);
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        if pod["spec"]["preemptionPolicy"].is_null() {
            pod["spec"]["preemptionPolicy"] = class["preemptionPolicy"].clone();
        }
    }
    if pod["spec"]["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] = Value::from("PreemptLowerPriority");
    }
    Ok(())
}

fn set_overhead(state: &State, resource: &Resource, pod: &mut Value) -> Result<(), Refusal> {
    let name = pod["spec"]["runtimeClassName"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Ok(());
    }
    let Some(class) = state.built_in("node.k8s.io", "runtimeclasses", "", &name) else {
        let why = format!("pod rejected: RuntimeClass \"{name}\" not found");
        return Err(Refusal::forbidden(resource.target(), crate::write::name_of(pod), &why));
    };
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() && pod["spec"]["overhead"].is_null() {
        pod["spec"]["overhead"] = overhead.clone();
    }
    for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        pod["spec"]["nodeSelector"][key] = value.clone();
    }
    let tolerations = class["scheduling"]["tolerations"].as_array().cloned().unwrap_or_default();
    if !tolerations.is_empty() {
        let spec = &mut pod["spec"];
        if !spec["tolerations"].is_array() {
            spec["tolerations"] = json!([]);
        }
        if let Some(list) = spec["tolerations"].as_array_mut() {
            list.extend(tolerations);
        }
    }
    Ok(())
}

/// No pod is bound to a node that has not yet said that it is ready.
fn taint_as_not_ready(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let spec = &mut node["spec"];
    match spec["taints"].as_array_mut() {
        Some(taints) => {
            let same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
            if !taints.iter().any(same) {
                taints.push(taint);
            }
        }
        None => spec["taints"] = json!([taint]),
    }
}

/// Claims without a class get the default one, the newest of several.
fn set_storage_class(state: &State, claim: &mut Value) {
    if !claim["spec"]["storageClassName"].is_null() {
        return;
    }
    let is_default = |class: &Value| {
        class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    };
    let classes = objects(state, "storage.k8s.io", "storageclasses");
    let newest = classes.into_iter().filter(is_default).max_by_key(|class| {
        (
            class["metadata"]["creationTimestamp"].to_string(),
            std::cmp::Reverse(class["metadata"]["name"].to_string()),
        )
    });
    if let Some(class) = newest {
        claim["spec"]["storageClassName"] = class["metadata"]["name"].clone();
    }
}

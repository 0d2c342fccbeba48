//! ResourceQuotas: what the objects of a namespace use, and that they do not use more than they may.
//!
//! As with the real server, a quota counts from the moment on that its status says what is used; a new object is
//! checked against the status and added to it. What is used to begin with, and what is given back, is the business of
//! a controller there; here the server does it itself if it is told to ([`crate::Options::keep_quotas`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use units::{Format, Quantity};

use crate::amounts::{self, Amounts};
use crate::kinds;
use crate::refusal::Refusal;
use crate::request::{ObjectPath, Request, Route};
use crate::resources::Resource;
use crate::state::State;
use crate::store::Object;
use crate::write::{Write, name_of};

/// Who writes what a new object uses.
const SERVER: &str = "kube-apiserver";
/// Who writes all else about quotas.
const CONTROLLER: &str = "kube-controller-manager";

/// How volume claims of a storage class are named.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// What every container has to state if it is limited.
const STATED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

fn one() -> Quantity {
    Quantity::from_units(1, Format::DecimalSi)
}

fn counted(number: usize) -> Quantity {
    Quantity::from_units(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

fn quotas(state: &State) -> Option<Arc<Resource>> {
    state.registry.get("", "v1", "resourcequotas")
}

/// The quotas of a namespace.
fn of_namespace(state: &State, resource: &Resource, namespace: &str) -> Vec<Arc<Object>> {
    let all = state.store.collection(resource.collection).objects().values();
    all.filter(|object| *object.key.namespace == *namespace).cloned().collect()
}

/// The name under which objects of a resource are counted.
fn count_name(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("count/{}", resource.plural)
    } else {
        format!("count/{}.{}", resource.plural, resource.group)
    }
}

/// What one object uses.
fn usage(resource: &Resource, object: &Value) -> Amounts {
    let mut used = Amounts::from([(count_name(resource), one())]);
    let plural = resource.plural.as_str();
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") if !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) => {
            let requests = amounts::of_pod(&object["spec"], "requests");
            used.extend(of_requirements(requests, amounts::of_pod(&object["spec"], "limits")));
        }
        ("", "PersistentVolumeClaim") => used.extend(of_claim(object)),
        ("", "Service") => used.extend(of_service(object)),
        ("", "ConfigMap" | "ResourceQuota" | "ReplicationController" | "Secret") => {
            used.insert(plural.to_owned(), one());
        }
        _ => {}
    }
    used
}

/// What requests and limits count for.
fn of_requirements(requests: Amounts, limits: Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), one())]);
    let native = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    for (name, amount) in requests {
        if native(&name) || name.starts_with("hugepages-") {
            used.insert(name.clone(), amount);
        }
        if native(&name) || name.starts_with("hugepages-") || name.contains('/') {
            used.insert(format!("requests.{name}"), amount);
        }
    }
    used.extend(
        limits
            .into_iter()
            .filter(|(name, _)| native(name))
            .map(|(name, amount)| (format!("limits.{name}"), amount)),
    );
    used
}

fn of_claim(claim: &Value) -> Amounts {
    let mut used = Amounts::from([("persistentvolumeclaims".to_owned(), one())]);
    if let Some(storage) = amounts::of(&claim["spec"]["resources"]["requests"]).get("storage") {
        // Whole bytes.
        let bytes = Quantity::from_units(storage.value(), storage.format());
        used.insert("requests.storage".to_owned(), bytes);
    }
    let old = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    let class = old.as_str().or(claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    if !class.is_empty() {
        let of_class: Vec<_> =
            used.iter().map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), *amount)).collect();
        used.extend(of_class);
    }
    used
}

fn of_service(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().cloned().unwrap_or_default();
    let explicit = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let kind = spec["type"].as_str().unwrap_or_default();
    let node_ports = match kind {
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == Value::Bool(false) => explicit,
        "NodePort" | "LoadBalancer" => ports.len(),
        _ => 0,
    };
    Amounts::from([
        ("services".to_owned(), one()),
        ("services.nodeports".to_owned(), counted(node_ports)),
        ("services.loadbalancers".to_owned(), counted(usize::from(kind == "LoadBalancer"))),
    ])
}

/// Whether a resource is responsible for a name in a quota.
fn is_of(resource: &Resource, name: &str) -> bool {
    if name == count_name(resource) {
        return true;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            let bare =
                name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
            matches!(bare, "cpu" | "memory" | "ephemeral-storage")
                || name == "pods"
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || name.strip_prefix("requests.").is_some_and(|bare| bare.contains('/'))
        }
        ("", "PersistentVolumeClaim") => {
            let bare = name.split_once(OF_CLASS).map_or(name, |(_, bare)| bare);
            matches!(bare, "persistentvolumeclaims" | "requests.storage")
        }
        ("", "Service") => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        ("", "ConfigMap" | "ResourceQuota" | "ReplicationController" | "Secret") => name == resource.plural,
        _ => false,
    }
}

/// Whether a quota is about an object, by its scopes.
fn covers(quota: &Value, resource: &Resource, object: &Value) -> bool {
    let scopes = quota["spec"]["scopes"].as_array().into_iter().flatten();
    let simple = scopes.map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
    let selectors =
        quota["spec"]["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten().cloned();
    simple.chain(selectors).all(|selector| is_in_scope(&selector, resource, object))
}

fn is_in_scope(selector: &Value, resource: &Resource, object: &Value) -> bool {
    let spec = &object["spec"];
    let scope = selector["scopeName"].as_str().unwrap_or_default();
    if resource.is("", "PersistentVolumeClaim") && scope == "VolumeAttributesClass" {
        return is_selected(selector, spec["volumeAttributesClassName"].as_str().unwrap_or_default());
    }
    if !resource.is("", "Pod") {
        return false;
    }
    match scope {
        "Terminating" => spec["activeDeadlineSeconds"].is_number(),
        "NotTerminating" => !spec["activeDeadlineSeconds"].is_number(),
        "BestEffort" => kinds::qos_class(object) == "BestEffort",
        "NotBestEffort" => kinds::qos_class(object) != "BestEffort",
        "PriorityClass" => is_selected(selector, spec["priorityClassName"].as_str().unwrap_or_default()),
        "CrossNamespacePodAffinity" => looks_into_other_namespaces(&spec["affinity"]),
        _ => false,
    }
}

/// Whether a selector of a scope chooses a value, which is empty if there is none.
fn is_selected(selector: &Value, value: &str) -> bool {
    let named = selector["values"].as_array().is_some_and(|values| values.iter().any(|one| one == value));
    match selector["operator"].as_str() {
        Some("Exists") => !value.is_empty(),
        Some("DoesNotExist") => value.is_empty(),
        Some("In") => !value.is_empty() && named,
        Some("NotIn") => value.is_empty() || !named,
        _ => false,
    }
}

fn looks_into_other_namespaces(affinity: &Value) -> bool {
    let terms = |list: &Value| list.as_array().cloned().unwrap_or_default();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let required = terms(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = terms(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = preferred.into_iter().map(|mut term| term["podAffinityTerm"].take());
        required.into_iter().chain(preferred).any(|term| {
            term["namespaces"].as_array().is_some_and(|list| !list.is_empty())
                || term["namespaceSelector"].is_object()
        })
    })
}

/// Whether writes of a resource are checked; `update` is for those of an object that exists.
fn is_checked(resource: &Resource, update: bool) -> bool {
    resource.namespaced
        && !resource.is("", "Event")
        && (!update || resource.is("", "PersistentVolumeClaim") || resource.is("", "Service"))
}

/// What a write makes of the quotas of its namespace: the status of each that it changes.
pub(crate) type Charge = Vec<(Arc<Object>, Amounts)>;

/// Whether the quotas of a namespace allow an object, which was `before` if it exists; says what it uses.
pub(crate) fn check(
    state: &State,
    resource: &Resource,
    object: &Value,
    before: Option<&Value>,
    namespace: &str,
) -> Result<Charge, Refusal> {
    let mut charge = Charge::new();
    let Some(kind) = quotas(state).filter(|_| is_checked(resource, before.is_some())) else {
        return Ok(charge);
    };
    let refuse = |why: String| Err(Refusal::forbidden(resource.target(), name_of(object), &why));
    let mut pertinent = Vec::new();
    for stored in of_namespace(state, &kind, namespace) {
        let quota = stored.value(&kind);
        let hard = amounts::of(&quota["status"]["hard"]);
        let names: BTreeSet<&str> =
            hard.keys().map(String::as_str).filter(|name| is_of(resource, name)).collect();
        if names.is_empty() || !covers(&quota, resource, object) {
            continue;
        }
        let quota_name = name_of(&quota);
        if let Some(missing) = unstated(resource, object, &names) {
            return refuse(format!("failed quota: {quota_name}: must specify {missing}"));
        }
        let used = amounts::of(&quota["status"]["used"]);
        if names.iter().any(|name| !used.contains_key(*name)) {
            let names: Vec<&str> = names.into_iter().collect();
            return refuse(format!("status unknown for quota: {quota_name}, resources: {}", names.join(",")));
        }
        pertinent.push((stored, quota, hard, used));
    }
    for (stored, quota, hard, mut used) in pertinent {
        let mut asked = usage(resource, object);
        if let Some(before) = before.filter(|before| covers(&quota, resource, before)) {
            let known = usage(resource, before);
            for (name, amount) in &mut asked {
                *amount = (*amount - known.get(name).copied().unwrap_or_default()).max(Quantity::default());
            }
        }
        asked.retain(|name, amount| !amount.is_zero() && hard.contains_key(name));
        let total = |name: &str, amount: Quantity| used.get(name).map_or(amount, |used| *used + amount);
        let exceeded: BTreeSet<String> = asked
            .iter()
            .filter(|(name, amount)| hard.get(*name).is_some_and(|hard| total(name, **amount) > *hard))
            .map(|(name, _)| name.clone())
            .collect();
        if !exceeded.is_empty() {
            let some = |amounts: &Amounts| -> String {
                let some = amounts.iter().filter(|(name, _)| exceeded.contains(*name));
                amounts::told(&some.map(|(name, amount)| (name.clone(), *amount)).collect())
            };
            return refuse(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                name_of(&quota),
                some(&asked),
                some(&used),
                some(&hard)
            ));
        }
        if !asked.is_empty() {
            amounts::add(&mut used, &asked);
            charge.push((stored, used));
        }
    }
    Ok(charge)
}

/// What containers have to state and do not: `cpu for: a,b; memory for: a`.
fn unstated(resource: &Resource, pod: &Value, names: &BTreeSet<&str>) -> Option<String> {
    if !resource.is("", "Pod") {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            let stated =
                of_requirements(amounts::of(&resources["requests"]), amounts::of(&resources["limits"]));
            for name in STATED.iter().filter(|name| names.contains(**name) && !stated.contains_key(**name)) {
                missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    let told: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Writes down what a write uses that was allowed.
pub(crate) fn charge(state: &mut State, charge: Charge) {
    let Some(kind) = quotas(state) else { return };
    for (stored, used) in charge {
        let mut quota = stored.value(&kind);
        let hard = quota["status"]["hard"].clone();
        quota["status"] = json!({"hard": hard, "used": amounts::write(&used)});
        write_status(state, &kind, &stored, quota, SERVER);
    }
}

fn write_status(state: &mut State, kind: &Arc<Resource>, stored: &Arc<Object>, quota: Value, who: &str) {
    let path = ObjectPath {
        version: "v1".to_owned(),
        plural: kind.plural.clone(),
        namespace: stored.key.namespace.to_string(),
        name: stored.key.name.to_string(),
        subresource: "status".to_owned(),
        ..ObjectPath::default()
    };
    let mut request = Request::internal(Route::Objects(path.clone()), who);
    request.method = http::Method::PUT;
    // What is used is right whatever it is; a quota that is refused for another reason stays as it was.
    let _ = Write::new(&request, kind, &path).update(state, stored.value(kind), quota);
}

/// Computes the status of a quota that is new or asks for something else.
pub(crate) fn count(state: &mut State, namespace: &str, name: &str) {
    let Some(kind) = quotas(state) else { return };
    let Some(stored) = state.get(&kind, namespace, name) else { return };
    let mut quota = stored.value(&kind);
    let hard = amounts::of(&quota["spec"]["hard"]);
    if amounts::of(&quota["status"]["hard"]) == hard && quota["status"]["used"].is_object() {
        return;
    }
    let mut used: Amounts =
        hard.keys().map(|name| (name.clone(), Quantity::from_units(0, Format::DecimalSi))).collect();
    for resource in state.registry.stored() {
        if !resource.namespaced || !hard.keys().any(|name| is_of(resource, name)) {
            continue;
        }
        let objects = state.store.collection(resource.collection).objects().values();
        for object in objects.filter(|object| *object.key.namespace == *namespace) {
            let object = object.value(resource);
            if covers(&quota, resource, &object) {
                add_known(&mut used, &usage(resource, &object));
            }
        }
    }
    quota["status"] = json!({"hard": quota["spec"]["hard"], "used": amounts::write(&used)});
    write_status(state, &kind, &stored, quota, CONTROLLER);
}

fn add_known(used: &mut Amounts, more: &Amounts) {
    for (name, used) in used.iter_mut() {
        if let Some(more) = more.get(name) {
            *used += *more;
        }
    }
}

/// Gives back what an object no longer uses: all of it if it is gone.
pub(crate) fn give_back(state: &mut State, resource: &Resource, before: &Value, after: Option<&Value>) {
    let Some(kind) = quotas(state).filter(|_| resource.namespaced) else { return };
    let namespace = before["metadata"]["namespace"].as_str().unwrap_or_default();
    for stored in of_namespace(state, &kind, namespace) {
        let mut quota = stored.value(&kind);
        if !covers(&quota, resource, before) {
            continue;
        }
        let mut less = usage(resource, before);
        let still = after.filter(|after| covers(&quota, resource, after)).map(|after| usage(resource, after));
        for (name, amount) in still.into_iter().flatten() {
            let left = less.get(&name).copied().unwrap_or_default() - amount;
            less.insert(name, left.max(Quantity::default()));
        }
        let before = amounts::of(&quota["status"]["used"]);
        let mut used = before.clone();
        for (name, amount) in &mut used {
            let less = less.get(name).copied().unwrap_or_default();
            *amount = (*amount - less).max(Quantity::from_units(0, amount.format()));
        }
        if used != before {
            quota["status"]["used"] = amounts::write(&used);
            write_status(state, &kind, &stored, quota, CONTROLLER);
        }
    }
}

/// Whether there are quotas in a namespace, so that it matters what happens there.
pub(crate) fn has_any(state: &State, namespace: &str) -> bool {
    let Some(kind) = quotas(state) else { return false };
    let mut all = state.store.collection(kind.collection).objects().keys();
    all.any(|key| *key.namespace == *namespace)
}

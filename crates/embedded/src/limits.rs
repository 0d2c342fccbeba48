//! LimitRanges: what containers get that state nothing, and what containers, pods and claims may ask for.

use std::collections::BTreeSet;

use serde_json::Value;
use units::Quantity;

use crate::amounts::{self, Amounts};
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::state::State;
use crate::write::name_of;

/// Where it is noted what was set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The limits of a namespace, range by range.
fn ranges(state: &State, namespace: &str) -> Vec<Vec<Value>> {
    let Some(resource) = state.registry.get("", "v1", "limitranges") else { return Vec::new() };
    let all = state.store.collection(resource.collection).objects().values();
    let own = all.filter(|object| *object.key.namespace == *namespace);
    own.map(|range| range.value(&resource)["spec"]["limits"].as_array().cloned().unwrap_or_default())
        .collect()
}

/// Gives the containers of a new pod the requests and limits that they do not state.
pub(crate) fn set_defaults(state: &State, pod: &mut Value, namespace: &str) {
    for limits in ranges(state, namespace) {
        let of_containers = || limits.iter().filter(|limit| limit["type"] == "Container");
        let merged = |key: &str| -> serde_json::Map<String, Value> {
            of_containers().flat_map(|limit| limit[key].as_object().cloned().unwrap_or_default()).collect()
        };
        let (default_limits, default_requests) = (merged("default"), merged("defaultRequest"));
        let mut notes = Vec::new();
        for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                let limits = set_missing(container, "limits", &default_limits);
                let requests = set_missing(container, "requests", &default_requests);
                for (set, what) in [(requests, "request"), (limits, "limit")] {
                    if !set.is_empty() {
                        notes.push(format!("{} {what} for {word} {}", set.join(", "), name(container)));
                    }
                }
            }
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            pod["metadata"]["annotations"][ANNOTATION] = Value::from(note);
        }
    }
}

fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// Sets what is not stated, and returns the names of it.
fn set_missing(container: &mut Value, what: &str, defaults: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if container["resources"][what][name].is_null() {
            container["resources"][what][name] = amount.clone();
            set.push(name.clone());
        }
    }
    set.sort();
    set
}

/// Whether an object keeps to the limits of its namespace.
pub(crate) fn check(
    state: &State,
    resource: &Resource,
    object: &Value,
    namespace: &str,
) -> Result<(), Refusal> {
    let (is_pod, is_claim) = (resource.is("", "Pod"), resource.is("", "PersistentVolumeClaim"));
    if !is_pod && !is_claim {
        return Ok(());
    }
    for limits in ranges(state, namespace) {
        let mut errors = BTreeSet::new();
        for limit in &limits {
            let kind = limit["type"].as_str().unwrap_or_default();
            let asks: Vec<Ask> = match kind {
                "Container" if is_pod => containers(object).map(Ask::of_container).collect(),
                "Pod" if is_pod => vec![Ask {
                    requests: amounts::of_pod(&object["spec"], "requests"),
                    limits: amounts::of_pod(&object["spec"], "limits"),
                }],
                "PersistentVolumeClaim" if is_claim => {
                    errors.extend(wrong_claim(object, limit));
                    continue;
                }
                _ => continue,
            };
            for ask in asks {
                errors.extend(ask.wrong(kind, limit));
            }
        }
        if !errors.is_empty() {
            let errors: Vec<String> = errors.into_iter().collect();
            let why = if errors.len() == 1 { errors.concat() } else { format!("[{}]", errors.join(", ")) };
            return Err(Refusal::forbidden(resource.target(), name_of(object), &why));
        }
    }
    Ok(())
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
}

fn wrong_claim(claim: &Value, limit: &Value) -> Vec<String> {
    let requests = amounts::of(&claim["spec"]["resources"]["requests"]);
    let ask = Ask { requests, limits: Amounts::new() };
    let kind = "PersistentVolumeClaim";
    let least =
        amounts::of(&limit["min"]).into_iter().filter_map(|(name, least)| ask.too_little(kind, &name, least));
    let most = amounts::of(&limit["max"]).into_iter().filter_map(|(name, most)| {
        let start = format!("maximum {name} usage per {kind} is {most}");
        match ask.requests.get(&name) {
            None => Some(format!("{start}.  No request is specified")),
            Some(request) if *request > most => Some(format!("{start}, but request is {request}")),
            Some(_) => None,
        }
    });
    least.chain(most).collect()
}

/// What a container or a pod asks for.
struct Ask {
    requests: Amounts,
    limits: Amounts,
}

impl Ask {
    fn of_container(container: &Value) -> Self {
        let resources = &container["resources"];
        Self { requests: amounts::of(&resources["requests"]), limits: amounts::of(&resources["limits"]) }
    }

    fn wrong(&self, kind: &str, limit: &Value) -> Vec<String> {
        let of = |key: &str| amounts::of(&limit[key]).into_iter();
        let least = of("min").filter_map(|(name, least)| self.too_little(kind, &name, least));
        let most = of("max").filter_map(|(name, most)| self.too_much(kind, &name, most));
        let ratio =
            of("maxLimitRequestRatio").filter_map(|(name, most)| self.too_far_apart(kind, &name, most));
        least.chain(most).chain(ratio).collect()
    }

    fn too_little(&self, kind: &str, name: &str, least: Quantity) -> Option<String> {
        let start = format!("minimum {name} usage per {kind} is {least}");
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{start}.  No request is specified")),
            (Some(request), _) if *request < least => Some(format!("{start}, but request is {request}")),
            (_, Some(limit)) if *limit < least => Some(format!("{start}, but limit is {limit}")),
            _ => None,
        }
    }

    fn too_much(&self, kind: &str, name: &str, most: Quantity) -> Option<String> {
        let start = format!("maximum {name} usage per {kind} is {most}");
        match (self.requests.get(name), self.limits.get(name)) {
            (_, None) => Some(format!("{start}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => Some(format!("{start}, but limit is {limit}")),
            (Some(request), _) if *request > most => Some(format!("{start}, but request is {request}")),
            _ => None,
        }
    }

    fn too_far_apart(&self, kind: &str, name: &str, most: Quantity) -> Option<String> {
        let start = format!("{name} max limit to request ratio per {kind} is {most}");
        let stated = |amounts: &Amounts| amounts.get(name).copied().filter(|amount| !amount.is_zero());
        let Some(request) = stated(&self.requests) else {
            return Some(format!("{start}, but no request is specified or request is 0"));
        };
        let Some(limit) = stated(&self.limits) else {
            return Some(format!("{start}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.as_f64() / request.as_f64();
        (ratio > most.as_f64()).then(|| format!("{start}, but provided ratio is {ratio:.6}"))
    }
}

//! Rules on what containers ask for, and sums of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use units::Quantity;

use super::super::get::Get;
use super::super::names::{check, dns_label, qualified_name};
use crate::field_error::{FieldError, Mistake};

fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        // Clients may write plain numbers; this is asked before they are rewritten, too.
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// What all containers ask for together: regular ones and sidecars add up, other init containers run alone.
pub(super) fn of_containers(spec: &Map<String, Value>) -> BTreeMap<String, Value> {
    let mut sum: BTreeMap<String, Quantity> = BTreeMap::new();
    let mut most: BTreeMap<String, Quantity> = BTreeMap::new();
    let list = |key: &str| spec.get(key).and_then(Value::as_array).into_iter().flatten();
    for container in list("containers") {
        add(&mut sum, container);
    }
    let mut sidecars: BTreeMap<String, Quantity> = BTreeMap::new();
    for container in list("initContainers") {
        let mut now = sidecars.clone();
        add(&mut now, container);
        if container.text("restartPolicy") == "Always" {
            add(&mut sum, container);
            sidecars.clone_from(&now);
        }
        for (name, quantity) in now {
            let entry = most.entry(name).or_insert(quantity);
            *entry = (*entry).max(quantity);
        }
    }
    for (name, quantity) in most {
        let entry = sum.entry(name).or_insert(quantity);
        *entry = (*entry).max(quantity);
    }
    sum.into_iter().map(|(name, quantity)| (name, Value::from(quantity.to_string()))).collect()
}

fn add(sum: &mut BTreeMap<String, Quantity>, container: &Value) {
    for (name, value) in container.entries("resources.requests") {
        if let Some(quantity) = amount(value) {
            match sum.get_mut(name) {
                Some(total) => *total += quantity,
                None => {
                    sum.insert(name.to_owned(), quantity);
                }
            }
        }
    }
}

fn is_standard(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "memory"
            | "ephemeral-storage"
            | "requests.cpu"
            | "requests.memory"
            | "requests.ephemeral-storage"
            | "limits.cpu"
            | "limits.memory"
            | "limits.ephemeral-storage"
            | "pods"
            | "resourcequotas"
            | "services"
            | "replicationcontrollers"
            | "secrets"
            | "configmaps"
            | "persistentvolumeclaims"
            | "storage"
            | "requests.storage"
            | "services.nodeports"
            | "services.loadbalancers"
    ) || is_huge_pages(name)
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.split('/').next().is_some_and(|domain| domain.ends_with("kubernetes.io"))
}

/// Whether more may be promised than there is: only of Kubernetes' own resources, and not of huge pages.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// The name of a resource on a node or in a container.
fn resource_name(errors: &mut Vec<FieldError>, field: &str, name: &str) {
    let before = errors.len();
    check(errors, field, name, qualified_name);
    if errors.len() == before && !name.contains('/') && !is_standard(name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(field, &Value::from(name), detail));
    }
}

fn container_resource_name(errors: &mut Vec<FieldError>, field: &str, name: &str) {
    resource_name(errors, field, name);
    let value = Value::from(name);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_pages(name) {
            errors.push(FieldError::invalid(field, &value, "must be a standard resource for containers"));
        }
    } else if !is_native(name)
        && (name.starts_with("requests.") || !qualified_name(&format!("requests.{name}")).is_empty())
    {
        errors.push(FieldError::invalid(field, &value, "doesn't follow extended resource name standard"));
    }
}

fn pod_resource_name(errors: &mut Vec<FieldError>, field: &str, name: &str) {
    let before = errors.len();
    resource_name(errors, field, name);
    if errors.len() == before && !matches!(name, "cpu" | "memory") && !is_huge_pages(name) {
        let accepted = ["cpu", "hugepages-", "memory"];
        errors.push(FieldError::not_supported(field, &Value::from(name), &accepted));
    }
}

/// An amount: not negative, and whole where parts make no sense.
pub(crate) fn resource_amount(errors: &mut Vec<FieldError>, field: &str, name: &str, value: &Value) {
    let Some(quantity) = amount(value) else { return };
    if quantity.sign() < 0 {
        errors.push(FieldError::invalid(field, value, "must be greater than or equal to 0"));
    }
    let whole = !is_native(name)
        || matches!(
            name,
            "pods"
                | "resourcequotas"
                | "services"
                | "replicationcontrollers"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "services.nodeports"
                | "services.loadbalancers"
        );
    if whole && quantity.nanos() % 1_000_000_000 != 0 {
        errors.push(FieldError::invalid(field, value, "must be an integer"));
    }
}

/// Rules on a container's resources.
pub(super) fn container(errors: &mut Vec<FieldError>, field: &str, resources: &Value, claims: &[&str]) {
    requirements(errors, field, resources, container_resource_name);
    claim_names(errors, &format!("{field}.claims"), resources, claims);
}

fn requirements(
    errors: &mut Vec<FieldError>,
    field: &str,
    resources: &Value,
    check_name: fn(&mut Vec<FieldError>, &str, &str),
) {
    let (limits, requests) = (format!("{field}.limits"), format!("{field}.requests"));
    let mut huge_pages = false;
    let mut compute = false;
    for (list, key) in [(&limits, "limits"), (&requests, "requests")] {
        for (name, value) in resources.entries(key) {
            let field = format!("{list}[{name}]");
            check_name(errors, &field, name);
            resource_amount(errors, &field, name, value);
            if key == "requests" {
                against_limit(errors, &limits, &requests, resources, (name, value));
            }
            if is_huge_pages(name) {
                huge_pages = true;
                whole_pages(errors, &field, name, value);
            }
            compute |= matches!(name, "cpu" | "memory");
        }
    }
    if huge_pages && !compute {
        errors.push(FieldError::forbidden(field, "HugePages require cpu or memory"));
    }
}

fn against_limit(
    errors: &mut Vec<FieldError>,
    limits: &str,
    requests: &str,
    resources: &Value,
    (name, value): (&str, &Value),
) {
    let Some(limit) = resources.at("limits").get(name) else {
        if !may_overcommit(name) {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(limits, detail));
        }
        return;
    };
    let (Some(request), Some(most)) = (amount(value), amount(limit)) else { return };
    let shown = limit.as_str().unwrap_or_default();
    if request != most && !may_overcommit(name) {
        let detail = format!("must be equal to {name} limit of {shown}");
        errors.push(FieldError::invalid(requests, value, detail));
    } else if request > most {
        let detail = format!("must be less than or equal to {name} limit of {shown}");
        errors.push(FieldError::invalid(requests, value, detail));
    }
}

fn whole_pages(errors: &mut Vec<FieldError>, field: &str, name: &str, value: &Value) {
    let size = name.strip_prefix("hugepages-").and_then(|size| size.parse::<Quantity>().ok());
    let (Some(size), Some(quantity)) = (size, amount(value)) else { return };
    if size.sign() > 0 && (quantity.sign() < 0 || quantity.nanos() % size.nanos() != 0) {
        let text = value.as_str().unwrap_or_default();
        let detail = format!("{text} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(field, value, detail));
    }
}

fn claim_names(errors: &mut Vec<FieldError>, list: &str, resources: &Value, claims: &[&str]) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, claim) in resources.list("claims").iter().enumerate() {
        let (field, name) = (format!("{list}[{index}]"), claim.text("name"));
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let request = claim.text("request");
        let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
        if !request.is_empty() {
            check(errors, format!("{field}.request"), request, dns_label);
        }
        if !seen.insert(key.clone()) {
            errors.push(FieldError::duplicate(field.clone(), &Value::from(key)));
        }
        if !claims.contains(&name) {
            let mut sorted = claims.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let rest = if sorted.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", sorted.join(", "))
            };
            errors.push(FieldError {
                mistake: Mistake::NotFound,
                field,
                shown: Some(Value::from(name).to_string()),
                detail: format!("must be one of the names in pod.spec.resourceClaims{rest}"),
            });
        }
    }
}

/// Rules on the resources of a pod as a whole.
pub(super) fn pod_level(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    let resources = spec.at("resources");
    if resources.is_null() {
        return;
    }
    let path = format!("{field}.resources");
    if resources.has("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(format!("{path}.claims"), detail));
    }
    requirements(errors, &path, resources, pod_resource_name);
    let sums = spec.as_object().map(of_containers).unwrap_or_default();
    for (name, sum) in sums {
        let Some(request) = resources.at("requests").get(&name) else { continue };
        if let (Some(total), Some(asked)) = (amount(&sum), amount(request))
            && total > asked
        {
            let shown = sum.as_str().unwrap_or_default();
            let detail = format!("must be greater than or equal to aggregate container requests of {shown}");
            errors.push(FieldError::invalid(format!("{path}.requests[{name}]"), request, detail));
        }
    }
    for (index, container) in spec.list("containers").iter().enumerate() {
        for (name, limit) in container.entries("resources.limits") {
            let Some(most) = resources.at("limits").get(name) else { continue };
            if let (Some(asked), Some(allowed)) = (amount(limit), amount(most))
                && asked > allowed
            {
                let shown = most.as_str().unwrap_or_default();
                let detail = format!("must be less than or equal to pod limits of {shown}");
                let path = format!("{path}.containers[{index}][{name}].limits");
                errors.push(FieldError::invalid(path, limit, detail));
            }
        }
    }
}

/// Rules on what a pod costs beside its containers.
pub(super) fn overhead(errors: &mut Vec<FieldError>, field: &str, overhead: &Value) {
    for (name, value) in overhead.as_object().into_iter().flatten() {
        let field = format!("{field}.limits[{name}]");
        container_resource_name(errors, &field, name);
        resource_amount(errors, &field, name, value);
    }
}

//! Amounts of resources in JSON objects: what lists say, and what a pod asks for as a whole.

use std::collections::BTreeMap;

use serde_json::Value;
use units::Quantity;

/// Amounts by the name of the resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts that a list of an object states.
pub(crate) fn of(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), parse(amount)?))).collect()
}

fn parse(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// The amounts as objects have them.
pub(crate) fn write(amounts: &Amounts) -> Value {
    amounts.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string()))).collect()
}

/// Adds amounts to others.
pub(crate) fn add(into: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *into.entry(name.clone()).or_insert_with(|| zero(*amount)) += *amount;
    }
}

fn zero(like: Quantity) -> Quantity {
    Quantity::from_units(0, like.format())
}

fn raise(into: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let known = into.entry(name.clone()).or_insert(*amount);
        *known = (*known).max(*amount);
    }
}

/// Amounts as they are told: `cpu=1,memory=2Gi`.
pub(crate) fn told(amounts: &Amounts) -> String {
    let parts: Vec<String> = amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}

/// What a pod asks for as a whole; `what` is `requests` or `limits`.
///
/// Containers run together, and the sidecars among the init containers run with them; every other init container runs
/// alone with the sidecars before it. What the pod itself states counts instead.
pub(crate) fn of_pod(spec: &Value, what: &str) -> Amounts {
    let containers = |list: &str| spec[list].as_array().cloned().unwrap_or_default();
    let (mut total, mut sidecars, mut peak) = (Amounts::new(), Amounts::new(), Amounts::new());
    for container in containers("containers") {
        add(&mut total, &of(&container["resources"][what]));
    }
    for container in containers("initContainers") {
        let mut own = of(&container["resources"][what]);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            add(&mut own, &sidecars);
            raise(&mut peak, &own);
        }
    }
    raise(&mut total, &peak);
    let stated = of(&spec["resources"][what]);
    total.extend(
        stated
            .into_iter()
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-")),
    );
    total
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &str) {
        assert_eq!(told(&of_pod(spec, "requests")), expected, "{spec}");
    }

    #[test]
    fn a_pod_asks_for_what_its_containers_need_at_the_same_time() {
        let asks = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        check(&json!({"containers": [asks("1"), asks("500m")]}), "cpu=1500m");
        check(&json!({"containers": [asks("1")], "initContainers": [asks("3")]}), "cpu=3");
        check(&json!({"containers": [asks("1")], "initContainers": [sidecar("1"), asks("3")]}), "cpu=4");
        check(&json!({"containers": [asks("4")], "initContainers": [sidecar("1"), asks("3")]}), "cpu=5");
        let whole =
            json!({"containers": [asks("1")], "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}});
        check(&whole, "cpu=2,memory=1Gi");
        check(&json!({"containers": [{}]}), "");
    }

    #[test]
    fn sums_are_written_as_their_parts_are() {
        let mut total = Amounts::new();
        add(&mut total, &of(&json!({"memory": "512Mi", "cpu": 1})));
        add(&mut total, &of(&json!({"memory": "512Mi", "cpu": "100m"})));
        assert_eq!(told(&total), "cpu=1100m,memory=1Gi");
        assert_eq!(write(&total), json!({"cpu": "1100m", "memory": "1Gi"}));
    }
}

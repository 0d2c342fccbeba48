//! Everything that is wrong with the kubelet's settings, before anything is made of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use units::{GoDuration, Quantity};

use super::fields::{FIELDS, Found, check};

/// What evictions look at.
const SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];
/// What can be kept.
const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

/// Everything that is wrong, one sentence each.
pub fn mistakes(settings: &BTreeMap<String, Value>) -> Vec<String> {
    let mut all = structure(settings);
    if settings.get("registerWithTaints").is_some_and(|value| !value.is_null()) {
        all.push("spec.kubelet.registerWithTaints may not be set, use the taints of the NodePool".to_owned());
    }
    let texts = |field: &str| texts(settings.get(field));
    for field in ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] {
        for (signal, value) in texts(field) {
            all.extend(eviction(field, signal, value));
        }
    }
    all.extend(grace_periods(&texts("evictionSoft"), &texts("evictionSoftGracePeriod")));
    for field in ["kubeReserved", "systemReserved"] {
        for (name, value) in texts(field) {
            all.extend(reserved(field, name, value));
        }
    }
    all.extend(numbers(settings));
    all
}

/// Unknown fields, or the first value of the wrong kind.
fn structure(settings: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Found::default();
    // An expression stands where a number is expected.
    let settings = settings.iter().filter(|(field, value)| field.as_str() != "maxPods" || !value.is_string());
    check(settings, "", FIELDS, &mut found);
    match found.wrong {
        Some(wrong) => vec![format!("spec.kubelet: {wrong}")],
        None => found.unknown.iter().map(|field| format!("spec.kubelet: unknown field {field:?}")).collect(),
    }
}

/// The entries of a map that are texts; others are reported elsewhere.
fn texts(value: Option<&Value>) -> BTreeMap<&str, &str> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
}

fn eviction(field: &str, signal: &str, value: &str) -> Vec<String> {
    let mut all = Vec::new();
    if !SIGNALS.contains(&signal) {
        all.push(format!(
            "spec.kubelet.{field} has the key {signal:?}, expected one of {}",
            SIGNALS.join(", ")
        ));
    }
    let what = |expected: &str| format!("spec.kubelet.{field}[{signal}] is {value:?}, expected {expected}");
    if field == "evictionSoftGracePeriod" {
        if !value.parse::<GoDuration>().is_ok_and(|duration| duration >= GoDuration::ZERO) {
            all.push(what("a duration that is not negative"));
        }
    } else if let Some(share) = value.strip_suffix('%') {
        if !share.parse::<f64>().is_ok_and(|share| (0.0..=100.0).contains(&share)) {
            all.push(what("a percentage from 0% to 100%"));
        }
    } else if !value.parse::<Quantity>().is_ok_and(|amount| amount.sign() >= 0) {
        all.push(what("a percentage or a quantity that is not negative"));
    }
    all
}

fn grace_periods(soft: &BTreeMap<&str, &str>, periods: &BTreeMap<&str, &str>) -> Vec<String> {
    let (soft, periods): (BTreeSet<&&str>, BTreeSet<&&str>) =
        (soft.keys().collect(), periods.keys().collect());
    let lacks = |of: &str, without: &str, signal: &str| {
        format!("spec.kubelet.{of}[{signal}] has no counterpart in {without}")
    };
    let without_period = soft.difference(&periods);
    let without_threshold = periods.difference(&soft);
    without_period
        .map(|signal| lacks("evictionSoft", "evictionSoftGracePeriod", signal))
        .chain(without_threshold.map(|signal| lacks("evictionSoftGracePeriod", "evictionSoft", signal)))
        .collect()
}

fn reserved(field: &str, name: &str, value: &str) -> Vec<String> {
    let mut all = Vec::new();
    if !RESERVABLE.contains(&name) {
        all.push(format!(
            "spec.kubelet.{field} has the key {name:?}, expected one of {}",
            RESERVABLE.join(", ")
        ));
    }
    if value.starts_with('-') {
        all.push(format!(
            "spec.kubelet.{field}[{name}] is {value:?}, expected an amount that is not negative"
        ));
    }
    all
}

fn numbers(settings: &BTreeMap<String, Value>) -> Vec<String> {
    let mut all = Vec::new();
    let number = |field: &str| settings.get(field).and_then(Value::as_i64);
    let (high, low) = (number("imageGCHighThresholdPercent"), number("imageGCLowThresholdPercent"));
    for (field, value) in [("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)] {
        if let Some(value) = value.filter(|value| !(0..=100).contains(value)) {
            all.push(format!("spec.kubelet.{field} is {value}, expected a number from 0 to 100"));
        }
    }
    if let (Some(high), Some(low)) = (high, low)
        && high <= low
    {
        all.push(format!(
            "spec.kubelet.imageGCHighThresholdPercent is {high}, expected more than imageGCLowThresholdPercent, \
             which is {low}"
        ));
    }
    for field in ["podsPerCore", "evictionMaxPodGracePeriod", "maxPods"] {
        if let Some(value) = number(field).filter(|value| *value < 0) {
            all.push(format!("spec.kubelet.{field} is {value}, expected a number that is not negative"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(settings: Value) -> Vec<String> {
        mistakes(&serde_json::from_value(settings).unwrap())
    }

    #[test]
    fn right_settings_have_no_mistakes() {
        assert_eq!(found(json!({})), Vec::<String>::new());
        let right = json!({
            "maxPods": "vcpus * 2", "podsPerCore": 0, "clusterDNS": ["10.0.0.10"],
            "evictionHard": {"memory.available": "5%", "nodefs.available": "1Gi", "pid.available": "0"},
            "evictionSoft": {"imagefs.available": "10.5%"},
            "evictionSoftGracePeriod": {"imagefs.available": "1m"},
            "evictionMinimumReclaim": {"nodefs.inodesFree": "100%"},
            "kubeReserved": {"cpu": "vcpus * 10", "pid": "100"}, "systemReserved": {"ephemeral-storage": "1Gi"},
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 0,
            "featureGates": {"A": true}, "staticPodURLHeader": {"a": ["b"]},
            "authentication": {"webhook": {"enabled": null, "cacheTTL": "2m"}, "x509": {"clientCAFile": "f"}},
            "logging": {"flushFrequency": 5, "vmodule": [{"filePattern": "a", "verbosity": 1}],
                "options": {"json": {"infoBufferSize": "1Mi", "splitStream": true}}},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            "shutdownGracePeriodByPodPriority": [{"priority": 1, "shutdownGracePeriodSeconds": 2}],
            "memoryThrottlingFactor": 0.9, "tlsCurvePreferences": [29], "resolvConf": null,
        });
        assert_eq!(found(right), Vec::<String>::new());
    }

    #[test]
    fn every_mistake_is_said_and_names_its_field() {
        for (settings, field) in [
            (json!({"MaxPods": 1}), "MaxPods"),
            (json!({"authentication": {"webhook": {"Enabled": true}}}), "authentication.webhook.Enabled"),
            (json!({"logging": {"vmodule": [{"other": 1}]}}), "logging.vmodule[0].other"),
            (json!({"registerWithTaints": [{"key": "a"}]}), "registerWithTaints"),
            (json!({"evictionHard": {"cpu": "5%"}}), "evictionHard"),
            (json!({"evictionHard": {"memory.available": "101%"}}), "evictionHard[memory.available]"),
            (json!({"evictionHard": {"memory.available": "-1%"}}), "evictionHard[memory.available]"),
            (json!({"evictionHard": {"memory.available": "x%"}}), "evictionHard[memory.available]"),
            (json!({"evictionHard": {"memory.available": "-1Gi"}}), "evictionHard[memory.available]"),
            (json!({"evictionMinimumReclaim": {"memory.available": "much"}}), "evictionMinimumReclaim"),
            (json!({"evictionSoft": {"memory.available": "5%"}}), "evictionSoft[memory.available]"),
            (json!({"evictionSoftGracePeriod": {"memory.available": "5m"}}), "evictionSoftGracePeriod"),
            (json!({"kubeReserved": {"gpu": "1"}}), "kubeReserved"),
            (json!({"systemReserved": {"cpu": "-100m"}}), "systemReserved[cpu]"),
            (json!({"imageGCHighThresholdPercent": 101}), "imageGCHighThresholdPercent"),
            (json!({"imageGCLowThresholdPercent": -1}), "imageGCLowThresholdPercent"),
            (
                json!({"imageGCHighThresholdPercent": 5, "imageGCLowThresholdPercent": 5}),
                "imageGCHighThresholdPercent",
            ),
            (json!({"podsPerCore": -1}), "podsPerCore"),
            (json!({"evictionMaxPodGracePeriod": -1}), "evictionMaxPodGracePeriod"),
            (json!({"maxPods": -1}), "maxPods"),
        ] {
            let all = found(settings.clone());
            assert_eq!(all.len(), 1, "{settings}: {all:?}");
            assert!(all[0].contains(field), "{settings}: {all:?}");
        }
        let two = found(json!({"maxPods": -1, "podsPerCore": -1, "nonsense": 1}));
        assert_eq!(two.len(), 3);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_the_only_mistake_of_structure() {
        let all = found(json!({"nonsense": 1, "port": "many", "address": 2, "maxPods": -1}));
        assert_eq!(
            all,
            [
                "spec.kubelet: field \"address\" is 2, expected a string",
                "spec.kubelet.maxPods is -1, expected a number that is not negative",
            ]
        );
        for wrong in [
            json!({"maxPods": 2_147_483_648_i64}),
            json!({"maxPods": 1.5}),
            json!({"syncFrequency": 10}),
            json!({"syncFrequency": "10"}),
            json!({"clusterDNS": "a"}),
            json!({"evictionHard": {"memory.available": 5}}),
            json!({"featureGates": {"A": "true"}}),
            json!({"logging": {"verbosity": -1}}),
            json!({"cpuCFSQuota": "yes"}),
        ] {
            assert_eq!(found(wrong.clone()).len(), 1, "{wrong}");
        }
    }
}

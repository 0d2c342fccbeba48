//! Events: one collection, two groups that spell the same fields differently.

use serde_json::{Map, Value};

/// Fields of `events.k8s.io` and what the core group calls them.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From `events.k8s.io` to the core group, in which events are stored.
pub(crate) fn to_core(event: &mut Value) {
    rename(event, NAMES);
    event["apiVersion"] = Value::from("v1");
    // The core group always has these.
    for field in ["source", "firstTimestamp", "lastTimestamp"] {
        if event[field].is_null() {
            event[field] = if field == "source" { Value::Object(Map::new()) } else { Value::Null };
        }
    }
}

/// From the core group to `events.k8s.io`.
pub(crate) fn from_core(event: &mut Value) {
    rename(event, NAMES.map(|(new, core)| (core, new)));
    event["apiVersion"] = Value::from("events.k8s.io/v1");
}

fn rename(event: &mut Value, names: [(&str, &str); 7]) {
    if let Some(map) = event.as_object_mut() {
        for (from, to) in names {
            if let Some(value) = map.remove(from) {
                map.insert(to.to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_the_same_in_both_groups() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "a"}, "message": "m",
            "source": {"component": "c"}, "firstTimestamp": "t", "lastTimestamp": "t", "count": 2,
            "reportingComponent": "r",
        });
        let mut event = core.clone();
        from_core(&mut event);
        assert_eq!(event["regarding"]["name"], "a");
        assert_eq!(event["note"], "m");
        assert_eq!(event["deprecatedCount"], 2);
        to_core(&mut event);
        assert_eq!(event, core);
    }
}

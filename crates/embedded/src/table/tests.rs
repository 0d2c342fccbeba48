//! Tests of tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, cells, columns, custom_cells, custom_columns};

fn now() -> Timestamp {
    "2026-01-10T00:00:00Z".parse().expect("a time")
}

#[test]
fn ages_are_written_as_kubectl_does() {
    for (seconds, text) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (14_580, "4h3m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (187_200, "2d4h"),
        (691_200, "8d"),
        (62_899_200, "728d"),
        (63_158_400, "2y1d"),
        (283_824_000, "9y"),
    ] {
        let since = now() - jiff::SignedDuration::from_secs(seconds);
        assert_eq!(age(since, now()), text, "{seconds} seconds");
    }
}

fn pod(spec: &Value, status: &Value) -> Value {
    json!({
        "metadata": {"name": "p", "creationTimestamp": "2026-01-09T23:59:00Z"},
        "spec": spec,
        "status": status,
    })
}

fn line(pod: &Value) -> String {
    let cells = cells("", "Pod", pod, now());
    let cells: Vec<&str> = cells.iter().filter_map(Value::as_str).collect();
    cells[1..4].join(" ")
}

#[test]
fn the_state_of_a_pod_is_that_of_its_containers() {
    let one = json!({"containers": [{"name": "a"}]});
    let with = |state: Value| {
        json!({"phase": "Running", "containerStatuses": [{"name": "a", "ready": true, "restartCount": 2,
            "lastState": {"terminated": {"finishedAt": "2026-01-09T23:58:00Z"}}, "state": state}]})
    };
    for (status, expected) in [
        (json!({"phase": "Pending"}), "0/1 Pending 0"),
        (json!({"phase": "Failed", "reason": "Evicted"}), "0/1 Evicted 0"),
        (with(json!({"running": {}})), "1/1 Running 2 (2m ago)"),
        (with(json!({"waiting": {"reason": "CrashLoopBackOff"}})), "0/1 CrashLoopBackOff 2 (2m ago)"),
        (with(json!({"terminated": {"exitCode": 0, "reason": "Completed"}})), "0/1 Completed 2 (2m ago)"),
        (with(json!({"terminated": {"exitCode": 3}})), "0/1 ExitCode:3 2 (2m ago)"),
        (with(json!({"terminated": {"exitCode": 0, "signal": 9}})), "0/1 Signal:9 2 (2m ago)"),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "0/1 SchedulingGated 0",
        ),
    ] {
        assert_eq!(line(&pod(&one, &status)), expected, "{status}");
    }
}

#[test]
fn init_containers_come_first() {
    let spec = json!({
        "containers": [{"name": "a"}],
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
    });
    for (statuses, expected) in [
        (json!([{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]), "0/2 Init:0/2 0"),
        (json!([{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]), "0/2 Init:ErrImagePull 0"),
        (json!([{"name": "i", "state": {"terminated": {"exitCode": 1}}}]), "0/2 Init:ExitCode:1 0"),
        (
            json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}},
                   {"name": "s", "started": true, "ready": true, "state": {"running": {}}}]),
            "1/2 Pending 0",
        ),
    ] {
        let status = json!({"phase": "Pending", "initContainerStatuses": statuses});
        assert_eq!(line(&pod(&spec, &status)), expected, "{statuses}");
    }
}

#[test]
fn a_pod_that_is_going_says_so() {
    let mut object = pod(&json!({"containers": [{"name": "a"}]}), &json!({"phase": "Running"}));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-10T00:00:00Z");
    assert_eq!(line(&object), "0/1 Terminating 0");
    object["status"]["phase"] = json!("Succeeded");
    assert_eq!(line(&object), "0/1 Succeeded 0");
}

#[test]
fn every_kind_has_as_many_cells_as_columns() {
    for key in super::COLUMNS.keys() {
        let (group, kind) = key.split_once('/').expect("group and kind");
        let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-09T00:00:00Z"}});
        let cells = cells(group, kind, &object, now());
        assert_eq!(cells.len(), columns(group, kind).len(), "{key}");
        let named = columns(group, kind).iter().position(|column| column.format == "name");
        assert_eq!(named.map(|index| cells[index].clone()), Some(json!("a")), "{key}");
    }
}

#[test]
fn nodes_show_readiness_roles_and_addresses() {
    let node = json!({
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "arm64"},
        },
    });
    assert_eq!(
        cells("", "Node", &node, now()),
        [
            "n",
            "NotReady,SchedulingDisabled",
            "a,b",
            "<unknown>",
            "v1",
            "10.0.0.1",
            "<none>",
            "<unknown>",
            "6 (arm64)",
            "<unknown>"
        ]
    );
}

#[test]
fn custom_resources_show_their_printer_columns() {
    let printed = json!([
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1, "description": "How many."},
        {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels['example.com/a']"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "None", "type": "string", "jsonPath": ".spec.none"},
    ]);
    let object = json!({
        "metadata": {
            "name": "w",
            "creationTimestamp": "2026-01-09T23:00:00Z",
            "labels": {"example.com/a": "l"},
        },
        "spec": {"count": 3, "list": ["x", "y"], "on": true, "map": {"a": 1}},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    });
    assert_eq!(
        custom_cells(&printed, &object, now()),
        [
            json!("w"),
            json!("True"),
            json!(3),
            json!("x"),
            json!("l"),
            json!(true),
            json!("{\"a\":1}"),
            json!("60m"),
            Value::Null
        ]
    );
    let columns = custom_columns(&printed);
    assert_eq!(columns[0].format, "name");
    assert_eq!(
        columns[1].description,
        "Custom resource definition column (in JSONPath format): .status.conditions[?(@.type==\"Ready\")].status"
    );
    assert_eq!((columns[2].priority, columns[2].description.as_str()), (1, "How many."));
}

#[test]
fn custom_resources_without_columns_show_their_age() {
    let object = json!({"metadata": {"name": "w", "creationTimestamp": "2026-01-09T23:00:00Z"}});
    assert_eq!(custom_cells(&Value::Null, &object, now()), ["w", "60m"]);
    let names: Vec<String> = custom_columns(&json!([])).into_iter().map(|column| column.name).collect();
    assert_eq!(names, ["Name", "Age"]);
}

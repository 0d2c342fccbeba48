//! What users of kubectl see of the CRDs: columns, short names, categories and scaling.

use std::time::Duration;

use api::provider::Provider::{self, Aws, Azure, Kwok};
use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, cluster, text};
use crate::corpus;
use crate::run::endpoints;

/// kubectl learns of a new kind a moment after the API server serves it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The valid object of the corpus, changed by a merge patch and under a name of its own.
fn object(provider: Provider, plural: &str, name: &str, patch: &Value) -> Value {
    let file_name = format!("{provider}/{plural}.yaml");
    let files = corpus::load(provider).expect("the corpus can be read");
    let file = files.into_iter().find(|file| file.name == file_name).expect("every kind has a file");
    let mut object = file.object;
    object["metadata"]["name"] = json!(name);
    corpus::merge(&mut object, patch);
    object
}

#[track_caller]
fn create(cluster: &Cluster, object: &Value) {
    let path = &endpoints(cluster, object).expect("the kind has a CRD")[0].path;
    send(cluster, Method::POST, path, object);
    if let Some(status) = object.get("status") {
        let path = format!("{path}/{}/status", text(object, "/metadata/name"));
        send(cluster, Method::PATCH, &path, &json!({"status": status}));
    }
}

#[track_caller]
fn send(cluster: &Cluster, method: Method, path: &str, body: &Value) {
    let reply = cluster.send(method, path, Some(body)).expect("the API server answers");
    assert!(reply.is_success(), "{}", reply.message());
}

/// What kubectl prints, once it knows the kind.
fn kubectl(cluster: &Cluster, args: &[&str]) -> String {
    let printed = e2e::poll("kubectl to know the kind", PATIENCE, || match cluster.plane.kubectl(args) {
        Err(error) if error.to_string().contains("doesn't have a resource type") => Ok(None),
        printed => printed.map(Some),
    });
    printed.expect("kubectl succeeds")
}

/// Creates an object named `columns` and compares the table that kubectl prints of it; `AGE` matches any age.
#[track_caller]
fn check_columns(provider: Provider, plural: &str, patch: &Value, narrow: [&str; 2], wide: [&str; 2]) {
    let cluster = cluster(provider);
    create(cluster, &object(provider, plural, "columns", patch));
    for (output, expected) in [("", narrow), ("wide", wide)] {
        let table = kubectl(cluster, &["get", plural, "columns", "-o", output]);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        let [header, row] = rows.as_slice() else { panic!("a header and a row: {table}") };
        assert_eq!(header.join(" "), expected[0], "{table}");
        let shown = row.iter().map(|cell| if is_age(cell) { "AGE" } else { cell });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected[1], "{table}");
    }
}

fn is_age(cell: &str) -> bool {
    cell.strip_suffix('s').is_some_and(|number| number.parse::<u32>().is_ok())
}

fn condition(type_: &str, status: &str) -> Value {
    let time = "2024-01-01T00:00:00Z";
    json!({"type": type_, "status": status, "reason": "Test", "message": "", "lastTransitionTime": time})
}

#[test]
fn kubectl_prints_the_columns_of_a_node_pool() {
    let patch = json!({"spec": {"weight": 7}, "status": {
        "nodes": 3, "resources": {"cpu": "12", "memory": "48Gi"}, "conditions": [condition("Ready", "True")],
    }});
    check_columns(
        Kwok,
        "nodepools",
        &patch,
        ["NAME NODECLASS NODES READY AGE", "columns default 3 True AGE"],
        ["NAME NODECLASS NODES READY AGE WEIGHT CPU MEMORY", "columns default 3 True AGE 7 12 48Gi"],
    );
}

#[test]
fn kubectl_prints_the_columns_of_a_node_claim() {
    let patch = json!({
        "metadata": {"labels": {
            "node.kubernetes.io/instance-type": "c-4x-amd64-linux", "karpenter.sh/capacity-type": "spot",
            "topology.kubernetes.io/zone": "zone-a", "karpenter.sh/nodepool": "pool",
        }},
        "status": {
            "nodeName": "node", "providerID": "kwok://node", "imageID": "image",
            "conditions": [condition("Ready", "False"), condition("Drifted", "True")],
        },
    });
    check_columns(
        Kwok,
        "nodeclaims",
        &patch,
        ["NAME TYPE CAPACITY ZONE NODE READY AGE", "columns c-4x-amd64-linux spot zone-a node False AGE"],
        [
            "NAME TYPE CAPACITY ZONE NODE READY AGE IMAGEID ID NODEPOOL NODECLASS DRIFTED",
            "columns c-4x-amd64-linux spot zone-a node False AGE image kwok://node pool default True",
        ],
    );
}

#[test]
fn kubectl_prints_the_columns_of_a_node_overlay() {
    let patch = json!({"spec": {"weight": 7}, "status": {"conditions": [condition("Ready", "True")]}});
    check_columns(
        Kwok,
        "nodeoverlays",
        &patch,
        ["NAME READY AGE", "columns True AGE"],
        ["NAME READY AGE WEIGHT", "columns True AGE 7"],
    );
}

#[test]
fn kubectl_prints_the_columns_of_a_capacity_buffer() {
    let patch = json!({"status": {
        "podTemplateRef": {"name": "web"}, "replicas": 3,
        "conditions": [condition("ReadyForProvisioning", "True")],
    }});
    let table = [
        "NAME STRATEGY PODTEMPLATE REPLICAS CONDITIONSTYPE CONDITIONSSTATUS CONDITIONSREASON AGE",
        "columns buffer.x-k8s.io/active-capacity web 3 ReadyForProvisioning True Test AGE",
    ];
    check_columns(Kwok, "capacitybuffers", &patch, table, table);
}

#[test]
fn kubectl_prints_only_the_age_of_a_kwok_node_class() {
    let table = ["NAME AGE", "columns AGE"];
    check_columns(Kwok, "kwoknodeclasses", &json!({}), table, table);
}

#[test]
fn kubectl_prints_the_columns_of_an_ec2_node_class() {
    let patch = json!({
        "spec": {"role": "nodes", "instanceProfile": null},
        "status": {"conditions": [condition("Ready", "True")]},
    });
    check_columns(
        Aws,
        "ec2nodeclasses",
        &patch,
        ["NAME READY AGE", "columns True AGE"],
        ["NAME READY AGE ROLE", "columns True AGE nodes"],
    );
}

#[test]
fn kubectl_prints_the_columns_of_an_aks_node_class() {
    let patch = json!({
        "spec": {"imageFamily": "AzureLinux"},
        "status": {"conditions": [condition("Ready", "True")]},
    });
    check_columns(
        Azure,
        "aksnodeclasses",
        &patch,
        ["NAME READY AGE", "columns True AGE"],
        ["NAME READY AGE IMAGEFAMILY", "columns True AGE AzureLinux"],
    );
}

/// Creates an object of each kind named `names`, and looks for them under each name that kubectl knows.
#[track_caller]
fn check_names(provider: Provider, kinds: &[&str], names: &[(&str, &[&str])]) {
    let cluster = cluster(provider);
    for plural in kinds {
        create(cluster, &object(provider, plural, "names", &json!({})));
    }
    for (name, expected) in names {
        let listed = kubectl(cluster, &["get", name, "-o", "name"]);
        let mut listed: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix("/names")).collect();
        listed.sort_unstable();
        assert_eq!(listed, *expected, "kubectl get {name}");
    }
}

const POOL: &str = "nodepool.karpenter.sh";
const CLAIM: &str = "nodeclaim.karpenter.sh";
const OVERLAY: &str = "nodeoverlay.karpenter.sh";
const BUFFER: &str = "capacitybuffer.autoscaling.x-k8s.io";

#[test]
fn kubectl_knows_short_names_and_categories() {
    let class = "kwoknodeclass.karpenter.kwok.sh";
    check_names(
        Kwok,
        &["nodepools", "nodeclaims", "nodeoverlays", "capacitybuffers", "kwoknodeclasses"],
        &[
            ("karpenter", &[class, CLAIM, OVERLAY, POOL]),
            ("autoscaling", &[BUFFER]),
            ("nodepool", &[POOL]),
            ("nodeclaim", &[CLAIM]),
            ("overlays", &[OVERLAY]),
            ("cb", &[BUFFER]),
            ("kwoknc", &[class]),
            ("kwokncs", &[class]),
        ],
    );
}

#[test]
fn kubectl_knows_the_short_names_of_aws() {
    let class = "ec2nodeclass.karpenter.k8s.aws";
    check_names(
        Aws,
        &["nodepools", "nodeclaims", "nodeoverlays", "ec2nodeclasses"],
        &[("karpenter", &[class, CLAIM, OVERLAY, POOL]), ("ec2nc", &[class]), ("ec2ncs", &[class])],
    );
}

#[test]
fn kubectl_knows_the_short_names_and_the_category_of_azure() {
    let class = "aksnodeclass.karpenter.azure.com";
    check_names(
        Azure,
        &["nodepools", "nodeclaims", "nodeoverlays", "aksnodeclasses"],
        &[
            ("karpenter", &[class, CLAIM, OVERLAY, POOL]),
            ("nap", &[class, CLAIM, OVERLAY, POOL]),
            ("aksnc", &[class]),
            ("aksncs", &[class]),
        ],
    );
}

#[test]
fn a_static_pool_can_be_scaled_and_a_dynamic_one_cannot() {
    let cluster = cluster(Kwok);
    create(
        cluster,
        &object(Kwok, "nodepools", "static", &json!({"spec": {"replicas": 2}, "status": {"nodes": 1}})),
    );
    kubectl(cluster, &["scale", "nodepool", "static", "--replicas=5"]);
    let scale = cluster.send(Method::GET, "/apis/karpenter.sh/v1/nodepools/static/scale", None).unwrap().body;
    assert_eq!((&scale["spec"], &scale["status"]), (&json!({"replicas": 5}), &json!({"replicas": 1})));

    create(cluster, &object(Kwok, "nodepools", "dynamic", &json!({})));
    let refusal = cluster.plane.kubectl(&["scale", "nodepool", "dynamic", "--replicas=5"]).unwrap_err();
    let rule = "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset)";
    assert!(refusal.to_string().contains(rule), "{refusal}");
}

//! Random clusters in which every scheduling rule decides something now and then.

use std::collections::BTreeSet;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

/// What is there before the first pod waits, and the pods that come one after another.
pub(crate) struct Plan {
    pub(crate) objects: Vec<Value>,
    /// Pods on nodes.
    pub(crate) placed: Vec<Value>,
    pub(crate) waiting: Vec<Value>,
    /// Whether important pods that were promised a node stay and keep others off it.
    pub(crate) promises_stay: bool,
}

pub(crate) const HIGHEST_PRIORITY: i32 = 1000;
const NAMESPACES: [&str; 3] = ["default", "team-a", "team-b"];
pub(crate) const DRIVER: &str = "csi.example.com";
const ZONES: [&str; 3] = ["z1", "z2", "z3"];
const APPS: [&str; 3] = ["web", "db", "cache"];
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

struct Dice(Pcg64);

impl Dice {
    fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Objects that every cluster of one control plane shares.
pub(crate) fn shared() -> Vec<Value> {
    let mut objects = vec![];
    for (name, team) in [("team-a", "a"), ("team-b", "b")] {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": team}}}));
    }
    for (name, value, policy) in [
        ("low", -10, "PreemptLowerPriority"),
        ("middle", 100, "PreemptLowerPriority"),
        ("high", HIGHEST_PRIORITY, "PreemptLowerPriority"),
        ("polite", HIGHEST_PRIORITY, "Never"),
    ] {
        objects.push(json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "preemptionPolicy": policy}));
    }
    objects
        .push(json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"},
        "handler": "heavy", "overhead": {"podFixed": {"cpu": "250m", "memory": "128Mi"}}}));
    for (name, provisioner, mode, zones) in [
        ("wait", DRIVER, "WaitForFirstConsumer", None),
        ("wait-zonal", DRIVER, "WaitForFirstConsumer", Some(json!(["z1", "z2"]))),
        ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", None),
        ("now", DRIVER, "Immediate", None),
    ] {
        let mut class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": mode});
        if let Some(values) = zones {
            class["allowedTopologies"] =
                json!([{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]);
        }
        objects.push(class);
    }
    objects
}

pub(crate) fn generate(seed: u64) -> Plan {
    let mut dice = Dice(Pcg64::seed_from_u64(seed));
    let mut objects = vec![];
    let names: Vec<String> = (0..3 + dice.below(6)).map(|index| format!("node-{index}")).collect();
    for name in &names {
        objects.push(node(&mut dice, name));
        if dice.chance(60) {
            objects.push(csi_node(&mut dice, name));
        }
    }
    let claims = storage(&mut dice, &names, &mut objects);
    for index in 0..dice.below(4) {
        let app = dice.one(&APPS);
        objects.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": format!("budget-{index}"), "namespace": dice.one(&NAMESPACES)},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": dice.below(3), "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}));
    }

    let mut placed = vec![];
    let mut with_ports = BTreeSet::new();
    for index in 0..4 + dice.below(names.len() * 4) {
        let mut pod = base_pod(&mut dice, &format!("placed-{index}"));
        requests(&mut dice, &mut pod, 2);
        if dice.chance(15) {
            pod["spec"]["affinity"] = json!({"podAntiAffinity": {REQUIRED: [term(&mut dice)]}});
        }
        if dice.chance(8) && pod["metadata"]["namespace"] == "default" {
            mount(&mut dice, &mut pod, &claims);
        }
        let node = if dice.chance(3) { "ghost" } else { names[dice.below(names.len())].as_str() };
        pod["spec"]["nodeName"] = json!(node);
        // No scheduler puts two pods with the same port on a node, so at most one has any.
        if dice.chance(15) && with_ports.insert(node) {
            pod["spec"]["containers"][0]["ports"] = ports(&mut dice);
        }
        pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
        let state = match dice.below(100) {
            0..6 => "terminating",
            6..10 => "Succeeded",
            _ => "Running",
        };
        pod["metadata"]["annotations"] =
            json!({"state": state, "started": format!("2026-01-01T00:{:02}:{:02}Z", dice.below(60), index)});
        placed.push(pod);
    }
    let waiting =
        (0..12).map(|index| waiting_pod(&mut dice, &format!("waiting-{index}"), &names, &claims)).collect();
    Plan { objects, placed, waiting, promises_stay: seed % 2 == 1 }
}

fn node(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({HOST: name});
    if dice.chance(90) {
        labels[ZONE] = json!(dice.one(&ZONES));
    }
    if dice.chance(70) {
        labels["disk"] = json!(dice.one(&["ssd", "hdd"]));
    }
    if dice.chance(70) {
        labels["generation"] = json!(dice.one(&["1", "2", "3", "10", "new"]));
    }
    let mut taints = vec![];
    if dice.chance(20) {
        taints.push(json!({"key": "dedicated", "value": dice.one(&["x", "y"]),
            "effect": dice.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"])}));
    }
    if dice.chance(10) {
        taints.push(json!({"key": "broken", "effect": dice.one(&["NoSchedule", "NoExecute"])}));
    }
    let mut allocatable = json!({"cpu": dice.one(&["2", "4", "3500m", "8"]), "memory": dice.one(&["4Gi", "8Gi", "8000M"]),
        "pods": dice.one(&["4", "8", "12"])});
    if dice.chance(60) {
        allocatable["ephemeral-storage"] = json!(dice.one(&["5Gi", "20Gi"]));
    }
    if dice.chance(40) {
        allocatable["example.com/gpu"] = json!(dice.one(&["0", "1", "2"]));
    }
    if dice.chance(20) {
        allocatable["hugepages-2Mi"] = json!("64Mi");
    }
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints}, "status": {"allocatable": allocatable, "capacity": allocatable}});
    if dice.chance(8) {
        node["spec"]["unschedulable"] = json!(true);
    }
    node
}

fn csi_node(dice: &mut Dice, name: &str) -> Value {
    let mut driver = json!({"name": DRIVER, "nodeID": name});
    if dice.chance(80) {
        driver["allocatable"] = json!({"count": dice.below(4)});
    }
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
        "spec": {"drivers": [driver]}})
}

/// Volumes and claims in every state; returns the claims' names.
fn storage(dice: &mut Dice, nodes: &[String], objects: &mut Vec<Value>) -> Vec<String> {
    let volume = |dice: &mut Dice, name: &str, class: &str| {
        let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": {"kind": dice.one(&["a", "b"])}},
            "spec": {"capacity": {"storage": dice.one(&["1Gi", "2Gi", "5Gi"])}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": class, "csi": {"driver": DRIVER, "volumeHandle": name}},
            "status": {"phase": "Available"}});
        let affinity = match dice.below(4) {
            0 => Some((ZONE, dice.one(&ZONES).to_owned())),
            1 => Some((HOST, nodes[dice.below(nodes.len())].clone())),
            _ => None,
        };
        if let Some((key, value)) = affinity {
            volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms":
                [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}});
        }
        if dice.chance(25) {
            volume["metadata"]["labels"][ZONE] = json!(dice.one(&["z1", "z2", "z1__z3"]));
        }
        volume
    };
    for index in 0..dice.below(4) {
        let mut free = volume(dice, &format!("free-{index}"), "static");
        if dice.chance(15) {
            free["status"]["phase"] = json!("Released");
        }
        objects.push(free);
    }
    let mut claims = vec![];
    for index in 0..7 {
        let name = format!("claim-{index}");
        let class = dice.one(&["wait", "wait-zonal", "static", "static", "now", "nonexistent"]);
        let mode = if dice.chance(15) { "ReadWriteOncePod" } else { "ReadWriteOnce" };
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": {}},
            "spec": {"accessModes": [mode], "storageClassName": class,
                "resources": {"requests": {"storage": dice.one(&["1Gi", "2Gi", "4Gi"])}}}});
        if dice.chance(15) {
            claim["spec"]["selector"] = json!({"matchLabels": {"kind": dice.one(&["a", "b"])}});
        }
        match dice.below(10) {
            0..5 => {
                let bound = format!("bound-{index}");
                claim["spec"]["volumeName"] = json!(bound);
                claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
                claim["status"] = json!({"phase": "Bound"});
                if !dice.chance(10) {
                    let mut volume = volume(dice, &bound, class);
                    volume["spec"]["claimRef"] = json!({"namespace": "default", "name": name});
                    volume["status"]["phase"] = json!("Bound");
                    objects.push(volume);
                }
            }
            5 => claim["spec"]["volumeName"] = json!("elsewhere"),
            6 if dice.chance(50) => claim["status"] = json!({"phase": "Lost"}),
            7 if dice.chance(50) => {
                claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] =
                    json!(nodes[dice.below(nodes.len())]);
            }
            _ => {}
        }
        objects.push(claim);
        claims.push(name);
    }
    claims.push("missing".to_owned());
    claims
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn base_pod(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({});
    if dice.chance(90) {
        labels["app"] = json!(dice.one(&APPS));
    }
    if dice.chance(60) {
        labels["revision"] = json!(dice.one(&["1", "2"]));
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": dice.one(&["default", "default", "team-a", "team-b"]), "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "main", "resources": {}}],
            "automountServiceAccountToken": false}});
    if dice.chance(70) {
        pod["spec"]["priorityClassName"] = json!(dice.one(&["low", "low", "middle", "high", "polite"]));
    }
    pod
}

fn requests(dice: &mut Dice, pod: &mut Value, scale: usize) {
    let mut list = json!({});
    if dice.chance(85) {
        list["cpu"] = json!(format!("{}m", 100 + 150 * dice.below(4 * scale)));
    }
    if dice.chance(80) {
        list["memory"] = json!(format!("{}Mi", 64 + 200 * dice.below(3 * scale)));
    }
    if dice.chance(8) {
        list["ephemeral-storage"] = json!(dice.one(&["1Gi", "4Gi"]));
    }
    let mut limits = json!({});
    if dice.chance(8) {
        list["example.com/gpu"] = json!("1");
        limits["example.com/gpu"] = json!("1");
    }
    // The API server wants CPU or memory beside huge pages.
    if dice.chance(4) && list.get("cpu").is_some() {
        list["hugepages-2Mi"] = json!("32Mi");
        limits["hugepages-2Mi"] = json!("32Mi");
    }
    pod["spec"]["containers"][0]["resources"] = json!({"requests": list, "limits": limits});
    if dice.chance(15) {
        let mut init = vec![];
        for index in 0..=dice.below(3) {
            let mut container = json!({"name": format!("init-{index}"), "image": "init",
                "resources": {"requests": {"cpu": format!("{}m", 200 * dice.below(2 + 4 * scale))}}});
            if dice.chance(50) {
                container["restartPolicy"] = json!("Always");
            }
            init.push(container);
        }
        pod["spec"]["initContainers"] = json!(init);
    }
    if dice.chance(10) {
        pod["spec"]["runtimeClassName"] = json!("heavy");
    }
    let huge = pod.pointer("/spec/containers/0/resources/requests/hugepages-2Mi").is_some();
    if dice.chance(8) && !huge {
        pod["spec"]["resources"] =
            json!({"requests": {"cpu": format!("{}m", 4000 + 500 * dice.below(6)), "memory": "3Gi"}});
    }
}

fn ports(dice: &mut Dice) -> Value {
    let mut port = json!({"containerPort": 80, "hostPort": 8000 + dice.below(2), "protocol": dice.one(&["TCP", "TCP", "UDP"])});
    if dice.chance(40) {
        port["hostIP"] = json!(dice.one(&["127.0.0.1", "0.0.0.0", "10.0.0.1"]));
    }
    json!([port])
}

fn selector(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0..5 => json!({"matchLabels": {"app": dice.one(&APPS)}}),
        5 => {
            json!({"matchExpressions": [{"key": "app", "operator": dice.one(&["In", "NotIn"]), "values": ["web", "db"]}]})
        }
        6 => {
            json!({"matchExpressions": [{"key": "revision", "operator": dice.one(&["Exists", "DoesNotExist"])}]})
        }
        _ => json!({}),
    }
}

fn term(dice: &mut Dice) -> Value {
    let mut term =
        json!({"topologyKey": dice.one(&[ZONE, HOST, HOST, "disk"]), "labelSelector": selector(dice)});
    match dice.below(8) {
        0 => term["namespaces"] = json!([dice.one(&NAMESPACES)]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": dice.one(&["a", "b"])}}),
        2 => term["namespaceSelector"] = json!({}),
        3 => {
            term["namespaces"] = json!(["team-b"]);
            term["namespaceSelector"] =
                json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]});
        }
        4 => term["matchLabelKeys"] = json!(["revision"]),
        5 => term["mismatchLabelKeys"] = json!(["revision"]),
        _ => {}
    }
    let overlaps = term["labelSelector"].to_string().contains("revision");
    if overlaps {
        // The API server refuses a key that is in both.
        term["labelSelector"] = json!({"matchLabels": {"app": dice.one(&APPS)}});
    }
    term
}

fn spread(dice: &mut Dice) -> Value {
    let mut constraint = json!({"maxSkew": 1 + dice.below(2), "topologyKey": dice.one(&[ZONE, ZONE, HOST, "disk"]),
        "whenUnsatisfiable": dice.one(&["DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": dice.one(&APPS)}}});
    if dice.chance(10) {
        constraint["labelSelector"] = json!({});
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" && dice.chance(25) {
        constraint["minDomains"] = json!(1 + dice.below(4));
    }
    if dice.chance(25) {
        constraint["nodeAffinityPolicy"] = json!(dice.one(&["Honor", "Ignore"]));
    }
    if dice.chance(25) {
        constraint["nodeTaintsPolicy"] = json!(dice.one(&["Honor", "Ignore"]));
    }
    if dice.chance(20) {
        constraint["matchLabelKeys"] = json!(["revision"]);
    }
    constraint
}

fn node_term(dice: &mut Dice, nodes: &[String]) -> Value {
    let expression = match dice.below(7) {
        0 => json!({"key": ZONE, "operator": "In", "values": [dice.one(&ZONES), dice.one(&ZONES)]}),
        1 => json!({"key": ZONE, "operator": "NotIn", "values": [dice.one(&ZONES)]}),
        2 => json!({"key": "disk", "operator": "Exists"}),
        3 => json!({"key": "disk", "operator": "DoesNotExist"}),
        4 => json!({"key": "generation", "operator": "Gt", "values": [dice.one(&["1", "2"])]}),
        5 => json!({"key": "generation", "operator": "Lt", "values": [dice.one(&["3", "10"])]}),
        _ => json!({"key": "disk", "operator": "In", "values": [dice.one(&["ssd", "hdd"])]}),
    };
    if dice.chance(20) {
        let field = json!({"key": "metadata.name", "operator": dice.one(&["In", "In", "NotIn"]),
            "values": [if dice.chance(85) { nodes[dice.below(nodes.len())].as_str() } else { "ghost" }]});
        return if dice.chance(50) {
            json!({"matchFields": [field]})
        } else {
            json!({"matchFields": [field], "matchExpressions": [expression]})
        };
    }
    json!({"matchExpressions": [expression]})
}

fn mount(dice: &mut Dice, pod: &mut Value, claims: &[String]) {
    let mut volumes: Vec<Value> = vec![];
    for index in 0..=dice.below(2) {
        let claim = &claims[dice.below(claims.len())];
        volumes
            .push(json!({"name": format!("volume-{index}"), "persistentVolumeClaim": {"claimName": claim}}));
    }
    // kube-scheduler stumbles over a claim that is mounted twice.
    volumes.dedup_by_key(|volume| volume["persistentVolumeClaim"].clone());
    if dice.chance(5) {
        volumes.push(json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "wait", "resources": {"requests": {"storage": "1Gi"}}}}}}));
    }
    pod["spec"]["volumes"] = json!(volumes);
}

fn waiting_pod(dice: &mut Dice, name: &str, nodes: &[String], claims: &[String]) -> Value {
    let mut pod = base_pod(dice, name);
    if dice.chance(30) {
        pod["spec"]["priorityClassName"] = json!("high");
    }
    let scale = 1 + dice.below(5);
    requests(dice, &mut pod, scale);
    if dice.chance(15) {
        pod["spec"]["nodeSelector"] = json!({"disk": dice.one(&["ssd", "hdd"])});
    }
    let mut affinity = json!({});
    if dice.chance(25) {
        let terms: Vec<Value> = (0..=dice.below(2)).map(|_| node_term(dice, nodes)).collect();
        affinity["nodeAffinity"] = json!({REQUIRED: {"nodeSelectorTerms": terms}});
    }
    if dice.chance(20) {
        let terms: Vec<Value> = (0..=dice.below(2)).map(|_| term(dice)).collect();
        affinity["podAffinity"] = json!({REQUIRED: terms});
    }
    if dice.chance(20) {
        let terms: Vec<Value> = (0..=dice.below(2)).map(|_| term(dice)).collect();
        affinity["podAntiAffinity"] = json!({REQUIRED: terms});
    } else if dice.chance(10) {
        affinity["podAntiAffinity"] = json!({PREFERRED: [{"weight": 50, "podAffinityTerm": term(dice)}]});
    }
    pod["spec"]["affinity"] = affinity;
    if dice.chance(30) {
        let mut constraints: Vec<Value> = (0..=dice.below(2)).map(|_| spread(dice)).collect();
        // The API server refuses the same key twice with the same action.
        constraints.dedup_by_key(|one| (one["topologyKey"].clone(), one["whenUnsatisfiable"].clone()));
        pod["spec"]["topologySpreadConstraints"] = json!(constraints);
    }
    if dice.chance(40) {
        let toleration = match dice.below(5) {
            0 => json!({"operator": "Exists"}),
            1 => json!({"key": "dedicated", "operator": "Exists"}),
            2 => json!({"key": "dedicated", "operator": "Equal", "value": dice.one(&["x", "y"])}),
            3 => {
                json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"})
            }
            _ => json!({"key": "broken", "effect": "NoSchedule", "operator": "Exists"}),
        };
        pod["spec"]["tolerations"] = json!([toleration]);
    }
    if dice.chance(10) {
        pod["spec"]["containers"][0]["ports"] = ports(dice);
    }
    if dice.chance(30) {
        pod["metadata"]["namespace"] = json!("default");
        mount(dice, &mut pod, claims);
    }
    if dice.chance(3) {
        pod["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    }
    pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
    pod
}

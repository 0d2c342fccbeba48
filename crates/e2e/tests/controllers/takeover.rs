//! Our controller goes on where the original one stopped, and the other way round.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use e2e::{ControlPlane, poll};
use serde_json::{Map, Value, json};
use testkit::scenarios::manifests::{deployment, deployment_with, manifest, node_class, pool, with};
use testkit::stage::{CLAIMS, NODES, PODS, POOLS, Stage, is_true};

use crate::cluster::{Cluster, Controller, assert_paired, is_long, name, of_pool};
use crate::real::Machines;

const CLASSES: &str = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";
const POLICY: &str = "nobody-deletes-these-claims";

/// Objects by what and who they are.
type Objects = BTreeMap<String, Value>;

/// Everything that a controller must leave alone as long as nobody wants anything. What other programs refresh
/// all the time is not there: signs of life, and when and for which generation a condition was looked at. Nor is
/// the result of the look at a node's shape: the original controller looks every ten minutes, and if its first
/// look came before the node, the condition is still missing when it is stopped.
fn objects(stage: &dyn Stage) -> Objects {
    let mut objects = Objects::new();
    for (path, kind) in
        [(POOLS, "NodePool"), (CLAIMS, "NodeClaim"), (NODES, "Node"), (CLASSES, "KWOKNodeClass")]
    {
        for mut object in stage.list(path) {
            let id = format!("{kind} {} {}", name(&object), object["metadata"]["uid"]);
            let meta = object["metadata"].as_object_mut();
            meta.expect("all have one")
                .retain(|field, _| !["managedFields", "resourceVersion"].contains(&&**field));
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.retain(|condition| condition["type"] != "ConsistentStateFound");
                for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
                    condition
                        .retain(|field, _| !["lastHeartbeatTime", "observedGeneration"].contains(&&**field));
                }
            }
            objects.insert(id, object);
        }
    }
    objects
}

/// What differs, as lines.
fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    let none = Map::new();
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
                let (old, new) = (before.get(key), after.get(key));
                let path = format!("{path} {key}");
                differences(&path, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null), found);
            }
        }
        // A whole object that comes or goes is better told by its name alone.
        (Value::Object(_), _) if path.split(' ').count() == 3 => found.push(format!("{path} is gone")),
        (_, Value::Object(new)) if path.split(' ').count() == 3 && *new != none => {
            found.push(format!("{path} is new"));
        }
        _ if before == after => {}
        _ => found.push(format!("{path}: {before} became {after}")),
    }
}

/// Fails with everything that changes within some time, apart from one field.
fn stays_quiet(stage: &mut dyn Stage, controller: &str, before: &Objects, apart_from: Option<&str>) {
    let mut left = if is_long() { Duration::from_secs(150) } else { Duration::from_secs(30) };
    let before = json!(before);
    while !left.is_zero() {
        stage.pass(Duration::from_secs(1));
        left -= Duration::from_secs(1);
        let mut found = Vec::new();
        differences("", &before, &json!(objects(stage)), &mut found);
        found.retain(|line| !apart_from.is_some_and(|field| line.contains(field)));
        assert!(found.is_empty(), "{controller} changed, {left:?} before the end:\n{}", found.join("\n"));
    }
}

/// The objects, once whoever works on them has finished.
fn settled(stage: &mut dyn Stage) -> Objects {
    let mut last = objects(stage);
    let mut unchanged = 0;
    while unchanged < 6 {
        stage.pass(Duration::from_secs(1));
        let now = objects(stage);
        unchanged = if now == last { unchanged + 1 } else { 0 };
        last = now;
    }
    last
}

/// A pool that uses as much of the API as there is.
fn rich_pool() -> Value {
    with(
        pool("rich"),
        &json!({"spec": {
            "weight": 10,
            "limits": {"cpu": "100"},
            "template": {
                "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/note": "b"}},
                "spec": {
                    "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
                    "expireAfter": "720h",
                    "terminationGracePeriod": "1h",
                    "requirements": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                        {"key": "karpenter.kwok.sh/instance-family", "operator": "Exists", "minValues": 2},
                        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["33"]},
                    ],
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "Never",
                "budgets": [{"nodes": "10%"}],
            },
        }}),
    )
}

/// Pods that may not share a node.
fn apart(name: &str, replicas: usize) -> Value {
    let selector = json!({"matchLabels": {"app": name}});
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
    let spec =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    deployment_with(name, replicas, "500m", &spec)
}

#[test]
fn a_cluster_is_taken_over_and_handed_back_without_touching_a_node() -> Result<()> {
    let mut cluster = Cluster::start(ControlPlane::builder(), Machines::Simulator)?;
    let calm = with(pool("default"), &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    let team = json!({
        "nodeSelector": {"team": "a"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "team"}},
        }],
    });
    let objects = [
        calm,
        rich_pool(),
        node_class(),
        apart("apart", 4),
        deployment_with("team", 3, "1", &team),
        apart("later", 0),
    ];
    cluster.apply(&manifest(&objects));
    cluster.change_to(Controller::Upstream, "upstream")?;
    let stage = cluster.stage();
    stage.until_running("apart", 4);
    stage.until_running("team", 3);
    settled(stage);
    stage.kill_operator();
    let before = settled(stage);

    cluster.change_to(Controller::Ours, "ours")?;
    let stage = cluster.stage();
    stays_quiet(stage, "our controller", &before, None);
    // It was not quiet because it did nothing at all.
    stage.scale("later", 6);
    stage.until_running("later", 6);
    stage.scale("team", 5);
    stage.until_running("team", 5);
    settled(stage);
    stage.kill_operator();
    let before = settled(stage);

    cluster.change_to(Controller::Upstream, "upstream-again")?;
    let stage = cluster.stage();
    // Whenever it starts it takes all pods for new ones, on nodes of its own just the same.
    stays_quiet(stage, "the original controller", &before, Some(" status lastPodEventTime: "));
    stage.scale("later", 12);
    stage.until_running("later", 12);
    assert_paired(stage);
    Ok(())
}

/// Forbids to delete the claims of some pools.
fn policy(pools: &[&str]) -> String {
    let metadata = json!({"name": POLICY});
    manifest(&[
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["karpenter.sh"], "apiVersions": ["v1"], "resources": ["nodeclaims"],
                    "operations": ["DELETE"],
                }]},
                "validations": [{
                    "expression": format!("!(oldObject.metadata.labels['karpenter.sh/nodepool'] in {})", json!(pools)),
                }],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
        }),
    ])
}

/// Whether a node is marked to be disrupted.
fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_some_and(|taints| taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted"))
}

/// One pod on a node of the pool with the same name.
fn on(pool: &str, replicas: usize) -> Value {
    deployment_with(pool, replicas, "1", &json!({"nodeSelector": {"karpenter.sh/nodepool": pool}}))
}

#[test]
fn what_was_under_way_when_the_original_controller_was_killed_comes_to_its_end() -> Result<()> {
    let minute = Duration::from_mins(1);
    let mut cluster = Cluster::start(ControlPlane::builder(), Machines::Simulator)?;
    let slow_class =
        with(node_class(), &json!({"metadata": {"name": "slow"}, "spec": {"nodeRegistrationDelay": "10s"}}));
    let slow =
        with(pool("slow"), &json!({"spec": {"template": {"spec": {"nodeClassRef": {"name": "slow"}}}}}));
    let held =
        json!({"spec": {"template": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}}});
    cluster.apply(&manifest(&[
        node_class(),
        slow_class,
        slow,
        pool("draining"),
        pool("goes"),
        pool("stays"),
        with(on("draining", 1), &held),
        on("goes", 1),
        on("stays", 1),
        deployment("unused", 0, "1"),
    ]));
    cluster.change_to(Controller::Upstream, "upstream")?;
    let stage = cluster.stage();
    for app in ["draining", "goes", "stays"] {
        stage.until_running(app, 1);
    }

    // Disruption: nodes are marked, and nothing more can happen to them.
    cluster.apply(&policy(&["goes", "stays"]));
    let claim = name(&of_pool(&cluster, CLAIMS, "goes")[0]).to_owned();
    poll("the policy to be in force", minute, || {
        let delete = ["delete", "nodeclaim", &claim, "--dry-run=server"];
        Ok(cluster.real.plane.kubectl(&delete).is_err().then_some(()))
    })?;
    let stage = cluster.stage();
    stage.scale("goes", 0);
    stage.scale("stays", 0);
    stage.until("both empty nodes are marked", 2 * minute, |stage| {
        ["goes", "stays"].iter().all(|pool| of_pool(stage, NODES, pool).iter().any(is_tainted))
    });
    // Drain: a node is deleted whose pod may not be evicted.
    let drained = name(&of_pool(stage, NODES, "draining")[0]).to_owned();
    stage.delete(&format!("{NODES}/{drained}"));
    stage.until("the node is drained", minute, |stage| {
        stage.get(&format!("{NODES}/{drained}")).is_some_and(|node| is_tainted(&node))
    });
    // Launch: there is an instance, but its node has not appeared.
    stage.apply(&manifest(&[on("slow", 1)]));
    stage.until("a node is launched", minute, |stage| {
        of_pool(stage, CLAIMS, "slow").iter().any(|claim| is_true(claim, "Launched"))
    });
    stage.kill_operator();
    let launched = of_pool(stage, CLAIMS, "slow");
    assert!(of_pool(stage, NODES, "slow").is_empty(), "{}", stage.describe());
    for pool in ["goes", "stays"] {
        assert!(of_pool(stage, NODES, pool).iter().all(is_tainted), "{}", stage.describe());
    }

    let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
    cluster.real.plane.kubectl(&["delete", kinds, POLICY])?;
    let stage = cluster.stage();
    stage.patch(&format!("{POOLS}/stays"), &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    stage.start_operator();
    stage.until("the node that may stay is not marked any more", minute, |stage| {
        of_pool(stage, NODES, "stays").iter().all(|node| !is_tainted(node))
            && of_pool(stage, CLAIMS, "stays").iter().all(|claim| !is_true(claim, "DisruptionReason"))
    });
    stage.until("the empty node is gone", 2 * minute, |stage| {
        of_pool(stage, NODES, "goes").is_empty() && of_pool(stage, CLAIMS, "goes").is_empty()
    });
    assert_eq!(of_pool(stage, NODES, "stays").len(), 1, "{}", stage.describe());

    // The drain still waits for its pod.
    assert!(stage.get(&format!("{NODES}/{drained}")).is_some(), "{}", stage.describe());
    assert_eq!(stage.nodes_of("draining"), [&*drained]);
    let pod = name(&stage.pods("draining")[0]).to_owned();
    stage.patch(
        &format!("{PODS}/{pod}"),
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null}}}),
    );
    stage.until("the drained node is gone", 2 * minute, |stage| {
        stage.get(&format!("{NODES}/{drained}")).is_none()
    });
    stage.until_running("draining", 1);

    // The launch was neither forgotten nor repeated.
    stage.until_running("slow", 1);
    let claims = of_pool(stage, CLAIMS, "slow");
    assert_eq!(claims.len(), 1, "{}", stage.describe());
    for path in ["/metadata/uid", "/status/providerID", "/metadata/labels"] {
        assert_eq!(claims[0].pointer(path), launched[0].pointer(path), "{path}");
    }
    stage.until("nothing goes any more", minute, |stage| {
        stage.list(CLAIMS).len() == 3 && stage.list(NODES).len() == 3
    });
    assert_paired(stage);
    Ok(())
}

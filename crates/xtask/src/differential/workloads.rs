//! Random workloads: pods of one template, some of them waiting and some of them running.

use serde_json::{Value, json};

use super::catalogue::GPU;
use super::constraints;
use super::features::Feature::{
    Budgets, DefaultSpread, ExtraResources, HostPorts, InitContainers, ManyPods, Namespaces, Nodes, OddPods,
    Overhead, Volumes,
};
use super::storage::{self, Mount};
use super::world::World;

/// Pods of one template.
struct Workload {
    namespace: &'static str,
    app: String,
    /// Kind of the object that owns the pods.
    owner: &'static str,
    labels: Value,
    spec: Value,
    milli: usize,
    mi: usize,
    mount: Option<Mount>,
}

/// Makes namespaces, workloads, their pods and disruption budgets.
pub(crate) fn generate(world: &mut World) {
    namespaces(world);
    let most = if world.has(ManyPods) { 60 } else { 15 };
    let mut left = world.random.between(1, most);
    let count = world.random.between(1, left.min(if world.has(ManyPods) { 8 } else { 4 }));
    let apps: Vec<String> = (0..count).map(|number| format!("app-{number}")).collect();
    for (number, app) in apps.iter().enumerate() {
        let workload = draw(world, app, &apps);
        let rest = count - number - 1;
        let pending = if rest == 0 { left } else { world.random.between(1, left - rest) };
        left -= pending;
        owners(world, &workload);
        let mut first = true;
        if world.has(Nodes) {
            for replica in 0..world.random.between(0, 5) {
                running(world, &workload, replica, &mut first);
            }
        }
        for replica in 0..pending {
            waiting(world, &workload, replica, &mut first);
        }
    }
}

fn namespaces(world: &mut World) {
    world.namespaces = vec!["default"];
    if world.has(Namespaces) {
        world.namespaces.extend(["shop", "test"]);
    }
    for name in world.namespaces.clone() {
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"}});
        namespace["metadata"] = world.metadata(None, name);
        let environment = if name == "shop" { "prod" } else { "dev" };
        namespace["metadata"]["labels"] = json!({"kubernetes.io/metadata.name": name, "env": environment});
        world.items.push(namespace);
    }
}

fn draw(world: &mut World, app: &str, apps: &[String]) -> Workload {
    let namespace = *world.random.pick(&world.namespaces);
    let milli = *world.random.weighted(&[
        (10, 0),
        (20, 100),
        (20, 250),
        (20, 500),
        (15, 1000),
        (10, 1500),
        (4, 3500),
        (1, 50_000),
    ]);
    let mi = *world.random.weighted(&[(15, 0), (20, 128), (25, 512), (20, 1024), (15, 3000), (5, 9000)]);
    let mut requests = json!({});
    if milli > 0 {
        requests["cpu"] = json!(format!("{milli}m"));
    }
    if mi > 0 {
        requests["memory"] = json!(format!("{mi}Mi"));
    }
    let mut limits = json!({});
    if world.draws(ExtraResources, 25) {
        requests[GPU] = json!("1");
        limits[GPU] = json!("1");
    }
    if world.draws(ExtraResources, 20) {
        requests["ephemeral-storage"] = json!("5Gi");
    }
    let mut container =
        json!({"name": "main", "image": "app", "resources": {"requests": requests, "limits": limits}});
    if world.draws(HostPorts, 35) {
        container["ports"] = json!([port(world)]);
    }
    let mut spec = json!({"containers": [container]});
    if world.draws(InitContainers, 50) {
        spec["initContainers"] = json!(init_containers(world));
    }
    if world.draws(Overhead, 35) {
        spec["overhead"] = json!({"cpu": "100m", "memory": "64Mi"});
    }
    if world.draws(Overhead, 20) {
        spec["resources"] = json!({"requests": {"cpu": format!("{}m", milli.max(100) * 2)}});
    }
    constraints::add(world, &mut spec, app, apps);
    let tier = *world.random.pick(&["front", "back"]);
    let hash = *world.random.pick(&["5d4f8", "7c9b6"]);
    let mount = if world.draws(Volumes, 50) {
        Some(*world.random.weighted(&[(60, Mount::Own), (20, Mount::Shared), (20, Mount::Ephemeral)]))
    } else {
        None
    };
    let owner =
        if mount == Some(Mount::Own) || world.random.chance(20) { "StatefulSet" } else { "ReplicaSet" };
    let labels = json!({"app": app, "tier": tier, "pod-template-hash": hash});
    Workload { namespace, app: app.to_owned(), owner, labels, spec, milli, mi, mount }
}

fn port(world: &mut World) -> Value {
    let number = *world.random.pick(&[8080, 8080, 9090]);
    let mut port = json!({"containerPort": number, "hostPort": number,
        "protocol": *world.random.pick(&["TCP", "TCP", "UDP"])});
    if world.random.chance(25) {
        port["hostIP"] = json!(*world.random.pick(&["127.0.0.1", "10.0.0.1", "0.0.0.0"]));
    }
    port
}

fn init_containers(world: &mut World) -> Vec<Value> {
    (0..world.random.between(1, 3))
        .map(|number| {
            let milli = *world.random.pick(&[50, 200, 700, 1200]);
            let mut container = json!({"name": format!("init-{number}"), "image": "init",
                "resources": {"requests": {"cpu": format!("{milli}m"), "memory": format!("{}Mi", milli / 2)}}});
            if world.random.chance(45) {
                container["restartPolicy"] = json!("Always");
            }
            container
        })
        .collect()
}

/// What the pods of the workload belong to, and who selects them.
fn owners(world: &mut World, workload: &Workload) {
    let Workload { namespace, app, owner, labels, .. } = workload;
    if world.has(DefaultSpread) {
        let mut object = json!({"apiVersion": "apps/v1", "kind": owner,
            "spec": {"selector": {"matchLabels": {"app": app, "pod-template-hash": labels["pod-template-hash"]}}}});
        object["metadata"] = world.metadata(Some(namespace), app);
        world.items.push(object);
        if world.random.chance(60) {
            let mut service =
                json!({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": app}}});
            service["metadata"] = world.metadata(Some(namespace), app);
            world.items.push(service);
        }
    }
    if world.draws(Budgets, 50) {
        let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
        match world.random.below(4) {
            0 => spec["maxUnavailable"] = json!(0),
            1 => spec["minAvailable"] = json!("100%"),
            2 => spec["maxUnavailable"] = json!(1),
            _ => {
                spec["maxUnavailable"] = json!("0%");
                spec["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
            }
        }
        let mut budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec});
        budget["metadata"] = world.metadata(Some(namespace), app);
        world.items.push(budget);
    }
}

fn pod(world: &mut World, workload: &Workload, name: &str) -> Value {
    let Workload { namespace, app, owner, labels, spec, .. } = workload;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    pod["metadata"] = world.metadata(Some(namespace), name);
    pod["metadata"]["labels"] = labels.clone();
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": owner, "name": app,
        "uid": format!("{namespace}/{app}"), "controller": true, "blockOwnerDeletion": true}]);
    pod
}

fn running(world: &mut World, workload: &Workload, replica: usize, first: &mut bool) {
    if world.nodes.is_empty() {
        return;
    }
    let chosen = world.random.below(world.nodes.len());
    let node = &mut world.nodes[chosen];
    if node.free_milli < workload.milli || node.free_mi < workload.mi || node.free_pods == 0 {
        return;
    }
    node.free_milli -= workload.milli;
    node.free_mi -= workload.mi;
    node.free_pods -= 1;
    let (node_name, zone) = (node.name.clone(), node.zone.clone());
    let mut pod = pod(world, workload, &format!("{}-run-{replica}", workload.app));
    pod["spec"]["nodeName"] = json!(node_name);
    let ready = world.random.chance(85);
    pod["status"] = json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [World::condition("PodScheduled", true), World::condition("Ready", ready)]});
    match world.random.below(20) {
        0 => pod["status"]["phase"] = json!("Succeeded"),
        1 => {
            pod["metadata"]["deletionTimestamp"] = json!(world.tick());
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        2 => pod["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"}),
        _ => {}
    }
    if let Some(mount) = workload.mount {
        storage::mount(world, &mut pod, mount, (workload.namespace, &workload.app), Some(&zone), *first);
        *first = false;
    }
    world.items.push(pod);
}

fn waiting(world: &mut World, workload: &Workload, replica: usize, first: &mut bool) {
    let mut pod = pod(world, workload, &format!("{}-{replica}", workload.app));
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    if let Some(mount) = workload.mount {
        storage::mount(world, &mut pod, mount, (workload.namespace, &workload.app), None, *first);
        *first = false;
    }
    if world.draws(OddPods, 20) {
        make_odd(world, &mut pod);
    }
    world.items.push(pod);
}

/// Pods that are not for us, or that nobody can place.
fn make_odd(world: &mut World, pod: &mut Value) {
    match world.random.below(9) {
        0 => pod["status"]["conditions"][0]["reason"] = json!("SchedulingGated"),
        1 => pod["status"]["nominatedNodeName"] = json!("somewhere"),
        2 => pod["metadata"]["ownerReferences"][0]["kind"] = json!("DaemonSet"),
        3 => {
            let term =
                json!({"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]});
            require(pod, &term);
        }
        4 => require(
            pod,
            &json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}),
        ),
        5 => pod["spec"]["nodeSelector"] = json!({"karpenter.sh/custom": "value"}),
        6 => pod["spec"]["resourceClaims"] = json!([{"name": "device", "resourceClaimName": "device"}]),
        7 => pod["status"]["conditions"] = json!([]),
        _ => pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "somewhere"}),
    }
}

fn require(pod: &mut Value, term: &Value) {
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [term]});
}

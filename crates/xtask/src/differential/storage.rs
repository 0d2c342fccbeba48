//! Random volumes: classes, claims, volumes, and what nodes can attach.

use serde_json::{Value, json};

use super::catalogue::ZONE;
use super::features::Feature::{BrokenVolumes, Volumes};
use super::world::World;

const DRIVERS: [&str; 2] = ["csi.example.com", "ebs.csi.aws.com"];

/// Makes the storage classes of the cluster and the attach limits of its nodes.
pub(crate) fn generate(world: &mut World) {
    if !world.has(Volumes) {
        return;
    }
    let zones = world.zones.clone();
    let classes = [
        ("late", "WaitForFirstConsumer", DRIVERS[0], None),
        ("zonal", "WaitForFirstConsumer", DRIVERS[1], Some(1)),
        ("regional", "WaitForFirstConsumer", DRIVERS[0], Some(2)),
        ("early", "Immediate", DRIVERS[0], None),
    ];
    for (name, mode, driver, allowed) in classes {
        let mut class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": driver,
            "volumeBindingMode": mode});
        class["metadata"] = world.metadata(None, name);
        if let Some(count) = allowed {
            let chosen = world.random.some(&zones, count);
            // Either one term with several zones, or one term for each.
            class["allowedTopologies"] = if world.random.chance(50) {
                json!([{"matchLabelExpressions": [{"key": ZONE, "values": chosen}]}])
            } else {
                chosen
                    .iter()
                    .map(|zone| json!({"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}))
                    .collect()
            };
        }
        world.items.push(class);
    }
    for node in world.nodes.clone() {
        if world.random.chance(60) {
            let drivers: Vec<Value> =
                DRIVERS.iter().map(|driver| csi_driver(world, driver, &node.name)).collect();
            let mut csi =
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": drivers}});
            csi["metadata"] = world.metadata(None, &node.name);
            world.items.push(csi);
        }
    }
}

fn csi_driver(world: &mut World, name: &str, node: &str) -> Value {
    let mut driver = json!({"name": name, "nodeID": node, "topologyKeys": [ZONE]});
    if world.random.chance(70) {
        driver["allocatable"] = json!({"count": world.random.between(0, 3)});
    }
    driver
}

/// What a pod has mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    /// A claim of its own.
    Own,
    /// A claim that all pods of the workload share.
    Shared,
    /// A claim that is made and removed with the pod.
    Ephemeral,
}

/// Adds a volume to a pod and makes its claim. `zone` is where the pod runs.
pub(crate) fn mount(
    world: &mut World,
    pod: &mut Value,
    kind: Mount,
    (namespace, app): (&str, &str),
    zone: Option<&str>,
    first: bool,
) {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (volume, claim) = match kind {
        Mount::Own => {
            let claim = format!("data-{name}");
            (json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}), claim)
        }
        Mount::Shared => {
            let claim = format!("shared-{app}");
            (json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}), claim)
        }
        Mount::Ephemeral => {
            let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}}}});
            (json!({"name": "data", "ephemeral": {"volumeClaimTemplate": template}}), format!("{name}-data"))
        }
    };
    pod["spec"]["volumes"] = json!([volume, {"name": "scratch", "emptyDir": {}}]);
    if kind != Mount::Shared || first {
        make_claim(world, namespace, &claim, zone);
    }
}

fn make_claim(world: &mut World, namespace: &str, name: &str, zone: Option<&str>) {
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"}});
    claim["metadata"] = world.metadata(Some(namespace), name);
    claim["spec"]["storageClassName"] = json!(*world.random.pick(&["late", "late", "zonal", "regional"]));
    if zone.is_some() || world.random.chance(40) {
        bind(world, &mut claim, namespace, name, zone);
    }
    if zone.is_none() && world.draws(BrokenVolumes, 40) {
        match world.random.below(7) {
            0 => return,
            1 => claim["spec"]["storageClassName"] = json!("missing"),
            2 => claim["spec"]["storageClassName"] = json!("early"),
            3 => claim["spec"]["storageClassName"] = Value::Null,
            4 => claim["status"]["phase"] = json!("Lost"),
            5 => world.delete(&mut claim),
            _ => claim["spec"]["volumeName"] = json!("missing"),
        }
    }
    world.items.push(claim);
}

fn bind(world: &mut World, claim: &mut Value, namespace: &str, name: &str, zone: Option<&str>) {
    let volume = format!("pv-{namespace}-{name}");
    claim["spec"]["volumeName"] = json!(volume);
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["status"]["phase"] = json!("Bound");
    let zones = world.zones.clone();
    let zone = zone.map_or_else(|| world.random.pick(&zones).clone(), str::to_owned);
    let mut expressions = vec![json!({"key": ZONE, "operator": "In", "values": [zone]})];
    let mut spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": namespace, "name": name}});
    if world.random.chance(15) {
        spec["local"] = json!({"path": "/data"});
        expressions.push(json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["gone"]}));
    } else {
        spec["csi"] = json!({"driver": *world.random.pick(&DRIVERS), "volumeHandle": volume});
    }
    if world.random.chance(85) {
        spec["nodeAffinity"] =
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}});
    }
    let mut object =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "spec": spec, "status": {"phase": "Bound"}});
    object["metadata"] = world.metadata(None, &volume);
    world.items.push(object);
}

//! A workload of many sizes and rules, for measurements.

use serde_json::{Value, json};

/// Deployments of many sizes; a third is spread over zones, a third over nodes.
pub fn workload(pods: usize, deployments: usize) -> Value {
    let items: Vec<Value> = (0..deployments)
        .map(|number| {
            let name = format!("d{number}");
            let replicas = pods / deployments + usize::from(number < pods % deployments);
            let cpu = [100, 250, 500, 750, 1000, 2000][number % 6];
            let memory = [128, 512, 1024, 4096][number % 4];
            let key = match number % 3 {
                0 => Some("topology.kubernetes.io/zone"),
                1 => Some("kubernetes.io/hostname"),
                _ => None,
            };
            let spread: Vec<Value> = key
                .map(|key| {
                    json!({
                        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": name}},
                    })
                })
                .into_iter()
                .collect();
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {
                            "topologySpreadConstraints": spread,
                            "containers": [{
                                "name": "main", "image": "registry.k8s.io/pause:3.10",
                                "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
                            }],
                        },
                    },
                },
            })
        })
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

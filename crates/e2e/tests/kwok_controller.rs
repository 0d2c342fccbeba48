//! The real KWOK controller keeps the nodes that our provider makes.

use std::time::Duration;

use anyhow::Result;
use e2e::{ControlPlane, poll};
use kwok::machine::Machine;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_mins(1);

/// The Node of a claim as it is launched.
fn node() -> Result<(Machine, Value)> {
    let claim = serde_json::from_value(json!({
        "metadata": {"name": "pool-x", "uid": "1", "labels": {"karpenter.sh/nodepool": "pool"}},
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]},
            ],
            "resources": {"requests": {"cpu": "1", "pods": "1"}},
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    }))?;
    let sets = api::labels::LabelSets::for_provider(api::provider::Provider::Kwok);
    let types = cluster::instance_types::kwok::built_in();
    let mut wanted = kwok::choose::wanted(&claim, &sets)?;
    let choice = kwok::choose::choose(&claim, &mut wanted, &types, &mut rand_pcg::Pcg64Mcg::new(1))?;
    let machine = Machine::launched("kwok-pool-x-1".to_owned(), &claim, &wanted, &choice);
    let mut node = machine.node();
    node["apiVersion"] = "v1".into();
    node["kind"] = "Node".into();
    Ok((machine, node))
}

#[test]
fn a_node_of_ours_becomes_ready_and_pods_run_on_it() -> Result<()> {
    let plane = ControlPlane::builder().with_kwok().start()?;
    let (machine, node) = node()?;
    plane.kubectl_with_input(&["create", "-f", "-"], &node.to_string())?;
    let get = |kind: &str, name: &str| -> Result<Value> {
        Ok(serde_json::from_str(&plane.kubectl(&["get", kind, name, "-o", "json"])?)?)
    };
    let ready = poll("the node to be ready", LIMIT, || {
        let node = get("node", &machine.name)?;
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
        Ok(ready.then_some(node))
    })?;
    // It keeps what the provider says of the machine, and the taint until the claim is found.
    assert_eq!(ready["status"]["capacity"], node["status"]["capacity"]);
    assert_eq!(ready["status"]["allocatable"], node["status"]["allocatable"]);
    let kept = node["metadata"]["labels"].as_object().into_iter().flatten();
    for (key, value) in kept {
        assert_eq!(&ready["metadata"]["labels"][key], value, "{key}");
    }
    assert_eq!(ready["spec"]["providerID"], node["spec"]["providerID"]);
    let taints = ready["spec"]["taints"].as_array().cloned().unwrap_or_default();
    assert!(taints.iter().any(|taint| taint["key"] == "karpenter.sh/unregistered"), "{taints:?}");

    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs"},
        "spec": {"nodeName": machine.name, "containers": [{"name": "main", "image": "main"}]},
    });
    plane.kubectl_with_input(&["create", "-f", "-"], &pod.to_string())?;
    poll(
        "the pod to run",
        LIMIT,
        || Ok((get("pod", "runs")?["status"]["phase"] == "Running").then_some(())),
    )?;
    plane.kubectl(&["delete", "pod", "runs", "--timeout=30s"])?;
    Ok(())
}

//! The whole Node.

use api::labels::LabelSets;
use api::provider::Provider;
use cluster::instance_types::kwok;

use super::*;
use crate::choose::wanted;

fn claim() -> NodeClaim {
    let json = json!({
        "metadata": {
            "name": "default-x7k2p", "uid": "1",
            "labels": {
                "karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "default", "team": "a",
            },
            "annotations": {"karpenter.sh/nodepool-hash": "42", "example.com/note": "kept"},
        },
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In",
                 "values": ["c-2x-amd64-linux", "s-2x-amd64-linux"]},
                {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
                {"key": "example.com/tier", "operator": "In", "values": ["gold"]},
                {"key": "example.com/other", "operator": "Exists"},
            ],
            "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"}},
            "taints": [{"key": "later", "effect": "NoSchedule"}],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    });
    serde_json::from_value(json).unwrap()
}

fn machine() -> Machine {
    let (claim, sets) = (claim(), LabelSets::for_provider(Provider::Kwok));
    let types = kwok::built_in();
    let instance_type = types.iter().find(|each| each.name == "c-2x-amd64-linux").unwrap();
    let choice = Choice { instance_type, offering: &instance_type.offerings[2] };
    Machine::launched("kwok-default-x7k2p-n".to_owned(), &claim, &wanted(&claim, &sets).unwrap(), &choice)
}

#[test]
fn a_node_has_the_labels_of_claim_type_and_offering_and_the_capacity_of_its_type() {
    let expected = json!({
        "metadata": {
            "name": "kwok-default-x7k2p-n",
            "labels": {
                "eks-node-viewer/instance-price": "0.038006",
                "example.com/tier": "gold",
                "karpenter.kwok.sh/instance-cpu": "2",
                "karpenter.kwok.sh/instance-family": "c",
                "karpenter.kwok.sh/instance-memory": "4Gi",
                "karpenter.kwok.sh/instance-size": "2",
                "karpenter.kwok.sh/kwoknodeclass": "default",
                "karpenter.sh/capacity-type": "spot",
                "karpenter.sh/nodepool": "default",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": "default-x7k2p",
                "kubernetes.io/os": "linux",
                "kwok-partition": "a",
                "kwok.x-k8s.io/node": "fake",
                "node.kubernetes.io/instance-type": "c-2x-amd64-linux",
                "team": "a",
                "topology.kubernetes.io/zone": "test-zone-b",
            },
            "annotations": {
                "example.com/note": "kept",
                "karpenter.sh/nodepool-hash": "42",
                "kwok.x-k8s.io/node": "fake",
            },
        },
        "spec": {
            "providerID": "kwok://kwok-default-x7k2p-n",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        },
        "status": {
            "capacity": {
                "cpu": "2", "memory": "4Gi", "pods": "32", "ephemeral-storage": "20Gi", "example.com/gpu": "1",
            },
            "allocatable": {
                "cpu": "1900m", "memory": "4086Mi", "pods": "32", "ephemeral-storage": "20Gi", "example.com/gpu": "1",
            },
            "phase": "Pending",
        },
    });
    assert_eq!(machine().node(), expected);
}

#[test]
fn a_node_has_what_its_offering_says_and_what_was_planned_for() {
    let (claim, sets) = (claim(), LabelSets::for_provider(Provider::Kwok));
    let mut instance_type =
        kwok::built_in().into_iter().find(|each| each.name == "c-2x-amd64-linux").unwrap();
    let quantity = |text: &str| -> units::Quantity { text.parse().unwrap() };
    instance_type.offerings[2].capacity_override = Some([("cpu", quantity("3"))].into_iter().collect());
    let choice = Choice { instance_type: &instance_type, offering: &instance_type.offerings[2] };
    let machine = Machine::launched("n".to_owned(), &claim, &wanted(&claim, &sets).unwrap(), &choice);
    let told = |list: &ResourceList| ["cpu", "memory", "example.com/gpu"].map(|name| list[name].to_string());
    assert_eq!(told(&machine.capacity), ["3", "4Gi", "1"]);
    assert_eq!(told(&machine.allocatable), ["2900m", "4086Mi", "1"]);
}

#[test]
fn a_claim_that_requests_nothing_has_the_capacity_of_its_type() {
    let (mut claim, sets) = (claim(), LabelSets::for_provider(Provider::Kwok));
    claim.spec.resources.requests.clear();
    let types = kwok::built_in();
    let instance_type = types.iter().find(|each| each.name == "m-2x-amd64-linux").unwrap();
    let choice = Choice { instance_type, offering: &instance_type.offerings[0] };
    let machine = Machine::launched("n".to_owned(), &claim, &wanted(&claim, &sets).unwrap(), &choice);
    let status = machine.instance().status.unwrap();
    let capacity = serde_json::to_value(&status.capacity).unwrap();
    assert_eq!(capacity, json!({"cpu": "2", "memory": "16Gi", "pods": "32", "ephemeral-storage": "20Gi"}));
}

#[test]
fn the_instance_and_that_of_its_node_say_the_same() {
    let machine = machine();
    let node: Node = serde_json::from_value(machine.node()).unwrap();
    let (launched, mut seen) = (machine.instance(), instance(&node));
    // Notes of others are not kept of nodes; the claim has them.
    let kept = launched.metadata.annotations.as_ref().unwrap()["example.com/note"].clone();
    seen.metadata.annotations.as_mut().unwrap().insert("example.com/note".to_owned(), kept);
    assert_eq!(launched, seen);
    let status = launched.status.unwrap();
    assert_eq!(node_name(&status.provider_id), Some("kwok-default-x7k2p-n"));
    assert_eq!(node_name("aws:///zone/i-1"), None);
}

#[test]
fn the_node_of_an_interrupted_launch_is_the_one_that_was_launched() {
    let (machine, mut claim) = (machine(), claim());
    // What the core writes down after a launch.
    let instance = machine.instance();
    claim.metadata.labels.as_mut().unwrap().extend(instance.metadata.labels.unwrap());
    claim.metadata.annotations.as_mut().unwrap().extend(instance.metadata.annotations.unwrap());
    claim.status = instance.status;
    assert_eq!(Machine::known(machine.name.clone(), &claim), machine);
}

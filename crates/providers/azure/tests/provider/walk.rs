//! The walk-through of the README, in virtual time.

use std::time::Duration;

use armdouble::Kind;
use http::Method;
use serde_json::json;

use crate::play::{CLAIMS, Play, Stage};

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general-purpose
spec:
  template:
    metadata:
      labels: {kubernetes.azure.com/ebpf-dataplane: cilium}
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
      startupTaints: [{key: node.cilium.io/agent-not-ready, effect: NoExecute, value: 'true'}]
      expireAfter: Never
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: karpenter.azure.com/sku-family, operator: In, values: [D]}
  limits: {cpu: 100}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}
";

const INFLATE: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: inflate
          image: mcr.microsoft.com/oss/kubernetes/pause:3.6
          resources: {requests: {cpu: 1}}
";

// azure.md 23: README walk-through
#[test]
fn inflate_to_five_gets_nodes_and_deleting_it_leaves_nothing() {
    let mut play = Play::with(Stage { alive: true, ..Stage::default() });
    play.world.apply(POOL);
    play.apply_class("default", &json!({"imageFamily": "Ubuntu"}));
    play.world.apply(INFLATE);
    play.pass(30);
    assert_eq!(play.condition("default", "Ready").0, "True");
    assert_eq!(play.double.names(Kind::VirtualMachine), [""; 0]);
    let path = "/apis/apps/v1/namespaces/default/deployments/inflate";
    play.world.patch(path, &json!({"spec": {"replicas": 5}}));
    // The agent of the network says when it is there.
    let end = play.world.now() + Duration::from_mins(10);
    while play.world.running() < 5 {
        assert!(
            play.world.now() < end,
            "{}\n{:?}",
            play.world.describe(),
            play.double.names(Kind::VirtualMachine)
        );
        play.pass(5);
        for node in play.world.list("/api/v1/nodes") {
            let name = node["metadata"]["name"].as_str().unwrap();
            let taints: Vec<_> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let left: Vec<_> =
                taints.iter().filter(|each| each["key"] != "node.cilium.io/agent-not-ready").collect();
            if left.len() < taints.len() {
                play.world.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": left}}));
            }
        }
    }
    let machines = play.double.resources(Kind::VirtualMachine);
    assert!(!machines.is_empty());
    for machine in &machines {
        assert_eq!(machine["tags"]["karpenter.sh_nodepool"], "general-purpose");
        assert_eq!(machine["tags"]["compute.aks.billing"], "linux");
        assert_eq!(machine["properties"]["priority"], "Regular");
        let size = machine["properties"]["hardwareProfile"]["vmSize"].as_str().unwrap();
        assert!(size.starts_with("Standard_D"), "{size}");
    }
    assert_eq!(play.double.names(Kind::NetworkInterface).len(), machines.len());
    assert_eq!(play.double.names(Kind::Extension).len(), machines.len());
    // No machine was made for nothing.
    assert_eq!(play.asked(Method::PUT, Kind::VirtualMachine).len(), machines.len());
    play.world.delete(path);
    play.world.run_until("everything is gone", Duration::from_mins(20), |world| {
        world.list(CLAIMS).is_empty() && world.list("/api/v1/nodes").is_empty()
    });
    play.pass(60);
    for kind in [Kind::VirtualMachine, Kind::NetworkInterface, Kind::Extension] {
        assert_eq!(play.double.names(kind), [""; 0], "{kind:?}");
    }
}

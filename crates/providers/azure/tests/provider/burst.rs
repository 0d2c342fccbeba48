//! Many nodes at once, while Azure has had enough of us now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use armdouble::{Kind, Throttle};
use cloud::CloudProvider as _;
use futures::StreamExt as _;
use http::Method;
use serde_json::json;

use crate::play::{Play, Stage, claim, pool};

/// How many nodes a burst has. `BURST=1000` makes it as large as the issue asks for; everything else grows with it, so
/// that each window of Azure is as full as it is then.
fn burst() -> usize {
    const NODES: usize = 100;
    std::env::var("BURST").ok().and_then(|text| text.parse().ok()).unwrap_or(NODES)
}

/// What the issue asks for: all created, no duplicate, and how many calls a node takes.
#[test]
fn nodes_of_a_burst_come_once_each_though_azure_throttles() {
    let nodes = burst();
    // Of a thousand launches the core has a hundred under way at the same time.
    let at_once = nodes.div_ceil(10);
    let limit = |of_a_thousand: usize| u32::try_from((nodes * of_a_thousand).div_ceil(1000)).unwrap();
    let mut play = Play::new();
    play.ready_class(json!({}));
    let window = Duration::from_secs(30);
    play.double.throttle(Throttle::writes(Kind::VirtualMachine, limit(200), window));
    play.double.throttle(Throttle::writes(Kind::NetworkInterface, limit(300), window));
    play.double.throttle(Throttle::reads(Kind::VirtualMachine, limit(300), window));
    play.double.throttle(Throttle::reads(Kind::Operation, limit(1000), window));
    play.double.forget_requests();
    let claims: Vec<api::nodeclaim::NodeClaim> = (0..nodes)
        .map(|number| {
            let requirements = [("karpenter.sh/capacity-type", "In", &["on-demand"][..])];
            serde_json::from_value(claim(&format!("pool-{number:04}"), &requirements)).unwrap()
        })
        .collect();
    let azure = play.azure.clone();
    let results: Vec<_> = play.world.block_on(async {
        let all = claims.iter().map(|claim| {
            let azure = &azure;
            async move { (claim, azure.create(claim).await) }
        });
        futures::stream::iter(all).buffer_unordered(at_once).collect().await
    });
    // What was refused for now is tried again, as the core does.
    let mut left: Vec<_> = results.into_iter().filter(|(_, result)| result.is_err()).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        rounds += 1;
        assert!(rounds < 20, "{} are left, such as {:?}", left.len(), left[0].1);
        play.pass(10);
        let again: Vec<_> = play.world.block_on(async {
            let all = left.iter().map(|(claim, _)| {
                let (claim, azure) = (*claim, &azure);
                async move { (claim, azure.create(claim).await) }
            });
            futures::stream::iter(all).buffer_unordered(at_once).collect().await
        });
        left = again.into_iter().filter(|(_, result)| result.is_err()).collect();
    }
    play.pass(600);
    let names: BTreeSet<String> = play.double.names(Kind::VirtualMachine).into_iter().collect();
    assert_eq!(names.len(), nodes);
    assert_eq!(play.double.names(Kind::NetworkInterface).len(), nodes);
    assert_eq!(play.double.names(Kind::Extension).len(), nodes);
    let accepted = |kind: Kind, method: Method| {
        let all = play.double.requests_of(&method, kind).into_iter();
        all.filter(|each| each.status.is_some_and(|status| status < 300)).count()
    };
    assert_eq!(accepted(Kind::VirtualMachine, Method::PUT), nodes, "no machine was made twice");
    assert_eq!(accepted(Kind::NetworkInterface, Method::PUT), nodes);
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    let mut refused = 0;
    for request in play.double.requests() {
        *calls.entry(format!("{} {:?}", request.method, request.kind)).or_default() += 1;
        refused += usize::from(request.status == Some(429));
    }
    let all: usize = calls.values().sum();
    println!("{all} calls for {nodes} nodes, {refused} of them refused, {rounds} tries again: {calls:#?}");
    assert!(refused > 0, "nothing was throttled");
    // PUT NIC, GET VM, PUT VM, PUT extension, and looks at how far each is.
    assert!(all < nodes * 30, "{calls:#?}");
}

const PODS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst, namespace: default}
spec:
  replicas: 50
  selector: {matchLabels: {app: burst}}
  template:
    metadata: {labels: {app: burst}}
    spec:
      containers: [{name: a, image: a, resources: {requests: {cpu: 1500m}}}]
";

// azure.md 25.4: 50 pods of 1.5 vCPU, and 50 cores of the cheaper family
#[test]
fn a_family_with_little_quota_is_used_up_and_the_rest_goes_elsewhere() {
    let mut play = Play::with(Stage { alive: true, ..Stage::default() });
    play.double.change(|world| world.quota.limit("standardDSv3Family", 50));
    // Until usages are read again.
    play.pass(601);
    let requirements = json!([
        {"key": "karpenter.azure.com/sku-series", "operator": "In", "values": ["Ds_v3", "D_v5"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]);
    play.world.apply(&pool("pool", &requirements).to_string());
    play.apply_class("default", &json!({}));
    play.pass(10);
    play.world.apply(PODS);
    play.world.run_until("all pods run", Duration::from_mins(30), |world| world.running() == 50);
    let requests = play.double.requests_of(&Method::PUT, Kind::VirtualMachine);
    let refused = requests.iter().filter(|each| each.status.is_none_or(|status| status >= 400)).count();
    assert_eq!(refused, 0, "nothing is asked for that would be refused");
    let (used, others) = play
        .double
        .change(|world| (world.quota.used("standardDSv3Family"), world.quota.used("standardDv5Family")));
    assert!((40..=50).contains(&used) && others > 0, "{used} {others}");
}

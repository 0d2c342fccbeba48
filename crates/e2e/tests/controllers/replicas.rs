//! Two replicas: one leads, and the other one takes over whatever happens to it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{ControlPlane, Process, poll};
use serde_json::json;
use testkit::scenarios::manifests::{deployment_with, manifest, node_class, pool, with};
use testkit::stage::{CLAIMS, Stage};

use crate::cluster::{Cluster, Controller, NAMESPACE, assert_paired, is_long, moment, name};
use crate::real::Machines;

/// How a leader ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Asked,
}

impl End {
    /// Within what time the other replica must act; on a machine with nothing else to do it is less.
    fn limit(self) -> Duration {
        match self {
            Self::Killed => Duration::from_secs(40),
            Self::Asked => Duration::from_secs(15),
        }
    }
}

fn leads(replica: &Process) -> Result<bool> {
    Ok(replica.log()?.contains("successfully acquired lease"))
}

fn start(cluster: &Cluster, log: &str) -> Result<Process> {
    cluster.run(Controller::Ours, log, &[])
}

/// The names of all claims.
fn claims(stage: &dyn Stage) -> BTreeSet<String> {
    stage.list(CLAIMS).iter().map(|claim| name(claim).to_owned()).collect()
}

/// Ends the leader as soon as it has begun to launch nodes for more pods, and waits until the other replica
/// launches some.
#[expect(clippy::print_stdout, reason = "people want to know how long it took")]
fn fail_over(cluster: &Cluster, mut leader: Process, standby: &Process, end: End, pods: usize) -> Result<()> {
    let stage: &dyn Stage = cluster;
    let before = claims(stage);
    // Half of them while it leads, and the others when nobody does.
    stage.scale("inflate", before.len().midpoint(pods));
    poll("the leader to begin", Duration::from_mins(1), || Ok((claims(stage) != before).then_some(())))?;
    let start = moment();
    match end {
        End::Killed => leader.stop(),
        End::Asked => leader.terminate()?,
    }
    let begun = claims(stage).len();
    stage.scale("inflate", pods);
    poll("the other replica to lead", end.limit(), || Ok(leads(standby)?.then_some(())))?;
    let led = start.elapsed();
    poll("the other replica to act", end.limit(), || {
        Ok(standby.log()?.contains("launched nodeclaim").then_some(()))
    })?;
    let acted = start.elapsed();
    println!("{end:?} with {begun} claims: another one leads after {led:.1?} and acts after {acted:.1?}");
    if let End::Asked = end {
        let status = poll("the leader to end", Duration::from_secs(10), || leader.exit_status())?;
        assert!(status.success(), "{status}");
    }
    Ok(())
}

#[test]
fn the_other_replica_takes_over_in_the_middle_of_a_scale_up() -> Result<()> {
    let pods = if is_long() { 200 } else { 40 };
    let mut cluster = Cluster::start(ControlPlane::builder(), Machines::Simulator)?;
    let selector = json!({"matchLabels": {"app": "inflate"}});
    let apart = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
    let spec =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}});
    let calm = with(pool("default"), &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    cluster.apply(&manifest(&[calm, node_class(), deployment_with("inflate", 0, "500m", &spec)]));

    let first = start(&cluster, "first")?;
    poll("the first replica to lead", Duration::from_secs(40), || Ok(leads(&first)?.then_some(())))?;
    let second = start(&cluster, "second")?;
    // It reads the cluster while it waits.
    cluster.pass(Duration::from_secs(5));
    assert!(!leads(&second)?, "two replicas lead");
    fail_over(&cluster, first, &second, End::Killed, pods / 2)?;
    cluster.stage().until_running("inflate", pods / 2);

    let third = start(&cluster, "third")?;
    cluster.pass(Duration::from_secs(5));
    assert!(!leads(&third)?, "two replicas lead");
    fail_over(&cluster, second, &third, End::Asked, pods)?;
    let stage = cluster.stage();
    stage.until_running("inflate", pods);
    assert_eq!(stage.list(CLAIMS).len(), pods, "{}", stage.describe());
    assert_paired(stage);

    let lease = stage.get(&format!(
        "/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/karpenter-leader-election"
    ));
    let transitions = lease.context("there is a lease")?["spec"]["leaseTransitions"].clone();
    assert_eq!(transitions, 2, "leaders changed twice");
    Ok(())
}

//! The controllers on a real API server, with a real scheduler, beside a cluster with the real controllers.
//!
//! Both clusters have the simulated kubelets, so that pods run; both get the same manifests, and afterwards
//! users must see the same.

#[path = "real/cluster.rs"]
mod cluster;
#[path = "real/normal.rs"]
mod normal;

use std::time::Duration;

use cluster::{Cluster, pair};
use normal::{differences, normal};

const WAIT: Duration = Duration::from_secs(40);

/// Applies a manifest to both clusters, waits until `done` holds on each, and compares what `kinds` look like.
fn compare(namespace: &str, manifests: &[&str], done: &[&[&str]], kinds: &str) {
    let (ours, theirs) = pair();
    let run = |cluster: &'static Cluster| {
        cluster.kubectl(&["create", "namespace", namespace]);
        for manifest in manifests {
            cluster.apply(namespace, manifest);
            for condition in done {
                cluster.wait(namespace, condition, WAIT);
            }
        }
        cluster.settled(namespace, kinds, WAIT)
    };
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(|| run(ours));
        let theirs = scope.spawn(|| run(theirs));
        (ours.join().expect("our cluster"), theirs.join().expect("their cluster"))
    });
    let (ours, theirs) = (normal(&ours), normal(&theirs));
    let name = |object: &serde_json::Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    let names = |objects: &[serde_json::Value]| objects.iter().map(name).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs), "{namespace}: other objects");
    let mut lines = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        differences(&name(ours), ours, theirs, &mut lines);
    }
    assert!(lines.is_empty(), "{namespace}: what users see differs:\n{}", lines.join("\n"));
}

#[test]
fn a_deployment_rolls_out_as_it_does_with_the_real_controllers() {
    let manifest = |image: &str| {
        format!(
            "
            apiVersion: apps/v1
            kind: Deployment
            metadata: {{name: web, annotations: {{team: a}}}}
            spec:
              replicas: 3
              selector: {{matchLabels: {{app: web}}}}
              template:
                metadata: {{labels: {{app: web}}}}
                spec:
                  containers: [{{name: main, image: '{image}'}}]
            "
        )
    };
    let rollout: &[&str] = &["rollout", "status", "deployment/web", "--timeout=30s"];
    compare(
        "rollout",
        &[&manifest("one"), &manifest("two"), &manifest("one")],
        &[rollout],
        "deployment,rs,pod",
    );
}

#[test]
fn a_recreated_deployment_ends_as_it_does_with_the_real_controllers() {
    let manifest = |image: &str| {
        format!(
            "
            apiVersion: apps/v1
            kind: Deployment
            metadata: {{name: web}}
            spec:
              replicas: 2
              strategy: {{type: Recreate}}
              selector: {{matchLabels: {{app: web}}}}
              template:
                metadata: {{labels: {{app: web}}}}
                spec:
                  terminationGracePeriodSeconds: 1
                  containers: [{{name: main, image: '{image}'}}]
            "
        )
    };
    let rollout: &[&str] = &["rollout", "status", "deployment/web", "--timeout=30s"];
    compare("recreate", &[&manifest("one"), &manifest("two")], &[rollout], "deployment,rs,pod");
}

#[test]
fn a_stateful_set_with_claims_ends_as_it_does_with_the_real_controllers() {
    let manifest = |image: &str| {
        format!(
            "
            apiVersion: apps/v1
            kind: StatefulSet
            metadata: {{name: db}}
            spec:
              replicas: 2
              serviceName: db
              selector: {{matchLabels: {{app: db}}}}
              template:
                metadata: {{labels: {{app: db}}}}
                spec:
                  terminationGracePeriodSeconds: 1
                  containers: [{{name: main, image: '{image}'}}]
            "
        )
    };
    let rollout: &[&str] = &["rollout", "status", "statefulset/db", "--timeout=30s"];
    compare("stateful", &[&manifest("one"), &manifest("two")], &[rollout], "sts,pod,controllerrevision");
}

#[test]
fn a_daemon_set_ends_as_it_does_with_the_real_controllers() {
    let manifest = |image: &str| {
        format!(
            "
            apiVersion: apps/v1
            kind: DaemonSet
            metadata: {{name: agent}}
            spec:
              selector: {{matchLabels: {{app: agent}}}}
              updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 2}}}}
              template:
                metadata: {{labels: {{app: agent}}}}
                spec:
                  terminationGracePeriodSeconds: 1
                  containers: [{{name: main, image: '{image}'}}]
            "
        )
    };
    let rollout: &[&str] = &["rollout", "status", "daemonset/agent", "--timeout=30s"];
    compare("daemon", &[&manifest("one"), &manifest("two")], &[rollout], "ds,pod,controllerrevision");
}

#[test]
fn jobs_end_as_they_do_with_the_real_controllers() {
    let manifest = "
        apiVersion: batch/v1
        kind: Job
        metadata: {name: sums}
        spec:
          completions: 3
          parallelism: 2
          completionMode: Indexed
          template:
            metadata: {annotations: {simulate.karpenter.sh/complete-after: 1s}}
            spec:
              restartPolicy: Never
              containers: [{name: main, image: one}]
        ";
    let failing = "
        apiVersion: batch/v1
        kind: Job
        metadata: {name: broken}
        spec:
          backoffLimit: 0
          template:
            metadata: {annotations: {simulate.karpenter.sh/fail: exit}}
            spec:
              restartPolicy: Never
              containers: [{name: main, image: one}]
        ";
    compare(
        "job",
        &[manifest],
        &[&["wait", "job/sums", "--for=condition=Complete", "--timeout=30s"]],
        "job,pod",
    );
    compare(
        "job-fails",
        &[failing],
        &[&["wait", "job/broken", "--for=condition=Failed", "--timeout=30s"]],
        "job,pod",
    );
}

#[test]
fn budgets_count_as_they_do_with_the_real_controllers() {
    let manifest = "
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 4
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: main, image: one}]}
        ";
    let budgets = "
        apiVersion: v1
        kind: List
        items:
        - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: percent},
           spec: {minAvailable: 60%, selector: {matchLabels: {app: web}}}}
        - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: most},
           spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}
        - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: least},
           spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}
        - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: none},
           spec: {minAvailable: 1, selector: {matchLabels: {app: other}}}}
        ";
    let rollout: &[&str] = &["rollout", "status", "deployment/web", "--timeout=30s"];
    compare("budget", &[manifest, budgets], &[rollout], "pdb");
}

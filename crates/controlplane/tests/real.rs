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
                cluster.wait(namespace, condition);
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
fn a_stateful_set_ends_as_it_does_with_the_real_controllers() {
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

#[test]
fn a_stateful_set_gets_volumes_in_the_zones_of_its_pods_and_everything_goes_with_its_namespace() {
    let (ours, _) = pair();
    let namespace = "volumes";
    ours.kubectl(&["create", "namespace", namespace]);
    let class = "
        apiVersion: storage.k8s.io/v1
        kind: StorageClass
        metadata: {name: simulated}
        provisioner: simulated.example.com
        volumeBindingMode: WaitForFirstConsumer
        ";
    let set = "
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: db}
        spec:
          replicas: 2
          serviceName: db
          podManagementPolicy: Parallel
          selector: {matchLabels: {app: db}}
          template:
            metadata: {labels: {app: db}}
            spec:
              containers: [{name: main, image: one, volumeMounts: [{name: data, mountPath: /data}]}]
          volumeClaimTemplates:
          - metadata: {name: data}
            spec: {storageClassName: simulated, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
        ";
    ours.apply(namespace, class);
    ours.apply(namespace, set);
    ours.wait(namespace, &["rollout", "status", "statefulset/db", "--timeout=30s"]);
    ours.wait(namespace, &["wait", "pvc", "--all", "--for=jsonpath={.status.phase}=Bound", "--timeout=10s"]);
    let zones = ours.kubectl(&["get", "pv", "-o", "jsonpath={.items[*].spec.nodeAffinity}"]);
    assert_eq!(zones.matches("zone-").count(), 2, "{zones}");
    ours.kubectl(&["delete", "namespace", namespace, "--timeout=60s"]);
    ours.wait(namespace, &["wait", "pv", "--all", "--for=delete", "--timeout=30s"]);
}

#[test]
fn what_a_deployment_owns_goes_with_it_in_the_foreground_and_in_the_background() {
    let (ours, _) = pair();
    let namespace = "owners";
    ours.kubectl(&["create", "namespace", namespace]);
    for cascade in ["--cascade=background", "--cascade=foreground"] {
        ours.kubectl(&["-n", namespace, "create", "deployment", "web", "--image=one", "--replicas=2"]);
        ours.wait(namespace, &["rollout", "status", "deployment/web", "--timeout=30s"]);
        ours.kubectl(&["-n", namespace, "delete", "deployment", "web", cascade, "--timeout=30s"]);
        ours.wait(namespace, &["wait", "rs,pod", "--all", "--for=delete", "--timeout=30s"]);
    }
}

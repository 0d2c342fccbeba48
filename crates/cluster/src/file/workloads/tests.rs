//! Tests of pods that workloads of files would have.

use expect_test::{Expect, expect};

use super::*;
use crate::file;

/// What is made for the workloads of some YAML documents: pods with their claims for volumes, then what is said.
#[track_caller]
fn check(documents: &[&str], expected: &Expect) {
    let objects = completed(documents);
    expected.assert_eq(&objects.1);
}

fn completed(documents: &[&str]) -> (Objects, String) {
    let text = documents.join("\n---\n");
    let contents = file::parse("cluster", text.as_bytes()).unwrap();
    assert_eq!(contents.errors, []);
    let mut objects = contents.objects;
    let before = objects.pods.len();
    let Completed { made, refused } = complete(&mut objects);
    let pods = objects.pods[before..].iter().map(|pod| {
        let volumes = pod.spec.volumes.iter().map(|volume| {
            let claim = volume.persistent_volume_claim.as_ref().unwrap();
            format!(" {}={}", volume.name, claim.claim_name)
        });
        format!("{}/{}{}", pod.metadata.namespace(), pod.metadata.name, volumes.collect::<String>())
    });
    let made = made.into_iter().map(|(workload, count)| format!("{workload}: {count}"));
    let text = pods.chain(made).chain(refused).collect::<Vec<_>>().join("\n");
    (objects, text)
}

const TEMPLATE: &str =
    "template: {metadata: {labels: {app: web}}, spec: {containers: [{resources: {requests: {cpu: 1}}}]}}";

fn workload(kind: &str, name: &str, spec: &str) -> String {
    let version = if kind.ends_with("Job") { "batch/v1" } else { "apps/v1" };
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}")
}

fn owned_pod(name: &str, kind: &str, owner: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: default\n  labels: {{pod-template-hash: h}}\n  \
         ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, controller: true}}]\n{more}"
    )
}

#[test]
fn a_manifest_stands_for_its_pods() {
    check(
        &[
            &workload("Deployment", "web", &format!("replicas: 2, {TEMPLATE}")),
            &workload("ReplicaSet", "set", TEMPLATE),
            &workload("Job", "once", &format!("parallelism: 3, completions: 2, {TEMPLATE}")),
            &workload(
                "CronJob",
                "nightly",
                &format!("schedule: '0 0 * * *', jobTemplate: {{spec: {{{TEMPLATE}}}}}"),
            ),
            &format!(
                "apiVersion: v1\nkind: ReplicationController\nmetadata: {{name: rc}}\nspec: {{{TEMPLATE}}}"
            ),
        ],
        &expect![[r"
            default/web-1
            default/web-2
            default/set-1
            default/rc-1
            default/once-1
            default/once-2
            default/nightly-1
            Deployment default/web: 2
            ReplicaSet default/set: 1
            ReplicationController default/rc: 1
            Job default/once: 2
            CronJob default/nightly: 1"]],
    );
}

#[test]
fn pods_that_the_files_have_are_not_made_again() {
    let web = workload("Deployment", "web", &format!("replicas: 3, {TEMPLATE}"));
    let set = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-h, namespace: default, ownerReferences: \
               [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true}]}\nspec: {replicas: 3}";
    let pods = ["web-h-a", "web-h-b"].map(|name| owned_pod(name, "ReplicaSet", "web-h", ""));
    // With the ReplicaSet between them, and without it.
    for documents in [&[&*web, set, &pods[0], &pods[1]][..], &[&*web, &pods[0], &pods[1]]] {
        check(
            documents,
            &expect![[r"
                default/web-1
                Deployment default/web: 1"]],
        );
    }
    let gone = owned_pod("web-h-c", "ReplicaSet", "web-h", "status: {phase: Failed}");
    check(
        &[&web, set, &pods[0], &pods[1], &gone],
        &expect![[r"
            default/web-1
            Deployment default/web: 1"]],
    );
    check(&[&web, set, &pods[0], &pods[1], &owned_pod("web-h-d", "ReplicaSet", "web-h", "")], &expect![""]);
}

#[test]
fn workloads_that_need_no_pods_get_none() {
    check(
        &[
            &workload("Deployment", "idle", &format!("replicas: 0, {TEMPLATE}")),
            &workload("Job", "paused", &format!("suspend: true, {TEMPLATE}")),
            &(workload("Job", "done", &format!("completions: 2, {TEMPLATE}")) + "\nstatus: {succeeded: 2}"),
            &(workload("Job", "failed", TEMPLATE)
                + "\nstatus: {conditions: [{type: Failed, status: 'True'}]}"),
            &workload("CronJob", "off", &format!("suspend: true, jobTemplate: {{spec: {{{TEMPLATE}}}}}")),
            // Its Jobs are in the cluster that it was read from.
            &workload("CronJob", "known, uid: u", &format!("jobTemplate: {{spec: {{{TEMPLATE}}}}}")),
            // Pods of DaemonSets come with nodes.
            &workload("DaemonSet", "agent", TEMPLATE),
        ],
        &expect![""],
    );
}

#[test]
fn pods_of_a_stateful_set_have_numbers_and_volumes_of_their_own() {
    let set = workload(
        "StatefulSet",
        "db",
        &format!(
            "replicas: 2, ordinals: {{start: 1}}, volumeClaimTemplates: [{{metadata: {{name: data}}, spec: \
             {{storageClassName: fast}}}}], {TEMPLATE}"
        ),
    );
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-db-1}";
    let (objects, text) = completed(&[&set, claim]);
    expect![[r"
        default/db-1 data=data-db-1
        default/db-2 data=data-db-2
        StatefulSet default/db: 2"]]
    .assert_eq(&text);
    let claims = objects.persistent_volume_claims.iter();
    let claims: Vec<_> = claims.map(|it| (&*it.metadata.name, &*it.spec.storage_class_name)).collect();
    assert_eq!(claims, [("data-db-1", ""), ("data-db-2", "fast")]);
    check(
        &[&set, &owned_pod("db-1", "StatefulSet", "db", "")],
        &expect![[r"
            default/db-2 data=data-db-2
            StatefulSet default/db: 1"]],
    );
}

#[test]
fn names_of_pods_are_never_given_twice() {
    let taken = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1}";
    check(
        &[&workload("Deployment", "web", TEMPLATE), &workload("Job", "web", TEMPLATE), taken],
        &expect![[r"
            default/web-2
            default/web-3
            Deployment default/web: 1
            Job default/web: 1"]],
    );
}

#[test]
fn what_cannot_be_made_is_refused() {
    check(
        &[
            &workload("Deployment", "empty", "replicas: 1"),
            &workload("ReplicaSet", "shapeless", "replicas: 1"),
            &workload("Deployment", "many", &format!("replicas: 2000000000, {TEMPLATE}")),
            &workload("StatefulSet", "more", &format!("replicas: 2000000000, {TEMPLATE}")),
        ],
        &expect![[r"
            Deployment default/empty: spec.template.spec.containers: empty; expected at least one container
            Deployment default/many: it has too many pods; plans are made for at most 100000 in all
            ReplicaSet default/shapeless: spec.template.spec.containers: empty; expected at least one container
            StatefulSet default/more: it has too many pods; plans are made for at most 100000 in all"]],
    );
}

#[test]
fn the_scheduler_finds_the_selector_of_pods_that_were_made() {
    let deployment =
        workload("Deployment", "web", &format!("selector: {{matchLabels: {{app: web}}}}, {TEMPLATE}"));
    let (objects, _) = completed(&[&deployment]);
    let owner = objects.pods[0].metadata.controller().unwrap();
    let set = objects.replica_sets.iter().find(|set| set.metadata.name == owner.name).unwrap();
    assert_eq!(set.spec.selector.as_ref().unwrap().match_labels.text("app"), "web");
    assert_eq!(objects.pods[0].metadata.labels.text("app"), "web");
}

//! Decisions about claims.

use super::*;
use crate::testing::{World, at};

fn world(mode: &str) -> World {
    World::of(&[
        "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}}",
        "{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}}",
        &format!(
            "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: fast}}, provisioner: p, volumeBindingMode: {mode}}}"
        ),
        "
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: c, namespace: x, uid: u}
        spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
        ",
    ])
}

fn settle(world: &mut World) {
    for _ in 0..5 {
        let outcome = decide(&world.cache, &Key::new("x", "c"));
        world.perform(&outcome, at(0));
    }
}

fn zone_of(world: &World) -> Option<Value> {
    let volume = world.cache.volumes.values().next()?;
    let affinity = serde_json::to_value(volume.spec.as_ref()?.node_affinity.as_ref()?).ok()?;
    Some(affinity["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0].clone())
}

fn phase_of(world: &World) -> String {
    phase(world.cache.claims.find("x", "c").unwrap()).to_owned()
}

#[test]
fn an_immediate_claim_gets_a_volume_at_once() {
    let mut world = world("Immediate");
    settle(&mut world);
    assert_eq!(phase_of(&world), "Bound");
}

#[test]
fn a_claim_that_waits_gets_its_volume_in_the_zone_of_the_first_pod() {
    let mut world = world("WaitForFirstConsumer");
    settle(&mut world);
    assert_eq!((phase_of(&world).as_str(), zone_of(&world)), ("Pending", None));
    world.apply(
        "
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: x}
        spec: {nodeName: n2, containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}
        ",
        at(0),
    );
    settle(&mut world);
    assert_eq!((phase_of(&world).as_str(), zone_of(&world)), ("Bound", Some(json!("b"))));
}

#[test]
fn a_volume_that_exists_and_fits_is_taken_first() {
    let mut world = world("Immediate");
    for (name, size) in [("big", "10Gi"), ("fits", "2Gi"), ("small", "100Mi")] {
        world.apply(
            &format!(
                "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}},
                  spec: {{storageClassName: fast, accessModes: [ReadWriteOnce], capacity: {{storage: {size}}}}}}}"
            ),
            at(0),
        );
    }
    settle(&mut world);
    let claim = world.cache.claims.find("x", "c").unwrap();
    assert_eq!(claim.spec.as_ref().unwrap().volume_name.as_deref(), Some("fits"));
}

#[test]
fn a_claim_in_use_is_not_let_go() {
    let mut world = world("Immediate");
    let claim = "
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: c, namespace: x, uid: u, deletionTimestamp: 1970-01-01T00:00:00Z, finalizers: [kubernetes.io/pvc-protection]}
        spec: {}
    ";
    world.apply(claim, at(0));
    let pod = "
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: x}
        spec: {nodeName: n2, containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}
    ";
    world.apply(pod, at(0));
    assert!(decide(&world.cache, &Key::new("x", "c")).actions.is_empty());
    world.apply(&format!("{pod}    status: {{phase: Succeeded}}\n"), at(0));
    assert_eq!(world.say(&decide(&world.cache, &Key::new("x", "c"))), ["patch PersistentVolumeClaim x/c"]);
}

#[test]
fn a_claim_that_waits_says_why() {
    let said = |world: &World| -> Vec<String> {
        let actions = decide(&world.cache, &Key::new("x", "c")).actions;
        let notes = actions.into_iter().filter_map(|action| match action {
            crate::action::Action::Note(note) => {
                Some(format!("{} {}: {}", note.severity, note.reason, note.message))
            }
            _ => None,
        });
        notes.collect()
    };
    let waits = "Normal WaitForFirstConsumer: waiting for first consumer to be created before binding";
    assert_eq!(said(&world("WaitForFirstConsumer")), [waits]);
    let claim = |class: &str| {
        let claim = format!(
            "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c, namespace: x}}, spec: {{{class}accessModes: \
             [ReadWriteOnce]}}}}"
        );
        World::of(&[&claim])
    };
    let missing = "Warning ProvisioningFailed: storageclass.storage.k8s.io \"slow\" not found";
    assert_eq!(said(&claim("storageClassName: slow, ")), [missing]);
    let none =
        "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set";
    assert_eq!(said(&claim("")), [none]);
    assert_eq!(said(&world("Immediate")), [""; 0]);
}

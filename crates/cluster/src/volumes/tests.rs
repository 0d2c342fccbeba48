//! Tests of volumes.

use expect_test::{Expect, expect};

use super::*;

/// Claims, volumes and classes that the tests choose from.
const CLUSTER: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: csi}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web-data}
spec: {storageClassName: zonal}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: deleting, deletionTimestamp: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lost}
spec: {volumeName: gone}
status: {phase: Lost}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: no-volume}
spec: {volumeName: gone, storageClassName: zonal}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: volume-deleting}
spec: {volumeName: deleting}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: unbound}
spec: {volumeName: csi}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: classless}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: no-class}
spec: {storageClassName: gone}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: immediate}
spec: {storageClassName: immediate}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: odd-topology}
spec: {storageClassName: odd-topology}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: odd-driver}
spec: {storageClassName: odd-driver}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: in-tree}
spec: {storageClassName: in-tree}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: bound-in-tree, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: in-tree}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: nfs, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: nfs, storageClassName: gone}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: local, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: local}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: csi}
spec:
  csi: {driver: example.com/disk}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]
      - matchExpressions: []
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: deleting, deletionTimestamp: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: in-tree}
spec: {awsElasticBlockStore: {volumeID: x}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: nfs}
spec: {nfs: {path: /}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: local}
spec:
  local: {path: /}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: kubernetes.io/hostname, operator: In, values: [n]}
        - {key: disk, operator: Exists}
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: example.com/disk
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}, {key: rack, values: ["1"]}]
- matchLabelExpressions: []
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [c]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: immediate}
provisioner: example.com/disk
volumeBindingMode: Immediate
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: odd-topology}
provisioner: example.com/disk
allowedTopologies:
- matchLabelExpressions: [{key: odd.com/row, values: [a]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: odd-driver}
provisioner: odd.com/disk
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: in-tree}
provisioner: kubernetes.io/aws-ebs
"#;

/// Calls `f` with the cluster's volumes and a pod `web` that uses a claim; a claim `*` is made for the pod.
fn with_pod<T>(claim: &str, f: impl FnOnce(&Volumes<'_>, &Pod) -> T) -> T {
    let contents = crate::file::parse("cluster", CLUSTER.as_bytes()).unwrap();
    assert_eq!(contents.errors, []);
    let unsupported = Unsupported {
        provisioners: ["odd.com/disk".into()].into(),
        topology_keys: ["odd.com/row".into()].into(),
    };
    let source = match claim {
        "*" => "ephemeral: {}".to_owned(),
        _ => format!("persistentVolumeClaim: {{claimName: {claim}}}"),
    };
    let pod = format!(
        "kind: Pod\napiVersion: v1\nmetadata: {{name: web}}\nspec: {{volumes: [{{name: data, {source}}}, {{name: tmp, emptyDir: {{}}}}]}}"
    );
    let pod = crate::file::parse("pod", pod.as_bytes()).unwrap().objects.pods.remove(0);
    f(&Volumes::new(&View::from(&contents.objects), &unsupported), &pod)
}

#[track_caller]
fn check_valid(claim: &str, expected: &Expect) {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
    let result = with_pod(claim, |volumes, pod| volumes.validate(pod));
    expected.assert_eq(&result.map_or_else(|error| error.to_string(), |()| "valid".to_owned()));
}

#[test]
fn claims_are_validated_in_upstreams_words() {
    check_valid("bound", &expect!["valid"]);
    check_valid("*", &expect!["valid"]);
    check_valid("nfs", &expect!["valid"]);
    check_valid(
        "missing",
        &expect![[
            r#"getting persistent volume claim, PersistentVolumeClaim "missing" not found (PersistentVolumeClaim=missing)"#
        ]],
    );
    check_valid(
        "deleting",
        &expect!["persistentvolumeclaim is being deleted (PersistentVolumeClaim=default/deleting)"],
    );
    check_valid(
        "lost",
        &expect![
            "persistentvolumeclaim bound to non-existent persistentvolume (PersistentVolume=gone, PersistentVolumeClaim=default/lost)"
        ],
    );
    check_valid(
        "no-volume",
        &expect![[
            r#"failed to validate pvc, PersistentVolume "gone" not found (PersistentVolume=gone, PersistentVolumeClaim=default/no-volume, StorageClass=zonal)"#
        ]],
    );
    check_valid(
        "volume-deleting",
        &expect![
            "failed to validate pvc, persistentvolume is being deleted (PersistentVolume=deleting, PersistentVolumeClaim=default/volume-deleting, StorageClass=)"
        ],
    );
    check_valid(
        "unbound",
        &expect![
            "pvc is considered unbound because it does not contain annotation (PersistentVolume=csi, PersistentVolumeClaim=unbound, annotation=pv.kubernetes.io/bind-completed)"
        ],
    );
    check_valid(
        "classless",
        &expect![
            "unbound pvc must define a storage class (PersistentVolumeClaim=default/classless, StorageClass=)"
        ],
    );
    check_valid(
        "no-class",
        &expect![[
            r#"failed to validate pvc, failed to get storage class, StorageClass.storage.k8s.io "gone" not found (PersistentVolumeClaim=default/no-class, StorageClass=gone)"#
        ]],
    );
    check_valid(
        "immediate",
        &expect![
            "failed to validate pvc, pvc with immediate volume binding mode must be bound (PersistentVolumeClaim=default/immediate, StorageClass=immediate)"
        ],
    );
    check_valid(
        "odd-topology",
        &expect![
            "failed to validate pvc, storage class uses unsupported topology key (PersistentVolumeClaim=default/odd-topology, StorageClass=odd-topology, TopologyKey=odd.com/row)"
        ],
    );
    check_valid(
        "odd-driver",
        &expect![
            "failed to validate pvc, provisioner is not supported (PersistentVolumeClaim=default/odd-driver, Provisioner=odd.com/disk, StorageClass=odd-driver)"
        ],
    );
}

#[test]
fn the_driver_comes_from_the_volume_or_the_class() {
    for (claim, expected) in [
        ("bound", Some("example.com/disk")),
        ("*", Some("example.com/disk")),
        ("in-tree", Some("ebs.csi.aws.com")),
        ("bound-in-tree", Some("ebs.csi.aws.com")),
        ("nfs", None),
        ("classless", None),
        ("no-class", None),
        ("no-volume", None),
    ] {
        let driver = with_pod(claim, |volumes, pod| {
            let claim = volumes.claim(pod, &pod.spec.volumes[0]).unwrap();
            volumes.driver(claim).map(ToOwned::to_owned)
        });
        assert_eq!(driver.as_deref(), expected, "{claim}");
    }
}

#[track_caller]
fn check_alternatives(claim: &str, expected: &Expect) {
    let text = with_pod(claim, |volumes, pod| match volumes.alternatives(pod, &pod.spec.volumes[0]) {
        Ok(alternatives) => {
            let shown = alternatives.iter().map(|conditions| {
                let shown = conditions.iter().map(|c| format!("{} {} {:?}", c.key, c.operator, c.values));
                format!("({})", shown.collect::<Vec<_>>().join(" and "))
            });
            shown.collect::<Vec<_>>().join(" or ")
        }
        Err(error) => error.to_string(),
    });
    expected.assert_eq(&text);
}

#[test]
fn alternatives_come_from_the_volume_or_the_class() {
    check_alternatives(
        "bound",
        &expect![[r#"(topology.kubernetes.io/zone In ["a"]) or (kubernetes.io/hostname In ["n"])"#]],
    );
    check_alternatives(
        "*",
        &expect![[
            r#"(topology.kubernetes.io/zone In ["a", "b"] and rack In ["1"]) or (topology.kubernetes.io/zone In ["c"])"#
        ]],
    );
    check_alternatives("local", &expect!["(disk Exists []) or ()"]);
    check_alternatives("nfs", &expect![[r#""#]]);
    check_alternatives("classless", &expect![[r#""#]]);
    check_alternatives(
        "missing",
        &expect![[
            r#"discovering persistent volume claim, getting persistent volume claim, PersistentVolumeClaim "missing" not found (PersistentVolumeClaim=missing)"#
        ]],
    );
    check_alternatives(
        "no-volume",
        &expect![[
            r#"getting existing requirements, getting persistent volume, PersistentVolume "gone" not found (PersistentVolume=gone)"#
        ]],
    );
    check_alternatives(
        "no-class",
        &expect![[
            r#"getting storage class, StorageClass.storage.k8s.io "gone" not found (StorageClass=gone)"#
        ]],
    );
}

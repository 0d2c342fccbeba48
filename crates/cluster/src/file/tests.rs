//! Tests of reading cluster files.

use std::io::Write;

use expect_test::{Expect, expect};

use super::*;

fn contents(text: &str) -> Contents {
    parse("cluster", text.as_bytes()).unwrap()
}

/// Names of pods and nodes, what was skipped and what was wrong.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let contents = contents(text);
    let pods = contents
        .objects
        .pods
        .iter()
        .map(|pod| format!("Pod {}/{}", pod.metadata.namespace(), pod.metadata.name));
    let nodes = contents.objects.nodes.iter().map(|node| format!("Node {}", node.metadata.name));
    let mut lines: Vec<String> = pods.chain(nodes).collect();
    if !contents.skipped.is_empty() {
        lines.push(format!("skipped {}", contents.skipped));
    }
    lines.extend(contents.errors.iter().map(ToString::to_string));
    expected.assert_eq(&lines.join("\n"));
}

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}"#;
const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}"#;

#[test]
fn a_json_file_is_an_object_a_list_or_a_stream() {
    check(POD, &expect!["Pod default/a"]);
    let list = format!(r#"{{"apiVersion": "v1", "items": [{POD}, {NODE}], "kind": "List"}}"#);
    check(
        &list,
        &expect![[r"
        Pod default/a
        Node n"]],
    );
    check(
        &format!("{POD}\n{list}{NODE}"),
        &expect![[r"
        Pod default/a
        Pod default/a
        Node n
        Node n"]],
    );
    check(
        &format!("[{POD}, {NODE}]"),
        &expect![[r"
        Pod default/a
        Node n"]],
    );
}

#[test]
fn items_of_a_typed_list_need_not_repeat_their_kind() {
    check(
        r#"{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a", "namespace": "x"}}]}"#,
        &expect!["Pod x/a"],
    );
    check("kind: NodeList\napiVersion: v1\nitems:\n- metadata: {name: n}\n", &expect!["Node n"]);
}

#[test]
fn a_yaml_file_has_documents_and_lists() {
    check(
        "# A comment.\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n\n--- # Again.\n\
         apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n\n...\n",
        &expect![[r"
            Pod default/a
            Node n"]],
    );
}

#[test]
fn kinds_that_do_not_matter_are_set_aside_by_name() {
    let secret = |name: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "{name}", "namespace": "x"}}}}"#
        )
    };
    let role =
        r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}"#;
    let secrets = ["a", "b", "c", "d"].map(secret).concat();
    check(
        &format!("{secrets}{role}{POD}"),
        &expect![[r"
            Pod default/a
            skipped 1 ClusterRole (r), 4 Secrets (x/a, x/b, x/c and 1 more)"]],
    );
}

#[test]
fn kinds_that_nobody_knows_are_errors() {
    let pod_of_others = r#"{"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "p"}}"#;
    check(
        &format!("{pod_of_others}{}{POD}", r#"{"apiVersion": "apps/v1", "kind": "Deploymnet"}"#),
        &expect![[r"
            Pod default/a
            cluster, document 1 (Pod p): objects of example.com/v1 Pod are not understood
            cluster, document 2 (Deploymnet): objects of apps/v1 Deploymnet are not understood"]],
    );
}

#[test]
fn versions_of_another_schema_are_refused() {
    check(
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: old}\nspec: {}\n---\n\
         apiVersion: karpenter.azure.com/v1alpha1\nkind: AKSNodeClass\nmetadata: {name: older}\n",
        &expect![[r"
            cluster, document 1 (NodePool old): apiVersion: karpenter.sh/v1beta1 is not supported; expected karpenter.sh/v1
            cluster, document 2 (AKSNodeClass older): apiVersion: karpenter.azure.com/v1alpha1 is not supported; expected karpenter.azure.com/v1beta1 or karpenter.azure.com/v1alpha2"]],
    );
}

#[test]
fn a_directory_stands_for_its_cluster_files_in_the_order_of_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let error = paths(directory.path()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "this directory has no file whose name ends with .yaml, .yml, .json, .yaml.gz, .yml.gz, .json.gz"
        ),
        "{error}"
    );
    for name in ["b.yaml", "a.json", "c.yml", "notes.txt", "d.json.gz"] {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    std::fs::create_dir(directory.path().join("e.yaml")).unwrap();
    let found = paths(directory.path()).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.json", "b.yaml", "c.yml", "d.json.gz"]);
    assert_eq!(paths(Path::new("-")).unwrap(), [Path::new("-")]);
}

#[test]
fn an_error_names_file_document_object_and_field() {
    check(
        "kind: Namespace\napiVersion: v1\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n\
         spec:\n  containers:\n  - resources: {requests: {cpu: 1KB}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
        &expect![[r#"
            Node n
            cluster, document 2 (Pod shop/web): spec.containers[0].resources.requests.cpu: invalid quantity "1KB": unknown suffix "KB"; expected a number with an optional suffix: one of n u m k M G T P E, one of Ki Mi Gi Ti Pi Ei, or an exponent such as e3 or E-3"#]],
    );
    let bad = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}"#;
    check(
        &format!(r#"{{"kind": "List", "apiVersion": "v1", "items": [{POD}, {bad}]}}"#),
        &expect![[r"
            Pod default/a
            cluster, document 1, item 2 (Pod): metadata.name: invalid type: integer `7`, expected a string"]],
    );
}

#[test]
fn types_have_the_names_that_people_give_them() {
    check(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {weight: high}\n",
        &expect![[
            r#"cluster, document 1 (NodePool p): spec.weight: invalid type: string "high", expected a whole number"#
        ]],
    );
}

#[test]
fn what_is_no_object_is_an_error_not_a_panic() {
    for (text, expected) in [
        ("", expect![""]),
        (
            "{}",
            expect![
                "cluster, document 1: kind: missing; expected the kind of a Kubernetes object, such as Pod"
            ],
        ),
        (
            "[1]",
            expect!["cluster, document 1, item 1: invalid type: integer `1`, expected a Kubernetes object"],
        ),
        (
            "just text",
            expect![[
                r#"cluster, document 1: invalid type: string "just text", expected a Kubernetes object"#
            ]],
        ),
        (
            r#"{"kind": "Pod""#,
            expect!["cluster, document 1: EOF while parsing an object at line 1 column 14"],
        ),
        (
            r#"{"kind": 7}"#,
            expect!["cluster, document 1: invalid type: integer `7`, expected a string at line 1 column 10"],
        ),
        (
            r#"{"kind": "List", "items": 7}"#,
            expect!["cluster, document 1 (List): objects of List are not understood"],
        ),
    ] {
        check(text, &expected);
    }
}

#[test]
fn one_bad_yaml_document_does_not_hide_the_others() {
    check(
        "kind: Pod\napiVersion: v1\n---\na: [\n---\nkind: Node\napiVersion: v1\nmetadata: {name: n}\n",
        &expect![[r"
            Pod default/
            Node n
            cluster, document 2: unclosed bracket '[' at line 4, column 4"]],
    );
}

#[test]
fn null_stands_for_nothing() {
    check(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n  creationTimestamp: null\nspec:\n  nodeSelector:\n  \
         tolerations:\n  affinity:\n  containers:\n  - resources:\n    ports:\nstatus:\n",
        &expect!["Pod default/a"],
    );
}

#[test]
fn compressed_files_are_read_by_what_they_are_not_by_their_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cluster.yaml");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
    encoder.write_all(POD.as_bytes()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(read(&path).unwrap().objects.pods.len(), 1);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = read(Path::new("/nowhere/cluster.json")).unwrap_err().to_string();
    assert_eq!(error, "reading /nowhere/cluster.json: No such file or directory (os error 2)");
    let error = parse("cluster.json", b"{\"kind\": \"\xff\"}").unwrap_err().to_string();
    assert_eq!(
        error,
        "cluster.json: not UTF-8 text from byte 10; expected JSON or YAML, possibly compressed with gzip"
    );
}

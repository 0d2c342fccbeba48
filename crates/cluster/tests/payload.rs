//! What is written into the NodeClaims of a plan.

use api::labels::LabelSets;
use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cluster::instance_types::kwok;
use cluster::snapshot::{self, Options};
use cluster::{file, payload};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The NodeClaims for a pool with some requirements and one pod that selects some labels.
fn claims(pool: &str, pod: &str) -> Vec<NodeClaim> {
    let text = format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default, uid: pool-uid}}
spec:
  template:
    metadata: {{labels: {{team: infra}}, annotations: {{example.com/owner: me}}}}
    spec:
      nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: small}}
      taints: [{{key: dedicated, effect: PreferNoSchedule}}]
      requirements: {pool}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: default}}
spec:
  tolerations: [{{operator: Exists}}]
  affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: {pod}}}]}}}}}}
  containers: [{{name: main, resources: {{requests: {{cpu: 500m, memory: 1Gi}}}}}}]
"
    );
    let contents = file::parse("test", text.as_bytes()).expect("the file can be read");
    assert!(contents.errors.is_empty(), "{:?}", contents.errors);
    let types = kwok::built_in();
    let mut options = Options::new(Provider::Kwok, &types);
    options.accept_unseen_pods = true;
    let built = snapshot::build(&contents.objects, &options, Timestamp::UNIX_EPOCH);
    let plan = engine::solve::solve(&built.snapshot, &engine::options::Options::default());
    assert!(plan.failures.iter().all(Option::is_none), "{:?}", plan.failures);
    let mut universe = plan.universe;
    let sets = LabelSets::for_provider(Provider::Kwok);
    let pool = &contents.objects.node_pools[0];
    plan.claims
        .iter()
        .map(|claim| payload::node_claim(&built.snapshot, &mut universe, claim, pool, &sets))
        .collect()
}

fn json_of(claim: &NodeClaim) -> Value {
    serde_json::to_value(claim).expect("a NodeClaim is JSON")
}

fn requirement<'a>(claim: &'a Value, key: &str) -> Vec<&'a Value> {
    let all = claim["spec"]["requirements"].as_array().expect("requirements");
    all.iter().filter(|requirement| requirement["key"] == key).collect()
}

#[test]
fn a_claim_belongs_to_its_pool_and_carries_its_template() {
    let claim = json_of(&claims("[]", "[{key: kubernetes.io/arch, operator: In, values: [arm64]}]")[0]);
    assert_eq!(claim["metadata"]["generateName"], "default-");
    assert_eq!(
        claim["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "pool-uid",
            "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(
        claim["metadata"]["labels"],
        json!({"team": "infra", "karpenter.sh/nodepool": "default", "karpenter.kwok.sh/kwoknodeclass": "small"})
    );
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["example.com/owner"], "me");
    assert_eq!(annotations["karpenter.sh/nodepool-hash-version"], "v3");
    assert_eq!(annotations["karpenter.sh/nodeclaim-min-values-relaxed"], "false");
    assert_eq!(claim["spec"]["taints"], json!([{"key": "dedicated", "effect": "PreferNoSchedule"}]));
    assert_eq!(claim["spec"]["expireAfter"], "720h");
    assert_eq!(claim["spec"]["resources"]["requests"], json!({"cpu": "500m", "memory": "1Gi", "pods": "1"}));
}

#[test]
fn a_claim_names_its_types_and_how_they_may_be_bought() {
    let claim = json_of(&claims("[]", "[{key: kubernetes.io/arch, operator: In, values: [arm64]}]")[0]);
    let types = &requirement(&claim, "node.kubernetes.io/instance-type")[0]["values"];
    let types = types.as_array().expect("types");
    assert!(types.iter().all(|name| name.as_str().is_some_and(|name| name.contains("arm64"))));
    assert_eq!(requirement(&claim, "karpenter.sh/capacity-type")[0]["values"], json!(["on-demand", "spot"]));
    assert_eq!(requirement(&claim, "kubernetes.io/arch")[0]["values"], json!(["arm64"]));
    for hidden in ["kubernetes.io/hostname", "karpenter.sh/registered", "karpenter.sh/initialized"] {
        assert!(requirement(&claim, hidden).is_empty(), "{hidden}");
    }
}

#[test]
fn labels_of_the_users_own_get_a_value_that_is_allowed() {
    let pool = "[{key: size, operator: In, values: [b, a]}, {key: tier, operator: Exists}, \
                {key: level, operator: Gt, values: ['3']}, {key: gone, operator: DoesNotExist}]";
    let claim = json_of(&claims(pool, "[{key: tier, operator: NotIn, values: ['0', '1']}]")[0]);
    let labels = &claim["metadata"]["labels"];
    assert_eq!(labels["size"], "a");
    assert_eq!(labels["tier"], "2");
    assert_eq!(labels["level"], "4");
    assert_eq!(labels["gone"], Value::Null);
    assert_eq!(requirement(&claim, "size")[0]["values"], json!(["a", "b"]));
    assert_eq!(requirement(&claim, "level")[0], &json!({"key": "level", "operator": "Gte", "values": ["4"]}));
}

#[test]
fn a_claim_of_a_static_pool_is_its_template_and_nothing_else() {
    let pool = json!({
        "metadata": {"name": "fixed", "uid": "pool-uid"},
        "spec": {"replicas": 1, "template": {
            "metadata": {"labels": {"team": "infra"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "small"},
                "requirements": [
                    {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
                    {"key": "level", "operator": "Lt", "values": ["3"]},
                ],
            },
        }},
    });
    let mut pool: api::nodepool::NodePool = serde_json::from_value(pool).expect("a NodePool");
    let sets = LabelSets::for_provider(Provider::Kwok);
    let claim = json_of(&payload::bare_node_claim(&pool, &sets).expect("the template makes sense"));
    assert_eq!(claim["metadata"]["generateName"], "fixed-");
    assert_eq!(claim["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"], "v3");
    assert_eq!(claim["metadata"]["labels"]["level"], "0");
    assert_eq!(requirement(&claim, "kubernetes.io/arch")[0]["values"], json!(["arm64"]));
    assert_eq!(requirement(&claim, "level")[0], &json!({"key": "level", "operator": "Lte", "values": ["2"]}));
    assert_eq!(requirement(&claim, "team")[0]["values"], json!(["infra"]));
    for absent in ["node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"] {
        assert!(requirement(&claim, absent).is_empty(), "{absent}");
    }
    assert_eq!(claim["spec"]["resources"], Value::Null, "nothing is requested");
    pool.spec.template.spec.requirements[1].values = vec!["many".to_owned()];
    assert!(payload::bare_node_claim(&pool, &sets).is_err(), "it says what is wrong");
}

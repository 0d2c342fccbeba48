//! The sentence that a pending pod gets in each situation: YAML in, the exact sentence out.
//!
//! Every sentence fits into two lines, and every funnel beside it ends in zero.

mod labels;
mod pools;
mod sizes;
mod topologies;
mod volumes;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use api::provider::Provider;
use cluster::file;
use cluster::instance_types::{InstanceType, kwok};
use cluster::snapshot::{self, InstanceTypes, Options};
use engine::options::{self, Reserved};
use engine::scheduling_error::{LONGEST, SchedulingErrors};
use engine::solve::{Failure, solve};
use expect_test::Expect;
use jiff::Timestamp;

/// What sentences are asked for.
struct Situation {
    yaml: String,
    types: Vec<InstanceType>,
    provider: Provider,
    options: options::Options,
}

impl Situation {
    /// A cluster of simulated nodes with some objects.
    fn of(objects: &[String]) -> Self {
        Self {
            yaml: objects.concat(),
            types: kwok::built_in(),
            provider: Provider::Kwok,
            options: options::Options::default(),
        }
    }

    /// As on AWS, with reservations.
    fn on_aws(mut self) -> Self {
        self.provider = Provider::Aws;
        self.options.reserved = Reserved::Fallback;
        self.yaml = self.yaml.replace("group: karpenter.kwok.sh", "group: karpenter.k8s.aws");
        self.yaml = self.yaml.replace("KWOKNodeClass", "EC2NodeClass");
        self
    }

    /// Changes the instance types.
    fn types(mut self, change: impl Fn(&mut InstanceType)) -> Self {
        self.types.iter_mut().for_each(change);
        self
    }

    /// The sentences of all pods that have no place, those that are alike once; pods of which nothing is said are
    /// not among them.
    fn sentences(&self, without_types: &[&str]) -> String {
        let contents = file::parse("situation", self.yaml.as_bytes()).expect("the objects can be read");
        assert!(contents.errors.is_empty(), "{:?}", contents.errors);
        let types: Arc<[InstanceType]> = self.types.clone().into();
        let names = contents.objects.node_pools.iter().filter_map(|pool| pool.metadata.name.as_deref());
        let by_pool: BTreeMap<Box<str>, Arc<[InstanceType]>> = names
            .filter(|name| !without_types.contains(name))
            .map(|name| (name.into(), Arc::clone(&types)))
            .collect();
        let mut options = Options::new(self.provider, &[]);
        options.instance_types = InstanceTypes::ByPool(&by_pool);
        options.accept_unseen_pods = true;
        let built = snapshot::build(&contents.objects, &options, Timestamp::UNIX_EPOCH);
        let plan = solve(&built.snapshot, &self.options);
        let mut errors = SchedulingErrors::new(&built.snapshot, &plan.universe, &plan.unusable);
        let mut text = String::new();
        for ignored in built.ignored.iter().filter(|it| it.kind == "Pod" && it.reason.is_event()) {
            let sentence = ignored.reason.sentence();
            assert!(sentence.chars().count() <= LONGEST, "more than two lines: {sentence}");
            let _ = writeln!(text, "{sentence}");
        }
        for (pod, failure) in built.snapshot.pods.iter().zip(&plan.failures) {
            let Some(failure) = failure else { continue };
            let sentence = errors.sentence(pod.class, failure);
            let length = sentence.chars().count();
            assert!(length <= LONGEST, "{length} characters are more than two lines: {sentence}");
            if let Failure::Pools(pools) = &**failure {
                for (pool, failure) in pools {
                    let funnel = errors.explainer().funnel(*pool, pod.class, failure);
                    let funnel = funnel.expect("the pool has types");
                    assert_eq!(funnel.steps.last().expect("steps").1, 0, "{:?}", funnel.steps);
                }
            }
            if !text.contains(&sentence) {
                let _ = writeln!(text, "{sentence}");
            }
        }
        text.trim_end().to_owned()
    }

    #[expect(clippy::needless_pass_by_value, reason = "macros make the expectation in place")]
    #[track_caller]
    fn says(&self, expected: Expect) {
        expected.assert_eq(&self.sentences(&[]));
    }
}

/// A NodePool. `template` goes into its template's spec, `spec` beside that.
fn pool(name: &str, template: &str, spec: &str) -> String {
    let requirements = if template.contains("requirements:") { "" } else { ", requirements: []" };
    format!(
        "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}, uid: {name}}}\n\
         spec: {{{spec}{} template: {{spec: {{nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, \
         name: default}}{requirements}{} {template}}}}}}}\n",
        if spec.is_empty() { "" } else { "," },
        if template.is_empty() { "" } else { "," },
    )
}

/// A NodePool that asks for nothing.
fn plain_pool() -> String {
    pool("default", "", "")
}

/// A NodePool with one requirement.
fn pool_with(name: &str, key: &str, operator: &str, values: &str) -> String {
    pool(name, &format!("requirements: [{{key: {key}, operator: {operator}, values: [{values}]}}]"), "")
}

/// A NodePool with a condition, which is not ready.
fn unready_pool(name: &str, type_: &str, reason: &str, message: &str) -> String {
    let time = "lastTransitionTime: \"2026-01-01T00:00:00Z\"";
    pool(name, "", "")
        + &format!(
            "status:\n  conditions:\n  - {{type: {type_}, status: \"False\", reason: {reason}, message: {message:?}, \
             {time}}}\n  - {{type: Ready, status: \"False\", reason: UnhealthyDependents, message: {type_}=False, \
             {time}}}\n"
        )
}

/// The pod `web`, with what it asks for and other fields of its spec.
fn pod(requests: &str, spec: &str) -> String {
    pod_with("web", "app: web", requests, spec)
}

fn pod_with(name: &str, labels: &str, requests: &str, spec: &str) -> String {
    let comma = if spec.is_empty() { "" } else { "," };
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, labels: {{{labels}}}}}\n\
         spec: {{{spec}{comma} containers: [{{name: main, image: a, resources: {{requests: {{{requests}}}}}}}]}}\n"
    )
}

/// A small pod with other fields of its spec.
fn small_pod(spec: &str) -> String {
    pod("cpu: 1", spec)
}

/// Required node affinity with one term for each list of expressions.
fn node_affinity(terms: &[&str]) -> String {
    let terms: Vec<String> = terms.iter().map(|term| format!("{{matchExpressions: [{term}]}}")).collect();
    format!(
        "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{}]}}}}}}",
        terms.join(", ")
    )
}

/// A node that nobody here manages, with room for few pods.
fn node(name: &str, zone: &str, cpu: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, \
         topology.kubernetes.io/zone: {zone}}}}}\nspec: {{providerID: id-{name}}}\n\
         status: {{capacity: {{cpu: {cpu}, memory: 8Gi, pods: 10}}, allocatable: {{cpu: {cpu}, memory: 8Gi, pods: 10}}, \
         conditions: [{{type: Ready, status: \"True\"}}]}}\n"
    )
}

/// A pod that runs.
fn running(name: &str, labels: &str, node: &str, spec: &str) -> String {
    let spec =
        if spec.is_empty() { format!("nodeName: {node}") } else { format!("nodeName: {node}, {spec}") };
    pod_with(name, labels, "cpu: 100m", &spec) + "status: {phase: Running}\n"
}

/// A DaemonSet on all nodes.
fn daemon_set(requests: &str, container: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent, namespace: default}}\n\
         spec: {{selector: {{matchLabels: {{app: agent}}}}, template: {{metadata: {{labels: {{app: agent}}}}, spec: \
         {{tolerations: [{{operator: Exists}}], containers: [{{name: main, image: a, resources: {{requests: \
         {{{requests}}}}}{container}}}]}}}}}}\n"
    )
}

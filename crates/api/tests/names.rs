//! The whole drop-in contract as one text. A change of `names.txt` is a change that users can see.

use std::collections::BTreeSet;
use std::fmt::Display;

use api::names::events::Event;
use api::names::flags::Flag;
use api::names::gates::Gate;
use api::names::metrics::{self, Metric, status};
use api::names::*;
use expect_test::expect_file;

#[derive(Default)]
struct Listing(String);

impl Listing {
    fn section<T: Display>(&mut self, title: &str, lines: impl IntoIterator<Item = T>) {
        let before = if self.0.is_empty() { "" } else { "\n" };
        self.0.extend([before, "# ", title, "\n"]);
        for line in lines {
            self.0 += line.to_string().trim_end();
            self.0 += "\n";
        }
    }
}

fn metric(name: &str, metric: &Metric, labels: &[&str]) -> String {
    let labels = [metric.labels, labels].concat().join(",");
    format!("{name} {{{labels}}}{} {} {}", metric.more_labels, metric.stage, metric.kind)
}

fn metric_lines(list: &[Metric]) -> Vec<String> {
    list.iter().map(|each| metric(each.name, each, &[])).collect()
}

fn status_lines() -> Vec<String> {
    let by_kind = status::KINDS
        .iter()
        .flat_map(|kind| status::ALL.iter().map(move |each| metric(&status::name(each, kind), each, &[])));
    let shared = status::ALL
        .iter()
        .map(|each| metric(&status::shared_name(each), &status::shared(each), status::SHARED_LABELS));
    by_kind.chain(shared).collect()
}

fn event_lines(list: &[Event]) -> Vec<String> {
    let line = |event: &Event| {
        let Event { reason, kind, objects, dedupe, limit } = event;
        let limit = limit.map(|limit| format!(" {}/s burst {}", limit.per_second, limit.burst));
        format!("{reason:?} {kind} {} {}s{}", objects.join(","), dedupe.as_secs(), limit.unwrap_or_default())
    };
    list.iter().map(line).collect()
}

fn flag_lines(list: &[Flag]) -> Vec<String> {
    let line = |flag: &Flag| {
        let default = flag.default.map_or("required".to_owned(), |default| format!("{default:?}"));
        format!("--{} {} {} {default}", flag.flag, flag.env, flag.kind.as_str())
    };
    list.iter().map(line).collect()
}

fn gate_lines(list: &[Gate]) -> Vec<String> {
    list.iter().map(|gate| format!("{}={} {}", gate.name, gate.default, gate.stage)).collect()
}

fn listing() -> String {
    let mut all = Listing::default();
    all.section("labels", labels::ALL);
    all.section("labels: aliases", labels::aliases::ALL);
    all.section("labels: kwok", labels::kwok::ALL);
    all.section("labels: aws", labels::aws::ALL);
    all.section("labels: azure", labels::azure::ALL);
    all.section("annotations", annotations::ALL);
    all.section("annotations: kwok", annotations::kwok::ALL);
    all.section("annotations: aws", annotations::aws::ALL);
    all.section("annotations: azure", annotations::azure::ALL);
    all.section("taints", taints::ALL);
    all.section("taints: known to be ephemeral", taints::KNOWN_EPHEMERAL);
    all.section("taints: prefix of ephemeral ones", [taints::KNOWN_EPHEMERAL_PREFIX]);
    all.section("finalizers", finalizers::ALL);
    all.section("tags: aws", tags::aws::ALL);
    all.section("tags: azure", tags::azure::ALL);
    all.section("resources", resources::ALL);
    all.section("resources: extended", resources::EXTENDED);
    conditions_and_reasons(&mut all);
    values_of_labels(&mut all);
    all.section("metrics", metric_lines(metrics::ALL));
    all.section("metrics: aws", metric_lines(metrics::aws::ALL));
    all.section("metrics: aws client", metric_lines(metrics::aws::CLIENT));
    all.section("metrics: azure", metric_lines(metrics::azure::ALL));
    all.section("metrics: status", status_lines());
    all.section("metrics: status, kinds without the older names", status::KINDS_WITHOUT_SHARED);
    all.section("metrics: runtime", metric_lines(metrics::runtime::ALL));
    all.section("events", event_lines(events::ALL));
    all.section("events: aws", event_lines(events::aws::ALL));
    all.section("events: azure", event_lines(events::azure::ALL));
    all.section("flags", flag_lines(flags::ALL));
    all.section("flags: kwok", flag_lines(flags::kwok::ALL));
    all.section("flags: aws", flag_lines(flags::aws::ALL));
    all.section("flags: azure", flag_lines(flags::azure::ALL));
    all.section("environment without flags", flags::ENVIRONMENT);
    all.section("gates", gate_lines(gates::ALL));
    all.section("gates: aws", gate_lines(gates::AWS));
    all.section("controllers", controllers::ALL);
    all.section("controllers: kwok", controllers::kwok::ALL);
    all.section("controllers: aws", controllers::aws::ALL);
    all.section("controllers: azure", controllers::azure::ALL);
    all.section("process", process::ALL);
    all.0
}

fn conditions_and_reasons(all: &mut Listing) {
    all.section("conditions: every kind", [conditions::READY]);
    all.section("conditions: NodePool", conditions::node_pool::ALL);
    all.section("conditions: NodePool, Ready depends on", conditions::node_pool::DEPENDENTS);
    all.section("conditions: NodeClaim", conditions::node_claim::ALL);
    all.section("conditions: NodeClaim, Ready depends on", conditions::node_claim::DEPENDENTS);
    all.section("conditions: NodeOverlay", conditions::node_overlay::ALL);
    all.section("conditions: NodeOverlay, Ready depends on", conditions::node_overlay::DEPENDENTS);
    all.section("conditions: CapacityBuffer", conditions::capacity_buffer::ALL);
    all.section("conditions: EC2NodeClass", conditions::aws::ALL);
    all.section("conditions: EC2NodeClass, Ready depends on", conditions::aws::DEPENDENTS);
    all.section("conditions: AKSNodeClass", conditions::azure::ALL);
    all.section("conditions: AKSNodeClass, Ready depends on", conditions::azure::DEPENDENTS);
    all.section("conditions: Node", conditions::node::ALL);
    all.section("reasons: every kind", reasons::ALL);
    all.section("reasons: NodePool", reasons::node_pool::ALL);
    all.section("reasons: NodeClaim", reasons::node_claim::ALL);
    all.section("reasons: NodeOverlay", reasons::node_overlay::ALL);
    all.section("reasons: CapacityBuffer", reasons::capacity_buffer::ALL);
    all.section("reasons: EC2NodeClass", reasons::aws::ALL);
    all.section("reasons: drift with aws", reasons::aws::DRIFT);
    all.section("reasons: launch with aws", reasons::aws::LAUNCH);
    all.section("reasons: AKSNodeClass", reasons::azure::ALL);
    all.section("reasons: drift with azure", reasons::azure::DRIFT);
    all.section("reasons: launch with azure", reasons::azure::LAUNCH);
    all.section("messages of conditions", messages::ALL);
    all.section("beginnings of error texts", messages::errors::ALL);
}

fn values_of_labels(all: &mut Listing) {
    all.section("values: karpenter.sh/capacity-type", values::capacity_type::ALL);
    all.section("values: kubernetes.io/arch", values::arch::ALL);
    all.section("values: reason, of creation and disruption", values::DISRUPTION_REASONS);
    all.section("values: reason, of drained pods", values::DRAIN_REASONS);
    all.section("values: termination_mode", values::TERMINATION_MODES);
    all.section("values: decision, of disruption", values::DECISIONS);
    all.section("values: decision, of moves", values::APPROVALS);
    all.section("values: consolidation_type", values::CONSOLIDATION_TYPES);
    all.section("values: terminate_first_reason", values::TERMINATE_FIRST_REASONS);
    all.section("values: result, of reboots", values::REBOOT_RESULTS);
    all.section("values: result, of annotation writes", values::ANNOTATION_WRITE_RESULTS);
    all.section("values: method", values::PROVIDER_METHODS);
    all.section("values: error", values::PROVIDER_ERRORS);
    all.section("values: zone, of pending pods", values::EFFECTIVE_ZONES);
    all.section("values: category, with aws", values::AWS_STATUS_CATEGORIES);
    all.section("values: phase, with azure", values::AZURE_CREATE_PHASES);
}

#[test]
fn the_contract_changes_only_on_purpose() {
    expect_file!["names.txt"].assert_eq(&listing());
}

/// A name that two constants share would be published twice.
#[track_caller]
fn check_distinct<'a>(names: impl IntoIterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    for name in names {
        assert!(seen.insert(name), "{name} is there twice");
    }
}

#[test]
fn names_are_distinct_within_what_one_process_publishes() {
    let core = || metrics::ALL.iter().chain(metrics::runtime::ALL);
    check_distinct(core().chain(metrics::aws::ALL).map(|metric| metric.name));
    check_distinct(core().chain(metrics::azure::ALL).map(|metric| metric.name));
    check_distinct(flags::ALL.iter().chain(flags::aws::ALL).chain(flags::kwok::ALL).map(|flag| flag.flag));
    check_distinct(flags::ALL.iter().chain(flags::azure::ALL).map(|flag| flag.env));
    check_distinct(controllers::ALL.iter().chain(controllers::aws::ALL).copied());
    check_distinct(controllers::ALL.iter().chain(controllers::azure::ALL).copied());
    check_distinct(labels::ALL.iter().chain(labels::aws::ALL).copied());
    check_distinct(labels::ALL.iter().chain(labels::azure::ALL).copied());
    check_distinct(annotations::ALL.iter().chain(annotations::aws::ALL).copied());
}

#[test]
fn metrics_have_ascending_buckets_and_distinct_labels() {
    let all = metrics::ALL.iter().chain(metrics::aws::ALL).chain(metrics::azure::ALL);
    for metric in all.chain(status::ALL).chain(metrics::runtime::ALL) {
        check_distinct(metric.labels.iter().copied());
        if let metrics::MetricKind::Histogram(buckets) = metric.kind {
            assert!(buckets.is_sorted(), "{}", metric.name);
        }
        assert!(metric.help.ends_with('.'), "{}", metric.name);
    }
}

#[test]
fn the_help_about_reboots_names_every_result() {
    // N9 of v1.15.
    for result in values::REBOOT_RESULTS {
        assert!(metrics::NODES_REBOOTS.help.contains(result), "{result}");
    }
}

//! Decisions of the controller, told in one line each: nodes that come, nodes that go, pods that stay pending.
//!
//! The controller says in its log what it does; [`Teller`] turns that into sentences for people and leaves out
//! details and repetitions. What the log does not say it is told by [`Facts`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use runtime::logs::{Level, Line};
use serde_json::Value;
use tokio::time::Instant;
use units::human::{self, Per};

/// How long pods that stay pending are gathered, so that a hundred of a kind are one line.
const GATHER: Duration = Duration::from_millis(300);
/// How long a sentence that was told is not told again.
const SILENCE: Duration = Duration::from_mins(5);
/// How many pods or sentences are remembered; beyond that, something may be told twice.
const REMEMBERED: usize = 5_000;
/// How many names a line has at most.
const NAMES: usize = 3;

/// What is known of the cluster besides the log.
pub(super) trait Facts {
    /// The NodePool of a NodeClaim; empty if unknown.
    fn pool(&self, claim: &str) -> String;
    /// How many pods a NodeClaim was launched for.
    fn pods(&self, claim: &str) -> usize;
    /// The zone of a Node; empty if unknown.
    fn zone(&self, node: &str) -> String;
    /// What an instance costs per hour; zero if unknown.
    fn price(&self, pool: &str, instance_type: &str, capacity_type: &str, zone: &str) -> f64;
}

/// What is told of a decision: a word that says what kind it is, and the sentence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told {
    pub(super) verb: &'static str,
    pub(super) text: String,
}

#[expect(clippy::unnecessary_wraps, reason = "lines that tell nothing are none")]
fn told(verb: &'static str, text: impl Into<String>) -> Option<Told> {
    Some(Told { verb, text: text.into() })
}

/// Keeps what was told.
#[derive(Default)]
pub(super) struct Teller {
    /// Sentences, and since when.
    said: BTreeMap<Told, Instant>,
    /// Pods that stay pending, with the reason that was told.
    pending: BTreeMap<String, String>,
    /// Pods that are to be told, by their reason, and when.
    gathered: BTreeMap<String, BTreeSet<String>>,
    due: Option<Instant>,
}

impl Teller {
    /// Hears a line of the log, and returns what is to be told of it at once.
    pub(super) fn hear(&mut self, line: &Line, facts: &dyn Facts, now: Instant) -> Option<Told> {
        if line.message == "could not schedule pod" {
            self.gather(line.text("Pod"), sentence(&line.text("why")), now);
            return None;
        }
        let told = sentence_of(line, facts)?;
        // Nodes come and go once each; everything else may be said over and over.
        if matches!(told.verb, "launch" | "ready" | "disrupt" | "gone") || self.is_new(&told, now) {
            return Some(told);
        }
        None
    }

    /// When there is something to tell that was gathered.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What was gathered.
    pub(super) fn take(&mut self) -> Vec<Told> {
        self.due = None;
        let gathered = std::mem::take(&mut self.gathered);
        let lines = gathered.into_iter().map(|(why, pods)| {
            let names: Vec<&str> = pods.iter().map(String::as_str).collect();
            let text = match names[..] {
                [name] => format!("{name}: {why}"),
                _ => format!("{} pods ({}): {why}", names.len(), some(&names)),
            };
            Told { verb: "pending", text }
        });
        lines.collect()
    }

    fn gather(&mut self, pod: String, why: String, now: Instant) {
        if self.pending.get(&pod) == Some(&why) {
            return;
        }
        if self.pending.len() >= REMEMBERED {
            self.pending.clear();
        }
        // Only the latest reason counts.
        for pods in self.gathered.values_mut() {
            pods.remove(&pod);
        }
        self.gathered.retain(|_, pods| !pods.is_empty());
        self.pending.insert(pod.clone(), why.clone());
        self.gathered.entry(why).or_default().insert(pod);
        self.due.get_or_insert(now + GATHER);
    }

    fn is_new(&mut self, told: &Told, now: Instant) -> bool {
        if self.said.get(told).is_some_and(|since| now < *since + SILENCE) {
            return false;
        }
        if self.said.len() >= REMEMBERED {
            self.said.retain(|_, since| now < *since + SILENCE);
        }
        self.said.insert(told.clone(), now);
        true
    }
}

fn sentence_of(line: &Line, facts: &dyn Facts) -> Option<Told> {
    let claim = || line.text("NodeClaim");
    match line.message.as_str() {
        "launched nodeclaim" => told("launch", launched(line, facts)),
        "initialized nodeclaim" => told("ready", format!("{}: node {}", claim(), line.text("Node"))),
        "disrupting node(s)" => told("disrupt", disrupted(line, facts)),
        "deleting expired nodeclaim" => told("disrupt", format!("Expired: {} goes", claim())),
        "deleting unhealthy node" => {
            told("disrupt", format!("Unhealthy: {} goes, condition {}", claim(), line.text("condition")))
        }
        "deleted nodeclaim, nodepool has more than its replicas" => {
            let pool = line.text("NodePool");
            told("disrupt", format!("Surplus: {} goes, NodePool {pool} has more than its replicas", claim()))
        }
        "garbage collecting nodeclaim with no cloudprovider representation" => {
            told("disrupt", format!("Lost: {} goes, its instance is not there any more", claim()))
        }
        "giving up nodeclaim" => told("give up", format!("{}: {}", claim(), line.text("reason"))),
        "deleted nodeclaim" => told("gone", claim()),
        "no nodepools found" => {
            let pods = count(line.text("pods").parse().unwrap_or(0), "pod");
            let hint = "`karpenter example nodepool | kubectl apply -f -` makes one";
            told("pending", format!("{pods}: there is no NodePool; {hint}"))
        }
        "nodepool node limit reached" => {
            told("limit", format!("NodePool {} has as many nodes as it may have", line.text("NodePool")))
        }
        message if !line.text("gate").is_empty() => {
            let [kind, object, gate] = ["kind", "object", "gate"].map(|name| line.text(name));
            let hint = format!("`--feature-gates {gate}=true` switches it on");
            told("gate", format!("{kind} {object}: {message}; {hint}"))
        }
        _ if line.level <= Level::WARN => {
            told(if line.level == Level::WARN { "warning" } else { "error" }, trouble(line))
        }
        _ => None,
    }
}

fn launched(line: &Line, facts: &dyn Facts) -> String {
    let claim = line.text("NodeClaim");
    let [kind, zone, capacity] = ["instance-type", "zone", "capacity-type"].map(|name| line.text(name));
    let price = facts.price(&facts.pool(&claim), &kind, &capacity, &zone);
    let mut parts = vec![kind, capacity, zone];
    if price > 0.0 {
        parts.push(human::money(price, Per::Hour));
    }
    parts.retain(|part| !part.is_empty());
    let what = match facts.pods(&claim) {
        0 => claim,
        pods => format!("{claim} for {}", count(pods, "pod")),
    };
    format!("{what}: {}", parts.join(", "))
}

fn disrupted(line: &Line, facts: &dyn Facts) -> String {
    let command = line.text("command");
    let reason = command.split('/').next().unwrap_or_default();
    let nodes: Vec<Value> = serde_json::from_str(&line.text("disrupted-nodes")).unwrap_or_default();
    let text =
        |node: &Value, path: &str| node.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let claims: Vec<String> = nodes.iter().map(|node| text(node, "/NodeClaim/name")).collect();
    let pods = match line.text("pod-count").parse().unwrap_or(0) {
        0 => String::new(),
        pods => format!(", {} {}", count(pods, "pod"), if pods == 1 { "moves" } else { "move" }),
    };
    let names = some(&claims.iter().map(String::as_str).collect::<Vec<_>>());
    let go = if claims.len() == 1 { "goes" } else { "go" };
    match &*line.text("decision") {
        "replace" => {
            let by = count(line.text("replacement-node-count").parse().unwrap_or(0), "node");
            format!("{reason}: {names} replaced by {by}{pods}")
        }
        "reboot" => format!("{reason}: {names} rebooted{pods}"),
        "terminate-first" => format!("{reason}: {names} {go} before the replacement comes{pods}"),
        _ => {
            let price = |node: &Value| {
                let pool = facts.pool(&text(node, "/NodeClaim/name"));
                let zone = facts.zone(&text(node, "/Node/name"));
                facts.price(&pool, &text(node, "/instance-type"), &text(node, "/capacity-type"), &zone)
            };
            let price: f64 = nodes.iter().map(price).sum();
            let saved = if price > 0.0 {
                format!(", {} saved", human::money(price, Per::Hour))
            } else {
                String::new()
            };
            format!("{reason}: {names} {go}{pods}{saved}")
        }
    }
}

/// What went wrong, with what it is about.
fn trouble(line: &Line) -> String {
    let about =
        ["NodePool", "NodeClaim", "Node", "Pod", "NodeOverlay", "CapacityBuffer"].iter().find_map(|kind| {
            Some(format!("{kind} {}: ", line.text(kind))).filter(|_| !line.text(kind).is_empty())
        });
    let error = line.text("error");
    let message = match line.message.as_str() {
        "Reconciler error" => line.text("controller"),
        message => message.to_owned(),
    };
    let message = [message, sentence(&error)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    format!("{}{}", about.unwrap_or_default(), message.join(": "))
}

/// In one line.
fn sentence(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn some(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fleet;

    impl Facts for Fleet {
        fn pool(&self, _: &str) -> String {
            "default".to_owned()
        }

        fn pods(&self, claim: &str) -> usize {
            if claim == "default-static" { 0 } else { 5 }
        }

        fn zone(&self, _: &str) -> String {
            "zone-a".to_owned()
        }

        fn price(&self, pool: &str, instance_type: &str, capacity_type: &str, zone: &str) -> f64 {
            if (pool, instance_type, capacity_type, zone) == ("default", "c-4x", "spot", "zone-a") {
                0.04
            } else {
                0.0
            }
        }
    }

    #[track_caller]
    fn check(level: Level, message: &str, fields: &[(&'static str, &str)], expected: &str) {
        let line = Line::new(level, message, fields);
        let told = Teller::default().hear(&line, &Fleet, Instant::now());
        let told = told.map(|told| format!("{} | {}", told.verb, told.text)).unwrap_or_default();
        assert_eq!(told, expected, "{message}");
    }

    #[test]
    fn every_decision_is_a_sentence() {
        let launched = [("instance-type", "c-4x"), ("zone", "zone-a"), ("capacity-type", "spot")];
        let of = |claim| [&[("NodeClaim", claim)], &launched[..]].concat();
        let expected = "launch | default-x for 5 pods: c-4x, spot, zone-a, $0.04/hour";
        check(Level::INFO, "launched nodeclaim", &of("default-x"), expected);
        let expected = "launch | default-static: c-4x, spot, zone-a, $0.04/hour";
        check(Level::INFO, "launched nodeclaim", &of("default-static"), expected);
        let ready = [("NodeClaim", "default-x"), ("Node", "n")];
        check(Level::INFO, "initialized nodeclaim", &ready, "ready | default-x: node n");
        check(Level::INFO, "deleting expired nodeclaim", &ready, "disrupt | Expired: default-x goes");
        check(Level::INFO, "deleted nodeclaim", &ready, "gone | default-x");
        let unhealthy = [("NodeClaim", "default-x"), ("condition", "Ready")];
        let expected = "disrupt | Unhealthy: default-x goes, condition Ready";
        check(Level::INFO, "deleting unhealthy node", &unhealthy, expected);
        let given_up = [("NodeClaim", "default-x"), ("reason", "registration_timeout")];
        check(Level::INFO, "giving up nodeclaim", &given_up, "give up | default-x: registration_timeout");
        check(Level::INFO, "registered nodeclaim", &ready, "");
    }

    #[test]
    fn a_disruption_says_why_what_goes_and_what_it_saves() {
        let nodes = |names: &[&str]| {
            let nodes: Vec<Value> = names
                .iter()
                .map(|name| {
                    serde_json::json!({
                        "Node": {"name": "n"}, "NodeClaim": {"name": name}, "instance-type": "c-4x",
                        "capacity-type": "spot",
                    })
                })
                .collect();
            Value::from(nodes).to_string()
        };
        for (command, decision, names, pods, replacements, expected) in [
            ("Empty/1: x", "delete", &["a"][..], "0", "0", "Empty: a goes, $0.04/hour saved"),
            (
                "Underutilized/1: x",
                "delete",
                &["a", "b"],
                "3",
                "0",
                "Underutilized: a, b go, 3 pods move, $0.08/hour saved",
            ),
            ("Drifted/1: x", "replace", &["a"], "1", "1", "Drifted: a replaced by 1 node, 1 pod moves"),
            (
                "Underutilized/1: x",
                "replace",
                &["a", "b", "c", "d", "e"],
                "12",
                "2",
                "Underutilized: a, b, c and 2 more replaced by 2 nodes, 12 pods move",
            ),
            ("Unhealthy/1: x", "reboot", &["a"], "2", "0", "Unhealthy: a rebooted, 2 pods move"),
        ] {
            let fields = [
                ("command", command),
                ("decision", decision),
                ("disrupted-nodes", &nodes(names)),
                ("pod-count", pods),
                ("replacement-node-count", replacements),
            ];
            check(Level::INFO, "disrupting node(s)", &fields, &format!("disrupt | {expected}"));
        }
    }

    #[test]
    fn what_goes_wrong_is_told_with_what_it_is_about() {
        let fields = [("NodeClaim", "default-x"), ("error", "no capacity\nin any zone")];
        let expected = "error | NodeClaim default-x: failed launching nodeclaim: no capacity; in any zone";
        check(Level::ERROR, "failed launching nodeclaim", &fields, expected);
        let fields = [("controller", "nodepool.hash"), ("error", "refused")];
        check(Level::ERROR, "Reconciler error", &fields, "error | nodepool.hash: refused");
        check(Level::WARN, "unexpected", &[], "warning | unexpected");
    }

    #[test]
    fn a_gate_that_is_off_is_named_with_the_flag_that_switches_it_on() {
        let fields = [("kind", "NodePool"), ("object", "fixed"), ("gate", "StaticCapacity")];
        let message = "spec.replicas has no effect, the feature gate StaticCapacity is off";
        let hint = "`--feature-gates StaticCapacity=true` switches it on";
        check(Level::INFO, message, &fields, &format!("gate | NodePool fixed: {message}; {hint}"));
    }

    fn stays_pending(teller: &mut Teller, pod: &str, why: &str, now: Instant) {
        let line = Line::new(Level::ERROR, "could not schedule pod", &[("Pod", pod), ("why", why)]);
        assert_eq!(teller.hear(&line, &Fleet, now), None);
    }

    fn taken(teller: &mut Teller) -> Vec<String> {
        teller.take().into_iter().map(|told| format!("{} | {}", told.verb, told.text)).collect()
    }

    #[test]
    fn pods_that_stay_pending_for_one_reason_are_one_line_and_told_once() {
        let (mut teller, now) = (Teller::default(), Instant::now());
        assert_eq!(teller.due(), None);
        for number in 0..5 {
            stays_pending(&mut teller, &format!("default/web-{number}"), "too large", now);
        }
        stays_pending(&mut teller, "default/gpu", "no such GPU", now);
        assert_eq!(teller.due(), Some(now + GATHER));
        assert_eq!(
            taken(&mut teller),
            [
                "pending | default/gpu: no such GPU",
                "pending | 5 pods (default/web-0, default/web-1, default/web-2 and 2 more): too large",
            ]
        );
        stays_pending(&mut teller, "default/gpu", "no such GPU", now);
        assert_eq!((taken(&mut teller), teller.due()), (Vec::new(), None));
        stays_pending(&mut teller, "default/gpu", "limits", now);
        assert_eq!(taken(&mut teller), ["pending | default/gpu: limits"]);
    }

    #[test]
    fn a_sentence_is_not_repeated_for_a_while() {
        let (mut teller, now) = (Teller::default(), Instant::now());
        let line = Line::new(Level::INFO, "no nodepools found", &[("pods", "2")]);
        let first = teller.hear(&line, &Fleet, now).expect("it is new");
        assert!(first.text.starts_with("2 pods: there is no NodePool"), "{}", first.text);
        assert_eq!(teller.hear(&line, &Fleet, now + Duration::from_secs(10)), None);
        assert!(teller.hear(&line, &Fleet, now + SILENCE).is_some());
        let gone = Line::new(Level::INFO, "deleted nodeclaim", &[("NodeClaim", "a")]);
        assert!(teller.hear(&gone, &Fleet, now).is_some() && teller.hear(&gone, &Fleet, now).is_some());
    }
}

//! What must never happen, seen from outside: from what the API shows and what the operator asks it for. Nothing of
//! the code under test is used here.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::budgets::Moment;
use crate::limits::Exceeding;
use crate::log::{Entry, What};
use crate::objects::{is_leaving, is_protected, is_tainted, is_true, name, protection, reason_of, text};
use crate::order::Order;

/// For so long the operator may not have heard of something yet.
pub(crate) const UNHEARD: SignedDuration = SignedDuration::from_secs(10);
/// How much of what happened is told of a failure.
const STORY: usize = 60;

/// The cluster as it was shown so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By kind and name.
    objects: BTreeMap<(String, String), Object>,
    /// How often something was looked at, so that tests can tell that they have seen anything.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    pub(crate) exceeding: Exceeding,
    /// Claims whose node was given up by choice, and how their pool was then.
    pub(crate) given_up: BTreeMap<String, Moment>,
    pub(crate) order: Order,
    /// When nodes were last given up to save money.
    moved: Option<Timestamp>,
    story: VecDeque<String>,
}

#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) value: Value,
    /// Since when a pod or node is protected, or a budget as it is.
    pub(crate) since: Timestamp,
}

/// Whether everything is as before that needs some time to be heard of.
fn is_same(before: &Value, now: &Value, at: Timestamp) -> bool {
    let same = |path: &str| before.pointer(path) == now.pointer(path);
    match text(now, "/kind") {
        "Pod" => is_protected(before, at) == is_protected(now, at) && same("/spec/nodeName"),
        "Node" => protection(before) == protection(now),
        "PodDisruptionBudget" => same("/spec") && same("/status/disruptionsAllowed"),
        _ => same("/spec"),
    }
}

impl Seen {
    pub(crate) fn object(&self, kind: &str, name: &str) -> Option<&Object> {
        self.objects.get(&(kind.to_owned(), name.to_owned()))
    }

    pub(crate) fn get(&self, kind: &str, name: &str) -> Option<&Value> {
        self.object(kind, name).map(|object| &object.value)
    }

    pub(crate) fn all<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s Object> {
        self.objects.iter().filter(move |((of, _), _)| of == kind).map(|(_, object)| object)
    }

    pub(crate) fn claim_of(&self, node: &Value) -> Option<&Value> {
        let id = text(node, "/spec/providerID");
        self.all("NodeClaim").map(|it| &it.value).find(|claim| text(claim, "/status/providerID") == id)
    }

    pub(crate) fn node_of(&self, claim: &Value) -> Option<&Value> {
        let id = text(claim, "/status/providerID");
        let is_of_claim = |node: &&Value| !id.is_empty() && text(node, "/spec/providerID") == id;
        self.all("Node").map(|it| &it.value).find(is_of_claim)
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn tell(&mut self, at: Timestamp, what: &str) {
        if self.story.len() == STORY {
            self.story.pop_front();
        }
        self.story.push_back(format!("  {at} {what}\n"));
    }

    /// What happened lately, for failures.
    pub(crate) fn story(&self) -> String {
        self.story.iter().map(String::as_str).collect()
    }

    /// Takes note of something that happened; what is wrong with it, if anything.
    pub(crate) fn note(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::Applied(value) => {
                let key = (text(value, "/kind").to_owned(), name(value));
                let before = self.objects.get(&key);
                let same = before.filter(|before| is_same(&before.value, value, entry.at));
                let since = same.map_or(entry.at, |before| before.since);
                let before = before.map(|before| before.value.clone()).unwrap_or_default();
                self.objects.insert(key, Object { value: value.clone(), since });
                match text(value, "/kind") {
                    "Node" => {
                        self.see_node(&before, value, entry.at);
                        Ok(())
                    }
                    "NodeClaim" => self.see_claim(&before, value, entry.at),
                    "Event" => self.see_event(value),
                    _ => Ok(()),
                }
            }
            What::Gone(value) => {
                let (kind, name) = (text(value, "/kind"), name(value));
                if kind == "NodeClaim" {
                    self.tell(entry.at, &format!("NodeClaim {name} is gone"));
                    self.given_up.remove(&name);
                    self.order.keep(&name);
                }
                self.objects.remove(&(kind.to_owned(), name));
                Ok(())
            }
            What::Asked(method, path) => {
                if method != http::Method::PATCH && !path.ends_with("/events") {
                    self.tell(entry.at, &format!("{method} {path}"));
                }
                self.check_request(method, path, entry.at)
            }
        }
    }

    /// Notes which nodes are given up by choice. Nodes that go anyway are tainted, too, so that they drain.
    fn see_node(&mut self, before: &Value, node: &Value, at: Timestamp) {
        let Some(claim) = self.claim_of(node).filter(|claim| !is_leaving(claim)) else { return };
        let claim = name(claim);
        match (is_tainted(before), is_tainted(node)) {
            _ if is_leaving(node) => {}
            (false, true) => {
                self.count("nodes given up");
                self.tell(at, &format!("node {} of {claim} is tainted", name(node)));
                // It counts itself.
                self.given_up.insert(claim.clone(), self.moment(node, at));
                self.given_up.insert(claim, self.moment(node, at));
            }
            (true, false) => {
                self.tell(at, &format!("node {} of {claim} is not tainted any more", name(node)));
                self.given_up.remove(&claim);
            }
            _ => {}
        }
    }

    fn see_claim(&mut self, before: &Value, claim: &Value, at: Timestamp) -> Result<(), String> {
        let name = name(claim);
        if before.is_null() {
            self.tell(at, &format!("NodeClaim {name} is created"));
            self.order.create(&name);
        }
        if is_leaving(claim) && !is_leaving(before) {
            self.tell(at, &format!("NodeClaim {name} is deleted"));
        }
        if is_true(claim, "Initialized") && !is_true(before, "Initialized") {
            self.tell(at, &format!("NodeClaim {name} is initialized"));
            self.order.initialize(&name);
        }
        self.check_limits(before, claim)?;
        match (reason_of(before), reason_of(claim)) {
            (old, new) if old == new => Ok(()),
            (_, "") => {
                self.tell(at, &format!("NodeClaim {name} is kept"));
                if self.order.keep(&name) {
                    self.count("commands taken back");
                }
                Ok(())
            }
            (_, reason) => {
                self.tell(at, &format!("NodeClaim {name} is given up ({reason})"));
                self.order.give_up(&name);
                self.check_given_up(claim, reason, at)
            }
        }
    }

    /// Whether a node may be given up for a reason. First the node is tainted, then its claim says why.
    fn check_given_up(&mut self, claim: &Value, reason: &str, at: Timestamp) -> Result<(), String> {
        let Some(node) = self.node_of(claim).filter(|node| !is_leaving(node)).cloned() else { return Ok(()) };
        if is_leaving(claim) {
            return Ok(());
        }
        let is_reboot = is_true(claim, "Rebooting");
        let moment = match self.given_up.get(&name(claim)) {
            Some(moment) if at.duration_since(moment.at) <= UNHEARD => moment.clone(),
            // It is left over from another time, or stays and is booted again.
            known if is_reboot || known.is_some() => self.moment(&node, at),
            _ => return Err(format!("(a) NodeClaim {} is given up ({reason}) before its node", name(claim))),
        };
        self.count(match reason {
            "Empty" => "given up as empty",
            "Underutilized" => "given up as underutilized",
            "Drifted" => "given up as drifted",
            _ if is_reboot => "booted again",
            _ => "given up as broken",
        });
        if reason == "Underutilized" && self.moved.replace(at) == Some(at) {
            self.count("moves of several nodes");
        }
        let is_up = text(&node, "/metadata/labels/karpenter.sh~1initialized") == "true";
        if reason == "Unhealthy" {
            self.check_breaker(&node, at)?;
        }
        if is_up {
            self.check_budget(&moment, reason)?;
        }
        self.check_protection(&node, reason, at)?;
        self.check_objections(claim, &node, reason, at)
    }

    fn see_event(&mut self, event: &Value) -> Result<(), String> {
        if text(event, "/reason") == "DisruptionLaunching" {
            self.count("replacements told of");
            self.order.replace(text(event, "/involvedObject/name"))?;
        }
        self.check_replacements()
    }

    /// Whether a node is on its way out.
    pub(crate) fn is_any_leaving(&self) -> bool {
        self.all("Node").any(|it| is_leaving(&it.value))
    }

    /// Nodes that are given up and do not go.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let nodes = self.all("Node").map(|it| &it.value).filter(|node| is_tainted(node) && !is_leaving(node));
        nodes.map(name).collect()
    }
}

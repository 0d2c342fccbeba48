//! How many nodes may be given up at the same time.

use jiff::Timestamp;
use serde_json::Value;

use crate::checks::{Seen, UNHEARD};
use crate::objects::{condition, duration, is_leaving, is_tainted, is_true, name, pool_of, text, time};

/// How a pool was when one of its nodes was given up.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Timestamp,
    pool: String,
    /// How many nodes it had.
    nodes: usize,
    /// How many of them went, that one included.
    going: usize,
    /// How many others were not ready.
    not_ready: usize,
}

impl Seen {
    /// How the pool of a node is now.
    pub(crate) fn moment(&self, node: &Value, at: Timestamp) -> Moment {
        let pool = pool_of(node);
        let mut moment = Moment { at, pool: pool.to_owned(), nodes: 0, going: 0, not_ready: 0 };
        for node in self.all("Node").map(|it| &it.value).filter(|node| pool_of(node) == pool) {
            let Some(claim) = self.claim_of(node) else { continue };
            let is_rebooting = is_true(claim, "Rebooting");
            let is_up = text(node, "/metadata/labels/karpenter.sh~1initialized") == "true";
            if !(is_up || is_rebooting) || is_true(claim, "InstanceTerminating") {
                continue;
            }
            moment.nodes += 1;
            let is_old =
                |since: Option<Timestamp>| since.is_some_and(|since| at.duration_since(since) > UNHEARD);
            // What others do is known only after a while.
            let goes_anyway = is_old(time(claim, "/metadata/deletionTimestamp"))
                || is_old(time(node, "/metadata/deletionTimestamp"));
            let is_given_up =
                self.given_up.contains_key(&name(claim)) && (is_tainted(node) || is_leaving(claim));
            if is_given_up || goes_anyway || is_rebooting {
                moment.going += 1;
            } else if condition(node, "Ready")
                .is_some_and(|ready| ready["status"] != "True" && is_old(time(ready, "/lastTransitionTime")))
            {
                moment.not_ready += 1;
            }
        }
        moment
    }

    /// Budgets hold whenever one more node is given up.
    pub(crate) fn check_budget(&self, moment: &Moment, reason: &str) -> Result<(), String> {
        let Moment { at, pool, nodes, going, not_ready } = moment;
        let spec = self.get("NodePool", pool).cloned().unwrap_or_default();
        let budgets = spec["spec"]["disruption"]["budgets"].as_array().cloned().unwrap_or_default();
        // A window may have opened since it was decided.
        let allowed =
            allowed(&budgets, reason, *nodes, *at).max(allowed(&budgets, reason, *nodes, *at - UNHEARD));
        // What repair is for does not keep it from working.
        let going = if reason == "Unhealthy" { *going } else { going + not_ready };
        if going > allowed {
            return Err(format!(
                "(a) {going} of {nodes} nodes of {pool} are given up or not ready, of which {allowed} may be ({reason})"
            ));
        }
        Ok(())
    }

    /// Where more than a fifth of a pool's nodes is broken, none of them is repaired.
    pub(crate) fn check_breaker(&self, node: &Value, at: Timestamp) -> Result<(), String> {
        let pool = pool_of(node);
        let nodes: Vec<&Value> =
            self.all("Node").map(|it| &it.value).filter(|it| pool_of(it) == pool).collect();
        let most = nodes.len().div_ceil(5);
        let has = |node: &Value, kind: &str, broken: &dyn Fn(&Value) -> bool| {
            condition(node, kind).is_some_and(|it| {
                let is_old = |since| at.duration_since(since) > UNHEARD;
                broken(&it["status"]) && time(it, "/lastTransitionTime").is_some_and(is_old)
            })
        };
        let is_broken = |node: &&&Value| {
            has(node, "Ready", &|status| *status != "True")
                || ["KWOKUnhealthy", "KWOKRebootRequired"]
                    .iter()
                    .any(|kind| has(node, kind, &|status| *status == "True"))
        };
        let broken = nodes.iter().filter(is_broken).count();
        if broken > most {
            return Err(format!(
                "(a) {broken} of {} nodes of {pool} are broken, and one is repaired",
                nodes.len()
            ));
        }
        Ok(())
    }
}

/// How many nodes budgets allow to go at a time for a reason.
fn allowed(budgets: &[Value], reason: &str, nodes: usize, at: Timestamp) -> usize {
    let concerns = |budget: &&Value| {
        let reasons = budget["reasons"].as_array();
        reasons.is_none_or(|reasons| reasons.iter().any(|it| it == reason)) && is_open(budget, at)
    };
    let allowed = budgets.iter().filter(concerns).map(|budget| {
        let written = text(budget, "/nodes");
        match written.strip_suffix('%') {
            Some(percent) => (nodes * percent.parse::<usize>().unwrap_or(0)).div_ceil(100),
            None => written.parse().unwrap_or(0),
        }
    });
    allowed.min().unwrap_or(usize::MAX)
}

/// Whether a budget applies now. Schedules are such as `20 * * * *`: once an hour.
fn is_open(budget: &Value, at: Timestamp) -> bool {
    let Some(schedule) = budget["schedule"].as_str() else { return true };
    let minute: i64 = schedule.split(' ').next().and_then(|it| it.parse().ok()).expect("once an hour");
    let length = duration(text(budget, "/duration")).expect("budgets last for a while");
    (at.as_second() - minute * 60).rem_euclid(3600) < length.as_secs()
}

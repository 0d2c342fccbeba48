//! What pools may have.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::checks::{Object, Seen};
use crate::objects::{is_leaving, milli, name, pool_of, processors};

/// Claims with which a pool had too much, those on their way out included, and what is wrong then.
pub(crate) type Exceeding = BTreeMap<String, String>;

/// By how much some claims are too many, in words.
fn excess(limits: &Value, claims: &[&Value]) -> Option<String> {
    let used: i64 = claims.iter().filter_map(|claim| processors(claim)).sum();
    if !limits["cpu"].is_null() && used > milli(&limits["cpu"]) {
        return Some(format!("has {used}m processors, and may have {}", limits["cpu"]));
    }
    let most = limits["nodes"].as_str()?.parse::<usize>().ok()?;
    (claims.len() > most).then(|| format!("has {} nodes, and may have {most}", claims.len()))
}

impl Seen {
    /// A pool never has more than it may have. Nodes that are given up or on their way out do not count where pods wait
    /// for a node, but they do where one comes for another.
    pub(crate) fn check_limits(&mut self, before: &Value, claim: &Value) -> Result<(), String> {
        if !before.is_null() && processors(before) == processors(claim) {
            return Ok(());
        }
        let pool = pool_of(claim).to_owned();
        let Some(limits) = self.get("NodePool", &pool).map(|pool| pool["spec"]["limits"].clone()) else {
            return Ok(());
        };
        if limits.is_null() {
            return Ok(());
        }
        self.count("claims of limited pools");
        let of_pool = |it: &&Object| pool_of(&it.value) == pool;
        let claims: Vec<&Value> = self.all("NodeClaim").filter(of_pool).map(|it| &it.value).collect();
        let goes = |claim: &Value| is_leaving(claim) || self.given_up.contains_key(&name(claim));
        let staying: Vec<&Value> = claims.iter().copied().filter(|claim| !goes(claim)).collect();
        let (all, staying) = (excess(&limits, &claims), excess(&limits, &staying));
        if let Some(wrong) = staying {
            return Err(format!("(d) with {} NodePool {pool} {wrong}", name(claim)));
        }
        if let Some(wrong) = all {
            self.exceeding.insert(name(claim), format!("(d) with {} NodePool {pool} {wrong}", name(claim)));
        }
        self.check_replacements()
    }

    /// What comes for another node never exceeds a limit.
    pub(crate) fn check_replacements(&self) -> Result<(), String> {
        match self.exceeding.iter().find(|(claim, _)| self.order.is_replacement(claim)) {
            Some((_, wrong)) => Err(wrong.clone()),
            None => Ok(()),
        }
    }
}

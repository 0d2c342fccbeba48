//! What NodePools have and may at most get, change by change, seen from outside: from what the API shows. Of the code
//! under test only the sizes of instance types are used.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cluster::instance_types::InstanceType;
use serde_json::Value;
use units::Quantity;

use crate::log::{Entry, What};

/// How much of what happened is told of a failure.
const STORY: usize = 50;
/// The resources that are limited.
const LIMITED: [&str; 3] = ["cpu", "memory", "nodes"];

/// Amounts by resource.
type Amounts = BTreeMap<&'static str, i128>;

/// A claim as far as limits are concerned.
#[derive(Clone, Debug)]
struct Claim {
    pool: String,
    provider_id: String,
    /// What it has, or may at most become.
    amounts: Amounts,
    is_launched: bool,
    is_deleted: bool,
}

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What an instance of a type has.
    sizes: BTreeMap<String, Amounts>,
    limits: BTreeMap<String, Amounts>,
    claims: BTreeMap<String, Claim>,
    /// The instances of nodes that are given up.
    given_up: BTreeSet<String>,
    /// What a pool may have of a resource by now: its limit, or what it had when that was lowered, as long as it has it.
    allowed: BTreeMap<(String, &'static str), i128>,
    /// Claims with which a pool had too much, if all that are on their way out count.
    exceeding: BTreeMap<String, String>,
    /// Claims that came for another node.
    replacements: BTreeSet<String>,
    /// How often something was seen, so that tests can tell that they have seen anything.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    story: VecDeque<String>,
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn amount(value: &Value) -> Option<i128> {
    let written = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    written.parse::<Quantity>().ok().map(Quantity::nanos)
}

fn amounts(value: &Value) -> Amounts {
    LIMITED.iter().filter_map(|name| Some((*name, amount(value.get(name)?)?))).collect()
}

/// One node.
fn one() -> i128 {
    amount(&"1".into()).unwrap_or_default()
}

impl Ledger {
    pub(crate) fn new(types: &[InstanceType]) -> Self {
        let size = |it: &InstanceType| {
            let amounts = LIMITED.iter().map(|name| (*name, it.capacity.amount(name).nanos())).collect();
            (it.name.clone(), amounts)
        };
        Self { sizes: types.iter().map(size).collect(), ..Self::default() }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn tell(&mut self, what: String) {
        if self.story.len() == STORY {
            self.story.pop_front();
        }
        self.story.push_back(what);
    }

    /// What happened lately, for failures.
    pub(crate) fn story(&self) -> String {
        self.story.iter().flat_map(|line| ["  ", line, "\n"]).collect()
    }

    /// Takes note of something that happened; what is wrong with it, if anything.
    pub(crate) fn note(&mut self, entry: &Entry) -> Result<(), String> {
        let (value, is_gone) = match &entry.what {
            What::Applied(value) => (value, false),
            What::Gone(value) => (value, true),
            What::Asked(..) => return Ok(()),
        };
        let name = text(value, "/metadata/name").to_owned();
        match text(value, "/kind") {
            "NodePool" => {
                self.see_pool(&name, value, is_gone, entry);
                Ok(())
            }
            "Node" => {
                self.see_node(value, is_gone, entry);
                Ok(())
            }
            "NodeClaim" => self.see_claim(&name, value, is_gone, entry),
            "Event" if text(value, "/reason") == "DisruptionLaunching" => {
                let claim = text(value, "/involvedObject/name").to_owned();
                if self.replacements.insert(claim.clone()) {
                    self.count("replacements");
                }
                self.exceeding.get(&claim).map_or(Ok(()), |wrong| Err(wrong.clone()))
            }
            _ => Ok(()),
        }
    }

    fn see_pool(&mut self, name: &str, pool: &Value, is_gone: bool, entry: &Entry) {
        let limits = if is_gone { Amounts::new() } else { amounts(&pool["spec"]["limits"]) };
        let before = self.limits.insert(name.to_owned(), limits.clone());
        if before.as_ref() != Some(&limits) {
            self.tell(format!("{} NodePool {name} may have {}", entry.at, pool["spec"]["limits"]));
            if before.is_some() {
                self.count("limits changed");
            }
            self.allow(name);
        }
    }

    /// Notes which nodes are given up: what comes for waiting pods meanwhile may take their share.
    fn see_node(&mut self, node: &Value, is_gone: bool, entry: &Entry) {
        let id = text(node, "/spec/providerID").to_owned();
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let is_tainted = taints.into_iter().any(|taint| taint["key"] == "karpenter.sh/disrupted");
        let goes = is_gone || is_tainted || !node["metadata"]["deletionTimestamp"].is_null();
        let claim = self.claims.iter().find(|(_, claim)| claim.provider_id == id);
        let claim = claim.map(|(name, claim)| (name.clone(), claim.pool.clone()));
        if goes && self.given_up.insert(id.clone()) {
            self.tell(format!("{} node of {claim:?} is given up", entry.at));
            self.count("nodes given up");
        } else if !goes && self.given_up.remove(&id) {
            self.tell(format!("{} node of {claim:?} stays", entry.at));
            self.count("nodes that stay after all");
            // Something may have come in its place.
            if let Some((_, pool)) = claim {
                self.allow(&pool);
            }
        }
    }

    fn see_claim(&mut self, name: &str, value: &Value, is_gone: bool, entry: &Entry) -> Result<(), String> {
        if is_gone {
            self.tell(format!("{} NodeClaim {name} is gone", entry.at));
            if let Some(claim) = self.claims.remove(name) {
                self.shrink(&claim.pool);
            }
            return Ok(());
        }
        let claim = self.read(value);
        let pool = claim.pool.clone();
        let before = self.claims.insert(name.to_owned(), claim.clone());
        if before.as_ref().is_none_or(|before| before.is_deleted != claim.is_deleted) {
            let what = if claim.is_deleted { "is deleted" } else { "is created" };
            self.tell(format!("{} NodeClaim {name} {what}: {:?}", entry.at, claim.amounts));
        }
        if before.is_none() {
            self.count("claims");
            if self.is_limited(&pool) {
                self.count("claims of limited pools");
            }
            if let Some(wrong) = self.excess(&pool, true) {
                self.exceeding.insert(name.to_owned(), format!("replacement {name}: {wrong}"));
            }
        } else if claim.is_launched && before.is_some_and(|before| !before.is_launched) {
            self.count("launches");
        }
        if let Some(wrong) = self.excess(&pool, false) {
            return Err(format!("with NodeClaim {name}: {wrong}"));
        }
        self.shrink(&pool);
        match self.exceeding.get(name).filter(|_| self.replacements.contains(name)) {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(()),
        }
    }

    fn read(&self, claim: &Value) -> Claim {
        let provider_id = text(claim, "/status/providerID").to_owned();
        let is_launched = !provider_id.is_empty();
        let mut has = if is_launched { amounts(&claim["status"]["capacity"]) } else { self.most(claim) };
        has.insert("nodes", one());
        Claim {
            pool: text(claim, "/metadata/labels/karpenter.sh~1nodepool").to_owned(),
            provider_id,
            amounts: has,
            is_launched,
            is_deleted: !claim["metadata"]["deletionTimestamp"].is_null(),
        }
    }

    /// The most of each resource that a claim may become. Claims of pools of a fixed size name no types; such pools
    /// limit only how many nodes there are.
    fn most(&self, claim: &Value) -> Amounts {
        let requirements = claim["spec"]["requirements"].as_array().into_iter().flatten();
        let of_types = requirements
            .filter(|it| it["key"] == "node.kubernetes.io/instance-type" && it["operator"] == "In");
        let mut most = Amounts::new();
        for name in of_types.flat_map(|it| it["values"].as_array().into_iter().flatten()) {
            for (resource, amount) in self.sizes.get(name.as_str().unwrap_or_default()).into_iter().flatten()
            {
                let known = most.entry(*resource).or_default();
                *known = (*known).max(*amount);
            }
        }
        most
    }

    fn is_limited(&self, pool: &str) -> bool {
        self.limits.get(pool).is_some_and(|limits| !limits.is_empty())
    }

    /// What a pool has of a resource; without what is on its way out unless asked for.
    fn used(&self, pool: &str, resource: &str, with_leaving: bool) -> i128 {
        let goes = |claim: &Claim| claim.is_deleted || self.given_up.contains(&claim.provider_id);
        let claims =
            self.claims.values().filter(|claim| claim.pool == pool && (with_leaving || !goes(claim)));
        claims.map(|claim| claim.amounts.get(resource).copied().unwrap_or_default()).sum()
    }

    /// What a pool has too much, in words. With what is on its way out it is never right to be above the limit.
    fn excess(&self, pool: &str, with_leaving: bool) -> Option<String> {
        self.limits.get(pool)?.iter().find_map(|(resource, limit)| {
            let used = self.used(pool, resource, with_leaving);
            let allowed = self.allowed.get(&(pool.to_owned(), resource)).filter(|_| !with_leaving);
            let allowed = *allowed.unwrap_or(limit);
            (used > allowed).then(|| {
                let scale = one();
                format!(
                    "NodePool {pool} has {} {resource} and may have {} (limit {}), all in thousandths",
                    used * 1000 / scale,
                    allowed * 1000 / scale,
                    limit * 1000 / scale
                )
            })
        })
    }

    /// What a pool has now it may keep.
    fn allow(&mut self, pool: &str) {
        for (resource, limit) in self.limits.get(pool).cloned().unwrap_or_default() {
            let used = self.used(pool, resource, false);
            self.allowed.insert((pool.to_owned(), resource), limit.max(used));
        }
    }

    /// What a pool has lost it does not get back above its limit.
    fn shrink(&mut self, pool: &str) {
        for (resource, limit) in self.limits.get(pool).cloned().unwrap_or_default() {
            let used = self.used(pool, resource, false);
            let allowed = self.allowed.entry((pool.to_owned(), resource)).or_insert(limit);
            *allowed = limit.max(used.min(*allowed));
        }
    }

    /// What could change a decision: which claims there are, and what is to become of them.
    pub(crate) fn condition(&self) -> Vec<(String, bool, bool)> {
        let goes = |claim: &Claim| claim.is_deleted || self.given_up.contains(&claim.provider_id);
        self.claims.iter().map(|(name, claim)| (name.clone(), claim.is_launched, goes(claim))).collect()
    }
}

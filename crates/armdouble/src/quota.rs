//! How many cores a subscription may use, and how many it does.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::lists;
use crate::skus;
use crate::world::{World, text};

/// All cores of the region.
const CORES: &str = "cores";
/// Cores of spot machines.
const LOW_PRIORITY: &str = "lowPriorityCores";
/// Enough for any test that is not about quota.
const PLENTY: i64 = 100_000;

/// What a virtual machine uses.
#[derive(Clone, Debug)]
struct Used {
    family: String,
    cores: i64,
    is_spot: bool,
}

/// How many cores may be used, and how many are.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    limits: BTreeMap<String, i64>,
    elsewhere: BTreeMap<String, i64>,
    machines: BTreeMap<String, Used>,
}

impl Quota {
    /// Limits a family such as `standardDSv3Family`, all `cores`, or `lowPriorityCores`.
    pub fn limit(&mut self, name: &str, limit: i64) {
        self.limits.insert(name.to_owned(), limit);
    }

    /// So many cores are used by something else.
    pub fn elsewhere(&mut self, name: &str, cores: i64) {
        self.elsewhere.insert(name.to_owned(), cores);
    }

    /// The limit of a family, of `cores`, or of `lowPriorityCores`.
    pub fn limit_of(&self, name: &str) -> i64 {
        self.limits.get(name).copied().unwrap_or(PLENTY)
    }

    /// How many cores are used of a family, of `cores`, or of `lowPriorityCores`.
    pub fn used(&self, name: &str) -> i64 {
        let counts = |used: &&Used| match name {
            CORES => !used.is_spot,
            LOW_PRIORITY => used.is_spot,
            family => !used.is_spot && used.family == family,
        };
        let machines: i64 = self.machines.values().filter(counts).map(|used| used.cores).sum();
        machines + self.elsewhere.get(name).copied().unwrap_or(0)
    }

    /// Counts a machine that does not count any more when it is gone or failed.
    pub(crate) fn take(&mut self, id: &str, sku: &Value, is_spot: bool) {
        let used = Used { family: text(sku, "/family").to_owned(), cores: skus::cores(sku), is_spot };
        self.machines.insert(id.to_ascii_lowercase(), used);
    }

    pub(crate) fn release(&mut self, id: &str) {
        self.machines.remove(&id.to_ascii_lowercase());
    }

    /// Whether a machine fits; the first limit that it would exceed is named.
    pub(crate) fn check(&self, sku: &Value, is_spot: bool, location: &str) -> Result<(), Refusal> {
        let needed = skus::cores(sku);
        let family = text(sku, "/family");
        let limits = if is_spot {
            vec![(LOW_PRIORITY, "LowPriorityCores".to_owned())]
        } else {
            vec![(CORES, "Total Regional Cores".to_owned()), (family, format!("{family} Cores"))]
        };
        for (name, words) in limits {
            let (limit, used) = (self.limit_of(name), self.used(name));
            if used + needed > limit {
                return Err(exceeded(&words, location, limit, used, needed));
            }
        }
        Ok(())
    }
}

fn exceeded(words: &str, location: &str, limit: i64, used: i64, needed: i64) -> Refusal {
    Refusal::new(
        409,
        "OperationNotAllowed",
        format!(
            "Operation could not be completed as it results in exceeding approved {words} quota. Additional details - \
             Deployment Model: Resource Manager, Location: {location}, Current Limit: {limit}, Current Usage: {used}, \
             Additional Required: {needed}, (Minimum) New Limit Required: {}.",
            used + needed
        ),
    )
}

pub(crate) fn list(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let location = call.route.location.as_deref().unwrap_or_default().to_ascii_lowercase();
    let skus = world.skus.of(&location);
    if skus.is_empty() {
        return Err(Refusal::new(
            400,
            "NoRegisteredProviderFound",
            format!("No registered resource provider found for location '{location}'."),
        ));
    }
    let mut names = vec![CORES.to_owned(), LOW_PRIORITY.to_owned()];
    let mut families: Vec<String> = skus.iter().map(|sku| text(sku, "/family").to_owned()).collect();
    families.sort_unstable();
    families.dedup();
    names.extend(families.into_iter().filter(|family| !family.is_empty()));
    let all = names.iter().map(|name| {
        let words = match name.as_str() {
            CORES => "Total Regional vCPUs".to_owned(),
            LOW_PRIORITY => "Total Regional Low-priority vCPUs".to_owned(),
            family => format!("{family} vCPUs"),
        };
        json!({
            "unit": "Count", "currentValue": world.quota.used(name), "limit": world.quota.limit_of(name),
            "name": {"value": name, "localizedValue": words},
        })
    });
    Ok(lists::page(call, all.collect(), world.settings.page_size))
}

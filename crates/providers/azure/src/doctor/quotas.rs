//! Which sizes there are, and how many processors the subscription may still use: most launches that fail do because of
//! the quota of a family.

use std::collections::BTreeMap;

use cloud::doctor::Check;

use crate::arm::Error;
use crate::arm::types::sku::{ResourceSku, Usage};
use crate::sku::Catalogue;

/// From which percentage on a quota is worth a look.
const NEARLY_USED: i64 = 80;
/// All processors of a region that are paid by use, and those on the spot market.
const OF_REGION: [(&str, &str); 2] =
    [("cores", "vCPUs of the region"), ("lowPriorityCores", "spot vCPUs of the region")];
/// How to get more.
const MORE: &str = "ask for more under Quotas in the portal, or with `az quota`";

/// How many processors may be used, and are.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    limit: i64,
    used: i64,
}

impl Allowance {
    const fn left(self) -> i64 {
        self.limit.saturating_sub(self.used)
    }

    fn is_nearly_used(self) -> bool {
        self.used.saturating_mul(100) >= self.limit.saturating_mul(NEARLY_USED)
    }
}

/// What is said about sizes and quotas.
pub(super) fn report(
    skus: &Result<Vec<ResourceSku>, Error>,
    usages: &Result<Vec<Usage>, Error>,
    location: &str,
) -> Vec<Check> {
    let catalogue = match skus {
        Ok(skus) => Catalogue::read(skus, location).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let catalogue = match catalogue {
        Ok(catalogue) => catalogue,
        Err(message) => {
            let advice =
                "the role Virtual Machine Contributor or Reader in the subscription, and an existing region";
            return vec![Check::bad("sizes", message, advice)];
        }
    };
    let (usable, left_out) = (catalogue.skus().len(), catalogue.left_out().len());
    let message = format!("{usable} can be used for nodes in {location}, {left_out} cannot");
    let mut checks = vec![Check::good("sizes", message)];
    match usages {
        Ok(usages) => checks.extend(of_usages(&catalogue, &allowances(usages))),
        Err(error) => {
            let advice = "quotas are then found out by launches that fail";
            checks.push(Check::warning("quotas", format!("they cannot be read, {error}"), advice));
        }
    }
    checks
}

fn allowances(usages: &[Usage]) -> BTreeMap<String, Allowance> {
    let one = |usage: &Usage| {
        let name = usage.name.as_ref()?.value.clone()?;
        Some((name, Allowance { limit: usage.limit?, used: usage.current_value? }))
    };
    usages.iter().filter_map(one).collect()
}

fn of_usages(catalogue: &Catalogue, all: &BTreeMap<String, Allowance>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut smallest: BTreeMap<&str, i64> = BTreeMap::new();
    for sku in catalogue.skus() {
        let least = smallest.entry(&sku.family).or_insert(sku.vcpus);
        *least = sku.vcpus.min(*least);
    }
    let least = smallest.values().min().copied().unwrap_or_default();
    for (name, about) in OF_REGION {
        let Some(allowance) = all.get(name) else { continue };
        let message = format!("{} of {} are used", allowance.used, allowance.limit);
        checks.push(if allowance.left() < least && name == "cores" {
            Check::bad(about, message, MORE)
        } else if allowance.is_nearly_used() {
            Check::warning(about, message, MORE)
        } else {
            Check::good(about, message)
        });
    }
    let known = smallest.iter().filter_map(|(family, least)| Some((*family, *least, *all.get(*family)?)));
    let known: Vec<(&str, i64, Allowance)> = known.collect();
    let room = known.iter().filter(|(_, least, allowance)| allowance.left() >= *least).count();
    // Families that a subscription may not use at all are many, and nobody expects anything of them.
    let tight: Vec<String> = known
        .iter()
        .filter(|(_, least, of)| of.limit > 0 && (of.left() < *least || of.is_nearly_used()))
        .map(|(family, _, of)| format!("{family} ({} of {})", of.used, of.limit))
        .collect();
    let about = "quotas of families";
    let message = format!("{room} of {} have room for a node", known.len());
    if room == 0 && !known.is_empty() {
        checks.push(Check::bad(about, message, MORE));
    } else if tight.is_empty() {
        checks.push(Check::good(about, message));
    } else {
        checks.push(Check::warning(about, format!("{message}; nearly used: {}", tight.join(", ")), MORE));
    }
    checks
}

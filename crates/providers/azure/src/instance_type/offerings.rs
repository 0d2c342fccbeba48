//! Where and how an instance type can be bought, for how much, and whether at present.

use api::names::labels::{self, azure};
use api::names::values::capacity_type;
use cluster::instance_types::Offering;
use jiff::Timestamp;

use crate::prices::Prices;
use crate::quota::{Quota, Shortage};
use crate::requirements::within;
use crate::sku::{Sku, is_known_family, is_known_name};
use crate::unavailable::{Asked, Unavailable};
use crate::zone::Scope;

/// The price of what nobody knows the price of: it is the last choice, and still one.
pub const UNKNOWN_PRICE: f64 = 999.0;

/// How machines can be bought.
const CAPACITY_TYPES: [&str; 2] = [capacity_type::ON_DEMAND, capacity_type::SPOT];

/// What changes from minute to minute.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// What machines cost.
    pub prices: &'a Prices,
    /// What was not to be had when it was last asked for.
    pub unavailable: &'a Unavailable,
    /// How much the subscription may still use.
    pub quota: &'a Quota,
    /// The time.
    pub now: Timestamp,
}

/// Why a machine cannot be had at present.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Azure does not sell the size like this.
    #[error("the size is not sold as spot")]
    NotSold,
    /// Azure did not have it.
    #[error("Azure did not have it, and is not asked again before {until}")]
    Unavailable {
        /// When it is tried again.
        until: Timestamp,
    },
    /// The subscription allows no more.
    #[error(transparent)]
    Quota(#[from] Shortage),
}

/// Why a machine of a size cannot be had in a zone at present; none if it can.
pub fn obstacle(sku: &Sku, zone: &str, kind: &str, market: &Market<'_>) -> Option<Obstacle> {
    if kind == capacity_type::SPOT && !sku.spot {
        return Some(Obstacle::NotSold);
    }
    let asked = Asked::of(sku, zone, kind);
    if let Some(until) = market.unavailable.until(&asked, market.now) {
        return Some(Obstacle::Unavailable { until });
    }
    market.quota.check(&asked).err().map(Obstacle::Quota)
}

/// Everywhere and every way a size can be bought, with whether it can be had at present.
pub fn offerings(sku: &Sku, market: &Market<'_>) -> Vec<Offering> {
    let mut all = Vec::new();
    for zone in sku.placements() {
        let ultra_ssd: &[&str] = if sku.has_ultra_ssd(zone) { &["true", "false"] } else { &["false"] };
        for kind in CAPACITY_TYPES {
            let paid = priority(kind);
            all.push(Offering {
                requirements: vec![
                    within(labels::CAPACITY_TYPE, [kind]),
                    within(labels::ZONE, [zone]),
                    within(azure::PLACEMENT_SCOPE, [Scope::of(zone).as_str()]),
                    within(azure::AKS_SCALE_SET_PRIORITY, [paid]),
                    within(azure::AKS_PRIORITY, [paid]),
                    within(azure::SKU_STORAGE_ULTRA_SSD, ultra_ssd.iter().copied()),
                ],
                price: price(sku, kind, market.prices),
                available: obstacle(sku, zone, kind, market).is_none(),
                ..Offering::default()
            });
        }
    }
    all
}

/// How AKS calls a capacity type.
pub fn priority(kind: &str) -> &'static str {
    if kind == capacity_type::SPOT { "spot" } else { "regular" }
}

/// What an hour costs, wherever it is in the region. A family that came after our tables is the last choice until
/// somebody has tried it: a NodeOverlay can say its price.
fn price(sku: &Sku, kind: &str, prices: &Prices) -> f64 {
    let known =
        if kind == capacity_type::SPOT { prices.spot(&sku.name) } else { prices.on_demand(&sku.name) };
    let is_tried = is_known_name(&sku.name) || is_known_family(&sku.family);
    known.filter(|_| is_tried).unwrap_or(UNKNOWN_PRICE)
}

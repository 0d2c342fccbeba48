//! What it means that Azure did not start a machine: what is not asked for again, for how long, and what the claim is
//! told.

use std::time::Duration;

use api::names::reasons::azure as reasons;
use api::names::values::capacity_type;
use cloud::Error;
use jiff::Timestamp;

use crate::arm;
use crate::sku::Sku;
use crate::unavailable::{Asked, Unavailable};
use crate::zone::Scope;

const QUOTA_LOW: Duration = Duration::from_mins(10);
const QUOTA_ZERO: Duration = Duration::from_hours(1);
const NO_CAPACITY: Duration = Duration::from_hours(1);
const NOT_SOLD_AS_SPOT: Duration = Duration::from_hours(1);
const NOT_SOLD: Duration = Duration::from_hours(23);
const BOTH: [&str; 2] = [capacity_type::ON_DEMAND, capacity_type::SPOT];

/// What Azure says of whatever is beyond a quota, and of some other things.
const OPERATION_NOT_ALLOWED: &str = "OperationNotAllowed";

/// Where users ask for more.
const QUOTA_HELP: &str = "https://learn.microsoft.com/azure/quotas/per-vm-quota-requests";

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The size.
    pub sku: &'a Sku,
    /// The zone, as labels name it.
    pub zone: &'a str,
    /// The capacity type.
    pub capacity_type: &'a str,
}

/// What Azure answered.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The machine-readable reason.
    pub code: &'a str,
    /// Everything that was said, the body of the answer included.
    pub text: &'a str,
}

impl Refusal<'_> {
    /// Whether the subscription may not use as much as was asked for.
    pub fn is_about_quota(&self) -> bool {
        self.code == OPERATION_NOT_ALLOWED
    }
}

impl<'a> From<&'a arm::Error> for Refusal<'a> {
    fn from(error: &'a arm::Error) -> Self {
        Self { code: &error.code, text: &error.message }
    }
}

/// Something that is not asked for again for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Everything on the spot market.
    Spot {
        /// For how long.
        kept: Duration,
    },
    /// The size that was asked for, and larger ones of its family.
    Offering {
        /// The zone.
        zone: String,
        /// The capacity type.
        capacity_type: &'static str,
        /// For how long.
        kept: Duration,
    },
}

/// What follows from a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What is not asked for again.
    pub marks: Vec<Mark>,
    /// What the claim is told.
    pub error: Error,
}

impl Meaning {
    /// Notes what is not asked for again.
    pub fn apply(&self, sku: &Sku, unavailable: &mut Unavailable, now: Timestamp) {
        for mark in &self.marks {
            match mark {
                Mark::Spot { kept } => unavailable.mark_spot(*kept, now),
                Mark::Offering { zone, capacity_type, kept } => {
                    unavailable.mark(&Asked::of(sku, zone, capacity_type), *kept, now);
                }
            }
        }
    }
}

/// Which offerings of a size a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// The zone that was asked for.
    Here,
    /// All zones, or the region, whichever was asked for.
    Scope,
    /// All zones and the region.
    Everywhere,
}

impl Attempt<'_> {
    fn marks(&self, places: Places, kinds: &[&'static str], kept: Duration) -> Vec<Mark> {
        let scope = Scope::of(self.zone);
        let is_meant = |zone: &&str| match places {
            Places::Here => *zone == self.zone,
            Places::Scope => Scope::of(zone) == scope,
            Places::Everywhere => true,
        };
        // The zone that was asked for counts even if Azure has stopped listing it since.
        let mut zones: Vec<&str> = self.sku.placements().filter(is_meant).collect();
        if !zones.contains(&self.zone) {
            zones.push(self.zone);
        }
        let mut all = Vec::new();
        for zone in zones {
            for capacity_type in kinds {
                all.push(Mark::Offering { zone: zone.to_owned(), capacity_type, kept });
            }
        }
        all
    }

    /// The capacity type that was asked for.
    fn kind(&self) -> &'static str {
        if self.is_spot() { capacity_type::SPOT } else { capacity_type::ON_DEMAND }
    }

    fn is_spot(&self) -> bool {
        self.capacity_type == capacity_type::SPOT
    }
}

/// What follows from a refusal of a machine, whether at once or later; none if it says nothing about what Azure has.
pub fn meaning(refusal: &Refusal<'_>, attempt: &Attempt<'_>) -> Option<Meaning> {
    let Refusal { code, text } = *refusal;
    let Attempt { sku, zone, .. } = *attempt;
    let (name, kind) = (&sku.name, attempt.kind());
    let marks = |places, kinds: &[&'static str], kept| attempt.marks(places, kinds, kept);
    let (marks, reason, message) = match code {
        OPERATION_NOT_ALLOWED if text.contains("LowPriorityCores") => (
            vec![Mark::Spot { kept: NO_CAPACITY }],
            reasons::SUBSCRIPTION_QUOTA_REACHED,
            format!(
                "the subscription may use no more spot vCPUs in this region; to ask for more: {QUOTA_HELP}"
            ),
        ),
        OPERATION_NOT_ALLOWED if text.contains("Family Cores quota") => {
            let kept = if text.contains("Current Limit: 0") { QUOTA_ZERO } else { QUOTA_LOW };
            (
                marks(Places::Everywhere, &[kind], kept),
                reasons::SUBSCRIPTION_QUOTA_REACHED,
                format!(
                    "the subscription may use no more vCPUs of the family of {name} in this region; to ask for more: {QUOTA_HELP}"
                ),
            )
        }
        "SkuNotAvailable" => (
            marks(Places::Scope, &[kind], if attempt.is_spot() { NOT_SOLD_AS_SPOT } else { NOT_SOLD }),
            reasons::SKU_NOT_AVAILABLE,
            format!("{name} is not available to the subscription in this place as {kind}"),
        ),
        "ZonalAllocationFailed" => (
            marks(Places::Here, &BOTH, NO_CAPACITY),
            reasons::ZONAL_ALLOCATION_FAILURE,
            format!("zone {zone} has no capacity for {name} now; another zone or size is tried"),
        ),
        "AllocationFailed" => (
            marks(Places::Scope, &BOTH, NO_CAPACITY),
            reasons::ALLOCATION_FAILURE,
            format!("the region has no capacity for {name} now; another place or size is tried"),
        ),
        "OverconstrainedZonalAllocationRequest" => (
            marks(Places::Here, &[kind], NO_CAPACITY),
            reasons::OVERCONSTRAINED_ZONAL_ALLOCATION_FAILURE,
            format!(
                "zone {zone} has no capacity for {name} as {kind} with everything that is asked for; another zone or size is tried"
            ),
        ),
        "OverconstrainedAllocationRequest" => (
            marks(Places::Scope, &[kind], NO_CAPACITY),
            reasons::OVERCONSTRAINED_ALLOCATION_FAILURE,
            format!(
                "the region has no capacity for {name} as {kind} with everything that is asked for; another place or size is tried"
            ),
        ),
        OPERATION_NOT_ALLOWED if text.contains("exceeding approved Total Regional Cores quota") => {
            let message = format!(
                "the subscription may use no more vCPUs in this region; to ask for more: {QUOTA_HELP} ({text})"
            );
            return Some(Meaning { marks: Vec::new(), error: Error::InsufficientCapacity(message) });
        }
        _ => return None,
    };
    Some(Meaning { marks, error: create(reason, &message, text) })
}

/// What follows from a refusal of a machine of the AKS Machine API before it was accepted.
pub fn meaning_for_machine(refusal: &Refusal<'_>, attempt: &Attempt<'_>) -> Option<Meaning> {
    let Refusal { code, text } = *refusal;
    let is_unsupported = code == "VMSizeNotSupported"
        || (code == "BadRequest" && text.contains("is not supported for subscription"));
    if !is_unsupported {
        return meaning(refusal, attempt);
    }
    let message = format!("AKS does not support {} for the subscription in this region", attempt.sku.name);
    Some(Meaning {
        marks: attempt.marks(Places::Everywhere, &BOTH, NOT_SOLD),
        error: create(reasons::SKU_NOT_AVAILABLE, &message, text),
    })
}

/// What metrics say about a refusal.
pub fn metric_code(code: &str) -> &str {
    if code.is_empty() { "UnknownError" } else { code }
}

fn create(reason: &str, message: &str, text: &str) -> Error {
    Error::Create { reason: reason.to_owned(), message: format!("{message} ({text})") }
}

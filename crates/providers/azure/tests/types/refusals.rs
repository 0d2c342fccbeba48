//! What Azure's refusals mean.

use azure::launch_errors::{Attempt, Meaning, Refusal, meaning, meaning_for_machine, metric_code};
use azure::sku::Sku;
use cloud::Error;
use serde_json::json;

use crate::support::{ON_DEMAND, SPOT, World, ZONAL, is, profile};

const ZONE_1: &str = "southcentralus-1";
const FAMILY_QUOTA: &str = "Operation could not be completed as it results in exceeding approved standardDSv3 Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: southcentralus, Current Limit: 24, Current Usage: 24, Additional Required: 8, (Minimum) New Limit Required: 32.";
const ZERO_QUOTA: &str = "exceeding approved standardDSv3Family Cores quota. Additional details - Current Limit: 0, Current Usage: 0";
const SPOT_QUOTA: &str =
    "Operation could not be completed as it results in exceeding approved LowPriorityCores quota.";
const REGION_QUOTA: &str =
    "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.";

#[track_caller]
fn refused(sku: &Sku, code: &str, text: &str, zone: &str, kind: &str) -> Meaning {
    let attempt = Attempt { sku, zone, capacity_type: kind };
    meaning(&Refusal { code, text }, &attempt).unwrap_or_else(|| panic!("{code} means nothing"))
}

/// What cannot be had any more, and for how many minutes.
#[track_caller]
fn check(code: &str, text: &str, zone: &str, kind: &str, reason: &str, expected: &[&str]) {
    let mut world = World::new(ZONAL);
    let sku = world.sku("Standard_D4s_v3");
    let meaning = refused(&sku, code, text, zone, kind);
    let found = match &meaning.error {
        Error::Create { reason, message } => {
            assert!(message.ends_with(&format!("({text})")), "everything that Azure said is in {message}");
            reason.as_str()
        }
        other => panic!("{other}"),
    };
    assert_eq!(found, reason, "{code}");
    meaning.apply(&sku, &mut world.unavailable, world.now);
    let mut closed = Vec::new();
    for zone in sku.placements() {
        for kind in [ON_DEMAND, SPOT] {
            let asked = azure::unavailable::Asked::of(&sku, zone, kind);
            if let Some(until) = world.unavailable.until(&asked, world.now) {
                let minutes = until.duration_since(world.now).as_mins();
                closed.push(format!("{} {kind} {minutes}", zone.trim_start_matches("southcentralus-")));
            }
        }
    }
    assert_eq!(closed, expected, "{code}");
}

// azure.md 8.2
#[test]
fn each_refusal_closes_what_it_is_about_for_as_long_as_it_lasts() {
    let quota = "SubscriptionQuotaReached";
    check(
        "OperationNotAllowed",
        SPOT_QUOTA,
        ZONE_1,
        SPOT,
        quota,
        &["0 spot 60", "1 spot 60", "2 spot 60", "3 spot 60"],
    );
    let ten = ["0 on-demand 10", "1 on-demand 10", "2 on-demand 10", "3 on-demand 10"];
    check("OperationNotAllowed", FAMILY_QUOTA, ZONE_1, ON_DEMAND, quota, &ten);
    let hour = ["0 on-demand 60", "1 on-demand 60", "2 on-demand 60", "3 on-demand 60"];
    check("OperationNotAllowed", ZERO_QUOTA, "0", ON_DEMAND, quota, &hour);
    let sold = "SKUNotAvailable";
    check("SkuNotAvailable", "x", ZONE_1, SPOT, sold, &["1 spot 60", "2 spot 60", "3 spot 60"]);
    let day = ["1 on-demand 1380", "2 on-demand 1380", "3 on-demand 1380"];
    check("SkuNotAvailable", "x", ZONE_1, ON_DEMAND, sold, &day);
    check("SkuNotAvailable", "x", "0", ON_DEMAND, sold, &["0 on-demand 1380"]);
    let zonal = "ZonalAllocationFailure";
    check("ZonalAllocationFailed", "x", ZONE_1, SPOT, zonal, &["1 on-demand 60", "1 spot 60"]);
    let both = ["1 on-demand 60", "1 spot 60", "2 on-demand 60", "2 spot 60", "3 on-demand 60", "3 spot 60"];
    check("AllocationFailed", "x", ZONE_1, ON_DEMAND, "AllocationFailure", &both);
    check("AllocationFailed", "x", "0", ON_DEMAND, "AllocationFailure", &["0 on-demand 60", "0 spot 60"]);
    let reason = "OverconstrainedZonalAllocationFailure";
    check("OverconstrainedZonalAllocationRequest", "x", ZONE_1, SPOT, reason, &["1 spot 60"]);
    let reason = "OverconstrainedAllocationFailure";
    let zones = ["1 on-demand 60", "2 on-demand 60", "3 on-demand 60"];
    check("OverconstrainedAllocationRequest", "x", ZONE_1, ON_DEMAND, reason, &zones);
    check("OverconstrainedAllocationRequest", "x", "0", ON_DEMAND, reason, &["0 on-demand 60"]);
}

// azure.md 8.2, 25.4
#[test]
fn the_regions_quota_closes_nothing_and_is_a_lack_of_capacity() {
    let sku = World::new(ZONAL).sku("Standard_D4s_v3");
    let meaning = refused(&sku, "OperationNotAllowed", REGION_QUOTA, ZONE_1, ON_DEMAND);
    assert!(meaning.marks.is_empty());
    assert!(matches!(&meaning.error, Error::InsufficientCapacity(text) if text.contains("Total Regional")));
}

// azure.md 8.2
#[test]
fn other_refusals_say_nothing_about_what_azure_has() {
    let sku = World::new(ZONAL).sku("Standard_D4s_v3");
    let attempt = Attempt { sku: &sku, zone: ZONE_1, capacity_type: SPOT };
    for (code, text) in [
        ("OperationNotAllowed", "the machine is being deleted"),
        ("skunotavailable", "codes have a case"),
        ("Conflict", "AllocationFailed is only in the text"),
        ("VMSizeNotSupported", "only machines of AKS have it"),
        ("", ""),
    ] {
        assert_eq!(meaning(&Refusal { code, text }, &attempt), None, "{code}");
    }
    assert_eq!((metric_code(""), metric_code("Conflict")), ("UnknownError", "Conflict"));
}

// azure.md 8.2, 25.4
#[test]
fn a_size_that_aks_does_not_support_is_closed_everywhere_for_a_day() {
    let sku = World::new(ZONAL).sku("Standard_D4s_v3");
    let attempt = Attempt { sku: &sku, zone: ZONE_1, capacity_type: SPOT };
    for (code, text) in
        [("VMSizeNotSupported", "x"), ("BadRequest", "The VM size is not supported for subscription y")]
    {
        let meaning = meaning_for_machine(&Refusal { code, text }, &attempt).unwrap();
        assert_eq!(meaning.marks.len(), 8, "{code}");
        assert!(format!("{:?}", meaning.marks).contains("82800s"));
        assert!(matches!(&meaning.error, Error::Create { reason, .. } if reason == "SKUNotAvailable"));
    }
    assert_eq!(meaning_for_machine(&Refusal { code: "BadRequest", text: "else" }, &attempt), None);
    let same = meaning_for_machine(&Refusal { code: "AllocationFailed", text: "x" }, &attempt);
    assert_eq!(same, meaning(&Refusal { code: "AllocationFailed", text: "x" }, &attempt));
}

/// What is tried first, then what is tried after a refusal of it.
#[track_caller]
fn next_after(world: &mut World, code: &str, text: &str, wanted: &[api::shared::Requirement]) -> [String; 2] {
    let of = |world: &World| {
        let (name, zone, kind) = world.best(wanted).unwrap();
        (format!("{name} {} {kind}", azure::zone::Scope::of(&zone).as_str()), (name, zone, kind))
    };
    let (before, (name, zone, kind)) = of(world);
    let sku = world.sku(&name);
    refused(&sku, code, text, &zone, &kind).apply(&sku, &mut world.unavailable, world.now);
    [before, of(world).0]
}

// azure.md 25.4
#[test]
fn after_a_refusal_something_else_is_tried() {
    let name = "node.kubernetes.io/instance-type";
    let one = [is(name, "Standard_D4s_v3")];
    let next = |code, text, wanted: &[_]| next_after(&mut World::new(ZONAL), code, text, wanted);
    let spot = "Standard_D4s_v3 zonal spot";
    let on_demand = "Standard_D4s_v3 zonal on-demand";
    let regional = "Standard_D4s_v3 regional spot";
    assert_eq!(next("OperationNotAllowed", SPOT_QUOTA, &one), [spot, on_demand]);
    assert_eq!(next("OverconstrainedZonalAllocationRequest", "", &one), [spot, spot]);
    assert_eq!(next("OverconstrainedAllocationRequest", "", &one), [spot, regional]);
    let zonal = [is(name, "Standard_D4s_v3"), is(crate::support::SCOPE, "zonal")];
    assert_eq!(next("OverconstrainedAllocationRequest", "", &zonal), [spot, on_demand]);
    assert_eq!(next("AllocationFailed", "", &one), [spot, regional]);
    let two = [is(name, "Standard_D4s_v3,Standard_F16s_v2"), is(crate::support::SCOPE, "zonal")];
    assert_eq!(next("AllocationFailed", "", &two), [spot, "Standard_F16s_v2 zonal spot"]);
    assert_eq!(next("SkuNotAvailable", "", &zonal), [spot, on_demand]);
}

// azure.md 25.4
#[test]
fn a_zone_without_capacity_is_closed_to_larger_sizes_of_the_family_too() {
    let mut world = World::new(ZONAL);
    let sku = world.sku("Standard_D4s_v3");
    let meaning = refused(&sku, "ZonalAllocationFailed", "", ZONE_1, ON_DEMAND);
    meaning.apply(&sku, &mut world.unavailable, world.now);
    let types = world.types(&profile(json!({})));
    let open = |name: &str, zone: &str, kind: &str| {
        crate::support::offering(crate::support::find(&types, name), zone, kind).available
    };
    for kind in [ON_DEMAND, SPOT] {
        assert!(!open("Standard_D4s_v3", ZONE_1, kind) && !open("Standard_D64s_v3", ZONE_1, kind));
        assert!(open("Standard_D2s_v3", ZONE_1, kind), "smaller sizes stay");
        assert!(open("Standard_D64s_v3", "southcentralus-2", kind) && open("Standard_D64s_v3", "0", kind));
    }
    let before = world.unavailable.sequence(world.now);
    meaning.apply(&sku, &mut world.unavailable, world.now);
    assert_eq!(world.unavailable.sequence(world.now), before, "the same again changes nothing");
}

// azure.md 25.4
#[test]
fn quotas_are_tried_again_when_their_time_is_over() {
    for (text, minutes) in [(FAMILY_QUOTA, 10), (ZERO_QUOTA, 60)] {
        let mut world = World::new(ZONAL);
        let wanted = [
            is("node.kubernetes.io/instance-type", "Standard_D4s_v3"),
            is("karpenter.sh/capacity-type", ON_DEMAND),
        ];
        let sku = world.sku("Standard_D4s_v3");
        refused(&sku, "OperationNotAllowed", text, ZONE_1, ON_DEMAND).apply(
            &sku,
            &mut world.unavailable,
            world.now,
        );
        world.wait(minutes - 1);
        let error = world.best(&wanted).unwrap_err();
        assert!(error.contains("all requested instance types were unavailable during launch"), "{error}");
        assert!(error.contains("is not asked again before"), "{error}");
        world.wait(1);
        assert_eq!(world.best(&wanted).unwrap().0, "Standard_D4s_v3");
    }
}

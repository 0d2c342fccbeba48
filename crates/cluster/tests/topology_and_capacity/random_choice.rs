//! Random pools with reservations and `minValues`: the API server takes every NodeClaim that is planned for them.
//!
//! With `PLANNED_CLAIMS=FILE` they are written to a file, for `kubectl create --dry-run=server --filename=FILE`.

use api::labels::LabelSets;
use api::provider::Provider;
use api::shared::Requirement;
use api::validation::requirement::{RequirementError, validate};
use cluster::instance_types::InstanceType;
use engine::options::{MinValues, Options, Preferences, Reserved};
use serde_json::{Value, json};

use crate::objects::{
    CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, Pod, RESERVATION, ZONE, need, need_choice, term,
};
use crate::world::{World, machine, offering, one_of, with_offerings};

/// How many pools.
const POOLS: u64 = 200;

/// SplitMix64: the same numbers for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn up_to(&mut self, last: u32) -> u32 {
        u32::try_from(1 + self.below(u64::from(last))).expect("a small number")
    }
}

/// A machine that can be had in some zones, and in reservations that may be used up.
fn machine_of(random: &mut Random, position: usize) -> InstanceType {
    let cpu = random.up_to(8);
    let plain = machine(&format!("type-{position}"), cpu, cpu);
    let mut offerings = plain.offerings.clone();
    offerings.retain(|_| !random.one_in(4));
    for offering in &mut offerings {
        offering.available = !random.one_in(5);
    }
    for number in 0..random.below(3) {
        let zone = format!("zone-{}", random.up_to(3));
        let mut reserved = offering(&zone, "reserved", 0.0001 * f64::from(cpu));
        reserved.requirements.push(one_of(RESERVATION, &[&format!("r-{position}-{number}")]));
        reserved.reservation_capacity = random.up_to(3) - 1;
        offerings.push(reserved);
    }
    with_offerings(plain, offerings)
}

/// What a pool demands, some of it with a choice.
fn requirements(random: &mut Random) -> Value {
    let mut all = vec![need_choice(INSTANCE_TYPE, "Exists", &[], random.up_to(4))];
    match random.below(4) {
        0 => all.push(need(CAPACITY_TYPE, "In", &["reserved"])),
        1 => all.push(need_choice(CAPACITY_TYPE, "In", &["reserved", "on-demand"], random.up_to(2))),
        2 => all.push(need_choice(CAPACITY_TYPE, "In", &["reserved", "spot", "on-demand"], random.up_to(3))),
        _ => {}
    }
    if random.one_in(2) {
        all.push(need_choice(ZONE, "In", &["zone-1", "zone-2", "zone-3"], random.up_to(3)));
    }
    json!(all)
}

fn world(random: &mut Random) -> World {
    let mut world = World::empty();
    world.provider = Provider::Aws;
    let count = usize::try_from(2 + random.below(6)).expect("a small number");
    world.types = (0..count).map(|position| machine_of(random, position)).collect();
    world.options = Options {
        preferences: Preferences::Respect,
        min_values: if random.one_in(2) { MinValues::BestEffort } else { MinValues::Strict },
        reserved: if random.one_in(2) { Reserved::Fallback } else { Reserved::Strict },
    };
    world.pool("default", json!({}));
    world.pool_requires("default", requirements(random));
    for number in 0..=random.below(5) {
        let mut pod =
            Pod::of("web").cpu(&format!("{}m", 300 * random.up_to(8))).name(&format!("web-{number}"));
        if random.one_in(2) {
            pod = pod.away_from(term(HOSTNAME, "web"));
        }
        world.pod(pod);
    }
    world
}

/// Whether the API server refuses a requirement because of the number of its values.
fn is_about_choice(error: &RequirementError) -> bool {
    matches!(
        error,
        RequirementError::TooFewValues { .. }
            | RequirementError::TooFewKnownValues { .. }
            | RequirementError::NoKnownValue { .. }
            | RequirementError::NoValue { .. }
    )
}

#[test]
fn every_claim_of_random_pools_has_as_many_values_as_it_demands() {
    let sets = LabelSets::for_provider(Provider::Aws);
    // Claims that hold a reservation and must have a choice of types, and all others.
    let (mut reserved, mut others) = (0, 0);
    let mut planned = Vec::new();
    for seed in 0..POOLS {
        let round = world(&mut Random(seed)).plan();
        for claim in &round.claims {
            let mut object = claim.clone();
            (object["apiVersion"], object["kind"]) = ("karpenter.sh/v1".into(), "NodeClaim".into());
            planned.push(object);
            let requirements: Vec<Requirement> =
                serde_json::from_value(claim["spec"]["requirements"].clone())
                    .unwrap_or_else(|error| panic!("seed {seed}: {error} in {claim:#}"));
            for requirement in &requirements {
                let wrong = validate(requirement, &sets).into_iter().find(is_about_choice);
                assert!(wrong.is_none(), "seed {seed}: {} in {claim:#}", wrong.expect("something is wrong"));
            }
            let has = |key: &str, is: fn(&Requirement) -> bool| {
                requirements.iter().any(|it| it.key == key && is(it))
            };
            if has(CAPACITY_TYPE, |it| it.values == ["reserved"])
                && has(INSTANCE_TYPE, |it| it.min_values > Some(1))
            {
                reserved += 1;
            } else {
                others += 1;
            }
        }
    }
    assert!(reserved > 20 && others > 20, "{reserved} reserved, {others} others");
    if let Some(path) = std::env::var_os("PLANNED_CLAIMS") {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": planned});
        std::fs::write(path, list.to_string()).expect("the file can be written");
    }
}

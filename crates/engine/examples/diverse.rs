//! Times the solver on diverse pods: a fifth each plain, spread over zones, spread over hosts, near their like in
//! a zone, and away from their like on hosts.
//!
//! `cargo run --release -p karpenter-engine --example diverse -- 5000`

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a stopwatch for people")]

#[path = "../tests/world/mod.rs"]
mod world;

use std::time::Instant;

use world::{HOSTNAME, World, ZONE, placed};

/// A small generator of pseudo-random numbers, so that runs compare.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("below a usize")
    }
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(5000, |n| n.parse().expect("a number of pods"));
    let preferences = std::env::args().nth(2).is_some_and(|mode| mode == "preferences");
    let mut world = World::with_simulated_types();
    let mut random = Random(42);
    for number in 0..count {
        let cpu = ["100m", "250m", "500m", "1000m", "1500m"][random.below(5)];
        let memory = ["100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi"][random.below(6)];
        let labels = ["a", "b", "c", "d", "e", "f", "g"];
        let own = [("my-label", labels[random.below(7)])];
        let other = [("my-label", labels[random.below(7)])];
        let mut class = world.class(&[("cpu", cpu), ("memory", memory)]);
        class.labels = world.labels(&own);
        if preferences {
            class.preferred_anti_affinities =
                vec![(10, world.term(HOSTNAME, &own)), (1, world.term(ZONE, &own))];
            class.preferred_terms = vec![(5, world.set(&[(ZONE, "In", &["test-zone-a"])]))];
        } else {
            match number % 5 {
                1 => class.spreads = vec![world.spread(ZONE, 1, &other)],
                2 => class.spreads = vec![world.spread(HOSTNAME, 1, &other)],
                3 => class.affinities = vec![world.term(ZONE, &own)],
                4 => class.anti_affinities = vec![world.term(HOSTNAME, &own)],
                _ => {}
            }
        }
        world.pods(1, class);
    }
    let start = Instant::now();
    let plan = world.solve();
    let elapsed = start.elapsed();
    let price: f64 = plan.claims.iter().map(|claim| claim.price).sum();
    println!(
        "{count} pods of {} classes: {} placed on {} nodes for {price:.2} per hour in {elapsed:.2?}",
        world.snapshot.classes.len(),
        placed(&plan),
        plan.claims.len(),
    );
}

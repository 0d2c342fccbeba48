//! Capacity that was reserved beforehand: it is used first, and never twice.

use api::provider::Provider;
use cluster::instance_types::Offering;
use engine::options::Reserved;
use serde_json::{Value, json};

use crate::objects::{CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, Pod, RESERVATION, need, term};
use crate::world::{Round, World, machine, offering, one_of, with_offerings};

/// A reservation in zone-1, which costs next to nothing, but more for larger machines.
fn reserved(id: &str, launches: u32, cpu: u32) -> Offering {
    let mut offering = offering("zone-1", "reserved", 0.0001 * f64::from(cpu));
    offering.requirements.push(one_of(RESERVATION, &[id]));
    offering.reservation_capacity = launches;
    offering
}

/// Machines with 2, 3 and 6 processors, of which the first two have reservations.
fn world(small: &[(&str, u32)], medium: &[(&str, u32)]) -> World {
    let mut world = World::empty();
    world.provider = Provider::Aws;
    let with_reservations = |name, cpu, ids: &[(&str, u32)]| {
        let plain = machine(name, cpu, cpu);
        let offerings = ids.iter().map(|(id, launches)| reserved(id, *launches, cpu));
        let offerings = plain.offerings.iter().cloned().chain(offerings).collect();
        with_offerings(plain, offerings)
    };
    world.types = vec![
        machine("large", 6, 6),
        with_reservations("medium", 3, medium),
        with_reservations("small", 2, small),
    ];
    world.pool("default", json!({}));
    world
}

/// A pod that shares its node with none of its kind and wants the type `small`.
fn alone() -> Pod {
    Pod::of("web").away_from(term(HOSTNAME, "web")).require(json!([need(INSTANCE_TYPE, "In", &["small"])]))
}

/// The type, capacity type and reservation of each node that a round makes.
fn launches(round: &Round) -> Vec<(&str, &str, &str)> {
    let label = |claim, key| round.node_label(claim, key);
    let of_claim =
        |claim| (label(claim, INSTANCE_TYPE), label(claim, CAPACITY_TYPE), label(claim, RESERVATION));
    (0..round.claims.len()).map(of_claim).collect()
}

const TAKEN: &str =
    "one or more instance types with compatible reserved offerings are available, but could not be reserved";

/// 27.13-01
#[test]
fn reserved_nodes_come_one_by_one_and_then_others() {
    let mut world = world(&[("r-small", 1)], &[("r-medium", 1)]);
    let pods = world.pods(3, "web", &Pod::new().cpu("1800m"));
    let round = world.provision();
    round.expect_placed(1).expect_pending(&pods[1], TAKEN).expect_pending(&pods[2], TAKEN);
    assert_eq!(launches(&round), [("small", "reserved", "r-small")]);
    assert_eq!(round.values(0, CAPACITY_TYPE), ["reserved"]);
    assert_eq!(round.values(0, RESERVATION), ["r-medium", "r-small"]);
    let round = world.provision();
    round.expect_placed(1);
    assert_eq!(launches(&round), [("medium", "reserved", "r-medium")]);
    let round = world.provision();
    round.expect_all_placed();
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// Two pods, each of which wants a pool of its own and the type `small`.
fn one_for_each_pool(world: &mut World) {
    for pool in ["a", "b"] {
        let requirements =
            [need("karpenter.sh/nodepool", "In", &[pool]), need(INSTANCE_TYPE, "In", &["small"])];
        let pod = Pod::of("web").away_from(term(HOSTNAME, "web"));
        world.pod(pod.require(json!(requirements)).name(&format!("for-{pool}")));
    }
}

fn limited_to(reservation: &str) -> Value {
    json!({"template": {"spec": {"requirements": [need(RESERVATION, "In", &[reservation])]}}})
}

/// 27.13-02
#[test]
fn pools_that_share_a_reservation_do_not_use_it_twice() {
    let mut world = world(&[("r-small", 1)], &[]);
    world.pool("a", json!({}));
    world.pool("b", json!({}));
    one_for_each_pool(&mut world);
    let round = world.provision();
    round.expect_placed(1);
    assert!(round.pending.values().all(|reason| reason.contains(TAKEN)), "{round:?}");
    assert_eq!(launches(&round), [("small", "reserved", "r-small")]);
    let round = world.provision();
    round.expect_all_placed();
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// 27.13-02
#[test]
fn pools_with_reservations_of_their_own_use_both_at_once() {
    let mut world = world(&[("r-a", 1), ("r-b", 1)], &[]);
    world.pool("a", limited_to("r-a"));
    world.pool("b", limited_to("r-b"));
    one_for_each_pool(&mut world);
    let round = world.plan();
    round.expect_all_placed();
    let mut launches = launches(&round);
    launches.sort_unstable();
    assert_eq!(launches, [("small", "reserved", "r-a"), ("small", "reserved", "r-b")]);
}

/// 27.13-03
#[test]
fn a_claim_holds_every_reservation_that_it_could_use() {
    let mut world = world(&[("r-1", 1), ("r-2", 2)], &[]);
    world.pods(4, "web", &alone());
    let round = world.provision();
    round.expect_placed(2);
    assert!(launches(&round).iter().all(|(_, capacity_type, _)| *capacity_type == "reserved"), "{round:?}");
    let round = world.provision();
    round.expect_placed(1);
    assert_eq!(launches(&round)[0].1, "reserved");
    let round = world.provision();
    round.expect_all_placed().expect_placed(1);
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// 27.13-04
#[test]
fn a_pool_of_less_weight_waits_while_a_reservation_may_be_free() {
    let mut world = world(&[("r-heavy", 1), ("r-light", 1)], &[]);
    world.pool("light", limited_to("r-light"));
    world.pool("heavy", limited_to("r-heavy"));
    world.change("NodePool", "heavy", json!({"spec": {"weight": 100}}));
    world.change("NodePool", "light", json!({"spec": {"weight": 50}}));
    world.pods(2, "web", &alone());
    let round = world.provision();
    round.expect_placed(1);
    assert_eq!(launches(&round), [("small", "reserved", "r-heavy")]);
    let round = world.provision();
    round.expect_all_placed();
    assert_eq!(launches(&round), [("small", "spot", "")]);
    assert_eq!(round.node_label(0, "karpenter.sh/nodepool"), "heavy");
}

/// 27.13-04
#[test]
fn a_pod_that_waits_for_a_reservation_keeps_its_wishes() {
    let mut world = world(&[("r-1", 1), ("r-2", 1)], &[]);
    world.pool("a", limited_to("r-1"));
    world.pool("b", limited_to("r-2"));
    let pool = |name| json!([need("karpenter.sh/nodepool", "In", &[name])]);
    world.pods(2, "web", &alone().prefer(1, pool("a")));
    let round = world.provision();
    // Without its wish the second pod would go to the other pool at once.
    round.expect_placed(1);
    assert_eq!(launches(&round), [("small", "reserved", "r-1")]);
    assert_eq!(round.node_label(0, "karpenter.sh/nodepool"), "a");
    let round = world.provision();
    round.expect_all_placed();
    assert_eq!(round.node_label(0, "karpenter.sh/nodepool"), "a");
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// 27.13-04
#[test]
fn pods_that_want_to_be_together_share_a_reserved_node() {
    let mut world = world(&[("r-small", 1)], &[]);
    let only_reserved =
        json!({"template": {"spec": {"requirements": [need(CAPACITY_TYPE, "In", &["reserved"])]}}});
    world.change("NodePool", "default", json!({"spec": only_reserved}));
    world.pods(2, "web", &Pod::of("web").near(term(HOSTNAME, "web")));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(launches(&round), [("small", "reserved", "r-small")]);
}

/// 27.13-05
#[test]
fn a_reservation_that_is_full_does_not_keep_pods_from_other_capacity() {
    let mut world = world(&[("r-small", 0)], &[]);
    world.pods(2, "web", &alone());
    let round = world.plan();
    round.expect_all_placed().expect_nodes(2);
    assert_eq!(launches(&round), [("small", "spot", ""), ("small", "spot", "")]);
    assert!(!round.values(0, CAPACITY_TYPE).contains(&"reserved"));
    assert!(round.requirement(0, RESERVATION).is_empty());
}

/// 27.13-05
#[test]
fn a_pool_that_has_only_a_full_reservation_keeps_pods_waiting() {
    let mut world = world(&[("r-small", 0)], &[]);
    world.pool_requires("default", json!([need(CAPACITY_TYPE, "In", &["reserved"])]));
    world.pool("light", json!({}));
    world.change("NodePool", "default", json!({"spec": {"weight": 10}}));
    world.pod(alone().name("web"));
    let full = "all compatible reserved offerings are full and no on-demand or spot fallback is available";
    world.plan().expect_pending("web", full);
    // In a simulation nothing can wait, so the other pool is used.
    world.options.reserved = Reserved::Fallback;
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.node_label(0, "karpenter.sh/nodepool"), "light");
}

/// 27.13-05
#[test]
fn a_reservation_that_cannot_be_had_is_passed_over() {
    let mut world = world(&[("r-small", 5)], &[]);
    world.types.last_mut().expect("a type").offerings.last_mut().expect("an offering").available = false;
    world.pod(alone().name("web"));
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// 27.13-05
#[test]
fn a_pod_that_would_cost_a_claim_its_reservation_goes_elsewhere() {
    let mut world = world(&[("r-small", 1)], &[]);
    world.pod(Pod::new().cpu("1800m").name("first"));
    // It would fit with the first on a larger type, which has no reservation.
    world.pod(Pod::new().cpu("1").name("second"));
    let round = world.provision();
    assert_eq!(launches(&round), [("small", "reserved", "r-small")]);
    round.expect_placed(1).expect_pending("second", TAKEN);
    let round = world.provision();
    assert_eq!(launches(&round), [("small", "spot", "")]);
}

/// 27.13-05
#[test]
fn a_simulation_takes_other_capacity_when_a_reservation_is_taken() {
    let mut world = world(&[("r-small", 1)], &[]);
    world.options.reserved = Reserved::Fallback;
    world.pods(2, "web", &alone());
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.values(0, RESERVATION), ["r-small"]);
    assert_eq!(round.values(0, CAPACITY_TYPE), ["reserved"]);
    assert!(round.requirement(1, RESERVATION).is_empty());
    assert!(round.values(1, CAPACITY_TYPE).contains(&"spot"));
}

/// 27.13-05
#[test]
fn reservations_play_no_part_where_they_are_switched_off() {
    let mut world = world(&[("r-small", 1)], &[]);
    world.options.reserved = Reserved::Off;
    world.pods(2, "web", &alone());
    let round = world.plan();
    round.expect_all_placed().expect_nodes(2);
    assert!(round.requirement(0, RESERVATION).is_empty());
}

/// 27.13-05
#[test]
fn the_smallest_number_counts_where_offers_of_a_reservation_disagree() {
    let mut world = world(&[("r-1", 3)], &[("r-1", 1)]);
    world.pods(2, "web", &alone());
    world.plan().expect_placed(1);
    let medium = &mut world.types[1].offerings;
    medium.last_mut().expect("an offering").reservation_capacity = 3;
    world.plan().expect_placed(2);
}

/// 27.13-05
#[test]
fn what_a_claim_gives_back_another_can_use() {
    let mut world = world(&[("r-small", 1)], &[("r-medium", 1)]);
    world.pod(Pod::of("a").cpu("1800m").name("a"));
    // This pod shares the node of the first, for which only the medium type is large enough.
    world.pod(Pod::new().cpu("1").near(term(HOSTNAME, "a")).name("b"));
    world.pod(Pod::new().cpu("900m").away_from(term(HOSTNAME, "a")).on(INSTANCE_TYPE, "small").name("c"));
    let round = world.plan();
    round.expect_all_placed();
    let mut found = launches(&round);
    found.sort_unstable();
    assert_eq!(found, [("medium", "reserved", "r-medium"), ("small", "reserved", "r-small")]);
    assert_eq!(round.values(0, RESERVATION), ["r-medium"]);
}

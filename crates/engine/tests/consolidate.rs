//! Which nodes can go, and what may come for them.

mod world;

use engine::consolidate::{Candidate, Keep, Rules, Verdict, adopt, examine, examine_all, merge};
use engine::model::{ClassId, InstanceType, NodeId, Pod, PodClass, Runs};
use engine::options::{Options, Reserved};
use engine::solve::{Dear, PlannedClaim, Simulation};
use proptest::prelude::*;
use world::{World, ZONE};

const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// Anything goes, within a number of nodes.
struct Anything {
    nodes: usize,
    spot_to_spot: bool,
    /// Only from this one on may they make way for new ones.
    replaced_from: usize,
}

const ALL: Anything = Anything { nodes: usize::MAX, spot_to_spot: true, replaced_from: 0 };

impl Rules for Anything {
    fn spot_to_spot(&self) -> bool {
        self.spot_to_spot
    }

    fn may_go(&self, candidates: &[usize]) -> bool {
        candidates.len() <= self.nodes
    }

    fn may_be_replaced(&self, candidate: usize) -> bool {
        candidate >= self.replaced_from
    }

    fn is_worth(&self, _: &[usize], _: f64) -> bool {
        true
    }
}

/// Types of 1, 2, 4, ... CPUs, at a price of as many.
fn sizes(world: &mut World, count: u32) -> Vec<InstanceType> {
    let size = |exponent: u32| 1u32 << exponent;
    (0..count)
        .map(|exponent| {
            let cpu = size(exponent).to_string();
            let amounts = [("cpu", cpu.as_str()), ("pods", "100")];
            world.instance_type(&format!("size-{cpu}"), &amounts, &["z1", "z2"], f64::from(size(exponent)))
        })
        .collect()
}

fn world(types: impl FnOnce(&mut World) -> Vec<InstanceType>) -> World {
    let mut world = World::new();
    world.options = Options { reserved: Reserved::Fallback, ..Options::default() };
    let types = types(&mut world);
    let catalogue = world.catalogue(types);
    world.pool("default", &[], catalogue);
    world
}

/// A node of a type with pods of some CPUs each, and what is left of it.
fn node(world: &mut World, type_: &str, cpu: u32, price: f64, spot: bool, pods: &[u32]) -> Candidate {
    let number = world.snapshot.nodes.len();
    let free = cpu - pods.iter().sum::<u32>();
    let kind = if spot { "spot" } else { "on-demand" };
    let labels = [("karpenter.sh/nodepool", "default"), (ZONE, "z1"), (CAPACITY_TYPE, kind)];
    let amounts = [("cpu", &*free.to_string()), ("pods", "50")];
    let node = world.node(&format!("node-{number:03}"), &labels, &amounts);
    for cpu in pods {
        let class = world.class(&[("cpu", &cpu.to_string())]);
        runs(world, node, class);
    }
    let key = world.snapshot.keys.instance_type;
    Candidate { node, price, spot, type_: Some(world.universe().value(key, type_)) }
}

fn runs(world: &mut World, on: NodeId, class: PodClass) {
    let snapshot = &mut world.snapshot;
    let known = snapshot.classes.iter().position(|known| *known == class);
    let class = ClassId::at(known.unwrap_or_else(|| {
        snapshot.classes.push(class);
        snapshot.classes.len() - 1
    }));
    let number = snapshot.pods.len();
    snapshot.pods.push(Pod {
        name: format!("default/pod-{number}").into(),
        uid: format!("{number:08}").into(),
        created: 0,
        class,
        runs: Some(Runs { on, counted: true, blocked: false }),
        nominated: None,
    });
}

fn sized(world: &mut World, cpu: u32, pods: &[u32]) -> Candidate {
    node(world, &format!("size-{cpu}"), cpu, f64::from(cpu), false, pods)
}

fn names(world: &World, claim: &PlannedClaim) -> Vec<String> {
    let types = &world.snapshot.catalogues[0].types;
    let values = world.snapshot.universe.values(world.snapshot.keys.instance_type);
    claim.types.iter().map(|type_| values.name(types[*type_].name).to_owned()).collect()
}

fn verdict(world: &World, all: &[Candidate], chosen: &[usize], rules: &Anything) -> Verdict {
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    examine(&mut simulation, all, chosen, rules, true)
}

#[test]
fn a_node_whose_pods_fit_elsewhere_is_deleted() {
    let mut world = world(|world| sizes(world, 4));
    let all = [sized(&mut world, 4, &[1]), sized(&mut world, 4, &[2])];
    assert!(matches!(verdict(&world, &all, &[0], &ALL), Verdict::Delete));
}

#[test]
fn a_node_that_is_too_large_is_replaced_by_any_that_is_cheaper() {
    let mut world = world(|world| sizes(world, 5));
    let all = [sized(&mut world, 8, &[2])];
    let Verdict::Replace(claim) = verdict(&world, &all, &[0], &ALL) else { panic!("not replaced") };
    assert_eq!(names(&world, &claim), ["size-2", "size-4"]);
    assert!((claim.price - 2.0).abs() < 1e-9);
}

#[test]
fn a_node_that_is_not_to_be_replaced_yet_may_still_go_where_nothing_comes_for_it() {
    let rules = Anything { replaced_from: 1, ..ALL };
    let mut large = world(|world| sizes(world, 5));
    let all = [sized(&mut large, 8, &[2])];
    assert!(matches!(verdict(&large, &all, &[0], &rules), Verdict::Keep(Keep::NotYet)));
    let mut roomy = world(|world| sizes(world, 4));
    let all = [sized(&mut roomy, 4, &[1]), sized(&mut roomy, 4, &[2])];
    assert!(matches!(verdict(&roomy, &all, &[0], &rules), Verdict::Delete));
    // Where nothing is cheaper, that is what is told.
    let mut full = world(|world| sizes(world, 4));
    let all = [sized(&mut full, 4, &[4])];
    assert!(matches!(verdict(&full, &all, &[0], &rules), Verdict::Keep(Keep::Dear(Dear::Nothing))));
}

#[test]
fn nodes_that_are_not_to_be_replaced_yet_do_not_keep_others_from_being_merged() {
    let mut world = world(|world| sizes(world, 4));
    let all: Vec<Candidate> = (0..5).map(|_| sized(&mut world, 4, &[2])).collect();
    world.snapshot.nodes.iter_mut().for_each(|node| node.takes_moved = false);
    for (replaced_from, expected) in [(0, vec![0, 1, 2, 3]), (1, vec![1, 2, 3, 4]), (4, vec![])] {
        let mut simulation = Simulation::new(&world.snapshot, &world.options);
        let moves = merge(&mut simulation, &all, &Anything { replaced_from, ..ALL });
        let gone: Vec<usize> = moves.iter().flat_map(|each| each.candidates.clone()).collect();
        assert_eq!(gone, expected, "{replaced_from}");
    }
}

#[test]
fn a_node_that_is_full_is_kept() {
    let mut world = world(|world| sizes(world, 4));
    let all = [sized(&mut world, 4, &[4])];
    let kept = verdict(&world, &all, &[0], &ALL);
    assert!(matches!(kept, Verdict::Keep(Keep::Dear(Dear::Nothing))), "{kept:?}");
}

#[test]
fn a_node_for_which_two_would_be_needed_is_kept() {
    let mut world = world(|world| sizes(world, 2));
    let all = [sized(&mut world, 4, &[2, 2])];
    assert!(matches!(verdict(&world, &all, &[0], &ALL), Verdict::Keep(Keep::ManyClaims(2))));
}

#[test]
fn a_node_whose_pods_would_have_no_place_is_kept_and_they_are_named() {
    let mut world = world(|world| sizes(world, 2));
    let all = [sized(&mut world, 8, &[4, 1])];
    let Verdict::Keep(Keep::Pods(pods)) = verdict(&world, &all, &[0], &ALL) else { panic!("not kept") };
    assert_eq!(pods.len(), 1);
}

#[test]
fn pods_do_not_move_to_nodes_that_are_not_ready_or_were_busy_lately() {
    for (ready, quiet) in [(false, true), (true, false)] {
        let mut world = world(|world| sizes(world, 3));
        let all = [sized(&mut world, 1, &[1]), sized(&mut world, 4, &[])];
        world.snapshot.nodes[1].initialized = ready;
        world.snapshot.nodes[1].takes_moved = quiet;
        let kept = verdict(&world, &all, &[0], &ALL);
        // The node that was busy is not looked at, so that a new one would be needed.
        let expected = if ready {
            matches!(kept, Verdict::Keep(Keep::Dear(_)))
        } else {
            matches!(kept, Verdict::Keep(Keep::Pods(_)))
        };
        assert!(expected, "{kept:?}");
    }
}

#[test]
fn several_nodes_become_one_but_never_one_of_their_own_type_for_the_same_price() {
    let mut world = world(|world| sizes(world, 3));
    let all = [sized(&mut world, 2, &[1]), sized(&mut world, 2, &[1])];
    // Only a node of the same type would do; one of the two can go instead.
    world.snapshot.nodes.iter_mut().for_each(|node| node.takes_moved = false);
    let kept = verdict(&world, &all, &[0, 1], &ALL);
    assert!(matches!(kept, Verdict::Keep(Keep::Dear(Dear::Nothing))), "{kept:?}");
    let dear = [Candidate { price: 3.0, ..all[0] }, Candidate { price: 3.0, ..all[1] }];
    let Verdict::Replace(claim) = verdict(&world, &dear, &[0, 1], &ALL) else { panic!("not replaced") };
    assert_eq!(names(&world, &claim), ["size-2"]);
}

/// `count` types with spot and on-demand offerings, of as many CPUs as each is dear.
fn with_spot(world: &mut World, count: u32) -> Vec<InstanceType> {
    let mut types: Vec<InstanceType> = (1..=count)
        .map(|number| {
            let amounts = [("cpu", "4"), ("pods", "100")];
            world.instance_type(&format!("t-{number:02}"), &amounts, &["z1", "z2"], f64::from(number))
        })
        .collect();
    for it in &mut types {
        let od = it.offerings[0].clone();
        for zone in ["z1", "z2"] {
            let requirements = world.set(&[(ZONE, "In", &[zone]), (CAPACITY_TYPE, "In", &["spot"])]);
            it.offerings.push(engine::model::Offering { requirements, price: od.price / 2.0, ..od.clone() });
        }
    }
    types
}

/// The one capacity type that a claim can have.
fn bound_to(world: &World, simulation: &mut Simulation<'_>, claim: &PlannedClaim) -> Option<String> {
    let key = world.snapshot.keys.capacity_type;
    let universe = simulation.universe();
    let id = universe.find(claim.requirements, key)?;
    let value = universe.get(id).single()?;
    Some(universe.values(key).name(value).to_owned())
}

#[test]
fn an_on_demand_node_that_may_become_spot_becomes_nothing_else() {
    let mut world = world(|world| with_spot(world, 4));
    let all = [node(&mut world, "t-04", 4, 4.0, false, &[4])];
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let Verdict::Replace(claim) = examine(&mut simulation, &all, &[0], &ALL, true) else {
        panic!("not replaced")
    };
    assert_eq!(names(&world, &claim), ["t-01", "t-02", "t-03", "t-04"]);
    assert_eq!(bound_to(&world, &mut simulation, &claim).as_deref(), Some("spot"));
}

#[test]
fn where_no_cheaper_type_has_spot_the_cheaper_one_is_bought_on_demand() {
    let mut world = world(|world| {
        let mut types = with_spot(world, 4);
        for it in &mut types {
            it.offerings.truncate(2);
        }
        types
    });
    let all = [node(&mut world, "t-04", 4, 4.0, false, &[4])];
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let Verdict::Replace(claim) = examine(&mut simulation, &all, &[0], &ALL, true) else {
        panic!("not replaced")
    };
    assert_eq!(names(&world, &claim), ["t-01", "t-02", "t-03"]);
    assert_eq!(bound_to(&world, &mut simulation, &claim).as_deref(), Some("on-demand"));
}

#[test]
fn a_spot_node_becomes_another_only_where_that_is_allowed_and_there_are_fifteen_to_choose_from() {
    for (count, spot_to_spot, expected) in [
        (16, false, Err(Dear::SpotToSpotOff)),
        (15, true, Err(Dear::FewSpot(14))),
        (16, true, Ok(15)),
        (30, true, Ok(15)),
    ] {
        let mut world = world(|world| with_spot(world, count));
        let price = f64::from(count) / 2.0;
        let all = [node(&mut world, &format!("t-{count:02}"), 4, price, true, &[4])];
        let found = verdict(&world, &all, &[0], &Anything { spot_to_spot, ..ALL });
        match (found, expected) {
            (Verdict::Replace(claim), Ok(choice)) => assert_eq!(claim.types.len(), choice),
            (Verdict::Keep(Keep::Dear(found)), Err(expected)) => assert_eq!(found, expected),
            (found, expected) => panic!("{count}: {found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn several_spot_nodes_need_no_choice_of_fifteen() {
    let mut world = world(|world| with_spot(world, 3));
    world.snapshot.nodes.clear();
    let all = [node(&mut world, "t-03", 4, 1.5, true, &[2]), node(&mut world, "t-03", 4, 1.5, true, &[2])];
    world.snapshot.nodes.iter_mut().for_each(|node| node.takes_moved = false);
    let Verdict::Replace(claim) = verdict(&world, &all, &[0, 1], &ALL) else { panic!("not replaced") };
    assert_eq!(names(&world, &claim), ["t-01", "t-02"]);
}

#[test]
fn many_half_empty_nodes_go_at_once() {
    let mut world = world(|world| sizes(world, 4));
    let all: Vec<Candidate> = (0..10).map(|_| sized(&mut world, 4, &[1])).collect();
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let moves = merge(&mut simulation, &all, &ALL);
    let gone: usize = moves.iter().map(|each| each.candidates.len()).sum();
    // Ten CPUs are used, for which three nodes of four are enough.
    assert_eq!(gone, 7, "{moves:?}");
}

#[test]
fn what_takes_the_pods_of_others_stays_or_goes_with_them() {
    let mut world = world(|world| sizes(world, 5));
    let small: Vec<Candidate> = (0..2).map(|_| sized(&mut world, 1, &[1])).collect();
    // There is room for one of the small pods on each, and together they would be cheaper as one.
    let large = (0..2).map(|_| node(&mut world, "size-8", 8, 10.0, false, &[7]));
    let large: Vec<Candidate> = large.collect();
    let all: Vec<Candidate> = small.into_iter().chain(large).collect();
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let moves = merge(&mut simulation, &all, &ALL);
    let gone: Vec<&[usize]> = moves.iter().map(|each| &*each.candidates).collect();
    assert_eq!(gone, [&[0, 1, 2, 3]]);
    // Where only the large ones may make way for a new one, that saves more.
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let moves = merge(&mut simulation, &all, &Anything { replaced_from: 2, ..ALL });
    let gone: Vec<&[usize]> = moves.iter().map(|each| &*each.candidates).collect();
    assert_eq!(gone, [&[2, 3]]);
}

#[test]
fn no_more_nodes_go_than_budgets_allow() {
    let mut world = world(|world| sizes(world, 4));
    let all: Vec<Candidate> = (0..10).map(|_| sized(&mut world, 4, &[1])).collect();
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let moves = merge(&mut simulation, &all, &Anything { nodes: 3, ..ALL });
    assert_eq!(moves.iter().map(|each| each.candidates.len()).sum::<usize>(), 3);
}

#[test]
fn nodes_that_can_go_one_after_the_other_but_not_all_at_once_go_as_far_as_they_can() {
    let mut world = world(|world| sizes(world, 4));
    // 7 + 5 + 1 have room for 3 + 2 + 2, 3 + 2 and 1, but not if the large ones come first: 3 + 3, 2 + 2, and one is left.
    for (cpu, used) in [(8, 1), (8, 3), (2, 1)] {
        sized(&mut world, cpu, &[used]);
    }
    let all = [&[3, 2, 2][..], &[3, 2], &[1]].map(|pods| sized(&mut world, 8, pods));
    let rules = Anything { replaced_from: all.len(), ..ALL };
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let moves = merge(&mut simulation, &all, &rules);
    let [only] = &*moves else { panic!("{moves:?}") };
    assert_eq!(only.candidates.len(), 2, "{only:?}");
    let verdict = verdict(&world, &all, &only.candidates, &rules);
    assert!(matches!(verdict, Verdict::Delete), "{verdict:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_does_not_depend_on_the_number_of_threads(
        shapes in prop::collection::vec((0..4u32, prop::collection::vec(1..3u32, 0..4)), 2..12),
    ) {
        let (world, all) = random(&shapes);
        let simulation = Simulation::new(&world.snapshot, &world.options);
        let told = |threads: usize| format!("{:?}", examine_all(&simulation, &all, &ALL, threads, |_, _, verdict| verdict));
        let alone = told(1);
        prop_assert_eq!(&alone, &told(2));
        prop_assert_eq!(&alone, &told(5));
    }

    /// Repeating it comes to an end, money is saved with every step, and no pod is ever lost.
    #[test]
    fn every_step_saves_money_and_keeps_every_pod(
        shapes in prop::collection::vec((0..4u32, prop::collection::vec(1..3u32, 0..4)), 2..12),
    ) {
        let (world, all) = random(&shapes);
        let mut simulation = Simulation::new(&world.snapshot, &world.options);
        let moves = merge(&mut simulation, &all, &ALL);
        let mut gone: Vec<usize> = Vec::new();
        for each in &moves {
            prop_assert!(each.savings > 0.0);
            prop_assert!(each.candidates.len() > 1);
            let before: f64 = each.candidates.iter().map(|index| all[*index].price).sum();
            let after = match &each.verdict { Verdict::Replace(claim) => claim.price, _ => 0.0 };
            prop_assert!(after < before);
            gone.extend(&each.candidates);
        }
        let count = gone.len();
        gone.sort_unstable();
        gone.dedup();
        prop_assert_eq!(gone.len(), count, "no node goes twice");
        // Asked of the untouched cluster, all of it is possible together.
        let mut fresh = Simulation::new(&world.snapshot, &world.options);
        for each in &moves {
            let verdict = examine(&mut fresh, &all, &each.candidates, &ALL, true);
            prop_assert!(!matches!(verdict, Verdict::Keep(_)), "{:?}", verdict);
            adopt(&mut fresh, &all, &each.candidates);
        }
    }
}

/// Nodes of sizes 1 to 8 with pods as far as they fit.
fn random(shapes: &[(u32, Vec<u32>)]) -> (World, Vec<Candidate>) {
    let mut world = world(|world| sizes(world, 5));
    let mut all = Vec::new();
    for (exponent, pods) in shapes {
        let cpu = 1 << exponent;
        let mut left = cpu;
        let fits = |pod: &u32| {
            let fits = *pod <= left;
            left -= if fits { *pod } else { 0 };
            fits
        };
        let pods: Vec<u32> = pods.iter().copied().filter(fits).collect();
        all.push(sized(&mut world, cpu, &pods));
    }
    (world, all)
}

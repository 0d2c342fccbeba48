//! Which instance types are chosen, how many pods share a node, and what it costs.

use cluster::instance_types::{InstanceType, Offering};
use serde_json::json;

use crate::machines::{amounts, assorted, machine, offering};
use crate::objects::{Pod, key, node, pod, pool};
use crate::world::World;

/// The cheapest type of the only new node of a pod.
#[track_caller]
fn type_for(pod: Pod) -> String {
    World::with_pool().add(pod).only_node().types[0].clone()
}

#[track_caller]
fn check_pending(pod: Pod, text: &str) {
    World::with_pool().add(pod).round().expect_pending("a", text).expect_nodes(0);
}

/// An init container that asks for CPUs.
fn init(cpus: &str) -> serde_json::Value {
    json!({"initContainers": [{"name": "init", "resources": {"requests": {"cpu": cpus}}}]})
}

/// 27.4-01
#[test]
fn a_pod_larger_than_every_type_stays_pending() {
    for pod in [pod("a").asks("cpu=512"), pod("a").asks("memory=2Ti"), pod("a").spec(init("10k"))] {
        check_pending(pod, "no instance type has enough resources");
    }
    check_pending(pod("a").asks("cpu=2M"), "(CPU request >= 1 Million, m vs M typo?)");
}

/// 27.4-02
#[test]
fn pods_of_different_kinds_of_machines_do_not_share_a_node() {
    for (name, one, other) in [
        ("arch", "amd64", "arm64"),
        ("os", "linux", "windows"),
        ("type", "default", "small"),
        ("beta.kubernetes.io/instance-type", "default", "small"),
        ("beta.kubernetes.io/arch", "amd64", "arm64"),
        ("beta.kubernetes.io/os", "linux", "windows"),
        ("failure-domain.beta.kubernetes.io/zone", "z1", "z2"),
        ("zone", "z1", "z2"),
        ("capacity", "spot", "on-demand"),
    ] {
        let both = [one, other].map(|value| pod(value).selects(&format!("{name}={value}")));
        let [first, second] = both;
        let outcome = World::with_pool().add(first).add(second).round();
        outcome.expect_all_placed().expect_nodes(2);
        let name = match name.split_once("beta.kubernetes.io/") {
            Some((_, "instance-type")) => "type",
            Some((_, old)) => old,
            None => name,
        };
        assert_eq!(outcome.new_node(one).label(name), Some(one));
        assert_eq!(outcome.new_node(other).label(name), Some(other));
    }
}

/// 27.4-03
#[test]
fn a_pool_of_one_architecture_does_not_make_nodes_of_another() {
    let world = World::new().add(pool("default").requires("arch In amd64"));
    for pod in [pod("a").selects("type=arm"), pod("a").selects("os=ios"), pod("a").asks("cpu=14")] {
        World::with_pool().add(pod.clone()).only_node();
        world.clone().add(pod).round().expect_pending("a", "no instance type").expect_nodes(0);
    }
}

/// 27.4-04
#[test]
fn devices_of_different_types_need_different_nodes() {
    let one = pod("one").limited_to("example.com/gpu-a=1");
    let other = pod("other").limited_to("example.com/gpu-b=1");
    let outcome = World::with_pool().add(one).add(other).round();
    outcome.expect_all_placed().expect_nodes(2);
    assert_eq!(outcome.new_node("one").types, ["gpu-a"]);
    assert_eq!(outcome.new_node("other").types, ["gpu-b"]);
    let both = pod("a").limited_to("example.com/gpu-a=1 example.com/gpu-b=1");
    check_pending(both, "no instance type has enough resources");
}

/// 27.4-05
#[test]
fn labels_of_the_cloud_choose_types() {
    assert_eq!(type_for(pod("a").selects("size=large")), "arm");
    assert_eq!(type_for(pod("a").selects("size=small")), "small");
    for contradiction in ["size=large type=default", "size=small type=arm"] {
        check_pending(pod("a").selects(contradiction), "no instance type met all requirements");
    }
    assert_eq!(type_for(pod("a").requires("exotic Exists")), "arm");
    let node = World::with_pool().add(pod("a").requires("exotic DoesNotExist")).only_node();
    assert!(!node.types.contains(&"arm".to_owned()), "{:?}", node.types);
    assert_eq!(node.types.len(), 5);
}

/// 27.4-06
#[test]
fn the_smallest_type_that_is_large_enough_is_taken() {
    assert_eq!(type_for(pod("a").asks("memory=100M")), "small");
    assert_eq!(type_for(pod("a").asks("memory=2000M")), "small");
    assert_eq!(type_for(pod("a").asks("memory=2200M")), "default");
    assert_eq!(type_for(pod("a").asks("cpu=1")), "small");
    assert_eq!(type_for(pod("a").asks("cpu=1").spec(json!({"overhead": {"cpu": "2"}}))), "default");
    let node = World::with_pool().pods(5, &pod("tiny").asks("memory=10M")).only_node();
    assert_eq!((node.types[0].as_str(), node.pods.len()), ("small", 5));
}

/// 27.4-07
#[test]
fn nodes_are_filled_before_new_ones_are_made() {
    let large = pod("large").asks("memory=1.8G").selects("arch=amd64");
    let world = World::with_pool().pods(40, &large);
    let outcome = world.round();
    outcome.expect_all_placed().expect_nodes(20);
    assert!(outcome.nodes.iter().all(|node| node.types[0] == "default"));
    let outcome = world.pods(20, &pod("small").asks("memory=400M").selects("arch=amd64")).round();
    outcome.expect_all_placed().expect_nodes(20);
    assert_eq!(outcome.sizes(), [3; 20]);
}

/// 27.4-08
#[test]
fn a_pod_that_does_not_fit_gets_a_smaller_node_of_its_own() {
    let outcome = World::with_types(assorted(5))
        .add(pool("default"))
        .add(pod("large").asks("cpu=4.5"))
        .add(pod("small").asks("cpu=1"))
        .round();
    outcome.expect_all_placed().expect_nodes(2);
    assert_eq!(outcome.new_node("large").types, ["x5"]);
    assert_eq!(outcome.new_node("small").types[0], "x2");
}

/// 27.4-09
#[test]
fn nothing_of_an_unknown_resource_can_be_had_everywhere() {
    World::with_pool().add(pod("a").asks("example.com/unknown=0")).only_node();
    check_pending(pod("a").asks("example.com/unknown=1"), "no instance type has enough resources");
}

/// 27.4-10
#[test]
fn a_node_takes_only_so_many_pods() {
    let outcome = World::with_pool().pods(25, &pod("tiny").asks("cpu=10m").selects("arch=amd64")).round();
    assert_eq!(outcome.sizes(), [5; 5]);
    assert!(outcome.nodes.iter().all(|node| node.types[0] == "small"));
}

/// 27.4-11
#[test]
fn an_init_container_counts_for_the_size_of_the_node() {
    assert_eq!(type_for(pod("a").asks("cpu=1").spec(init("1"))), "small");
    assert_eq!(type_for(pod("a").asks("cpu=1").spec(init("2"))), "default");
}

/// 27.4-12
#[test]
fn a_larger_type_is_taken_if_it_is_cheaper() {
    let priced = |name: &str, cpus: u32, price: &str| {
        machine(name, &format!("cpu={cpus}")).offered(&format!("z1 spot {price}")).build()
    };
    let types = vec![
        priced("small", 1, "3"),
        priced("medium", 2, "1"),
        priced("large", 4, "2"),
        priced("tiny", 0, "9"),
    ];
    let node = World::with_types(types).add(pool("default")).add(pod("a").asks("cpu=500m")).only_node();
    assert_eq!(node.types, ["medium", "large", "small"]);
    assert!((node.price - 1.0).abs() < f64::EPSILON);
    assert_eq!(node.values("type"), ["large", "medium", "small"]);
}

/// 27.4-13
#[test]
fn devices_and_types_for_one_pod_are_not_shared() {
    let world = World::with_pool().pods(3, &pod("gpu").limited_to("example.com/gpu-a=1"));
    let outcome = world.round();
    assert_eq!(outcome.sizes(), [2, 1]);
    assert!(outcome.nodes.iter().all(|node| node.types == ["gpu-a"]));
    let outcome = World::with_pool().pods(3, &pod("alone").selects("type=single")).round();
    assert_eq!(outcome.sizes(), [1, 1, 1]);
}

/// The next of a sequence of numbers that look random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Types of two architectures and systems in two sizes, each offered in some places at a price of its own; the
/// order is arbitrary.
fn market(seed: u64) -> Vec<InstanceType> {
    let mut state = seed;
    let mut types = Vec::new();
    for arch in ["amd64", "arm64"] {
        for system in ["linux", "windows"] {
            for cpus in [2, 4, 8] {
                let name = format!("{arch}-{system}-{cpus}");
                let mut machine = machine(&name, &format!("cpu={cpus}")).arch(arch).systems(system);
                for place in ["z1 spot", "z2 spot", "z1 on-demand", "z2 on-demand", "z3 on-demand"] {
                    // Every type is missing somewhere, but all are to be had on demand in the second zone.
                    if place == "z2 on-demand" || !next(&mut state).is_multiple_of(3) {
                        machine = machine.offered(&format!("{place} {}", 1 + next(&mut state) % 1000));
                    }
                }
                let position = usize::try_from(next(&mut state)).expect("small") % (types.len() + 1);
                types.insert(position, machine.build());
            }
        }
    }
    types
}

/// Whether a type can be launched from an offering under conditions of the form `key In value…`.
fn suits(type_: &InstanceType, offering: &Offering, conditions: &[&str]) -> bool {
    conditions.iter().all(|condition| {
        let mut words = condition.split_whitespace();
        let name = key(words.next().expect("a key"));
        let allowed: Vec<&str> = words.skip(1).collect();
        let own = offering.requirements.iter().chain(&type_.requirements).find(|each| each.key == name);
        own.is_some_and(|own| own.values.iter().any(|value| allowed.contains(&value.as_str())))
    })
}

/// 27.4-14
#[test]
fn the_cheapest_offering_is_taken_whoever_narrows_the_choice() {
    let cases: [(&[&str], &[&str]); 20] = [
        (&[], &[]),
        (&[], &["arch In amd64"]),
        (&[], &["arch In arm64"]),
        (&["arch In amd64"], &[]),
        (&["arch In arm64"], &[]),
        (&["os In windows"], &[]),
        (&[], &["os In windows"]),
        (&["os In windows"], &["zone In z2"]),
        (&["os In windows", "zone In z2"], &[]),
        (&["zone In z2"], &[]),
        (&[], &["zone In z2"]),
        (&["capacity In spot"], &[]),
        (&[], &["capacity In spot"]),
        (&["capacity In on-demand", "zone In z1"], &[]),
        (&[], &["capacity In spot", "zone In z1"]),
        (&["capacity In spot"], &["zone In z1 z2"]),
        (&["capacity In on-demand", "zone In z1 z2"], &["arch In amd64", "os In linux"]),
        (&[], &["capacity In spot", "zone In z2", "arch In amd64", "os In linux"]),
        (&["capacity In spot", "zone In z2"], &["arch In amd64", "os In linux"]),
        (&["capacity In spot", "zone In z2", "arch In arm64", "os In windows"], &[]),
    ];
    for seed in 0..5 {
        let types = market(seed);
        for (of_pool, of_pod) in cases {
            let pool = of_pool.iter().fold(pool("default"), |pool, condition| pool.requires(condition));
            let pod = of_pod.iter().fold(pod("a").asks("cpu=1"), |pod, condition| pod.requires(condition));
            let conditions = [of_pool, of_pod].concat();
            let mut prices = Vec::new();
            for type_ in &types {
                let suitable = type_.offerings.iter().filter(|each| suits(type_, each, &conditions));
                let price = suitable.map(|each| each.price).min_by(f64::total_cmp);
                prices.extend(price.map(|price| (price, type_.name.clone())));
            }
            prices.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            let names: Vec<_> = prices.iter().map(|(_, name)| name.clone()).collect();
            let world = World::with_types(types.clone()).add(pool).add(pod);
            if names.is_empty() {
                world.round().expect_pending("a", "instance type");
                continue;
            }
            let node = world.only_node();
            assert_eq!(node.types, names, "{seed} {conditions:?}");
            assert!((node.price - prices[0].0).abs() < f64::EPSILON, "{seed} {conditions:?}");
        }
    }
}

/// 27.4-15
#[test]
fn a_combination_that_is_not_for_sale_stays_pending() {
    let types = vec![
        machine("amd", "").offered("z1 spot 1").offered("z2 spot 1").build(),
        machine("arm", "").arch("arm64").offered("z1 spot 1").build(),
    ];
    let world = World::with_types(types.clone());
    let pending = |pool, pod| {
        world.clone().add(pool).add(pod).round().expect_pending("a", "no instance type").expect_nodes(0);
    };
    pending(pool("default"), pod("a").selects("arch=arm64 zone=z2"));
    pending(pool("default").requires("arch In arm64"), pod("a").selects("zone=z2"));
    pending(pool("default").requires("zone In z2"), pod("a").selects("arch=arm64"));
    World::with_types(types[..1].to_vec())
        .add(pool("default"))
        .add(pod("a").selects("arch=arm64"))
        .round()
        .expect_pending("a", "no instance type")
        .expect_nodes(0);
}

/// 27.4-16
#[test]
fn every_type_that_is_offered_has_room_for_the_pods() {
    let mut state = 41;
    for _ in 0..20 {
        let mut world = World::with_types(assorted(64)).add(pool("default"));
        for number in 0..20 {
            let (cpu, memory) = (100 + next(&mut state) % 4000, 1 + next(&mut state) % 8);
            world.push(pod(&format!("p{number}")).asks(&format!("cpu={cpu}m memory={memory}Gi")));
        }
        let outcome = world.round();
        outcome.expect_all_placed();
        // Deciding leaves the types as they are, so it can be done again.
        assert_eq!(world.round().places, outcome.places);
        for node in &outcome.nodes {
            for name in &node.types {
                let type_ = world.types.iter().find(|type_| type_.name == *name).expect("a type");
                let mut wanted = type_.overhead.clone();
                wanted.add(&amounts(&format!(
                    "cpu={} memory={} pods={}",
                    node.request("cpu").expect("cpu"),
                    node.request("memory").expect("memory"),
                    node.pods.len()
                )));
                assert!(wanted.fits(&type_.capacity), "{name} is too small for {:?}", node.pods);
            }
        }
    }
}

/// 27.4-17
#[test]
fn only_prices_that_can_be_paid_are_compared() {
    let types = vec![
        machine("a", "").offered("z1 spot 1").offered("z1 on-demand 9").build(),
        machine("b", "").offered("z1 spot 5").offered("z1 on-demand 6").build(),
    ];
    let world = World::with_types(types).add(pod("a"));
    assert_eq!(world.clone().add(pool("default")).only_node().types, ["a", "b"]);
    let node = world.add(pool("default").requires("capacity In on-demand")).only_node();
    assert_eq!(node.types, ["b", "a"]);
    assert!((node.price - 6.0).abs() < f64::EPSILON);
}

/// Types of which one has an offering with more of something.
fn with_override(capacity: &str, overhead: Option<&str>, available: bool) -> World {
    let special = Offering {
        capacity_override: Some(amounts(capacity)),
        overhead_override: overhead.map(amounts),
        available,
        ..offering("z2 spot 2")
    };
    let types = vec![
        machine("plain", "").offered("z1 spot 1").build(),
        machine("special", "").offered("z1 spot 1").with_offering(special).build(),
    ];
    World::with_types(types).add(pool("default"))
}

/// 27.4-18
#[test]
fn an_offering_can_have_what_its_type_lacks() {
    let asking = pod("a").asks("example.com/extra=1");
    let node = with_override("example.com/extra=1", None, true).add(asking.clone()).only_node();
    assert_eq!(node.types, ["special"]);
    let outcome = with_override("example.com/extra=1", None, false).add(asking).round();
    outcome.expect_pending("a", "no instance type has enough resources");
    // An offering that is not for sale does not make a type look cheap either.
    let sold_out = Offering { available: false, ..offering("z1 spot 0.1") };
    let types = vec![
        machine("a", "").offered("z2 spot 2").with_offering(sold_out).build(),
        machine("b", "").offered("z1 spot 1").build(),
    ];
    let node = World::with_types(types).add(pool("default")).add(pod("a")).only_node();
    assert_eq!((node.types[0].as_str(), node.label("zone")), ("b", Some("z1")));
}

/// 27.4-19
#[test]
fn an_offering_replaces_what_its_type_has_and_keeps() {
    let roomy = with_override("memory=16Gi", Some("memory=3Gi"), true);
    assert_eq!(roomy.clone().add(pod("a").asks("memory=13Gi")).only_node().types, ["special"]);
    roomy.clone().add(pod("a").asks("memory=13313Mi")).round().expect_pending("a", "no instance type");
    // What is not replaced stays: the CPUs, and what the system keeps of them.
    roomy.clone().add(pod("a").asks("memory=13Gi cpu=3900m")).only_node();
    roomy.clone().add(pod("a").asks("memory=13Gi cpu=3901m")).round().expect_pending("a", "no instance type");
    // The other offering is as it was.
    roomy.clone().add(pod("a").asks("memory=13Gi").selects("zone=z1")).round().expect_pending("a", "");
    assert_eq!(roomy.add(pod("a").asks("memory=4000Mi")).only_node().types, ["plain", "special"]);
}

/// 27.4-20
#[test]
fn huge_pages_are_taken_from_the_memory() {
    let type_ =
        |pages: &str| vec![machine("huge", &format!("memory=4Gi hugepages-2Mi={pages}")).keeps("").build()];
    let world = World::with_types(type_("1Gi")).add(pool("default"));
    world.clone().add(pod("a").asks("memory=3Gi")).only_node();
    world.add(pod("a").asks("memory=3073Mi")).round().expect_pending("a", "no instance type");
    // More pages than memory leave none, not less than none.
    let world = World::with_types(type_("8Gi")).add(pool("default"));
    world.clone().add(pod("a").asks("cpu=1 hugepages-2Mi=8Gi")).only_node();
    world.add(pod("a").asks("memory=1")).round().expect_pending("a", "no instance type");
}

/// 27.4-21
#[test]
fn a_pool_that_wants_the_impossible_says_so_for_every_pod() {
    let text = "nodepool requirements filtered out all available instance types";
    for pool in [
        pool("default").requires("type In unknown"),
        pool("default").requires("arch In s390x"),
        pool("default").requires("zone In nowhere"),
        pool("default").requires("zone In z1").requires("zone In z2"),
        pool("default").requires("zone In z3").requires("capacity In spot"),
    ] {
        for count in [1, 3] {
            let outcome = World::new().add(pool.clone()).pods(count, &pod("p")).round();
            for number in 1..=count {
                outcome.expect_pending(&format!("p-{number}"), text);
            }
        }
        // Nodes that exist take pods all the same.
        let world = World::new().add(pool).add(node("bare", "cpu=1 pods=1")).add(pod("a"));
        world.round().expect_on("a", "bare");
    }
}

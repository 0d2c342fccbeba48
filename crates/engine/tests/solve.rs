//! What the solver decides, in small worlds.

mod world;

use engine::model::{Effect, NodeId};
use engine::solve::Place;
use engine::text::Texts;
use world::{ARCH, HOSTNAME, OS, World, ZONE, on_nodes, placed, sizes};

#[test]
fn pods_that_fit_together_share_a_node_of_the_cheapest_type() {
    let mut world = World::with_simulated_types();
    let class = world.class(&[("cpu", "500m"), ("memory", "256Mi")]);
    world.pods(10, class);
    let plan = world.solve();
    assert_eq!(sizes(&plan), [10]);
    let cheapest = plan.claims[0].types[0];
    let name = world.snapshot.catalogues[0].types[cheapest].name;
    assert_eq!(plan.universe.values(world.snapshot.keys.instance_type).name(name), "c-8x-amd64-linux");
}

#[test]
fn a_zonal_spread_keeps_the_zones_even() {
    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web")]);
    class.spreads = vec![world.spread(ZONE, 1, &[("app", "web")])];
    world.pods(8, class);
    assert_eq!(sizes(&world.solve()), [2, 2, 2, 2]);
}

#[test]
fn a_host_spread_gives_each_pod_its_own_node() {
    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web")]);
    class.spreads = vec![world.spread(HOSTNAME, 1, &[("app", "web")])];
    world.pods(5, class);
    assert_eq!(sizes(&world.solve()), [1, 1, 1, 1, 1]);
}

#[test]
fn pods_that_avoid_each_other_on_hosts_get_a_node_each() {
    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web")]);
    class.anti_affinities = vec![world.term(HOSTNAME, &[("app", "web")])];
    world.pods(3, class);
    let small = world.class(&[("cpu", "100m")]);
    world.pods(4, small);
    let plan = world.solve();
    assert_eq!(placed(&plan), 7);
    assert_eq!(plan.claims.len(), 3);
}

#[test]
fn pods_that_want_to_be_near_each_other_share_a_zone() {
    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "100"), ("memory", "1Gi")]);
    class.labels = world.labels(&[("app", "web")]);
    class.affinities = vec![world.term(ZONE, &[("app", "web")])];
    world.pods(6, class);
    let plan = world.solve();
    assert_eq!(placed(&plan), 6);
    let zone = world.snapshot.keys.zone;
    let zones: Vec<_> =
        plan.claims.iter().map(|claim| plan.universe.find(claim.requirements, zone)).collect();
    assert!(zones.windows(2).all(|pair| pair[0] == pair[1]) && zones[0].is_some());
}

#[test]
fn a_pod_that_is_too_large_says_so_and_hides_nobody() {
    let mut world = World::with_simulated_types();
    let giant = world.class(&[("cpu", "512")]);
    world.pods(3, giant);
    let small = world.class(&[("cpu", "1")]);
    world.pods(2, small);
    let plan = world.solve();
    assert_eq!(placed(&plan), 2);
    let texts = Texts { snapshot: &world.snapshot, universe: &plan.universe };
    let failure = plan.failures[0].as_ref().expect("the first pod is too large");
    assert_eq!(
        texts.failure(failure),
        "no instance type has enough resources, requirements=karpenter.sh/nodepool In [default], \
         resources={\"cpu\":\"512\",\"pods\":\"1\"}"
    );
}

#[test]
fn a_tainted_pool_takes_only_pods_that_tolerate_it() {
    let mut world = World::with_simulated_types();
    world.snapshot.pools[0].taints = world.taints(&[("team=gpu", Effect::NoSchedule)]);
    let intolerant = world.class(&[("cpu", "1")]);
    world.pods(1, intolerant.clone());
    let mut tolerant = intolerant;
    tolerant.tolerations = world.tolerations(&["team"]);
    world.pods(1, tolerant);
    let plan = world.solve();
    assert_eq!(placed(&plan), 1);
    let texts = Texts { snapshot: &world.snapshot, universe: &plan.universe };
    assert_eq!(
        texts.failure(plan.failures[0].as_ref().expect("not tolerated")),
        "did not tolerate taint (taint=team=gpu:NoSchedule)"
    );
}

#[test]
fn node_preferences_are_dropped_one_by_one() {
    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "1")]);
    class.preferred_terms = vec![
        (1, world.set(&[(ZONE, "In", &["test-zone-a"])])),
        (100, world.set(&[(ZONE, "In", &["nowhere"])])),
        (50, world.set(&[(ZONE, "In", &["test-zone-b"])])),
    ];
    world.pods(1, class);
    let plan = world.solve();
    let requirement =
        plan.universe.find(plan.claims[0].requirements, world.snapshot.keys.zone).expect("a zone");
    let zone = plan.universe.get(requirement).single().expect("one zone");
    assert_eq!(plan.universe.values(world.snapshot.keys.zone).name(zone), "test-zone-b");
}

#[test]
fn the_same_snapshot_gives_the_same_plan() {
    let mut world = World::with_simulated_types();
    for app in ["a", "b", "c"] {
        let mut class = world.class(&[("cpu", "700m"), ("memory", "1Gi")]);
        class.labels = world.labels(&[("app", app)]);
        class.spreads = vec![world.spread(ZONE, 1, &[("app", app)])];
        world.pods(20, class);
    }
    let describe = |plan: &engine::solve::Plan| {
        plan.claims.iter().map(|c| (c.types.clone(), c.pods.clone(), c.price.to_bits())).collect::<Vec<_>>()
    };
    assert_eq!(describe(&world.solve()), describe(&world.solve()));
}

#[test]
fn a_funnel_shows_where_the_types_fall_away() {
    use engine::explain::{Explainer, Step};
    use engine::model::{ClassId, PoolId};
    use engine::solve::Failure;

    let mut world = World::with_simulated_types();
    let mut class = world.class(&[("cpu", "300")]);
    class.node_selector = world.set(&[(ARCH, "In", &["amd64"]), (OS, "In", &["linux"])]);
    world.pods(1, class);
    let plan = world.solve();
    let Some(Failure::Pools(refused)) = plan.failures[0].as_deref() else { panic!("it fits nowhere") };
    let mut explainer = Explainer::new(&world.snapshot, &plan.universe);
    let funnel = explainer.funnel(PoolId(0), ClassId(0), &refused[0].1).expect("the pool has types");
    let (arch, os) = (world.key(ARCH), world.key(OS));
    assert_eq!(
        funnel.steps,
        [(Step::Exists, 144), (Step::Label(arch), 72), (Step::Label(os), 36), (Step::Fits, 0),]
    );
    let nearest = funnel.nearest.expect("some type comes near");
    let name = world.snapshot.catalogues[0].types[nearest.type_].name;
    let key = world.snapshot.keys.instance_type;
    assert!(world.snapshot.universe.values(key).name(name).contains("-256x-"));
    let (resource, missing) = nearest.lacks.expect("it is too small");
    assert_eq!(
        engine::resources::quantity(resource, missing, units::Format::DecimalSi).to_string(),
        "44100m"
    );
}

#[test]
fn a_running_pod_guards_a_zone_that_no_pool_has() {
    let mut world = World::with_simulated_types();
    let node = world.node("old", &[(ZONE, "zone-x")], &[("cpu", "4"), ("pods", "10")]);
    world.guard(node, ZONE, &[("app", "web")]);
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web")]);
    world.pods(1, class);
    let plan = world.solve();
    assert_eq!((placed(&plan), on_nodes(&plan)), (1, 0));
}

#[test]
fn a_node_in_no_zone_takes_a_pod_that_is_kept_out_of_all_zones() {
    let mut world = World::with_simulated_types();
    let rules =
        [("test-zone-a", "app"), ("test-zone-b", "app"), ("test-zone-c", "tier"), ("test-zone-d", "tier")];
    for (zone, label) in rules {
        let full = world.node(zone, &[(ZONE, zone)], &[]);
        world.guard(full, ZONE, &[(label, "web")]);
    }
    world.node("elsewhere", &[], &[("cpu", "4"), ("pods", "10")]);
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web"), ("tier", "web")]);
    world.pods(1, class);
    let plan = world.solve();
    assert_eq!((placed(&plan), on_nodes(&plan)), (1, 1));
}

#[test]
fn running_pods_count_where_their_node_object_says_it_is() {
    let mut world = World::with_simulated_types();
    let node = world.node("new", &[(ZONE, "test-zone-a")], &[("cpu", "4"), ("pods", "10")]);
    world.running(node, &[("app", "web")], 1);
    let mut class = world.class(&[("cpu", "1")]);
    class.labels = world.labels(&[("app", "web")]);
    class.anti_affinities = vec![world.term(ZONE, &[("app", "web")])];
    world.pods(1, class);
    assert_eq!(on_nodes(&world.solve()), 0);
    // Until it registers, only its claim knows the zone.
    let unlabelled = world.set(&[]);
    world.snapshot.nodes[0].object.as_mut().expect("the node has an object").labels = unlabelled;
    assert_eq!(on_nodes(&world.solve()), 1);
}

/// Two nodes of four processors; a plan in order of size would fill the first with the two large pods.
fn nominations() -> World {
    let mut world = World::with_simulated_types();
    let large = world.class(&[("cpu", "2")]);
    world.pods(2, large);
    let mut spread = world.class(&[("cpu", "1")]);
    spread.labels = world.labels(&[("app", "web")]);
    spread.spreads = vec![world.spread(HOSTNAME, 1, &[("app", "web")])];
    world.pods(2, spread);
    for name in ["a", "b"] {
        world.node(name, &[(ARCH, "amd64"), (OS, "linux")], &[("cpu", "4"), ("pods", "10")]);
    }
    world
}

#[test]
fn pods_keep_the_nodes_they_were_nominated_for() {
    let mut world = nominations();
    assert_eq!(sizes(&world.solve()), [1], "placed anew, one of the spread pods finds its node full");
    for (pod, node) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        world.snapshot.pods[pod].nominated = Some(NodeId::at(node));
    }
    let plan = world.solve();
    assert_eq!(sizes(&plan), [0usize; 0]);
    let nodes = [0, 1, 0, 1].map(|node| Some(Place::Node(NodeId::at(node))));
    assert_eq!(plan.places, nodes);
}

#[test]
fn a_nomination_does_not_bend_a_rule() {
    let mut world = nominations();
    // Both large ones are nominated for a node that others have taken, both spread ones for the same node.
    let taken = world.requests(&[("cpu", "1"), ("pods", "10")]);
    world.snapshot.nodes[0].available = taken;
    for (pod, node) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        world.snapshot.pods[pod].nominated = Some(NodeId::at(node));
    }
    let plan = world.solve();
    assert_eq!(plan.places[2], Some(Place::Node(NodeId::at(1))));
    assert_eq!(plan.places[3], Some(Place::Node(NodeId::at(0))));
    assert_eq!(placed(&plan), 4);
    // A node that is being deleted takes nobody.
    world.snapshot.nodes[1].open = false;
    assert_ne!(world.solve().places[2], Some(Place::Node(NodeId::at(1))));
}

#[test]
fn a_claim_is_full_if_not_even_the_smallest_waiting_pod_would_fit() {
    let mut world = World::with_simulated_types();
    let large = world.class(&[("cpu", "200")]);
    world.pods(1, large);
    let full = |world: &World| world.solve().claims.iter().map(|claim| claim.full).collect::<Vec<_>>();
    assert_eq!(full(&world), [true], "another one would need 400 processors");
    let small = world.class(&[("cpu", "1")]);
    world.pods(1, small);
    assert_eq!(full(&world), [false]);
    let smaller = world.class(&[("memory", "1Gi")]);
    world.pods(1, smaller);
    assert_eq!(full(&world), [false]);
}

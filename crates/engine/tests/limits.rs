//! NodePool limits within a round: they hold whatever the cloud chooses, and they waste nothing.

mod world;

use engine::intern::ResourceId;
use engine::model::{InstanceType, NodeId, PoolId, ReservationId, Runs, Snapshot};
use engine::options::{MinValues, Options, Reserved};
use engine::requirement::Requirement;
use engine::resources::Amounts;
use engine::solve::{Failure, Plan, PlannedClaim, PoolFailure, Question, Simulation};
use proptest::prelude::*;
use world::{CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, World, ZONE, placed};

/// Pods that need a node each.
fn apart(world: &mut World, count: usize, amounts: &[(&str, &str)]) {
    let mut class = world.class(amounts);
    class.labels = world.labels(&[("app", "web")]);
    class.anti_affinities = vec![world.term(HOSTNAME, &[("app", "web")])];
    world.pods(count, class);
}

fn types<'s>(snapshot: &'s Snapshot, claim: &PlannedClaim) -> Vec<&'s InstanceType> {
    let catalogue = snapshot.pools[claim.pool.index()].catalogue.expect("the pool has types");
    claim.types.iter().map(|type_| &snapshot.catalogues[catalogue.index()].types[*type_]).collect()
}

/// What the claims of a pool have at most, whatever the cloud chooses.
fn most(snapshot: &Snapshot, claims: &[PlannedClaim], pool: PoolId) -> Amounts {
    let mut sum = Amounts::default();
    for claim in claims.iter().filter(|claim| claim.pool == pool) {
        let mut most = Amounts::default();
        for it in types(snapshot, claim) {
            most.raise_to(&it.capacity);
        }
        most.set(ResourceId::NODES, 1000);
        sum.add(&most);
    }
    sum
}

/// The processors of the smallest and of the largest type that a claim names.
fn range(world: &World, claim: &PlannedClaim) -> (i64, i64) {
    let cpus = || types(&world.snapshot, claim).into_iter().map(|it| it.capacity.get(ResourceId::CPU));
    let least = cpus().min().expect("a claim names types");
    (least / 1_000_000_000, cpus().max().expect("a claim names types") / 1_000_000_000)
}

/// Whether some pool may have room once the cloud has chosen.
fn is_unsettled(failure: &Failure) -> bool {
    matches!(failure, Failure::Pools(pools) if pools.iter().any(|(_, why)| *why == PoolFailure::LimitsUnsettled))
}

fn pools(plan: &Plan) -> Vec<u16> {
    plan.claims.iter().map(|claim| claim.pool.0).collect()
}

#[test]
fn claims_of_one_round_share_a_limit() {
    let mut world = World::with_simulated_types();
    world.limit(0, "cpu", "64");
    apart(&mut world, 6, &[("cpu", "500m")]);
    let plan = world.solve();
    assert_eq!((placed(&plan), plan.claims.len()), (6, 6));
    // Of 64 processors 6 are counted, and each of the six claims has a sixth of the rest: 10.67 in all.
    for claim in &plan.claims {
        assert_eq!(range(&world, claim), (1, 8));
    }
}

#[test]
fn a_pool_of_lower_weight_is_used_only_when_the_first_is_full() {
    let mut world = World::with_simulated_types();
    let catalogue = world.snapshot.pools[0].catalogue.expect("the pool has types");
    world.pool("fallback", &[], catalogue);
    for (limit, expected) in [("64", [0; 6]), ("6", [0; 6]), ("4", [0, 0, 0, 0, 1, 1])] {
        world.snapshot.pools[0].limits.clear();
        world.snapshot.pods.clear();
        world.limit(0, "cpu", limit);
        apart(&mut world, 6, &[("cpu", "500m")]);
        assert_eq!(pools(&world.solve()), expected, "{limit}");
    }
}

#[test]
fn a_limit_that_is_far_away_changes_nothing() {
    let plan = |limit: Option<&str>| {
        let mut world = World::with_simulated_types();
        if let Some(limit) = limit {
            world.limit(0, "cpu", limit);
        }
        apart(&mut world, 5, &[("cpu", "3")]);
        let class = world.class(&[("cpu", "700m"), ("memory", "3Gi")]);
        world.pods(400, class);
        let plan = world.solve();
        let told = |claim: &PlannedClaim| (claim.types.clone(), claim.pods.clone(), claim.price.to_bits());
        plan.claims.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(plan(Some("10k")), plan(None));
}

#[test]
fn a_claim_grows_as_long_as_its_pool_has_room() {
    let mut world = World::with_simulated_types();
    world.limit(0, "cpu", "64");
    let class = world.class(&[("cpu", "1")]);
    world.pods(100, class);
    let plan = world.solve();
    // A node of 64 processors has room for 63 of them.
    assert_eq!((placed(&plan), plan.claims.len(), range(&world, &plan.claims[0])), (63, 1, (64, 64)));
}

#[test]
fn claims_do_not_outgrow_a_limit_side_by_side() {
    let mut world = World::with_simulated_types();
    world.limit(0, "cpu", "24");
    // Two nodes that cannot be one, and pods that could fill any number of them.
    apart(&mut world, 2, &[("cpu", "2")]);
    let class = world.class(&[("cpu", "1")]);
    world.pods(40, class);
    let plan = world.solve();
    let cpus = most(&world.snapshot, &plan.claims, PoolId(0)).get(ResourceId::CPU) / 1_000_000_000;
    assert_eq!((plan.claims.len(), cpus), (2, 24));
    // 16 and 8 processors, of which a tenth of one is the system's each: room for 2 + 13 and 2 + 5.
    assert_eq!(placed(&plan), 2 + 13 + 5);
}

#[test]
fn every_limited_resource_is_kept() {
    for (limits, expected) in [
        (vec![("cpu", "100"), ("memory", "12Gi")], 6),
        (vec![("cpu", "5"), ("memory", "100Gi")], 5),
        (vec![("pods", "40")], 2),
        (vec![("nodes", "3"), ("cpu", "100")], 3),
        (vec![("example.com/gpu", "0")], 10),
        (vec![("cpu", "0")], 0),
    ] {
        let mut world = World::with_simulated_types();
        for (name, amount) in &limits {
            world.limit(0, name, amount);
        }
        apart(&mut world, 10, &[("cpu", "500m")]);
        assert_eq!(placed(&world.solve()), expected, "{limits:?}");
    }
}

#[test]
fn as_many_types_count_as_must_be_to_choose_from() {
    let mut world = World::new();
    let sized = |world: &mut World, cpu: u32| {
        let amounts = [("cpu", cpu.to_string()), ("pods", "10".to_owned())];
        let amounts: Vec<(&str, &str)> = amounts.iter().map(|(name, it)| (*name, it.as_str())).collect();
        world.instance_type(&format!("t{cpu}"), &amounts, &["a"], f64::from(cpu))
    };
    let types = [1, 2, 4, 8, 16].map(|cpu| sized(&mut world, cpu)).to_vec();
    let catalogue = world.catalogue(types);
    world.pool("default", &[], catalogue);
    let key = world.key(INSTANCE_TYPE);
    let demand = Requirement::exists().with_min_values(Some(3));
    let pool = world.snapshot.pools[0].requirements;
    world.snapshot.pools[0].requirements = world.snapshot.universe.replaced(pool, key, demand);
    world.limit(0, "cpu", "10");
    apart(&mut world, 4, &[("cpu", "1")]);
    // Three types are needed, the largest of which has four processors: two of these are below ten.
    let plan = world.solve();
    assert_eq!(plan.claims.iter().map(|claim| claim.types.len()).collect::<Vec<_>>(), [3, 3]);
    // The others wait for what the cloud chooses: if it is the smallest, there is room for them.
    let failures: Vec<_> = plan.failures.iter().flatten().collect();
    assert!(failures.len() == 2 && failures.iter().all(|it| is_unsettled(it)), "{failures:?}");
    // With less demand there is room for all.
    world.options = Options { min_values: MinValues::BestEffort, ..Options::default() };
    let plan = world.solve();
    assert_eq!(placed(&plan), 4);
    // Ten processors for four claims are two and a half each.
    for claim in &plan.claims {
        assert_eq!((range(&world, claim), claim.min_values_relaxed), ((1, 2), true));
    }
}

#[test]
fn a_claim_that_holds_a_reservation_keeps_a_type_that_has_one() {
    let mut world = with_a_reservation_of_the_larger_type();
    world.limit(0, "cpu", "12");
    apart(&mut world, 3, &[("cpu", "1")]);
    let plan = world.solve();
    // The first holds the reservation, for which eight processors are needed; four are left for two more.
    assert_eq!(placed(&plan), 3);
    let held: Vec<_> = plan.claims.iter().map(|claim| (claim.reserved, range(&world, claim))).collect();
    assert_eq!(held, [(true, (2, 8)), (false, (2, 2)), (false, (2, 2))]);
}

/// The API server refuses a NodeClaim with fewer values than its `minValues`.
#[test]
fn a_claim_that_holds_a_reservation_names_as_many_types_as_its_pool_demands() {
    let mut world = with_a_reservation_of_the_larger_type();
    let key = world.key(INSTANCE_TYPE);
    let demand = Requirement::exists().with_min_values(Some(2));
    let pool = world.snapshot.pools[0].requirements;
    world.snapshot.pools[0].requirements = world.snapshot.universe.replaced(pool, key, demand);
    apart(&mut world, 1, &[("cpu", "1")]);
    let mut plan = world.solve();
    let [claim] = &plan.claims[..] else { panic!("{:?}", plan.claims) };
    assert!(claim.reserved);
    // What can be launched comes first.
    assert_eq!(claim.types, [1, 0]);
    let written = claim.written(&world.snapshot, &mut plan.universe);
    let entry = written.iter().find(|entry| entry.key == INSTANCE_TYPE).expect("a claim names its types");
    assert_eq!((entry.values.join(" ").as_str(), entry.min_values), ("large small", Some(2)));
    let entry =
        written.iter().find(|entry| entry.key == CAPACITY_TYPE).expect("a claim says how it is bought");
    assert_eq!(entry.values, ["reserved"]);
}

/// A pool of two types, of which the larger can be had in one reservation only.
fn with_a_reservation_of_the_larger_type() -> World {
    let mut world = World::new();
    world.options = Options { reserved: Reserved::Fallback, ..Options::default() };
    let reservation = ReservationId(world.snapshot.reservations.intern("cr-1"));
    let small = world.instance_type("small", &[("cpu", "2"), ("pods", "10")], &["a"], 1.0);
    let mut large = world.instance_type("large", &[("cpu", "8"), ("pods", "10")], &["a"], 3.0);
    let key = world.snapshot.keys.reservation.expect("there are reservations");
    let id = world.snapshot.universe.value(key, "cr-1");
    let reserved = world.set(&[(ZONE, "In", &["a"]), (CAPACITY_TYPE, "In", &["reserved"])]);
    let reserved = world.snapshot.universe.replaced(reserved, key, Requirement::within([id]));
    large.requirements = world.set(&[
        (INSTANCE_TYPE, "In", &["large"]),
        (ZONE, "In", &["a"]),
        (CAPACITY_TYPE, "In", &["reserved", "on-demand"]),
    ]);
    large.offerings[0].requirements = reserved;
    large.offerings[0].reservation = Some((reservation, 1));
    let catalogue = world.catalogue(vec![small, large]);
    world.pool("default", &[], catalogue);
    world
}

#[test]
fn what_is_adopted_takes_all_that_it_may_become() {
    let mut world = World::with_simulated_types();
    world.limit(0, "cpu", "20");
    let pool = [("karpenter.sh/nodepool", "default")];
    for name in ["a", "b"] {
        world.node(name, &pool, &[("pods", "1")]);
    }
    apart(&mut world, 2, &[("cpu", "500m")]);
    for (pod, node) in world.snapshot.pods.iter_mut().zip([NodeId(0), NodeId(1)]) {
        pod.runs = Some(Runs { on: node, counted: true, blocked: false });
    }
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let (a, b) = ([NodeId(0)], [NodeId(1)]);
    let before = simulation.ask(&Question::without(&b));
    assert_eq!(range(&world, &before.claims[0]), (1, 16));
    let adopted = simulation.adopt(&Question::without(&a));
    assert_eq!(range(&world, &adopted.claims[0]), (1, 16));
    // Of twenty processors four are left.
    let after = simulation.ask(&Question::without(&b));
    assert_eq!(range(&world, &after.claims[0]), (1, 4));
}

/// A pool's limits, and how many different types a claim must name.
#[derive(Clone, Debug)]
struct RandomPool {
    cpu: Option<u32>,
    memory: Option<u32>,
    nodes: Option<u32>,
    min_values: Option<u32>,
}

#[derive(Clone, Debug)]
struct Cluster {
    pools: Vec<RandomPool>,
    /// Processors, memory, and how many at most together on a node.
    pods: Vec<(u32, u32, bool)>,
    best_effort: bool,
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let pool = (
        prop::option::of(0..120u32),
        prop::option::weighted(0.3, 0..200u32),
        prop::option::weighted(0.2, 0..6u32),
        prop::option::weighted(0.2, 1..20u32),
    );
    let pool =
        pool.prop_map(|(cpu, memory, nodes, min_values)| RandomPool { cpu, memory, nodes, min_values });
    let pod = (1..80u32, 1..64u32, any::<bool>());
    (prop::collection::vec(pool, 1..4), prop::collection::vec(pod, 1..30), any::<bool>())
        .prop_map(|(pools, pods, best_effort)| Cluster { pools, pods, best_effort })
}

fn build(cluster: &Cluster) -> World {
    let mut world = World::with_simulated_types();
    let catalogue = world.snapshot.pools[0].catalogue.expect("the pool has types");
    world.snapshot.pools.clear();
    let key = world.key(INSTANCE_TYPE);
    for (number, pool) in cluster.pools.iter().enumerate() {
        world.pool(&format!("pool-{number}"), &[], catalogue);
        if let Some(demand) = pool.min_values {
            let demand = Requirement::exists().with_min_values(Some(demand));
            let own = world.snapshot.pools[number].requirements;
            world.snapshot.pools[number].requirements = world.snapshot.universe.replaced(own, key, demand);
        }
        for (name, limit, unit) in
            [("cpu", pool.cpu, ""), ("memory", pool.memory, "Gi"), ("nodes", pool.nodes, "")]
        {
            if let Some(limit) = limit {
                world.limit(number, name, &format!("{limit}{unit}"));
            }
        }
    }
    for (cpu, memory, is_apart) in &cluster.pods {
        let amounts = [("cpu", format!("{}m", cpu * 100)), ("memory", format!("{memory}Gi"))];
        let amounts: Vec<(&str, &str)> = amounts.iter().map(|(name, it)| (*name, it.as_str())).collect();
        if *is_apart {
            apart(&mut world, 1, &amounts);
        } else {
            let class = world.class(&amounts);
            world.pods(1, class);
        }
    }
    if cluster.best_effort {
        world.options = Options { min_values: MinValues::BestEffort, ..Options::default() };
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_cloud_chooses_limits_hold(cluster in cluster()) {
        let world = build(&cluster);
        let plan = world.solve();
        for (number, pool) in world.snapshot.pools.iter().enumerate() {
            let most = most(&world.snapshot, &plan.claims, PoolId::at(number));
            for limit in &pool.limits {
                prop_assert!(most.get(limit.resource) <= limit.remaining.max(0), "pool {} {:?}", number, limit);
            }
        }
        for claim in &plan.claims {
            prop_assert!(!claim.types.is_empty());
            let demand = cluster.pools[claim.pool.index()].min_values.filter(|_| !cluster.best_effort);
            prop_assert!(claim.types.len() >= demand.unwrap_or(1) as usize);
            for it in types(&world.snapshot, claim) {
                prop_assert!(claim.requests.fits(&it.capacity), "{:?}", claim.requests);
            }
        }
    }

    /// What stays pending for a limit finds no place in the next round either, when the cloud has chosen; unless it has
    /// chosen less of one resource for more of another.
    #[test]
    fn another_round_finds_no_place_that_the_first_has_not(cluster in cluster()) {
        prop_assume!(cluster.pools.iter().all(|pool| pool.memory.is_none() || pool.cpu.is_none()));
        let mut world = build(&cluster);
        let plan = world.solve();
        let mut used = vec![Amounts::default(); world.snapshot.pools.len()];
        for claim in &plan.claims {
            let (type_, _) = claim.cheapest.expect("a claim has a price");
            let catalogue = world.snapshot.pools[claim.pool.index()].catalogue.expect("the pool has types");
            let it = &world.snapshot.catalogues[catalogue.index()].types[type_];
            used[claim.pool.index()].add(&it.capacity);
            used[claim.pool.index()].increase(ResourceId::NODES, 1000);
        }
        for (pool, used) in world.snapshot.pools.iter_mut().zip(&used) {
            for limit in &mut pool.limits {
                limit.remaining -= used.get(limit.resource);
            }
        }
        // Those that avoid each other avoid the nodes of the first round, too; the others find less room than there is.
        let mut pods = std::mem::take(&mut world.snapshot.pods);
        let mut pending = plan.failures.iter().map(|it| it.as_ref().is_some_and(|it| !is_unsettled(it)));
        pods.retain(|_| pending.next().unwrap_or(false));
        world.snapshot.pods = pods;
        prop_assert_eq!(placed(&world.solve()), 0);
    }
}

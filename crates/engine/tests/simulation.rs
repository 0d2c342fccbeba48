//! Asking what would happen gives the answer of a solve in which it has happened, and leaves no trace.

mod world;

use engine::model::{
    ClassId, Guard, NodeId, Pod, PodClass, PodId, PoolId, ReservationId, Running, Runs, Share, Snapshot,
};
use engine::options::{Options, Reserved};
use engine::solve::{Answer, Place, Question, Simulation, solve};
use engine::universe::Universe;
use proptest::prelude::*;
use world::{CAPACITY_TYPE, HOSTNAME, World, ZONE};

const ZONES: [&str; 5] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d", "an-old-zone"];
const APPS: [&str; 3] = ["a", "b", "c"];

/// What a pod asks for besides room.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Nothing,
    ZoneSpread,
    WishedZoneSpread,
    HostSpread,
    HostAntiAffinity,
    ZoneAntiAffinity,
    ZoneAffinity,
    HostAffinity,
    Zone(usize),
}

#[derive(Clone, Debug)]
struct RandomPod {
    app: usize,
    cpu: u32,
    rule: Rule,
    on: usize,
    terminates: bool,
    blocked: bool,
}

#[derive(Clone, Debug)]
struct Cluster {
    /// Zone and free CPUs.
    nodes: Vec<(usize, u32)>,
    pods: Vec<RandomPod>,
    limit: Option<u32>,
    /// Which nodes go, one set for each question.
    questions: Vec<Vec<usize>>,
}

fn rule() -> impl Strategy<Value = Rule> {
    prop_oneof![
        4 => Just(Rule::Nothing),
        2 => Just(Rule::ZoneSpread),
        1 => Just(Rule::WishedZoneSpread),
        2 => Just(Rule::HostSpread),
        2 => Just(Rule::HostAntiAffinity),
        1 => Just(Rule::ZoneAntiAffinity),
        1 => Just(Rule::ZoneAffinity),
        1 => Just(Rule::HostAffinity),
        1 => (0..ZONES.len()).prop_map(Rule::Zone),
    ]
}

fn cluster() -> impl Strategy<Value = Cluster> {
    (2..7usize).prop_flat_map(|count| {
        let pod =
            (0..APPS.len(), 1..6u32, rule(), 0..count, prop::bool::weighted(0.1), prop::bool::weighted(0.1));
        let pod = pod.prop_map(|(app, cpu, rule, on, terminates, blocked)| RandomPod {
            app,
            cpu,
            rule,
            on,
            terminates,
            blocked,
        });
        let node = (0..ZONES.len(), 0..8u32);
        let question = prop::collection::vec(0..count, 1..3);
        (
            prop::collection::vec(node, count),
            prop::collection::vec(pod, 1..16),
            prop::option::weighted(0.2, 0..20u32),
            prop::collection::vec(question, 1..5),
        )
            .prop_map(|(nodes, pods, limit, questions)| Cluster { nodes, pods, limit, questions })
    })
}

fn class(world: &mut World, pod: &RandomPod) -> PodClass {
    let app = [("app", APPS[pod.app])];
    let mut class = world.class(&[("cpu", &pod.cpu.to_string())]);
    class.labels = world.labels(&app);
    match pod.rule {
        Rule::Nothing => {}
        Rule::ZoneSpread => class.spreads = vec![world.spread(ZONE, 1, &app)],
        Rule::WishedZoneSpread => {
            let mut spread = world.spread(ZONE, 1, &app);
            spread.optional = true;
            class.spreads = vec![spread];
        }
        Rule::HostSpread => class.spreads = vec![world.spread(HOSTNAME, 1, &app)],
        Rule::HostAntiAffinity => class.anti_affinities = vec![world.term(HOSTNAME, &app)],
        Rule::ZoneAntiAffinity => class.anti_affinities = vec![world.term(ZONE, &app)],
        Rule::ZoneAffinity => class.affinities = vec![world.term(ZONE, &app)],
        Rule::HostAffinity => class.affinities = vec![world.term(HOSTNAME, &app)],
        Rule::Zone(zone) => class.node_selector = world.set(&[(ZONE, "In", &[ZONES[zone]])]),
    }
    class
}

/// The cluster with all pods where they run.
fn build(cluster: &Cluster) -> World {
    let mut world = World::with_simulated_types();
    world.options = Options { reserved: Reserved::Fallback, ..Options::default() };
    if let Some(limit) = cluster.limit {
        world.limit(0, "cpu", &limit.to_string());
    }
    for (number, (zone, free)) in cluster.nodes.iter().enumerate() {
        let labels = [("karpenter.sh/nodepool", "default"), (ZONE, ZONES[*zone])];
        world.node(&format!("node-{number}"), &labels, &[("cpu", &free.to_string()), ("pods", "20")]);
    }
    for (number, pod) in cluster.pods.iter().enumerate() {
        let class = class(&mut world, pod);
        let snapshot = &mut world.snapshot;
        let known = snapshot.classes.iter().position(|known| *known == class);
        let id = ClassId::at(known.unwrap_or_else(|| {
            snapshot.classes.push(class.clone());
            snapshot.classes.len() - 1
        }));
        let node = NodeId::at(pod.on);
        if !class.anti_affinities.is_empty() {
            let terms = class.anti_affinities.clone();
            snapshot.guards.push(Guard { node, tolerations: class.tolerations, terms });
        }
        if !pod.terminates {
            let PodClass { namespace, labels, .. } = class;
            snapshot.running.push(Running { node, namespace, labels, count: 1 });
        }
        snapshot.pods.push(Pod {
            name: format!("default/pod-{number}").into(),
            uid: format!("{number:08}").into(),
            created: 0,
            class: id,
            runs: Some(Runs { on: node, counted: !pod.terminates, blocked: pod.blocked }),
            nominated: None,
        });
    }
    world
}

/// The cluster when the nodes have gone: their pods that can move wait.
fn gone(cluster: &Cluster, without: &[NodeId]) -> (World, Vec<PodId>) {
    let moves = |pod: &RandomPod| !pod.blocked && without.contains(&NodeId::at(pod.on));
    let mut world = build(cluster);
    let snapshot = &mut world.snapshot;
    let (mut running, mut guards) = (snapshot.running.drain(..), snapshot.guards.drain(..));
    let (mut left, mut guarding, mut waiting, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, pod) in cluster.pods.iter().enumerate() {
        let engine_pod = snapshot.pods[number].clone();
        let class = &snapshot.classes[engine_pod.class.index()];
        let guard = (!class.anti_affinities.is_empty()).then(|| guards.next()).flatten();
        let counted = (!pod.terminates).then(|| running.next()).flatten();
        if moves(pod) {
            waiting.push(Pod { runs: None, ..engine_pod });
            ids.push(PodId::at(number));
        } else {
            left.extend(counted);
            guarding.extend(guard);
        }
    }
    drop((running, guards));
    (snapshot.running, snapshot.guards, snapshot.pods) = (left, guarding, waiting);
    for node in without {
        world.snapshot.nodes[node.index()].open = false;
    }
    (world, ids)
}

/// Types, price, pods and requirements of a claim, as people would tell it.
type Told = (Vec<usize>, String, Vec<PodId>, Vec<String>);

fn told(
    snapshot: &Snapshot,
    universe: &mut Universe,
    claim: &engine::solve::PlannedClaim,
    ids: Option<&[PodId]>,
) -> Told {
    let pods = claim.pods.iter().map(|pod| ids.map_or(*pod, |ids| ids[pod.index()])).collect();
    let requirements = claim.written(snapshot, universe).iter().map(|each| format!("{each:?}")).collect();
    (claim.types.clone(), format!("{:.6}", claim.price), pods, requirements)
}

type Summary = (Vec<(PodId, Option<NodeId>)>, Vec<PodId>, Vec<Told>);

fn summary(answer: &Answer, simulation: &mut Simulation<'_>, snapshot: &Snapshot) -> Summary {
    let places = answer.places.iter().map(|(pod, place)| match place {
        Place::Node(node) => (*pod, Some(*node)),
        Place::Claim(_) => (*pod, None),
    });
    let claims =
        answer.claims.iter().map(|claim| told(snapshot, simulation.universe(), claim, None)).collect();
    (places.collect(), answer.failures.iter().map(|(pod, _)| *pod).collect(), claims)
}

fn expected(cluster: &Cluster, without: &[NodeId]) -> Summary {
    let (world, ids) = gone(cluster, without);
    let mut plan = solve(&world.snapshot, &world.options);
    let mut places = Vec::new();
    let mut failures = Vec::new();
    for (number, pod) in ids.iter().enumerate() {
        match plan.places[number] {
            Some(Place::Node(node)) => places.push((*pod, Some(node))),
            Some(Place::Claim(_)) => places.push((*pod, None)),
            None => failures.push(*pod),
        }
    }
    let mut universe = std::mem::take(&mut plan.universe);
    let claims =
        plan.claims.iter().map(|claim| told(&world.snapshot, &mut universe, claim, Some(&ids))).collect();
    (places, failures, claims)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_is_what_a_solve_without_the_nodes_says(cluster in cluster()) {
        let world = build(&cluster);
        let mut simulation = Simulation::new(&world.snapshot, &world.options);
        for nodes in &cluster.questions {
            let mut without: Vec<NodeId> = nodes.iter().map(|node| NodeId::at(*node)).collect();
            without.sort_unstable();
            without.dedup();
            let answer = simulation.ask(&Question::without(&without));
            let found = summary(&answer, &mut simulation, &world.snapshot);
            prop_assert_eq!(found, expected(&cluster, &without), "without {:?}", without);
        }
    }

    #[test]
    fn an_answer_does_not_depend_on_what_was_asked_before(cluster in cluster()) {
        let world = build(&cluster);
        let fresh = Simulation::new(&world.snapshot, &world.options);
        let mut used = fresh.clone();
        let ask = |simulation: &mut Simulation<'_>, node: usize, saving: bool| {
            let without = [NodeId::at(node)];
            let question = Question { saving, most_claims: if saving { 0 } else { usize::MAX }, ..Question::without(&without) };
            let answer = simulation.ask(&question);
            (answer.too_many_claims, summary(&answer, simulation, &world.snapshot))
        };
        for round in 0..2 {
            for node in (0..cluster.nodes.len()).rev() {
                for saving in [round == 0, true, false] {
                    let expected = ask(&mut fresh.clone(), node, saving);
                    prop_assert_eq!(ask(&mut used, node, saving), expected, "without {}", node);
                }
            }
        }
    }

    #[test]
    fn what_is_adopted_counts_from_then_on(cluster in cluster()) {
        let mut cluster = Cluster { limit: None, ..cluster };
        let world = build(&cluster);
        let mut simulation = Simulation::new(&world.snapshot, &world.options);
        let first = [NodeId(0)];
        let answer = simulation.ask(&Question::without(&first));
        let onto_nodes = answer.failures.is_empty() && answer.claims.is_empty();
        prop_assume!(onto_nodes);
        let adopted = simulation.adopt(&Question::without(&first));
        prop_assert_eq!(&adopted.places, &answer.places);
        for (pod, place) in &answer.places {
            let Place::Node(node) = place else { continue };
            let pod = &mut cluster.pods[pod.index()];
            cluster.nodes[node.index()].1 -= pod.cpu;
            (pod.on, pod.terminates) = (node.index(), false);
        }
        for node in 1..cluster.nodes.len() {
            let without = [NodeId::at(node)];
            let answer = simulation.ask(&Question::without(&without));
            let found = summary(&answer, &mut simulation, &world.snapshot);
            prop_assert_eq!(found, expected(&cluster, &[NodeId(0), NodeId::at(node)]), "without {}", node);
        }
    }
}

#[test]
fn nodes_that_go_before_anything_is_launched_give_back_what_they_take_of_limits() {
    let mut world = World::new();
    world.options = Options { reserved: Reserved::Fallback, ..Options::default() };
    // A reservation of two launches, and two nodes that hold them: one without pods and one with a pod.
    let reservation = ReservationId(world.snapshot.reservations.intern("cr-1"));
    let mut kind = world.instance_type("m", &[("cpu", "4"), ("pods", "10")], &["test-zone-a"], 1.0);
    kind.requirements = world.set(&[(ZONE, "In", &["test-zone-a"]), (CAPACITY_TYPE, "In", &["reserved"])]);
    kind.offerings[0].requirements = kind.requirements;
    kind.offerings[0].reservation = Some((reservation, 0));
    let catalogue = world.catalogue(vec![kind]);
    world.pool("default", &[], catalogue);
    world.limit(0, "nodes", "0");
    world.limit(0, "cpu", "0");
    for name in ["empty", "used"] {
        let node = world.node(name, &[("karpenter.sh/nodepool", "default")], &[("pods", "10")]);
        let amounts = world.requests(&[("cpu", "4"), ("nodes", "1")]);
        world.snapshot.nodes[node.index()].share = Some(Box::new(Share { pool: PoolId(0), amounts }));
    }
    let class = world.class(&[("cpu", "2")]);
    world.pods(1, class);
    world.snapshot.pods[0].runs = Some(Runs { on: NodeId(1), counted: true, blocked: false });
    let mut simulation = Simulation::new(&world.snapshot, &world.options);
    let mut ask = |node: u32, credit: Option<ReservationId>| {
        let answer = simulation.ask(&Question { credit, ..Question::without(&[NodeId(node)]) });
        (answer.claims.len(), answer.failures.len())
    };
    for _ in 0..2 {
        assert_eq!(ask(1, None), (0, 1), "the node is there until its successor is");
        assert_eq!(ask(1, Some(reservation)), (1, 0));
        // What the other one gives back is its own successor's, even if it has none.
        assert_eq!(ask(0, Some(reservation)), (0, 0));
    }
}

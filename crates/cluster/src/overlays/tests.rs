//! 27.19: which overlays are in force, and what they change.

use api::names::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE};
use serde_json::{Value, json};

use super::*;
use crate::instance_types::{Offering, Overlaid};

fn one_of(key: &str, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

/// A type in two zones: spot for 0.5, on demand for 1.
const SIZE: &str = "karpenter.kwok.sh/instance-cpu";

fn machine(name: &str, arch: &str) -> InstanceType {
    let offering = |zone: &str, capacity_type: &str, price| Offering {
        requirements: vec![one_of(ZONE, &[zone]), one_of(CAPACITY_TYPE, &[capacity_type])],
        price,
        available: true,
        ..Offering::default()
    };
    InstanceType {
        name: name.to_owned(),
        requirements: vec![
            one_of(INSTANCE_TYPE, &[name]),
            one_of(ARCH, &[arch]),
            one_of(OS, &["linux"]),
            one_of(ZONE, &["z1", "z2"]),
            one_of(CAPACITY_TYPE, &["spot", "on-demand"]),
        ],
        offerings: vec![
            offering("z1", "spot", 0.5),
            offering("z1", "on-demand", 1.0),
            offering("z2", "spot", 0.5),
            offering("z2", "on-demand", 1.0),
        ],
        capacity: [("cpu", "4"), ("memory", "8Gi")]
            .into_iter()
            .map(|(name, it)| (name, it.parse().unwrap()))
            .collect(),
        volume_limits: vec![("disks".to_owned(), 3)],
        ..InstanceType::default()
    }
}

fn machines() -> Arc<[InstanceType]> {
    vec![machine("amd", "amd64"), machine("arm", "arm64")].into()
}

fn pool(name: &str, labels: &Value) -> NodePool {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"labels": labels}, "spec": {"requirements": [], "nodeClassRef": class},
        }},
    }))
    .unwrap()
}

/// An overlay: `key=value` selects by a label, others are in `spec`.
fn overlay(name: &str, selects: &[(&str, &str)], spec: Value) -> NodeOverlay {
    let requirements: Vec<Value> =
        selects.iter().map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]})).collect();
    let mut spec = spec;
    spec["requirements"] = requirements.into();
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// What becomes of overlays for two pools, one of which has a label: `a Conflict`, and the corrected types.
struct Outcome {
    evaluation: Evaluation,
    overlays: Vec<NodeOverlay>,
    types: Arc<[InstanceType]>,
}

fn evaluated(overlays: Vec<NodeOverlay>) -> Outcome {
    evaluated_with(overlays, &machines())
}

fn evaluated_with(overlays: Vec<NodeOverlay>, types: &Arc<[InstanceType]>) -> Outcome {
    let pools = [pool("p", &json!({})), pool("q", &json!({"team": "a"}))];
    let pools: Vec<_> = pools.iter().map(|pool| PoolTypes { pool, types: Arc::clone(types) }).collect();
    let refs: Vec<&NodeOverlay> = overlays.iter().collect();
    let evaluation = evaluate(Provider::Kwok, &refs, &pools);
    Outcome { evaluation, overlays, types: Arc::clone(types) }
}

impl Outcome {
    /// The names of overlays that are not in force, with the reason.
    fn rejected(&self) -> Vec<String> {
        let judged = self.overlays.iter().zip(&self.evaluation.rejections);
        let judged =
            judged.filter_map(|(overlay, why)| Some((overlay.metadata.name.clone()?, why.as_ref()?)));
        judged.map(|(name, why)| format!("{name} {}", why.reason())).collect()
    }

    fn of(&self, pool: &str) -> Arc<[InstanceType]> {
        self.evaluation.in_force.apply(pool, &self.types).expect("the pool took part")
    }

    /// The prices of the offerings of a type, as one text.
    fn prices(&self, pool: &str, name: &str) -> String {
        let types = self.of(pool);
        let each = types.iter().find(|each| each.name == name).expect("the type is there");
        each.offerings.iter().map(|it| it.price.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// How much of a resource a type has.
    fn has(&self, pool: &str, name: &str, resource: &str) -> String {
        let types = self.of(pool);
        let each = types.iter().find(|each| each.name == name).expect("the type is there");
        each.capacity.get(resource).map_or_else(|| "-".to_owned(), |amount| amount.to_string())
    }
}

const PRICES: &str = "0.5 1 0.5 1";

fn priced(name: &str, selects: &[(&str, &str)], price: &str) -> NodeOverlay {
    overlay(name, selects, json!({"price": price}))
}

fn weighted(name: &str, selects: &[(&str, &str)], weight: i32, mut spec: Value) -> NodeOverlay {
    spec["weight"] = weight.into();
    overlay(name, selects, spec)
}

#[test]
fn without_overlays_types_stay_what_they_are() {
    let none = evaluated(Vec::new());
    assert!(Arc::ptr_eq(&none.of("p"), &none.types) && none.rejected().is_empty());
    assert!(none.evaluation.in_force.apply("unknown", &none.types).is_none(), "it was not looked at");
    let idle = evaluated(vec![overlay("idle", &[], json!({}))]);
    assert!(Arc::ptr_eq(&idle.of("p"), &idle.types) && idle.rejected().is_empty());
}

#[test]
fn one_overlay_corrects_prices_and_says_so() {
    let one = evaluated(vec![priced("a", &[], "2.5")]);
    assert!(one.rejected().is_empty());
    assert_eq!((&*one.prices("p", "amd"), &*one.prices("q", "arm")), ("2.5 2.5 2.5 2.5", "2.5 2.5 2.5 2.5"));
    assert!(one.of("p").iter().all(|each| each.overlaid == Overlaid { price: true, capacity: false }));
    assert_eq!(one.of("p")[0].volume_limits, machines()[0].volume_limits, "everything else is kept");
}

#[test]
fn an_invalid_overlay_changes_nothing_and_says_why() {
    let restricted = priced("key", &[("karpenter.sh/registered", "true")], "0");
    let capacity = overlay("capacity", &[], json!({"capacity": {"cpu": "100"}}));
    let nothing: NodeOverlay = serde_json::from_value(json!({
        "metadata": {"name": "nothing"},
        "spec": {"requirements": [{"key": ARCH, "operator": "NotIn", "values": []}], "price": "0"},
    }))
    .unwrap();
    let price = priced("price", &[], "cheap");
    let good = priced("good", &[(ARCH, "arm64")], "3");
    let some = evaluated(vec![restricted, capacity, nothing, price, good]);
    let invalid = ["key", "capacity", "nothing", "price"].map(|name| format!("{name} RuntimeValidation"));
    assert_eq!(some.rejected(), invalid);
    assert_eq!((&*some.prices("p", "amd"), &*some.prices("p", "arm")), (PRICES, "3 3 3 3"));
    assert_eq!(some.has("p", "amd", "cpu"), "4");
    let why = some.evaluation.rejections[1].as_ref().unwrap().to_string();
    assert_eq!(why, "invalid capacity: cpu in resource, restricted");
}

#[test]
fn of_equal_overlays_on_one_thing_only_the_earlier_name_conflicts() {
    for (first, second) in [
        (vec![(ARCH, "amd64")], vec![(ARCH, "amd64")]),
        (vec![(CAPACITY_TYPE, "spot")], vec![(CAPACITY_TYPE, "spot")]),
        (vec![(ZONE, "z1")], vec![(ZONE, "z1")]),
        (vec![(ZONE, "z1")], vec![(ARCH, "arm64")]),
        (vec![], vec![(INSTANCE_TYPE, "amd")]),
        // They meet in one pool only.
        (vec![], vec![("karpenter.sh/nodepool", "p")]),
    ] {
        // The same value is a conflict, too.
        for (one, other) in [("7", "8"), ("7", "7")] {
            let both = evaluated(vec![priced("a", &first, one), priced("b", &second, other)]);
            assert_eq!(both.rejected(), ["a Conflict"], "{first:?} {second:?}");
            let alone = evaluated(vec![priced("b", &second, other)]);
            for (pool, name) in [("p", "amd"), ("p", "arm"), ("q", "amd"), ("q", "arm")] {
                assert_eq!(both.prices(pool, name), alone.prices(pool, name), "nothing of it is applied");
            }
        }
    }
    let message =
        evaluated(vec![priced("a", &[], "1"), priced("b", &[], "1")]).evaluation.rejections[0].clone();
    assert_eq!(message.unwrap().to_string(), "conflict with another overlay");
}

#[test]
fn a_price_and_an_adjustment_are_the_same_thing() {
    let twins = evaluated(vec![
        priced("a", &[], "7"),
        overlay("b", &[(ARCH, "arm64")], json!({"priceAdjustment": "+10%"})),
    ]);
    assert_eq!(twins.rejected(), ["a Conflict"]);
    assert_eq!((&*twins.prices("p", "amd"), &*twins.prices("p", "arm")), (PRICES, "0.55 1.1 0.55 1.1"));
}

#[test]
fn overlays_that_do_not_meet_are_both_in_force() {
    for (first, second) in [
        (vec![(ARCH, "amd64")], vec![(ARCH, "arm64")]),
        (vec![(ZONE, "z1")], vec![(ZONE, "z2")]),
        (vec![(ZONE, "z1"), (CAPACITY_TYPE, "on-demand")], vec![(CAPACITY_TYPE, "spot")]),
        (vec![("karpenter.sh/nodepool", "p")], vec![("karpenter.sh/nodepool", "q")]),
        // What selects nothing meets nothing.
        (vec![(ARCH, "amd64")], vec![(OS, "windows")]),
    ] {
        let both = evaluated(vec![priced("a", &first, "7"), priced("b", &second, "8")]);
        assert!(both.rejected().is_empty(), "{first:?} {second:?}: {:?}", both.rejected());
    }
    let both = evaluated(vec![
        priced("a", &[(ZONE, "z1"), (CAPACITY_TYPE, "on-demand")], "7"),
        priced("b", &[(CAPACITY_TYPE, "spot")], "8"),
    ]);
    assert_eq!(both.prices("p", "amd"), "8 7 8 1");
}

#[test]
fn the_heavier_overlay_wins_and_equal_ones_below_it_still_conflict() {
    let by_weight = evaluated(vec![
        weighted("light", &[], 1, json!({"price": "1"})),
        weighted("heavy", &[(ARCH, "arm64")], 10, json!({"price": "9"})),
    ]);
    assert!(by_weight.rejected().is_empty());
    assert_eq!((&*by_weight.prices("p", "amd"), &*by_weight.prices("p", "arm")), ("1 1 1 1", "9 9 9 9"));
    let three = evaluated(vec![
        weighted("top", &[], 10, json!({"price": "9"})),
        weighted("a", &[], 5, json!({"price": "1"})),
        weighted("b", &[], 5, json!({"price": "1"})),
    ]);
    assert_eq!(three.rejected(), ["a Conflict"]);
    assert_eq!(three.prices("p", "amd"), "9 9 9 9");
}

#[test]
fn resources_are_added_and_the_heaviest_decides_about_each() {
    let fuse = |amount: &str| json!({"capacity": {"example.com/fuse": amount}});
    let all = evaluated(vec![
        weighted("heavy", &[(ARCH, "arm64")], 10, fuse("4")),
        weighted("light", &[], 1, json!({"capacity": {"example.com/fuse": "2", "example.com/tape": "1"}})),
    ]);
    assert!(all.rejected().is_empty());
    assert_eq!(
        (&*all.has("p", "amd", "example.com/fuse"), &*all.has("p", "arm", "example.com/fuse")),
        ("2", "4")
    );
    assert_eq!(all.has("q", "arm", "example.com/tape"), "1");
    assert_eq!((&*all.has("p", "amd", "cpu"), &*all.prices("p", "amd")), ("4", PRICES));
    assert!(all.of("p").iter().all(|each| each.overlaid == Overlaid { price: false, capacity: true }));
}

#[test]
fn overlays_of_one_weight_conflict_over_a_resource_they_share() {
    let some = |name: &str, resources: &[&str]| {
        let capacity: BTreeMap<&str, &str> = resources.iter().map(|name| (*name, "1")).collect();
        overlay(name, &[], json!({"capacity": capacity}))
    };
    let twins = evaluated(vec![some("a", &["x"]), some("b", &["x"])]);
    assert_eq!(twins.rejected(), ["a Conflict"]);
    let apart = evaluated(vec![some("a", &["x"]), some("b", &["y"])]);
    assert!(apart.rejected().is_empty());
    assert_eq!((&*apart.has("p", "amd", "x"), &*apart.has("p", "amd", "y")), ("1", "1"));
    // Each resource is remembered, not only those of the last overlay.
    let three = evaluated(vec![some("a", &["z", "x"]), some("b", &["y"]), some("c", &["x"])]);
    assert_eq!(three.rejected(), ["a Conflict"]);
    assert_eq!(
        (&*three.has("p", "amd", "z"), &*three.has("p", "amd", "y")),
        ("-", "1"),
        "nothing of it is applied"
    );
    let price_and_capacity = evaluated(vec![some("a", &["x"]), priced("b", &[], "1")]);
    assert!(price_and_capacity.rejected().is_empty());
}

#[test]
fn an_overlay_can_change_price_and_capacity_together() {
    let both = evaluated(vec![overlay(
        "both",
        &[(INSTANCE_TYPE, "arm"), (ZONE, "z1")],
        json!({"priceAdjustment": "-50%", "capacity": {"hugepages-2Mi": "2Gi"}}),
    )]);
    assert_eq!(both.prices("p", "arm"), "0.25 0.5 0.5 1");
    assert_eq!(both.of("p")[1].overlaid, Overlaid { price: true, capacity: true });
    // The capacity is that of the type, wherever it is, and huge pages are no ordinary memory.
    assert_eq!(both.has("p", "arm", "hugepages-2Mi"), "2Gi");
    assert_eq!(both.of("p")[1].allocatable().get("memory").unwrap().to_string(), "6Gi");
    assert_eq!(both.of("p")[0], both.types[0], "other types are left alone");
}

#[test]
fn overlays_select_pools_by_name_and_by_label() {
    let one = evaluated(vec![priced("a", &[("karpenter.sh/nodepool", "p")], "7")]);
    assert_eq!((&*one.prices("p", "amd"), &*one.prices("q", "amd")), ("7 7 7 7", PRICES));
    let labelled = evaluated(vec![priced("a", &[("team", "a")], "7")]);
    assert_eq!((&*labelled.prices("p", "amd"), &*labelled.prices("q", "amd")), (PRICES, "7 7 7 7"));
    let each = evaluated(vec![
        priced("a", &[("karpenter.sh/nodepool", "p")], "7"),
        priced("b", &[("karpenter.sh/nodepool", "q")], "8"),
    ]);
    assert_eq!((&*each.prices("p", "amd"), &*each.prices("q", "amd")), ("7 7 7 7", "8 8 8 8"));
    let nobody = evaluated(vec![priced("a", &[("team", "b")], "7"), priced("b", &[("unknown", "x")], "7")]);
    assert!(nobody.rejected().is_empty() && Arc::ptr_eq(&nobody.of("q"), &nobody.types));
    // The lists that are given out know nothing of pools.
    let keys = |types: &[InstanceType]| {
        types.iter().flat_map(|it| &it.requirements).map(|it| it.key.clone()).collect()
    };
    let (before, after): (Vec<_>, Vec<_>) = (keys(&each.types), keys(&each.of("p")));
    assert_eq!(before, after);
}

#[test]
fn every_operator_selects() {
    let cases = [
        (json!({"key": ARCH, "operator": "NotIn", "values": ["arm64"]}), ["7", "1"]),
        (json!({"key": ARCH, "operator": "Exists"}), ["7", "7"]),
        (json!({"key": "unknown", "operator": "DoesNotExist"}), ["7", "7"]),
        (json!({"key": "unknown", "operator": "Exists"}), ["1", "1"]),
        (json!({"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]}), ["1", "7"]),
    ];
    let bound = |operator: &str, value: &str| json!({"key": SIZE, "operator": operator, "values": [value]});
    let bounds = [
        (bound("Gt", "4"), ["1", "7"]),
        (bound("Gt", "8"), ["1", "1"]),
        (bound("Gte", "4"), ["7", "7"]),
        (bound("Gte", "5"), ["1", "7"]),
        (bound("Lt", "8"), ["7", "1"]),
        (bound("Lt", "4"), ["1", "1"]),
        (bound("Lte", "8"), ["7", "7"]),
        (bound("Lte", "7"), ["7", "1"]),
    ];
    // The second is twice as large.
    let mut types = machines().to_vec();
    for (each, size) in types.iter_mut().zip(["4", "8"]) {
        each.requirements.push(one_of(SIZE, &[size]));
    }
    let types: Arc<[InstanceType]> = types.into();
    for (requirement, expected) in cases.into_iter().chain(bounds) {
        let overlay = serde_json::from_value(json!({
            "metadata": {"name": "a"}, "spec": {"requirements": [requirement], "price": "7"},
        }));
        let one = evaluated_with(vec![overlay.unwrap()], &types);
        let prices = ["amd", "arm"].map(|name| one.prices("p", name).split(' ').nth(1).unwrap().to_owned());
        assert_eq!(prices, expected, "{requirement}: {:?}", one.rejected());
    }
}

#[test]
fn what_an_offering_says_about_itself_is_kept() {
    let mut special = machine("amd", "amd64");
    special.offerings[0].capacity_override = Some([("cpu", "2".parse().unwrap())].into_iter().collect());
    special.offerings[0].overhead_override = Some([("cpu", "1".parse().unwrap())].into_iter().collect());
    let types: Arc<[InstanceType]> = vec![special.clone()].into();
    let one = evaluated_with(vec![priced("a", &[], "7")], &types);
    let after = &one.of("p")[0].offerings[0];
    assert_eq!(after.capacity_override, special.offerings[0].capacity_override);
    assert_eq!(after.overhead_override, special.offerings[0].overhead_override);
}

#[test]
fn types_that_come_later_are_corrected_too_and_none_at_all_are_fine() {
    let one = evaluated_with(vec![priced("a", &[(ARCH, "arm64")], "7")], &Vec::new().into());
    assert!(one.rejected().is_empty() && one.of("p").is_empty());
    let later = one.evaluation.in_force.apply("p", &machines()).unwrap();
    assert_eq!(
        (later[0].offerings[0].price.to_string(), later[1].offerings[0].price.to_string()),
        ("0.5".into(), "7".into())
    );
}

#[test]
fn pools_for_which_it_comes_to_the_same_share_a_list() {
    let same = evaluated(vec![priced("a", &[], "7")]).evaluation.in_force.apply_to_all(&machines());
    assert!(Arc::ptr_eq(&same["p"], &same["q"]));
    let apart = evaluated(vec![priced("a", &[("team", "a")], "7")]);
    let apart = apart.evaluation.in_force.apply_to_all(&machines());
    assert!(!Arc::ptr_eq(&apart["p"], &apart["q"]));
}

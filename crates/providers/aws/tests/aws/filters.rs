//! Which types and offerings are tried for a claim.

use api::names::labels::{self, aws as keys};
use api::names::resources;
use api::nodeclaim::NodeClaim;
use aws::instance::{filter, lacks_flexibility, plan, truncate};
use cluster::instance_types::{InstanceType, Offering};
use runtime::settings::MinValuesPolicy;
use serde_json::json;
use units::Resources;

use crate::support::{
    MarketNow, ZONES, claim, class, label, node_class, requesting, wanted, with_reservation,
};

/// An offering of a capacity type in the first zone.
fn offering(kind: &str, zone: usize, price: f64) -> Offering {
    let object = node_class("AL2023", &json!({}));
    let all = MarketNow::default().types(&class(&object), &["m5.large"]).remove(0).offerings;
    let mut found = all
        .into_iter()
        .find(|each| {
            each.value(labels::ZONE) == Some(ZONES[zone])
                && (each.value(labels::CAPACITY_TYPE) == Some(kind) || kind == "reserved")
        })
        .unwrap();
    found.price = price;
    found.available = true;
    found
}

/// A reserved offering: reservation, its type, whether it can be taken back, price and what is left.
fn reserved(id: &str, kind: &str, interruptible: bool, price: f64, left: u32) -> Offering {
    let mut all = offering("reserved", 0, price);
    for requirement in &mut all.requirements {
        let value = match requirement.key.as_str() {
            labels::CAPACITY_TYPE => "reserved".to_owned(),
            keys::CAPACITY_RESERVATION_ID => id.to_owned(),
            keys::CAPACITY_RESERVATION_TYPE => kind.to_owned(),
            keys::CAPACITY_RESERVATION_INTERRUPTIBLE => interruptible.to_string(),
            _ => continue,
        };
        requirement.operator = api::shared::Operator::In;
        requirement.values = vec![value];
    }
    all.reservation_capacity = left;
    all
}

/// A real type with offerings of our choice, in whatever reservations they are.
fn machine(name: &str, offerings: Vec<Offering>) -> InstanceType {
    let object = with_reservation(node_class("AL2023", &json!({})), &json!({"instanceType": name}));
    let mut each = MarketNow::default().types(&class(&object), &[name]).remove(0);
    each.requirements.retain(|label| !label.key.contains("capacity-reservation"));
    InstanceType { offerings, ..each }
}

/// What is left, as names with the prices of their offerings.
fn left(claim: &NodeClaim, types: &[InstanceType]) -> Vec<String> {
    match filter(claim, &mut wanted(claim), types) {
        Ok(types) => types
            .iter()
            .map(|each| {
                let prices: Vec<String> =
                    each.offerings.iter().map(|offering| offering.price.to_string()).collect();
                format!("{} {}", each.name, prices.join(" "))
            })
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}

const NOTHING: &str = "insufficient capacity, all requested instance types were unavailable during launch";

#[test]
fn a40_types_must_satisfy_the_claim_and_have_an_offering_with_room() {
    let types = [
        machine("m5.large", vec![offering("on-demand", 0, 1.0)]),
        machine("m5.xlarge", vec![offering("on-demand", 1, 2.0)]),
        machine("m6g.large", vec![offering("on-demand", 0, 3.0)]),
    ];
    assert_eq!(left(&claim(&[]), &types).len(), 3);
    assert_eq!(left(&claim(&[("kubernetes.io/arch", "In", &["arm64"])]), &types), ["m6g.large 3"]);
    assert_eq!(left(&claim(&[(labels::ZONE, "In", &[ZONES[1]])]), &types), ["m5.xlarge 2"]);
    assert_eq!(left(&requesting(claim(&[]), &[("cpu", "3")]), &types), ["m5.xlarge 2"]);
    assert_eq!(left(&requesting(claim(&[]), &[("cpu", "100")]), &types), [NOTHING]);
    let mut gone = types.clone();
    gone[0].offerings[0].available = false;
    assert_eq!(left(&claim(&[]), &gone).len(), 2);
}

#[test]
fn a41_an_offering_may_have_more_or_less_than_its_type() {
    let more = |cpu: &str| {
        let amount: Resources = [("cpu", cpu.parse().unwrap())].into_iter().collect();
        Offering { capacity_override: Some(amount), ..offering("on-demand", 0, 1.0) }
    };
    let asked = requesting(claim(&[]), &[("cpu", "3")]);
    assert_eq!(left(&asked, &[machine("m5.large", vec![more("8")])]), ["m5.large 1"]);
    assert_eq!(left(&asked, &[machine("m5.xlarge", vec![more("1")])]), [NOTHING]);
    let second = vec![more("1"), offering("on-demand", 1, 2.0)];
    assert_eq!(left(&asked, &[machine("m5.xlarge", second)]), ["m5.xlarge 1 2"]);
    let unavailable = Offering { available: false, ..more("8") };
    assert_eq!(
        left(&asked, &[machine("m5.large", vec![unavailable, offering("on-demand", 1, 1.0)])]),
        [NOTHING]
    );
}

#[test]
fn a42_reservations_of_one_kind_are_launched_the_cheapest_first() {
    let types = [
        machine("m5.large", vec![reserved("a", "default", true, 0.2, 1), offering("on-demand", 0, 9.0)]),
        machine("m5.xlarge", vec![reserved("b", "default", false, 0.3, 1)]),
        machine("m5.2xlarge", vec![reserved("c", "capacity-block", false, 0.4, 1)]),
        machine("m5.4xlarge", vec![offering("on-demand", 0, 8.0)]),
    ];
    assert_eq!(left(&claim(&[]), &types), ["m5.large 0.2"]);
    let mut equal = types.clone();
    equal[0].offerings[0].price = 0.3;
    equal[2].offerings[0].price = 0.3;
    assert_eq!(left(&claim(&[]), &equal), ["m5.xlarge 0.3"]);
    let mut full = types.clone();
    full[0].offerings[0].reservation_capacity = 0;
    assert_eq!(left(&claim(&[]), &full), ["m5.xlarge 0.3"]);
    let on_demand = claim(&[(labels::CAPACITY_TYPE, "In", &["on-demand"])]);
    assert_eq!(left(&on_demand, &types), ["m5.large 0.2 9", "m5.4xlarge 8"]);
}

#[test]
fn a43_a_capacity_block_is_launched_alone() {
    let block = |id: &str, price| reserved(id, "capacity-block", false, price, 1);
    let types = [
        machine("m5.large", vec![block("a", 0.4), block("b", 0.3)]),
        machine("m5.xlarge", vec![block("c", 0.2), block("d", 0.5)]),
    ];
    assert_eq!(left(&claim(&[]), &types), ["m5.xlarge 0.2"]);
    let mut full = types.clone();
    full[1].offerings[0].reservation_capacity = 0;
    assert_eq!(left(&claim(&[]), &full), ["m5.large 0.3"]);
    let chosen = claim(&[(keys::CAPACITY_RESERVATION_ID, "In", &["d"])]);
    assert_eq!(left(&chosen, &types), ["m5.xlarge 0.5"]);
}

#[test]
fn a44_of_several_reservations_in_a_zone_the_one_with_most_left_is_taken() {
    let types = [
        machine(
            "m5.large",
            vec![
                reserved("a", "default", false, 0.1, 2),
                reserved("b", "default", false, 0.2, 5),
                reserved("c", "default", false, 0.3, 0),
            ],
        ),
        machine("m5.xlarge", vec![offering("on-demand", 0, 1.0)]),
    ];
    assert_eq!(left(&claim(&[]), &types), ["m5.large 0.2"]);
    assert_eq!(left(&claim(&[]), &types[1..]), ["m5.xlarge 1"]);
}

#[test]
fn a45_special_machines_are_not_wasted_unless_there_is_nothing_else() {
    let of = |name: &str| machine(name, vec![offering("on-demand", 0, 1.0)]);
    let special = ["m5.metal", "p4d.24xlarge", "trn1.32xlarge", "inf1.xlarge"].map(of);
    let mut all = special.to_vec();
    all.push(of("m5.large"));
    assert_eq!(left(&claim(&[]), &all), ["m5.large 1"]);
    assert_eq!(left(&claim(&[]), &special).len(), 4);
    let gpus = requesting(claim(&[]), &[(resources::NVIDIA_GPU, "1")]);
    assert_eq!(left(&gpus, &all), ["p4d.24xlarge 1"]);
    let mut choosy = claim(&[(keys::INSTANCE_FAMILY, "Exists", &[])]);
    choosy.spec.requirements[0].min_values = Some(2);
    assert_eq!(left(&choosy, &all).len(), 5);
    // A fabric adapter is nothing special.
    assert_eq!(left(&claim(&[]), &[of("m6idn.32xlarge"), of("m5.metal")]), ["m6idn.32xlarge 1"]);
}

#[test]
fn a46_spot_that_costs_more_than_on_demand_is_not_tried() {
    let types = [
        machine("m5.large", vec![offering("on-demand", 0, 1.0), offering("spot", 0, 0.5)]),
        machine("m5.xlarge", vec![offering("on-demand", 0, 2.0), offering("spot", 0, 1.5)]),
        machine("m5.2xlarge", vec![offering("spot", 0, 1.1)]),
    ];
    assert_eq!(left(&claim(&[]), &types), ["m5.large 1 0.5", "m5.xlarge 2"]);
    let spot = claim(&[(labels::CAPACITY_TYPE, "In", &["spot"])]);
    assert_eq!(left(&spot, &types), ["m5.large 1 0.5", "m5.xlarge 2 1.5", "m5.2xlarge 1.1"]);
    assert_eq!(left(&claim(&[]), &types[2..]), ["m5.2xlarge 1.1"]);
    let mut choosy = claim(&[(keys::INSTANCE_FAMILY, "Exists", &[])]);
    choosy.spec.requirements[0].min_values = Some(1);
    assert_eq!(left(&choosy, &types).len(), 3);
}

#[test]
fn a47_the_sixty_cheapest_types_are_tried_if_that_is_choice_enough() {
    let all: Vec<InstanceType> = (0..70)
        .map(|number| {
            let mut each = machine("m5.large", vec![offering("on-demand", 0, f64::from(100 - number))]);
            each.name = format!("type-{number}");
            each.requirements.retain(|label| label.key != labels::INSTANCE_TYPE);
            each.requirements.push(api::shared::Requirement {
                key: labels::INSTANCE_TYPE.to_owned(),
                operator: api::shared::Operator::In,
                values: vec![each.name.clone()],
                min_values: None,
            });
            each
        })
        .collect();
    let strict = MinValuesPolicy::Strict;
    let mut choosy = claim(&[(labels::INSTANCE_TYPE, "Exists", &[])]);
    let kept = truncate(&choosy, &mut wanted(&choosy), all.clone(), strict).unwrap();
    assert_eq!((kept.len(), kept[0].name.as_str(), kept[59].name.as_str()), (60, "type-69", "type-10"));
    choosy.spec.requirements[0].min_values = Some(60);
    assert_eq!(truncate(&choosy, &mut wanted(&choosy), all.clone(), strict).unwrap().len(), 60);
    choosy.spec.requirements[0].min_values = Some(61);
    assert_eq!(
        truncate(&choosy, &mut wanted(&choosy), all.clone(), strict).unwrap_err().to_string(),
        "minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])"
    );
    let relaxed = truncate(&choosy, &mut wanted(&choosy), all, MinValuesPolicy::BestEffort);
    assert_eq!(relaxed.unwrap().len(), 60);
}

#[test]
fn a48_reserved_comes_before_spot_and_spot_before_on_demand() {
    let object = node_class("AL2023", &json!({}));
    let class = class(&object);
    let kind = |claim: &NodeClaim, types: &[InstanceType]| {
        let plan = plan(&class, &mut wanted(claim), types);
        (plan.capacity_type, plan.tenancy)
    };
    let all = [machine(
        "m5.large",
        vec![
            offering("on-demand", 0, 1.0),
            offering("spot", 0, 0.5),
            reserved("a", "default", false, 0.1, 1),
        ],
    )];
    assert_eq!(kind(&claim(&[]), &all), ("reserved", "default"));
    let mut full = all.clone();
    full[0].offerings[2].reservation_capacity = 0;
    assert_eq!(kind(&claim(&[]), &full).0, "spot");
    full[0].offerings[1].available = false;
    assert_eq!(kind(&claim(&[]), &full).0, "on-demand");
    let tenancy =
        |operator: &str, values: &[&str]| kind(&claim(&[(keys::INSTANCE_TENANCY, operator, values)]), &all).1;
    assert_eq!(tenancy("In", &["dedicated"]), "dedicated");
    assert_eq!(tenancy("In", &["default", "dedicated"]), "default");
    assert_eq!(tenancy("NotIn", &["default"]), "dedicated");
    let spot_too = claim(&[(labels::CAPACITY_TYPE, "In", &["on-demand", "spot"])]);
    let plan = plan(&class, &mut wanted(&spot_too), &full);
    assert!(lacks_flexibility(&mut wanted(&spot_too), &plan, &full));
    let only = claim(&[(labels::CAPACITY_TYPE, "In", &["on-demand"])]);
    assert!(!lacks_flexibility(&mut wanted(&only), &plan, &full));
    assert_eq!(label(&full[0].requirements, labels::INSTANCE_TYPE), "m5.large");
}

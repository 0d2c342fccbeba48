//! Subnets, the request that launches instances, and what its errors mean.

use api::names::annotations;
use api::names::values::capacity_type::{ON_DEMAND, RESERVED, SPOT};
use api::nodeclaim::NodeClaim;
use aws::instance::{
    ChosenSubnet, Effect, Failed, LaunchPlan, NoOverrides, SubnetAddresses, batch_key, classify, effects,
    failure, filter, metric_labels, of_call, plan, request,
};
use aws::launch_template::{Launch, templates};
use aws::node_class::Class;
use aws::port::{Error, FleetError, FleetPurchase, FleetRequest, Place};
use aws::tags;
use cloud::unavailable::Scope;
use serde_json::{Value, json};

use crate::support::{
    MarketNow, REGION, SETS, ZONES, claim, cluster, node_class, only, subnets, wanted, with_reservation,
};

const FREE: [(&str, i64); 3] = [("subnet-a1", 50), ("subnet-a2", 100), ("subnet-b1", 80)];

/// The whole way from a NodeClass and a claim to the request.
fn launch(
    object: &api::aws::EC2NodeClass,
    claim: &NodeClaim,
    names: &[&str],
) -> Result<FleetRequest, NoOverrides> {
    let class = Class::new(object, None, false).unwrap();
    let mut wanted = wanted(claim);
    let types = filter(claim, &mut wanted, &MarketNow::default().types(&class, names)).unwrap();
    let plan = plan(&class, &mut wanted, &types);
    let mut addresses = SubnetAddresses::default();
    addresses.refresh(&subnets(&FREE));
    let chosen = addresses.choose(&class, &types, &mut wanted, plan.capacity_type);
    let tags = tags::of_launch(&class, claim, "c").unwrap();
    let cluster = cluster();
    let launch = Launch {
        class: &class,
        claim,
        cluster: &cluster,
        region: REGION,
        capacity_type: plan.capacity_type,
        tenancy: plan.tenancy,
        partition: plan.partition.as_deref(),
        tags: &tags,
        reserved_capacity: true,
    };
    let templates = templates(&launch, &types, &only(names), 0, &SETS).unwrap();
    request(&class, claim, &plan, &templates, &chosen, &mut wanted, tags)
}

fn overrides(request: &FleetRequest) -> Vec<String> {
    let all = request.templates.iter().flat_map(|template| &template.overrides);
    let text = |each: &aws::port::FleetOverride| {
        format!("{} {} {}", each.instance_type, each.subnet_id, each.image_id.as_deref().unwrap_or("-"))
    };
    all.map(text).collect()
}

#[test]
fn a70_every_type_is_tried_in_the_best_subnet_of_every_zone() {
    let object = node_class("AL2023", &json!({}));
    let on_demand = claim(&[("karpenter.sh/capacity-type", "In", &[ON_DEMAND])]);
    let request = launch(&object, &on_demand, &["m5.large", "m6g.large"]).unwrap();
    assert_eq!(
        overrides(&request),
        [
            "m5.large subnet-a2 ami-amd",
            "m5.large subnet-b1 ami-amd",
            "m6g.large subnet-a2 ami-arm",
            "m6g.large subnet-b1 ami-arm",
        ]
    );
    assert_eq!(request.templates.len(), 2);
    assert_eq!((request.count, request.dry_run), (1, false));
    assert!(request.templates[0].overrides[0].priority.is_some_and(|price| price > 0.0));
    let one_zone = claim(&[("topology.kubernetes.io/zone", "In", &[ZONES[1]])]);
    assert_eq!(
        overrides(&launch(&object, &one_zone, &["m5.large"]).unwrap()),
        ["m5.large subnet-b1 ami-amd"]
    );
    assert_eq!(request.tags["karpenter.sh/nodepool"], "pool-1");
}

#[test]
fn a71_how_ec2_chooses_depends_on_how_it_is_paid_and_on_overlays() {
    let object = node_class("AL2023", &json!({}));
    let of = |kind: &str, overlay: bool| {
        let mut claim = claim(&[("karpenter.sh/capacity-type", "In", &[kind])]);
        if overlay {
            let annotation = (annotations::PRICE_OVERLAY_APPLIED.to_owned(), "true".to_owned());
            claim.metadata.annotations = Some([annotation].into());
        }
        let purchase = launch(&object, &claim, &["m5.large"]).unwrap().purchase;
        (purchase.target(), purchase.strategy())
    };
    assert_eq!(of(ON_DEMAND, false), ("on-demand", Some("lowest-price")));
    assert_eq!(of(ON_DEMAND, true), ("on-demand", Some("prioritized")));
    assert_eq!(of(SPOT, false), ("spot", Some("price-capacity-optimized")));
    assert_eq!(of(SPOT, true), ("spot", Some("capacity-optimized-prioritized")));
}

#[test]
fn a72_reservations_are_bought_as_what_they_are() {
    let of = |reservation: Value| {
        let object = with_reservation(node_class("AL2023", &json!({})), &reservation);
        let request = launch(&object, &claim(&[]), &["m5.large"]).unwrap();
        assert_eq!(overrides(&request), ["m5.large subnet-a2 ami-amd"]);
        request.purchase
    };
    assert_eq!(of(json!({})), FleetPurchase::OnDemand { prioritized: false });
    assert_eq!(of(json!({"interruptible": true})), FleetPurchase::InterruptibleReservation);
    assert_eq!(of(json!({"reservationType": "capacity-block"})), FleetPurchase::CapacityBlock);
    assert_eq!(FleetPurchase::InterruptibleReservation.target(), "reserved-capacity");
    assert_eq!(FleetPurchase::CapacityBlock.target(), "capacity-block");
}

#[test]
fn a73_the_context_is_passed_on_unless_min_values_were_relaxed() {
    let context = |spec: Value, relaxed: bool| {
        let mut claim = claim(&[]);
        if relaxed {
            let annotation = (annotations::MIN_VALUES_RELAXED.to_owned(), "true".to_owned());
            claim.metadata.annotations = Some([annotation].into());
        }
        launch(&node_class("AL2023", &spec), &claim, &["m5.large"]).unwrap().context
    };
    assert_eq!(context(json!({"context": "abc"}), false).as_deref(), Some("abc"));
    assert_eq!(context(json!({"context": "abc"}), true), None);
    assert_eq!(context(json!({}), false), None);
}

#[test]
fn a74_without_anything_to_ask_for_there_is_no_request() {
    let object = node_class("AL2023", &json!({}));
    let class = Class::new(&object, None, false).unwrap();
    let plan = LaunchPlan { capacity_type: ON_DEMAND, tenancy: "default", partition: None };
    let result = request(&class, &claim(&[]), &plan, &[], &[], &mut wanted(&claim(&[])), tags_of());
    assert_eq!(
        result.unwrap_err().to_string(),
        "no capacity offerings are currently available given the constraints"
    );
}

fn tags_of() -> aws::port::Tags {
    aws::port::Tags::new()
}

#[test]
fn a75_equal_requests_are_sent_as_one_in_whatever_order() {
    let object = node_class("AL2023", &json!({}));
    let on_demand = claim(&[("karpenter.sh/capacity-type", "In", &[ON_DEMAND])]);
    let first = launch(&object, &on_demand, &["m5.large", "m6g.large"]).unwrap();
    let mut second = first.clone();
    second.templates.reverse();
    second.templates.iter_mut().for_each(|template| template.overrides.reverse());
    assert_ne!(first, second);
    assert_eq!(batch_key(&first), batch_key(&second));
    let changes: [fn(&mut FleetRequest); 6] = [
        |request| request.context = Some("x".to_owned()),
        |request| request.dry_run = true,
        |request| request.tags.clear(),
        |request| request.templates.truncate(1),
        |request| request.templates[0].overrides[0].priority = Some(99.0),
        |request| request.purchase = FleetPurchase::CapacityBlock,
    ];
    for change in changes {
        let mut other = first.clone();
        change(&mut other);
        assert_ne!(batch_key(&first), batch_key(&other));
    }
}

fn choose(addresses: &mut SubnetAddresses) -> Vec<ChosenSubnet> {
    let object = node_class("AL2023", &json!({}));
    let class = Class::new(&object, None, false).unwrap();
    let types = MarketNow::default().types(&class, &["m5.large", "m5.4xlarge"]);
    addresses.choose(&class, &types, &mut wanted(&claim(&[])), ON_DEMAND)
}

fn ids(chosen: &[ChosenSubnet]) -> Vec<&str> {
    chosen.iter().map(|subnet| subnet.id.as_str()).collect()
}

#[test]
fn a76_the_subnet_with_most_addresses_is_taken_also_between_two_answers_of_ec2() {
    let mut addresses = SubnetAddresses::default();
    addresses.refresh(&subnets(&FREE));
    let first = choose(&mut addresses);
    assert_eq!(ids(&first), ["subnet-a2", "subnet-b1"]);
    assert_eq!(first[0].predicted, 29, "as many as the smaller type has pods");
    assert_eq!(ids(&choose(&mut addresses)), ["subnet-a2", "subnet-b1"]);
    // Two launches are expected to take 58 of its 100.
    assert_eq!(ids(&choose(&mut addresses)), ["subnet-a1", "subnet-b1"]);
    addresses.refresh(&subnets(&FREE));
    assert_eq!(ids(&choose(&mut addresses)), ["subnet-a2", "subnet-b1"]);
}

#[test]
fn a77_addresses_that_a_launch_did_not_take_come_back() {
    let mut addresses = SubnetAddresses::default();
    addresses.refresh(&subnets(&[("subnet-a1", 90), ("subnet-a2", 100), ("subnet-b1", 80)]));
    let chosen = choose(&mut addresses);
    assert_eq!(ids(&chosen)[0], "subnet-a2");
    addresses.release(&chosen, &[]);
    let again = choose(&mut addresses);
    assert_eq!(ids(&again)[0], "subnet-a2");
    addresses.release(&again, &["subnet-a2"]);
    assert_eq!(ids(&choose(&mut addresses))[0], "subnet-a1");
    // EC2 was asked meanwhile and knows better.
    let mut addresses = SubnetAddresses::default();
    addresses.refresh(&subnets(&FREE));
    let chosen = choose(&mut addresses);
    addresses.refresh(&subnets(&[("subnet-a2", 10)]));
    addresses.release(&chosen, &[]);
    assert_eq!(ids(&choose(&mut addresses))[0], "subnet-a1");
}

#[test]
fn a78_a_full_subnet_is_the_last_choice() {
    let mut addresses = SubnetAddresses::default();
    addresses.refresh(&subnets(&FREE));
    addresses.exhausted("subnet-a2");
    assert_eq!(ids(&choose(&mut addresses)), ["subnet-a1", "subnet-b1"]);
    assert_eq!(ids(&choose(&mut SubnetAddresses::default()))[0], "subnet-a1", "nothing known: the first");
}

fn error(code: &str, message: &str) -> FleetError {
    let text = |text: &str| Some(text.to_owned());
    FleetError {
        code: code.to_owned(),
        message: message.to_owned(),
        place: Place {
            instance_type: text("m5.large"),
            zone: text("a"),
            subnet_id: text("subnet-1"),
            image_id: None,
        },
    }
}

fn found(
    kind: &'static str,
    group: Option<&str>,
    partition: Option<&str>,
    error: &FleetError,
) -> Vec<Effect> {
    let plan =
        LaunchPlan { capacity_type: kind, tenancy: "default", partition: partition.map(str::to_owned) };
    let failed = Failed { plan: &plan, placement_group: group, types: &["m5.large", "m5.xlarge"] };
    effects(&failed, std::slice::from_ref(error))
}

fn unavailable(scope: Scope, reason: &str) -> Effect {
    Effect::Unavailable { scope, reason: reason.to_owned() }
}

#[test]
fn a79_what_ec2_does_not_have_is_not_asked_for_again() {
    for code in [
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    ] {
        let is_quota = code.starts_with("Max") || code.starts_with("Vcpu");
        let quota = || Effect::Quota { instance_type: Some("m5.large".to_owned()), code: code.to_owned() };
        let expected: Vec<Effect> = is_quota
            .then(quota)
            .into_iter()
            .chain([unavailable(Scope::offering("m5.large", "a", SPOT), code)])
            .collect();
        assert_eq!(found(SPOT, None, None, &error(code, "")), expected);
    }
    for code in ["RequestLimitExceeded", "UnauthorizedOperation", "InternalError"] {
        assert_eq!(found(SPOT, None, None, &error(code, "")), []);
    }
}

#[test]
fn a80_an_error_that_does_not_say_where_marks_nothing() {
    let nowhere = FleetError { place: Place::default(), ..error("InsufficientInstanceCapacity", "") };
    for kind in [SPOT, ON_DEMAND, RESERVED] {
        assert_eq!(found(kind, Some("pg-1"), None, &nowhere), []);
    }
}

#[test]
fn a81_a_full_subnet_says_nothing_about_its_zone() {
    let full = error("InsufficientFreeAddressesInSubnet", "");
    for kind in [ON_DEMAND, SPOT, RESERVED] {
        assert_eq!(
            found(kind, None, None, &full),
            [
                unavailable(Scope::subnet("subnet-1"), "InsufficientFreeAddressesInSubnet"),
                Effect::SubnetFull("subnet-1".to_owned()),
            ],
            "{kind}"
        );
    }
}

#[test]
fn a82_spot_is_given_up_where_its_role_may_not_be_created() {
    let code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
    assert_eq!(
        found(SPOT, None, None, &error(code, "")),
        [unavailable(Scope::capacity_type(SPOT), code), Effect::SpotRoleMissing]
    );
}

#[test]
fn a83_a_reservation_that_is_full_is_empty_for_us_and_nothing_else_is_concerned() {
    let full = Effect::ReservationFull { instance_type: "m5.large".to_owned(), zone: "a".to_owned() };
    assert_eq!(found(RESERVED, None, None, &error("ReservationCapacityExceeded", "")), [full]);
    assert_eq!(found(RESERVED, None, None, &error("RequestLimitExceeded", "")), []);
    let spread =
        error("InsufficientInstanceCapacity", "the limit of instances in this spread placement group");
    assert_eq!(found(RESERVED, Some("pg-1"), None, &spread), []);
}

#[test]
fn a84_in_a_placement_group_only_the_group_is_concerned() {
    let offering = |name: &str| Scope::offering(name, "a", ON_DEMAND);
    let code = "InsufficientInstanceCapacity";
    assert_eq!(
        found(ON_DEMAND, Some("pg-1"), None, &error(code, "")),
        [unavailable(offering("m5.large").within("pg-1"), code)]
    );
    assert_eq!(
        found(ON_DEMAND, Some("pg-1"), Some("3"), &error(code, "")),
        [unavailable(offering("m5.large").within("pg-1/3"), code)]
    );
    let spread = error(code, "You have reached the limit of instances in this spread placement group");
    assert_eq!(
        found(ON_DEMAND, Some("pg-1"), None, &spread),
        ["m5.large", "m5.xlarge"].map(|name| unavailable(offering(name).within("pg-1"), code))
    );
}

#[test]
fn a85_a_launch_that_found_no_capacity_is_told_from_one_that_failed() {
    let all =
        [error("Unsupported", "b"), error("Unsupported", "b"), error("InsufficientInstanceCapacity", "a")];
    assert_eq!(
        failure(&all).to_string(),
        "insufficient capacity, with fleet error(s), InsufficientInstanceCapacity: a; Unsupported: b"
    );
    let role = [error("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "")];
    assert!(matches!(failure(&role), cloud::Error::InsufficientCapacity(_)));
    let mixed = [error("Unsupported", "b"), error("InvalidAMIID.NotFound", "ami-1")];
    let cloud::Error::Create { reason, message } = failure(&mixed) else { panic!("not a failed launch") };
    assert_eq!(reason, "AMINotFound");
    assert!(message.starts_with("there is no such image (with fleet error(s), "), "{message}");
    assert!(matches!(failure(&[]), cloud::Error::Create { .. }));
    let call = of_call(&Error::new("ec2:CreateFleet", "RequestLimitExceeded", "slow down"));
    let cloud::Error::Create { reason, message } = call else { panic!("not a failed launch") };
    assert_eq!(reason, "RequestLimitExceeded");
    assert!(message.starts_with("creating fleet request, EC2 is asked too often"), "{message}");
}

#[test]
fn a86_errors_are_classified_by_the_first_text_that_fits() {
    for (text, reason) in [
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted: x", "SpotSLRCreationFailed"),
        ("UnauthorizedOperation: x", "Unauthorized"),
        ("AccessDenied: x with an explicit deny in a permissions boundary", "Unauthorized"),
        ("AuthFailure: x with an explicit deny in a service control policy", "Unauthorized"),
        ("AuthFailure: Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
        (
            "InvalidParameter: sg-1 and subnet-1 belong to different networks",
            "SecurityGroupSubnetVPCMismatch",
        ),
        ("Value (x) for parameter iamInstanceProfile.name is invalid", "InstanceProfileNameInvalid"),
        ("InvalidLaunchTemplateId.NotFound: x", "LaunchTemplateNotFound"),
        ("InvalidUserData.Malformed: User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
        ("InvalidAMIID.Malformed: x", "InvalidAMIID"),
        ("InvalidAMIID.NotFound: x", "AMINotFound"),
        ("RequestLimitExceeded: x", "RequestLimitExceeded"),
        ("InternalError: x", "InternalError"),
        ("InvalidParameterCombination: not eligible for Free Tier", "FreeTierIneligible"),
        ("MaxFleetCountExceeded: x", "FleetQuotaExceeded"),
        ("PendingVerification: x", "AccountPendingVerification"),
        ("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded: x", "VCPULimitExceeded"),
        ("InsufficientFreeAddressesInSubnet: x", "InsufficientFreeAddressesInSubnet"),
        ("SomethingElse: x", "LaunchFailed"),
    ] {
        assert_eq!(classify(text).0, reason, "{text}");
    }
    let messages = ["boundary", "service control policy"]
        .map(|part| classify(&format!("AccessDenied with an explicit deny in a permissions {part}")).1);
    assert_ne!(messages[0], messages[1]);
}

#[test]
fn a87_failed_launches_are_counted_by_place_and_reason() {
    let mut addresses = SubnetAddresses::default();
    let chosen = choose(&mut addresses);
    let plan = LaunchPlan { capacity_type: SPOT, tenancy: "default", partition: None };
    let mut known = error("VcpuLimitExceeded", "too many");
    known.place.zone = Some(ZONES[1].to_owned());
    assert_eq!(metric_labels(&plan, &chosen, &known), [ZONES[1], "use1-az2", SPOT, "VCPULimitExceeded"]);
    let nowhere = FleetError { place: Place::default(), ..known };
    assert_eq!(metric_labels(&plan, &chosen, &nowhere), ["", "", SPOT, "VCPULimitExceeded"]);
}

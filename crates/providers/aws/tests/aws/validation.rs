//! Whether launches with a NodeClass would be accepted.

use api::nodeclaim::NodeClaim;
use aws::instance_type::Discovered;
use aws::port::TypeInZone;
use aws::port::{Error, Tags};
use aws::validation::{Answer, Attempt, fleet_check, judge, run_checks, types_to_try};
use serde_json::{Value, json};

use crate::support::{DISCOVERED, MarketNow, SETS, ZONES, claim, class, info, node_class, only, wanted};

fn answer(attempt: Attempt, spec: Value, error: Option<&Error>) -> Answer {
    judge(attempt, &class(&node_class("AL2023", &spec)), error.map_or(Ok(()), Err))
}

#[test]
fn a130_answers_are_told_apart() {
    let error = |code: &str, message: &str| Error::new("ec2:RunInstances", code, message);
    let of = |error: &Error| answer(Attempt::RunInstances, json!({}), Some(error));
    assert_eq!(answer(Attempt::CreateLaunchTemplate, json!({}), None), Answer::Accepted);
    assert_eq!(of(&error("DryRunOperation", "")), Answer::Accepted);
    assert_eq!(of(&error("RequestLimitExceeded", "")), Answer::TryAgain);
    assert_eq!(of(&error("InternalError", "").by_server()), Answer::TryAgain);
    assert_eq!(of(&error("InvalidParameter", "")), Answer::Failed);
    let large = error("InvalidUserData.Malformed", "User data is limited to 16384 bytes");
    assert!(matches!(of(&large), Answer::Refused { reason: "UserDataSizeLimitExceeded", .. }));
}

#[test]
fn a131_a_missing_permission_is_named() {
    for (attempt, reason, call) in [
        (Attempt::CreateLaunchTemplate, "CreateLaunchTemplateAuthCheckFailed", "CreateLaunchTemplate"),
        (Attempt::CreateFleet, "CreateFleetAuthCheckFailed", "CreateFleet"),
        (Attempt::RunInstances, "RunInstancesAuthCheckFailed", "RunInstances"),
    ] {
        let denied =
            Error::new("ec2:X", "UnauthorizedOperation", "with an explicit deny in a service control policy");
        let message = format!(
            "Controller isn't authorized to call ec2:{call}: a service control policy of the organization denies it"
        );
        assert_eq!(answer(attempt, json!({}), Some(&denied)), Answer::Refused { reason, message });
    }
}

#[test]
fn a132_an_instance_profile_of_the_user_must_exist_and_ours_appears_by_itself() {
    let missing =
        Error::new("ec2:RunInstances", "InvalidParameterValue", "Invalid IAM Instance Profile name");
    assert_eq!(answer(Attempt::RunInstances, json!({}), Some(&missing)), Answer::TryAgain);
    let own = json!({"role": null, "instanceProfile": "mine"});
    assert_eq!(
        answer(Attempt::RunInstances, own, Some(&missing)),
        Answer::ProfileMissing { message: "instance profile \"mine\" does not exist".to_owned() }
    );
}

/// The types that launches of a class are tried with, in their order.
fn order(object: &api::aws::EC2NodeClass, discovered: &Discovered, pools: &[NodeClaim]) -> Vec<String> {
    let class = class(object);
    let names: Vec<&str> = discovered.types().map(|info| info.name.as_str()).collect();
    let types = MarketNow::default().types(&class, &names);
    let mut pools: Vec<_> = pools.iter().map(wanted).collect();
    let all = types_to_try(&class, &types, discovered, &mut pools, &SETS);
    all.into_iter().map(|each| each.name.clone()).collect()
}

fn tried(family: &str, names: &[&str], pools: &[NodeClaim]) -> Option<String> {
    order(&node_class(family, &json!({})), &only(names), pools).into_iter().next()
}

/// A class of a family whose only images are of one architecture.
fn with_images(family: &str, architecture: &str) -> api::aws::EC2NodeClass {
    let mut object = node_class(family, &json!({}));
    let images = &mut object.status.as_mut().unwrap().amis;
    images.retain(|image| image.requirements[0].values.as_ref().unwrap()[0] == architecture);
    assert_eq!(images.len(), 1);
    object
}

#[test]
fn a133_launches_are_tried_with_a_type_that_the_pools_would_get() {
    let names = ["a1.large", "c5.large", "g4dn.xlarge", "m5.large", "m6g.large"];
    let any = || claim(&[]);
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(tried("AL2023", &names, &[any()]), name("c5.large"), "a1 does not start AL2023");
    let gpus = claim(&[("karpenter.k8s.aws/instance-family", "In", &["g4dn"])]);
    assert_eq!(tried("AL2023", &names, std::slice::from_ref(&gpus)), name("g4dn.xlarge"));
    let arm = claim(&[("kubernetes.io/arch", "In", &["arm64"])]);
    assert_eq!(tried("AL2023", &names, &[gpus, arm]), name("m6g.large"), "one without accelerators first");
    assert_eq!(tried("AL2023", &names, &[]), name("m5.large"));
    assert_eq!(tried("Windows2022", &names, &[any()]), name("m5.large"));
    assert_eq!(tried("AL2023", &["c5.large"], &[]), name("c5.large"));
    // Every type that the pools would get has its turn, and no other.
    let large =
        claim(&[("node.kubernetes.io/instance-type", "In", &["c5.large", "m6g.large", "g4dn.xlarge"])]);
    let expected = ["c5.large", "m6g.large", "g4dn.xlarge"];
    assert_eq!(order(&node_class("AL2023", &json!({})), &only(&names), &[large]), expected);
}

#[test]
fn a260_launches_are_tried_with_a_type_that_an_image_of_the_class_starts() {
    let any = [claim(&[])];
    // All types of the region, a1 among them: it comes first by name, and its processor is not that of the image.
    for family in ["Custom", "AL2", "Bottlerocket", "AL2023"] {
        for (architecture, other) in [("amd64", "arm64"), ("arm64", "amd64")] {
            let tried = order(&with_images(family, architecture), &DISCOVERED, &any);
            assert!(tried.len() > 50, "{family} {architecture}: {}", tried.len());
            let of_other = order(&with_images(family, other), &DISCOVERED, &any);
            assert!(tried.iter().all(|name| !of_other.contains(name)), "{family} {architecture}");
            let first = info(&tried[0]);
            let wanted = if architecture == "amd64" { "x86_64" } else { "arm64" };
            assert!(first.processor.unwrap().architectures.iter().any(|each| each == wanted), "{tried:?}");
        }
    }
    // What pools want that no image starts is tried with a usual type that one does.
    let arm = claim(&[("kubernetes.io/arch", "In", &["arm64"])]);
    let names = ["m5.large", "m6g.large"];
    assert_eq!(order(&with_images("AL2", "amd64"), &only(&names), &[arm]), ["m5.large"]);
    assert_eq!(order(&with_images("AL2", "amd64"), &only(&["m6g.large"]), &any), Vec::<String>::new());
}

#[test]
fn a261_launches_are_tried_with_types_of_today_that_the_zones_of_the_subnets_have() {
    // The class has subnets in the first two zones.
    let place = |name: &str, zone: &str| TypeInZone { instance_type: name.to_owned(), zone: zone.to_owned() };
    let names = ["c5.large", "m4.large", "m5.large", "r5.large", "t1.micro", "t3.large"];
    let mut places = vec![
        place("c5.large", ZONES[2]),
        place("m4.large", ZONES[0]),
        place("m4.large", ZONES[1]),
        place("m5.large", ZONES[1]),
        place("r5.large", ZONES[0]),
        place("r5.large", ZONES[1]),
        place("t1.micro", ZONES[0]),
        place("t1.micro", ZONES[1]),
    ];
    let discovered = |places: &[TypeInZone]| {
        Discovered::new(names.iter().map(|name| info(name)).collect(), places.to_vec())
    };
    let object = with_images("AL2", "amd64");
    let expected = ["r5.large", "m4.large", "t1.micro", "m5.large"];
    assert_eq!(order(&object, &discovered(&places), &[claim(&[])]), expected, "all zones, then new ones");
    places.extend([place("t3.large", ZONES[0]), place("t3.large", ZONES[1])]);
    let mut types: Vec<_> = names.iter().map(|name| info(name)).collect();
    types[3].previous_generation = true;
    let tried = order(&object, &Discovered::new(types, places), &[claim(&[])]);
    assert_eq!(tried[..2], ["t3.large", "m4.large"], "EC2 says itself which are old: {tried:?}");
}

#[test]
fn a134_fleets_and_instances_are_tried_in_every_subnet() {
    let object = node_class("AL2023", &json!({"context": "abc"}));
    let class = class(&object);
    let tags: Tags = [("a".to_owned(), "b".to_owned())].into();
    let fleet = fleet_check(&class, "template", "m5.large", tags.clone());
    assert!(fleet.dry_run && fleet.context.is_none());
    let subnets: Vec<&str> =
        fleet.templates[0].overrides.iter().map(|each| each.subnet_id.as_str()).collect();
    assert_eq!(subnets, ["subnet-a1", "subnet-a2", "subnet-b1"]);
    let checks: Vec<_> = run_checks(&class, "template", "m5.large", &tags).collect();
    assert_eq!(checks.len(), 3);
    assert_eq!(checks[2].interfaces[0].subnet.as_deref(), Some("subnet-b1"));
    let listed = node_class(
        "AL2023",
        &json!({"networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
        ]}),
    );
    let class = self::class(&listed);
    let interfaces = run_checks(&class, "template", "m5.large", &tags).next().unwrap().interfaces;
    assert_eq!(interfaces.len(), 2);
    assert!(interfaces.iter().all(|each| each.subnet.as_deref() == Some("subnet-a1")));
}

//! Whether launches with a NodeClass would be accepted.

use api::nodeclaim::NodeClaim;
use aws::port::{Error, Tags};
use aws::validation::{Answer, Attempt, fleet_check, judge, run_checks, type_to_try};
use serde_json::{Value, json};

use crate::support::{MarketNow, claim, class, node_class, only, wanted};

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

fn tried(family: &str, names: &[&str], pools: &[NodeClaim]) -> Option<String> {
    let object = node_class(family, &json!({}));
    let class = class(&object);
    let types = MarketNow::default().types(&class, names);
    let mut pools: Vec<_> = pools.iter().map(wanted).collect();
    type_to_try(&class, &types, &only(names), &mut pools).map(|each| each.name.clone())
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

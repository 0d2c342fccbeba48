//! What is found when AWS is looked over, on an AWS in the process.

use std::collections::VecDeque;

use api::aws::EC2NodeClass;
use aws::doctor::{Subject, examine};
use aws::double::Times;
use aws::port::{Decision, Error, Message, QueueAttributes, Quota};
use cloud::doctor::{Level, Report};
use serde_json::{Value, json};

use crate::play::{Play, class};
use crate::support::{REGION, claim};

const ON_DEMAND: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &["on-demand"]);

/// An account where everything is as it should be, with a node of ours.
fn play() -> Play {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.create(&claim(&[ON_DEMAND])).unwrap();
    play.double.change(|world| {
        world.queue = Some(VecDeque::new());
        world.queue_attributes = QueueAttributes {
            retention_seconds: 300,
            policy: Some(r#"{"Principal":{"Service":"events.amazonaws.com"}}"#.to_owned()),
            ..QueueAttributes::default()
        };
        let quota = |code: &str, value: f64| Quota { code: code.to_owned(), name: code.to_owned(), value };
        world.quotas = vec![quota("L-1216C47A", 100.0), quota("L-34B43A08", 50.0), quota("L-417A185B", 0.0)];
        "arn:aws:eks:us-east-1:111122223333:cluster/test-cluster".clone_into(&mut world.cluster.arn);
    });
    play
}

fn node_class(name: &str, spec: &Value) -> EC2NodeClass {
    serde_json::from_value(class(name, spec)).unwrap()
}

fn subject(classes: Vec<EC2NodeClass>) -> Subject {
    Subject {
        region: REGION.to_owned(),
        cluster_name: "test-cluster".to_owned(),
        interruption_queue: Some("queue".to_owned()),
        classes: Some(classes),
        kubernetes: Some("1.34+".to_owned()),
        ..Subject::default()
    }
}

fn look(play: &Play, subject: &Subject) -> Report {
    let services = play.double.services();
    play.world.block_on(examine(&services, subject, play.world.now())).unwrap()
}

/// What is not good: level and what it is about.
fn wrong(report: &Report) -> Vec<(Level, String)> {
    let wrong = report.checks.iter().filter(|check| check.level != Level::Good);
    wrong.map(|check| (check.level, check.about.clone())).collect()
}

#[track_caller]
fn message<'a>(report: &'a Report, about: &str) -> &'a str {
    let found = report.checks.iter().find(|check| check.about == about);
    &found.unwrap_or_else(|| panic!("nothing about {about}:\n{}", report.text())).message
}

#[test]
fn a230_an_account_where_all_is_well_has_nothing_to_look_at() {
    let play = play();
    let report = look(&play, &subject(vec![node_class("default", &json!({}))]));
    assert!(wrong(&report).is_empty() && report.is_healthy(), "{}", report.text());
    assert_eq!(report.title, "AWS, region us-east-1, cluster test-cluster");
    assert!(message(&report, "credentials").starts_with("account 111122223333, arn:aws:sts::"));
    assert_eq!(message(&report, "policy node-lifecycle"), "7 actions are allowed");
    assert_eq!(message(&report, "policy discovery"), "13 actions are allowed");
    assert_eq!(message(&report, "quota L-1216C47A"), "2 of 100 vCPUs are used, L-1216C47A");
    assert!(message(&report, "EC2NodeClass default, subnets").contains("free addresses"));
    assert_eq!(message(&report, "Kubernetes"), "version 1.34");
}

#[test]
fn a231_exactly_what_is_missing_is_listed_with_where_it_comes_from() {
    let play = play();
    let denied = [
        ("ec2:TerminateInstances", "UnauthorizedOperation"),
        ("ec2:DescribeSpotPriceHistory", "UnauthorizedOperation"),
        ("sqs:ReceiveMessage", "AccessDenied"),
        ("ssm:GetParameter", "AccessDeniedException"),
    ];
    for (action, code) in denied {
        let message = format!("User: x is not authorized to perform: {action} because no policy allows it");
        play.double.fail(action, code, &message, Times::Always);
    }
    play.double.change(|world| {
        world.decisions.insert("iam:DeleteInstanceProfile".to_owned(), Decision::NotAllowed);
    });
    let report = look(&play, &subject(vec![node_class("default", &json!({}))]));
    let expected = [
        (Level::Bad, "permission ec2:TerminateInstances"),
        (Level::Bad, "permission iam:DeleteInstanceProfile"),
        (Level::Bad, "permission sqs:ReceiveMessage"),
        (Level::Bad, "permission ec2:DescribeSpotPriceHistory"),
        (Level::Warning, "permission ssm:GetParameter"),
    ];
    assert_eq!(wrong(&report), expected.map(|(level, about)| (level, about.to_owned())), "{}", report.text());
    let text = report.text();
    assert!(text.contains("missing (no policy allows it), so nodes are never removed"), "{text}");
    assert!(text.contains("deploy/aws/policies/node-lifecycle.json"), "{text}");
    assert!(!report.is_healthy());
    // The role of nodes may not be passed: that is what running an instance fails with.
    play.double.fail(
        "ec2:RunInstances",
        "UnauthorizedOperation",
        "User: x is not authorized to perform: iam:PassRole on resource: y because no policy allows it. Encoded authorization failure message: z",
        Times::Always,
    );
    let report =
        look(&play, &subject(vec![node_class("default", &json!({"instanceProfile": "p", "role": null}))]));
    assert_eq!(
        message(&report, "permission iam:PassRole"),
        "missing (no policy allows it), so nothing can be launched"
    );
}

#[test]
fn a232_what_cannot_be_tried_is_said_unless_iam_says_it() {
    let play = play();
    play.double.change(|world| {
        world.instances.clear();
        world.templates.clear();
    });
    let classes = || vec![node_class("default", &json!({}))];
    let report = look(&play, &subject(classes()));
    assert!(wrong(&report).is_empty(), "IAM says it:\n{}", report.text());
    play.double.fail("iam:SimulatePrincipalPolicy", "AccessDenied", "no", Times::Always);
    let report = look(&play, &subject(classes()));
    assert!(report.is_healthy(), "{}", report.text());
    let unknown: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| check.level == Level::Warning)
        .map(|check| check.message.as_str())
        .collect();
    assert_eq!(unknown.len(), 2, "{unknown:?}");
    assert!(unknown[0].contains("ec2:CreateFleet, ec2:CreateTags, ec2:TerminateInstances"), "{unknown:?}");
    assert!(unknown[1].contains("iam:PassRole, iam:CreateInstanceProfile"), "{unknown:?}");
}

#[test]
fn a233_every_class_says_what_it_lacks() {
    let play = play();
    play.double.change(|world| {
        world.subnets[1].item.available_addresses = 40;
        world.profiles.insert("empty".to_owned(), aws::port::InstanceProfile::default());
    });
    let cases = [
        (
            "no-subnets",
            json!({"subnetSelectorTerms": [{"tags": {"no": "no"}}]}),
            "subnets",
            "subnetSelectorTerms",
        ),
        (
            "no-groups",
            json!({"securityGroupSelectorTerms": [{"name": "no"}]}),
            "security groups",
            "securityGroupSelectorTerms",
        ),
        (
            "no-image",
            json!({"amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}),
            "images",
            "amiSelectorTerms",
        ),
        (
            "old-alias",
            json!({"amiFamily": "AL2", "amiSelectorTerms": [{"alias": "al2@latest"}]}),
            "images",
            "al2023@latest",
        ),
        (
            "no-role",
            json!({"role": "nobody"}),
            "instance profile",
            "role \"nobody\" of spec.role does not exist",
        ),
        (
            "no-profile",
            json!({"role": null, "instanceProfile": "gone"}),
            "instance profile",
            "instance profile \"gone\" does not exist",
        ),
        (
            "no-role-in-it",
            json!({"role": null, "instanceProfile": "empty"}),
            "instance profile",
            "has no role",
        ),
        ("neither", json!({"role": null}), "instance profile", "neither spec.role nor spec.instanceProfile"),
    ];
    let classes = cases.iter().map(|(name, spec, ..)| node_class(name, spec)).collect();
    let report = look(&play, &subject(classes));
    for (name, _, part, expected) in &cases {
        let about = format!("EC2NodeClass {name}, {part}");
        let found = message(&report, &about);
        assert!(found.contains(expected), "{about}: {found}");
        let bad: Vec<&str> = report
            .checks
            .iter()
            .filter(|check| {
                check.about.starts_with(&format!("EC2NodeClass {name},")) && check.level == Level::Bad
            })
            .map(|check| check.about.as_str())
            .collect();
        assert_eq!(bad, [about.as_str()], "one mistake is one line");
    }
    let few = message(&report, "EC2NodeClass no-role, subnets");
    assert!(few.contains("subnet-b1 in us-east-1b has 40 free addresses, enough for 0 nodes"), "{few}");
}

#[test]
fn a234_what_the_controller_says_about_a_class_is_passed_on() {
    let play = play();
    let mut refused = node_class("default", &json!({}));
    refused.status = serde_json::from_value(json!({"conditions": [
        {"type": "ValidationSucceeded", "status": "False", "reason": "CreateFleetAuthCheckFailed",
         "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": "ValidationSucceeded=False",
         "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}))
    .unwrap();
    let report = look(&play, &subject(vec![refused]));
    assert_eq!(
        message(&report, "EC2NodeClass default, conditions"),
        "ValidationSucceeded is False (CreateFleetAuthCheckFailed) no"
    );
    // Without any, and without the cluster, everything else is still looked at.
    let none = look(&play, &subject(Vec::new()));
    assert_eq!(message(&none, "EC2NodeClasses"), "there are none, so that nothing can be launched");
    let unreachable = look(&play, &Subject { classes: None, kubernetes: None, ..subject(Vec::new()) });
    assert!(unreachable.is_healthy(), "{}", unreachable.text());
    assert!(!unreachable.checks.iter().any(|check| check.about.contains("EC2NodeClass")));
}

#[test]
fn a235_the_queue_and_the_quotas_are_looked_at() {
    let play = play();
    play.double.change(|world| {
        let message = Message { body: "{}".to_owned(), receipt: "r".to_owned() };
        world.queue.as_mut().unwrap().push_back(message);
        world.queue_attributes.policy = None;
        world.quotas[0].value = 2.0;
    });
    let classes = || vec![node_class("default", &json!({}))];
    let report = look(&play, &subject(classes()));
    assert_eq!(
        wrong(&report),
        [
            (Level::Bad, "interruption queue queue".to_owned()),
            (Level::Warning, "interruption queue queue".to_owned()),
            (Level::Bad, "quota L-1216C47A".to_owned()),
        ],
        "{}",
        report.text()
    );
    assert_eq!(
        play.double.change(|world| world.queue.as_ref().map(VecDeque::len)),
        Some(1),
        "nothing is deleted"
    );
    play.double.change(|world| world.queue = None);
    let report = look(&play, &subject(classes()));
    assert_eq!(message(&report, "interruption queue queue"), "there is no such queue in this region");
    let without = Subject { interruption_queue: None, ..subject(classes()) };
    play.double.fail("servicequotas:ListServiceQuotas", "AccessDeniedException", "no", Times::Always);
    let report = look(&play, &without);
    let expected = [(Level::Warning, "interruption queue"), (Level::Warning, "quotas")];
    assert_eq!(wrong(&report), expected.map(|(level, about)| (level, about.to_owned())), "{}", report.text());
}

#[test]
fn a236_nothing_is_changed() {
    let play = play();
    let before = play.double.change(|world| format!("{world:?}"));
    play.double.forget_calls();
    look(&play, &Subject { zonal_shift: true, ..subject(vec![node_class("default", &json!({}))]) });
    assert_eq!(play.double.change(|world| format!("{world:?}")), before);
    for call in play.double.calls() {
        let operation = call.operation.split_once(':').unwrap().1;
        let reads = ["Describe", "Get", "List", "Simulate"].iter().any(|verb| operation.starts_with(verb));
        let is_harmless = reads
            || call.about == "dry run"
            || operation == "CreateFleet"
            || call.about.starts_with("peek ")
            || operation == "DeleteMessage";
        assert!(is_harmless, "{call:?}");
    }
}

#[test]
fn a237_an_aws_that_does_not_know_us_or_does_not_answer_is_an_error() {
    let play = play();
    let services = play.double.services();
    let ask = |play: &Play| play.world.block_on(examine(&services, &subject(Vec::new()), play.world.now()));
    play.double.fail("sts:GetCallerIdentity", "ExpiredToken", "old", Times::Always);
    play.double.fail("ec2:DescribeInstanceTypes", "AuthFailure", "who", Times::Always);
    assert_eq!(ask(&play).unwrap_err().code, "ExpiredToken");
    for operation in ["sts:GetCallerIdentity", "ec2:DescribeInstanceTypes"] {
        play.double.fail_with(Error { operation, ..Error::default() }, Times::Always);
    }
    assert_eq!(ask(&play).unwrap_err().operation, "sts:GetCallerIdentity");
    // STS alone is no reason to give up.
    play.double.mend("ec2:DescribeInstanceTypes");
    let report = ask(&play).unwrap();
    assert!(message(&report, "credentials").starts_with("STS does not say who we are"), "{}", report.text());
}

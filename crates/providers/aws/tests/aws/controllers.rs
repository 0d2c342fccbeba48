//! The controllers of the provider, on an AWS in the process and a cluster in virtual time.

use aws::double::Times;
use cloud::{CloudProvider as _, Error};
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, class};
use crate::support::claim;

#[test]
fn a160_a_class_finds_what_it_selects_and_instances_can_be_launched_with_it() {
    let mut play = Play::new(&["m5.large"]);
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(30);
    let (status, _, message) = play.condition("default", "Ready");
    assert_eq!(status, "True", "{message} {:?}", play.condition("default", "ValidationSucceeded"));
    let object = play.world.get(&format!("{CLASSES}/default")).unwrap();
    let found = &object["status"];
    assert_eq!(found["subnets"].as_array().unwrap().len(), 2);
    assert_eq!(found["securityGroups"][0]["id"], "sg-1");
    assert_eq!(found["amis"].as_array().unwrap().len(), 2);
    let profile = found["instanceProfile"].as_str().unwrap();
    let roles = play.double.change(|world| world.profiles[profile].roles.clone());
    assert_eq!(roles, ["node-role"]);
    assert_eq!(object["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v6");
    assert_eq!(object["metadata"]["finalizers"], json!(["karpenter.k8s.aws/termination"]));
    play.create(&claim(&[])).unwrap();
    // What nobody uses any more is deleted.
    play.pass(180);
    assert_eq!(play.double.change(|world| world.templates.len()), 0);
}

#[test]
fn a161_what_is_wrong_is_said_in_one_condition_with_what_to_do() {
    let cases: [(Value, &str, &str, &str); 7] = [
        (
            json!({"subnetSelectorTerms": [{"tags": {"no": "no"}}]}),
            "SubnetsReady",
            "SubnetsNotFound",
            "spec.subnetSelectorTerms",
        ),
        (
            json!({"securityGroupSelectorTerms": [{"name": "no"}]}),
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "spec.securityGroupSelectorTerms",
        ),
        (
            json!({"amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}),
            "AMIsReady",
            "AMINotFound",
            "spec.amiSelectorTerms",
        ),
        (
            json!({"amiSelectorTerms": [{"alias": "al2023@v20990101"}]}),
            "AMIsReady",
            "AMINotFound",
            "spec.amiSelectorTerms",
        ),
        (
            json!({"amiFamily": "AL2", "amiSelectorTerms": [{"alias": "al2@latest"}]}),
            "AMIsReady",
            "UnsupportedAlias",
            "al2023@latest",
        ),
        (json!({"role": "nobody"}), "InstanceProfileReady", "RoleNotFound", "create it or name another one"),
        (
            json!({"placementGroupSelector": {"name": "no"}}),
            "PlacementGroupReady",
            "PlacementGroupNotFound",
            "spec.placementGroupSelector",
        ),
    ];
    let mut play = Play::new(&["m5.large"]);
    play.start();
    play.world.apply(&class("good", &json!({})).to_string());
    for (index, (spec, ..)) in cases.iter().enumerate() {
        play.world.apply(&class(&format!("bad-{index}"), spec).to_string());
    }
    play.pass(60);
    for (index, (_, kind, reason, advice)) in cases.iter().enumerate() {
        let name = format!("bad-{index}");
        let (status, found, message) = play.condition(&name, kind);
        assert_eq!((status.as_str(), found.as_str()), ("False", *reason), "{name} {message}");
        assert!(message.contains(advice), "{name}: {message}");
        let ready = play.condition(&name, "Ready").0;
        assert_ne!(ready, "True", "{name}");
        let others = [
            "SubnetsReady",
            "SecurityGroupsReady",
            "AMIsReady",
            "InstanceProfileReady",
            "PlacementGroupReady",
        ];
        for other in others.into_iter().filter(|other| other != kind) {
            assert_eq!(play.condition(&name, other).0, "True", "{name} {other}");
        }
    }
    assert_eq!(play.condition("good", "Ready").0, "True", "nothing else stops");
    let mut wanted = claim(&[]);
    wanted.spec.node_class_ref.name = "bad-0".to_owned();
    assert!(matches!(play.create(&wanted), Err(Error::NodeClassNotReady(_))));
    assert_eq!(
        play.double.change(|world| world.profiles.len()),
        7,
        "nothing is left of the role that is missing"
    );
}

#[test]
fn a162_classes_and_claims_of_the_original_do_not_drift() {
    for version in ["v5", "v6"] {
        let mut play = Play::new(&["m5.large"]);
        play.ready_class("default", &json!({}), &json!({}));
        let launched = play.create(&claim(&[("karpenter.sh/capacity-type", "In", &["on-demand"])])).unwrap();
        let ours = launched.metadata.annotations.clone().unwrap();
        let hash = if version == "v6" {
            ours["karpenter.k8s.aws/ec2nodeclass-hash"].clone()
        } else {
            "123".to_owned()
        };
        let stamps = json!({
            "karpenter.k8s.aws/ec2nodeclass-hash": hash, "karpenter.k8s.aws/ec2nodeclass-hash-version": version,
        });
        play.world.patch(&format!("{CLASSES}/default"), &json!({"metadata": {"annotations": stamps}}));
        let mut written = serde_json::to_value(claim(&[])).unwrap();
        written["apiVersion"] = "karpenter.sh/v1".into();
        written["kind"] = "NodeClaim".into();
        written["metadata"]["labels"] = json!(launched.metadata.labels);
        written["metadata"]["annotations"] = stamps;
        written.as_object_mut().unwrap().remove("status");
        play.world.apply(&written.to_string());
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool-1"},
            "spec": {"template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            }}},
        });
        play.world.apply(&pool.to_string());
        let status = json!({"status": {"providerID": launched.status.as_ref().unwrap().provider_id, "imageID": "ami-amd"}});
        play.world.patch(&format!("{CLAIMS}/claim-1/status"), &status);
        play.start();
        play.pass(60);
        let known: api::nodeclaim::NodeClaim =
            serde_json::from_value(play.world.get(&format!("{CLAIMS}/claim-1")).unwrap()).unwrap();
        let stamps = known.metadata.annotations.as_ref().unwrap();
        assert_eq!(
            stamps["karpenter.k8s.aws/ec2nodeclass-hash"], ours["karpenter.k8s.aws/ec2nodeclass-hash"],
            "{version}"
        );
        assert_eq!(stamps["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v6");
        assert_eq!(play.world.block_on(play.aws.drift(&known)), Ok(None), "{version}");
        assert_eq!(play.double.change(|world| world.running().count()), 1, "nothing is collected");
    }
}

#[test]
fn a163_a_class_that_goes_waits_for_its_claims_and_takes_what_was_made_for_it() {
    let mut play = Play::new(&["m5.large"]);
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    let mut written = serde_json::to_value(claim(&[])).unwrap();
    written["apiVersion"] = "karpenter.sh/v1".into();
    written["kind"] = "NodeClaim".into();
    written.as_object_mut().unwrap().remove("status");
    play.world.apply(&written.to_string());
    play.pass(30);
    assert_eq!(play.double.change(|world| world.profiles.len()), 1);
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(5);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_some());
    assert!(play.events.published().iter().any(|event| event.message.contains("claim-1")));
    play.world.delete(&format!("{CLAIMS}/claim-1"));
    play.pass(5);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_none());
    assert_eq!(play.double.change(|world| (world.profiles.len(), world.templates.len())), (0, 0));
}

#[test]
fn a164_a_missing_permission_is_said_and_tried_again_when_something_changes() {
    let mut play = Play::new(&["m5.large"]);
    play.double.fail("ec2:RunInstances", "UnauthorizedOperation", "no", Times::Always);
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(30);
    let (status, reason, message) = play.condition("default", "ValidationSucceeded");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "RunInstancesAuthCheckFailed"));
    assert!(message.contains("ec2:RunInstances"), "{message}");
    play.double.mend("ec2:RunInstances");
    play.pass(120);
    assert_eq!(play.condition("default", "Ready").0, "False", "a verdict counts for a while");
    let note = json!({"metadata": {"annotations": {"team.example/try": "again"}}});
    play.world.patch(&format!("{CLASSES}/default"), &note);
    play.pass(30);
    assert_eq!(play.condition("default", "Ready").0, "True");
}

#[test]
fn a165_an_instance_without_a_claim_goes_after_half_a_minute() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.create(&claim(&[])).unwrap();
    play.start();
    play.pass(20);
    assert_eq!(play.double.change(|world| world.running().count()), 1);
    play.pass(25);
    assert_eq!(play.double.change(|world| world.running().count()), 0);
}

#[test]
fn a166_answers_that_fail_leave_everything_as_it_was() {
    let operations = [
        "ec2:DescribeSubnets",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeImages",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribePlacementGroups",
        "iam:GetInstanceProfile",
    ];
    let mut play = Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    play.double.change(|world| {
        world.placement_groups.push(aws::port::PlacementGroup {
            id: "pg-1".to_owned(),
            name: "group".to_owned(),
            strategy: aws::port::PlacementStrategy::Cluster,
            partitions: 0,
            spread_level: None,
        });
        let item = aws::port::CapacityReservation {
            id: "cr-1".to_owned(),
            zone: crate::support::ZONES[0].to_owned(),
            instance_type: "m5.large".to_owned(),
            owner_id: "123456789012".to_owned(),
            match_criteria: "targeted".to_owned(),
            available: 1,
            ..aws::port::CapacityReservation::default()
        };
        let tags = [("team".to_owned(), "a".to_owned())].into();
        world.reservations.push(aws::double::Stored { item, tags });
    });
    play.start();
    let spec = json!({
        "placementGroupSelector": {"name": "group"},
        "capacityReservationSelectorTerms": [{"tags": {"team": "a"}}],
    });
    play.world.apply(&class("default", &spec).to_string());
    play.pass(30);
    let status = |play: &Play| play.world.get(&format!("{CLASSES}/default")).unwrap()["status"].clone();
    let before = status(&play);
    assert_eq!(play.condition("default", "Ready").0, "True", "{before:#}");
    let found = ["subnets", "securityGroups", "amis", "capacityReservations"];
    assert!(
        found.iter().all(|field| before[field].as_array().is_some_and(|all| !all.is_empty())),
        "{before:#}"
    );
    for operation in operations {
        play.double
            .fail_with(aws::port::Error::new(operation, "InternalError", "no").by_server(), Times::Always);
    }
    play.double.forget_calls();
    // Longer than anything counts that was found before.
    play.pass(20 * 60);
    for operation in operations {
        assert!(play.double.count(operation) > 0, "{operation} was not even asked");
    }
    assert_eq!(status(&play), before);
    play.create(&claim(&[])).unwrap();
}

#[test]
fn a167_a_class_that_becomes_wrong_stops_its_launches_and_nothing_else() {
    let mistakes = [
        (json!({"subnetSelectorTerms": [{"tags": {"no": "no"}}]}), "SubnetsReady"),
        (json!({"securityGroupSelectorTerms": [{"tags": {"no": "no"}}]}), "SecurityGroupsReady"),
        (json!({"amiSelectorTerms": [{"alias": "al2023@v20990101"}]}), "AMIsReady"),
        (json!({"role": "nobody"}), "InstanceProfileReady"),
    ];
    for (mistake, condition) in mistakes {
        let mut play = Play::with(&["m5.large"], &["--interruption-queue=queue"]);
        play.double.change(|world| world.queue = Some(std::collections::VecDeque::new()));
        play.start();
        for name in ["default", "other"] {
            play.world.apply(&class(name, &json!({})).to_string());
        }
        play.pass(30);
        let first = play.node("one", &[]);
        let second = play.node("two", &[]);
        play.world.patch(&format!("{CLASSES}/default"), &json!({"spec": mistake}));
        play.pass(120);
        assert_eq!(play.condition("default", condition).0, "False", "{condition}");
        assert_ne!(play.condition("default", "Ready").0, "True", "{condition}");
        assert!(matches!(play.create(&claim(&[])), Err(Error::NodeClassNotReady(_))), "{condition}");
        // Nodes stay, and are looked after.
        let running =
            |play: &Play, id: &str| play.double.change(|world| world.running().any(|each| each.id == id));
        assert!(running(&play, &first) && running(&play, &second), "{condition}");
        assert!(!play.is_ending("one") && !play.is_ending("two"), "{condition}");
        let ended: api::nodeclaim::NodeClaim = serde_json::from_value(play.claim("one")).unwrap();
        play.world.block_on(play.aws.delete(&ended)).unwrap();
        assert!(!running(&play, &first), "{condition}");
        let body = json!({
            "version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning",
            "time": play.world.now().to_string(), "detail": {"instance-id": second},
        });
        let message = aws::port::Message { body: body.to_string(), receipt: "r".to_owned() };
        play.double.change(|world| world.queue.as_mut().unwrap().push_back(message));
        play.pass(5);
        assert!(play.is_ending("two"), "{condition}");
        // Other classes are not concerned, and this one is as before once it is mended.
        let mut other = claim(&[]);
        other.spec.node_class_ref.name = "other".to_owned();
        play.create(&other).unwrap();
        play.world.apply(&class("default", &json!({})).to_string());
        play.pass(120);
        assert_eq!(play.condition("default", "Ready").0, "True", "{condition}");
        play.create(&claim(&[])).unwrap();
    }
}

#[test]
fn a264_a_class_whose_images_are_of_one_architecture_becomes_ready_with_an_open_pool() {
    // By name, a1 comes before all others, and starts no image for x86.
    for family in ["Custom", "AL2", "Bottlerocket"] {
        let mut play = Play::new(&["a1.2xlarge", "a1.large", "c1.medium", "m5.large", "m6g.large"]);
        play.double.change(|world| world.images.retain(|image| image.item.architecture == "x86_64"));
        play.start();
        play.pool("pool-1", "default", &json!({}));
        play.world.apply(&class("default", &json!({"amiFamily": family})).to_string());
        play.pass(15);
        let verdict = play.condition("default", "ValidationSucceeded");
        assert_eq!(play.condition("default", "Ready").0, "True", "{family}: {verdict:?}");
        let tried: Vec<String> = play
            .double
            .calls()
            .into_iter()
            .filter(|call| call.operation == "ec2:RunInstances")
            .map(|call| call.about)
            .collect();
        assert_eq!(tried, ["m5.large subnet-a1"], "{family}: the one of today, and it is enough");
        play.create(&claim(&[])).unwrap();
    }
}

#[test]
fn a265_a_type_that_ec2_refuses_is_followed_by_another_one() {
    let mut play = Play::new(&["c5.large", "m5.large", "r5.large"]);
    let zones = crate::support::ZONES;
    play.double.change(|world| {
        for name in ["c5.large", "m5.large"] {
            world.refused.extend(zones.map(|zone| (name.to_owned(), zone.to_owned())));
        }
        // One zone in which it would be accepted is enough.
        world.refused.insert(("r5.large".to_owned(), zones[0].to_owned()));
    });
    play.start();
    play.pool("pool-1", "default", &json!({}));
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(60);
    assert_eq!(play.condition("default", "Ready").0, "True");
    let tried: Vec<String> = play
        .double
        .calls()
        .into_iter()
        .filter(|call| call.operation == "ec2:RunInstances")
        .map(|call| call.about)
        .collect();
    let expected = [
        "c5.large subnet-a1",
        "c5.large subnet-b1",
        "m5.large subnet-a1",
        "m5.large subnet-b1",
        "r5.large subnet-a1",
        "r5.large subnet-b1",
    ];
    assert_eq!(tried, expected);
    // The type that was accepted is the one that is tried the next time.
    play.double.forget_calls();
    let note = json!({"metadata": {"annotations": {"team.example/try": "again"}}});
    play.world.patch(&format!("{CLASSES}/default"), &note);
    play.pass(30);
    assert_eq!(play.double.count("ec2:RunInstances"), 2);
    assert_eq!(play.condition("default", "Ready").0, "True");
}

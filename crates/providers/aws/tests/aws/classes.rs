//! NodeClasses in all their cases, on an AWS in the process.

use std::time::Duration;

use aws::double::{Stored, Times};
use aws::port::{CapacityReservation, Error, InstanceProfile, PlacementGroup, PlacementStrategy, SpotPrice};
use cloud::CloudProvider as _;
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, class};
use crate::support::{ZONES, claim};

impl Play {
    /// A NodeClass that the controllers have looked at.
    fn class(&mut self, name: &str, spec: &Value) {
        self.world.apply(&class(name, spec).to_string());
        self.pass(30);
    }

    fn status(&self, name: &str) -> Value {
        self.world.get(&format!("{CLASSES}/{name}")).unwrap()["status"].clone()
    }

    fn profile(&self, name: &str) -> String {
        self.status(name)["instanceProfile"].as_str().unwrap_or_default().to_owned()
    }
}

fn started(types: &[&str], arguments: &[&str]) -> Play {
    let mut play = Play::with(types, arguments);
    play.start();
    play
}

#[test]
fn a200_reservations_are_found_by_what_they_are_and_gone_when_they_end() {
    let mut play = started(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    let ends = play.world.now() + Duration::from_mins(10);
    let stored = |id: &str, owner: &str, criteria: &str, tag: &str, ends| Stored {
        item: CapacityReservation {
            id: id.to_owned(),
            zone: ZONES[0].to_owned(),
            instance_type: "m5.large".to_owned(),
            owner_id: owner.to_owned(),
            match_criteria: criteria.to_owned(),
            available: 1,
            ends,
            ..CapacityReservation::default()
        },
        tags: [("team".to_owned(), tag.to_owned())].into(),
    };
    let (ours, others) = ("111111111111", "222222222222");
    play.double.change(|world| {
        world.reservations = vec![
            stored("cr-1", ours, "targeted", "a", None),
            stored("cr-2", ours, "open", "a", None),
            stored("cr-3", others, "targeted", "a", None),
            stored("cr-4", ours, "targeted", "b", Some(ends)),
            stored("cr-5", ours, "strange", "b", None),
        ];
    });
    let ids = |play: &Play, name: &str| -> Vec<String> {
        let found = play.status(name)["capacityReservations"].clone();
        let found = found.as_array().cloned().unwrap_or_default();
        found.iter().map(|each| each["id"].as_str().unwrap().to_owned()).collect()
    };
    for (name, term, expected) in [
        ("by-id", json!({"id": "cr-2"}), &["cr-2"][..]),
        ("missing", json!({"id": "cr-9"}), &[]),
        ("by-tag", json!({"tags": {"team": "a"}}), &["cr-1", "cr-2", "cr-3"]),
        ("by-owner", json!({"tags": {"team": "a"}, "ownerID": others}), &["cr-3"]),
        ("by-criteria", json!({"instanceMatchCriteria": "open"}), &["cr-2"]),
        ("ending", json!({"tags": {"team": "b"}}), &["cr-4"]),
    ] {
        play.class(name, &json!({"capacityReservationSelectorTerms": [term]}));
        assert_eq!(ids(&play, name), expected, "{name}");
        assert_eq!(play.condition(name, "CapacityReservationsReady").0, "True", "{name}");
    }
    assert_eq!(play.status("by-id")["capacityReservations"][0]["state"], "active");
    let left = ends.duration_since(play.world.now()).as_secs();
    play.pass(u64::try_from(left).unwrap() + 5);
    assert_eq!(ids(&play, "ending"), Vec::<String>::new(), "at once when it ends");
    assert_eq!(play.condition("ending", "Ready").0, "True");
}

#[test]
fn a201_a_profile_is_made_for_each_role_and_reused() {
    let mut play = started(&["m5.large"], &[]);
    play.class("default", &json!({"tags": {"team": "a"}}));
    let first = play.profile("default");
    let (profile, tags) =
        play.double.change(|world| (world.profiles[&first].clone(), world.profile_tags[&first].clone()));
    let uid = play.world.get(&format!("{CLASSES}/default")).unwrap()["metadata"]["uid"].clone();
    assert_eq!(profile.path, format!("/karpenter/us-east-1/test-cluster/{}/", uid.as_str().unwrap()));
    assert_eq!(profile.roles, ["node-role"]);
    for (key, value) in [
        ("team", "a"),
        ("kubernetes.io/cluster/test-cluster", "owned"),
        ("eks:eks-cluster-name", "test-cluster"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("topology.kubernetes.io/region", "us-east-1"),
    ] {
        assert_eq!(tags[key], value);
    }
    // Two classes with one role have a profile each.
    play.class("other", &json!({}));
    assert_ne!(play.profile("other"), first);
    // Another role is another profile; the role may be written with its path.
    play.double.change(|world| world.roles.insert("second".to_owned()));
    play.world.patch(&format!("{CLASSES}/default"), &json!({"spec": {"role": "team/second"}}));
    play.pass(30);
    let second = play.profile("default");
    assert_ne!(second, first);
    assert_eq!(play.double.change(|world| world.profiles[&second].roles.clone()), ["second"]);
    play.pass(40 * 60);
    assert_eq!(play.profile("default"), second, "nothing is created again");
    // Back again, and nothing new is made.
    let before = play.double.count("iam:CreateInstanceProfile");
    play.world.patch(&format!("{CLASSES}/default"), &json!({"spec": {"role": "node-role"}}));
    play.pass(30);
    assert_eq!(
        (play.profile("default"), play.double.count("iam:CreateInstanceProfile")),
        (first, before + 1)
    );
    // The user's own: IAM is left alone.
    play.double.forget_calls();
    play.world
        .patch(&format!("{CLASSES}/default"), &json!({"spec": {"role": null, "instanceProfile": "mine"}}));
    play.pass(30);
    assert_eq!(play.profile("default"), "mine");
    assert!(!play.double.calls().iter().any(|call| call.operation.starts_with("iam:")));
}

#[test]
fn a202_a_profile_that_was_half_made_or_changed_is_mended() {
    let mut play = started(&["m5.large"], &[]);
    play.double.fail("iam:AddRoleToInstanceProfile", "ServiceFailure", "no", Times::Next(2));
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(5);
    assert_eq!(play.double.change(|world| world.profiles.len()), 0, "nothing is left of what did not work");
    assert_ne!(play.condition("default", "InstanceProfileReady").0, "True");
    play.pass(60);
    assert_eq!(play.condition("default", "InstanceProfileReady").0, "True");
    let name = play.profile("default");
    for roles in [vec![], vec!["stranger".to_owned()]] {
        play.double.change(|world| {
            world.roles.insert("stranger".to_owned());
            world.profiles.get_mut(&name).unwrap().roles = roles.clone();
        });
        play.pass(17 * 60);
        let (found, now) =
            (play.profile("default"), play.double.change(|world| world.profiles[&name].roles.clone()));
        assert_eq!((found, now), (name.clone(), vec!["node-role".to_owned()]), "{roles:?}");
    }
    play.double.change(|world| world.profiles.clear());
    play.pass(17 * 60);
    assert_eq!(play.double.change(|world| world.profiles[&name].roles.clone()), ["node-role"]);
}

#[test]
fn a203_a_placement_group_is_found_and_lost_again() {
    let group = |id: &str, name: &str, strategy, partitions| PlacementGroup {
        id: id.to_owned(),
        name: name.to_owned(),
        strategy,
        partitions,
        spread_level: None,
    };
    let mut play = started(&["m5.large"], &[]);
    play.double.change(|world| {
        world.placement_groups = vec![
            group("pg-1", "cluster", PlacementStrategy::Cluster, 0),
            group("pg-2", "parts", PlacementStrategy::Partition, 3),
        ];
    });
    play.class("by-name", &json!({"placementGroupSelector": {"name": "cluster"}}));
    play.class("by-id", &json!({"placementGroupSelector": {"id": "pg-2"}}));
    let launched = |play: &Play, class: &str| {
        let mut wanted = claim(&[]);
        class.clone_into(&mut wanted.spec.node_class_ref.name);
        play.create(&wanted).map(|launched| launched.metadata.labels.unwrap())
    };
    assert_eq!(launched(&play, "by-name").unwrap()["karpenter.k8s.aws/placement-group-id"], "pg-1");
    let labels = launched(&play, "by-id").unwrap();
    assert_eq!(labels["karpenter.k8s.aws/placement-group-id"], "pg-2");
    assert_eq!(labels["karpenter.k8s.aws/placement-group-partition"], "");
    // After an error, what was known counts.
    let error = Error::new("ec2:DescribePlacementGroups", "InternalError", "no").by_server();
    play.double.fail_with(error, Times::Always);
    play.pass(120);
    assert_eq!(play.condition("by-name", "PlacementGroupReady").0, "True");
    assert!(launched(&play, "by-name").is_ok());
    play.double.fail("ec2:DescribePlacementGroups", "InvalidPlacementGroupId.Malformed", "no", Times::Always);
    play.pass(120);
    let (status, reason, _) = play.condition("by-name", "PlacementGroupReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PlacementGroupResolutionFailed"));
    // One that is gone is gone.
    play.double.mend("ec2:DescribePlacementGroups");
    play.double.change(|world| world.placement_groups.remove(0));
    play.pass(120);
    let (status, reason, message) = play.condition("by-name", "PlacementGroupReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PlacementGroupNotFound"));
    assert!(message.contains("spec.placementGroupSelector"), "{message}");
    assert!(launched(&play, "by-name").is_err() && launched(&play, "by-id").is_ok());
    play.world.patch(
        &format!("{CLASSES}/by-name"),
        &json!({"spec": {"placementGroupSelector": {"name": "parts"}}}),
    );
    play.pass(30);
    assert_eq!(launched(&play, "by-name").unwrap()["karpenter.k8s.aws/placement-group-id"], "pg-2");
}

#[test]
fn a204_what_is_selected_follows_what_there_is() {
    let mut play = started(&["m5.large"], &[]);
    play.class("default", &json!({}));
    let ids = |play: &Play, field: &str| -> Vec<String> {
        let found = play.status("default")[field].as_array().cloned().unwrap_or_default();
        found.iter().map(|each| each["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&play, "subnets"), ["subnet-a1", "subnet-b1"]);
    let tags = || [("cluster".to_owned(), "test".to_owned())].into();
    play.double.change(|world| {
        world.add_subnet("subnet-a2", ZONES[0], 9000, tags());
        world.subnets[1].item.available_addresses = 1;
        let mut group = world.security_groups[0].clone();
        "sg-0".clone_into(&mut group.item.id);
        world.security_groups.push(group);
    });
    play.pass(70);
    assert_eq!(ids(&play, "subnets"), ["subnet-a2", "subnet-a1", "subnet-b1"], "most addresses first");
    assert_eq!(ids(&play, "securityGroups"), ["sg-0", "sg-1"]);
    play.double.change(|world| {
        world.subnets.clear();
        world.security_groups.clear();
    });
    play.pass(70);
    assert_eq!(play.condition("default", "SubnetsReady").1, "SubnetsNotFound");
    assert_eq!(play.condition("default", "SecurityGroupsReady").1, "SecurityGroupsNotFound");
    assert!(
        play.status("default")["subnets"].is_null() && play.status("default")["securityGroups"].is_null()
    );
    assert_eq!(play.condition("default", "ValidationSucceeded").1, "DependenciesNotReady");
}

#[test]
fn a205_launches_are_tried_out_and_the_verdict_counts_for_a_while() {
    for (operation, code, message, reason) in [
        ("ec2:CreateLaunchTemplate", "UnauthorizedOperation", "no", "CreateLaunchTemplateAuthCheckFailed"),
        (
            "ec2:CreateLaunchTemplate",
            "InvalidUserData.Malformed",
            "User data is limited to 16384 bytes",
            "UserDataSizeLimitExceeded",
        ),
        ("ec2:CreateFleet", "UnauthorizedOperation", "no", "CreateFleetAuthCheckFailed"),
        ("ec2:RunInstances", "UnauthorizedOperation", "no", "RunInstancesAuthCheckFailed"),
    ] {
        let mut play = started(&["m5.large"], &[]);
        play.double.fail(operation, code, message, Times::Always);
        play.class("default", &json!({}));
        let (status, found, _) = play.condition("default", "ValidationSucceeded");
        assert_eq!((status.as_str(), found.as_str()), ("False", reason));
        play.double.forget_calls();
        play.double.mend(operation);
        play.pass(20 * 60);
        assert_eq!(
            play.double.count(operation),
            0,
            "{operation} is not tried again before half an hour has passed"
        );
        play.pass(15 * 60);
        assert_eq!(play.condition("default", "Ready").0, "True", "{operation}");
    }
    // A good verdict counts for half an hour, too, whatever order the answers have, and what the class asks for counts
    // at once.
    let mut play = started(&["m5.large"], &[]);
    let tries = |play: &Play| {
        ["ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"]
            .map(|each| play.double.count(each))
    };
    play.class("default", &json!({}));
    assert_eq!(tries(&play), [1, 1, 1]);
    for minute in 0..25_i64 {
        // Each launch makes another subnet the one with most addresses.
        play.double.change(|world| {
            world.subnets[0].item.available_addresses = 4000 + minute % 2;
            world.subnets[1].item.available_addresses = 4001 - minute % 2;
        });
        play.pass(60);
    }
    assert_eq!(tries(&play), [1, 1, 1], "nothing that matters has changed");
    play.pass(10 * 60);
    assert_eq!(tries(&play), [2, 2, 2], "after half an hour");
    play.world.patch(&format!("{CLASSES}/default"), &json!({"spec": {"tags": {"team": "a"}}}));
    play.pass(10);
    assert_eq!(tries(&play), [3, 3, 3]);
    // What passes by itself is no verdict.
    for operation in ["ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"] {
        let mut play = started(&["m5.large"], &[]);
        let error = Error::new(operation, "InternalError", "no").by_server();
        play.double.fail_with(error, Times::Always);
        play.class("default", &json!({}));
        assert_eq!(play.condition("default", "ValidationSucceeded").0, "Unknown", "{operation}");
        play.double.mend(operation);
        play.pass(30);
        assert_eq!(play.condition("default", "Ready").0, "True", "{operation}");
    }
    // One subnet in which it would work is enough.
    let mut play = started(&["m5.large"], &[]);
    play.double.fail_with(Error::new("ec2:RunInstances", "InternalError", "no").by_server(), Times::Next(1));
    play.class("default", &json!({}));
    assert_eq!(play.condition("default", "Ready").0, "True");
    // A class that was deleted leaves no verdict behind.
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(10);
    play.double.fail("ec2:RunInstances", "UnauthorizedOperation", "no", Times::Always);
    play.class("default", &json!({}));
    assert_eq!(play.condition("default", "Ready").0, "False");
}

#[test]
fn a206_nothing_is_tried_out_where_that_is_switched_off() {
    let mut play = started(&["m5.large"], &["--disable-dry-run"]);
    play.class("default", &json!({}));
    assert_eq!(play.condition("default", "Ready").0, "True");
    for operation in ["ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances"] {
        assert_eq!(play.double.count(operation), 0, "{operation}");
    }
}

#[test]
fn a207_a_class_that_goes_leaves_what_is_not_its_own() {
    let legacy = aws::instance_profile::legacy_name("test-cluster", "us-east-1", "default");
    let profile = |name: &str| InstanceProfile {
        name: name.to_owned(),
        path: "/".to_owned(),
        roles: vec!["node-role".to_owned()],
    };
    let set_up = |play: &mut Play| {
        play.double.change(|world| {
            for name in [legacy.as_str(), "somebody-elses"] {
                world.profiles.insert(name.to_owned(), profile(name));
            }
        });
        play.class("default", &json!({}));
        play.class("other", &json!({}));
    };
    let mut play = started(&["m5.large"], &[]);
    set_up(&mut play);
    play.double.fail("ec2:DescribeLaunchTemplates", "InternalError", "no", Times::Next(2));
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(0);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_some(), "templates come first");
    play.pass(10);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_none());
    let left: Vec<String> = play.double.change(|world| world.profiles.keys().cloned().collect());
    let mut expected = vec![play.profile("other"), "somebody-elses".to_owned()];
    expected.sort();
    assert_eq!(left, expected);
    // Without a way to IAM, it is left alone.
    let mut play = started(&["m5.large"], &["--isolated-vpc"]);
    set_up(&mut play);
    play.double.forget_calls();
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(60 * 60);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_none());
    assert_eq!(play.double.change(|world| world.profiles.len()), 4);
    assert_eq!(play.double.count("iam:ListInstanceProfiles"), 0);
}

#[test]
fn a208_prices_that_cannot_be_had_stay_as_they_were() {
    let product = |name: &str, price: &str| {
        json!({
            "product": {"attributes": {"instanceType": name}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"x": {"pricePerUnit": {"USD": price}}}}}},
        })
        .to_string()
    };
    let price = |play: &Play| play.aws.know(|known| known.prices().on_demand("m5.large"));
    let spot = |play: &Play| play.aws.know(|known| known.prices().spot("m5.large", ZONES[0]));
    let set = |play: &Play| {
        play.double.change(|world| {
            world.products =
                [vec![product("m5.large", "7.5"), "no JSON".to_owned()], vec![product("m5.metal", "9")]];
            let (instance_type, zone) = ("m5.large".to_owned(), ZONES[0].to_owned());
            world.spot_prices = vec![SpotPrice { instance_type, zone, price: 0.5 }];
        });
    };
    let mut play = Play::new(&["m5.large"]);
    set(&play);
    play.start_some(|name| name == "providers.pricing");
    play.pass(5);
    assert_eq!((price(&play), spot(&play)), (Some(7.5), Some(0.5)));
    // Half an answer is none, and what is known stays.
    play.double.change(|world| {
        world.products = [vec![product("m5.large", "8")], Vec::new()];
        world.spot_prices.clear();
    });
    play.pass(13 * 60 * 60);
    assert_eq!((price(&play), spot(&play)), (Some(7.5), Some(0.5)));
    for arguments in [&["--isolated-vpc"][..], &[]] {
        let mut play = Play::with(&["m5.large"], arguments);
        let table = price(&play);
        set(&play);
        if arguments.is_empty() {
            play.double.fail("pricing:GetProducts", "InternalError", "no", Times::Always);
        }
        play.start_some(|name| name == "providers.pricing");
        play.pass(5);
        assert_eq!((price(&play), spot(&play)), (table, Some(0.5)), "{arguments:?}");
        assert_eq!(play.double.count("pricing:GetProducts") == 0, !arguments.is_empty());
    }
}

#[test]
fn a209_instance_types_that_cannot_be_had_stay_as_they_were() {
    let mut play = Play::new(&["m5.large", "c5.large"]);
    play.start_some(|name| name == "providers.instancetype");
    play.pass(5);
    let count = |play: &Play| play.aws.know(|known| known.discovered().types().len());
    let (types, places) =
        play.double.change(|world| (std::mem::take(&mut world.types), world.places.clone()));
    play.pass(13 * 60 * 60);
    assert_eq!(count(&play), 2, "an empty answer is none");
    play.double.change(|world| {
        world.types = types[..1].to_vec();
        world.places = places;
    });
    play.pass(13 * 60 * 60);
    assert_eq!(count(&play), 1);
}

#[test]
fn a210_instances_of_others_and_new_ones_are_not_collected_and_nodes_go_along() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let ids: Vec<String> = (0..40).map(|number| play.node(&format!("claim-{number}"), &[])).collect();
    play.double.change(|world| {
        // Another cluster's, and one without a NodePool.
        let foreign = &mut world.instances.get_mut(&ids[0]).unwrap().tags;
        "other".clone_into(foreign.get_mut("eks:eks-cluster-name").unwrap());
        world.instances.get_mut(&ids[1]).unwrap().tags.remove("karpenter.sh/nodepool");
    });
    for number in 0..5 {
        let path = format!("{CLAIMS}/claim-{number}");
        play.world.patch(&path, &json!({"metadata": {"finalizers": null}}));
        play.world.delete(&path);
    }
    play.pass(40);
    play.start();
    play.node("fresh", &[]);
    play.world.patch(&format!("{CLAIMS}/fresh"), &json!({"metadata": {"finalizers": null}}));
    play.world.delete(&format!("{CLAIMS}/fresh"));
    play.pass(10);
    // Three of 38 are gone.
    assert_eq!(play.double.change(|world| world.running().count()), 38);
    let nodes = || play.world.list("/api/v1/nodes").len();
    assert_eq!(nodes(), 38);
    assert!(play.double.count("ec2:TerminateInstances") <= 3, "together");
}

#[test]
fn a211_a_reservation_whose_instance_is_taken_back_has_nothing_left() {
    let mut play =
        Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true", "--interruption-queue=queue"]);
    play.double.change(|world| {
        world.queue = Some([].into());
        let item = CapacityReservation {
            id: "cr-1".to_owned(),
            zone: ZONES[0].to_owned(),
            instance_type: "m5.large".to_owned(),
            owner_id: "123456789012".to_owned(),
            match_criteria: "targeted".to_owned(),
            interruptible: true,
            available: 5,
            ..CapacityReservation::default()
        };
        world.reservations.push(Stored { item, tags: [("team".to_owned(), "a".to_owned())].into() });
    });
    play.start();
    play.class("default", &json!({"capacityReservationSelectorTerms": [{"tags": {"team": "a"}}]}));
    let id = play.node("one", &[("karpenter.sh/capacity-type", "In", &["reserved"])]);
    assert_eq!(play.aws.know(|known| known.reservations.left()["cr-1"]), 4);
    let body = json!({
        "version": "0", "source": "aws.ec2", "time": play.world.now().to_string(),
        "detail-type": "EC2 Capacity Reservation Instance Interruption Warning", "detail": {"instance-id": id},
    });
    play.double.change(|world| {
        let message = aws::port::Message { body: body.to_string(), receipt: "1".to_owned() };
        world.queue.as_mut().unwrap().push_back(message);
    });
    play.pass(2);
    assert!(play.is_ending("one"));
    assert_eq!(play.aws.know(|known| known.reservations.left()["cr-1"]), 0);
    let gone = play.world.block_on(play.aws.list()).unwrap();
    assert_eq!(gone.len(), 1, "the core terminates it once it is drained");
}

#[test]
fn a212_images_wait_for_the_version_and_one_that_was_not_tried_stops_nothing() {
    let mut play = Play::with(&["m5.large"], &["--eks-control-plane"]);
    play.double.fail("eks:DescribeCluster", "InternalError", "no", Times::Always);
    play.start();
    play.aws.know(|known| known.kubernetes = None);
    play.class("default", &json!({}));
    assert_eq!(play.condition("default", "AMIsReady").0, "Unknown");
    play.double.mend("eks:DescribeCluster");
    play.pass(400);
    assert_eq!(play.condition("default", "AMIsReady").0, "True");
    assert_eq!(play.aws.know(|known| known.kubernetes.map(|version| version.minor)), Some(34));
    play.double.change(|world| "1.99".clone_into(&mut world.cluster.version));
    play.pass(400);
    assert_eq!(play.aws.know(|known| known.kubernetes.map(|version| version.minor)), Some(99));
    assert_eq!(play.condition("default", "Ready").0, "True");
    play.double.forget_calls();
    play.pass(3600);
    assert_eq!(play.double.count("eks:DescribeCluster"), 12, "every five minutes, as before");
    let mut other = Play::with(&["m5.large"], &["--eks-control-plane"]);
    other.double.change(|world| "1.99".clone_into(&mut world.cluster.version));
    other.world.block_on(other.aws.hydrate()).unwrap();
    other.pass(1);
}

#[test]
fn a213_aws_is_asked_as_often_as_users_want_it() {
    // Minutes between questions for images and for subnets.
    for (images, subnets) in [(10_usize, 5_usize), (2, 15)] {
        let arguments =
            [format!("--ami-refresh-interval={images}m"), format!("--subnet-refresh-interval={subnets}m")];
        let mut play = started(&["m5.large"], &arguments.each_ref().map(String::as_str));
        play.class("default", &json!({}));
        play.double.forget_calls();
        for _ in 0..180 {
            // Whatever else changes in between.
            let note =
                json!({"metadata": {"annotations": {"team.example/time": play.world.now().to_string()}}});
            play.world.patch(&format!("{CLASSES}/default"), &note);
            play.pass(10);
        }
        let exact = [
            ("ec2:DescribeImages", 30 / images),
            ("ec2:DescribeSubnets", 30 / subnets),
            ("ec2:DescribeSecurityGroups", 30),
        ];
        for (operation, expected) in exact {
            let asked = play.double.count(operation);
            // The class is looked at every few seconds, so that an answer may count a little longer.
            assert!(
                (expected.saturating_sub(expected / 5)..=expected).contains(&asked),
                "{operation}: {asked}, expected {expected}"
            );
        }
        // What the class asks for counts at once.
        play.world.patch(
            &format!("{CLASSES}/default"),
            &json!({"spec": {"subnetSelectorTerms": [{"id": "subnet-b1"}], "amiSelectorTerms": [{"id": "ami-amd"}]}}),
        );
        play.pass(5);
        let found = play.status("default");
        let count = |field: &str| found[field].as_array().unwrap().len();
        assert_eq!((count("subnets"), count("amis")), (1, 1));
    }
}

#[test]
fn a279_classes_with_the_same_selector_ask_once_a_minute_together() {
    let mut play = started(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    play.double.change(|world| {
        let item = CapacityReservation {
            id: "cr-1".to_owned(),
            zone: ZONES[0].to_owned(),
            instance_type: "m5.large".to_owned(),
            owner_id: "123456789012".to_owned(),
            match_criteria: "targeted".to_owned(),
            available: 3,
            ..CapacityReservation::default()
        };
        world.reservations.push(Stored { item, tags: [("team".to_owned(), "a".to_owned())].into() });
        world.placement_groups.push(PlacementGroup {
            id: "pg-1".to_owned(),
            name: "group".to_owned(),
            strategy: PlacementStrategy::Cluster,
            partitions: 0,
            spread_level: None,
        });
    });
    let spec = json!({
        "capacityReservationSelectorTerms": [{"tags": {"team": "a"}}],
        "placementGroupSelector": {"name": "group"},
    });
    for name in ["one", "two", "three"] {
        play.world.apply(&class(name, &spec).to_string());
    }
    play.pass(70);
    play.double.forget_calls();
    for _ in 0..60 {
        for name in ["one", "two", "three"] {
            let note =
                json!({"metadata": {"annotations": {"team.example/time": play.world.now().to_string()}}});
            play.world.patch(&format!("{CLASSES}/{name}"), &note);
        }
        play.pass(10);
    }
    for operation in ["ec2:DescribeCapacityReservations", "ec2:DescribePlacementGroups"] {
        let asked = play.double.count(operation);
        assert!((8..=11).contains(&asked), "{operation}: {asked} times in ten minutes");
    }
    for name in ["one", "two", "three"] {
        assert_eq!(play.status(name)["capacityReservations"][0]["id"], "cr-1", "{name}");
        assert_eq!(play.condition(name, "Ready").0, "True", "{name}");
    }
}

/// Where AWS publishes the images of AL2023.
fn published(kubernetes: &str, kind: &str) -> String {
    format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{kind}/recommended/image_id")
}

/// A cluster on EKS with images for an alias, and a class that is ready.
fn with_alias() -> Play {
    let mut play = Play::with(&["m5.large", "m6g.large"], &["--eks-control-plane"]);
    play.double.change(|world| {
        world.parameters.insert(published("1.34", "x86_64/standard"), "ami-amd".to_owned());
        world.parameters.insert(published("1.34", "arm64/standard"), "ami-arm".to_owned());
    });
    play.start();
    play.class("default", &json!({"amiSelectorTerms": [{"alias": "al2023@latest"}]}));
    assert_eq!(play.condition("default", "Ready").0, "True", "{:?}", play.condition("default", "AMIsReady"));
    play
}

fn images(play: &Play) -> Vec<String> {
    let found = play.status("default")["amis"].as_array().cloned().unwrap_or_default();
    found.iter().map(|image| image["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a280_images_stay_in_use_while_aws_publishes_no_others() {
    let mut play = with_alias();
    let before = images(&play);
    assert_eq!(before, ["ami-amd", "ami-arm"]);
    // The cluster is upgraded to a version that AWS has no images for yet.
    play.double.change(|world| "1.35".clone_into(&mut world.cluster.version));
    play.pass(15 * 60);
    assert_eq!(play.aws.know(|known| known.kubernetes.map(|version| version.minor)), Some(35));
    assert_eq!((images(&play), play.condition("default", "Ready").0.as_str()), (before.clone(), "True"));
    play.create(&claim(&[])).unwrap();
    play.double.change(|world| {
        let mut image = world.images[0].clone();
        "ami-new".clone_into(&mut image.item.id);
        world.images.push(image);
        world.parameters.insert(published("1.35", "x86_64/standard"), "ami-new".to_owned());
    });
    play.pass(60);
    assert_eq!(images(&play), ["ami-new"], "as soon as there are any");
    // What AWS takes back stays in use, too, after everything that is remembered of it is forgotten.
    play.double.change(|world| world.vanish("/aws/service/eks"));
    play.pass(25 * 60 * 60);
    assert!(play.double.count("ssm:GetParameter") > 0);
    assert_eq!(
        (images(&play), play.condition("default", "Ready").0.as_str()),
        (vec!["ami-new".to_owned()], "True")
    );
    // A class that asks for something else has no images of before.
    play.world.patch(
        &format!("{CLASSES}/default"),
        &json!({"spec": {"amiSelectorTerms": [{"alias": "al2023@v20990101"}]}}),
    );
    play.pass(30);
    let (status, reason, message) = play.condition("default", "AMIsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AMINotFound"));
    assert!(message.contains("v20990101") && message.contains("spec.amiSelectorTerms"), "{message}");
    assert_eq!(images(&play), Vec::<String>::new());
}

#[test]
fn a281_a_parameter_that_may_not_be_read_is_passed_over_and_one_that_fails_is_waited_for() {
    let on_eks = ["--eks-control-plane"];
    let mut play = Play::with(&["m5.large", "m6g.large"], &on_eks);
    let kinds = ["x86_64/standard", "arm64/standard", "x86_64/nvidia", "arm64/nvidia", "x86_64/neuron"];
    play.double.change(|world| {
        world.parameters.insert(published("1.34", kinds[0]), "ami-amd".to_owned());
        world.secret_parameters.extend(kinds[1..].iter().map(|kind| published("1.34", kind)));
    });
    play.start();
    let alias = json!({"amiSelectorTerms": [{"alias": "al2023@latest"}]});
    play.class("default", &alias);
    assert_eq!(
        (images(&play), play.condition("default", "Ready").0.as_str()),
        (vec!["ami-amd".to_owned()], "True")
    );
    // Without any, it is said what AWS says.
    let mut other = Play::with(&["m5.large"], &on_eks);
    other.double.change(|world| {
        world.secret_parameters.extend(kinds.iter().map(|kind| published("1.34", kind)));
    });
    other.start();
    other.class("default", &alias);
    let (status, reason, message) = other.condition("default", "AMIsReady");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AMINotFound"));
    assert!(message.contains("AccessDeniedException") && message.contains("\"al2023@latest\""), "{message}");
    // A failure that passes says nothing: half of the images would be the wrong ones.
    let mut third = Play::with(&["m5.large"], &on_eks);
    third.double.change(|world| {
        for kind in &kinds {
            world.parameters.insert(published("1.34", kind), "ami-amd".to_owned());
        }
    });
    third.double.fail("ssm:GetParameter", "ThrottlingException", "slow", Times::Always);
    third.start();
    third.world.apply(&class("default", &alias).to_string());
    third.pass(30);
    assert_eq!((images(&third).len(), third.condition("default", "AMIsReady").0.as_str()), (0, "Unknown"));
    third.double.mend("ssm:GetParameter");
    third.pass(90);
    assert_eq!(third.condition("default", "Ready").0, "True");
}

#[test]
fn a282_a_profile_has_our_tags_whatever_else_is_wrong_with_its_class() {
    let mut play = started(&["m5.large"], &[]);
    play.class("default", &json!({"kubelet": {"podsPerCore": "many"}, "tags": {"team": "a"}}));
    assert_eq!(play.condition("default", "ValidationSucceeded").1, "InvalidKubeletConfiguration");
    let profile = play.profile("default");
    let tags = play.double.change(|world| world.profile_tags[&profile].clone());
    let expected = [
        ("team", "a"),
        ("kubernetes.io/cluster/test-cluster", "owned"),
        ("eks:eks-cluster-name", "test-cluster"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("topology.kubernetes.io/region", "us-east-1"),
    ];
    let expected: aws::port::Tags =
        expected.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    assert_eq!(tags, expected);
}

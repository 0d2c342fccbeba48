//! What real accounts do to a provider: quotas that are used up, lists that may not be asked for often, instances
//! that are gone, templates of others, and classes in trouble.

use api::names::values::capacity_type::{ON_DEMAND, SPOT};
use api::nodeclaim::NodeClaim;
use aws::double::{Bucket, Times};
use aws::port::{InstanceState, NewLaunchTemplate, Tags};
use cloud::unavailable::Asked;
use cloud::{CloudProvider as _, Error};
use futures::future::join_all;
use serde_json::json;

use crate::play::{Play, instance_type};
use crate::support::{DISCOVERED, REGION, ZONES, claim};

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);

/// More types of the usual quota than a launch asks for at once.
fn usual() -> Vec<&'static str> {
    let prices = aws::prices::Prices::of_region(REGION);
    let families = ["c5.", "c6i.", "m5.", "m6i.", "r5.", "r6i.", "m5a.", "r5a.", "c5a.", "c7i."];
    let is_usual = |name: &str| families.iter().any(|family| name.starts_with(family));
    let names: Vec<&str> = DISCOVERED
        .types()
        .map(|info| info.name.as_str())
        .filter(|name| is_usual(name) && !name.contains("metal") && prices.on_demand(name).is_some())
        .collect();
    assert!(names.len() > 70, "{}", names.len());
    names
}

/// A cluster in which EC2 refuses types with a code, everywhere.
fn refusing(all: &[&str], refused: &[&str], code: &str, kind: &str) -> Play {
    let mut play = Play::new(all);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| {
        for (name, zone) in refused.iter().flat_map(|name| ZONES.map(|zone| (*name, zone))) {
            let place = (name.to_owned(), zone.to_owned(), kind.to_owned());
            world.insufficient.insert(place, code.to_owned());
        }
    });
    play
}

fn fleets(play: &Play) -> usize {
    play.double.count("ec2:CreateFleet")
}

#[test]
fn a270_a_quota_of_processors_that_is_used_up_ends_the_walk_and_is_named() {
    let names = usual();
    let mut play = refusing(&names, &names, "VcpuLimitExceeded", ON_DEMAND);
    let error = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap_err();
    let Error::InsufficientCapacity(text) = &error else { panic!("{error}") };
    assert!(text.contains("quota of on-demand vCPUs of Standard") && text.contains("L-1216C47A"), "{text}");
    assert_eq!(fleets(&play), 1, "sixty types are refused together, and no others are asked for");
    // For a while nothing is asked for at all; spot instances have another quota.
    assert!(play.create(&claim(&[ON_DEMAND_ONLY])).is_err());
    assert_eq!(fleets(&play), 1);
    play.create(&claim(&[])).unwrap();
    assert_eq!(fleets(&play), 2);
    play.pass(181);
    play.double.change(|world| world.insufficient.clear());
    play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(fleets(&play), 3);
}

#[test]
fn a271_a_quota_leaves_alone_what_does_not_count_for_it() {
    // Machines with GPUs have a quota of their own, and spot machines have, too.
    let usual = usual();
    let all: Vec<&str> = usual.iter().copied().chain(["g4dn.xlarge"]).collect();
    let play = refusing(&all, &usual, "VcpuLimitExceeded", ON_DEMAND);
    assert_eq!(instance_type(&play.create(&claim(&[ON_DEMAND_ONLY])).unwrap()), "g4dn.xlarge");
    assert_eq!(fleets(&play), 2);
    let play = refusing(&all, &usual, "MaxSpotInstanceCountExceeded", SPOT);
    let launched =
        play.create(&claim(&[("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", &[])])).unwrap();
    assert_eq!(launched.metadata.labels.unwrap()["karpenter.sh/capacity-type"], ON_DEMAND);
    assert_eq!(fleets(&play), 2, "spot machines once, then the others");
    // Smaller machines than the one that was too large may still fit.
    let sizes = ["c5.large", "c5.2xlarge", "m5.4xlarge"];
    let play = refusing(&sizes, &["c5.2xlarge"], "VcpuLimitExceeded", ON_DEMAND);
    let large = ("karpenter.k8s.aws/instance-cpu", "Gt", &["4"][..]);
    let launched = play.create(&claim(&[ON_DEMAND_ONLY, large])).unwrap();
    assert_eq!(instance_type(&launched), "m5.4xlarge", "EC2 had one after all");
    let is_left = |name: &str| {
        let asked =
            Asked { instance_type: name, zone: ZONES[0], capacity_type: ON_DEMAND, ..Asked::default() };
        !play.aws.unavailable().contains_asked(&asked)
    };
    assert!(is_left("c5.large") && !is_left("c5.2xlarge") && !is_left("m5.4xlarge"));
}

#[test]
fn a272_a_quota_that_concerns_everything_pauses_all_launches() {
    let names = usual();
    // Whether it is one of the fleet's errors or the whole answer.
    for is_answer in [false, true] {
        let mut play = if is_answer {
            let play = refusing(&names, &[], "", ON_DEMAND);
            play.double.fail("ec2:CreateFleet", "MaxFleetCountExceeded", "no", Times::Always);
            play
        } else {
            refusing(&names, &names, "MaxFleetCountExceeded", ON_DEMAND)
        };
        let error = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap_err().to_string();
        assert!(error.contains("MaxFleetCountExceeded"), "{error}");
        assert_eq!(is_answer, !error.contains("the account's quota of EC2 fleets is used up"), "{error}");
        assert!(play.create(&claim(&[])).is_err(), "spot machines are launched by fleets, too");
        assert_eq!(fleets(&play), 1);
        play.pass(181);
        play.double.mend("ec2:CreateFleet");
        play.double.change(|world| world.insufficient.clear());
        play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    }
    // An error that does not say what it is about ends the launch: nobody knows what else would be refused.
    let play = refusing(&names, &names, "VcpuLimitExceeded", ON_DEMAND);
    play.double.change(|world| world.vague = true);
    let error = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap_err().to_string();
    assert!(error.contains("the account's quota of on-demand vCPUs is used up"), "{error}");
    assert_eq!(fleets(&play), 1);
}

/// Many claims with an instance each.
fn many(play: &Play, count: usize) -> Vec<NodeClaim> {
    let claims: Vec<NodeClaim> = (0..count).map(|_| claim(&[ON_DEMAND_ONLY])).collect();
    let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    let with_status = |(mut each, launched): (NodeClaim, Result<NodeClaim, Error>)| {
        each.status = launched.unwrap().status;
        each
    };
    claims.into_iter().zip(launched).map(with_status).collect()
}

fn id(claim: &NodeClaim) -> String {
    claim.status.as_ref().unwrap().provider_id.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn a273_a_mass_of_instances_that_are_gone_is_no_storm_of_questions() {
    // They are over, or EC2 has forgotten them by now.
    for (is_forgotten, questions) in [(false, 1), (true, 2)] {
        let mut play = Play::new(&["m5.large"]);
        play.ready_class("default", &json!({}), &json!({}));
        let claims = many(&play, 400);
        play.pass(60);
        let gone: Vec<String> = claims.iter().step_by(2).map(id).collect();
        play.double.change(|world| {
            for id in &gone {
                if is_forgotten {
                    world.instances.remove(id);
                } else {
                    world.instances.get_mut(id).unwrap().state = InstanceState::Terminated;
                }
            }
            world.describe_bucket = Some(Bucket::new(5, 1));
        });
        play.double.forget_calls();
        let deleted = play.world.block_on(join_all(claims.iter().map(|each| play.aws.delete(each))));
        for (index, each) in deleted.iter().enumerate() {
            let is_gone = index % 2 == 0;
            assert_eq!(each.as_ref().is_err_and(Error::is_not_found), is_gone, "{index} {each:?}");
            assert_eq!(each.is_ok(), !is_gone, "{index} {each:?}");
        }
        assert_eq!(play.double.count("ec2:DescribeInstances"), questions, "{is_forgotten}");
        assert_eq!((play.double.count("ec2:TerminateInstances"), play.double.throttled()), (1, 0));
        assert_eq!(play.double.change(|world| world.running().count()), 0);
    }
}

#[test]
fn a274_instances_are_asked_for_alone_only_until_ec2_throttles() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let claims = many(&play, 100);
    play.pass(60);
    play.double.change(|world| world.describe_bucket = Some(Bucket::new(15, 1)));
    play.double.fail("ec2:DescribeInstances", "InvalidInstanceID.Malformed", "one of them", Times::Next(1));
    play.double.forget_calls();
    let deleted = play.world.block_on(join_all(claims.iter().map(|each| play.aws.delete(each))));
    let accepted = deleted.iter().filter(|each| each.is_ok()).count();
    assert_eq!(accepted, 15, "as many as EC2 answers");
    assert!(deleted.iter().flatten().count() == accepted);
    let lost = deleted.iter().filter(|each| each.as_ref().is_err_and(Error::is_not_found)).count();
    assert_eq!(lost, 0, "who was not asked about is not gone");
    let asked = play.double.count("ec2:DescribeInstances");
    assert!(asked <= 21, "{asked} questions");
}

#[test]
fn a275_only_our_templates_are_taken_over_and_deleted() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let tags: Tags = [("eks:eks-cluster-name".to_owned(), "test-cluster".to_owned())].into();
    let template = |name: &str| NewLaunchTemplate {
        name: name.to_owned(),
        tags: tags.clone(),
        ..NewLaunchTemplate::default()
    };
    let other_cluster = NewLaunchTemplate {
        tags: [("eks:eks-cluster-name".to_owned(), "other".to_owned())].into(),
        ..template("karpenter.k8s.aws/2")
    };
    play.double.change(|world| {
        world.templates.insert("lt-old".to_owned(), template("karpenter.k8s.aws/1"));
        world.templates.insert("lt-group".to_owned(), template("eks-managed-node-group"));
        world.templates.insert("lt-cluster".to_owned(), other_cluster);
    });
    let left = |play: &Play| play.double.change(|world| world.templates.keys().cloned().collect::<Vec<_>>());
    play.start_some(|name| name == "launchtemplate.garbagecollection");
    play.pass(30);
    assert_eq!(left(&play).len(), 3, "it may still be needed");
    play.pass(120);
    assert_eq!(left(&play), ["lt-cluster", "lt-group"]);
    assert_eq!(play.double.count("ec2:DescribeLaunchTemplates"), 1, "once for each start");
}

#[test]
fn a276_a_template_of_an_earlier_process_is_used_and_not_made_again() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let templates = play.double.change(|world| world.templates.clone());
    let mut other = Play::new(&["m5.large"]);
    other.ready_class("default", &json!({}), &json!({}));
    other.double.change(|world| world.templates = templates.clone());
    other.start_some(|name| name == "launchtemplate.garbagecollection");
    other.pass(5);
    other.double.forget_calls();
    other.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(other.double.count("ec2:CreateLaunchTemplate"), 0);
    assert_eq!(
        other.double.change(|world| world.templates.keys().cloned().collect::<Vec<_>>()),
        templates.keys().cloned().collect::<Vec<_>>()
    );
    // One that cannot be listed is no reason to stop, and is tried again.
    let mut third = Play::new(&["m5.large"]);
    third.double.change(|world| world.templates = templates);
    third.double.fail("ec2:DescribeLaunchTemplates", "RequestLimitExceeded", "slow", Times::Next(2));
    third.start_some(|name| name == "launchtemplate.garbagecollection");
    third.pass(300);
    assert_eq!(third.double.change(|world| world.templates.len()), 0);
}

#[test]
fn a277_without_the_addresses_of_services_the_class_is_not_ready() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.aws.know(|known| {
        let mut cluster = (*known.cluster).clone();
        cluster.cidr = None;
        known.cluster = std::sync::Arc::new(cluster);
    });
    let error = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap_err();
    assert_eq!(error, Error::NodeClassNotReady("resolving cluster CIDR".to_owned()));
    assert_eq!(fleets(&play), 0);
    // Other families do not need them.
    play.ready_class("default", &json!({"amiFamily": "AL2"}), &json!({}));
    play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
}

#[test]
fn a278_a_class_in_trouble_keeps_no_instance_from_being_listed() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.ready_class("other", &json!({}), &json!({}));
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let mut of_other = claim(&[ON_DEMAND_ONLY]);
    "other".clone_into(&mut of_other.spec.node_class_ref.name);
    play.create(&of_other).unwrap();
    play.ready_class("default", &json!({"kubelet": {"podsPerCore": "many"}}), &json!({}));
    let id = &launched.status.as_ref().unwrap().provider_id;
    let listed = play.world.block_on(play.aws.list()).unwrap();
    assert_eq!(listed.len(), 2);
    let label = |claim: &NodeClaim, key: &str| claim.metadata.labels.as_ref().unwrap().get(key).cloned();
    for each in listed.iter().chain([&play.world.block_on(play.aws.get(id)).unwrap()]) {
        // What EC2 says of the instance is there; what follows from its type is, if the class can be read.
        assert!(label(each, "topology.kubernetes.io/zone").is_some(), "{each:?}");
        let is_whole = label(each, "karpenter.k8s.aws/instance-family").is_some();
        assert_eq!(is_whole, each.status.as_ref().unwrap().provider_id != *id, "{each:?}");
    }
}

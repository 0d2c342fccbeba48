//! What is looked after besides launches: tags, memory, instance profiles, reservations, zones, parameters, metrics.

use std::time::Duration;

use api::names::metrics::aws as metrics;
use api::names::values::capacity_type::{ON_DEMAND, RESERVED, SPOT};
use aws::double::{Stored, Times};
use aws::port::{CapacityReservation, InstanceProfile, InstanceState, ZonalShifts};
use cloud::CloudProvider as _;
use cluster::state::Kind;
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, class};
use crate::support::ZONES;

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);
const NODES: &str = "/api/v1/nodes";

fn ready(types: &[&str], arguments: &[&str]) -> Play {
    let mut play = Play::with(types, arguments);
    play.ready_class("default", &json!({}), &json!({}));
    play
}

#[test]
fn a180_instances_are_tagged_once_their_node_is_known() {
    let mut play = ready(&["m5.large"], &[]);
    let id = play.node("one", &[ON_DEMAND_ONLY]);
    play.double.change(|world| {
        let own = ("Name".to_owned(), "mine".to_owned());
        world.instances.get_mut(&id).unwrap().tags.extend([own]);
    });
    play.start();
    play.pass(5);
    let tags = play.double.change(|world| world.instances[&id].tags.clone());
    assert_eq!((tags["Name"].as_str(), tags["karpenter.sh/nodeclaim"].as_str()), ("mine", "one"));
    let annotations = play.claim("one")["metadata"]["annotations"].clone();
    assert_eq!(annotations["karpenter.k8s.aws/tagged"], "true");
    assert_eq!(annotations["compatibility.karpenter.k8s.aws/cluster-name-tagged"], "true");
    play.pass(120);
    assert_eq!(play.double.count("ec2:CreateTags"), 1, "and only what is missing, once");
}

#[test]
fn a181_tags_are_written_slowly_and_instances_that_are_gone_do_not_matter() {
    let mut play = ready(&["m5.large"], &[]);
    let ids: Vec<String> =
        (0..4).map(|number| play.node(&format!("claim-{number}"), &[ON_DEMAND_ONLY])).collect();
    play.pass(31);
    play.double.change(|world| world.instances.remove(&ids[0]));
    play.world.patch(&format!("{CLAIMS}/claim-1/status"), &json!({"status": {"providerID": "nonsense"}}));
    play.double.fail("ec2:CreateTags", "RequestLimitExceeded", "slow", Times::Next(1));
    play.start();
    let before = play.world.now();
    play.world.run_until("both are tagged", Duration::from_secs(30), |_| {
        play.double.change(|world| {
            world.instances[&ids[2]].tags.len() > 4 && world.instances[&ids[3]].tags.len() > 4
        })
    });
    assert!(play.world.now().duration_since(before).as_secs() >= 1);
    play.pass(10);
    for (name, tagged) in [("claim-0", false), ("claim-1", false), ("claim-2", true), ("claim-3", true)] {
        let note = &play.claim(name)["metadata"]["annotations"]["karpenter.k8s.aws/tagged"];
        assert_eq!(note == "true", tagged, "{name}");
    }
}

fn memory(play: &Play) -> String {
    let pool: api::nodepool::NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    }))
    .unwrap();
    let types = play.world.block_on(play.aws.instance_types(&pool)).unwrap();
    types[0].capacity.amount("memory").to_string()
}

#[test]
fn a182_memory_is_learned_from_nodes_and_known_after_a_start() {
    let mut play = ready(&["m5.large"], &[]);
    play.start();
    play.pass(30);
    assert_eq!(memory(&play), "7577Mi");
    play.node("one", &[ON_DEMAND_ONLY]);
    play.pass(1);
    assert_eq!(memory(&play), "7900Mi");
    // The least counts.
    play.node("two", &[ON_DEMAND_ONLY]);
    for (seen, expected) in [("7800Mi", "7800Mi"), ("8000Mi", "7800Mi")] {
        play.world
            .patch(&format!("{NODES}/node-two/status"), &json!({"status": {"capacity": {"memory": seen}}}));
        play.pass(1);
        assert_eq!(memory(&play), expected);
    }
    // Another process knows nothing, and finds what was written on the NodeClass, even if no node is left.
    play.pass(15);
    for name in ["one", "two"] {
        play.world.patch(&format!("{CLAIMS}/{name}"), &json!({"metadata": {"finalizers": null}}));
        play.world.delete(&format!("{CLAIMS}/{name}"));
        play.world.delete(&format!("{NODES}/node-{name}"));
    }
    let forget = |play: &Play| {
        play.aws.know(|known| {
            known.change_learned(|all| {
                *all = aws::instance_type::memory::Learned::default();
                true
            })
        });
        assert_eq!(memory(play), "7577Mi");
    };
    forget(&play);
    play.start_some(|name| name == "providers.instancetype.capacity");
    play.pass(1);
    assert_eq!(memory(&play), "7800Mi");
    // What nobody can read does not matter, and is written again.
    forget(&play);
    let broken = json!({"metadata": {"annotations": {"karpenter.k8s.aws/learned-memory": "[]"}}});
    play.world.patch(&format!("{CLASSES}/default"), &broken);
    play.node("three", &[ON_DEMAND_ONLY]);
    play.pass(15);
    assert_eq!(memory(&play), "7900Mi");
    let object = play.world.get(&format!("{CLASSES}/default")).unwrap();
    let written =
        object["metadata"]["annotations"]["karpenter.k8s.aws/learned-memory"].as_str().unwrap().to_owned();
    assert!(written.contains(r#""m5.large":"7900Mi""#), "{written}");
    assert_eq!(play.condition("default", "Ready").0, "True");
    // Other images are something else.
    play.double.change(|world| "ami-new".clone_into(&mut world.images[0].item.id));
    play.pass(70);
    assert_eq!(memory(&play), "7577Mi");
}

#[test]
fn a183_instance_profiles_that_nothing_uses_are_collected() {
    let mut play = Play::new(&["m5.large"]);
    let profile = |name: &str, path: &str| InstanceProfile {
        name: name.to_owned(),
        path: path.to_owned(),
        roles: vec!["node-role".to_owned()],
    };
    let path = "/karpenter/us-east-1/test-cluster/some-uid/";
    play.double.change(|world| {
        for (name, path) in [
            ("unused", path),
            ("of-claim", path),
            ("of-class", path),
            ("of-another-cluster", "/karpenter/us-east-1/other/uid/"),
            ("of-a-user", "/"),
        ] {
            world.profiles.insert(name.to_owned(), profile(name, path));
        }
    });
    play.ready_class(
        "default",
        &json!({"instanceProfile": "of-class", "role": null}),
        &json!({"instanceProfile": "of-claim"}),
    );
    play.node("one", &[ON_DEMAND_ONLY]);
    play.ready_class(
        "default",
        &json!({"instanceProfile": "of-class", "role": null}),
        &json!({"instanceProfile": "of-class"}),
    );
    play.double.fail("iam:DeleteInstanceProfile", "ServiceFailure", "no", Times::Next(1));
    play.start();
    play.pass(60);
    let left: Vec<String> = play.double.change(|world| world.profiles.keys().cloned().collect());
    assert_eq!(left, ["of-a-user", "of-another-cluster", "of-claim", "of-class"]);
}

#[test]
fn a184_a_profile_that_launches_may_still_use_stays_for_an_hour() {
    let mut play = Play::new(&["m5.large"]);
    play.double.change(|world| world.roles.insert("other-role".to_owned()));
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(60);
    let name = |play: &Play| {
        let object = play.world.get(&format!("{CLASSES}/default")).unwrap();
        object["status"]["instanceProfile"].as_str().unwrap().to_owned()
    };
    let first = name(&play);
    play.world.patch(&format!("{CLASSES}/default"), &json!({"spec": {"role": "other-role"}}));
    play.pass(60);
    let second = name(&play);
    assert_ne!(first, second);
    play.pass(35 * 60);
    assert_eq!(play.double.change(|world| world.profiles.len()), 2, "the first is protected");
    play.pass(65 * 60);
    let left: Vec<String> = play.double.change(|world| world.profiles.keys().cloned().collect());
    assert_eq!(left, [second]);
}

#[test]
fn a185_iam_is_asked_seldom() {
    let mut play = Play::new(&["m5.large"]);
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.world.apply(&class("missing", &json!({"role": "nobody"})).to_string());
    play.pass(60);
    play.double.forget_calls();
    play.pass(10 * 60);
    assert_eq!(play.double.count("iam:GetInstanceProfile"), play.double.count("iam:CreateInstanceProfile"));
    let tries = play.double.count("iam:AddRoleToInstanceProfile");
    assert!((5..=11).contains(&tries), "the missing role is tried {tries} times in ten minutes");
    play.double.forget_calls();
    play.double.change(|world| world.roles.insert("nobody".to_owned()));
    play.pass(130);
    assert_eq!(play.condition("missing", "InstanceProfileReady").0, "True", "it is found once it is there");
}

#[test]
fn a186_launches_are_tried_out_as_the_pools_ask_for_them() {
    let mut play = Play::new(&["m5.large", "c5.large", "m6g.large"]);
    play.pool(
        "one",
        "default",
        &json!({
            "metadata": {"labels": {"node.kubernetes.io/instance-type": "c5.large"}},
            "spec": {"requirements": [
                {"key": "karpenter.k8s.aws/instance-tenancy", "operator": "In", "values": ["dedicated"]},
            ]},
        }),
    );
    play.start();
    play.world.apply(&class("default", &json!({"userData": "echo hello"})).to_string());
    play.pass(30);
    assert_eq!(play.condition("default", "Ready").0, "True");
    let calls = play.double.calls();
    let tried = calls.iter().find(|call| call.operation == "ec2:RunInstances").unwrap();
    assert!(tried.about.starts_with("c5.large "), "{}", tried.about);
    let template = play.double.change(|world| world.templates.values().next().cloned()).unwrap();
    assert_eq!(template.data.tenancy, "dedicated");
    let size = play.metrics.value(&metrics::USERDATA_BYTES, &["default"]).unwrap();
    assert!((300.0..3000.0).contains(&size), "{size}");
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(5);
    assert_eq!(play.metrics.value(&metrics::USERDATA_BYTES, &["default"]), None);
}

fn reservation(id: &str, kind: &str, ends: Option<jiff::Timestamp>) -> Stored<CapacityReservation> {
    let item = CapacityReservation {
        id: id.to_owned(),
        zone: ZONES[0].to_owned(),
        instance_type: "m5.large".to_owned(),
        owner_id: "123456789012".to_owned(),
        match_criteria: "targeted".to_owned(),
        reservation_type: kind.to_owned(),
        available: 5,
        ends,
        ..CapacityReservation::default()
    };
    Stored { item, tags: [("cluster".to_owned(), "test".to_owned())].into() }
}

/// A cluster with a node in a reservation.
fn reserved(id: &str, kind: &str, ends: Option<u64>) -> Play {
    let mut play = Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    let ends = ends.map(|seconds| play.world.now() + Duration::from_secs(seconds));
    play.double.change(|world| world.reservations.push(reservation(id, kind, ends)));
    play.start();
    let terms = json!({"capacityReservationSelectorTerms": [{"tags": {"cluster": "test"}}]});
    play.world.apply(&class("default", &terms).to_string());
    play.pass(30);
    assert_eq!(play.condition("default", "Ready").0, "True");
    play.node("one", &[("karpenter.sh/capacity-type", "In", &[RESERVED])]);
    assert_eq!(play.claim("one")["metadata"]["labels"]["karpenter.k8s.aws/capacity-reservation-id"], id);
    play
}

#[test]
fn a187_a_node_that_lost_its_reservation_is_paid_by_use() {
    let mut play = reserved("cr-1", "default", None);
    let labels = |play: &Play, path: &str| play.world.get(path).unwrap()["metadata"]["labels"].clone();
    play.pass(120);
    assert_eq!(labels(&play, &format!("{CLAIMS}/one"))["karpenter.sh/capacity-type"], RESERVED);
    play.double.change(|world| {
        for instance in world.instances.values_mut() {
            (instance.reservation_id, instance.reservation_preference) = (None, None);
        }
    });
    play.pass(70);
    for path in [format!("{CLAIMS}/one"), format!("{NODES}/node-one")] {
        let labels = labels(&play, &path);
        assert_eq!(labels["karpenter.sh/capacity-type"], ON_DEMAND, "{path}");
        assert!(labels["karpenter.k8s.aws/capacity-reservation-id"].is_null(), "{path}");
        assert!(labels["karpenter.k8s.aws/capacity-reservation-type"].is_null(), "{path}");
    }
    // Never the other way: an instance that finds a reservation by chance.
    play.double.change(|world| {
        for instance in world.instances.values_mut() {
            instance.reservation_id = Some("cr-1".to_owned());
            instance.reservation_preference = Some("capacity-reservations-only".to_owned());
        }
    });
    play.pass(130);
    assert_eq!(labels(&play, &format!("{CLAIMS}/one"))["karpenter.sh/capacity-type"], ON_DEMAND);
    assert!(!play.is_ending("one"));
}

#[test]
fn a188_a_capacity_block_is_emptied_before_it_ends() {
    let mut play = reserved("cr-1", "capacity-block", Some(3600));
    play.pass(15 * 60);
    assert!(!play.is_ending("one"));
    play.pass(7 * 60);
    assert!(play.is_ending("one"), "40 minutes before the end");
    let mut other = reserved("cr-2", "default", Some(3600));
    other.pass(50 * 60);
    assert!(!other.is_ending("one"), "the usual reservations are not taken back");
}

#[test]
fn a189_a_zone_that_traffic_is_shifted_away_from_is_avoided_and_pools_are_told() {
    let mut play = ready(&["m5.large"], &["--enable-zonal-shift"]);
    play.double.change(|world| "arn:cluster".clone_into(&mut world.cluster.arn));
    let only = |zone: &str| {
        json!({"spec": {"requirements": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
        ]}})
    };
    play.pool("anywhere", "default", &json!({}));
    play.pool("in-a", "default", &only(ZONES[0]));
    play.pool("in-b", "default", &only(ZONES[1]));
    play.pool(
        "by-id",
        "default",
        &json!({"spec": {"requirements": [
            {"key": "topology.k8s.aws/zone-id", "operator": "NotIn", "values": ["us-east-1a-id"]},
        ]}}),
    );
    play.start();
    let until = play.world.now() + Duration::from_mins(10);
    let shift = ZonalShifts { zone_id: "us-east-1a-id".to_owned(), until, applied: true };
    play.double.change(|world| world.shifts = vec![shift]);
    play.pass(35);
    let told =
        |play: &Play| ["anywhere", "in-a", "in-b", "by-id"].map(|pool| play.told(Kind::NodePool, pool).len());
    assert_eq!(told(&play), [1, 1, 0, 0]);
    assert!(play.told(Kind::NodePool, "anywhere").contains("ZonalShiftActive"));
    assert_eq!(play.double.count("eks:DescribeCluster"), 1);
    for _ in 0..3 {
        play.node(&format!("claim-{}", play.double.count("ec2:CreateFleet")), &[ON_DEMAND_ONLY]);
    }
    let zones = play.double.change(|world| world.running().map(|each| each.zone.clone()).collect::<Vec<_>>());
    assert_eq!(zones, [ZONES[1]; 3]);
    // Failures change nothing.
    play.double.fail("arc-zonal-shift:GetManagedResource", "InternalError", "no", Times::Next(3));
    play.pass(65);
    assert_eq!(told(&play), [1, 1, 0, 0]);
    play.double.change(|world| world.shifts.clear());
    play.pass(35);
    assert_eq!(told(&play), [2, 2, 0, 0]);
    assert!(play.told(Kind::NodePool, "in-a").contains("ZonalShiftCleared"));
    // A shift that ends by itself is over, too, and one that is not applied is none.
    let count = |play: &Play, reason: &str| {
        play.events.published().iter().filter(|event| &*event.reason == reason).count()
    };
    let until = play.world.now() + Duration::from_secs(45);
    let shift = |zone: &str, applied| ZonalShifts { zone_id: zone.to_owned(), until, applied };
    play.double.change(|world| {
        world.shifts = vec![shift("us-east-1a-id", true), shift("us-east-1b-id", false)];
    });
    play.pass(35);
    assert_eq!((count(&play, "ZonalShiftActive"), count(&play, "ZonalShiftCleared")), (4, 2));
    play.pass(45);
    assert_eq!((count(&play, "ZonalShiftActive"), count(&play, "ZonalShiftCleared")), (4, 4));
}

#[test]
fn a190_a_latest_image_that_is_taken_back_is_seen_within_half_an_hour() {
    let mut play = Play::with(&["m5.large"], &["--eks-control-plane"]);
    let path = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id";
    let pinned = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v20250101/image_id";
    play.double.change(|world| {
        world.parameters.insert(path.to_owned(), "ami-amd".to_owned());
        world.parameters.insert(pinned.to_owned(), "ami-arm".to_owned());
        world.images[1].item.architecture = "x86_64".to_owned();
    });
    play.start();
    let alias = |alias: &str| json!({"amiFamily": null, "amiSelectorTerms": [{"alias": alias}]});
    play.world.apply(&class("latest", &alias("al2023@latest")).to_string());
    play.world.apply(&class("pinned", &alias("al2023@v20250101")).to_string());
    play.pass(60);
    let image = |play: &Play, class: &str| -> Value {
        play.world.get(&format!("{CLASSES}/{class}")).unwrap()["status"]["amis"][0]["id"].clone()
    };
    assert_eq!((image(&play, "latest"), image(&play, "pinned")), ("ami-amd".into(), "ami-arm".into()));
    let now = play.world.now();
    play.double.change(|world| {
        world.parameters.insert(path.to_owned(), "ami-new".to_owned());
        let mut new = world.images[0].clone();
        "ami-new".clone_into(&mut new.item.id);
        world.images.push(new);
        for image in &mut world.images[..2] {
            image.item.deprecated_from = Some(now);
        }
    });
    play.pass(10 * 60);
    assert_eq!(image(&play, "latest"), "ami-amd", "it is known for a day");
    play.pass(25 * 60);
    assert_eq!(image(&play, "latest"), "ami-new");
    assert_eq!(image(&play, "pinned"), "ami-arm", "what is pinned stays");
}

#[test]
fn a191_prices_and_what_can_be_had_are_published() {
    let mut play = Play::with(&["m5.large", "c5.large"], &["--feature-gates=ReservedCapacity=true"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.pool("one", "default", &json!({}));
    play.pool("broken", "missing", &json!({}));
    play.start();
    play.pass(2);
    let available = |play: &Play, kind: &str, zone: &str| {
        play.metrics.value(&metrics::OFFERING_AVAILABLE, &["m5.large", kind, zone])
    };
    assert_eq!(available(&play, ON_DEMAND, ZONES[0]), Some(1.0));
    assert_eq!(available(&play, ON_DEMAND, ZONES[2]), Some(0.0), "there is no subnet");
    assert_eq!(available(&play, RESERVED, ZONES[0]), Some(0.0));
    let price =
        |kind: &str| play.metrics.value(&metrics::OFFERING_PRICE_ESTIMATE, &["m5.large", kind, ZONES[0]]);
    assert_eq!((price(ON_DEMAND), price(RESERVED)), (Some(0.096), Some(0.0)));
    assert_eq!(play.metrics.value(&metrics::INSTANCE_TYPE_CPU_CORES, &["c5.large"]), Some(2.0));
    let bytes = Some(f64::from(8192_u32) * f64::from(1 << 20));
    assert_eq!(play.metrics.value(&metrics::INSTANCE_TYPE_MEMORY, &["m5.large"]), bytes);
    let scope = cloud::unavailable::Scope::offering("m5.large", ZONES[0], SPOT);
    assert_eq!(available(&play, SPOT, ZONES[0]), Some(1.0));
    play.aws.unavailable().mark(scope, "test");
    play.pass(61);
    assert_eq!(available(&play, SPOT, ZONES[0]), Some(0.0));
    // Types that are gone have no series.
    play.double.change(|world| {
        world.types.retain(|info| info.name != "c5.large");
        world.places.retain(|place| place.instance_type != "c5.large");
    });
    play.world.block_on(play.aws.refresh_instance_types()).unwrap();
    play.pass(61);
    assert_eq!(play.metrics.value(&metrics::INSTANCE_TYPE_CPU_CORES, &["c5.large"]), None);
}

#[test]
fn a192_instances_in_a_zone_that_is_avoided_are_not_tagged() {
    let mut play = ready(&["m5.large"], &["--enable-zonal-shift"]);
    let until = play.world.now() + Duration::from_mins(5);
    let id = play.node("one", &[ON_DEMAND_ONLY, ("topology.kubernetes.io/zone", "In", &[ZONES[0]])]);
    let shift = ZonalShifts { zone_id: "us-east-1a-id".to_owned(), until, applied: true };
    play.double.change(|world| world.shifts = vec![shift]);
    play.world.block_on(play.aws.refresh_zonal_shifts()).unwrap();
    play.start();
    play.pass(60);
    assert_eq!(play.double.count("ec2:CreateTags"), 0);
    assert_eq!(play.double.change(|world| world.instances[&id].state), InstanceState::Running);
    play.pass(360);
    assert_eq!(play.double.count("ec2:CreateTags"), 1);
}

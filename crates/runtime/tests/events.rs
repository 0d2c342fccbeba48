//! Events as users see them in the cluster.

use std::time::Duration;

use api::names::events;
use api::provider::Provider;
use cluster::state::Kind;
use embedded::faults::{Fault, Faulty, Rule};
use expect_test::expect;
use runtime::events::{About, Recorder};
use serde_json::Value;
use testkit::World;

fn node(name: &str) -> About {
    About { kind: Kind::Node, namespace: "".into(), name: name.into(), uid: "uid-1".into() }
}

fn pod(name: &str) -> About {
    About { kind: Kind::Pod, namespace: "default".into(), name: name.into(), uid: "uid-2".into() }
}

fn started(world: &World) -> Recorder {
    let recorder = Recorder::new(Provider::Kwok);
    world.spawn(recorder.clone().write(world.client(), world.clock()));
    recorder
}

fn events(world: &World) -> Vec<Value> {
    world.list("/api/v1/namespaces/default/events")
}

#[test]
fn an_event_is_an_object_with_all_that_kubectl_shows() {
    let mut world = World::builder(1).without_scheduler().start();
    let recorder = started(&world);
    world.block_on(async {
        recorder.publish(
            &events::UNCONSOLIDATABLE,
            node("n"),
            "Can't replace with a cheaper node",
            &["uid-1"],
        );
    });
    world.run_for(Duration::from_secs(1));
    let mut all = events(&world);
    assert_eq!(all.len(), 1);
    let event = all[0].as_object_mut().unwrap();
    let metadata = event.remove("metadata").unwrap();
    let (object, hex) = metadata["name"].as_str().unwrap().split_once('.').unwrap();
    assert!(object == "n" && u64::from_str_radix(hex, 16).is_ok(), "{metadata}");
    expect![[r#"
        {
          "count": 1,
          "eventTime": null,
          "firstTimestamp": "2026-01-05T09:00:00Z",
          "involvedObject": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "n",
            "uid": "uid-1"
          },
          "lastTimestamp": "2026-01-05T09:00:00Z",
          "message": "Can't replace with a cheaper node",
          "reason": "Unconsolidatable",
          "reportingComponent": "karpenter",
          "reportingInstance": "",
          "source": {
            "component": "karpenter"
          },
          "type": "Normal"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&event).unwrap());
}

#[test]
fn a_repeated_event_counts_up() {
    let mut world = World::builder(1).without_scheduler().start();
    let recorder = started(&world);
    for _ in 0..3 {
        world
            .block_on(async { recorder.publish(&events::EVICTED, pod("p"), "Evicted pod: Drifted", &["p"]) });
        world.run_for(Duration::from_mins(3));
    }
    let all = events(&world);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["count"], 3);
    assert_eq!(all[0]["firstTimestamp"], "2026-01-05T09:00:00Z");
    assert_eq!(all[0]["lastTimestamp"], "2026-01-05T09:06:00Z");
    // Somebody removes it, and it happens again.
    let name = all[0]["metadata"]["name"].as_str().unwrap();
    world.delete(&format!("/api/v1/namespaces/default/events/{name}"));
    world.block_on(async { recorder.publish(&events::EVICTED, pod("p"), "Evicted pod: Drifted", &["p"]) });
    world.run_for(Duration::from_secs(1));
    assert_eq!(events(&world)[0]["count"], 1);
}

#[test]
fn events_arrive_although_connections_break() {
    let mut world = World::builder(1).without_scheduler().start();
    let recorder = Recorder::new(Provider::Kwok);
    let client = world.block_on(async {
        let faulty = Faulty::new(world.server().service(), 7);
        faulty.set_rules(vec![Rule::everywhere(0.5, Fault::Cut)]);
        kube::Client::new(faulty, "default")
    });
    world.spawn(recorder.clone().write(client, world.clock()));
    for i in 0..10 {
        let name = i.to_string();
        world.block_on(async {
            recorder.publish(&events::EVICTED, pod(&name), "Evicted pod: Empty", &[&name]);
        });
    }
    world.run_for(Duration::from_mins(10));
    assert_eq!(events(&world).len(), 10);
}

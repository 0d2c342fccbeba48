//! 27.19: overlays in a cluster.

use std::time::Duration;

use api::provider::Provider;
use cloud::Overlaid;
use embedded::faults::{Fault, Rule};
use runtime::Settings;
use runtime::settings::Gates;
use serde_json::{Value, json};
use testkit::World;

use super::*;
use crate::testing::{NODE_POOL, Operated};

const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";

/// A cluster with the controller at work, whose cloud is corrected.
fn cluster() -> Operated {
    let gates = Gates { node_overlay: true, ..Gates::default() };
    let settings = Settings { gates, ..Settings::default() };
    let mut kept = None;
    let mut cluster = Operated::with(World::new(1), settings, |context| {
        let overlays = Overlays::new(Provider::Kwok);
        let mut context = context.clone();
        context.cloud = Arc::new(Overlaid::new(Arc::clone(&context.cloud), overlays.clone()));
        context.overlays = Some(overlays);
        kept = Some(context.clone());
        controllers(&context)
    });
    cluster.context = kept.expect("the controllers have been made");
    cluster
}

fn overlay(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

fn free(name: &str) -> String {
    overlay(name, &json!({"requirements": [], "price": "0"}))
}

/// The condition of an overlay as `Status Reason`.
fn condition(cluster: &Operated, name: &str, kind: &str) -> String {
    let object = cluster.get(&format!("{OVERLAYS}/{name}")).unwrap_or_default();
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("status"), text("reason"))
}

/// The first price of what a pool can choose from, or why that is not known.
fn price(cluster: &Operated, pool: &str) -> Result<String, String> {
    let pool =
        cluster.context.cluster.read().node_pools.named(pool).map(Arc::clone).expect("the pool is there");
    let types = cluster.block_on(cluster.context.cloud.instance_types(&pool));
    types.map(|types| types[0].offerings[0].price.to_string()).map_err(|error| error.to_string())
}

#[test]
fn overlays_are_in_force_once_they_say_so_and_no_longer_than_they_are_there() {
    let mut cluster = cluster();
    cluster.apply(NODE_POOL);
    cluster.settle();
    let usual = price(&cluster, "default").unwrap();
    cluster.apply(&free("a"));
    cluster.settle();
    assert_eq!(condition(&cluster, "a", "ValidationSucceeded"), "True ValidationSucceeded");
    assert_eq!(condition(&cluster, "a", "Ready"), "True Ready");
    assert_eq!(price(&cluster, "default").unwrap(), "0");
    let dearer = json!({"spec": {"price": "7"}});
    cluster.patch(&format!("{OVERLAYS}/a"), &dearer);
    cluster.settle();
    assert_eq!(price(&cluster, "default").unwrap(), "7");
    cluster.delete(&format!("{OVERLAYS}/a"));
    cluster.settle();
    assert_eq!(price(&cluster, "default").unwrap(), usual);
}

#[test]
fn a_bad_overlay_says_so_and_hinders_nobody() {
    let mut cluster = cluster();
    cluster.apply(NODE_POOL);
    // The later name wins; the other changes nothing anywhere.
    cluster
        .apply(&overlay("a", &json!({"requirements": [], "price": "1", "capacity": {"example.com/x": "1"}})));
    cluster.apply(&overlay("b", &json!({"requirements": [], "price": "2"})));
    let restricted =
        json!([{"key": "node.kubernetes.io/instance-type", "operator": "Gt", "values": ["1", "2"]}]);
    let refused = overlay("c", &json!({"requirements": restricted, "price": "3"}));
    // The definition refuses it already; an overlay that was there before the definition is still there.
    let (code, _) = cluster.send(
        http::Method::POST,
        OVERLAYS,
        "application/json",
        &serde_json::from_str(&refused).unwrap(),
    );
    assert!(code.is_client_error());
    let unknown = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["xspot"]}]);
    cluster.apply(&overlay("d", &json!({"requirements": unknown, "price": "3"})));
    cluster.settle();
    assert_eq!(condition(&cluster, "a", "ValidationSucceeded"), "False Conflict");
    assert_eq!(condition(&cluster, "a", "Ready"), "False UnhealthyDependents");
    assert_eq!(condition(&cluster, "b", "ValidationSucceeded"), "True ValidationSucceeded");
    assert_eq!(condition(&cluster, "d", "ValidationSucceeded"), "False RuntimeValidation");
    assert_eq!(price(&cluster, "default").unwrap(), "2");
    cluster.delete(&format!("{OVERLAYS}/b"));
    cluster.settle();
    assert_eq!(condition(&cluster, "a", "ValidationSucceeded"), "True ValidationSucceeded");
    assert_eq!(price(&cluster, "default").unwrap(), "1");
}

#[test]
fn a_pool_is_not_used_before_it_was_looked_at() {
    let mut cluster = cluster();
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Other("no answer".to_owned()));
    cluster.apply(NODE_POOL);
    cluster.apply(&free("a"));
    cluster.settle();
    // Overlays are judged by what is known; the pool waits.
    assert_eq!(condition(&cluster, "a", "ValidationSucceeded"), "True ValidationSucceeded");
    let error = "getting cloud provider instance types, no answer (NodePool=default)";
    assert_eq!(price(&cluster, "default").unwrap_err(), error);
    *cluster.cloud.types_error.lock() = None;
    cluster.run_for(Duration::from_millis(1));
    let waiting = price(&cluster, "default");
    assert_eq!(waiting.unwrap_err(), "nodepool \"default\" is awaiting evaluation");
    cluster.run_for(Duration::from_secs(61));
    assert_eq!(price(&cluster, "default").unwrap(), "0", "it is tried again by itself");
}

#[test]
fn a_pool_that_cannot_be_looked_at_keeps_no_other_from_it() {
    let mut cluster = cluster();
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Other("no answer".to_owned()));
    *cluster.cloud.broken_pool.lock() = Some("broken".to_owned());
    cluster.apply(NODE_POOL);
    cluster.apply(&NODE_POOL.replace("name: default}\nspec", "name: broken}\nspec"));
    cluster.apply(&free("a"));
    cluster.settle();
    assert_eq!(price(&cluster, "default").unwrap(), "0");
    assert!(price(&cluster, "broken").is_err());
    *cluster.cloud.types_error.lock() = None;
    cluster.run_for(Duration::from_secs(61));
    assert_eq!(price(&cluster, "broken").unwrap(), "0", "it recovers by itself");
}

#[test]
fn an_evaluation_lets_consolidation_look_again() {
    let mut cluster = cluster();
    cluster.apply(NODE_POOL);
    cluster.settle();
    let seen = cluster.context.cluster.read().consolidated_at(cluster.now());
    assert!(cluster.context.cluster.read().is_consolidated(seen, cluster.now()));
    cluster.apply(&free("a"));
    cluster.settle();
    assert!(!cluster.context.cluster.read().is_consolidated(seen, cluster.now()));
}

#[test]
fn a_status_that_cannot_be_written_is_written_later() {
    let mut cluster = cluster();
    cluster.apply(NODE_POOL);
    cluster.settle();
    cluster.faults.set_rules(vec![Rule::on("patch", "nodeoverlays", 1.0, Fault::InternalError)]);
    cluster.apply(&free("a"));
    cluster.settle();
    assert_eq!(
        (price(&cluster, "default").unwrap(), condition(&cluster, "a", "Ready")),
        ("0".into(), " ".into())
    );
    cluster.faults.set_rules(Vec::new());
    cluster.run_for(Duration::from_secs(30));
    assert_eq!(condition(&cluster, "a", "Ready"), "True Ready");
}

#[test]
fn only_what_users_write_is_looked_at_again() {
    let state = crate::testing::state(&[]);
    let touched = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Value| {
            let kinds = cluster::state::Kind::ALL;
            let kind = kinds.iter().find(|kind| object["kind"] == kind.name()).expect("a kind");
            kind.decode(&object.to_string()).expect("an object")
        };
        let queue = Queue::new(Backoff::DEFAULT);
        touch(&Change { old: old.map(decode), new: new.map(decode) }, &state, &queue);
        queue.depth()
    };
    let pool = |generation: i64| {
        Some(crate::testing::pool_object("p", &json!({"metadata": {"generation": generation}})))
    };
    let class = |generation: i64| {
        Some(json!({"kind": "NodeClass", "metadata": {"name": "c", "generation": generation}}))
    };
    let overlay = |generation: i64| {
        let metadata = json!({"name": "o", "generation": generation});
        Some(json!({"kind": "NodeOverlay", "metadata": metadata, "spec": {"requirements": []}}))
    };
    for kind in [&pool as &dyn Fn(i64) -> Option<Value>, &class, &overlay] {
        assert_eq!((touched(None, kind(1)), touched(kind(1), kind(2)), touched(kind(2), None)), (1, 1, 1));
        assert_eq!(touched(kind(1), kind(1)), 0);
        // Another object of the same name, whose first version nobody has seen go.
        let another = kind(1).map(|mut object| {
            object["metadata"]["uid"] = "another".into();
            object
        });
        assert_eq!(touched(kind(1), another), 1);
    }
    let pod = Some(crate::testing::pod_object("a", "n", &json!({})));
    assert_eq!(touched(None, pod), 0);
}

#[test]
fn it_looks_again_after_six_hours() {
    let mut cluster = cluster();
    let known = std::mem::replace(&mut *cluster.cloud.types.lock(), Vec::new().into());
    cluster.apply(NODE_POOL);
    cluster.apply(&free("a"));
    cluster.apply(&free("b"));
    cluster.settle();
    // They are in conflict only where there is something that both could change.
    *cluster.cloud.types.lock() = known;
    let conflicts = |cluster: &Operated| {
        ["a", "b"].iter().any(|name| condition(cluster, name, "ValidationSucceeded") == "False Conflict")
    };
    cluster.run_for(Duration::from_hours(5));
    assert!(!conflicts(&cluster));
    cluster.run_for(Duration::from_mins(61));
    assert!(conflicts(&cluster));
}

#[test]
fn an_evaluation_that_changes_nothing_leaves_consolidation_alone() {
    let mut cluster = cluster();
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Other("no answer".to_owned()));
    *cluster.cloud.broken_pool.lock() = Some("broken".to_owned());
    cluster.apply(NODE_POOL);
    cluster.apply(&NODE_POOL.replace("name: default}\nspec", "name: broken}\nspec"));
    cluster.apply(&free("a"));
    cluster.run_for(Duration::from_mins(2));
    let then = cluster.now();
    let seen = cluster.context.cluster.read().consolidated_at(then);
    // It is tried every minute.
    cluster.run_for(Duration::from_mins(10));
    assert!(cluster.context.cluster.read().is_consolidated(seen, then));
}

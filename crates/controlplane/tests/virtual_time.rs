//! The whole control plane beside an API server in this process, on virtual time.

use std::future::Future;
use std::time::Duration;

use clock::Clock;
use controlplane::{KubeletOptions, Options};
use embedded::Server;
use embedded::faults::{Fault, Faulty, Rule};
use http::Method;
use serde_json::{Value, json};

struct World {
    server: Server,
    clock: Clock,
}

/// Runs a scenario on a cluster with `nodes` nodes; the same every time.
fn run<T, F: Future<Output = T>>(nodes: usize, scenario: impl FnOnce(World) -> F) -> T {
    run_with_faults(nodes, Vec::new(), scenario)
}

/// The same, with faults between the controllers and the API server.
fn run_with_faults<T, F: Future<Output = T>>(
    nodes: usize,
    faults: Vec<Rule>,
    scenario: impl FnOnce(World) -> F,
) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("tokio");
    runtime.block_on(async {
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().expect("a time"));
        let server = Server::new(clock, &embedded::Options::of_cluster());
        let service = Faulty::new(server.service(), 1);
        service.set_rules(faults);
        let client = kube::Client::new(service, "default");
        let kubelet = KubeletOptions { pod_start: Duration::from_secs(2), ..KubeletOptions::default() };
        let options = Options { kubelet: Some(kubelet), ..Options::default() };
        tokio::spawn(controlplane::run(client, clock, options));
        let world = World { server, clock };
        for number in 1..=nodes {
            world.apply(&json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("n{number}"), "labels": {"topology.kubernetes.io/zone": "a"}},
            }));
        }
        let leases = |world: &World| world.list("/apis/coordination.k8s.io/v1/leases").len();
        world.until("nodes to be up", |world| leases(world) == nodes).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        scenario(world).await
    })
}

impl World {
    fn apply(&self, object: &Value) {
        if let Err(refusal) = self.server.apply(object, "test") {
            panic!("{}", refusal.message);
        }
    }

    fn patch(&self, path: &str, body: &Value) {
        let (code, answer) = self.server.send(Method::PATCH, path, "application/merge-patch+json", body);
        assert!(code.is_success(), "{answer}");
    }

    fn get(&self, path: &str) -> Value {
        self.server.send(Method::GET, path, "", &Value::Null).1
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until `holds`, for an hour of virtual time at most.
    async fn until(&self, what: &str, holds: impl Fn(&World) -> bool) -> Duration {
        let begin = self.clock.now();
        for _ in 0..3600 {
            if holds(self) {
                return Duration::try_from(self.clock.now() - begin).unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("waited for an hour: {what}");
    }

    fn ready(&self, deployment: &str) -> u64 {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{deployment}");
        self.get(&path)["status"]["readyReplicas"].as_u64().unwrap_or(0)
    }
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "10m"}}}]},
            },
        },
    })
}

#[test]
fn the_same_scenario_gives_the_same_cluster_to_the_last_byte() {
    let scenario = || {
        run(3, |world| async move {
            world.apply(&deployment("web", 20));
            world.until("pods to be ready", |world| world.ready("web") == 20).await;
            world.apply(&deployment("web", 5));
            world.until("pods to go", |world| world.list("/api/v1/pods").len() == 5).await;
            tokio::time::sleep(Duration::from_mins(15)).await;
            let paths = [
                "/api/v1/pods",
                "/api/v1/nodes",
                "/apis/apps/v1/replicasets",
                "/apis/coordination.k8s.io/v1/leases",
            ];
            let all: Vec<Vec<Value>> = paths.iter().map(|path| world.list(path)).collect();
            (world.server.revision(), json!(all).to_string())
        })
    };
    assert_eq!(scenario(), scenario());
}

#[test]
fn pods_leave_a_node_that_falls_silent() {
    run(2, |world| async move {
        world.apply(&deployment("web", 4));
        world.until("pods to be ready", |world| world.ready("web") == 4).await;
        let silent = json!({"metadata": {"annotations": {"simulate.karpenter.sh/fail": "silent"}}});
        world.patch("/api/v1/nodes/n1", &silent);
        let unknown = |world: &World| {
            let conditions = world.get("/api/v1/nodes/n1")["status"]["conditions"].clone();
            conditions
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "Unknown"))
        };
        let lost = world.until("the node to be lost", unknown).await;
        assert!(lost > Duration::from_secs(29) && lost < Duration::from_secs(42), "{lost:?}");
        let elsewhere = |world: &World| {
            let pods = world.list("/api/v1/namespaces/default/pods");
            pods.iter()
                .filter(|pod| pod["spec"]["nodeName"] == "n2" && pod["status"]["phase"] == "Running")
                .count()
                == 4
        };
        let moved = world.until("pods to run elsewhere", elsewhere).await;
        assert!(moved > Duration::from_secs(290) && moved < Duration::from_secs(310), "{moved:?}");
        // The kubelet cannot say that its pods have stopped, so they stay until the node is gone.
        assert!(world.list("/api/v1/namespaces/default/pods").len() > 4);
        let (code, _) = world.server.send(Method::DELETE, "/api/v1/nodes/n1", "", &Value::Null);
        assert!(code.is_success());
        let collected = |world: &World| world.list("/api/v1/namespaces/default/pods").len() == 4;
        let collected = world.until("pods to be collected", collected).await;
        assert!(collected < Duration::from_secs(45), "{collected:?}");
    });
}

#[test]
fn a_namespace_is_emptied_and_goes() {
    run(1, |world| async move {
        world.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}));
        let account = |world: &World| {
            world.get("/api/v1/namespaces/a/serviceaccounts/default")["kind"] == "ServiceAccount"
        };
        world.until("its account", account).await;
        let mut web = deployment("web", 3);
        web["metadata"]["namespace"] = json!("a");
        world.apply(&web);
        let running = |world: &World| {
            let pods = world.list("/api/v1/namespaces/a/pods");
            pods.len() == 3 && pods.iter().all(|pod| pod["status"]["phase"] == "Running")
        };
        world.until("pods to run", running).await;
        let (code, answer) = world.server.send(Method::DELETE, "/api/v1/namespaces/a", "", &Value::Null);
        assert!(code.is_success(), "{answer}");
        let gone = world.until("it to go", |world| world.get("/api/v1/namespaces/a")["code"] == 404).await;
        assert!(gone < Duration::from_secs(30), "{gone:?}");
        assert!(world.list("/api/v1/namespaces/a/pods").is_empty());
    });
}

#[test]
fn an_hour_of_ten_idle_nodes_costs_little_more_than_their_leases() {
    run(10, |world| async move {
        world
            .until("nodes to be ready", |world| world.list("/apis/coordination.k8s.io/v1/leases").len() == 10)
            .await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let before = world.server.revision();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let writes = world.server.revision() - before;
        // 3,600 renewals, and a status every five minutes.
        assert!((3_600..=3_600 + 10 * 13 + 10).contains(&writes), "{writes}");
    });
}

#[test]
fn a_cluster_whose_server_fails_often_gets_there_too_without_a_pod_too_many() {
    let faults = [Fault::Conflict, Fault::TooManyRequests, Fault::InternalError, Fault::LostReply];
    let mut rules: Vec<Rule> = faults.into_iter().map(|fault| Rule::everywhere(0.05, fault)).collect();
    rules.push(Rule::on("watch", "", 0.2, Fault::CutWatch { after: 3 }));
    rules.push(Rule::on("watch", "", 0.1, Fault::Expired));
    run_with_faults(3, rules, |world| async move {
        for number in 0..10 {
            world.apply(&deployment("web", 10 + number % 2));
            tokio::time::sleep(Duration::from_secs(20)).await;
            world.server.cut_watches();
            if number == 5 {
                world.server.compact();
            }
        }
        world.until("pods to be ready", |world| world.ready("web") == 11).await;
        tokio::time::sleep(Duration::from_mins(5)).await;
        let pods = world.list("/api/v1/namespaces/default/pods");
        assert_eq!(pods.len(), 11);
        assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Running"));
    });
}

//! Writes: what the server adds, keeps and refuses.

use clock::Clock;
use embedded::{Options, Server};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

fn server() -> Server {
    Server::new(Clock::starting_at(Timestamp::UNIX_EPOCH), &Options::default())
}

fn send(server: &Server, method: Method, target: &str, content_type: &str, body: &Value) -> Value {
    let (code, answer) = server.send(method, target, content_type, body);
    assert!(code.is_success(), "{target}: {answer}");
    answer
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "nginx", "image": "nginx", "resources": {}}]},
            },
            "strategy": {},
        },
        "status": {},
    })
}

#[tokio::test]
async fn the_generation_rises_with_the_spec_alone() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let created = send(&server, Method::POST, path, "application/json", &deployment());
    assert_eq!(created["metadata"]["generation"], 1);
    let path = format!("{path}/web");
    let merge = "application/merge-patch+json";
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = send(&server, Method::PATCH, &path, merge, &change);
    assert_eq!(patched["spec"], created["spec"]);
    assert_eq!(patched["metadata"]["generation"], 1);
    let status = json!({"status": {"replicas": 1}});
    let patched = send(&server, Method::PATCH, &format!("{path}/status"), merge, &status);
    assert_eq!(patched["metadata"]["generation"], 1);
    let patched = send(&server, Method::PATCH, &path, merge, &json!({"spec": {"replicas": 2}}));
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_change() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let created = send(&server, Method::POST, path, "application/json", &deployment());
    let path = format!("{path}/web");
    let same = send(&server, Method::PUT, &path, "application/json", &created);
    assert_eq!(same["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_leaves_what_any_other_patch_would() {
    let server = server();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    for name in ["a", "b"] {
        let spec = json!({"holderIdentity": "x", "leaseDurationSeconds": 40, "renewTime": "2026-01-05T09:00:00.000000Z"});
        let lease = json!({"metadata": {"name": name}, "spec": spec});
        send(&server, Method::POST, leases, "application/json", &lease);
    }
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let merge = "application/merge-patch+json";
    let renewed = |name: &str, change: &Value| {
        let mut lease = send(&server, Method::PATCH, &format!("{leases}/{name}"), merge, change);
        for field in ["name", "uid", "resourceVersion"] {
            lease["metadata"][field] = Value::Null;
        }
        lease
    };
    let time = "2026-01-05T09:00:10.000000Z";
    let short = renewed("a", &json!({"spec": {"renewTime": time}}));
    // The same in more words, so that the whole object is looked at.
    let long = renewed("b", &json!({"spec": {"renewTime": time, "holderIdentity": "x"}}));
    assert_eq!(short["spec"]["renewTime"], time);
    assert_eq!(short["metadata"]["managedFields"][0]["time"], "1970-01-01T00:00:10Z");
    assert_eq!(short, long);
}

#[tokio::test]
async fn a_heartbeat_with_a_wrong_time_is_refused() {
    let server = server();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({"metadata": {"name": "a"}, "spec": {"renewTime": "2026-01-05T09:00:00.000000Z"}});
    send(&server, Method::POST, leases, "application/json", &lease);
    for time in ["2026-02-30T09:00:00.000000Z", "soon", "2026-01-05T09:00:10Z"] {
        let change = json!({"spec": {"renewTime": time}});
        let path = format!("{leases}/a");
        let (code, answer) = server.send(Method::PATCH, &path, "application/merge-patch+json", &change);
        assert_eq!(code.as_u16(), 422, "{time}: {answer}");
        // The refusal shows the object as the patch left it, with everything it has.
        assert!(answer["message"].as_str().unwrap_or_default().contains("managedFields"), "{answer}");
    }
}

#[tokio::test]
async fn a_job_selects_the_pods_that_carry_its_uid() {
    let server = server();
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    let created = send(&server, Method::POST, "/apis/batch/v1/namespaces/default/jobs", "", &job);
    let label = "batch.kubernetes.io/controller-uid";
    assert_eq!(created["spec"]["selector"]["matchLabels"][label], created["metadata"]["uid"]);
    assert_eq!(created["spec"]["template"]["metadata"]["labels"][label], created["metadata"]["uid"]);
}

#[tokio::test]
async fn a_namespace_goes_when_its_finalizer_does() {
    let server = server();
    let namespace = json!({"metadata": {"name": "tmp"}});
    send(&server, Method::POST, "/api/v1/namespaces", "", &namespace);
    let going = send(&server, Method::DELETE, "/api/v1/namespaces/tmp", "", &Value::Null);
    assert_eq!(going["status"]["phase"], "Terminating");
    let pod = json!({"metadata": {"name": "c"}});
    let (code, refusal) = server.send(Method::POST, "/api/v1/namespaces/tmp/configmaps", "", &pod);
    assert_eq!(
        (code.as_u16(), &refusal["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    let mut emptied = going.clone();
    emptied["spec"]["finalizers"] = json!([]);
    send(&server, Method::PUT, "/api/v1/namespaces/tmp/finalize", "", &emptied);
    let (code, _) = server.send(Method::GET, "/api/v1/namespaces/tmp", "", &Value::Null);
    assert_eq!(code.as_u16(), 404);
}

//! What a namespace allows: LimitRanges, ResourceQuotas, and what is refused because pods are simulated.

use clock::Clock;
use embedded::{Options, Server};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

struct Cluster(Server);

impl Cluster {
    fn new(options: &Options) -> Self {
        Self(Server::new(Clock::starting_at(Timestamp::UNIX_EPOCH), options))
    }

    fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        self.0.send(method, path, kind, body)
    }

    #[track_caller]
    fn create(&self, plural: &str, mut object: Value) -> Value {
        object["metadata"]["namespace"] = json!("default");
        let (code, answer) =
            self.send(Method::POST, &format!("/api/v1/namespaces/default/{plural}"), &object);
        assert_eq!(code, StatusCode::CREATED, "{answer}");
        answer
    }

    #[track_caller]
    fn limit(&self, limits: &Value) {
        self.create("limitranges", json!({"metadata": {"name": "l"}, "spec": {"limits": limits}}));
    }

    fn pod(&self, name: &str, resources: &Value) -> (StatusCode, Value) {
        let containers = json!([{"name": "c", "image": "i", "resources": resources}]);
        self.send(
            Method::POST,
            PODS,
            &json!({"metadata": {"name": name}, "spec": {"containers": containers}}),
        )
    }

    /// The refusal of a pod that asks for this, without what every refusal begins with.
    #[track_caller]
    fn refusal(&self, resources: &Value) -> String {
        let (code, answer) = self.pod("p", resources);
        assert_eq!((code, &answer["reason"]), (StatusCode::FORBIDDEN, &json!("Forbidden")), "{answer}");
        let message = answer["message"].as_str().unwrap_or_default();
        message.strip_prefix("pods \"p\" is forbidden: ").expect(message).to_owned()
    }

    fn used(&self) -> Value {
        self.send(Method::GET, QUOTA, &Value::Null).1["status"]["used"].clone()
    }
}

#[test]
fn containers_get_what_they_do_not_state_and_the_pod_says_so() {
    let cluster = Cluster::new(&Options::default());
    cluster.limit(&json!([{"type": "Container", "default": {"cpu": "1", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"}}]));
    let (_, pod) = cluster.pod("p", &json!({"requests": {"memory": "64Mi"}}));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}})
    );
    assert_eq!(
        pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu, memory limit for container c"
    );
}

#[test]
fn what_is_outside_of_a_limit_range_is_refused() {
    let cluster = Cluster::new(&Options::default());
    cluster.limit(&json!([
        {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "2"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
    ]));
    let with = |request: &str, limit: &str, memory: &str| json!({"requests": {"cpu": request}, "limits": {"cpu": limit, "memory": memory}});
    for (resources, why) in [
        (with("50m", "100m", "1Gi"), "minimum cpu usage per Container is 100m, but request is 50m"),
        (with("2", "4", "1Gi"), "maximum cpu usage per Container is 2, but limit is 4"),
        (
            with("500m", "2", "1Gi"),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
        (with("1", "1", "2Gi"), "maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
        (
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}),
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
    ] {
        assert_eq!(cluster.refusal(&resources), why, "{resources}");
    }
    assert_eq!(cluster.pod("fits", &with("1", "2", "1Gi")).0, StatusCode::CREATED);
}

#[test]
fn a_claim_keeps_to_the_limits_of_its_namespace() {
    let cluster = Cluster::new(&Options::default());
    cluster.limit(
        &json!([{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}]),
    );
    let claim = |storage: &str| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}});
        let path = "/api/v1/namespaces/default/persistentvolumeclaims";
        cluster.send(Method::POST, path, &json!({"metadata": {"name": "c"}, "spec": spec}))
    };
    let (_, answer) = claim("10Gi");
    assert_eq!(
        answer["message"],
        "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but \
         request is 10Gi"
    );
    assert_eq!(claim("512Mi").0, StatusCode::FORBIDDEN);
    assert_eq!(claim("2Gi").0, StatusCode::CREATED);
}

#[test]
fn a_quota_counts_once_its_status_is_known() {
    let cluster = Cluster::new(&Options::default());
    cluster.create(
        "resourcequotas",
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1", "pods": "2"}}}),
    );
    assert_eq!(cluster.pod("before", &json!({})).0, StatusCode::CREATED);
    let status =
        |status: Value| cluster.send(Method::PATCH, &format!("{QUOTA}/status"), &json!({"status": status}));
    status(json!({"hard": {"cpu": "1", "pods": "2"}}));
    let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
    assert_eq!(cluster.refusal(&asks("500m")), "status unknown for quota: q, resources: cpu,pods");
    status(json!({"used": {"cpu": "0", "pods": "1"}}));
    assert_eq!(cluster.refusal(&json!({})), "failed quota: q: must specify cpu for: c");
    assert_eq!(
        cluster.refusal(&asks("2")),
        "exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1"
    );
    assert_eq!(cluster.pod("a", &asks("500m")).0, StatusCode::CREATED);
    assert_eq!(cluster.used(), json!({"cpu": "500m", "pods": "2"}));
    assert_eq!(
        cluster.refusal(&asks("600m")),
        "exceeded quota: q, requested: cpu=600m,pods=1, used: cpu=500m,pods=2, limited: cpu=1,pods=2"
    );
}

#[test]
fn a_dry_run_is_checked_and_uses_nothing() {
    let cluster = Cluster::new(&Options::of_cluster());
    cluster.create("resourcequotas", json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}));
    let dry = format!("{PODS}?dryRun=All");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(cluster.send(Method::POST, &dry, &pod).0, StatusCode::CREATED);
    assert_eq!(cluster.used(), json!({"pods": "0"}));
    cluster.pod("a", &json!({}));
    assert_eq!(cluster.send(Method::POST, &dry, &pod).0, StatusCode::FORBIDDEN);
}

#[test]
fn what_is_gone_or_has_ended_is_given_back() {
    let cluster = Cluster::new(&Options::of_cluster());
    cluster.pod("old", &json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
    cluster.create("configmaps", json!({"metadata": {"name": "m"}}));
    let hard = json!({"requests.cpu": "4", "requests.memory": "4Gi", "pods": "3", "count/pods": "4", "configmaps": "2",
        "count/leases.coordination.k8s.io": "1"});
    cluster.create("resourcequotas", json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}));
    let used = |cpu: &str, memory: &str, pods: &str, all: &str, maps: &str| {
        json!({"requests.cpu": cpu, "requests.memory": memory, "pods": pods, "count/pods": all, "configmaps": maps,
            "count/leases.coordination.k8s.io": "0"})
    };
    assert_eq!(cluster.used(), used("1", "1Gi", "1", "1", "1"));
    let (code, answer) = cluster.pod("new", &json!({"requests": {"cpu": "2", "memory": "512Mi"}}));
    assert_eq!(code, StatusCode::CREATED, "{answer}");
    assert_eq!(cluster.used(), used("3", "1536Mi", "2", "2", "1"));
    cluster.send(Method::PATCH, &format!("{PODS}/new/status"), &json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(cluster.used(), used("1", "1Gi", "1", "2", "1"));
    cluster.send(Method::DELETE, &format!("{PODS}/new"), &Value::Null);
    cluster.send(Method::DELETE, &format!("{PODS}/old?gracePeriodSeconds=0"), &Value::Null);
    cluster.send(Method::DELETE, "/api/v1/namespaces/default/configmaps/m", &Value::Null);
    assert_eq!(cluster.used(), used("0", "0", "0", "0", "0"));
    cluster.send(Method::PATCH, QUOTA, &json!({"spec": {"hard": {"pods": "5"}}}));
    let quota = cluster.send(Method::GET, QUOTA, &Value::Null).1;
    assert_eq!(quota["status"]["hard"], quota["spec"]["hard"]);
}

#[test]
fn a_quota_with_scopes_counts_the_pods_in_them() {
    let cluster = Cluster::new(&Options::of_cluster());
    let spec = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotTerminating"]});
    cluster.create("resourcequotas", json!({"metadata": {"name": "q"}, "spec": spec}));
    assert_eq!(cluster.pod("burstable", &json!({"requests": {"cpu": "1"}})).0, StatusCode::CREATED);
    assert_eq!(cluster.used(), json!({"pods": "0"}));
    assert_eq!(cluster.pod("first", &json!({})).0, StatusCode::CREATED);
    assert_eq!(
        cluster.refusal(&json!({})),
        "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    );
}

#[test]
fn services_and_claims_are_counted_as_they_change() {
    let cluster = Cluster::new(&Options::of_cluster());
    let hard = json!({"services.nodeports": "1", "requests.storage": "10Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "5Gi"});
    cluster.create("resourcequotas", json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}));
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    cluster.create("services", json!({"metadata": {"name": "s"}, "spec": {"ports": ports}}));
    let path = "/api/v1/namespaces/default/services/s";
    let (code, answer) = cluster.send(Method::PATCH, path, &json!({"spec": {"type": "NodePort"}}));
    assert_eq!(code, StatusCode::FORBIDDEN, "{answer}");
    let why = "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: \
               services.nodeports=1";
    assert_eq!(answer["message"], format!("services \"s\" is forbidden: {why}"));
    let claim = |class: &str| {
        json!({"metadata": {"name": class}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "6Gi"}}}})
    };
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    assert_eq!(cluster.send(Method::POST, claims, &claim("gold")).0, StatusCode::FORBIDDEN);
    assert_eq!(cluster.send(Method::POST, claims, &claim("lead")).0, StatusCode::CREATED);
    assert_eq!(cluster.used()["requests.storage"], "6Gi");
}

#[test]
fn what_needs_a_process_is_refused_with_a_sentence() {
    let cluster = Cluster::new(&Options::default());
    cluster.pod("p", &json!({}));
    for (method, part, what) in [
        (Method::POST, "exec?command=ls", "no command can be executed in it"),
        (Method::GET, "exec?command=ls", "no command can be executed in it"),
        (Method::GET, "attach", "there is nothing to attach to"),
        (Method::POST, "portforward", "no port of it can be forwarded"),
        (Method::GET, "proxy", "nothing answers requests to it"),
    ] {
        let (code, answer) = cluster.send(method, &format!("{PODS}/p/{part}"), &Value::Null);
        let expected = format!("pod \"p\" is simulated and runs no code, so {what}");
        assert_eq!((code, &answer["message"]), (StatusCode::BAD_REQUEST, &json!(expected)), "{part}");
    }
    assert_eq!(
        cluster.send(Method::POST, &format!("{PODS}/none/exec"), &Value::Null).0,
        StatusCode::NOT_FOUND
    );
}

#[test]
fn a_node_is_tainted_until_it_has_said_that_it_is_ready() {
    let create = |options: &Options, spec: Value| {
        let cluster = Cluster::new(options);
        let (_, node) =
            cluster.send(Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n"}, "spec": spec}));
        node["spec"]["taints"].clone()
    };
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let own = json!({"key": "own", "effect": "NoSchedule"});
    assert_eq!(create(&Options::default(), json!({})), Value::Null);
    assert_eq!(create(&Options::of_cluster(), json!({})), json!([not_ready]));
    assert_eq!(create(&Options::of_cluster(), json!({"taints": [own]})), json!([own, not_ready]));
    assert_eq!(create(&Options::of_cluster(), json!({"taints": [not_ready]})), json!([not_ready]));
}

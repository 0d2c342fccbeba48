//! Random clusters on a real API server with the real kube-scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use controlplane::scheduler::{Key, Scheduler};
use e2e::{Component, ControlPlane};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::generate::{DRIVER, HIGHEST_PRIORITY, generate, shared};
use crate::replay::{GONE, Recording, Step, Verdict, judge, key, observe};

const KINDS: [(&str, &str); 9] = [
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Pod"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
];
/// The kinds that a scheduling attempt changes.
const CHANGING: [&str; 3] = ["PersistentVolume", "PersistentVolumeClaim", "Pod"];
/// The kinds that are made anew for each cluster.
const OWN: [&str; 6] =
    ["Pod", "PersistentVolumeClaim", "PersistentVolume", "CSINode", "PodDisruptionBudget", "Node"];
const POLL: Duration = Duration::from_millis(10);
/// A scheduler that says nothing for so long has nothing to say.
const PATIENCE: u32 = 3000;

type Known = BTreeMap<(String, Key), Value>;

pub(crate) struct Live {
    client: Client,
    _plane: ControlPlane,
}

impl Live {
    pub(crate) async fn start() -> Self {
        let plane = ControlPlane::builder()
            .with_scheduler()
            // Nothing here would take these taints and finalizers off again.
            .arg(
                Component::ApiServer,
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
            )
            .arg(Component::Scheduler, "--kube-api-qps=1000")
            .arg(Component::Scheduler, "--kube-api-burst=1000")
            .start()
            .expect("a control plane");
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        let live = Self { client: Client::try_from(config).expect("a client"), _plane: plane };
        for object in shared() {
            live.create(&object).await;
        }
        live
    }

    fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        self.api(text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""), text("/metadata/namespace"))
    }

    async fn create(&self, object: &Value) -> Value {
        self.try_create(object).await.unwrap_or_else(|error| panic!("{error}: {object:#}"))
    }

    async fn try_create(&self, object: &Value) -> kube::Result<Value> {
        let dynamic: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let api = self.api_of(object);
        let created = api.create(&PostParams::default(), &dynamic).await?;
        if object.get("status").is_some() && object["kind"] != "Node" {
            self.patch_status(object, &json!({"status": object["status"]})).await;
        }
        Ok(serde_json::to_value(created).expect("JSON"))
    }

    async fn patch(&self, object: &Value, patch: &Value) {
        let name = key(object).1;
        let done = self.api_of(object).patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        done.unwrap_or_else(|error| panic!("{error}: {name} {patch}"));
    }

    async fn patch_status(&self, object: &Value, patch: &Value) {
        let name = key(object).1;
        let done =
            self.api_of(object).patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        done.unwrap_or_else(|error| panic!("{error}: {name} {patch}"));
    }

    async fn list(&self, kinds: &[&str]) -> Known {
        let mut known = Known::new();
        for (version, kind) in KINDS.into_iter().filter(|(_, kind)| kinds.contains(kind)) {
            let list = self.api(version, kind, None).list(&ListParams::default()).await.expect("a list");
            for object in list.items {
                let mut value = serde_json::to_value(object).expect("JSON");
                value["apiVersion"] = json!(version);
                value["kind"] = json!(kind);
                known.insert((kind.to_owned(), key(&value)), value);
            }
        }
        known
    }

    async fn delete(&self, object: &Value) {
        // What is gone already need not be deleted.
        let _ = self.api_of(object).delete(&key(object).1, &DeleteParams::default().grace_period(0)).await;
    }

    pub(crate) async fn clear(&self) {
        loop {
            let left = self.list(&OWN).await;
            if left.is_empty() {
                return;
            }
            for object in left.values() {
                self.delete(object).await;
            }
        }
    }

    /// Runs one cluster through both schedulers; returns what was recorded and where they differ.
    pub(crate) async fn run(&self, seed: u64, settle: Duration) -> (Recording, Vec<String>) {
        self.clear().await;
        let plan = generate(seed);
        for object in &plan.objects {
            self.create(object).await;
        }
        for pod in &plan.placed {
            self.place(pod).await;
        }
        sleep(settle * 3).await;
        let all: Vec<&str> = KINDS.iter().map(|(_, kind)| *kind).collect();
        let mut known = self.list(&all).await;
        let mut ours = Scheduler::new();
        for object in known.values() {
            observe(&mut ours, object);
        }
        let objects =
            known.values().filter(|object| object["kind"] != "PriorityClass").cloned().map(trimmed).collect();
        let (mut steps, mut disagreements) = (vec![], vec![]);
        for (index, pod) in plan.waiting.iter().enumerate() {
            sleep(settle).await;
            let Some((pod, verdict)) = self.attempt(pod, &known).await else { continue };
            if let Err(difference) = judge(&mut ours, &pod, &verdict) {
                disagreements.push(format!(
                    "cluster {seed}, pod {:?}: {difference}\n{}",
                    key(&pod),
                    pod["spec"]
                ));
            }
            let mut gone_pod = None;
            match &verdict {
                Verdict::Bound(_) => {
                    let started = format!("2026-01-02T00:00:{index:02}Z");
                    self.patch_status(&pod, &json!({"status": {"startTime": started, "phase": "Running"}}))
                        .await;
                }
                // A promise to a less important pod could be broken, and it would go on to preempt in between.
                Verdict::Refused { nominated: Some(_), .. }
                    if plan.promises_stay && pod["spec"]["priority"] == HIGHEST_PRIORITY => {}
                Verdict::Refused { .. } => {
                    self.delete(&pod).await;
                    gone_pod = Some(gone(&pod));
                }
            }
            let after = self.changes(&mut known).await;
            let after: Vec<Value> = after.into_iter().chain(gone_pod).collect();
            for object in &after {
                observe(&mut ours, object);
            }
            steps.push(Step { pod: trimmed(pod), verdict, after: after.into_iter().map(trimmed).collect() });
        }
        (Recording { seed, objects, steps }, disagreements)
    }

    async fn place(&self, pod: &Value) {
        if self.try_create(pod).await.is_err() {
            return;
        }
        let note = |name: &str| pod["metadata"]["annotations"][name].as_str().unwrap_or("Running");
        let phase = if note("state") == "terminating" { "Running" } else { note("state") };
        self.patch_status(pod, &json!({"status": {"startTime": note("started"), "phase": phase}})).await;
        if note("state") == "terminating" {
            let wait = DeleteParams::default().grace_period(600);
            self.api_of(pod).delete(&key(pod).1, &wait).await.expect("it is there");
        }
    }

    /// Creates a pod and waits for what kube-scheduler says about it.
    async fn attempt(&self, pod: &Value, known: &Known) -> Option<(Value, Verdict)> {
        // Chance makes a pod now and then that the API server refuses.
        let created = self.try_create(pod).await.ok()?;
        let api = self.api_of(pod);
        for _ in 0..PATIENCE {
            sleep(POLL).await;
            let now = api.get(&key(pod).1).await.expect("nobody deletes it");
            let now = serde_json::to_value(now).expect("JSON");
            if let Some(node) = now["spec"]["nodeName"].as_str() {
                return Some((with_kind(created), Verdict::Bound(node.to_owned())));
            }
            let conditions = now["status"]["conditions"].as_array().into_iter().flatten();
            let mut conditions =
                conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
            let nominated = now["status"]["nominatedNodeName"].as_str().map(str::to_owned);
            if let Some(condition) = conditions.next() {
                let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
                let victims = if nominated.is_some() { self.victims(known).await } else { vec![] };
                let verdict =
                    Verdict::Refused { reason: text("reason"), message: text("message"), nominated, victims };
                return Some((with_kind(created), verdict));
            }
            if let Some(node) = nominated {
                // It has decided and waits for its volumes.
                self.bind_volumes(pod, &node).await;
            }
        }
        panic!("kube-scheduler says nothing about {:?}", key(pod));
    }

    /// Pods that were told to go since; preemption goes on after the verdict, so they are counted until all are there.
    async fn victims(&self, known: &Known) -> Vec<Key> {
        let mut seen = vec![];
        let mut unchanged = 0;
        // All of them may have been leaving before.
        while unchanged < 12 || (seen.is_empty() && unchanged < 50) {
            sleep(POLL).await;
            let now = self.list(&["Pod"]).await;
            let living = known
                .iter()
                .filter(|((kind, _), pod)| kind == "Pod" && pod["metadata"]["deletionTimestamp"].is_null());
            let leaving = living.filter(|(key, _)| {
                now.get(key).is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
            });
            let leaving: Vec<Key> = leaving.map(|((_, key), _)| key.clone()).collect();
            unchanged = if leaving == seen { unchanged + 1 } else { 0 };
            seen = leaving;
        }
        seen.sort();
        seen
    }

    /// What the volume controller would do.
    async fn bind_volumes(&self, pod: &Value, node: &str) {
        let state = self.list(&["PersistentVolume", "PersistentVolumeClaim"]).await;
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let claims: BTreeSet<&str> =
            volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str()).collect();
        for claim_name in claims {
            let claim_key = ("default".to_owned(), claim_name.to_owned());
            let Some(claim) = state.get(&("PersistentVolumeClaim".to_owned(), claim_key)) else { continue };
            if !claim["spec"]["volumeName"].is_null() {
                continue;
            }
            let reserved = state.values().find(|object| {
                object["kind"] == "PersistentVolume" && object["spec"]["claimRef"]["name"] == claim_name
            });
            let name = if let Some(volume) = reserved {
                key(volume).1
            } else if claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node {
                let name = format!("made-for-{claim_name}");
                let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                    "spec": {"capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
                        "accessModes": claim["spec"]["accessModes"], "storageClassName": claim["spec"]["storageClassName"],
                        "csi": {"driver": DRIVER, "volumeHandle": name},
                        "claimRef": {"namespace": "default", "name": claim_name, "uid": claim["metadata"]["uid"]}},
                    "status": {"phase": "Bound"}});
                self.create(&volume).await;
                name
            } else {
                continue;
            };
            let bound = json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": name}});
            self.patch(claim, &bound).await;
            self.patch_status(claim, &json!({"status": {"phase": "Bound"}})).await;
        }
    }

    async fn changes(&self, known: &mut Known) -> Vec<Value> {
        let now = self.list(&CHANGING).await;
        let mut changes: Vec<Value> = vec![];
        for (key, object) in known.iter() {
            if CHANGING.contains(&key.0.as_str()) && !now.contains_key(key) {
                changes.push(gone(object));
            }
        }
        known.retain(|key, _| !CHANGING.contains(&key.0.as_str()) || now.contains_key(key));
        for (key, object) in now {
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            if known.get(&key).is_none_or(|old| version(old) != version(&object)) {
                changes.push(object.clone());
                known.insert(key, object);
            }
        }
        changes
    }
}

fn with_kind(mut pod: Value) -> Value {
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod
}

fn gone(object: &Value) -> Value {
    let (namespace, name) = key(object);
    json!({"kind": object["kind"], "metadata": {"namespace": namespace, "name": name}, GONE: true})
}

/// Leaves out what no scheduler looks at.
fn trimmed(mut object: Value) -> Value {
    let remove = |object: &mut Value, pointer: &str, fields: &[&str]| {
        if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
            for field in fields {
                map.remove(*field);
            }
        }
    };
    remove(&mut object, "", &["apiVersion"]);
    remove(
        &mut object,
        "/metadata",
        &["managedFields", "resourceVersion", "generation", "creationTimestamp"],
    );
    remove(&mut object, "/metadata/annotations", &["state", "started"]);
    let accounting = [
        "qosClass",
        "observedGeneration",
        "lastPhaseTransitionTime",
        "capacity",
        "daemonEndpoints",
        "nodeInfo",
    ];
    remove(&mut object, "/status", &accounting);
    match object["kind"].as_str() {
        Some("Pod") => {
            let noise = [
                "dnsPolicy",
                "restartPolicy",
                "schedulerName",
                "securityContext",
                "enableServiceLinks",
                "priorityClassName",
                "automountServiceAccountToken",
                "terminationGracePeriodSeconds",
                "runtimeClassName",
            ];
            remove(&mut object, "/spec", &noise);
            let of_container =
                ["terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "image"];
            for index in 0..4 {
                remove(&mut object, &format!("/spec/containers/{index}"), &of_container);
                remove(&mut object, &format!("/spec/initContainers/{index}"), &of_container);
                let times = ["lastTransitionTime", "lastProbeTime", "observedGeneration", "message"];
                remove(&mut object, &format!("/status/conditions/{index}"), &times);
            }
        }
        Some("PersistentVolumeClaim") => {}
        _ => remove(&mut object, "/metadata", &["uid"]),
    }
    object
}

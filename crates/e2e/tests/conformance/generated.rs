//! Generated sequences: the same templates for one object of every resource.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sequence::{Sequence, Step, Until, merge};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// `VERSION/PLURAL` or `GROUP/VERSION/PLURAL`.
    resource: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    other: Option<String>,
    object: Value,
    change: Value,
    /// What its status may become; nothing for resources without.
    #[serde(default)]
    status: Option<Value>,
}

/// Resources without namespaces; those not listed are in one.
const CLUSTER: [&str; 20] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "csidrivers",
    "csinodes",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
    "priorityclasses",
    "clusterroles",
    "clusterrolebindings",
    "customresourcedefinitions",
    "deviceclasses",
    "resourceslices",
    "runtimeclasses",
    "ingressclasses",
    "nodepools",
    "nodeclaims",
    "ipaddresses",
    "servicecidrs",
];

/// All templates for all samples.
pub(crate) fn sequences(folder: &Path) -> Result<Vec<Sequence>> {
    let text = std::fs::read_to_string(folder.join("samples.yaml"))?;
    let samples: Vec<Sample> = serde_saphyr::from_str(&text).context("samples.yaml")?;
    let mut sequences = Vec::new();
    for sample in &samples {
        let mut add = |what: &str, steps: Vec<Step>| {
            let name = format!("{}: {what}", sample.resource);
            sequences.push(Sequence { name, source: "generated".to_owned(), steps });
        };
        add("life", life(sample));
        add("patches", patches(sample));
        add("apply", apply(sample));
        add("refusals", refusals(sample));
        add("unknown fields", unknown_fields(sample));
        add("finalizers", finalizers(sample));
        add("selection", selection(sample));
        if sample.status.is_some() {
            add("status", status(sample));
        }
    }
    Ok(sequences)
}

impl Sample {
    fn collection(&self) -> String {
        let (version, plural) = self.resource.rsplit_once('/').unwrap_or(("v1", &self.resource));
        let root = if version.contains('/') { "/apis" } else { "/api" };
        if CLUSTER.contains(&plural) {
            format!("{root}/{version}/{plural}")
        } else {
            format!("{root}/{version}/namespaces/$ns/{plural}")
        }
    }

    fn orphans(&self) -> bool {
        self.resource.ends_with("/jobs") || self.resource.ends_with("replicationcontrollers")
    }

    fn is_definition(&self) -> bool {
        self.resource.ends_with("customresourcedefinitions")
    }

    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "$id-a".to_owned())
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    fn object(&self) -> Value {
        let mut object = self.object.clone();
        let version = self.resource.rsplit_once('/').map_or("v1", |(version, _)| version);
        object["apiVersion"] = Value::from(version);
        merge(&mut object, &json!({"metadata": {"name": self.name()}}));
        object
    }

    /// A second object.
    fn second(&self) -> Value {
        let mut object = self.object();
        object["metadata"]["name"] = Value::from(self.other.clone().unwrap_or_else(|| "$id-b".to_owned()));
        if self.is_definition() {
            merge(&mut object, &json!({"spec": {"names": {"plural": "others", "kind": "Other"}}}));
        }
        object
    }

    fn with(&self, change: &Value) -> Value {
        let mut object = self.object();
        merge(&mut object, change);
        object
    }

    fn create(&self) -> Step {
        post(&self.collection(), self.object())
    }

    /// Definitions get their conditions a moment after they are made.
    fn settled(&self, step: Step) -> Step {
        if !self.is_definition() {
            return step;
        }
        Step {
            until: Some(Until {
                status: None,
                field: "status.conditions.1.status".to_owned(),
                is: json!("True"),
            }),
            ..step
        }
    }
}

fn step(what: String) -> Step {
    Step { what, ..Step::default() }
}

fn post(collection: &str, body: Value) -> Step {
    Step { body, ..step(format!("POST {collection}")) }
}

fn get(path: &str) -> Step {
    step(format!("GET {path}"))
}

fn delete(path: &str) -> Step {
    step(format!("DELETE {path}"))
}

fn patch(path: &str, kind: &str, body: Value) -> Step {
    Step { body, content_type: kind.to_owned(), ..step(format!("PATCH {path}")) }
}

fn named(step: Step, name: &str) -> Step {
    Step { name: name.to_owned(), ..step }
}

fn accepting(step: Step, accept: &str) -> Step {
    Step { accept: accept.to_owned(), ..step }
}

fn life(sample: &Sample) -> Vec<Step> {
    let (collection, path) = (sample.collection(), sample.path());
    let list = format!("{collection}?fieldSelector=metadata.name={}", sample.name());
    let replace = Step { body: sample.change.clone(), from: "a".to_owned(), ..step(format!("PUT {path}")) };
    let mut gone = get(&path);
    gone.until = Some(Until { status: Some(404), field: String::new(), is: Value::Null });
    vec![
        get(&path),
        sample.create(),
        sample.create(),
        named(sample.settled(get(&path)), "a"),
        accepting(get(&path), "table"),
        accepting(get(&path), "metadata"),
        get(&list),
        accepting(get(&list), "table"),
        accepting(get(&format!("{list}&includeObject=Object")), "table"),
        accepting(get(&list), "metadata list"),
        replace.clone(),
        replace,
        Step {
            from: "a".to_owned(),
            body: json!({"metadata": {"resourceVersion": null}}),
            ..step(format!("PUT {path}"))
        },
        delete(&format!("{path}?dryRun=All")),
        delete(&path),
        gone,
        delete(&path),
    ]
}

fn patches(sample: &Sample) -> Vec<Step> {
    let path = sample.path();
    let labels = |value: &str| json!({"metadata": {"labels": {"kind": value}}});
    let strategic = patch(&path, "strategic", {
        let mut change = sample.change.clone();
        merge(&mut change, &labels("strategic"));
        change
    });
    vec![
        sample.create(),
        sample.settled(get(&path)),
        patch(&path, "merge", labels("merge")),
        patch(&path, "merge", labels("merge")),
        patch(&path, "merge", sample.change.clone()),
        strategic,
        patch(&path, "json", json!([{"op": "test", "path": "/metadata/labels/kind", "value": "strategic"}])),
        patch(&path, "json", json!([{"op": "replace", "path": "/metadata/labels/kind", "value": "json"}])),
        patch(&path, "json", json!([{"op": "remove", "path": "/metadata/labels/none"}])),
        patch(&path, "json", json!([{"op": "test", "path": "/metadata/labels/kind", "value": "no"}])),
        patch(&path, "application/json", labels("none")),
        patch(&format!("{path}?dryRun=All"), "merge", labels("dry")),
        patch(&format!("{path}?fieldManager=other"), "merge", labels("other")),
        get(&path),
        patch(&format!("{}-none", sample.path()), "merge", labels("merge")),
    ]
}

fn apply(sample: &Sample) -> Vec<Step> {
    let path = sample.path();
    let by = |manager: &str, object: Value| patch(&format!("{path}?fieldManager={manager}"), "apply", object);
    let minimal = json!({
        "apiVersion": sample.object()["apiVersion"], "kind": sample.object["kind"],
        "metadata": {"name": sample.name(), "labels": {"owner": "b"}},
    });
    let forced = |manager: &str, object: Value| {
        patch(&format!("{path}?fieldManager={manager}&force=true"), "apply", object)
    };
    vec![
        by("a", sample.with(&json!({"metadata": {"labels": {"owner": "a"}}}))),
        sample.settled(get(&path)),
        by("a", sample.with(&json!({"metadata": {"labels": {"owner": "a"}}}))),
        by("b", minimal.clone()),
        forced("b", minimal.clone()),
        by("a", sample.with(&sample.change)),
        by("c", sample.with(&json!({"metadata": {"labels": {"owner": "b"}}}))),
        forced(
            "b",
            json!({
                "apiVersion": minimal["apiVersion"], "kind": minimal["kind"], "metadata": {"name": sample.name()},
            }),
        ),
        patch(&path, "apply", minimal),
        get(&path),
    ]
}

fn refusals(sample: &Sample) -> Vec<Step> {
    let (collection, path) = (sample.collection(), sample.path());
    let with_meta = |meta: Value| sample.with(&json!({"metadata": meta}));
    let put = |body: Value| Step { body, ..step(format!("PUT {path}")) };
    let with_options = |options: Value| Step { body: options, ..delete(&path) };
    vec![
        post(&collection, with_meta(json!({"name": null}))),
        post(&collection, with_meta(json!({"name": "Not_Valid!-$id"}))),
        post(&collection, with_meta(json!({"labels": {"bad key!": "a"}}))),
        post(&collection, with_meta(json!({"labels": {"a": "bad value!"}}))),
        post(&collection, with_meta(json!({"annotations": {"bad key!": "a"}}))),
        post(&collection, with_meta(json!({"finalizers": ["bad"]}))),
        post(&collection, with_meta(json!({"resourceVersion": "1"}))),
        post(&collection, sample.with(&json!({"kind": "Wrong"}))),
        post(&collection, sample.with(&json!({"apiVersion": "wrong/v1"}))),
        post(
            &collection,
            json!({"apiVersion": sample.object()["apiVersion"], "kind": sample.object["kind"]}),
        ),
        post(&format!("{collection}?dryRun=All"), sample.object()),
        post(&format!("{collection}?dryRun=Wrong"), sample.object()),
        get(&path),
        put(sample.object()),
        named(sample.create(), "a"),
        put(sample.with(&json!({"metadata": {"name": "wrong"}}))),
        put(sample.with(&json!({"metadata": {"resourceVersion": "1"}}))),
        put(sample.with(&json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}))),
        with_options(json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})),
        with_options(json!({"preconditions": {"resourceVersion": "1"}})),
        with_options(json!({"propagationPolicy": "Wrong"})),
        post(&path, sample.object()),
        step(format!("PUT {collection}")),
    ]
}

fn unknown_fields(sample: &Sample) -> Vec<Step> {
    let (collection, path) = (sample.collection(), sample.path());
    let object = sample.with(&json!({"extra": 1, "metadata": {"extra": {"a": 1}}}));
    // The real server reports the unknown fields of an applied object in any order.
    let one = sample.with(&json!({"extra": 1}));
    let strict = |validation: &str| {
        post(&format!("{collection}?dryRun=All&fieldValidation={validation}"), object.clone())
    };
    vec![
        strict("Strict"),
        strict("Warn"),
        strict("Ignore"),
        strict("Wrong"),
        post(&collection, object.clone()),
        sample.settled(get(&path)),
        patch(&format!("{path}?fieldValidation=Strict"), "merge", json!({"extra": {"a": 1}})),
        patch(&path, "merge", json!({"extra": 2})),
        patch(&format!("{path}?fieldManager=a&force=true&fieldValidation=Strict"), "apply", one.clone()),
        patch(&format!("{path}?fieldManager=a&force=true"), "apply", one),
    ]
}

fn finalizers(sample: &Sample) -> Vec<Step> {
    let (collection, path) = (sample.collection(), sample.path());
    let policy = |policy: &str| Step { body: json!({"propagationPolicy": policy}), ..delete(&path) };
    let mut gone = get(&path);
    gone.until = Some(Until { status: Some(404), field: String::new(), is: Value::Null });
    let steps = vec![
        post(&collection, sample.with(&json!({"metadata": {"finalizers": ["example.com/wait"]}}))),
        sample.settled(get(&path)),
        // Kinds that leave their dependents behind are parted from them some time later.
        if sample.orphans() { policy("Background") } else { delete(&path) },
        get(&path),
        if sample.orphans() { policy("Background") } else { delete(&path) },
        patch(&path, "merge", json!({"metadata": {"finalizers": ["example.com/wait", "example.com/more"]}})),
        patch(&path, "merge", json!({"metadata": {"labels": {"still": "writable"}}})),
        accepting(get(&path), "table"),
        policy("Background"),
        patch(&path, "merge", json!({"metadata": {"finalizers": null}})),
        gone,
    ];
    unsettled(sample, steps, 3)
}

/// A definition changes by itself for a while: of what comes after some steps only the status is compared.
fn unsettled(sample: &Sample, steps: Vec<Step>, first: usize) -> Vec<Step> {
    let loosen = |(index, step): (usize, Step)| Step {
        only_status: step.only_status || (sample.is_definition() && index >= first),
        ..step
    };
    steps.into_iter().enumerate().map(loosen).collect()
}

fn selection(sample: &Sample) -> Vec<Step> {
    let collection = sample.collection();
    let labelled = |mut object: Value, label: &str| {
        merge(&mut object, &json!({"metadata": {"labels": {"set": "$id", "which": label}}}));
        object
    };
    let select = |selector: &str| get(&format!("{collection}?labelSelector=set=$id{selector}"));
    let name = sample.name();
    // Kinds that leave their dependents behind are gone only some time later.
    let policy = if sample.orphans() { "&propagationPolicy=Background" } else { "" };
    let mut first = post(&collection, labelled(sample.object(), "a"));
    "a".clone_into(&mut first.name);
    let steps = vec![
        first,
        post(&collection, labelled(sample.second(), "b")),
        select(""),
        select(",which=b"),
        select(",which!=b"),
        select(",which%20in%20(a,c)"),
        select(",!which"),
        named(select("&limit=1"), "page"),
        select("&limit=1&continue=$page.metadata.continue"),
        accepting(select("&limit=1"), "table"),
        get(&format!("{collection}?fieldSelector=metadata.name={name}")),
        get(&format!("{collection}?fieldSelector=metadata.name!={name}&labelSelector=set=$id")),
        get(&format!("{collection}?fieldSelector=spec.none=a")),
        step(format!(
            "GET {collection}?watch=true&timeoutSeconds=3&labelSelector=set=$id&resourceVersion=$a.metadata.resourceVersion"
        )),
        step(format!("DELETE {collection}?labelSelector=set=$id,which=a{policy}")),
        step(format!("DELETE {collection}?labelSelector=set=$id{policy}")),
    ];
    unsettled(sample, steps, 2)
}

fn status(sample: &Sample) -> Vec<Step> {
    let path = sample.path();
    let status = format!("{path}/status");
    let change = json!({"status": sample.status});
    let typed = json!({"apiVersion": sample.object()["apiVersion"], "kind": sample.object["kind"]});
    let mut applied = typed;
    merge(&mut applied, &json!({"metadata": {"name": sample.name()}, "status": sample.status}));
    vec![
        sample.create(),
        get(&status),
        patch(&status, "merge", change.clone()),
        patch(&status, "merge", change.clone()),
        patch(&path, "merge", change.clone()),
        named(get(&path), "a"),
        patch(&status, "strategic", change),
        patch(&status, "merge", json!({"spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}})),
        Step { from: "a".to_owned(), ..step(format!("PUT {status}")) },
        Step {
            from: "a".to_owned(),
            body: json!({"metadata": {"resourceVersion": null}}),
            ..step(format!("PUT {status}"))
        },
        patch(&format!("{status}?fieldManager=controller"), "apply", applied),
        patch(&status, "json", json!([{"op": "remove", "path": "/status"}])),
        get(&path),
        delete(&status),
    ]
}

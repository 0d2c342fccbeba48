//! What is kept of a recording: the same, however often and on whatever machine it is made.
//!
//! IDs get names that say what they are, what is random or a time is left out, and a launch is one document: the
//! claim, and the fleet with what is in its launch templates instead of their names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::play::Played;

/// What is kept.
pub(crate) struct Golden {
    /// What AWS had.
    pub(crate) world: Value,
    /// Claims, each with the fleet that was asked for.
    pub(crate) launches: Value,
    /// All other requests, each once.
    pub(crate) requests: Value,
}

/// Parameters that differ from time to time.
const ALWAYS_NEW: [&str; 4] = ["ClientToken", "StartTime", "ReceiptHandle", "NextToken"];

pub(crate) fn golden(played: &Played) -> Result<Golden> {
    let names = Names::new(played);
    let requests: Vec<Value> = played.requests.iter().map(|request| names.applied(request)).collect();
    let templates = templates(&requests);
    let mut launches = Vec::new();
    let mut others = BTreeSet::new();
    for request in &requests {
        let is = |action: &str| request["action"] == action;
        let is_try = request["parameters"]["DryRun"] == "true";
        if is("CreateFleet") && !is_try {
            let fleet = resolved(&request["parameters"], &templates)?;
            let pool = tag(&fleet["TagSpecification"], "karpenter.sh/nodepool");
            launches.push((pool, fleet));
        } else if is("CreateFleet") || is("RunInstances") {
            let mut check = request.clone();
            check["parameters"] = resolved(&request["parameters"], &templates)?;
            others.insert(sorted(&check));
        } else if !is("CreateLaunchTemplate") {
            let mut request = request.clone();
            tidy(&mut request["parameters"]);
            others.insert(sorted(&request));
        }
    }
    let launches = with_claims(launches, played, &names)?;
    let others: Result<Vec<Value>> = others.iter().map(unsorted).collect();
    Ok(Golden { world: world(played, &names), launches, requests: Value::Array(others?) })
}

/// A request without what came of it, in a form that sorts by service and action.
fn sorted(request: &Value) -> [String; 3] {
    let mut parameters = request["parameters"].clone();
    // How many were asked for together is a matter of time.
    if let Some(ids) = parameters.get_mut("InstanceId").and_then(Value::as_array_mut) {
        ids.truncate(1);
    }
    let text = |field: &str| request[field].as_str().unwrap_or_default().to_owned();
    [text("service"), text("action"), parameters.to_string()]
}

fn unsorted([service, action, parameters]: &[String; 3]) -> Result<Value> {
    let parameters: Value = serde_json::from_str(parameters)?;
    Ok(json!({"service": service, "action": action, "parameters": parameters}))
}

/// New names for what is called otherwise every time.
struct Names(BTreeMap<String, String>);

impl Names {
    fn new(played: &Played) -> Self {
        let mut names = BTreeMap::new();
        for subnet in &played.made.subnets {
            let letter = subnet.zone.chars().next_back().unwrap_or_default();
            names.insert(subnet.id.clone(), format!("subnet-{letter}"));
        }
        for group in &played.made.security_groups {
            let last = group.name.rsplit('-').next().unwrap_or_default();
            names.insert(group.id.clone(), format!("sg-{last}"));
        }
        for (class, uid) in &played.classes {
            names.insert(uid.clone(), format!("uid-of-{class}"));
        }
        for claim in &played.claims {
            let name = claim["metadata"]["name"].as_str().unwrap_or_default();
            names.insert(name.to_owned(), "a-claim".to_owned());
        }
        for request in &played.requests {
            let parameters = &request["parameters"];
            if request["action"] == "CreateInstanceProfile" {
                let name = parameters["InstanceProfileName"].as_str().unwrap_or_default();
                let class = pairs(&parameters["Tags"]).remove("karpenter.k8s.aws/ec2nodeclass");
                names.insert(name.to_owned(), format!("profile-of-{}", class.unwrap_or_default()));
            }
        }
        Self(names)
    }

    fn applied(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|each| self.applied(each)).collect()),
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(key, _)| !ALWAYS_NEW.contains(&key.as_str()));
                Value::Object(kept.map(|(key, value)| (key.clone(), self.applied(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        if let Some(name) = self.0.get(text) {
            return name.clone();
        }
        for (prefix, name) in [("i-", "an-instance"), ("lt-", "a-template"), ("ip-10-100-", "a-node")] {
            if text.starts_with(prefix) {
                return name.to_owned();
            }
        }
        if text.starts_with("http://127.0.0.1") {
            return "a-queue".to_owned();
        }
        // Names inside of names, such as the path of an instance profile.
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}

/// The content of each launch template, by name.
fn templates(requests: &[Value]) -> BTreeMap<String, Value> {
    let created = requests.iter().filter(|request| request["action"] == "CreateLaunchTemplate");
    created
        .filter_map(|request| {
            let mut content = request["parameters"].clone();
            let name = content.as_object_mut()?.remove("LaunchTemplateName")?;
            Some((name.as_str()?.to_owned(), content))
        })
        .collect()
}

/// A request with the content of its launch templates instead of their names.
fn resolved(parameters: &Value, templates: &BTreeMap<String, Value>) -> Result<Value> {
    let mut parameters = parameters.clone();
    let content = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        templates.get(name).cloned().with_context(|| format!("{name} was never created"))
    };
    if let Some(configs) = parameters.get_mut("LaunchTemplateConfigs").and_then(Value::as_array_mut) {
        for config in configs {
            let name = &mut config["LaunchTemplateSpecification"]["LaunchTemplateName"];
            *name = content(name)?;
        }
    }
    if let Some(name) = parameters.pointer_mut("/LaunchTemplate/LaunchTemplateName") {
        *name = content(name)?;
    }
    tidy(&mut parameters);
    Ok(parameters)
}

/// Lists whose order means nothing are sorted; user data is decoded.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                tidy(value);
                if let (Value::Array(items), true) = (&mut *value, is_set(key)) {
                    items.sort_by_key(Value::to_string);
                }
                match (key.as_str(), &*value) {
                    ("UserData", Value::String(text)) => *value = Value::String(decoded(text)),
                    // What is left of names after their content was put in their place.
                    ("LaunchTemplateName", Value::String(_)) => *value = json!("a-template"),
                    ("LaunchTemplateName", Value::Array(_)) => *value = json!(["a-template"]),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn is_set(key: &str) -> bool {
    let sets = [
        "LaunchTemplateConfigs",
        "Overrides",
        "TagSpecification",
        "Tag",
        "Tags",
        "SecurityGroupId",
        "Filter",
        "Value",
    ];
    sets.contains(&key)
}

/// Base64, decoded; no crate is needed for something that is read by people.
fn decoded(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let Some(value) = LETTERS.iter().position(|each| *each == letter) else { continue };
        bits = (bits << 6) | u32::try_from(value).unwrap_or_default();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Tags as a map.
fn pairs(tags: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tags = tags.as_array().into_iter().flatten();
    tags.map(|each| (text(&each["Key"]), text(&each["Value"]))).collect()
}

fn tag(specifications: &Value, key: &str) -> String {
    let all = specifications.as_array().into_iter().flatten();
    all.flat_map(|each| pairs(&each["Tag"]))
        .find(|(found, _)| found == key)
        .map(|(_, value)| value)
        .unwrap_or_default()
}

/// Each fleet with the claim that it was for.
fn with_claims(fleets: Vec<(String, Value)>, played: &Played, names: &Names) -> Result<Value> {
    let mut launches = Vec::new();
    let mut claims: Vec<Value> = played.claims.iter().map(|claim| names.applied(claim)).collect();
    for (pool, fleet) in fleets {
        let kind = &fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"];
        let fits = |claim: &Value| {
            let mut of_kind = claim["spec"]["requirements"].as_array().into_iter().flatten();
            claim["metadata"]["labels"]["karpenter.sh/nodepool"] == *pool
                && of_kind.any(|each| {
                    each["key"] == "karpenter.sh/capacity-type" && each["values"] == json!([kind])
                })
        };
        let found = claims.iter().position(fits).with_context(|| format!("a claim of {pool} for {fleet}"))?;
        launches.push(json!({"claim": bare(&claims.remove(found)), "fleet": fleet}));
    }
    launches.sort_by_key(Value::to_string);
    Ok(Value::Array(launches))
}

/// A claim as its author wrote it.
fn bare(claim: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "labels", "annotations"] {
        metadata.insert(field.to_owned(), claim["metadata"][field].clone());
    }
    let mut spec = claim["spec"].clone();
    if let Some(requirements) = spec["requirements"].as_array_mut() {
        requirements.sort_by_key(|each| each["key"].to_string());
    }
    json!({"apiVersion": claim["apiVersion"], "kind": claim["kind"], "metadata": metadata, "spec": spec})
}

fn world(played: &Played, names: &Names) -> Value {
    let parameters: BTreeMap<&str, &str> = played
        .requests
        .iter()
        .filter_map(|each| Some((each["parameters"]["Name"].as_str()?, each["answer"].as_str()?)))
        .collect();
    let subnets: Vec<Value> = played
        .made
        .subnets
        .iter()
        .map(|each| json!({"id": names.text(&each.id), "zone": each.zone, "zoneId": each.zone_id}))
        .collect();
    let groups: Vec<Value> = played
        .made
        .security_groups
        .iter()
        .map(|each| json!({"id": names.text(&each.id), "name": each.name}))
        .collect();
    let mut images = played.images.clone();
    if let Some(images) = images.as_array_mut() {
        images.sort_by_key(|each| each["id"].to_string());
    }
    json!({"images": images, "parameters": parameters, "subnets": subnets, "securityGroups": groups})
}

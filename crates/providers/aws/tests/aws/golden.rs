//! What we ask of AWS is what the original controller asked of it in the same cluster, recorded in `data/golden`.

use std::collections::{BTreeMap, BTreeSet};

use api::nodeclaim::NodeClaim;
use aws::double::Stored;
use aws::port::{Image, SecurityGroup, SpotPrice, Subnet, Tags, TypeInZone};
use cloud::CloudProvider as _;
use runtime::metrics::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::play::{CLASSES, Play};
use crate::recorder::Recorder;
use crate::support::info;

const CLUSTER: &str = include_str!("../data/golden/cluster.yaml");
const WORLD: &str = include_str!("../data/golden/world.json");
const LAUNCHES: &str = include_str!("../data/golden/launches.json");
const REQUESTS: &str = include_str!("../data/golden/requests.json");

/// What is compared beside launches.
const ACTIONS: [&str; 15] = [
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeImages",
    "GetParameter",
    "TerminateInstances",
    "CreateInstanceProfile",
    "AddRoleToInstanceProfile",
    "RemoveRoleFromInstanceProfile",
    "DeleteInstanceProfile",
    "ListInstanceProfiles",
    "GetInstanceProfile",
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeLaunchTemplates",
    "DeleteLaunchTemplate",
];

/// What we do not ask, see `docs/differences.md`.
const LEFT_OUT: [&str; 1] = [r#"DescribeLaunchTemplates {"LaunchTemplateName":["a-template"]}"#];

/// When all images were published.
const PUBLISHED: &str = "2026-01-01T00:00:00Z";

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn manifests(kind: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(CLUSTER).unwrap();
    all.into_iter().filter(|each| each["kind"] == kind).collect()
}

/// The same cluster in the same AWS, with all classes ready.
fn started() -> (Play, Recorder) {
    started_with(&BTreeMap::new())
}

/// A NodePool that takes one instance type only, if there is one for its class.
fn narrowed(mut pool: Value, types: &BTreeMap<String, String>) -> Value {
    let spec = &mut pool["spec"]["template"]["spec"];
    if let Some(only) = types.get(&text(&spec["nodeClassRef"]["name"])) {
        let key = "node.kubernetes.io/instance-type";
        let requirements = spec["requirements"].as_array_mut().unwrap();
        requirements.retain(|each| each["key"] != key);
        requirements.push(json!({"key": key, "operator": "In", "values": [only]}));
    }
    pool
}

/// The same cluster, in which some classes are used with one instance type only.
fn started_with(only: &BTreeMap<String, String>) -> (Play, Recorder) {
    let types: BTreeSet<String> = items(&parsed(LAUNCHES)).flat_map(types_of).collect();
    let mut recorder = None;
    let mut play = Play::asking(&types.iter().map(String::as_str).collect::<Vec<_>>(), &[], |double| {
        fill(double, &types);
        recorder.insert(Recorder::new(double.services())).services()
    });
    let (leads, leading) = watch::channel(true);
    for controller in play.world.block_on(async { play.aws.controllers() }) {
        play.world.spawn(controller.run(leading.clone(), Registry::default()));
    }
    // It leads as long as the world lasts.
    std::mem::forget(leads);
    play.pass(5);
    let pools = manifests("NodePool").into_iter().map(|pool| narrowed(pool, only));
    for manifest in pools.chain(manifests("EC2NodeClass")) {
        play.world.apply(&manifest.to_string());
    }
    play.pass(60);
    for class in manifests("EC2NodeClass") {
        let class = play.world.get(&format!("{CLASSES}/{}", text(&class["metadata"]["name"]))).unwrap();
        let mut conditions = items(&class["status"]["conditions"]);
        assert!(conditions.any(|each| each["type"] == "Ready" && each["status"] == "True"), "{class:#}");
    }
    (play, recorder.unwrap())
}

/// The instance types that a launch allows.
fn types_of(launch: &Value) -> Vec<String> {
    let requirements = items(&launch["claim"]["spec"]["requirements"]);
    let of_types = requirements.filter(|each| each["key"] == "node.kubernetes.io/instance-type");
    of_types.flat_map(|each| items(&each["values"])).map(text).collect()
}

fn fill(double: &aws::double::Double, types: &BTreeSet<String>) {
    let had = parsed(WORLD);
    let named = |name: String, discovery: bool| -> Tags {
        let discovery = discovery.then(|| ("karpenter.sh/discovery".to_owned(), "test-cluster".to_owned()));
        [("Name".to_owned(), name)].into_iter().chain(discovery).collect()
    };
    double.change(|world| {
        world.types = types.iter().map(|name| info(name)).collect();
        world.subnets = items(&had["subnets"])
            .map(|each| {
                let (id, zone) = (text(&each["id"]), text(&each["zone"]));
                let name = id.replace("subnet", "test-cluster");
                let item = Subnet { id, zone, zone_id: text(&each["zoneId"]), available_addresses: 16_379 };
                Stored { item, tags: named(name, true) }
            })
            .collect();
        world.security_groups = items(&had["securityGroups"])
            .map(|each| {
                let item = SecurityGroup { id: text(&each["id"]), name: text(&each["name"]) };
                Stored { tags: named(item.name.clone(), true), item }
            })
            .collect();
        world.images = items(&had["images"])
            .map(|each| {
                let item = Image {
                    id: text(&each["id"]),
                    name: text(&each["name"]),
                    architecture: text(&each["architecture"]),
                    created: Some(PUBLISHED.parse().unwrap()),
                    ..Image::default()
                };
                Stored { item, tags: Tags::new() }
            })
            .collect();
        let parameters = had["parameters"].as_object().unwrap();
        world.parameters = parameters.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let zones: Vec<String> = world.subnets.iter().map(|each| each.item.zone.clone()).collect();
        let places = types.iter().flat_map(|name| zones.iter().map(move |zone| (name.clone(), zone.clone())));
        world.places = places.map(|(instance_type, zone)| TypeInZone { instance_type, zone }).collect();
        world.spot_prices = world
            .places
            .iter()
            .map(|place| SpotPrice {
                instance_type: place.instance_type.clone(),
                zone: place.zone.clone(),
                price: 0.00001,
            })
            .collect();
        world.roles = ["KarpenterNodeRole-test-cluster".to_owned()].into();
        let own = aws::port::InstanceProfile {
            name: "KarpenterNodeInstanceProfile-test-cluster".to_owned(),
            ..Default::default()
        };
        world.profiles.insert(own.name.clone(), own);
    });
}

/// What the recording calls what is called otherwise every time.
fn names(play: &Play) -> BTreeMap<String, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for class in manifests("EC2NodeClass") {
        let name = text(&class["metadata"]["name"]);
        if let Some(class) = play.world.get(&format!("{CLASSES}/{name}")) {
            names.insert(text(&class["metadata"]["uid"]), format!("uid-of-{name}"));
            if class["spec"]["role"].is_string() {
                names.insert(text(&class["status"]["instanceProfile"]), format!("profile-of-{name}"));
            }
        }
    }
    names
}

/// Requests under the names that the recording uses, with lists whose order means nothing sorted.
fn normal(requests: &[Value], names: &BTreeMap<String, String>) -> Vec<Value> {
    requests.iter().map(|request| tidy(request.clone(), "", names)).collect()
}

/// Lists whose order means nothing.
const SETS: [&str; 8] = [
    "LaunchTemplateConfigs",
    "Overrides",
    "TagSpecification",
    "Tag",
    "Tags",
    "SecurityGroupId",
    "Filter",
    "Value",
];

fn tidy(value: Value, key: &str, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            // Pages are no matter of the port.
            .filter(|(key, _)| key != "MaxResults")
            .map(|(key, value)| (key.clone(), tidy(value, &key, names)))
            .collect(),
        Value::Array(all) => {
            let mut all: Vec<Value> = all.into_iter().map(|each| tidy(each, "", names)).collect();
            if SETS.contains(&key) {
                all.sort_by_key(Value::to_string);
            }
            Value::Array(all)
        }
        Value::String(text) if key == "UserData" => meaning(&text),
        Value::String(text) if key == "Priority" => json!(text.parse::<f64>().unwrap()),
        Value::String(text) if text.starts_with("i-") => json!("an-instance"),
        Value::String(_) if key == "LaunchTemplateId" => json!("a-template"),
        Value::String(text) => {
            json!(names.iter().fold(text, |text, (from, to)| text.replace(from, to)))
        }
        other => other,
    }
}

/// User data as it is read: YAML and TOML can be written in more than one way.
fn meaning(user_data: &str) -> Value {
    if user_data.starts_with("MIME-Version") {
        let part = |part: &str| match part.split_once("application/node.eks.aws") {
            Some((_, body)) => serde_saphyr::from_str::<Value>(body).unwrap(),
            None => json!(part),
        };
        return user_data.split("--//").map(part).collect();
    }
    match toml::from_str::<Value>(user_data) {
        Ok(settings) => settings,
        Err(_) => json!(user_data),
    }
}

/// Where two documents differ, a line for each place.
fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys()).collect::<BTreeSet<_>>() {
                let missing = Value::Null;
                let (left, right) = (left.get(key).unwrap_or(&missing), right.get(key).unwrap_or(&missing));
                differences(&format!("{path}/{key}"), left, right, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}/{index}"), left, right, found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push(format!("{path}\n  theirs {theirs}\n  ours   {ours}")),
    }
}

#[test]
fn a220_every_launch_asks_for_what_the_original_asks_for() {
    let (play, recorder) = started();
    let names = names(&play);
    let mut found = Vec::new();
    let (mut classes, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for launch in items(&parsed(LAUNCHES)) {
        let claim: NodeClaim = serde_json::from_value(launch["claim"].clone()).unwrap();
        classes.insert(claim.spec.node_class_ref.name.clone());
        targets.insert(text(&launch["fleet"]["TargetCapacitySpecification"]["DefaultTargetCapacityType"]));
        let before = recorder.asked().len();
        let launched = play.create(&claim).unwrap();
        let asked = normal(&recorder.asked()[before..], &names);
        let is_launch =
            |each: &&Value| each["action"] == "CreateFleet" && each["parameters"]["DryRun"].is_null();
        let fleets: Vec<&Value> = asked.iter().filter(is_launch).collect();
        assert_eq!(fleets.len(), 1, "{fleets:#?}");
        let theirs = tidy(launch["fleet"].clone(), "", &BTreeMap::new());
        // What is launched is one of the offerings, from a template with everything in it.
        let configs: Vec<&Value> = items(&fleets[0]["parameters"]["LaunchTemplateConfigs"]).collect();
        let status = launched.status.as_ref().unwrap();
        let labels = launched.metadata.labels.as_ref().unwrap();
        let is_offered = configs.iter().flat_map(|config| items(&config["Overrides"])).any(|offer| {
            offer["InstanceType"] == labels["node.kubernetes.io/instance-type"].as_str()
                && offer["AvailabilityZone"] == labels["topology.kubernetes.io/zone"].as_str()
                && offer["ImageId"] == status.image_id.as_str()
        });
        assert!(is_offered, "{launched:?}");
        for config in configs {
            let data = &config["LaunchTemplateSpecification"]["LaunchTemplateName"]["LaunchTemplateData"];
            assert!(!data["UserData"].is_null() && data["ImageId"].is_string(), "{config:#}");
        }
        let path = format!("{} {}", claim.spec.node_class_ref.name, theirs["TargetCapacitySpecification"]);
        differences(&path, &theirs, &fleets[0]["parameters"], &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Every class was launched with, and both ways to pay were recorded.
    let all: BTreeSet<String> =
        manifests("EC2NodeClass").iter().map(|class| text(&class["metadata"]["name"])).collect();
    assert_eq!(classes, all);
    assert_eq!(targets, ["on-demand", "spot"].map(str::to_owned).into());
}

/// The parameters of all requests of an action.
fn of_action(requests: &[Value], action: &str) -> BTreeSet<String> {
    let found = requests.iter().filter(|request| request["action"] == action);
    found.map(|request| request["parameters"].to_string()).collect()
}

#[test]
fn a221_classes_ask_the_same_questions_and_take_the_same_steps_to_leave_nothing_behind() {
    let (mut play, recorder) = started();
    let names = names(&play);
    let claim = serde_json::from_value(parsed(LAUNCHES)[0]["claim"].clone()).unwrap();
    let launched = play.create(&claim).unwrap();
    play.world.block_on(play.aws.delete(&launched)).unwrap();
    for class in manifests("EC2NodeClass") {
        play.world.delete(&format!("{CLASSES}/{}", text(&class["metadata"]["name"])));
    }
    play.pass(30);
    let theirs = normal(parsed(REQUESTS).as_array().unwrap(), &BTreeMap::new());
    let ours = normal(&recorder.asked(), &names);
    let mut found = Vec::new();
    for action in ACTIONS {
        let (theirs, ours) = (of_action(&theirs, action), of_action(&ours, action));
        assert!(!theirs.is_empty(), "{action} was not recorded");
        let missing = theirs.difference(&ours).map(|request| format!("{action} {request}"));
        found.extend(
            missing
                .filter(|each| !LEFT_OUT.contains(&each.as_str()))
                .map(|each| format!("only theirs: {each}")),
        );
        found.extend(ours.difference(&theirs).map(|request| format!("only ours:   {action} {request}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The tries of an action, by the class that they are for.
fn tries<'a>(requests: &'a [Value], action: &str) -> BTreeMap<String, Vec<&'a Value>> {
    let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    let tries = requests.iter().filter(|request| request["action"] == action);
    for parameters in tries.map(|request| &request["parameters"]).filter(|each| each["DryRun"] == "true") {
        let tags = items(&parameters["TagSpecification"][0]["Tag"]);
        let class =
            tags.filter(|tag| tag["Key"] == "karpenter.k8s.aws/ec2nodeclass").map(|tag| text(&tag["Value"]));
        let all = found.entry(class.collect()).or_default();
        if !all.contains(&parameters) {
            all.push(parameters);
        }
    }
    found
}

/// A try without the zones of its subnets, which only we name. They are the zones that the subnets are in.
fn without_zones(value: &Value, zones: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(fields) => {
            if let (Some(zone), Some(subnet)) = (fields.get("AvailabilityZone"), fields.get("SubnetId")) {
                assert_eq!(zones[&text(subnet)], text(zone));
            }
            let kept = fields.iter().filter(|(key, _)| key.as_str() != "AvailabilityZone");
            kept.map(|(key, value)| (key.clone(), without_zones(value, zones))).collect()
        }
        Value::Array(all) => all.iter().map(|each| without_zones(each, zones)).collect(),
        other => other.clone(),
    }
}

/// The original tries Windows with a template that has room for no pod; ours is the one that nodes get.
fn with_pods(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), with_pods(value))).collect(),
        Value::Array(all) => all.iter().map(with_pods).collect(),
        Value::String(text) if text.starts_with("<powershell>") => {
            assert!(text.contains(" --max-pods=0'"), "{text}");
            json!(text.replace(" --max-pods=0'", " --max-pods=110'"))
        }
        other => other.clone(),
    }
}

#[test]
fn a222_what_classes_try_out_is_what_the_original_tries_out() {
    let theirs = normal(parsed(REQUESTS).as_array().unwrap(), &BTreeMap::new());
    // The original tries any type that will do: our pools take that one only.
    let tried: BTreeMap<String, String> = tries(&theirs, "RunInstances")
        .into_iter()
        .map(|(class, tries)| (class, text(&tries[0]["InstanceType"])))
        .collect();
    assert_eq!(tried.len(), manifests("EC2NodeClass").len());
    let (play, recorder) = started_with(&tried);
    let zones: BTreeMap<String, String> =
        items(&parsed(WORLD)["subnets"]).map(|each| (text(&each["id"]), text(&each["zone"]))).collect();
    let ours = normal(&recorder.asked(), &names(&play));
    let mut found = Vec::new();
    for action in ["CreateFleet", "RunInstances"] {
        let (theirs, ours) = (tries(&theirs, action), tries(&ours, action));
        assert!(theirs.keys().eq(ours.keys()), "{:?} {:?}", theirs.keys(), ours.keys());
        for (class, theirs) in &theirs {
            assert_eq!((theirs.len(), ours[class].len()), (1, 1), "{action} {class}");
            let (theirs, ours) = (with_pods(theirs[0]), without_zones(ours[class][0], &zones));
            differences(&format!("{action} {class}"), &theirs, &ours, &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

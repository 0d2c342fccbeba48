//! What an administrator gives the controller on AWS: enough, not too much, and everywhere the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::*;

/// What IAM accepts as one managed policy. It does not count white space.
const MOST_CHARACTERS: usize = 6_144;

/// What is allowed although nobody calls it.
const NOT_CALLED: [(&str, &str); 2] = [
    (
        "iam:PassRole",
        "IAM asks for it when an instance is launched with a profile, and when a profile gets a role",
    ),
    ("iam:TagInstanceProfile", "IAM asks for it when a profile is created with tags"),
];

/// The policies by file name, with the longest names there are.
fn policies() -> BTreeMap<String, String> {
    let names = [
        ("${ClusterName}", "c".repeat(100)),
        ("${Partition}", "aws-us-gov".to_owned()),
        ("${Region}", "us-isof-south-1".to_owned()),
        ("${AccountId}", "123456789012".to_owned()),
        ("${NodeRole}", "r".repeat(64)),
        ("${ControllerRole}", "r".repeat(64)),
        ("${QueueName}", "q".repeat(80)),
    ];
    let files = fs::read_dir(folder().join("policies")).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let mut text = fs::read_to_string(&path).unwrap();
            for (name, value) in &names {
                text = text.replace(name, value);
            }
            (path.file_name().unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
}

/// The statements of all policies.
fn statements() -> Vec<Value> {
    let parsed = policies().into_values().map(|text| serde_json::from_str::<Value>(&text).unwrap());
    parsed.flat_map(|policy| policy["Statement"].as_array().unwrap().clone()).collect()
}

/// One word or a list of them.
fn words(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(word) => BTreeSet::from([word.clone()]),
        other => other.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect(),
    }
}

fn allowed() -> BTreeSet<String> {
    statements().iter().flat_map(|statement| words(&statement["Action"])).collect()
}

/// The text of all files below a folder, without those that only pretend to be AWS, and without the doctor, which
/// names everything that must be allowed; its list is compared with the policies beside it.
fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if !path.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part.starts_with("double") || part == "doctor"
        }) {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

/// The operations that the provider names when it calls them, such as `ec2:CreateFleet`.
fn called() -> BTreeSet<String> {
    let services = ["arc-zonal-shift", "ec2", "eks", "iam", "pricing", "servicequotas", "sqs", "ssm"];
    let mut text = String::new();
    for folder in ["crates/providers/aws/src", "crates/providers/aws-sdk/src"] {
        sources(&root().join(folder), &mut text);
    }
    let operations = text.split('"').filter(|literal| {
        literal.split_once(':').is_some_and(|(service, operation)| {
            services.contains(&service)
                && operation.starts_with(|c: char| c.is_ascii_uppercase())
                && operation.chars().all(|c| c.is_ascii_alphanumeric())
        })
    });
    operations.map(str::to_owned).collect()
}

#[test]
fn each_policy_fits_with_the_longest_names() {
    let policies = policies();
    assert_eq!(policies.len(), 7);
    for (name, text) in policies {
        assert!(!text.contains("${"), "{name} has a name that nobody fills in:\n{text}");
        let policy: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(policy["Version"], "2012-10-17", "{name}");
        let characters = text.chars().filter(|c| !c.is_whitespace()).count();
        assert!(characters <= MOST_CHARACTERS, "{name} has {characters} characters");
    }
}

#[test]
fn what_the_provider_calls_is_allowed_and_nothing_else() {
    let (allowed, called) = (allowed(), called());
    assert!(called.len() > 30, "the operations are written in another way: {called:?}");
    assert_eq!(called.difference(&allowed).collect::<Vec<_>>(), Vec::<&String>::new(), "not allowed");
    let not_called: Vec<&str> = allowed.difference(&called).map(String::as_str).collect();
    assert_eq!(not_called, NOT_CALLED.map(|(action, _)| action));
}

#[test]
fn what_changes_something_is_tied_to_the_cluster() {
    let cluster = "c".repeat(100);
    let inputs = ["image", "snapshot", "security-group", "subnet", "capacity-reservation", "placement-group"];
    for statement in statements() {
        let (sid, actions) = (&statement["Sid"], words(&statement["Action"]));
        assert_eq!(statement["Effect"], "Allow", "{sid}");
        let reads = |action: &String| {
            let operation = action.split_once(':').unwrap().1;
            ["Describe", "Get", "List"].iter().any(|verb| operation.starts_with(verb))
        };
        let is_of_cluster = statement["Condition"].to_string().contains(&cluster)
            || words(&statement["Resource"]).iter().all(|resource| {
                // A role, a queue, or what launches only use.
                !resource.ends_with('*')
                    || inputs.iter().any(|kind| resource.ends_with(&format!(":{kind}/*")))
            });
        assert!(actions.iter().all(reads) || is_of_cluster, "{statement}");
    }
}

/// Whether a statement allows something, with what is known about it.
fn allows(statement: &Value, action: &str, resource: &str, context: &[(&str, &str)]) -> bool {
    let matches = |pattern: &str, text: &str| match pattern.split_once('*') {
        Some((start, end)) => text.starts_with(start) && text[start.len()..].ends_with(end),
        None => pattern == text,
    };
    let known = |key: &str| -> Vec<&str> {
        context.iter().filter(|(name, _)| *name == key).map(|(_, value)| *value).collect()
    };
    let holds = |operator: &str, key: &str, wanted: &Value| {
        let (wanted, values) = (words(wanted), known(key));
        let fits = |value: &&str| wanted.iter().any(|pattern| matches(pattern, value));
        match operator {
            "StringEquals" | "StringLike" => !values.is_empty() && values.iter().all(fits),
            "StringEqualsIfExists" | "ForAllValues:StringEquals" => values.iter().all(fits),
            other => panic!("the test does not know {other}"),
        }
    };
    let conditions = statement["Condition"].as_object().into_iter().flatten();
    words(&statement["Action"]).contains(action)
        && words(&statement["Resource"]).iter().any(|pattern| {
            // Other accounts' subnets can be shared with us, so that there are two wild cards.
            resource.starts_with(&pattern[..pattern.find('*').unwrap_or(pattern.len())])
                && pattern.rsplit(':').zip(resource.rsplit(':')).next().is_some_and(|(p, r)| matches(p, r))
        })
        && conditions
            .flat_map(|(operator, keys)| {
                keys.as_object().unwrap().iter().map(move |(key, v)| (operator, key, v))
            })
            .all(|(operator, key, wanted)| holds(operator, key, wanted))
}

#[test]
fn own_instances_are_launched_tagged_and_ended_and_others_are_left_alone() {
    let cluster = "c".repeat(100);
    let owned = format!("kubernetes.io/cluster/{cluster}");
    let of = |kind: &str| format!("arn:aws-us-gov:ec2:us-isof-south-1:1:{kind}/1");
    let (asks_owned, is_owned) = (format!("aws:RequestTag/{owned}"), format!("aws:ResourceTag/{owned}"));
    // As a launch, and the try-out of a class without a NodePool, tag it.
    let launch = [
        (&*asks_owned, "owned"),
        ("aws:RequestTag/eks:eks-cluster-name", &*cluster),
        ("aws:RequestTag/karpenter.sh/nodepool", ""),
        ("aws:RequestTag/karpenter.k8s.aws/ec2nodeclass", "default"),
    ];
    let own = [(&*is_owned, "owned"), ("aws:ResourceTag/karpenter.sh/nodepool", "default")];
    let other = [("aws:ResourceTag/kubernetes.io/cluster/other", "owned"), own[1]];
    let all = statements();
    let is_allowed = |action: &str, kind: &str, context: &[(&str, &str)]| {
        all.iter().any(|statement| allows(statement, action, &of(kind), context))
    };
    for kind in ["fleet", "instance", "volume", "network-interface", "spot-instances-request"] {
        assert!(is_allowed("ec2:CreateFleet", kind, &launch), "{kind}");
        assert!(!is_allowed("ec2:CreateFleet", kind, &launch[1..]), "{kind} without the tag of the cluster");
        let with = |action| [&launch[..], &[("ec2:CreateAction", action)]].concat();
        assert!(is_allowed("ec2:CreateTags", kind, &with("CreateFleet")), "{kind}");
        assert!(!is_allowed("ec2:CreateTags", kind, &with("CreateVolume")), "{kind}");
    }
    for kind in ["subnet", "security-group", "capacity-reservation", "placement-group"] {
        assert!(is_allowed("ec2:CreateFleet", kind, &[]), "{kind}");
    }
    assert!(is_allowed("ec2:RunInstances", "launch-template", &own));
    assert!(!is_allowed("ec2:RunInstances", "launch-template", &other));
    for (action, kind) in [
        ("ec2:TerminateInstances", "instance"),
        ("ec2:RebootInstances", "instance"),
        ("ec2:DeleteLaunchTemplate", "launch-template"),
    ] {
        assert!(is_allowed(action, kind, &own), "{action}");
        assert!(!is_allowed(action, kind, &other), "{action} of another cluster");
    }
    let later = |more: &[(&'static str, &'static str)]| [&own[..], more].concat();
    let keys = [("aws:TagKeys", "Name"), ("aws:TagKeys", "karpenter.sh/nodeclaim")];
    assert!(is_allowed("ec2:CreateTags", "instance", &later(&keys)));
    assert!(!is_allowed("ec2:CreateTags", "instance", &later(&[("aws:TagKeys", "team")])));
    assert!(!is_allowed("ec2:CreateTags", "instance", &[&other[..], &keys].concat()));
}

#[test]
fn the_template_has_the_policies_of_the_files() {
    check().unwrap();
    let template = template().unwrap();
    for name in policies().keys() {
        assert_eq!(template.matches(&format!("{MARK}{name}\n")).count(), 1, "{name}");
    }
    let old =
        "a:\n      # policies/x.json\n      PolicyDocument: !Sub |\n        {old}\n        {older}\n\nb:\n";
    let new = filled(old, |name| Ok(format!("{{\n\"{name}\": \"${{Region}}\"\n}}\n"))).unwrap();
    let expected = "a:\n      # policies/x.json\n      PolicyDocument: !Sub |\n        {\n        \"x.json\": \"${AWS::Region}\"\n        }\n\nb:\n";
    assert_eq!(new, expected);
    assert!(filled("      # policies/x.json\n", |_| Ok(String::new())).is_err());
}

#[test]
fn terraform_reads_the_same_files_and_fills_in_all_names() {
    let terraform = fs::read_to_string(folder().join("terraform/main.tf")).unwrap();
    assert!(
        terraform.contains(r#"templatefile("${path.module}/../policies/${each.key}.json", "#),
        "{terraform}"
    );
    for name in policies().keys() {
        let name = name.trim_end_matches(".json");
        assert!(terraform.contains(&format!("\"{name}\"")), "{name}");
    }
    for name in ["ClusterName", "Partition", "Region", "AccountId", "NodeRole", "ControllerRole", "QueueName"]
    {
        assert!(terraform.lines().any(|line| line.trim_start().starts_with(&format!("{name} "))), "{name}");
    }
}

#[test]
fn every_message_that_the_provider_understands_is_put_into_the_queue() {
    let source = root().join("crates/providers/aws/src/interruption/message.rs");
    let source = fs::read_to_string(source).unwrap();
    let kinds: Vec<&str> = source
        .lines()
        .filter(|line| line.starts_with("const "))
        .filter_map(|line| line.split('"').nth(1))
        .filter(|text| text.starts_with("EC2 ") || text.starts_with("AWS "))
        .collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    for file in ["cloudformation.yaml", "terraform/main.tf"] {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        for kind in &kinds {
            assert!(text.contains(kind), "{file} has no rule for {kind}");
        }
    }
}

/// The words in quotation marks of a part of a source file.
fn quoted(path: &str, from: &str, to: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let part = text.split_once(from).unwrap().1.split_once(to).unwrap().0;
    // Two lines can be one definition.
    part.split(';').flat_map(|line| line.split('"').skip(1).step_by(2).take(2)).map(str::to_owned).collect()
}

#[test]
fn the_guide_has_every_setting_and_every_reason() {
    let guide = fs::read_to_string(root().join("docs/aws.md")).unwrap();
    let flags = "crates/api/src/names/flags.rs";
    let core = quoted(flags, "/// Flags of the core.", "define! {");
    let own = quoted(flags, "pub mod aws {", "pub mod azure {");
    assert!(core.len() > 40 && own.len() == 26, "the flags are written in another way: {core:?} {own:?}");
    for pair in [core, own].concat().chunks(2) {
        let row = format!("| `--{}` | `{}` |", pair[0], pair[1]);
        assert!(guide.contains(&row), "there is no row {row}");
    }
    let reasons = "crates/api/src/names/reasons.rs";
    for reason in quoted(reasons, "/// Reasons of an EC2NodeClass's conditions.", "define! {") {
        assert!(guide.contains(&format!("`{reason}`")), "nothing is said about {reason}");
    }
}

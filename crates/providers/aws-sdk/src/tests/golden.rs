//! Questions and small steps that the original was recorded with are sent by us in the very same way.

use std::collections::{BTreeMap, BTreeSet};

use aws::port::{Filter, ImageQuery, LaunchTemplateQuery, LaunchTemplateRef, ProductQuery, Services, Tags};
use serde_json::Value;

use super::server::{Said, Server};

const REQUESTS: &str = include_str!("../../../aws/tests/data/golden/requests.json");

/// What is compared elsewhere, since templates are named by their content, or done otherwise, see
/// `docs/differences.md`.
const ELSEWHERE: [&str; 3] = ["CreateFleet", "RunInstances", "DeleteMessage"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn filters(parameters: &Value) -> Vec<Filter> {
    let all = parameters["Filter"].as_array().into_iter().flatten();
    all.map(|each| Filter { name: text(&each["Name"]), values: texts(&each["Value"]) }).collect()
}

fn tags(value: &Value) -> Tags {
    value.as_array().into_iter().flatten().map(|tag| (text(&tag["Key"]), text(&tag["Value"]))).collect()
}

/// Asks what was recorded. Nobody cares what comes back.
async fn ask(services: &Services, action: &str, parameters: &Value) {
    let Services { ec2, iam, eks, ssm, sqs, pricing, .. } = services;
    let field = |name: &str| text(&parameters[name]);
    let (all, ids) = (filters(parameters), texts(&parameters["InstanceId"]));
    match action {
        "DescribeSubnets" => drop(ec2.subnets(&all).await),
        "DescribeSecurityGroups" => drop(ec2.security_groups(&all).await),
        "DescribeInstances" => drop(ec2.instances(&ids, &all).await),
        "DescribeInstanceStatus" => drop(ec2.instance_statuses(&all).await),
        "DescribeInstanceTypes" if parameters["DryRun"] == "true" => drop(ec2.check_access().await),
        "DescribeInstanceTypes" => drop(ec2.instance_types().await),
        "DescribeInstanceTypeOfferings" => drop(ec2.instance_type_zones().await),
        "DescribeSpotPriceHistory" => drop(ec2.spot_prices(jiff::Timestamp::UNIX_EPOCH).await),
        "TerminateInstances" => drop(ec2.terminate_instances(&ids).await),
        "DescribeImages" => {
            let filters = all.into_iter().filter(|filter| filter.name != "state").collect();
            drop(ec2.images(&ImageQuery { filters, owners: texts(&parameters["Owner"]) }).await);
        }
        "DescribeLaunchTemplates" => {
            let named = texts(&parameters["LaunchTemplateName"]).into_iter().next();
            let query = named.map_or(LaunchTemplateQuery::Filters(all), LaunchTemplateQuery::Name);
            drop(ec2.launch_templates(&query).await);
        }
        "DeleteLaunchTemplate" => {
            let named = LaunchTemplateRef::Name(field("LaunchTemplateName"));
            drop(ec2.delete_launch_template(&named).await);
        }
        "CreateTags" => {
            let id = texts(&parameters["ResourceId"]).concat();
            drop(ec2.create_tags(&id, &tags(&parameters["Tag"])).await);
        }
        "GetInstanceProfile" => drop(iam.instance_profile(&field("InstanceProfileName")).await),
        "ListInstanceProfiles" => drop(iam.instance_profiles(&field("PathPrefix")).await),
        "DeleteInstanceProfile" => drop(iam.delete_instance_profile(&field("InstanceProfileName")).await),
        "CreateInstanceProfile" => {
            let (name, path) = (field("InstanceProfileName"), field("Path"));
            drop(iam.create_instance_profile(&name, &path, &tags(&parameters["Tags"])).await);
        }
        "AddRoleToInstanceProfile" => {
            drop(iam.add_role(&field("InstanceProfileName"), &field("RoleName")).await);
        }
        "RemoveRoleFromInstanceProfile" => {
            drop(iam.remove_role(&field("InstanceProfileName"), &field("RoleName")).await);
        }
        "GetParameter" => drop(ssm.parameter(&field("Name")).await),
        "GetQueueUrl" => drop(sqs.queue_url(&field("QueueName")).await),
        "ReceiveMessage" => drop(sqs.receive(&field("QueueUrl")).await),
        "GetProducts" => {
            let all = parameters["Filters"].as_array().into_iter().flatten();
            let filters = all.map(|each| (text(&each["Field"]), text(&each["Value"]))).collect();
            drop(pricing.products(&ProductQuery { filters }).await);
        }
        _ => match action.strip_prefix("GET /clusters/") {
            Some(name) => drop(eks.cluster(name).await),
            None => panic!("nobody knows how to ask {action}"),
        },
    }
}

/// Parameters without times, with lists whose order means nothing sorted, and under names of today.
fn tidy(mut parameters: Value) -> Value {
    let fields = parameters.as_object_mut().unwrap();
    fields.remove("Action");
    fields.remove("StartTime");
    // The older name of the same.
    if let Some(names) = fields.remove("AttributeNames") {
        fields.insert("MessageSystemAttributeNames".to_owned(), names);
    }
    for list in ["Filter", "Filters", "Tag", "Tags", "Owner"] {
        if let Some(Value::Array(all)) = fields.get_mut(list) {
            for values in all.iter_mut().filter_map(|each| each.get_mut("Value")?.as_array_mut()) {
                values.sort_by_key(Value::to_string);
            }
            all.sort_by_key(Value::to_string);
        }
    }
    parameters
}

#[tokio::test]
async fn what_the_original_asked_is_asked_in_the_same_words() {
    let recorded: Vec<Value> = serde_json::from_str(REQUESTS).unwrap();
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for request in &recorded {
        let (action, theirs) = (text(&request["action"]), &request["parameters"]);
        if ELSEWHERE.contains(&action.as_str()) {
            continue;
        }
        // Nobody asks again after this.
        let server = Server::start([Said::refusal(400, "Enough")]).await;
        ask(&server.services(&[]).await, &action, theirs).await;
        let heard = server.only();
        assert_eq!(heard.action(), action);
        assert_eq!(tidy(heard.parameters()), tidy(theirs.clone()), "{action}");
        let scope = format!("/{}/aws4_request", text(&request["service"]));
        assert!(heard.headers["authorization"].contains(&scope), "{:?}", heard.headers);
        *asked.entry(action).or_default() += 1;
    }
    let kinds: BTreeSet<&str> = asked.keys().map(String::as_str).collect();
    assert!(kinds.len() >= 23 && asked.values().sum::<usize>() >= 90, "{asked:?}");
}

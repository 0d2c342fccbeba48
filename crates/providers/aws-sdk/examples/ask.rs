//! Asks an AWS everything that the provider may ask, and says in a line each what came.
//!
//! It creates and deletes things: point it at a server of your own, such as moto's, with `AWS_ENDPOINT_URL`.
//! Arguments: the ID of a subnet and of an image that are there, the name of a cluster and of a queue.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context as _, Result};
use api::provider::Provider;
use aws::port::{
    Error, Filter, FleetOverride, FleetPurchase, FleetRequest, FleetTemplate, ImageQuery, LaunchTemplateData,
    LaunchTemplateQuery, LaunchTemplateRef, Listing, NewLaunchTemplate, PlacementGroupQuery,
    RunInstancesCheck, Services, Simulation, Tags, TemplateInterface, Trial,
};
use aws::prices::on_demand_queries;
use jiff::Timestamp;
use runtime::metrics::Registry;

const TEMPLATE: &str = "karpenter.k8s.aws/42";
const PROFILE: &str = "karpenter-example";
const PATH: &str = "/karpenter/us-east-1/example/";

struct Given {
    subnet: String,
    image: String,
    cluster: String,
    queue: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().with_context(|| format!("say the {what}"));
    let given = Given {
        subnet: next("subnet")?,
        image: next("image")?,
        cluster: next("cluster")?,
        queue: next("queue")?,
    };
    let metrics = Registry::for_provider(Provider::Aws);
    let connection = aws_sdk::connect("0.0.0", &metrics).await?;
    say(&format!("region {}", connection.region));
    let services = connection.services;
    look(&services, &given).await;
    profiles(&services).await;
    launch(&services, &given).await;
    messages(&services, &given).await;
    account(&services, &given).await;
    for line in metrics.page().lines().filter(|line| line.starts_with("aws_sdk_go_request_total")) {
        say(line);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn say(text: &str) {
    println!("{text}");
}

/// Shows how many there are, and the first.
fn list<T: Debug>(what: &str, answer: Result<Vec<T>, Error>) -> Vec<T> {
    match answer {
        Ok(all) => {
            say(&format!("{what}: {}, first {:?}", all.len(), all.first()));
            all
        }
        Err(error) => {
            say(&format!("{what}: {error} {:?} {:?}", error.status, error.fault));
            Vec::new()
        }
    }
}

fn one<T: Debug>(what: &str, answer: Result<T, Error>) -> Option<T> {
    list(what, answer.map(|one| vec![one])).pop()
}

async fn look(services: &Services, given: &Given) {
    let ec2 = &services.ec2;
    one("access", ec2.check_access().await);
    list("instance types", ec2.instance_types().await);
    list("zones", ec2.instance_type_zones().await);
    list("spot prices", ec2.spot_prices(Timestamp::UNIX_EPOCH).await);
    list("subnets", ec2.subnets(&[Filter::new("subnet-id", [&given.subnet])]).await);
    list("subnets by tag", ec2.subnets(&[Filter::tag("none", "*")]).await);
    list("security groups", ec2.security_groups(&[Filter::new("group-name", ["default"])]).await);
    let query = ImageQuery { filters: vec![Filter::new("image-id", [&given.image])], owners: Vec::new() };
    list("images", ec2.images(&query).await);
    let own = ImageQuery { filters: Vec::new(), owners: vec!["self".to_owned()] };
    list("images of ours", ec2.images(&own).await);
    list("reservations", ec2.capacity_reservations(&[], &[Filter::new("state", ["active"])]).await);
    list("placement groups", ec2.placement_groups(&PlacementGroupQuery::Name("none".to_owned())).await);
    list("statuses", ec2.instance_statuses(&[]).await);
    one("cluster", services.eks.cluster(&given.cluster).await);
    one("unknown cluster", services.eks.cluster("nowhere").await);
    one("parameter", services.ssm.parameter("/aws/service/global-infrastructure/version").await);
    let [shared, _] = on_demand_queries("us-east-1");
    list("products", services.pricing.products(&shared).await.map(|all| vec![all.len()]));
    list("zonal shifts", services.zonal_shift.shifts("arn:aws:eks:us-east-1:1:cluster/none").await);
}

async fn profiles(services: &Services) {
    let iam = &services.iam;
    let tags: Tags = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    one("unknown profile", iam.instance_profile("nobody").await);
    one("create profile", iam.create_instance_profile(PROFILE, PATH, &tags).await);
    one("create it again", iam.create_instance_profile(PROFILE, PATH, &tags).await);
    one("add role", iam.add_role(PROFILE, "no-such-role").await);
    one("remove role", iam.remove_role(PROFILE, "no-such-role").await);
    one("profile", iam.instance_profile(PROFILE).await);
    list("profiles", iam.instance_profiles(PATH).await);
    list("profiles elsewhere", iam.instance_profiles("/elsewhere/").await);
    one("delete profile", iam.delete_instance_profile(PROFILE).await);
}

fn template(given: &Given) -> NewLaunchTemplate {
    let interface = TemplateInterface { ipv4_prefixes: Some(1), ..TemplateInterface::default() };
    NewLaunchTemplate {
        name: TEMPLATE.to_owned(),
        tags: BTreeMap::from([("eks:eks-cluster-name".to_owned(), given.cluster.clone())]),
        data: LaunchTemplateData {
            image_id: given.image.clone(),
            instance_profile: PROFILE.to_owned(),
            tenancy: "default".to_owned(),
            interfaces: vec![interface],
            interface_tags: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            ..LaunchTemplateData::default()
        },
    }
}

async fn launch(services: &Services, given: &Given) {
    let ec2 = &services.ec2;
    let by_name = LaunchTemplateQuery::Name(TEMPLATE.to_owned());
    list("template before", ec2.launch_templates(&by_name).await);
    one("create template", ec2.create_launch_template(&template(given)).await);
    one("create it again", ec2.create_launch_template(&template(given)).await);
    list("template", ec2.launch_templates(&by_name).await);
    let by_tag = LaunchTemplateQuery::Filters(vec![Filter::tag("eks:eks-cluster-name", &given.cluster)]);
    list("templates of the cluster", ec2.launch_templates(&by_tag).await);
    let zones = ec2.subnets(&[Filter::new("subnet-id", [&given.subnet])]).await.unwrap_or_default();
    let offer = FleetOverride {
        instance_type: "m5.large".to_owned(),
        subnet_id: given.subnet.clone(),
        image_id: Some(given.image.clone()),
        zone: zones.first().map_or_else(String::new, |subnet| subnet.zone.clone()),
        priority: Some(0.096),
    };
    let trial = FleetRequest {
        dry_run: true,
        templates: vec![FleetTemplate { name: TEMPLATE.to_owned(), overrides: vec![offer] }],
        purchase: FleetPurchase::OnDemand { prioritized: false },
        count: 2,
        tags: BTreeMap::from([("karpenter.sh/nodepool".to_owned(), "default".to_owned())]),
        ..FleetRequest::default()
    };
    one("fleet, tried", ec2.create_fleet(&trial).await);
    let check = RunInstancesCheck {
        template: TEMPLATE.to_owned(),
        instance_type: "m5.large".to_owned(),
        interfaces: vec![TemplateInterface {
            subnet: Some(given.subnet.clone()),
            ..TemplateInterface::default()
        }],
        tags: trial.tags.clone(),
    };
    say(&format!("run, tried: {}", ec2.check_run_instances(&check).await));
    let fleet = one("fleet", ec2.create_fleet(&FleetRequest { dry_run: false, ..trial.clone() }).await);
    let spot = FleetRequest { dry_run: false, purchase: FleetPurchase::Spot { prioritized: false }, ..trial };
    let spot = one("spot fleet", ec2.create_fleet(&spot).await);
    let launched = fleet.iter().chain(&spot).flat_map(|fleet| &fleet.instances);
    let ids: Vec<String> = launched.flat_map(|each| each.ids.clone()).collect();
    list("instances", ec2.instances(&ids, &[]).await);
    if let Some(id) = ids.first() {
        let tags = BTreeMap::from([("Name".to_owned(), "node".to_owned())]);
        one("tag", ec2.create_tags(id, &tags).await);
        list("tagged", ec2.instances(&[], &[Filter::tag("Name", "node")]).await);
    }
    one("reboot", ec2.reboot_instances(&ids).await);
    list("statuses", ec2.instance_statuses(&[]).await);
    list("terminate", ec2.terminate_instances(&ids).await);
    list("unknown instance", ec2.instances(&["i-00000000000000000".to_owned()], &[]).await);
    list("terminate unknown", ec2.terminate_instances(&["i-00000000000000000".to_owned()]).await);
    one("delete template", ec2.delete_launch_template(&LaunchTemplateRef::Name(TEMPLATE.to_owned())).await);
    one("delete it again", ec2.delete_launch_template(&LaunchTemplateRef::Id("lt-1".to_owned())).await);
}

async fn messages(services: &Services, given: &Given) {
    let sqs = &services.sqs;
    one("unknown queue", sqs.queue_url("nowhere").await);
    let Some(url) = one("queue", sqs.queue_url(&given.queue).await) else { return };
    for message in list("messages", sqs.receive(&url).await) {
        one("delete message", sqs.delete(&url, std::slice::from_ref(&message.receipt)).await);
    }
}

/// What only `karpenter doctor` asks.
async fn account(services: &Services, given: &Given) {
    let identity = one("identity", services.sts.caller_identity().await).unwrap_or_default();
    list("quotas", services.quotas.quotas("ec2").await);
    one("unknown role", services.iam.role("nobody").await);
    let simulation = Simulation {
        principal: identity.arn,
        action: "iam:PassRole",
        resource: "*".to_owned(),
        context: Vec::new(),
    };
    one("simulation", services.iam.simulate(&simulation).await);
    for listing in Listing::ALL {
        let trial = Trial::List(listing);
        say(&format!("try {}: {}", trial.action(), services.ec2.try_out(&trial).await));
    }
    let tags: Tags = [("a".to_owned(), "b".to_owned())].into();
    for trial in [
        Trial::CreateLaunchTemplate(tags.clone()),
        Trial::CreateTags("i-00000000000000000".to_owned(), tags),
        Trial::TerminateInstances("i-00000000000000000".to_owned()),
    ] {
        say(&format!("try {}: {}", trial.action(), services.ec2.try_out(&trial).await));
    }
    if let Ok(url) = services.sqs.queue_url(&given.queue).await {
        one("peek", services.sqs.peek(&url).await);
        one("attributes", services.sqs.attributes(&url).await);
        one("no receipt", services.sqs.delete(&url, &["nothing".to_owned()]).await);
    }
}

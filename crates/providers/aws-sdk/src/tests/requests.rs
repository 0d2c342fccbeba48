//! Requests: what the SDK makes of those of the port is what the recordings of the original are compared with.

use api::names::metrics::aws as metrics;
use api::provider::Provider;
use aws::port::launch_template::{ConnectionTimeouts, MetadataSettings, ReservationUse};
use aws::port::{
    EbsVolume, Filter, FleetOverride, FleetPurchase, FleetRequest, FleetTemplate, ImageQuery,
    LaunchTemplateData, LaunchTemplateQuery, NewLaunchTemplate, RunInstancesCheck, Tags, TemplateInterface,
    VolumeMapping,
};
use aws_sdk_ec2::config::SharedInterceptor;
use base64::Engine as _;
use runtime::metrics::Registry;
use serde_json::{Value, json};

use super::server::{Said, Server};
use super::wire;
use crate::agent::Agent;
use crate::measure::Measure;

fn tags() -> Tags {
    [("a", "1"), ("karpenter.sh/nodepool", ""), ("team", "b & c = d+e")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn interface(subnet: Option<&str>) -> TemplateInterface {
    TemplateInterface {
        network_card: Some(1),
        device: 2,
        interface_type: Some("efa-only"),
        security_groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
        subnet: subnet.map(str::to_owned),
        public_address: Some(false),
        ipv4_prefixes: Some(3),
        ipv6_prefixes: Some(4),
        ipv6_addresses: Some(1),
        primary_ipv6: Some(true),
        connection_tracking: Some(ConnectionTimeouts {
            tcp_established: Some(60),
            udp_stream: Some(61),
            udp: Some(30),
        }),
    }
}

/// A launch template with everything that there is.
fn template() -> NewLaunchTemplate {
    let volume = EbsVolume {
        delete_on_termination: Some(true),
        encrypted: Some(true),
        volume_type: Some("gp3"),
        iops: Some(3000),
        throughput: Some(125),
        kms_key_id: Some("key".to_owned()),
        snapshot_id: Some("snap-1".to_owned()),
        initialization_rate: Some(100),
        size_gib: Some(20),
    };
    NewLaunchTemplate {
        name: "karpenter.k8s.aws/1".to_owned(),
        tags: tags(),
        data: LaunchTemplateData {
            image_id: "ami-1".to_owned(),
            user_data: base64::prelude::BASE64_STANDARD.encode("MIME-Version: 1.0\n\n--//\n+&=%"),
            instance_profile: "profile".to_owned(),
            detailed_monitoring: true,
            volumes: vec![VolumeMapping { device: Some("/dev/xvda".to_owned()), ebs: Some(volume) }],
            nested_virtualization: Some("enabled"),
            metadata: MetadataSettings {
                endpoint: Some("enabled"),
                ipv6: Some("disabled"),
                hop_limit: Some(2),
                tokens: Some("required"),
            },
            interfaces: vec![interface(None), TemplateInterface::default()],
            interface_tags: tags(),
            spot_request_tags: Some(tags()),
            tenancy: "dedicated".to_owned(),
            placement_group: Some("pg-1".to_owned()),
            partition: Some(3),
            enclaves: true,
            reservation: Some(ReservationUse::Only("cr-1".to_owned())),
            market: Some("capacity-block"),
        },
    }
}

/// What was heard of a request, under the same names and with the user data as it is read.
fn heard(server: &Server, action: &str) -> Value {
    let mut heard = server.only().parameters();
    let fields = heard.as_object_mut().unwrap();
    assert_eq!(fields.remove("Action").unwrap(), action);
    fields.remove("MaxResults");
    if let Some(text) = heard.pointer_mut("/LaunchTemplateData/UserData") {
        let bytes = base64::prelude::BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap();
        *text = json!(String::from_utf8(bytes).unwrap());
    }
    heard
}

#[tokio::test]
async fn a_launch_template_is_sent_with_everything_that_is_in_it() {
    let data = LaunchTemplateData { interface_tags: tags(), ..LaunchTemplateData::default() };
    let plain = NewLaunchTemplate { data, ..template() };
    let mut open = template();
    open.data.reservation = Some(ReservationUse::None);
    for wanted in [template(), open, plain] {
        let created = "<CreateLaunchTemplateResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><launchTemplate>\
                       <launchTemplateId>lt-1</launchTemplateId></launchTemplate></CreateLaunchTemplateResponse>";
        let server = Server::start([Said::ok(created)]).await;
        let answer = server.services(&[]).await.ec2.create_launch_template(&wanted).await.unwrap();
        assert_eq!(answer.id, "lt-1");
        let mut sent = heard(&server, "CreateLaunchTemplate");
        assert_eq!(sent.as_object_mut().unwrap().remove("LaunchTemplateName").unwrap(), wanted.name);
        let mut expected = wire::launch_template(&wanted);
        tidy(&mut expected);
        tidy(&mut sent);
        assert_eq!(sent, expected);
    }
}

/// Texts that are empty say nothing: some requests have them and others leave them out. Tags may be empty.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) if fields.contains_key("Key") => {}
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            fields.retain(|_, value| *value != json!("") && *value != json!({}));
        }
        Value::Array(all) => all.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[tokio::test]
async fn a_fleet_is_sent_as_what_it_is_bought_as() {
    let offer = |name: &str| FleetOverride {
        instance_type: name.to_owned(),
        subnet_id: "subnet-1".to_owned(),
        image_id: Some("ami-1".to_owned()),
        zone: "us-east-1a".to_owned(),
        priority: Some(0.096),
    };
    for purchase in [
        FleetPurchase::OnDemand { prioritized: false },
        FleetPurchase::OnDemand { prioritized: true },
        FleetPurchase::Spot { prioritized: false },
        FleetPurchase::Spot { prioritized: true },
        FleetPurchase::InterruptibleReservation,
        FleetPurchase::CapacityBlock,
    ] {
        let wanted = FleetRequest {
            dry_run: purchase == FleetPurchase::CapacityBlock,
            context: Some("for something".to_owned()),
            templates: vec![FleetTemplate {
                name: "one".to_owned(),
                overrides: vec![offer("m5.large"), offer("c5.large")],
            }],
            purchase,
            count: 7,
            tags: tags(),
        };
        let said = "<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><fleetId>fleet-1</fleetId>\
                    </CreateFleetResponse>";
        let server = Server::start([Said::ok(said)]).await;
        server.services(&[]).await.ec2.create_fleet(&wanted).await.unwrap();
        assert_eq!(heard(&server, "CreateFleet"), wire::fleet(&wanted, |name| json!(name)), "{purchase:?}");
    }
}

#[tokio::test]
async fn a_run_that_is_only_tried_is_sent_with_its_interfaces() {
    let check = RunInstancesCheck {
        template: "one".to_owned(),
        instance_type: "m5.large".to_owned(),
        interfaces: vec![interface(Some("subnet-1"))],
        tags: tags(),
    };
    let server = Server::start([Said::refusal(412, "DryRunOperation")]).await;
    let answer = server.services(&[]).await.ec2.check_run_instances(&check).await;
    assert!(answer.is_dry_run_success(), "{answer}");
    assert_eq!(heard(&server, "RunInstances"), wire::run_instances(&check, |name| json!(name)));
}

#[tokio::test]
async fn questions_are_sent_with_their_filters() {
    let nothing = |action: &str| Said::ok(format!("<{action}Response/>"));
    let query = ImageQuery {
        filters: vec![Filter::new("name", ["a*", "b"]), Filter::tag("team", "*")],
        owners: vec!["self".to_owned(), "amazon".to_owned()],
    };
    let server = Server::start([nothing("DescribeImages")]).await;
    server.services(&[]).await.ec2.images(&query).await.unwrap();
    assert_eq!(heard(&server, "DescribeImages"), wire::images(&query));

    let filters = vec![Filter::tag("eks:eks-cluster-name", "c"), Filter::tag("team", "a")];
    let query = LaunchTemplateQuery::Filters(filters.clone());
    let server = Server::start([nothing("DescribeLaunchTemplates")]).await;
    server.services(&[]).await.ec2.launch_templates(&query).await.unwrap();
    assert_eq!(heard(&server, "DescribeLaunchTemplates"), wire::launch_templates(&query));

    let server = Server::start([nothing("DescribeInstances")]).await;
    let ids = ["i-1".to_owned(), "i-2".to_owned()];
    server.services(&[]).await.ec2.instances(&ids, &filters).await.unwrap();
    let expected = json!({"InstanceId": ids, "Filter": wire::filters(&filters)});
    assert_eq!(heard(&server, "DescribeInstances"), expected);
}

#[tokio::test]
async fn a_launch_is_sent_again_under_the_same_token_and_one_that_is_only_tried_is_not() {
    let said = "<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><fleetId>fleet-1</fleetId>\
                </CreateFleetResponse>";
    // It is throttled, then its answer is lost; both times EC2 may have launched something.
    for refusal in [Said::refusal(503, "RequestLimitExceeded"), Said::refusal(500, "InternalError")] {
        let server = Server::start([refusal, Said::ok(said)]).await;
        let ec2 = server.services(&[]).await.ec2;
        assert_eq!(ec2.create_fleet(&FleetRequest::default()).await.unwrap().fleet_id, "fleet-1");
        ec2.create_fleet(&FleetRequest::default()).await.unwrap();
        let heard = server.heard();
        let tokens: Vec<String> = heard.iter().map(|request| request.token().unwrap()).collect();
        let [first, again, other] = tokens.as_slice() else { panic!("{tokens:?}") };
        assert!(!first.is_empty() && first == again, "one launch, one token: {tokens:?}");
        assert_ne!(first, other, "another launch is another one");
        assert_eq!(heard[0].parameters(), heard[1].parameters());
    }
    let server = Server::start([Said::refusal(503, "RequestLimitExceeded")]).await;
    let trial = FleetRequest { dry_run: true, ..FleetRequest::default() };
    let error = server.services(&[]).await.ec2.create_fleet(&trial).await.unwrap_err();
    assert!(error.is_rate_limited() && error.is_server_fault(), "{error}");
    server.only();

    let page = "<DescribeSubnetsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><subnetSet/></DescribeSubnetsResponse>";
    let server = Server::start([Said::refusal(503, "RequestLimitExceeded"), Said::ok(page)]).await;
    assert_eq!(server.services(&[]).await.ec2.subnets(&[]).await.unwrap(), []);
    assert_eq!(server.heard().len(), 2);
}

#[tokio::test]
async fn every_request_has_our_name_and_is_counted() {
    let registry = Registry::for_provider(Provider::Aws);
    let interceptors =
        [SharedInterceptor::new(Agent::new("v1.2.3")), SharedInterceptor::new(Measure::new(&registry))];
    let server =
        Server::start([Said::refusal(503, "Unavailable"), Said::refusal(403, "UnauthorizedOperation")]).await;
    server.services(&interceptors).await.ec2.subnets(&[]).await.unwrap_err();
    for heard in server.heard() {
        assert!(heard.headers["user-agent"].ends_with(" karpenter.sh-v1.2.3"), "{:?}", heard.headers);
    }
    let labels = |code| ["EC2", "DescribeSubnets", code];
    assert_eq!(registry.value(&metrics::CLIENT_REQUESTS, &labels("403")), Some(1.0));
    assert_eq!(registry.value(&metrics::CLIENT_ATTEMPTS, &labels("503")), Some(1.0));
    assert_eq!(registry.value(&metrics::CLIENT_ATTEMPTS, &labels("403")), Some(1.0));
    assert_eq!(registry.value(&metrics::CLIENT_RETRIES, &labels("403")), Some(1.0), "once more");
}

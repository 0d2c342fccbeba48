//! Answers: all pages of them, and what services call their errors.

use aws::port::{Ec2, Filter, LaunchTemplateQuery, ProductQuery, Services};

use super::server::{Said, Server};

/// One page of a list of EC2.
fn page(action: &str, list: &str, items: &[&str], next: &str) -> Said {
    let items: Vec<String> = items.iter().map(|item| format!("<item>{item}</item>")).collect();
    let items = items.concat();
    Said::ok(format!(
        "<{action}Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId>\
         <{list}>{items}</{list}><nextToken>{next}</nextToken></{action}Response>"
    ))
}

/// What was heard: the tokens by which pages were asked for, and how large they are to be.
fn asked(server: &Server) -> Vec<(String, String)> {
    let text = |heard: &super::server::Heard, name: &str| {
        heard.parameters()[name].as_str().unwrap_or_default().to_owned()
    };
    server.heard().iter().map(|heard| (text(heard, "NextToken"), text(heard, "MaxResults"))).collect()
}

fn tokens(size: &str) -> [(String, String); 3] {
    ["", "two", "three"].map(|token| (token.to_owned(), size.to_owned()))
}

const SUBNETS: [&str; 2] = [
    "<subnetId>subnet-1</subnetId><availabilityZone>a</availabilityZone><availabilityZoneId>1</availabilityZoneId>\
     <availableIpAddressCount>7</availableIpAddressCount>",
    "<subnetId>subnet-2</subnetId><availabilityZone>b</availabilityZone>",
];

/// Three pages, of which the second is empty.
fn pages(action: &str, list: &str, first: &str, third: &str) -> [Said; 3] {
    [page(action, list, &[first], "two"), page(action, list, &[], "three"), page(action, list, &[third], "")]
}

#[tokio::test]
async fn subnets_are_those_of_all_pages_and_an_empty_page_is_not_the_last() {
    let server = Server::start(pages("DescribeSubnets", "subnetSet", SUBNETS[0], SUBNETS[1])).await;
    let filters = [Filter::tag("team", "a")];
    let found = server.services(&[]).await.ec2.subnets(&filters).await.unwrap();
    let found: Vec<(&str, &str, i64)> = found
        .iter()
        .map(|each| (each.id.as_str(), each.zone_id.as_str(), each.available_addresses))
        .collect();
    assert_eq!(found, [("subnet-1", "1", 7), ("subnet-2", "", 0)]);
    assert_eq!(asked(&server), tokens("500"));
    let asked = server.heard()[2].parameters();
    assert_eq!(asked["Filter"], serde_json::json!([{"Name": "tag:team", "Value": ["a"]}]), "on every page");
}

#[tokio::test]
async fn a_page_that_fails_fails_the_whole_list() {
    let first = page("DescribeSubnets", "subnetSet", &SUBNETS, "two");
    let server = Server::start([first, Said::refusal(403, "UnauthorizedOperation")]).await;
    let error = server.services(&[]).await.ec2.subnets(&[]).await.unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    assert_eq!(error.to_string(), "ec2:DescribeSubnets, UnauthorizedOperation: no (request abc)");
}

/// How many there are of something on three pages.
async fn count<T>(
    said: [Said; 3],
    ask: impl AsyncFnOnce(&dyn Ec2) -> Result<Vec<T>, aws::port::Error>,
    size: &str,
) -> usize {
    let server = Server::start(said).await;
    let services = server.services(&[]).await;
    let found = ask(&*services.ec2).await.unwrap();
    assert_eq!(asked(&server), tokens(size));
    found.len()
}

#[tokio::test]
async fn every_list_of_ec2_is_that_of_all_pages() {
    let group = |id: u8| format!("<groupId>sg-{id}</groupId>");
    let said = pages("DescribeSecurityGroups", "securityGroupInfo", &group(1), &group(2));
    assert_eq!(count(said, async |ec2| ec2.security_groups(&[]).await, "500").await, 2);

    let kind = |id: u8| format!("<instanceType>m{id}.large</instanceType>");
    let said = pages("DescribeInstanceTypes", "instanceTypeSet", &kind(5), &kind(6));
    assert_eq!(count(said, async |ec2| ec2.instance_types().await, "100").await, 2);

    let place = |id: u8| format!("<instanceType>m{id}.large</instanceType><location>a</location>");
    let said = pages("DescribeInstanceTypeOfferings", "instanceTypeOfferingSet", &place(5), &place(6));
    assert_eq!(count(said, async |ec2| ec2.instance_type_zones().await, "1000").await, 2);

    let price = |id: u8| {
        format!(
            "<instanceType>m{id}.large</instanceType><availabilityZone>a</availabilityZone>\
             <spotPrice>0.1</spotPrice><timestamp>2026-01-01T00:00:00Z</timestamp>"
        )
    };
    let said = pages("DescribeSpotPriceHistory", "spotPriceHistorySet", &price(5), &price(6));
    let now = jiff::Timestamp::UNIX_EPOCH;
    assert_eq!(count(said, async |ec2| ec2.spot_prices(now).await, "2000").await, 2);

    let image = |id: u8| format!("<imageId>ami-{id}</imageId>");
    let said = pages("DescribeImages", "imagesSet", &image(1), &image(2));
    let query = aws::port::ImageQuery { filters: Vec::new(), owners: Vec::new() };
    assert_eq!(count(said, async |ec2| ec2.images(&query).await, "1000").await, 2);

    let reservation = |id: u8| format!("<capacityReservationId>cr-{id}</capacityReservationId>");
    let said =
        pages("DescribeCapacityReservations", "capacityReservationSet", &reservation(1), &reservation(2));
    assert_eq!(count(said, async |ec2| ec2.capacity_reservations(&[], &[]).await, "1000").await, 2);

    let template = |id: u8| format!("<launchTemplateId>lt-{id}</launchTemplateId>");
    let said = pages("DescribeLaunchTemplates", "launchTemplates", &template(1), &template(2));
    let query = LaunchTemplateQuery::Filters(Vec::new());
    assert_eq!(count(said, async |ec2| ec2.launch_templates(&query).await, "200").await, 2);

    let instance = |id: u8| {
        format!(
            "<instancesSet><item><instanceId>i-{id}</instanceId><instanceType>m5.large</instanceType>\
             <instanceState><name>running</name></instanceState><placement><availabilityZone>a</availabilityZone>\
             </placement></item></instancesSet>"
        )
    };
    let said = pages("DescribeInstances", "reservationSet", &instance(1), &instance(2));
    assert_eq!(count(said, async |ec2| ec2.instances(&[], &[]).await, "1000").await, 2);

    let status = |id: u8| format!("<instanceId>i-{id}</instanceId>");
    let said = pages("DescribeInstanceStatus", "instanceStatusSet", &status(1), &status(2));
    assert_eq!(count(said, async |ec2| ec2.instance_statuses(&[]).await, "").await, 2);
}

#[tokio::test]
async fn profiles_and_products_are_those_of_all_pages() {
    let profile = |name: &str, path: &str, next: &str| {
        let more = if next.is_empty() {
            String::new()
        } else {
            format!("<IsTruncated>true</IsTruncated><Marker>{next}</Marker>")
        };
        Said::ok(format!(
            "<ListInstanceProfilesResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\">\
             <ListInstanceProfilesResult><InstanceProfiles><member><InstanceProfileName>{name}</InstanceProfileName>\
             <Path>{path}</Path><InstanceProfileId>x</InstanceProfileId><Arn>x</Arn><Roles/>\
             <CreateDate>2026-01-01T00:00:00Z</CreateDate></member></InstanceProfiles>{more}\
             </ListInstanceProfilesResult></ListInstanceProfilesResponse>"
        ))
    };
    let said = [profile("one", "/k/", "two"), profile("other", "/", "three"), profile("two", "/k/", "")];
    let server = Server::start(said).await;
    let found = server.services(&[]).await.iam.instance_profiles("/k/").await.unwrap();
    let names: Vec<&str> = found.iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["one", "two"], "what is elsewhere is left out, whatever IAM says");

    let server = Server::start([
        Said::ok(r#"{"PriceList":["a","b"],"NextToken":"two"}"#),
        Said::ok(r#"{"PriceList":["c"]}"#),
    ])
    .await;
    let query = ProductQuery { filters: Vec::new() };
    let found = server.services(&[]).await.pricing.products(&query).await.unwrap();
    assert_eq!(found, ["a", "b", "c"]);
}

/// What the services say about something that goes wrong everywhere in the same way.
async fn errors(said: Said) -> [aws::port::Error; 4] {
    let server = Server::start([said]).await;
    let Services { ec2, iam, eks, ssm, .. } = server.services(&[]).await;
    let template = LaunchTemplateQuery::Name("none".to_owned());
    [
        ec2.launch_templates(&template).await.unwrap_err(),
        iam.instance_profile("none").await.unwrap_err(),
        eks.cluster("none").await.unwrap_err(),
        ssm.parameter("none").await.unwrap_err(),
    ]
}

#[tokio::test]
async fn what_is_no_answer_of_aws_is_an_error_and_nothing_worse() {
    for said in [
        Said::new(404, "<html>not here</html>"),
        Said::new(404, ""),
        Said::ok("<html>a proxy says hello</html>"),
        Said::ok("{\"a\":"),
    ] {
        for error in errors(said.clone()).await {
            assert!(!error.is_not_found() && !error.is_denied(), "{said:?}: {error}");
            assert!(error.to_string().len() > error.operation.len() + 2, "{said:?} says nothing: {error}");
        }
    }
}

#[tokio::test]
async fn each_service_has_its_own_words_for_the_same() {
    let missing = |body: &str| Said::new(400, body);
    let server = Server::start([missing(r#"{"__type":"ParameterNotFound","message":"x"}"#)]).await;
    assert!(server.services(&[]).await.ssm.parameter("x").await.unwrap_err().is_not_found());

    let queue = missing(r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"x"}"#);
    let older = queue.clone().with("x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender");
    for said in [queue, older] {
        let server = Server::start([said]).await;
        assert!(server.services(&[]).await.sqs.queue_url("x").await.unwrap_err().is_not_found());
    }

    let profile = "<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchEntity</Code>\
                   <Message>The role with name x cannot be found.</Message></Error><RequestId>abc</RequestId></ErrorResponse>";
    let server = Server::start([Said::new(404, profile)]).await;
    let error = server.services(&[]).await.iam.add_role("p", "x").await.unwrap_err();
    assert!(error.is_not_found() && error.is_role_not_found(), "{error}");

    let server = Server::start([Said::refusal(400, "InvalidInstanceID.NotFound")]).await;
    let ids = ["i-1".to_owned()];
    let error = server.services(&[]).await.ec2.instances(&ids, &[]).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(
        server.only().parameters()["MaxResults"],
        serde_json::Value::Null,
        "EC2 refuses both together"
    );
}

//! AWS: who we are comes from the environment, as for the controller; EC2NodeClasses from the cluster, if it answers.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use api::aws::EC2NodeClass;
use api::provider::Provider;
use aws::doctor::Subject;
use clock::Clock;
use cloud::doctor::{Check, Report};
use runtime::metrics::Registry;
use serde_json::Value;

use super::Args;
use crate::connect;
use crate::controller::VERSION;

const CLASSES: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
/// How long the cluster may take: without it there is still much to look at.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the cluster says.
struct FromCluster {
    classes: Vec<EC2NodeClass>,
    version: String,
    /// What cannot be read.
    unreadable: Vec<Check>,
}

/// Looks AWS over.
pub(super) async fn examine(args: &Args) -> Result<Report> {
    let connection = aws_sdk::connect(VERSION, &Registry::for_provider(Provider::Aws)).await?;
    let answer = tokio::time::timeout(PATIENCE, ask(args.kubeconfig.as_deref())).await;
    let answer = answer.unwrap_or_else(|_| Err(anyhow!("the cluster does not answer")));
    let unless_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut subject = Subject {
        region: connection.region,
        cluster_name: args.cluster_name.clone(),
        has_endpoint: !args.cluster_endpoint.is_empty(),
        interruption_queue: unless_empty(&args.interruption_queue),
        isolated_vpc: args.isolated_vpc,
        zonal_shift: args.enable_zonal_shift,
        classes: None,
        kubernetes: None,
    };
    let more = match answer {
        Ok(FromCluster { classes, version, unreadable }) => {
            subject.classes = Some(classes);
            subject.kubernetes = Some(version);
            unreadable
        }
        Err(error) => {
            let message = format!("nothing is known of EC2NodeClasses, {}", crate::in_one_line(&error));
            vec![Check::warning("objects of the cluster", message, "--kubeconfig names another file")]
        }
    };
    let report = aws::doctor::examine(&connection.services, &subject, Clock::system().now()).await;
    let mut report = report.context("asking AWS who we are")?;
    report.checks.extend(more);
    Ok(report)
}

async fn ask(kubeconfig: Option<&str>) -> Result<FromCluster> {
    let config = connect::config(kubeconfig, "only AWS is looked over").await?;
    let client = connect::client(config).await?;
    let version = client.apiserver_version().await.context("asking for the version")?;
    let request = http::Request::get(CLASSES).body(Vec::new()).context("asking for EC2NodeClasses")?;
    let list: Value = client.request(request).await.context("asking for EC2NodeClasses")?;
    let (mut classes, mut unreadable) = (Vec::new(), Vec::new());
    for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        match serde_json::from_value(item.clone()) {
            Ok(class) => classes.push(class),
            Err(error) => {
                let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                let message = format!("it cannot be read, {error}");
                unreadable.push(Check::bad(format!("EC2NodeClass {name}"), message, "correct that field"));
            }
        }
    }
    Ok(FromCluster { classes, version: format!("{}.{}", version.major, version.minor), unreadable })
}

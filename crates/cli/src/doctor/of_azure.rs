//! Azure: who we are comes from the environment, as for the controller; AKSNodeClasses from the cluster, if it answers.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use api::azure::AKSNodeClass;
use api::names::flags;
use azure::auth::Secret;
use azure::doctor::Subject;
use azure::settings::ProvisionMode;
use clock::Clock;
use cloud::doctor::{Check, Report};
use serde_json::Value;

use super::Args;
use crate::azure_client::{self, BOOTSTRAP_TOKENS};
use crate::connect;

const CLASSES: &str = "/apis/karpenter.azure.com/v1beta1/aksnodeclasses";
/// How long the cluster may take: without it there is still much to look at.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks Azure over.
pub(super) async fn examine(args: &Args) -> Result<Report> {
    let of = &args.azure;
    let mode = ProvisionMode::named(&of.provision_mode)
        .ok_or_else(|| anyhow!("provision mode {:?} is unknown", of.provision_mode))?;
    let environment = azure_client::environment()?;
    let subscription = azure_client::subscription(of.subscription.as_deref())?;
    let client = azure_client::connect(&environment, &subscription).await?;
    let mut subject = Subject {
        cluster_name: args.cluster_name.clone(),
        cluster_resource_group: of.resource_group.clone(),
        node_resource_group: of.node_resource_group.clone(),
        vnet_subnet_id: of.vnet_subnet_id.clone(),
        location: of.location.clone(),
        mode,
        machines_pool: of.aks_machines_pool_name.clone(),
        use_sig: of.use_sig || mode.is_machine_api(),
        disk_encryption_set: Some(of.node_osdisk_diskencryptionset_id.clone()).filter(|id| !id.is_empty()),
        classes: None,
        kubernetes: None,
    };
    let answer = tokio::time::timeout(PATIENCE, ask(args.kubeconfig.as_deref())).await;
    let answer = answer.unwrap_or_else(|_| Err(anyhow!("the cluster does not answer")));
    let found = match answer {
        Ok((classes, version, unreadable)) => {
            subject.classes = Some(classes);
            subject.kubernetes = Some(version);
            unreadable
        }
        Err(error) => {
            let message = format!("nothing is known of AKSNodeClasses, {}", crate::in_one_line(&error));
            vec![Check::warning("objects of the cluster", message, "--kubeconfig names another file")]
        }
    };
    let mut report = azure::doctor::examine(&client, &subject).await.context("asking Azure")?;
    report.checks.extend(found);
    Ok(report)
}

/// The AKSNodeClasses, the version of Kubernetes, and what else is to be said.
async fn ask(kubeconfig: Option<&str>) -> Result<(Vec<AKSNodeClass>, String, Vec<Check>)> {
    let config = connect::config(kubeconfig, "only Azure is looked over").await?;
    let client = connect::client(config).await?;
    let version = client.apiserver_version().await.context("asking for the version")?;
    let request = http::Request::get(CLASSES).body(Vec::new()).context("asking for AKSNodeClasses")?;
    let (mut classes, mut unreadable) = (Vec::new(), Vec::new());
    let list: Value = match client.request(request).await {
        Err(kube::Error::Api(error)) if error.code == 404 => {
            let message = "the cluster does not know AKSNodeClasses";
            let advice = "install charts/karpenter-crd with provider=azure";
            unreadable.push(Check::warning("definitions", message, advice));
            Value::Null
        }
        list => list.context("asking for AKSNodeClasses")?,
    };
    for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        match serde_json::from_value(item.clone()) {
            Ok(class) => classes.push(class),
            Err(error) => {
                let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                let message = format!("it cannot be read, {error}");
                unreadable.push(Check::bad(format!("AKSNodeClass {name}"), message, "correct that field"));
            }
        }
    }
    unreadable.extend(token(&client).await);
    Ok((classes, version.git_version.trim_start_matches('v').to_owned(), unreadable))
}

/// What is said about the token by which nodes join, for those who may read it. The controller may not.
async fn token(client: &kube::Client) -> Option<Check> {
    let request = http::Request::get(BOOTSTRAP_TOKENS).body(Vec::new()).ok()?;
    let secrets: Value = client.request(request).await.ok()?;
    let told = azure_client::variable(flags::azure::KUBELET_BOOTSTRAP_TOKEN.env).map(Secret::new);
    Some(azure::doctor::token(&secrets, told.as_ref(), Clock::system().now()))
}

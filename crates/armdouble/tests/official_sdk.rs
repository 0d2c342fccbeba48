//! Microsoft's own SDKs as judges of the double: what they send is understood, and what they are told is what their types
//! say.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::time::Duration;

use armdouble::{Double, Settings};
use clock::Clock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;

/// Runs a script in Python; what it says if that is not all right.
async fn run(script: &str, arguments: &[&str]) -> Result<(), String> {
    let program = tokio::task::spawn_blocking(e2e::tools::azure_sdk).await.unwrap().unwrap();
    let ended = Command::new(&program.python)
        // Nothing is written beside the sources.
        .arg("-B")
        .arg(program.script.with_file_name(script))
        .args(arguments)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    if ended.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
}

#[tokio::test]
async fn the_official_sdks_and_the_double_understand_each_other() {
    let mut settings = Settings::named("walk", "southcentralus");
    settings.has_strict_versions = false;
    settings.page_size = 7;
    settings.set_every_lro(|lro| lro.takes = Duration::from_millis(50));
    let told = json!({
        "subscription": settings.subscription, "location": settings.location, "cluster": settings.cluster,
        "clusterResourceGroup": settings.cluster_resource_group, "nodeResourceGroup": settings.node_resource_group,
        "machinesPool": settings.machines_pool,
    });
    let double = Double::with(Clock::system(), settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(double.clone().serve(listener));
    let walked = run("walk.py", &["--url", &url, "--settings", &told.to_string()]).await;
    server.abort();
    let exchanges: Vec<String> = double.requests().iter().map(|each| each.to_json().to_string()).collect();
    let exchanges = exchanges.join("\n");
    if let Err(said) = walked {
        panic!("{said}\n{exchanges}");
    }
    // The types for Go are of the very API versions that the provider uses.
    let read = tokio::task::spawn_blocking(move || e2e::understood_by_azure_types(&exchanges)).await.unwrap();
    assert!(read.unwrap() > 30);
}

#[tokio::test]
async fn every_member_that_is_read_is_one_of_the_official_types() {
    let shapes = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/shapes.json");
    if let Err(said) = run("shapes.py", &[&shapes.display().to_string()]).await {
        panic!("{said}");
    }
}

//! Microsoft's own SDK as a second client: what it sends is understood, and what it is told is what its types say.

use std::time::Duration;

use armdouble::{Double, Settings};
use clock::Clock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;

#[tokio::test]
async fn the_official_sdk_walks_through_the_double() {
    let mut settings = Settings::default();
    settings.has_strict_versions = false;
    settings.page_size = 7;
    settings.set_every_lro(|lro| lro.takes = Duration::from_millis(50));
    let told = json!({
        "subscription": settings.subscription, "location": settings.location, "cluster": settings.cluster,
        "clusterResourceGroup": settings.cluster_resource_group, "nodeResourceGroup": settings.node_resource_group,
        "machinesPool": settings.machines_pool,
    });
    let program = tokio::task::spawn_blocking(e2e::tools::azure_sdk).await.unwrap().unwrap();
    let double = Double::with(Clock::system(), settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(double.clone().serve(listener));
    let walked = Command::new(&program.python)
        // Nothing is written beside the sources.
        .arg("-B")
        .arg(&program.script)
        .args(["--url", &url, "--settings", &told.to_string()])
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    server.abort();
    let said = [walked.stdout, walked.stderr].concat();
    let asked: Vec<String> = double
        .requests()
        .iter()
        .map(|each| format!("{:?} {} {}", each.status, each.method, each.path))
        .collect();
    assert!(walked.status.success(), "{}\n{}", String::from_utf8_lossy(&said), asked.join("\n"));
    // What the walk saw was not made up by it.
    assert!(asked.len() > 40, "{asked:?}");
}

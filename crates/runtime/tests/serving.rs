//! What depends on an API server: whether it knows the CRDs, and how its requests are measured.

use std::time::Duration;

use api::provider::Provider;
use expect_test::expect;
use kube::Client;
use runtime::measure::MeasureLayer;
use runtime::metrics::Registry;
use runtime::serve::find_crds;
use testkit::World;
use tokio::sync::watch;
use tower::Layer as _;

#[test]
fn the_process_is_not_ready_before_the_server_knows_the_crds() {
    let mut world = World::builder(1).without_scheduler().start();
    let (sender, found) = watch::channel(false);
    world.spawn(find_crds(world.client(), sender));
    world.run_for(Duration::from_secs(5));
    assert!(!*found.borrow());
    for crd in api::crds::documents(Provider::Kwok) {
        world.apply(&crd.document.to_string());
    }
    world.run_for(Duration::from_secs(5));
    assert!(*found.borrow());
}

#[test]
fn requests_are_counted_by_what_they_are_about() {
    let world = World::builder(1).without_scheduler().start();
    let metrics = Registry::default();
    let page = world.block_on(async {
        let service = MeasureLayer::new(&metrics).layer(world.server().service());
        let client = Client::new(service, "default");
        for path in ["/api/v1/pods", "/api/v1/namespaces/default", "/api/v1/namespaces/default/pods/none"] {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let _ = client.request_text(request).await;
        }
        metrics.page()
    });
    let lines = page
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("_bucket{") && !line.contains("_sum{"));
    expect![[r#"
        client_go_request_duration_seconds_count{group="",kind="namespaces",subresource="",verb="GET",version="v1"} 1
        client_go_request_duration_seconds_count{group="",kind="pods",subresource="",verb="GET",version="v1"} 1
        client_go_request_duration_seconds_count{group="",kind="pods",subresource="",verb="LIST",version="v1"} 1
        client_go_request_total{code="200",method="GET"} 2
        client_go_request_total{code="404",method="GET"} 1"#]].assert_eq(&lines.collect::<Vec<&str>>().join("\n"));
}

//! What is counted of a cloud that is slow and fails.

use std::time::Duration;

use super::*;

/// A cloud that thinks for two seconds and then has nothing.
struct Slow;

fn refusal<T>() -> BoxFuture<'static, Result<T, Error>> {
    async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Err(Error::InsufficientCapacity("all taken".to_owned()))
    }
    .boxed()
}

impl CloudProvider for Slow {
    fn provider(&self) -> Provider {
        Provider::Kwok
    }

    fn create<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        refusal()
    }

    fn delete<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        refusal()
    }

    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        refusal()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn instance_types<'a>(&'a self, _: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        refusal()
    }

    fn drift<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        refusal()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    fn reboot<'a>(&'a self, _: &'a NodeClaim, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        refusal()
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_timed_and_failures_counted_by_kind_and_pool() {
    let metrics = Registry::for_provider(Provider::Kwok);
    let cloud = Measured::new(Arc::new(Slow), metrics.clone());
    let mut claim = NodeClaim::default();
    claim.metadata.labels = Some([(labels::NODEPOOL.to_owned(), "general".to_owned())].into());
    for _ in 0..3 {
        cloud.create(&claim).await.unwrap_err();
    }
    cloud.get("kwok://a").await.unwrap_err();
    cloud.list().await.unwrap();
    cloud.reboot(&claim, "operation").await.unwrap_err();

    let page = metrics.page();
    let expect = |line: &str| assert!(page.lines().any(|found| found == line), "no {line:?} in\n{page}");
    let of = |method: &str| format!("controller=\"\",method=\"{method}\",provider=\"kwok\"");
    expect(&format!("karpenter_cloudprovider_duration_seconds_sum{{{}}} 6", of("Create")));
    expect(&format!("karpenter_cloudprovider_duration_seconds_count{{{}}} 3", of("Create")));
    expect(&format!("karpenter_cloudprovider_duration_seconds_count{{{}}} 1", of("List")));
    expect(&format!("karpenter_cloudprovider_duration_seconds_count{{{}}} 1", of("Reboot")));
    let failed = |method: &str, pool: &str| {
        let labels = ["", method, "kwok", "InsufficientCapacityError", pool];
        metrics.value(&names::CLOUDPROVIDER_ERRORS, &labels)
    };
    assert_eq!(failed("Create", "general"), Some(3.0));
    assert_eq!(failed("Get", ""), Some(1.0));
    assert_eq!(failed("List", ""), None);
    assert_eq!(failed("Reboot", "general"), Some(1.0));
}

//! Overlays over a cloud.

use api::nodeoverlay::NodeOverlay;
use cluster::instance_types::kwok;
use cluster::overlays::{PoolTypes, evaluate};
use serde_json::json;

use super::*;

/// A cloud that lists the same types for every pool, or fails.
struct Listing(Mutex<Result<Arc<[InstanceType]>, Error>>);

impl CloudProvider for Listing {
    fn provider(&self) -> Provider {
        Provider::Kwok
    }

    fn create<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        async { Err(Error::InsufficientCapacity("none".to_owned())) }.boxed()
    }

    fn delete<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        async { Err(Error::NotFound("none".to_owned())) }.boxed()
    }

    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async { Err(Error::NotFound("none".to_owned())) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn instance_types<'a>(&'a self, _: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        async { self.0.lock().clone() }.boxed()
    }

    fn drift<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    fn reboot<'a>(&'a self, _: &'a NodeClaim, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async { Err(Error::RebootNotImplemented) }.boxed()
    }
}

fn pool(name: &str) -> NodePool {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}},
    }))
    .unwrap()
}

fn free(pools: &[&str]) -> NodeOverlay {
    let requirements = json!([{"key": "karpenter.sh/nodepool", "operator": "In", "values": pools}]);
    serde_json::from_value(json!({
        "metadata": {"name": "free"}, "spec": {"requirements": requirements, "price": "0"},
    }))
    .unwrap()
}

/// Puts an overlay in force for some pools.
fn put(overlays: &Overlays, overlay: &NodeOverlay, pools: &[&NodePool], types: &Arc<[InstanceType]>) {
    let pools: Vec<PoolTypes<'_>> =
        pools.iter().map(|pool| PoolTypes { pool, types: Arc::clone(types) }).collect();
    overlays.replace(evaluate(Provider::Kwok, &[overlay], &pools).in_force);
}

fn price(types: &[InstanceType]) -> f64 {
    types[0].offerings[0].price
}

#[test]
fn nobody_knows_what_a_pool_can_choose_from_before_it_was_looked_at() {
    let types: Arc<[InstanceType]> = kwok::built_in().into();
    let overlays = Overlays::new(Provider::Kwok);
    let (a, b) = (pool("a"), pool("b"));
    let refused = overlays.apply("a", &types).unwrap_err();
    assert_eq!(
        (refused.to_string(), refused.is_unevaluated()),
        ("nodepool \"a\" is awaiting evaluation".into(), true)
    );
    put(&overlays, &free(&["a"]), &[&a], &types);
    assert!(overlays.apply("a", &types).is_ok() && overlays.apply("b", &types).is_err());
    put(&overlays, &free(&["a"]), &[&a, &b], &types);
    assert!(price(&overlays.apply("a", &types).unwrap()) == 0.0);
    assert!(Arc::ptr_eq(&overlays.apply("b", &types).unwrap(), &types), "pools are apart");
}

#[test]
fn lists_are_corrected_once_and_shared_where_they_say_the_same() {
    let types: Arc<[InstanceType]> = kwok::built_in().into();
    let overlays = Overlays::new(Provider::Kwok);
    let (a, b, c) = (pool("a"), pool("b"), pool("c"));
    put(&overlays, &free(&["a", "b"]), &[&a, &b, &c], &types);
    let of = |name: &str, types: &Arc<[InstanceType]>| overlays.apply(name, types).unwrap();
    let first = of("a", &types);
    assert!(Arc::ptr_eq(&first, &of("a", &types)) && Arc::ptr_eq(&first, &of("b", &types)));
    assert!(Arc::ptr_eq(&types, &of("c", &types)));
    let newer: Arc<[InstanceType]> = kwok::built_in().into();
    assert!(!Arc::ptr_eq(&first, &of("a", &newer)), "another list may become something else");
    of("c", &newer);
    drop(newer);
    of("a", &kwok::built_in().into());
    assert_eq!(overlays.0.lock().applied.len(), 4, "lists that nobody uses are forgotten");
    put(&overlays, &free(&["c"]), &[&a, &b, &c], &types);
    assert!(Arc::ptr_eq(&types, &of("a", &types)) && price(&of("c", &types)) == 0.0);
}

#[tokio::test]
async fn errors_of_the_cloud_name_the_pool_and_stay_what_they_are() {
    let cloud = Arc::new(Listing(Mutex::new(Err(Error::NotFound("no class".to_owned())))));
    let overlays = Overlays::new(Provider::Kwok);
    let overlaid = Overlaid::new(Arc::clone(&cloud) as Arc<dyn CloudProvider>, overlays.clone());
    let mut it = pool("a");
    let error = overlaid.instance_types(&it).await.unwrap_err();
    let text = "getting cloud provider instance types, nodeclaim not found, no class";
    assert_eq!(error.to_string(), format!("{text} (NodePool=a)"));
    assert!(error.is_not_found());
    it.metadata.name = None;
    assert_eq!(overlaid.instance_types(&it).await.unwrap_err().to_string(), format!("{text} (NodePool=)"));
    let types: Arc<[InstanceType]> = kwok::built_in().into();
    *cloud.0.lock() = Ok(Arc::clone(&types));
    let it = pool("a");
    assert!(overlaid.instance_types(&it).await.unwrap_err().is_unevaluated());
    assert!(Arc::ptr_eq(&overlaid.listed_instance_types(&it).await.unwrap(), &types));
    put(&overlays, &free(&["a"]), &[&it], &types);
    assert!(price(&overlaid.instance_types(&it).await.unwrap()) == 0.0);
    // Everything else is left to the cloud.
    let claim = NodeClaim::default();
    assert!(matches!(overlaid.create(&claim).await, Err(Error::InsufficientCapacity(_))));
    assert!(overlaid.delete(&claim).await.is_err() && overlaid.get("").await.is_err());
    assert!(overlaid.list().await.unwrap().is_empty() && overlaid.drift(&claim).await.unwrap().is_none());
    assert!(overlaid.reboot(&claim, "").await.is_err() && overlaid.repair_policies().is_empty());
    assert_eq!((overlaid.name(), overlaid.node_classes().len()), ("kwok", 1));
}

//! Devices that are allocated dynamically: whether their drivers have published what a node has.

use std::collections::BTreeMap;

use api::names::annotations;
use api::nodeclaim::NodeClaim;
use cluster::objects::{Metadata, Node};
use runtime::{Api, Error};
use serde::Deserialize;

use super::annotation;

/// The drivers that a claim waits for, and what each has published.
#[derive(Debug, Default)]
pub(crate) struct Drivers {
    requested: Vec<String>,
    slices: Vec<Slice>,
}

/// Some devices of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Slice {
    metadata: Metadata,
    spec: SliceSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SliceSpec {
    driver: String,
    node_name: Option<String>,
    pool: Pool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Pool {
    name: String,
    generation: i64,
    resource_slice_count: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slices {
    items: Vec<Slice>,
}

impl Drivers {
    /// Asks what the drivers that a claim waits for have published on its node.
    pub(crate) async fn ask(api: &Api, claim: &NodeClaim, node: &Node) -> Result<Self, Error> {
        let requested = requested(claim);
        if requested.is_empty() {
            return Ok(Self::default());
        }
        let slices: Slices = api.get("/apis/resource.k8s.io/v1/resourceslices").await?;
        Ok(Self::new(requested, slices.items, node))
    }

    fn new(requested: Vec<String>, slices: Vec<Slice>, node: &Node) -> Self {
        let is_own = |slice: &Slice| {
            let owners = &slice.metadata.owner_references;
            slice.spec.node_name.as_deref() == Some(&node.metadata.name)
                || owners.iter().any(|owner| owner.is("v1", "Node") && owner.uid == node.metadata.uid)
        };
        Self { requested, slices: slices.into_iter().filter(is_own).collect() }
    }

    /// The first driver that has no complete pool.
    pub(crate) fn incomplete(&self) -> Option<&str> {
        self.requested.iter().map(String::as_str).find(|driver| !self.has_complete_pool(driver))
    }

    /// A pool is complete when as many slices of its newest generation are there as it says it has.
    fn has_complete_pool(&self, driver: &str) -> bool {
        let mut pools: BTreeMap<&str, (i64, i64, i64)> = BTreeMap::new();
        for Slice { spec, .. } in self.slices.iter().filter(|slice| slice.spec.driver == driver) {
            let Pool { name, generation, resource_slice_count } = &spec.pool;
            let pool = pools.entry(name).or_insert((*generation, 0, *resource_slice_count));
            if *generation > pool.0 {
                *pool = (*generation, 0, *resource_slice_count);
            }
            if *generation == pool.0 {
                pool.1 += 1;
            }
        }
        pools.values().any(|(_, found, expected)| *expected > 0 && found == expected)
    }
}

/// The drivers that a claim waits for.
pub(crate) fn requested(claim: &NodeClaim) -> Vec<String> {
    let text = annotation(claim, annotations::REQUESTED_DRA_DRIVERS).unwrap_or_default();
    text.split(',').map(str::trim).filter(|driver| !driver.is_empty()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(driver: &str, pool: &str, generation: i64, count: i64) -> Value {
        json!({"metadata": {"name": "s"}, "spec": {
            "driver": driver, "nodeName": "n",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        }})
    }

    #[track_caller]
    fn check(requested: &[&str], slices: &[Value], incomplete: Option<&str>) {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n", "uid": "u"}})).unwrap();
        let slices: Vec<Slice> =
            slices.iter().map(|slice| serde_json::from_value(slice.clone()).unwrap()).collect();
        let requested = requested.iter().map(|driver| (*driver).to_owned()).collect();
        assert_eq!(Drivers::new(requested, slices, &node).incomplete(), incomplete);
    }

    #[test]
    fn every_driver_must_have_a_complete_pool() {
        check(&[], &[], None);
        check(&["a"], &[], Some("a"));
        check(&["a"], &[slice("a", "p", 1, 1)], None);
        check(&["a"], &[slice("a", "p", 1, 2)], Some("a"));
        check(&["a"], &[slice("a", "p", 1, 2), slice("a", "p", 1, 2)], None);
        check(&["a"], &[slice("a", "p", 1, 2), slice("a", "q", 1, 1)], None);
        check(&["a", "b"], &[slice("a", "p", 1, 1)], Some("b"));
        check(&["a"], &[slice("a", "p", 1, 0)], Some("a"));
    }

    #[test]
    fn only_the_newest_generation_counts() {
        check(&["a"], &[slice("a", "p", 1, 1), slice("a", "p", 2, 2)], Some("a"));
        check(&["a"], &[slice("a", "p", 2, 1), slice("a", "p", 1, 2)], None);
    }

    #[test]
    fn slices_of_other_nodes_do_not_count_and_owners_do() {
        let mut other = slice("a", "p", 1, 1);
        other["spec"]["nodeName"] = json!("m");
        check(&["a"], std::slice::from_ref(&other), Some("a"));
        other["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
        check(&["a"], &[other], None);
    }
}

//! Lets NodeClasses go once no claim needs them.

use std::sync::Arc;
use std::time::Duration;

use api::azure::AKSNodeClass;
use api::names::events::azure::WAITING_ON_NODE_CLAIM_TERMINATION;
use api::names::finalizers::AZURE_TERMINATION;
use cluster::objects::NodeClass;
use cluster::state::{Key, Kind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use runtime::events::About;
use serde_json::json;

use crate::provider::Inner;

/// How long is waited for claims of a class that shall go; that one is gone is noticed at once.
const WAIT: Again = Again::After(Duration::from_mins(10));
/// How many claims are named.
const NAMED: usize = 5;

/// Lets NodeClasses go.
pub(super) struct Termination(pub(super) Arc<Inner>);

impl Termination {
    async fn finalize(&self, key: &Key) -> Outcome {
        let Self(inner) = self;
        let is_going = {
            let state = inner.setup.cluster.read();
            state.node_classes.get(key).is_some_and(|class| {
                class.metadata.is_deleting() && class.metadata.has_finalizer(AZURE_TERMINATION)
            })
        };
        if !is_going {
            return Ok(Again::No);
        }
        let api = &inner.setup.api;
        let object: AKSNodeClass = match api.get(&api.path(Kind::NodeClass, key)).await {
            Err(error) if error.is_not_found() => return Ok(Again::No),
            object => object?,
        };
        let finalizers = object.metadata.finalizers.unwrap_or_default();
        if object.metadata.deletion_timestamp.is_none()
            || !finalizers.iter().any(|name| name == AZURE_TERMINATION)
        {
            return Ok(Again::No);
        }
        let claims = super::claims_of_class(inner, &key.name);
        let names: Vec<&str> = claims.iter().filter_map(|claim| claim.metadata.name.as_deref()).collect();
        if !names.is_empty() {
            let class = inner.setup.cluster.read().node_classes.get(key).cloned();
            if let Some(class) = class {
                let event = &WAITING_ON_NODE_CLAIM_TERMINATION;
                inner.setup.events.publish(event, About::object(&*class), waiting(&names), &[&key.name]);
            }
            return Ok(WAIT);
        }
        let left: Vec<&String> = finalizers.iter().filter(|name| *name != AZURE_TERMINATION).collect();
        let version = &object.metadata.resource_version;
        let change = json!({"metadata": {"finalizers": left, "resourceVersion": version}});
        match api.patch::<NodeClass>(key, &change).await {
            Err(error) if error.is_not_found() => Ok(Again::No),
            Err(error) if error.is_conflict() => Ok(Again::secs(1)),
            patched => patched.map(|_| Again::No),
        }
    }
}

fn waiting(names: &[&str]) -> String {
    let listed = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} other(s)") } else { String::new() };
    format!("Waiting on NodeClaim termination for {listed}{more}")
}

impl Reconcile for Termination {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.finalize(key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 15.3
    #[test]
    fn five_claims_are_named_and_the_others_counted() {
        assert_eq!(waiting(&["a", "b"]), "Waiting on NodeClaim termination for a, b");
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(waiting(&names), "Waiting on NodeClaim termination for a, b, c, d, e and 2 other(s)");
    }
}

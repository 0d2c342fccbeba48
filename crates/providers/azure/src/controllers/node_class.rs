//! Finds what NodeClasses resolve to, and says whether machines can be created with them.
//!
//! ```text
//!   finalizer ─► version ─► ask (images, window, subnet, keys, DNS) together ─► conditions ─► one write
//! ```

mod ask;

use std::sync::Arc;

use api::azure::AKSNodeClass;
use api::names::finalizers::AZURE_TERMINATION;
use cluster::objects::NodeClass;
use cluster::state::{Key, Kind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use serde_json::{Value, json};

use self::ask::Version;
use super::failed;
use crate::node_class::limits::refusal;
use crate::node_class::{Looked, images, local_dns, subnet, validation, version};
use crate::provider::Inner;

/// Looks after NodeClasses.
pub(super) struct NodeClasses {
    inner: Arc<Inner>,
    version: Version,
}

impl NodeClasses {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, version: Version::default() }
    }

    async fn look_after(&self, key: &Key) -> Outcome {
        let api = &self.inner.setup.api;
        // The whole object: finalizers of others must stay.
        let object: AKSNodeClass = match api.get(&api.path(Kind::NodeClass, key)).await {
            Err(error) if error.is_not_found() => return Ok(Again::No),
            object => object?,
        };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Again::No);
        }
        let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|name| name == AZURE_TERMINATION) {
            let all: Vec<&str> = finalizers.iter().map(String::as_str).chain([AZURE_TERMINATION]).collect();
            let version = &object.metadata.resource_version;
            let change = json!({"metadata": {"finalizers": all, "resourceVersion": version}});
            api.patch::<NodeClass>(key, &change).await?;
            // What was written comes back as a change.
            return Ok(Again::secs(1));
        }
        self.resolve(key, object).await
    }

    async fn resolve(&self, key: &Key, before: AKSNodeClass) -> Outcome {
        let inner = &*self.inner;
        let mut after = before.clone();
        let found = self.version.of(inner).await;
        let mut looked =
            vec![version::apply(&mut after, found.as_deref().map_err(Clone::clone), inner.setup.clock.now())];
        // None of them needs another one's answer.
        let (images_found, subnet_found, keys, dns) = futures::join!(
            ask::images(inner, &after),
            ask::subnet(inner, &after),
            ask::keys(inner),
            ask::local_dns(inner, &after),
        );
        let now = inner.setup.clock.now();
        looked.push(images::apply(&mut after, images_found, inner.setup.settings.use_sig, now));
        looked.push(subnet::apply(&mut after, subnet_found, now));
        let refused = refusal(&inner.facts());
        looked.push(validation::apply(&mut after, refused.as_ref(), keys, now));
        looked.push(local_dns::apply(&mut after, dns, now));
        if before.status != after.status {
            let change = json!({
                "metadata": {"resourceVersion": before.metadata.resource_version},
                "status": written(&after),
            });
            inner.setup.api.patch_status::<NodeClass>(key, &change).await?;
        }
        outcome(looked)
    }
}

/// The soonest of all, or everything that went wrong.
fn outcome(looked: Vec<Looked>) -> Outcome {
    let errors: Vec<String> = looked.iter().filter_map(|each| each.error.clone()).collect();
    if !errors.is_empty() {
        return Err(failed(errors.join("; ")));
    }
    Ok(looked.into_iter().fold(Again::No, |soonest, each| soonest.or_sooner(each.again)))
}

/// The status as a merge patch: what is not there any more is taken away.
fn written(object: &AKSNodeClass) -> Value {
    let mut all = serde_json::to_value(&object.status).unwrap_or_default();
    for field in ["images", "kubernetesVersion", "localDNSState"] {
        if all.get(field).is_none() {
            all[field] = Value::Null;
        }
    }
    all
}

impl Reconcile for NodeClasses {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.look_after(key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 15.1: combined errors or the minimum requeue
    #[test]
    fn the_soonest_counts_unless_something_went_wrong() {
        let looked =
            vec![Looked::again(Again::secs(900)), Looked::again(Again::No), Looked::again(Again::secs(180))];
        assert_eq!(outcome(looked).unwrap(), Again::secs(180));
        let looked = vec![Looked::failed("one"), Looked::again(Again::secs(1)), Looked::failed("two")];
        assert_eq!(outcome(looked).unwrap_err().to_string(), "one; two");
    }
}

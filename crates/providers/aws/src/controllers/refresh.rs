//! What is asked from time to time: prices, instance types, the version; and launch templates that nobody uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtime::Again;
use runtime::controller::Outcome;

use super::failed;
use crate::prices::{has_price_list, on_demand_price, on_demand_queries};
use crate::provider::{Aws, Inner};
use crate::version::{KubernetesVersion, SUPPORTED};

const HALF_A_DAY: Again = Again::After(Duration::from_hours(12));

/// Asks for prices. What is known stays wherever there is no good answer.
pub(super) async fn prices(inner: &Inner) -> Outcome {
    let services = &inner.setup.services;
    let region = &inner.setup.region;
    let spot =
        inner.counted("ec2:DescribeSpotPriceHistory", services.ec2.spot_prices(inner.setup.clock.now()));
    let by_use = async {
        if inner.setup.settings.isolated_vpc || !has_price_list(region) {
            return Ok(None);
        }
        let queries = on_demand_queries(region);
        let asked = queries
            .iter()
            .map(|query| inner.counted("pricing:GetProducts", services.pricing.products(query)));
        let answers = futures::future::try_join_all(asked).await.map_err(failed)?;
        if answers.iter().any(Vec::is_empty) {
            return Err(failed("the price list is empty, what was known stays"));
        }
        let found: BTreeMap<String, f64> =
            answers.iter().flatten().filter_map(|product| on_demand_price(product, region)).collect();
        Ok(Some(found))
    };
    let (spot, by_use) = futures::join!(spot, by_use);
    let spot = match spot {
        Ok(prices) if prices.is_empty() => Err(failed("there are no spot prices, what was known stays")),
        answer => answer.map_err(failed),
    };
    let mut known = inner.known.lock();
    if let Ok(Some(prices)) = &by_use {
        known.change_prices(|all| all.update_on_demand(prices.clone()));
    }
    if let Ok(prices) = &spot {
        known.change_prices(|all| all.update_spot(prices.clone()));
    }
    drop(known);
    by_use?;
    spot?;
    Ok(HALF_A_DAY)
}

/// Asks which instance types there are.
pub(super) async fn instance_types(aws: &Aws) -> Outcome {
    aws.refresh_instance_types().await.map_err(failed)?;
    Ok(HALF_A_DAY)
}

/// Asks for the version of the cluster. One that was not tried is used all the same.
pub(super) async fn version(inner: &Inner) -> Outcome {
    let settings = &inner.setup.settings;
    let text = if settings.eks_control_plane {
        let eks = &inner.setup.services.eks;
        let cluster = inner.counted("eks:DescribeCluster", eks.cluster(&settings.cluster_name)).await;
        cluster.map_err(failed)?.version
    } else {
        let answer: serde_json::Value = inner.setup.api.get("/version").await?;
        let part =
            |name: &str| answer.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        format!("{}.{}", part("major"), part("minor"))
    };
    let version: KubernetesVersion = text.parse().map_err(failed)?;
    if inner.known.lock().kubernetes.replace(version) != Some(version) {
        tracing::debug!(version = %version, "discovered kubernetes version");
        if !version.is_supported() {
            // It is worth a word, but a cluster that was upgraded must still get nodes.
            let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
            tracing::error!(
                version = %version,
                "this version of Kubernetes was not tried with this release, expected {first} to {last}"
            );
        }
    }
    Ok(Again::After(Duration::from_mins(5)))
}

/// Looks after launch templates: those of an earlier process are taken over once, unused ones are deleted.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchTemplates(Arc<AtomicBool>);

impl LaunchTemplates {
    pub(super) async fn look_after(&self, inner: &Inner) -> Outcome {
        if !self.0.load(Ordering::Relaxed) {
            inner.adopt_templates().await.map_err(failed)?;
            self.0.store(true, Ordering::Relaxed);
        }
        inner.delete_unused_templates().await;
        Ok(Again::secs(30))
    }
}

//! The kinds that must be defined before anything is watched. Whoever installs them may be a little later than we are.

use std::time::Duration;

use api::names::labels::DOMAIN;
use api::provider::Provider;
use runtime::Api;
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// How long is waited for definitions.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often it is looked for them.
const LOOK: Duration = Duration::from_secs(10);

/// Waits until the cluster knows NodePools, NodeClaims, NodeOverlays and AKSNodeClasses. The error names what it does
/// not know after two minutes.
pub async fn wait_for_definitions(api: &Api) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let missing = missing(api).await;
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        if begun.elapsed() >= PATIENCE {
            return Err(format!(
                "the cluster does not know {missing} after {} minutes: install the chart karpenter-crd",
                PATIENCE.as_secs() / 60
            ));
        }
        tracing::info!(missing, "waiting for definitions of kinds");
        sleep(LOOK).await;
    }
}

/// The kinds that are needed and not defined, each with why.
async fn missing(api: &Api) -> Vec<String> {
    let class = Provider::Azure.node_class();
    let wanted = [
        (format!("{DOMAIN}/v1"), vec!["NodePool", "NodeClaim"]),
        (format!("{DOMAIN}/v1alpha1"), vec!["NodeOverlay"]),
        (format!("{}/{}", class.group, class.version), vec![class.kind]),
    ];
    let mut missing = Vec::new();
    for (version, kinds) in wanted {
        match api.get::<Value>(&format!("/apis/{version}")).await {
            Ok(found) => {
                let unknown = kinds.into_iter().filter(|kind| !is_defined(&found, kind));
                missing.extend(unknown.map(|kind| format!("{kind} of {version}")));
            }
            Err(error) if error.is_not_found() => {
                missing.extend(kinds.into_iter().map(|kind| format!("{kind} of {version}")));
            }
            Err(error) => {
                missing.extend(kinds.into_iter().map(|kind| format!("{kind} of {version} ({error})")));
            }
        }
    }
    missing
}

/// Whether the list of a version's resources has a kind.
fn is_defined(list: &Value, kind: &str) -> bool {
    let resources = list.get("resources").and_then(Value::as_array);
    resources.into_iter().flatten().any(|resource| resource.get("kind").and_then(Value::as_str) == Some(kind))
}

//! What the cluster and Azure are asked for a NodeClass.

use std::collections::BTreeMap;

use api::azure::{AKSNodeClass, LocalDnsState};
use api::names::process::AZURE_MAINTENANCE_WINDOW;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::class::Class;
use crate::images::Family;
use crate::node_class::images::{Found, WindowData, is_fips_impossible, is_window_open};
use crate::node_class::local_dns::{Circumstances, Obstacles, Question, decided, has_own_policy, question};
use crate::node_class::subnet::{Answer, choose};
use crate::node_class::validation::Keys;
use crate::node_class::version::KEPT;
use crate::provider::Inner;

/// The version of the API server, asked for every quarter of an hour for all NodeClasses together.
#[derive(Debug, Default)]
pub(super) struct Version(Mutex<Option<(Instant, String)>>);

impl Version {
    pub(super) async fn of(&self, inner: &Inner) -> Result<String, String> {
        let now = Instant::now();
        let known = self.0.lock().clone().filter(|(until, _)| *until > now);
        if let Some((_, version)) = known {
            return Ok(version);
        }
        let answer: Value = inner.setup.api.get("/version").await.map_err(|error| error.to_string())?;
        let version = answer.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        // An answer that says nothing is not worth keeping.
        if !version.is_empty() {
            *self.0.lock() = Some((now + KEPT, version.clone()));
        }
        Ok(version)
    }
}

/// The latest images, and whether they may be taken over.
pub(super) async fn images(inner: &Inner, class: &AKSNodeClass) -> Result<Found, String> {
    if is_fips_impossible(class, inner.setup.settings.use_sig) {
        return Err("they are not in the community gallery".to_owned());
    }
    let (latest, window) = futures::join!(inner.latest_images(class), window(inner));
    let window = window?;
    let is_window_open = is_window_open(window.as_ref(), inner.setup.clock.now());
    Ok(Found { latest: latest.map_err(|error| error.to_string())?, is_window_open })
}

/// The maintenance window of the cluster, if it has one.
async fn window(inner: &Inner) -> Result<Option<WindowData>, String> {
    #[derive(Deserialize)]
    struct ConfigMap {
        #[serde(default)]
        data: BTreeMap<String, String>,
    }
    let Some(namespace) = inner.setup.settings.system_namespace.as_deref().filter(|name| !name.is_empty())
    else {
        return Ok(None);
    };
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{AZURE_MAINTENANCE_WINDOW}");
    match inner.setup.api.get::<ConfigMap>(&path).await {
        Ok(found) => Ok(Some(found.data)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(format!("reading ConfigMap {namespace}/{AZURE_MAINTENANCE_WINDOW}, {error}")),
    }
}

/// Whether the subnet of a class is there.
pub(super) async fn subnet(inner: &Inner, class: &AKSNodeClass) -> Result<Answer, String> {
    let id = choose(class, &inner.setup.settings.vnet_subnet_id, &inner.setup.settings.node_resource_group)?;
    Ok(match inner.setup.client.subnet(&id.to_string()).await {
        Ok(_) => Answer::Found,
        Err(error) if error.is_not_found() => Answer::Missing(error.to_string()),
        Err(error) => Answer::Unknown(error.to_string()),
    })
}

/// Whether disks can be encrypted.
pub(super) async fn keys(inner: &Inner) -> Keys {
    let Some(id) = &inner.setup.settings.node_osdisk_diskencryptionset_id else { return Keys::Usable };
    match inner.setup.client.disk_encryption_set(id).await {
        Ok(_) => Keys::Usable,
        Err(error) if error.is_forbidden() => Keys::Forbidden { id: id.clone() },
        Err(error) => Keys::Unknown(error.to_string()),
    }
}

/// Whether nodes get a DNS cache.
pub(super) async fn local_dns(inner: &Inner, class: &AKSNodeClass) -> Result<LocalDnsState, String> {
    let circumstances = Circumstances {
        network_plugin: &inner.setup.settings.network_plugin,
        network_policy: &inner.setup.settings.network_policy,
        is_ubuntu_2004: Family::of(&Class::from(class)) == Family::Ubuntu2004,
    };
    let policies = match question(class, &circumstances) {
        Question::Decided(state) => return Ok(state),
        Question::Ask { policies } => policies,
    };
    let node_local_dns =
        inner.setup.api.get::<Value>("/apis/apps/v1/namespaces/kube-system/daemonsets/node-local-dns");
    let node_local_dns = match node_local_dns.await {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error.to_string()),
    };
    let policies = policies && has_policies(inner).await?;
    Ok(decided(Obstacles { policies, node_local_dns }))
}

/// Policies of Kubernetes, of Cilium and of Calico; that a kind is not known means that there are none.
async fn has_policies(inner: &Inner) -> Result<bool, String> {
    const OTHERS: [&str; 4] = [
        "/apis/cilium.io/v2/ciliumnetworkpolicies?limit=1",
        "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies?limit=1",
        "/apis/crd.projectcalico.org/v1/networkpolicies?limit=1",
        "/apis/crd.projectcalico.org/v1/globalnetworkpolicies?limit=1",
    ];
    let items = async |path: &str| match inner.setup.api.get::<Value>(path).await {
        Ok(list) => Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    };
    let own = items("/apis/networking.k8s.io/v1/networkpolicies?limit=2").await?;
    let part = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
    let names: Vec<(String, String)> =
        own.iter().map(|item| (part(item, "namespace"), part(item, "name"))).collect();
    if has_own_policy(names.iter().map(|(namespace, name)| (namespace.as_str(), name.as_str()))) {
        return Ok(true);
    }
    for path in OTHERS {
        if !items(path).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

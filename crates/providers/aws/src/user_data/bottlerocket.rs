//! Bottlerocket: settings in TOML.

use api::aws::AmiFamily;
use toml::{Table, Value};

use super::{Bootstrap, UserDataError};
use crate::node_class::Class;

/// Settings below `settings.kubernetes` that are known; others would be refused by the machine.
const KUBERNETES: &[&str] = &[
    "api-server",
    "cloud-provider",
    "cluster-certificate",
    "cluster-name",
    "cluster-dns-ip",
    "credential-providers",
    "node-labels",
    "node-taints",
    "max-pods",
    "static-pods",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-max-pod-grace-period",
    "kube-reserved",
    "system-reserved",
    "allowed-unsafe-sysctls",
    "server-tls-bootstrap",
    "registry-qps",
    "registry-burst",
    "event-qps",
    "event-burst",
    "kube-api-qps",
    "kube-api-burst",
    "container-log-max-size",
    "container-log-max-files",
    "cpu-manager-policy",
    "cpu-manager-policy-options",
    "cpu-manager-reconcile-period",
    "memory-manager-policy",
    "memory-manager-reserved-memory",
    "topology-manager-scope",
    "topology-manager-policy",
    "topology-manager-policy-options",
    "image-gc-high-threshold-percent",
    "image-gc-low-threshold-percent",
    "ids-per-pod",
    "cpu-cfs-quota-enforced",
    "shutdown-grace-period",
    "shutdown-grace-period-for-critical-pods",
    "cluster-domain",
    "seccomp-default",
    "pod-pids-limit",
    "device-ownership-from-security-context",
    "single-process-oom-kill",
    "container-log-max-workers",
    "container-log-monitor-interval",
    "hostname-override-source",
    "log-level",
];
/// From this version on, the machine knows itself what to put onto the disks.
const BIND_KNOWS: [u64; 3] = [1, 46, 0];

pub(super) fn render(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let custom = bootstrap.custom.unwrap_or_default();
    let mut document: Table = custom.parse().map_err(|error: toml::de::Error| {
        UserDataError::Custom(format!("is no TOML: {}", error.message()))
    })?;
    let mut settings = take_table(&mut document, "settings")?;
    let mut kubernetes = take_table(&mut settings, "kubernetes")?;
    kubernetes.retain(|key, _| {
        let key: &str = key;
        let is_known = KUBERNETES.contains(&key);
        if !is_known {
            tracing::error!(key, "ignoring an unknown setting of settings.kubernetes in spec.userData");
        }
        is_known
    });
    overwrite(&mut kubernetes, bootstrap)?;
    settings.insert("kubernetes".to_owned(), kubernetes.into());
    if bootstrap.is_striped() {
        let mut commands = take_table(&mut settings, "bootstrap-commands")?;
        commands.insert("000-mount-instance-storage".to_owned(), mount(&bootstrap.image_version).into());
        settings.insert("bootstrap-commands".to_owned(), commands.into());
    }
    let result = Table::from_iter([("settings".to_owned(), Value::Table(settings))]);
    Ok(result.to_string())
}

/// A part of a document; empty if it is not there.
fn take_table(parent: &mut Table, key: &str) -> Result<Table, UserDataError> {
    match parent.remove(key) {
        None => Ok(Table::new()),
        Some(Value::Table(table)) => Ok(table),
        Some(_) => Err(UserDataError::Custom(format!("has {key:?} as something else than a table"))),
    }
}

fn overwrite(kubernetes: &mut Table, bootstrap: &Bootstrap<'_>) -> Result<(), UserDataError> {
    let (cluster, kubelet) = (bootstrap.cluster, &bootstrap.kubelet);
    let mut labels = take_table(kubernetes, "node-labels")?;
    labels.extend(texts(&bootstrap.labels));
    let mut taints = Table::new();
    for taint in &bootstrap.taints {
        let entry = taints.entry(taint.key.clone()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = entry {
            values.push(format!("{}:{}", taint.value, taint.effect).into());
        }
    }
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            kubernetes.insert(key.to_owned(), value);
        }
    };
    let some = |table: Table| (!table.is_empty()).then_some(Value::Table(table));
    let number = |number: Option<i32>| number.map(|number| Value::Integer(number.into()));
    let text = |number: Option<i32>| number.map(|number| Value::String(number.to_string()));
    set("cluster-name", Some(cluster.name.clone().into()));
    set("api-server", Some(cluster.endpoint.clone().into()));
    set("cluster-certificate", cluster.ca_bundle.clone().map(Into::into));
    set("node-labels", some(labels));
    // Ours are all that there are: a node with others would not be the one that was planned.
    set("node-taints", some(taints));
    set("max-pods", number(kubelet.literal_max_pods()));
    set("cluster-dns-ip", kubelet.cluster_dns.first().cloned().map(Into::into));
    set("system-reserved", some(texts(&kubelet.system_reserved)));
    set("kube-reserved", some(texts(&kubelet.kube_reserved)));
    set("eviction-hard", some(texts(&kubelet.eviction_hard)));
    set("eviction-soft", some(texts(&kubelet.eviction_soft)));
    set("eviction-soft-grace-period", some(texts(&kubelet.eviction_soft_grace_period)));
    set("eviction-max-pod-grace-period", number(kubelet.eviction_max_pod_grace_period));
    set("image-gc-high-threshold-percent", text(kubelet.image_gc_high_threshold_percent));
    set("image-gc-low-threshold-percent", text(kubelet.image_gc_low_threshold_percent));
    set("cpu-cfs-quota-enforced", kubelet.cpu_cfs_quota.map(Value::Boolean));
    Ok(())
}

fn texts<'a, V: ToString + 'a>(entries: impl IntoIterator<Item = (&'a String, &'a V)>) -> Table {
    entries.into_iter().map(|(key, value)| (key.clone(), Value::String(value.to_string()))).collect()
}

/// What puts the disks inside the host to use.
fn mount(image_version: &str) -> Table {
    let command = |words: &[&str]| Value::Array(words.iter().map(|word| (*word).into()).collect());
    let bind: &[&str] = if bind_knows_directories(image_version) {
        &["apiclient", "ephemeral-storage", "bind"]
    } else {
        &[
            "apiclient",
            "ephemeral-storage",
            "bind",
            "--dirs",
            "/var/lib/containerd",
            "/var/lib/kubelet",
            "/var/log/pods",
        ]
    };
    let commands = vec![command(&["apiclient", "ephemeral-storage", "init"]), command(bind)];
    Table::from_iter([
        ("commands".to_owned(), Value::Array(commands)),
        ("mode".to_owned(), "always".into()),
        ("essential".to_owned(), true.into()),
    ])
}

fn bind_knows_directories(image_version: &str) -> bool {
    let numbers: Vec<Option<u64>> = image_version.split('.').map(|part| part.parse().ok()).collect();
    match numbers[..] {
        [Some(major), Some(minor), Some(patch)] => [major, minor, patch] >= BIND_KNOWS,
        _ => image_version == "latest",
    }
}

/// The version of a NodeClass's images, as far as it is known: by the alias, by the name that images must
/// have, or by the names of those that were found. Empty for other families and if nothing says it.
pub fn image_version(class: &Class<'_>) -> String {
    if class.family != AmiFamily::Bottlerocket {
        return String::new();
    }
    let terms = &class.spec.ami_selector_terms;
    let alias = terms.iter().find_map(|term| term.alias.as_deref()?.split_once('@'));
    let version = alias.map(|(_, version)| version).or_else(|| {
        let named = terms.iter().find_map(|term| version_in(term.name.as_deref()?));
        named.or_else(|| {
            let images = || class.status.amis.iter().filter(|image| image.name.contains("bottlerocket"));
            let is_listed = |id: &str| terms.iter().any(|term| term.id.as_deref() == Some(id));
            let listed =
                images().filter(|image| is_listed(&image.id)).find_map(|image| version_in(&image.name));
            listed.or_else(|| images().find_map(|image| version_in(&image.name)))
        })
    });
    version.unwrap_or_default().trim_start_matches('v').to_owned()
}

/// The version in the name of an image, such as `v1.19.0` in `bottlerocket-aws-k8s-1.29-x86_64-v1.19.0-abc`.
fn version_in(name: &str) -> Option<&str> {
    name.split('-').find(|word| word.starts_with('v') && word.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_images_know_their_directories() {
        for (version, knows) in [
            ("latest", true),
            ("1.46.0", true),
            ("1.100.3", true),
            ("2.0.0", true),
            ("1.45.9", false),
            ("1.46", false),
            ("", false),
            ("1.46.x", false),
        ] {
            assert_eq!(bind_knows_directories(version), knows, "{version}");
        }
    }

    #[test]
    fn names_of_images_have_their_version() {
        assert_eq!(version_in("bottlerocket-aws-k8s-1.29-x86_64-v1.19.0-abc"), Some("v1.19.0"));
        assert_eq!(version_in("bottlerocket-aws-k8s-1.29-*"), None);
    }
}

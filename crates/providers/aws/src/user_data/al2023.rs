//! Amazon Linux 2023: settings for `nodeadm`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::mime::{self, Part};
use super::{Bootstrap, UserDataError, flags};

pub(super) fn render(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let mut parts = match bootstrap.custom {
        Some(custom) if mime::is_archive(custom) => mime::read(custom)?,
        Some(custom) if is_mapping(custom) => vec![Part::node_config(custom)],
        Some(custom) if !custom.is_empty() => vec![Part::shell_script(custom)],
        _ => Vec::new(),
    };
    // The last one wins where they contradict each other.
    parts.push(Part::node_config(node_config(bootstrap)?));
    Ok(mime::write(&parts))
}

/// Whether a text is YAML with settings. Of several documents the first one decides, as for the original.
fn is_mapping(text: &str) -> bool {
    serde_saphyr::from_str::<Map<String, Value>>(&first_document(text))
        .is_ok_and(|mapping| !mapping.is_empty())
}

/// The first document of a text in YAML: everything up to the next line that ends one.
fn first_document(text: &str) -> String {
    let is_marker = |line: &str, marker: &str| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let is_blank = |line: &str| line.trim().is_empty() || line.starts_with(['#', '%']);
    let mut document = String::new();
    let mut has_content = false;
    for line in text.lines() {
        let ends = is_marker(line, "---") || is_marker(line, "...");
        if ends && has_content {
            break;
        }
        has_content |= !is_blank(line) && !ends;
        document.push_str(line);
        document.push('\n');
    }
    document
}

fn node_config(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let cluster = bootstrap.cluster;
    let cidr = cluster.cidr.as_ref().ok_or(UserDataError::NoClusterCidr)?;
    let mut of_cluster = json!({"apiServerEndpoint": cluster.endpoint, "cidr": cidr, "name": cluster.name});
    if let Some(ca) = &cluster.ca_bundle {
        BASE64_STANDARD.decode(ca).map_err(|_| UserDataError::CaBundle)?;
        of_cluster["certificateAuthority"] = json!(ca);
    }
    let mut config = bootstrap.all_kubelet.clone();
    if !bootstrap.taints.is_empty() {
        config.insert("registerWithTaints".to_owned(), json!(bootstrap.taints));
    }
    let mut kubelet = json!({"config": config});
    if let Some(flag) = flags::labels(bootstrap) {
        kubelet["flags"] = json!([flag]);
    }
    let storage = if bootstrap.is_striped() { json!({"strategy": "RAID0"}) } else { json!({}) };
    let document = json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": of_cluster,
            "containerd": {},
            "instance": {"localStorage": storage},
            "kubelet": kubelet,
        },
    });
    // JSON is YAML, too, should printing fail.
    let text = serde_saphyr::to_string(&document).unwrap_or_else(|_| document.to_string());
    Ok(format!("# Karpenter Generated NodeConfig\n{text}"))
}

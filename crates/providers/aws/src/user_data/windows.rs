//! Windows: a script that starts the image's own.

use super::{Bootstrap, flags};

pub(super) fn render(bootstrap: &Bootstrap<'_>) -> String {
    let cluster = bootstrap.cluster;
    let custom = match bootstrap.custom {
        Some(custom) if !custom.is_empty() => format!("{custom}\n"),
        _ => String::new(),
    };
    let option = |name: &str, value: Option<&str>| {
        value.map(|value| format!(" -{name} '{value}'")).unwrap_or_default()
    };
    let flags = flags::all(bootstrap).join(" ");
    format!(
        "<powershell>\n{custom}\
         [string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
         & $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'{}{}{}\n\
         </powershell>",
        cluster.name,
        cluster.endpoint,
        option("Base64ClusterCA", cluster.ca_bundle.as_deref()),
        option("KubeletExtraArgs", Some(flags.as_str()).filter(|flags| !flags.is_empty())),
        option("DNSClusterIP", bootstrap.kubelet.cluster_dns.first().map(String::as_str)),
    )
}

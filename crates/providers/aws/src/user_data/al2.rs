//! Amazon Linux 2: a script that starts the image's own.

use std::net::Ipv6Addr;

use super::mime::{self, Part};
use super::{Bootstrap, UserDataError, flags};

pub(super) fn render(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let mut parts = match bootstrap.custom {
        Some(custom) if mime::is_archive(custom) => mime::read(custom)?,
        Some(custom) if !custom.is_empty() => vec![Part::shell_script(custom)],
        _ => Vec::new(),
    };
    parts.push(Part::shell_script(script(bootstrap)));
    Ok(mime::write(&parts))
}

fn script(bootstrap: &Bootstrap<'_>) -> String {
    let cluster = bootstrap.cluster;
    let ca = cluster.ca_bundle.as_ref().map(|ca| format!(" --b64-cluster-ca '{ca}'")).unwrap_or_default();
    let mut call =
        format!("/etc/eks/bootstrap.sh '{}' --apiserver-endpoint '{}'{ca}", cluster.name, cluster.endpoint);
    let dns = bootstrap.kubelet.cluster_dns.first();
    let mut arguments = Vec::new();
    if dns.is_some_and(|dns| dns.parse::<Ipv6Addr>().is_ok()) {
        arguments.push("--ip-family ipv6".to_owned());
    }
    arguments.extend(dns.map(|dns| format!("--dns-cluster-ip '{dns}'")));
    if bootstrap.kubelet.literal_max_pods().is_some() {
        arguments.push("--use-max-pods false".to_owned());
    }
    let flags = flags::all(bootstrap);
    if !flags.is_empty() {
        arguments.push(format!("--kubelet-extra-args '{}'", flags.join(" ")));
    }
    if bootstrap.is_striped() {
        arguments.push("--local-disks raid0".to_owned());
    }
    for argument in arguments {
        call.push_str(" \\\n");
        call.push_str(&argument);
    }
    format!(
        "#!/bin/bash -xe\n\
         exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n\
         {call}"
    )
}

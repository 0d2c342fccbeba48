//! Instances in the cloud that carry the tag of a smoke test, asked for directly and not through Karpenter.

use anyhow::Result;
use api::provider::Provider;

/// Instances and network interfaces that the cloud still has; nothing for simulated nodes, which are Node objects.
pub(super) async fn left(provider: Provider, node_pool: &str, resource_group: &str) -> Result<Vec<String>> {
    match provider {
        #[cfg(feature = "aws")]
        Provider::Aws => of_aws(node_pool).await,
        #[cfg(feature = "azure")]
        Provider::Azure => of_azure(node_pool, resource_group).await,
        _ => {
            let _ = (node_pool, resource_group);
            Ok(Vec::new())
        }
    }
}

#[cfg(feature = "aws")]
async fn of_aws(node_pool: &str) -> Result<Vec<String>> {
    use aws::port::{Filter, InstanceState};
    use runtime::metrics::Registry;

    let metrics = Registry::for_provider(Provider::Aws);
    let connection = aws_sdk::connect(crate::controller::VERSION, &metrics).await?;
    let tagged = [Filter::tag(api::names::labels::NODEPOOL, node_pool)];
    let found = connection.services.ec2.instances(&[], &tagged).await?;
    let alive = found.into_iter().filter(|instance| instance.state != InstanceState::Terminated);
    Ok(alive.map(|instance| format!("instance {} ({})", instance.id, instance.state.as_str())).collect())
}

#[cfg(feature = "azure")]
async fn of_azure(node_pool: &str, resource_group: &str) -> Result<Vec<String>> {
    use anyhow::bail;

    const TAG: &str = "karpenter.sh_nodepool";
    if resource_group.is_empty() {
        bail!("the resource group of the nodes is not known; --node-resource-group names it");
    }
    let environment = crate::azure_client::environment()?;
    let subscription = crate::azure_client::subscription(None)?;
    let client = crate::azure_client::connect(&environment, &subscription).await?;
    let machines = client.virtual_machines(resource_group).await?.into_iter();
    let machines = machines.map(|machine| ("virtual machine", machine.name, machine.tags));
    let interfaces = client.network_interfaces(resource_group).await?.into_iter();
    let interfaces = interfaces.map(|interface| ("network interface", interface.name, interface.tags));
    let of_test = machines.chain(interfaces).filter(|(_, _, tags)| {
        let mut tags = tags.iter().flatten();
        tags.any(|(key, value)| key.eq_ignore_ascii_case(TAG) && value == node_pool)
    });
    Ok(of_test.map(|(kind, name, _)| format!("{kind} {}", name.unwrap_or_default())).collect())
}

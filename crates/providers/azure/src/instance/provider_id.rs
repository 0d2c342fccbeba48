//! How Nodes and claims name machines: `azure://` and the resource ID of the virtual machine.

use api::names::process::AZURE_PROVIDER_ID;

const MACHINES: &str = "virtualMachines";

/// The last part of a resource ID.
pub fn last_part(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// The provider ID of a virtual machine. Resource groups and names are in lower case, as kubelets write them.
pub fn of(resource_id: &str) -> String {
    let mut id = String::from(AZURE_PROVIDER_ID);
    let mut before = "";
    for part in resource_id.split('/').skip(1) {
        id.push('/');
        if before.eq_ignore_ascii_case("resourceGroups") || before.eq_ignore_ascii_case(MACHINES) {
            id += &part.to_lowercase();
        } else {
            id += part;
        }
        before = part;
    }
    id
}

/// The name of the virtual machine that a provider ID is about.
pub fn machine_name(provider_id: &str) -> Option<&str> {
    let id = provider_id.strip_prefix(AZURE_PROVIDER_ID)?;
    let parts: Vec<&str> = id.split('/').collect();
    match parts[..] {
        ["", _, _, _, _, _, _, kind, name] if kind.eq_ignore_ascii_case(MACHINES) && !name.is_empty() => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 9
    #[test]
    fn the_name_of_a_machine_is_in_its_provider_id() {
        let id = of("/subscriptions/s/resourceGroups/MC_a/providers/Microsoft.Compute/virtualMachines/aks-B");
        assert_eq!(id, "azure:///subscriptions/s/resourceGroups/mc_a/providers/Microsoft.Compute/virtualMachines/aks-b");
        assert_eq!(machine_name(&id), Some("aks-b"));
        for wrong in ["", "aws:///a/i-1", "azure:///subscriptions/s", "azure:///a/b/c/d/e/f/virtualMachines/"] {
            assert_eq!(machine_name(wrong), None, "{wrong}");
        }
    }
}

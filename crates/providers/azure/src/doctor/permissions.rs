//! What we may do. Azure says which roles somebody has in a resource group, and each role what it allows: so exactly
//! what is missing can be named, without trying anything.

use cloud::doctor::Check;

use super::{Rights, Subject, parsed};
use crate::arm::types::cluster::Permission;

/// Something that the controller does, and what does not work without it.
pub(super) type Action = (&'static str, &'static str);

const NOTHING_LAUNCHED: &str = "nothing can be launched";
const NEVER_REMOVED: &str = "nodes are never removed";

/// What the controller does in a resource group.
pub(super) struct Needs {
    /// What for.
    what: &'static str,
    actions: &'static [Action],
}

/// In the resource group of the nodes, where we make virtual machines.
const MACHINES: &Needs = &Needs { what: "machines", actions: MACHINE_ACTIONS };
/// In the resource group of the network.
const NETWORK: &Needs = &Needs { what: "the network", actions: NETWORK_ACTIONS };
/// In the resource group of the cluster, where AKS makes machines for us.
const AKS_MACHINES: &Needs = &Needs { what: "AKS machines", actions: AKS_ACTIONS };

const MACHINE_ACTIONS: &[Action] = &[
    ("Microsoft.Compute/virtualMachines/read", "machines are not found again"),
    ("Microsoft.Compute/virtualMachines/write", NOTHING_LAUNCHED),
    ("Microsoft.Compute/virtualMachines/delete", NEVER_REMOVED),
    ("Microsoft.Compute/virtualMachines/extensions/read", "machines are not billed as nodes of AKS"),
    ("Microsoft.Compute/virtualMachines/extensions/write", "machines are not billed as nodes of AKS"),
    ("Microsoft.Network/networkInterfaces/read", NOTHING_LAUNCHED),
    ("Microsoft.Network/networkInterfaces/write", NOTHING_LAUNCHED),
    ("Microsoft.Network/networkInterfaces/join/action", NOTHING_LAUNCHED),
    ("Microsoft.Network/networkInterfaces/delete", "network interfaces without a machine stay"),
    ("Microsoft.Network/networkSecurityGroups/read", NOTHING_LAUNCHED),
    ("Microsoft.Network/networkSecurityGroups/join/action", NOTHING_LAUNCHED),
    ("Microsoft.Network/loadBalancers/read", NOTHING_LAUNCHED),
    ("Microsoft.Network/loadBalancers/backendAddressPools/join/action", NOTHING_LAUNCHED),
    ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", NOTHING_LAUNCHED),
];

const NETWORK_ACTIONS: &[Action] = &[
    ("Microsoft.Network/virtualNetworks/read", "the network of the nodes cannot be told apart from others"),
    ("Microsoft.Network/virtualNetworks/subnets/read", "no AKSNodeClass becomes ready"),
    ("Microsoft.Network/virtualNetworks/subnets/join/action", NOTHING_LAUNCHED),
];

const AKS_ACTIONS: &[Action] = &[
    ("Microsoft.ContainerService/managedClusters/agentPools/read", "the pool of machines is not found"),
    ("Microsoft.ContainerService/managedClusters/agentPools/machines/read", "machines are not found again"),
    ("Microsoft.ContainerService/managedClusters/agentPools/machines/write", NOTHING_LAUNCHED),
    ("Microsoft.ContainerService/managedClusters/agentPools/deleteMachines/action", NEVER_REMOVED),
];

/// The resource groups in which we must be allowed something, and what. A network of another subscription is left out.
pub(super) fn scopes(subject: &Subject, subscription: &str) -> Vec<(String, &'static Needs)> {
    let mut scopes = Vec::new();
    if subject.mode.is_machine_api() {
        scopes.push((subject.cluster_resource_group.clone(), AKS_MACHINES));
    } else {
        scopes.push((subject.node_resource_group.clone(), MACHINES));
    }
    if let Some(subnet) = parsed(&subject.vnet_subnet_id)
        && subnet.subscription.eq_ignore_ascii_case(subscription)
    {
        scopes.push((subnet.resource_group, NETWORK));
    }
    scopes
}

/// What is said about the rights in a resource group.
pub(super) fn report(rights: &Rights) -> Vec<Check> {
    let Rights { group, needed, allowed } = rights;
    let Needs { what, actions } = *needed;
    let about = format!("permissions for {what} in resource group {group}");
    let allowed = match allowed {
        Ok(allowed) => allowed,
        Err(error) => {
            let advice = "the roles of docs/azure.md allow Microsoft.Authorization/permissions/read";
            return vec![Check::warning(about, format!("nobody says what is allowed, {error}"), advice)];
        }
    };
    let missing: Vec<&Action> = actions.iter().filter(|(action, _)| !is_allowed(allowed, action)).collect();
    if missing.is_empty() {
        return vec![Check::good(about, format!("{} actions are allowed", actions.len()))];
    }
    let one = |(action, without): &&Action| {
        let advice = format!("give the identity the role {} in resource group {group}", role(action));
        Check::bad(format!("permission {action}"), format!("missing in {group}, so {without}"), advice)
    };
    missing.iter().map(one).collect()
}

/// The built-in role that is meant to allow an action.
fn role(action: &str) -> &'static str {
    match action.split('/').next() {
        Some("Microsoft.Compute") => "Virtual Machine Contributor",
        Some("Microsoft.ManagedIdentity") => "Managed Identity Operator",
        Some("Microsoft.ContainerService") => "Azure Kubernetes Service Contributor Role",
        _ => "Network Contributor",
    }
}

/// Whether some role allows an action, and does not take it back itself.
fn is_allowed(roles: &[Permission], action: &str) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, action));
    roles.iter().any(|role| any(&role.actions) && !any(&role.not_actions))
}

/// Whether a pattern means an action. `*` stands for anything, and `/*/` for a single `/`, too: the role Managed
/// Identity Operator allows `userAssignedIdentities/*/assign/action`, and with it `userAssignedIdentities/assign/action`.
fn matches(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    fits(&pattern, &action) || fits(&pattern.replace("/*/", "/"), &action)
}

fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Error;

    #[test]
    fn patterns_of_roles_mean_what_azure_means_by_them() {
        let vm = "Microsoft.Compute/virtualMachines/write";
        for pattern in ["*", "Microsoft.Compute/*", "microsoft.compute/virtualmachines/*", "*/write", vm] {
            assert!(matches(pattern, vm), "{pattern}");
        }
        for pattern in ["", "*/read", "Microsoft.Compute/virtualMachines", "Microsoft.Compute/disks/*"] {
            assert!(!matches(pattern, vm), "{pattern}");
        }
        let assign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action";
        assert!(matches("Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action", assign));
        assert!(!matches("Microsoft.ManagedIdentity/userAssignedIdentities/*/read", assign));
        assert!(matches("Microsoft.*/a/*/b", "Microsoft.X/a/y/z/b"));
    }

    fn rights(roles: &[(&[&str], &[&str])]) -> Rights {
        let owned = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        let role = |(actions, not): &(&[&str], &[&str])| Permission {
            actions: owned(actions),
            not_actions: owned(not),
        };
        Rights { group: "MC".to_owned(), needed: MACHINES, allowed: Ok(roles.iter().map(role).collect()) }
    }

    // azure.md 22.3
    #[test]
    fn exactly_what_is_missing_is_named_with_its_role() {
        let all = report(&rights(&[(&["*"], &[])]));
        assert_eq!(
            all,
            [Check::good("permissions for machines in resource group MC", "14 actions are allowed")]
        );
        let some = report(&rights(&[
            (&["Microsoft.Compute/*", "Microsoft.Network/*"], &["Microsoft.Compute/virtualMachines/delete"]),
            (&["*/read"], &[]),
        ]));
        let named: Vec<&str> = some.iter().map(|check| check.about.as_str()).collect();
        assert_eq!(
            named,
            [
                "permission Microsoft.Compute/virtualMachines/delete",
                "permission Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
            ]
        );
        assert!(some[0].message.contains("nodes are never removed"), "{}", some[0].message);
        assert!(some[1].advice.contains("Managed Identity Operator"), "{}", some[1].advice);
        let none = report(&rights(&[]));
        assert_eq!(none.len(), MACHINE_ACTIONS.len());
    }

    #[test]
    fn that_nobody_says_what_is_allowed_is_no_failure() {
        let allowed = Err(Error::new("GET permissions", "AuthorizationFailed", "no"));
        let checks = report(&Rights { group: "MC".to_owned(), needed: MACHINES, allowed });
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].level, cloud::doctor::Level::Warning);
    }

    #[test]
    fn rights_are_looked_at_where_things_are_made() {
        let subnet =
            "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/n";
        let mut subject = Subject {
            cluster_resource_group: "rg".to_owned(),
            node_resource_group: "MC".to_owned(),
            vnet_subnet_id: subnet.to_owned(),
            ..Subject::default()
        };
        let groups = |subject: &Subject, subscription: &str| -> Vec<String> {
            scopes(subject, subscription).into_iter().map(|(group, _)| group).collect()
        };
        assert_eq!(groups(&subject, "S"), ["MC", "net"]);
        assert_eq!(groups(&subject, "other"), ["MC"], "we can only ask in our own subscription");
        subject.mode = crate::settings::ProvisionMode::AksMachineApi;
        assert_eq!(groups(&subject, "S"), ["rg", "net"]);
    }
}

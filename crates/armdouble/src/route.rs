//! Which operation a path means.

use percent_encoding::percent_decode_str;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sizes of virtual machines.
    Sku,
    /// Quota of compute.
    Usage,
    /// Versions of an image of a community gallery.
    CommunityVersion,
    /// Versions of AKS' node images.
    NodeImageVersion,
    /// A virtual machine.
    VirtualMachine,
    /// An extension of a virtual machine.
    Extension,
    /// A network interface.
    NetworkInterface,
    /// A network security group.
    SecurityGroup,
    /// A load balancer.
    LoadBalancer,
    /// A virtual network.
    VirtualNetwork,
    /// A subnet of a virtual network.
    Subnet,
    /// A disk encryption set.
    DiskEncryptionSet,
    /// A query of the Resource Graph.
    ResourceGraph,
    /// An AKS cluster.
    ManagedCluster,
    /// An agent pool of an AKS cluster.
    AgentPool,
    /// A machine of an agent pool.
    Machine,
    /// The action that deletes machines.
    DeleteMachines,
    /// Retail prices.
    Price,
    /// What a node needs to join a cluster, from a server of AKS.
    NodeBootstrapping,
    /// A token for images of another tenant.
    GalleryToken,
    /// A token of Entra ID.
    Token,
    /// A token of the instance metadata service.
    InstanceToken,
    /// What became of a long-running operation.
    Operation,
    /// A resource provider.
    Provider,
    /// A resource group.
    ResourceGroup,
    /// Any other resource that there is.
    Other,
    /// Nothing that is known.
    Unknown,
}

/// A path, read.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) kind: Kind,
    pub(crate) subscription: Option<String>,
    pub(crate) group: Option<String>,
    /// Such as `Microsoft.Compute/virtualMachines/extensions`; types of our kinds are spelt as Azure spells them.
    pub(crate) resource_type: String,
    /// Names from the outside in; a collection has one fewer than types.
    pub(crate) names: Vec<String>,
    pub(crate) location: Option<String>,
    /// Whether it is a list of resources.
    pub(crate) is_collection: bool,
    /// The path without a query, decoded: the ID of what is asked for.
    pub(crate) id: String,
}

impl Route {
    /// The name of what is asked for.
    pub(crate) fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    pub(crate) fn group(&self) -> &str {
        self.group.as_deref().unwrap_or_default()
    }

    /// The ID of the resource that this one is part of.
    pub(crate) fn parent(&self) -> String {
        let drop = if self.is_collection { 1 } else { 2 };
        let parts: Vec<_> = self.id.split('/').collect();
        parts[..parts.len().saturating_sub(drop)].join("/")
    }
}

/// Types as Azure spells them.
const TYPES: [(&str, Kind); 11] = [
    ("Microsoft.Compute/virtualMachines", Kind::VirtualMachine),
    ("Microsoft.Compute/virtualMachines/extensions", Kind::Extension),
    ("Microsoft.Compute/diskEncryptionSets", Kind::DiskEncryptionSet),
    ("Microsoft.Network/networkInterfaces", Kind::NetworkInterface),
    ("Microsoft.Network/networkSecurityGroups", Kind::SecurityGroup),
    ("Microsoft.Network/loadBalancers", Kind::LoadBalancer),
    ("Microsoft.Network/virtualNetworks", Kind::VirtualNetwork),
    ("Microsoft.Network/virtualNetworks/subnets", Kind::Subnet),
    ("Microsoft.ContainerService/managedClusters", Kind::ManagedCluster),
    ("Microsoft.ContainerService/managedClusters/agentPools", Kind::AgentPool),
    ("Microsoft.ContainerService/managedClusters/agentPools/machines", Kind::Machine),
];

impl Kind {
    /// The type of resources of this kind, if they are resources.
    pub fn resource_type(self) -> Option<&'static str> {
        TYPES.iter().find(|(_, kind)| *kind == self).map(|(name, _)| *name)
    }
}

pub(crate) fn route(path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let mut route = Route {
        kind: Kind::Unknown,
        subscription: None,
        group: None,
        resource_type: String::new(),
        names: Vec::new(),
        location: None,
        is_collection: false,
        id: format!("/{}", parts.join("/")),
    };
    match &lower[..] {
        ["api", "retail", "prices"] => route.kind = Kind::Price,
        ["metadata", "identity", "oauth2", "token"] => route.kind = Kind::InstanceToken,
        ["sig", "token"] => route.kind = Kind::GalleryToken,
        [_, "oauth2", "v2.0", "token"] => {
            route.kind = Kind::Token;
            route.names.push(parts[0].clone());
        }
        ["providers", "microsoft.resourcegraph", "resources"] => route.kind = Kind::ResourceGraph,
        ["subscriptions", _, "providers", rest @ ..] => {
            route.subscription = Some(parts[1].clone());
            of_subscription(&mut route, &parts[3..], rest);
        }
        ["subscriptions", _, "resourcegroups", _] => {
            route.subscription = Some(parts[1].clone());
            route.group = Some(parts[3].clone());
            route.kind = Kind::ResourceGroup;
        }
        ["subscriptions", _, "resourcegroups", _, "providers", _, ..] => {
            route.subscription = Some(parts[1].clone());
            route.group = Some(parts[3].clone());
            of_group(&mut route, &parts[5..]);
        }
        _ => {}
    }
    route
}

/// Paths below a subscription that belong to no resource group.
fn of_subscription(route: &mut Route, parts: &[String], lower: &[&str]) {
    route.kind = match lower {
        [_] | [_, "register"] => Kind::Provider,
        ["microsoft.compute", "skus"] => Kind::Sku,
        ["microsoft.compute", "locations", _, "usages"] => Kind::Usage,
        ["microsoft.compute", "locations", _, "communitygalleries", _, "images", _, "versions"] => {
            route.names = vec![parts[4].clone(), parts[6].clone()];
            Kind::CommunityVersion
        }
        ["microsoft.containerservice", "locations", _, "nodeimageversions"] => Kind::NodeImageVersion,
        [_, "locations", _, "operations" | "operationresults", _] => {
            route.names = vec![parts[4].clone()];
            route.is_collection = lower[3] == "operationresults";
            Kind::Operation
        }
        [_, _] => Kind::Other,
        _ => Kind::Unknown,
    };
    if lower.get(1) == Some(&"locations") {
        route.location = parts.get(2).cloned();
    }
    if route.kind == Kind::Provider {
        route.names = vec![parts[0].clone()];
    } else if route.kind == Kind::Other {
        route.is_collection = true;
        spell(route, &format!("{}/{}", parts[0], parts[1]));
    }
}

/// Resources: a provider, then types and names in turn.
fn of_group(route: &mut Route, parts: &[String]) {
    let types: Vec<&str> = parts[1..].iter().step_by(2).map(String::as_str).collect();
    route.names = parts[1..].iter().skip(1).step_by(2).cloned().collect();
    route.is_collection = types.len() > route.names.len();
    spell(route, &format!("{}/{}", parts[0], types.join("/")));
    match types.last().map(|last| last.to_ascii_lowercase()).as_deref() {
        Some("nodebootstrapping") => route.kind = Kind::NodeBootstrapping,
        Some("deletemachines") => route.kind = Kind::DeleteMachines,
        _ => {}
    }
}

fn spell(route: &mut Route, written: &str) {
    let known = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(written));
    let (name, kind) = known.map_or((written, Kind::Other), |(name, kind)| (*name, *kind));
    name.clone_into(&mut route.resource_type);
    route.kind = kind;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_whatever_their_case() {
        let path =
            "/subscriptions/s/resourcegroups/G/providers/microsoft.compute/VIRTUALMACHINES/a/extensions/e";
        let read = route(path);
        assert_eq!(read.kind, Kind::Extension);
        assert_eq!(read.resource_type, "Microsoft.Compute/virtualMachines/extensions");
        assert_eq!(read.names, ["a", "e"]);
        assert!(read.parent().ends_with("/VIRTUALMACHINES/a"), "{}", read.parent());
        let list = route("/subscriptions/s/resourceGroups/G/providers/Microsoft.Network/loadBalancers");
        assert_eq!((list.kind, list.is_collection), (Kind::LoadBalancer, true));
    }

    #[test]
    fn what_is_no_resource_is_found_too() {
        let kind = |path: &str| route(path).kind;
        let compute = "/subscriptions/s/providers/Microsoft.Compute";
        assert_eq!(kind(&format!("{compute}/skus")), Kind::Sku);
        assert_eq!(kind(&format!("{compute}/locations/l/usages")), Kind::Usage);
        let versions = format!("{compute}/locations/l/communityGalleries/g/images/i/versions");
        assert_eq!(kind(&versions), Kind::CommunityVersion);
        assert_eq!(kind("/providers/Microsoft.ResourceGraph/resources"), Kind::ResourceGraph);
        assert_eq!(kind("/tenant/oauth2/v2.0/token"), Kind::Token);
        let pool = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c/agentPools/p";
        assert_eq!(kind(&format!("{pool}/deleteMachines")), Kind::DeleteMachines);
        assert_eq!(kind(&format!("{pool}/machines/m")), Kind::Machine);
        assert_eq!(kind("/nothing"), Kind::Unknown);
    }
}

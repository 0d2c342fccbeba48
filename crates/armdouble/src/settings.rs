//! How this Azure behaves: names, times and the forms of its answers.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;

use crate::route::Kind;

/// How a client learns what became of a long-running operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From the URL in the header `Azure-AsyncOperation`.
    AsyncOperation,
    /// From the URL in the header `Operation-Location`.
    OperationLocation,
    /// From the URL in the header `Location`: 202 until it is done.
    Location,
    /// `Azure-AsyncOperation` and `Location`, as most services answer deletions.
    Both,
    /// From `properties.provisioningState` of the resource; deletions and actions then say nothing, which is an error.
    Body,
    /// It is done when it is answered.
    Immediate,
}

/// How a kind of long-running operation behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lro {
    /// How the client learns the end.
    pub form: Form,
    /// How long it takes.
    pub takes: Duration,
    /// What `Retry-After` says, if it is there.
    pub retry_after: Option<Duration>,
}

impl Lro {
    /// An operation without `Retry-After`.
    pub fn new(form: Form, takes: Duration) -> Self {
        Self { form, takes, retry_after: None }
    }
}

/// For whom the network interface of a refused virtual machine is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// For nobody: it is free at once.
    None,
    /// For the next virtual machine of the same name.
    SameName,
    /// For the virtual machine that was refused, which never comes.
    Strict,
}

/// How this Azure behaves; everything can be changed at any time.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only subscription.
    pub subscription: String,
    /// The tenant of the subscription.
    pub tenant: String,
    /// The region.
    pub location: String,
    /// The name of the AKS cluster.
    pub cluster: String,
    /// The resource group of the cluster.
    pub cluster_resource_group: String,
    /// The resource group of its nodes.
    pub node_resource_group: String,
    /// The agent pool of machines.
    pub machines_pool: String,
    /// How many elements a page has.
    pub page_size: usize,
    /// How late the Resource Graph is.
    pub graph_lag: Duration,
    /// How long every answer takes.
    pub latency: Duration,
    /// Whether only those API versions are known that the provider is written for.
    pub has_strict_versions: bool,
    /// Whether operations are forgotten when they are done, so that asking once more is answered by 404.
    pub forgets_operations: bool,
    /// Whether a refused virtual machine reserves its network interface for 180 s, too.
    pub refused_interfaces: Reservation,
    /// Whether nobody but AKS may change anything in the resource group of the nodes.
    pub locks_node_resource_group: bool,
    lro: BTreeMap<(Kind, String), Lro>,
}

impl Default for Settings {
    fn default() -> Self {
        let text = str::to_owned;
        let mut settings = Self {
            subscription: text("12345678-1234-1234-1234-123456789012"),
            tenant: text("72f988bf-0000-0000-0000-2d7cd011db47"),
            location: text("southcentralus"),
            cluster: text("walk"),
            cluster_resource_group: text("walk"),
            node_resource_group: text("MC_walk_walk_southcentralus"),
            machines_pool: text("karpenter"),
            page_size: 100,
            graph_lag: Duration::ZERO,
            latency: Duration::ZERO,
            has_strict_versions: true,
            forgets_operations: false,
            refused_interfaces: Reservation::None,
            locks_node_resource_group: false,
            lro: BTreeMap::new(),
        };
        // About what each takes in Azure.
        let seconds = Duration::from_secs;
        let defaults = [
            (Kind::VirtualMachine, Method::PUT, Form::AsyncOperation, 15),
            (Kind::VirtualMachine, Method::PATCH, Form::AsyncOperation, 3),
            (Kind::VirtualMachine, Method::DELETE, Form::Both, 20),
            (Kind::Extension, Method::PUT, Form::AsyncOperation, 5),
            (Kind::Extension, Method::PATCH, Form::AsyncOperation, 2),
            (Kind::NetworkInterface, Method::PUT, Form::AsyncOperation, 1),
            (Kind::NetworkInterface, Method::PATCH, Form::Immediate, 0),
            (Kind::NetworkInterface, Method::DELETE, Form::Both, 3),
            (Kind::Machine, Method::PUT, Form::AsyncOperation, 20),
            (Kind::DeleteMachines, Method::POST, Form::Both, 20),
        ];
        for (kind, method, form, takes) in defaults {
            settings.set_lro(kind, &method, Lro::new(form, seconds(takes)));
        }
        settings
    }
}

impl Settings {
    /// A cluster of this name in a region; its resource groups follow from both.
    pub fn named(cluster: &str, location: &str) -> Self {
        Self {
            location: location.to_owned(),
            cluster: cluster.to_owned(),
            cluster_resource_group: cluster.to_owned(),
            node_resource_group: format!("MC_{cluster}_{cluster}_{location}"),
            ..Self::default()
        }
    }

    /// How an operation behaves.
    pub fn lro(&self, kind: Kind, method: &Method) -> Lro {
        let set = self.lro.get(&(kind, method.to_string()));
        set.copied().unwrap_or(Lro::new(Form::Immediate, Duration::ZERO))
    }

    /// Changes how an operation behaves.
    pub fn set_lro(&mut self, kind: Kind, method: &Method, lro: Lro) {
        self.lro.insert((kind, method.to_string()), lro);
    }

    /// Changes how all operations behave.
    pub fn set_every_lro(&mut self, change: impl Fn(&mut Lro)) {
        self.lro.values_mut().for_each(change);
    }

    /// The ID of something in the resource group of the nodes.
    pub fn node_id(&self, resource_type: &str, name: &str) -> String {
        self.id(&self.node_resource_group, resource_type, name)
    }

    /// The ID of something in a resource group.
    pub fn id(&self, group: &str, resource_type: &str, name: &str) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{group}/providers/{resource_type}/{name}",
            self.subscription
        )
    }

    /// The ID of the cluster.
    pub fn cluster_id(&self) -> String {
        self.id(&self.cluster_resource_group, "Microsoft.ContainerService/managedClusters", &self.cluster)
    }

    /// The ID of the subnet of the nodes.
    pub fn subnet_id(&self) -> String {
        self.node_id("Microsoft.Network/virtualNetworks", "aks-vnet-12345678/subnets/aks-subnet")
    }
}

//! Looks over everything that nodes on Azure depend on, without changing anything. Entry: [`examine`].
//!
//! ```text
//!   the cluster, as AKS knows it ──► what is around it (network, sizes, quotas, images) ──► what may we do? ──► Report
//! ```

mod classes;
mod cluster;
mod network;
mod permissions;
mod quotas;
mod token;

use std::time::Duration;

use api::azure::AKSNodeClass;
use cloud::doctor::{Check, Report};
use futures::future::{BoxFuture, join_all};

use crate::arm::types::cluster::{AgentPool, ManagedCluster, Permission};
use crate::arm::types::network::{DiskEncryptionSet, LoadBalancer, NetworkSecurityGroup, Subnet};
use crate::arm::types::sku::{ResourceSku, Usage};
use crate::arm::{Client, Error, MachinePool};
use crate::network::SubnetId;
use crate::settings::ProvisionMode;

pub use token::token;

/// How long Azure may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is looked over. What nobody says is empty, and asked from AKS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The name of the cluster.
    pub cluster_name: String,
    /// The resource group of the cluster.
    pub cluster_resource_group: String,
    /// The resource group of its nodes.
    pub node_resource_group: String,
    /// The subnet of the nodes whose AKSNodeClass names none.
    pub vnet_subnet_id: String,
    /// The region.
    pub location: String,
    /// How machines are made.
    pub mode: ProvisionMode,
    /// The agent pool of AKS machines, in the modes that have them.
    pub machines_pool: String,
    /// Whether images come from the shared gallery of AKS.
    pub use_sig: bool,
    /// The keys that disks are encrypted by.
    pub disk_encryption_set: Option<String>,
    /// The AKSNodeClasses; nothing if the cluster could not be asked.
    pub classes: Option<Vec<AKSNodeClass>>,
    /// The version that the API server says it has.
    pub kubernetes: Option<String>,
}

impl Subject {
    fn classes(&self) -> &[AKSNodeClass] {
        self.classes.as_deref().unwrap_or_default()
    }

    /// The same with everything that AKS can say.
    fn completed(&self, cluster: Option<&ManagedCluster>) -> Self {
        let mut subject = self.clone();
        let Some(cluster) = cluster else { return subject };
        let fill = |field: &mut String, text: Option<&str>| {
            if field.is_empty() {
                text.unwrap_or_default().clone_into(field);
            }
        };
        fill(&mut subject.location, cluster.location.as_deref());
        fill(&mut subject.node_resource_group, Some(cluster.node_resource_group()));
        let subnet = cluster.pools().iter().find_map(|pool| pool.vnet_subnet_id.as_deref());
        fill(&mut subject.vnet_subnet_id, subnet);
        subject
    }
}

/// An answer, unless it takes too long.
fn patiently<'a, T: 'a>(
    question: impl Future<Output = Result<T, Error>> + Send + 'a,
) -> BoxFuture<'a, Result<T, Error>> {
    // Many are asked together: what each needs meanwhile is not kept in one place.
    Box::pin(async move {
        let answer = tokio::time::timeout(PATIENCE, question).await;
        answer.unwrap_or_else(|_| {
            Err(Error::new("Azure", "", &format!("no answer came within {} s", PATIENCE.as_secs())))
        })
    })
}

/// What there is around the cluster.
struct Facts {
    skus: Result<Vec<ResourceSku>, Error>,
    usages: Result<Vec<Usage>, Error>,
    groups: Result<Vec<NetworkSecurityGroup>, Error>,
    balancers: Result<Vec<LoadBalancer>, Error>,
    permissions: Vec<Rights>,
    subnets: Vec<(String, Result<Subnet, Error>)>,
    keys: Option<(String, Result<DiskEncryptionSet, Error>)>,
    pool: Option<Result<AgentPool, Error>>,
}

/// What we may do in a resource group, and what we must.
struct Rights {
    group: String,
    needed: &'static permissions::Needs,
    allowed: Result<Vec<Permission>, Error>,
}

impl Facts {
    async fn ask(client: &Client, subject: &Subject) -> Self {
        let (location, group) = (&subject.location, &subject.node_resource_group);
        let scopes = permissions::scopes(subject, client.subscription());
        let rights = scopes.into_iter().map(|(group, needed)| async move {
            let allowed = patiently(client.permissions(&group)).await;
            Rights { group, needed, allowed }
        });
        let subnets = network::subnets(subject).into_iter().map(|id| async move {
            let found = patiently(client.subnet(&id)).await;
            (id, found)
        });
        let keys = async {
            let id = subject.disk_encryption_set.clone()?;
            let found = patiently(client.disk_encryption_set(&id)).await;
            Some((id, found))
        };
        let pool = async {
            if !subject.mode.is_machine_api() {
                return None;
            }
            let pool = MachinePool {
                group: subject.cluster_resource_group.clone(),
                cluster: subject.cluster_name.clone(),
                pool: subject.machines_pool.clone(),
            };
            Some(patiently(client.agent_pool(&pool)).await)
        };
        let (skus, usages, groups, balancers, permissions, subnets, keys, pool) = futures::join!(
            patiently(client.skus(location)),
            patiently(client.usages(location)),
            patiently(client.network_security_groups(group)),
            patiently(client.load_balancers(group)),
            join_all(rights),
            join_all(subnets),
            keys,
            pool,
        );
        Self { skus, usages, groups, balancers, permissions, subnets, keys, pool }
    }
}

/// Looks over everything. Fails if Azure does not answer at all: then there is nothing to say.
pub async fn examine(client: &Client, subject: &Subject) -> Result<Report, Error> {
    let found = if subject.cluster_resource_group.is_empty() {
        None
    } else {
        let question = client.managed_cluster(&subject.cluster_resource_group, &subject.cluster_name);
        Some(patiently(question).await)
    };
    if let Some(Err(error)) = &found
        && error.status.is_none()
    {
        return Err(error.clone());
    }
    let known = found.as_ref().and_then(|found| found.as_ref().ok());
    let subject = &subject.completed(known);
    let mut checks = vec![cluster::identity(client.subscription(), found.as_ref())];
    checks.extend(cluster::report(subject, found.as_ref()));
    let missing = missing(subject);
    if missing.is_empty() {
        let facts = Facts::ask(client, subject).await;
        let looks = subject.classes().iter().map(|class| classes::look(client, subject, class));
        let looks = join_all(looks).await;
        checks.extend(facts.permissions.iter().flat_map(permissions::report));
        checks.extend(network::report(subject, known, &facts));
        checks.extend(quotas::report(&facts.skus, &facts.usages, &subject.location));
        checks.extend(cluster::pool(subject, facts.pool.as_ref()));
        checks.extend(looks.into_iter().flatten());
    }
    checks.extend(missing);
    if subject.classes.as_ref().is_some_and(Vec::is_empty) {
        let message = "there are none, so that nothing can be launched";
        checks.push(Check::warning("AKSNodeClasses", message, "see examples/azure/nodepool.yaml"));
    }
    Ok(Report { title: title(subject), checks })
}

fn title(subject: &Subject) -> String {
    match subject.location.as_str() {
        "" => format!("Azure, cluster {}", subject.cluster_name),
        region => format!("Azure, region {region}, cluster {}", subject.cluster_name),
    }
}

/// What must be known to look any further.
fn missing(subject: &Subject) -> Vec<Check> {
    let needed = [
        ("region", &subject.location, "--location"),
        ("resource group of nodes", &subject.node_resource_group, "--node-resource-group"),
    ];
    let missing = needed.into_iter().filter(|(_, text, _)| text.is_empty());
    missing
        .map(|(about, _, flag)| {
            let advice = format!("set {flag}, or --resource-group so that AKS can be asked");
            Check::bad(about, "it is not known", advice)
        })
        .collect()
}

/// The parts of a subnet's ID, if it is one.
fn parsed(id: &str) -> Option<SubnetId> {
    id.parse().ok()
}

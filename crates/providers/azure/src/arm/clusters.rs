//! The AKS cluster itself, the identities around it, and what we may do: asked by those who set it up or look it over.

use http::Method;

use super::aks::MachinePool;
use super::call::Call;
use super::client::Client;
use super::error::Error;
use super::types::cluster::{AgentPool, ManagedCluster, ManagedIdentity, Permission};

const CONTAINER_SERVICE: &str = "Microsoft.ContainerService";
const CLUSTERS: (&str, &str) = ("api-version", "2025-07-01");
const IDENTITIES: (&str, &str) = ("api-version", "2023-01-31");
const AUTHORIZATION: (&str, &str) = ("api-version", "2022-04-01");

impl Client {
    /// A cluster.
    pub async fn managed_cluster(&self, group: &str, name: &str) -> Result<ManagedCluster, Error> {
        let url = self.in_group(group, &[CONTAINER_SERVICE, "managedClusters", name], &[CLUSTERS]);
        self.get("containerservice:GetManagedCluster", url).await
    }

    /// An agent pool.
    pub async fn agent_pool(&self, pool: &MachinePool) -> Result<AgentPool, Error> {
        let path =
            [CONTAINER_SERVICE, "managedClusters", pool.cluster.as_str(), "agentPools", pool.pool.as_str()];
        self.get("containerservice:GetAgentPool", self.in_group(&pool.group, &path, &[CLUSTERS])).await
    }

    /// A managed identity.
    pub async fn managed_identity(&self, group: &str, name: &str) -> Result<ManagedIdentity, Error> {
        let path = ["Microsoft.ManagedIdentity", "userAssignedIdentities", name];
        self.get("managedidentity:GetIdentity", self.in_group(group, &path, &[IDENTITIES])).await
    }

    /// What the caller may do in a resource group, a part for each role.
    pub async fn permissions(&self, group: &str) -> Result<Vec<Permission>, Error> {
        let url = self.in_group(group, &["Microsoft.Authorization", "permissions"], &[AUTHORIZATION]);
        self.sender.list(Call::new("authorization:ListPermissions", Method::GET, url)).await
    }
}

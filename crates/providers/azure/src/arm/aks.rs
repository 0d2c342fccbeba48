//! What AKS has for a cluster: machines of its own, versions of images, and how nodes start.

use std::time::Duration;

use http::Method;

use super::call::{Call, ascii_json};
use super::client::Client;
use super::error::Error;
use super::running::Running;
use super::types::bootstrap::{BootstrappingRequest, BootstrappingResponse};
use super::types::gallery::NodeImageVersion;
use super::types::machine::{BatchPutMachine, DeleteMachines, Machine};

const CONTAINER_SERVICE: &str = "Microsoft.ContainerService";
/// Newer ones than the last stable version are needed to make machines.
const VERSION: (&str, &str) = ("api-version", "2026-04-02-preview");
/// How long the bootstrapping service may take.
const BOOTSTRAPPING: Duration = Duration::from_secs(30);
pub(super) const DELETE_MACHINES: &str = "containerservice:DeleteMachines";

/// Where the machines of a cluster are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachinePool {
    /// The resource group of the cluster.
    pub group: String,
    /// The cluster.
    pub cluster: String,
    /// The agent pool with the machines.
    pub pool: String,
}

/// What is said about a machine besides the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutMachine {
    /// Machines that are made alike with it.
    pub batch: Option<BatchPutMachine>,
    /// The tag of the version that is replaced, if no other may be.
    pub if_match: Option<String>,
}

impl Client {
    /// The newest images for nodes in a region.
    pub async fn node_image_versions(&self, location: &str) -> Result<Vec<NodeImageVersion>, Error> {
        let path = ["providers", CONTAINER_SERVICE, "locations", location, "nodeImageVersions"];
        let url = self.in_subscription(&path, &[VERSION]);
        self.sender.list(Call::new("containerservice:ListNodeImageVersions", Method::GET, url)).await
    }

    fn pool_url(&self, pool: &MachinePool, rest: &[&str]) -> String {
        let start =
            [CONTAINER_SERVICE, "managedClusters", pool.cluster.as_str(), "agentPools", pool.pool.as_str()];
        let path = [&start[..], rest].concat();
        self.in_group(&pool.group, &path, &[VERSION])
    }

    /// A machine.
    pub async fn machine(&self, pool: &MachinePool, name: &str) -> Result<Machine, Error> {
        self.get("containerservice:GetMachine", self.pool_url(pool, &["machines", name])).await
    }

    /// All machines.
    pub async fn machines(&self, pool: &MachinePool) -> Result<Vec<Machine>, Error> {
        let url = self.pool_url(pool, &["machines"]);
        self.sender.list(Call::new("containerservice:ListMachines", Method::GET, url)).await
    }

    /// Makes or replaces a machine.
    pub async fn put_machine(
        &self,
        pool: &MachinePool,
        name: &str,
        machine: &Machine,
        with: &PutMachine,
    ) -> Result<Running<Machine>, Error> {
        let url = self.pool_url(pool, &["machines", name]);
        let mut call = Call::new("containerservice:PutMachine", Method::PUT, url)
            .json(machine)?
            .header("allowspotvmsystemnode", "true")?;
        if let Some(batch) = &with.batch {
            let written = ascii_json(batch).map_err(|error| {
                Error::new(&call.description(), "", &format!("writing the batch, {error}"))
            })?;
            call = call.header("batchputmachine", &written)?;
        }
        if let Some(version) = &with.if_match {
            call = call.header("if-match", version)?;
        }
        self.sender.begin(call).await
    }

    /// Deletes machines.
    pub async fn delete_machines(&self, pool: &MachinePool, names: &[String]) -> Result<Running<()>, Error> {
        let call = Call::new(DELETE_MACHINES, Method::POST, self.pool_url(pool, &["deleteMachines"]));
        self.sender.begin(call.json(&DeleteMachines { machine_names: names.to_vec() })?).await
    }

    /// How a node starts, from a service of AKS at `server`.
    pub async fn node_bootstrapping(
        &self,
        server: &str,
        (group, cluster): (&str, &str),
        request: &BootstrappingRequest,
    ) -> Result<BootstrappingResponse, Error> {
        let path = [
            "subscriptions",
            self.subscription(),
            "resourceGroups",
            group,
            "providers",
            CONTAINER_SERVICE,
            "managedclusters",
            cluster,
            "nodeBootstrapping",
        ];
        // It is beside the controller, where nothing is encrypted unless somebody says so.
        let base = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let url = super::call::address(&base, path, &[]);
        let call = Call::new("nodebootstrapping:Get", Method::GET, url).json(request)?;
        match tokio::time::timeout(BOOTSTRAPPING, self.sender.ask(&call)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::new(
                &call.description(),
                "",
                &format!("no answer came within {}s", BOOTSTRAPPING.as_secs()),
            )),
        }
    }
}

//! All machines and network interfaces of a cluster at once, from the resource graph.

use api::names::tags::azure as tags;
use http::Method;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::client::Client;
use super::error::Error;
use super::sender::read;
use super::types::graph::{GraphOptions, GraphPage, GraphQuery};
use super::types::nic::NetworkInterface;
use super::types::vm::VirtualMachine;

const VERSION: (&str, &str) = ("api-version", "2024-04-01");

impl Client {
    /// The virtual machines of a resource group that belong to a NodePool and are no AKS machines.
    pub async fn virtual_machines(&self, group: &str) -> Result<Vec<VirtualMachine>, Error> {
        let rows: Vec<VirtualMachine> = self
            .rows("resourcegraph:ListVirtualMachines", "microsoft.compute/virtualmachines", group)
            .await?;
        rows.into_iter()
            .map(|row| {
                let id =
                    checked("virtual machine", row.id.as_deref(), row.name.as_deref(), row.tags.is_some())?;
                Ok(VirtualMachine { id: Some(id), ..row })
            })
            .collect()
    }

    /// The network interfaces of a resource group that belong to a NodePool and to no AKS machine.
    pub async fn network_interfaces(&self, group: &str) -> Result<Vec<NetworkInterface>, Error> {
        let operation = "resourcegraph:ListNetworkInterfaces";
        let rows: Vec<NetworkInterface> =
            self.rows(operation, "microsoft.network/networkinterfaces", group).await?;
        rows.into_iter()
            .map(|row| {
                let id =
                    checked("network interface", row.id.as_deref(), row.name.as_deref(), row.tags.is_some())?;
                Ok(NetworkInterface { id: Some(id), ..row })
            })
            .collect()
    }

    async fn rows<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        kind: &str,
        group: &str,
    ) -> Result<Vec<T>, Error> {
        let url = self.at(&["providers", "Microsoft.ResourceGraph", "resources"], &[VERSION]);
        let call = Call::new(operation, Method::POST, url);
        let question = query(kind, group);
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let body = GraphQuery {
                query: Some(question.clone()),
                subscriptions: Some(vec![self.subscription().to_owned()]),
                options: Some(GraphOptions {
                    result_format: Some("objectArray".to_owned()),
                    skip_token: token.clone(),
                }),
            };
            let answer = self.sender.send(&call.clone().json(&body)?).await?;
            let page: GraphPage = read(&call, &answer)?;
            for row in page.data.unwrap_or_default() {
                // A row that is left out would look like a machine that is gone.
                let read = serde_json::from_value(row);
                all.push(read.map_err(|error| Error::unreadable(&call.description(), &answer, error))?);
            }
            let next = page.skip_token.filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(all);
            }
            if next == token {
                let why = "a page is its own successor";
                return Err(Error::unreadable(&call.description(), &answer, why));
            }
            token = next;
        }
    }
}

fn query(kind: &str, group: &str) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let clauses = [
        format!("type == {}", quoted(kind)),
        format!("resourceGroup == {}", quoted(&group.to_lowercase())),
        format!("tags has_cs {}", quoted(tags::NODEPOOL)),
        format!("not(tags has_cs {})", quoted(tags::AKS_MACHINE_NODE_CLAIM)),
    ];
    clauses.iter().fold("Resources".to_owned(), |query, clause| format!("{query} | where {clause}"))
}

/// The ID of a row that has everything, with its last part in lower case, as nodes have it.
fn checked(kind: &str, id: Option<&str>, name: Option<&str>, has_tags: bool) -> Result<String, Error> {
    let given = [("id", id.is_some_and(|id| !id.is_empty())), ("name", name.is_some()), ("tags", has_tags)];
    let missing: Vec<&str> = given.iter().filter(|(_, given)| !given).map(|(what, _)| *what).collect();
    if let (Some(id), true) = (id, missing.is_empty()) {
        let (start, last) = id.rsplit_once('/').unwrap_or(("", id));
        return Ok(format!("{start}/{}", last.to_lowercase()));
    }
    let named = name.or(id).unwrap_or("without a name");
    let message = format!("reading the answer, the {kind} {named} has no {}", missing.join(", "));
    Err(Error::new("POST Microsoft.ResourceGraph/resources", "", &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 24, row 16
    #[test]
    fn the_question_has_four_conditions_in_this_order() {
        assert_eq!(
            query("microsoft.compute/virtualmachines", "MC_Group_\"X"),
            "Resources | where type == \"microsoft.compute/virtualmachines\" | where resourceGroup == \"mc_group_\\\"x\" | where tags has_cs \"karpenter.sh_nodepool\" | where not(tags has_cs \"karpenter.azure.com_aksmachine_nodeclaim\")"
        );
    }

    // azure.md 25.8: ARG rows
    #[test]
    fn rows_without_id_name_or_tags_are_errors_and_ids_end_in_lower_case() {
        let id =
            checked("virtual machine", Some("/Subscriptions/S/virtualMachines/AKS-A"), Some("AKS-A"), true);
        assert_eq!(id.unwrap(), "/Subscriptions/S/virtualMachines/aks-a");
        let error = checked("virtual machine", None, Some("aks-a"), false).unwrap_err();
        assert!(error.message.ends_with("the virtual machine aks-a has no id, tags"), "{error}");
        assert!(checked("virtual machine", Some("/a"), None, true).is_err());
    }
}

//! The subnet of a NodeClass: whether machines can be in it, and whether it is there.

use std::time::Duration;

use api::azure::AKSNodeClass;
use api::conditions::Conditions;
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

use super::Looked;
use crate::network::SubnetId;

/// When it is looked again.
const AGAIN: Again = Again::After(Duration::from_mins(3));

/// Which subnet machines of a class are in; why it cannot be, else.
pub fn choose(class: &AKSNodeClass, of_cluster: &str, node_resource_group: &str) -> Result<SubnetId, String> {
    let read =
        |field: &str, text: &str| text.parse::<SubnetId>().map_err(|error| format!("{field}: {error}"));
    let cluster = read("the subnet of the cluster", of_cluster)?;
    let Some(own) = class.spec.vnet_subnet_id.as_deref() else { return Ok(cluster) };
    let own = read("spec.vnetSubnetID", own)?;
    if own.is(&cluster) {
        return Ok(own);
    }
    if cluster.is_managed(node_resource_group) && own.is_in_network_of(&cluster) {
        return Err(format!(
            "spec.vnetSubnetID {own} is a custom subnet in the virtual network that AKS manages, custom subnet \
             cannot be in the same VNet as cluster managed VNet"
        ));
    }
    if !own.is_in_network_of(&cluster) {
        return Err(format!(
            "spec.vnetSubnetID {own} is not in the virtual network of the cluster, expected a subnet beside {cluster}"
        ));
    }
    Ok(own)
}

/// What Azure says about a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there.
    Found,
    /// It is not there.
    Missing(String),
    /// Nobody knows.
    Unknown(String),
}

/// Writes down whether the subnet can be used; `answer` is about the one that was chosen.
pub fn apply(class: &mut AKSNodeClass, answer: Result<Answer, String>, now: Timestamp) -> Looked {
    let mut all = Conditions::of(class, now);
    let mut refuse = |reason: &str, message: &str| {
        all.set(conditions::SUBNETS_READY, ConditionStatus::False, reason, message);
    };
    match answer {
        Err(message) => {
            refuse(reasons::SUBNET_ID_INVALID, &message);
            Looked::again(Again::No)
        }
        Ok(Answer::Missing(error)) => {
            refuse(reasons::SUBNET_NOT_FOUND, &error);
            Looked::failed(error)
        }
        Ok(Answer::Unknown(error)) => {
            refuse(reasons::SUBNET_UNKNOWN_ERROR, &error);
            Looked::failed(error)
        }
        Ok(Answer::Found) => {
            all.set_true(conditions::SUBNETS_READY);
            Looked::again(AGAIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_class::tests::{NOW, class, said};

    const GROUP: &str = "MC_group";

    fn id(group: &str, network: &str, subnet: &str) -> String {
        format!(
            "/subscriptions/s/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
        )
    }

    fn chosen(own: Option<&str>, of_cluster: &str) -> Result<String, String> {
        let class = class(&json!({"vnetSubnetID": own}), &json!({}));
        choose(&class, of_cluster, GROUP).map(|id| id.name)
    }

    // azure.md 15.1 step 3, 25.7: BYO id used
    #[test]
    fn the_subnet_of_the_class_counts_before_that_of_the_cluster() {
        let cluster = id("net", "own", "nodes");
        assert_eq!(chosen(None, &cluster), Ok("nodes".to_owned()));
        assert_eq!(chosen(Some(&id("net", "own", "more")), &cluster), Ok("more".to_owned()));
        // Azure does not look at the case of its identifiers.
        assert_eq!(chosen(Some(&id("NET", "Own", "more")), &cluster), Ok("more".to_owned()));
    }

    // azure.md 15.1 step 3, 25.7: custom subnet in managed VNet → not ready
    #[test]
    fn subnets_of_other_networks_and_of_networks_that_aks_manages_are_refused() {
        let managed = id("mc_GROUP", "aks-vnet-12345678", "aks-subnet");
        let refused = |own: &str, cluster: &str| chosen(Some(own), cluster).unwrap_err();
        let custom = id("MC_group", "aks-vnet-12345678", "custom");
        let message = refused(&custom, &managed);
        assert!(
            message.contains("custom subnet cannot be in the same VNet as cluster managed VNet"),
            "{message}"
        );
        assert_eq!(chosen(Some(&managed.to_uppercase()), &managed), Ok("AKS-SUBNET".to_owned()));
        let cluster = id("net", "own", "nodes");
        for other in [id("other", "own", "nodes"), id("net", "other", "nodes")] {
            assert!(refused(&other, &cluster).contains("is not in the virtual network of the cluster"));
        }
        assert!(refused("/subscriptions/s", &cluster).contains("spec.vnetSubnetID: invalid subnet ID"));
    }

    // azure.md 15.1 step 3, 25.7: missing → not ready; unknown error
    #[test]
    fn what_azure_says_is_in_the_condition() {
        let mut class = class(&json!({}), &json!({}));
        let mut of = |answer| {
            let looked = apply(&mut class, answer, NOW);
            let (status, reason) = said(&class, "SubnetsReady");
            (status, reason.to_owned(), looked)
        };
        let no = ConditionStatus::False;
        let expected = (no, "SubnetIDInvalid".to_owned(), Looked::again(Again::No));
        assert_eq!(of(Err("why".to_owned())), expected);
        let expected = (no, "SubnetNotFound".to_owned(), Looked::failed("404"));
        assert_eq!(of(Ok(Answer::Missing("404".to_owned()))), expected);
        let expected = (no, "SubnetUnknownError".to_owned(), Looked::failed("500"));
        assert_eq!(of(Ok(Answer::Unknown("500".to_owned()))), expected);
        let (status, _, looked) = of(Ok(Answer::Found));
        assert_eq!(
            (status, looked),
            (ConditionStatus::True, Looked::again(Again::After(Duration::from_mins(3))))
        );
    }
}

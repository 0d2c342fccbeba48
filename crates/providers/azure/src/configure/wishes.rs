//! What is to be configured, as the original's script takes it: in a fixed order, the last ones left out.

use super::CannotConfigure;
use crate::settings::ProvisionMode;

/// The agent pool with AKS machines, if nobody names one.
const MACHINES_POOL: &str = "testmpool";

/// What is to be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// The name of the cluster.
    pub cluster: String,
    /// Its resource group.
    pub resource_group: String,
    /// The name of the controller's service account.
    pub service_account: String,
    /// The name of the controller's identity.
    pub identity: String,
    /// Whether every call to Azure is logged.
    pub log_calls: bool,
    /// How machines are made.
    pub mode: ProvisionMode,
    /// The agent pool with AKS machines, in the modes that have them.
    pub machines_pool: String,
    /// The subnet of the nodes, if it is not the one of the cluster's own nodes.
    pub subnet: Option<String>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            resource_group: String::new(),
            service_account: "karpenter-sa".to_owned(),
            identity: "karpentermsi".to_owned(),
            log_calls: false,
            mode: ProvisionMode::AksScriptless,
            machines_pool: MACHINES_POOL.to_owned(),
            subnet: None,
        }
    }
}

impl Wishes {
    /// Reads `CLUSTER RESOURCE-GROUP [SERVICE-ACCOUNT [IDENTITY [LOG-CALLS [MODE [MACHINES-POOL]]]]]`. Whatever is
    /// missing or empty keeps its default.
    pub fn read(arguments: &[String]) -> Result<Self, CannotConfigure> {
        let mut wishes = Self::default();
        for (number, argument) in arguments.iter().enumerate().filter(|(_, argument)| !argument.is_empty()) {
            match number {
                0 => wishes.cluster.clone_from(argument),
                1 => wishes.resource_group.clone_from(argument),
                2 => wishes.service_account.clone_from(argument),
                3 => wishes.identity.clone_from(argument),
                4 => wishes.log_calls = switch(argument)?,
                5 => wishes.mode = mode(argument)?,
                6 => wishes.machines_pool.clone_from(argument),
                _ => {
                    return Err(CannotConfigure(format!(
                        "{} arguments, expected at most 7",
                        arguments.len()
                    )));
                }
            }
        }
        Ok(wishes)
    }

    /// Whether what must be said is said, and can be done.
    pub fn check(&self) -> Result<(), CannotConfigure> {
        if self.cluster.is_empty() || self.resource_group.is_empty() {
            return Err(CannotConfigure(
                "the name of the cluster and its resource group are missing: expected \
                 CLUSTER RESOURCE-GROUP [SERVICE-ACCOUNT [IDENTITY [LOG-CALLS [MODE [MACHINES-POOL]]]]]"
                    .to_owned(),
            ));
        }
        if self.mode == ProvisionMode::BootstrappingClient {
            return Err(CannotConfigure(
                "provision mode bootstrappingclient needs a service that only AKS itself has: \
                 expected aksscriptless, aksmachineapi or aksmachineapiheaderbatch"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

fn switch(text: &str) -> Result<bool, CannotConfigure> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(CannotConfigure(format!("whether calls are logged is {text:?}, expected true or false"))),
    }
}

/// The mode of a name.
fn mode(text: &str) -> Result<ProvisionMode, CannotConfigure> {
    ProvisionMode::named(text).ok_or_else(|| {
        CannotConfigure(format!(
            "provision mode {text:?} is unknown, expected aksscriptless, aksmachineapi or aksmachineapiheaderbatch"
        ))
    })
}

//! Who we are, found in the order in which every program for Azure looks for it. Entry: [`find`].
//!
//! ```text
//!   a secret in the environment ▶ a workload identity ▶ a managed identity ▶ who is logged in to az ▶ to azd
//!   └─ what is set up is used, and nothing else ──────┘ └─ the first that gives out a token is used ────────┘
//! ```

mod chain;
mod choice;
mod http_client;

use std::path::PathBuf;
use std::sync::Arc;

use azure::arm::Transport;
use azure::auth::{TokenError, TokenSource};
use azure::environment::Environment;
use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::ClientOptions;
use azure_identity::{
    AzureCliCredential, AzureCliCredentialOptions, AzureDeveloperCliCredential,
    AzureDeveloperCliCredentialOptions, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};

use chain::{Chain, Link};
use choice::{Choice, Kind};
use http_client::OverTransport;

use crate::network::causes;

/// Finds out who we are. `variable` reads the environment.
pub fn find(
    transport: &Arc<dyn Transport>,
    environment: &Environment,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn TokenSource>, TokenError> {
    let choice = Choice::new(variable)?;
    let links = choice.kinds.iter().map(|kind| {
        let credential = credential(*kind, &choice, transport, environment);
        let credential =
            credential.map_err(|error| TokenError(format!("{}: {}", kind.name(), causes(&error))))?;
        // Whoever is looked for among others is asked first whether it is there at all.
        let is_doubtful = *kind == Kind::Managed && choice.kinds.len() > 1 && !choice.is_app_service;
        Ok(Link { name: kind.name(), credential, is_doubtful })
    });
    let links = links.collect::<Result<Vec<_>, TokenError>>()?;
    Ok(Arc::new(Chain::new(links, Arc::clone(transport))))
}

fn credential(
    kind: Kind,
    choice: &Choice,
    transport: &Arc<dyn Transport>,
    environment: &Environment,
) -> azure_core::Result<Arc<dyn TokenCredential>> {
    let client_options = || {
        let mut cloud = CustomConfiguration::default();
        environment.login.clone_into(&mut cloud.authority_host);
        let client = Arc::new(OverTransport(Arc::clone(transport)));
        ClientOptions {
            transport: Some(azure_core::http::Transport::new(client)),
            cloud: Some(Arc::new(cloud.into())),
            ..ClientOptions::default()
        }
    };
    let tenant_id = Some(choice.tenant.clone()).filter(|tenant| !tenant.is_empty());
    Ok(match kind {
        Kind::Secret => ClientSecretCredential::new(
            &choice.tenant,
            choice.client.clone(),
            Secret::new(choice.secret.reveal().to_owned()),
            Some(ClientSecretCredentialOptions { client_options: client_options() }),
        )?,
        Kind::Workload => WorkloadIdentityCredential::new(Some(WorkloadIdentityCredentialOptions {
            credential_options: ClientAssertionCredentialOptions { client_options: client_options() },
            client_id: Some(choice.client.clone()),
            tenant_id: Some(choice.tenant.clone()),
            token_file_path: Some(PathBuf::from(&choice.token_file)),
        }))?,
        Kind::Managed => ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
            user_assigned_id: Some(choice.client.clone())
                .filter(|client| !client.is_empty())
                .map(UserAssignedId::ClientId),
            client_options: client_options(),
        }))?,
        Kind::Cli => AzureCliCredential::new(Some(AzureCliCredentialOptions {
            tenant_id,
            ..AzureCliCredentialOptions::default()
        }))?,
        Kind::DeveloperCli => AzureDeveloperCliCredential::new(Some(AzureDeveloperCliCredentialOptions {
            tenant_id,
            ..AzureDeveloperCliCredentialOptions::default()
        }))?,
    })
}

#[cfg(test)]
mod tests;

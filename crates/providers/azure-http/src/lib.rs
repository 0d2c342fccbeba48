//! Azure itself, behind [`azure::arm::Transport`] and [`azure::auth::TokenSource`]. Entry: [`connect`].
//!
//! Requests go over HTTP ([`Network`]); who we are is found by the official library, which asks over the same
//! network ([`identity`]).

mod connector;
pub mod identity;
mod network;

use std::sync::Arc;

use azure::arm::Transport;
use azure::auth::{TokenError, TokenSource, probe};
use azure::environment::Environment;

pub use network::{Network, NetworkError};

/// Azure, ready to be asked.
#[derive(Clone)]
pub struct Connection {
    /// How requests reach it.
    pub transport: Arc<dyn Transport>,
    /// Who we are.
    pub tokens: Arc<dyn TokenSource>,
}

/// Why Azure cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There is no network.
    #[error("connecting with Azure, {0}")]
    Network(#[from] NetworkError),
    /// Nobody says who we are.
    #[error(
        "no Azure credentials can be used, {0}: give the service account a workload identity, or the node a managed identity, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
    )]
    NoCredentials(TokenError),
}

/// Finds out who we are, and proves that it is true. `variable` reads the environment.
pub async fn connect(
    environment: &Environment,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Connection, ConnectError> {
    let transport: Arc<dyn Transport> = Arc::new(Network::new()?);
    let tokens = identity::find(&transport, environment, variable).map_err(ConnectError::NoCredentials)?;
    probe(tokens.as_ref(), &environment.scope()).await.map_err(ConnectError::NoCredentials)?;
    Ok(Connection { transport, tokens })
}

//! Azure itself, behind [`azure::arm::Transport`] and [`azure::auth::TokenSource`]. Entry: [`connect`].
//!
//! Requests go over HTTP ([`Network`]); who we are is found by the official library, which asks over the same
//! network ([`identity`]).

mod connector;
pub mod identity;
mod network;

use std::sync::Arc;
use std::time::Duration;

use azure::arm::Transport;
use azure::auth::{NoToken, TokenError, TokenSource, probe};
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
    NoCredentials(String),
    /// Whoever says who we are takes too long.
    #[error(
        "there may be Azure credentials, but {0}: if `az` is to say who asks, try `az account get-access-token`, which is slow or waits for something; else see whether the metadata service and the login service can be reached"
    )]
    Late(NoToken),
}

impl From<TokenError> for ConnectError {
    fn from(TokenError(why): TokenError) -> Self {
        Self::NoCredentials(why)
    }
}

impl From<NoToken> for ConnectError {
    fn from(error: NoToken) -> Self {
        match error {
            NoToken::Refused { .. } => Self::NoCredentials(error.to_string()),
            NoToken::Late { .. } => Self::Late(error),
        }
    }
}

/// Finds out who we are, and proves that it is true, which may take as long as `within`. `variable` reads the
/// environment.
pub async fn connect(
    environment: &Environment,
    variable: impl Fn(&str) -> Option<String>,
    within: Duration,
) -> Result<Connection, ConnectError> {
    let transport: Arc<dyn Transport> = Arc::new(Network::new()?);
    let tokens = identity::find(&transport, environment, variable)?;
    probe(tokens.as_ref(), &environment.scope(), within).await?;
    Ok(Connection { transport, tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_take_long_are_not_called_missing() {
        let late = NoToken::Late { scope: "s".to_owned(), within: Duration::from_mins(1) };
        let text = ConnectError::from(late).to_string();
        assert!(
            text.starts_with(
                "there may be Azure credentials, but getting a token for s, none came within 60s"
            ),
            "{text}"
        );
        let refused = NoToken::Refused { scope: "s".to_owned(), why: TokenError("no identity".to_owned()) };
        let text = ConnectError::from(refused).to_string();
        assert!(
            text.starts_with("no Azure credentials can be used, getting a token for s, no identity"),
            "{text}"
        );
    }
}

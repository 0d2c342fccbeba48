//! Several ways to a token, until one of them works.

use std::sync::Arc;
use std::time::Duration;

use azure::arm::Transport;
use azure::auth::{Secret, Token, TokenError, TokenSource};
use azure_core::credentials::TokenCredential;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::network::causes;

/// Where machines of Azure ask who they are; nobody answers elsewhere.
const METADATA: &str = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01";
/// How long that may take. Machines of Azure answer themselves.
const METADATA_WAIT: Duration = Duration::from_secs(1);

/// One way to a token.
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) credential: Arc<dyn TokenCredential>,
    /// Whether it has to be asked first if there is such a thing as a managed identity here.
    pub(super) is_doubtful: bool,
}

/// Several ways to a token. The first that works is used from then on.
pub(super) struct Chain {
    links: Vec<Link>,
    transport: Arc<dyn Transport>,
    works: Mutex<Option<usize>>,
}

impl Chain {
    pub(super) fn new(links: Vec<Link>, transport: Arc<dyn Transport>) -> Self {
        Self { links, transport, works: Mutex::new(None) }
    }

    async fn find(&self, scope: &str) -> Result<Token, TokenError> {
        let known = *self.works.lock();
        if let Some(link) = known.and_then(|at| self.links.get(at)) {
            return ask(link, scope).await;
        }
        let mut failures = Vec::new();
        for (at, link) in self.links.iter().enumerate() {
            if link.is_doubtful && !self.has_metadata().await {
                failures.push(format!("{}: no metadata service answers", link.name));
                continue;
            }
            match ask(link, scope).await {
                Ok(token) => {
                    *self.works.lock() = Some(at);
                    return Ok(token);
                }
                Err(TokenError(why)) => failures.push(why),
            }
        }
        Err(TokenError(failures.join("; ")))
    }

    /// Whether there is a metadata service. Any answer proves it.
    async fn has_metadata(&self) -> bool {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = http::Uri::from_static(METADATA);
        matches!(tokio::time::timeout(METADATA_WAIT, self.transport.send(request)).await, Ok(Ok(_)))
    }
}

async fn ask(link: &Link, scope: &str) -> Result<Token, TokenError> {
    let answer = link.credential.get_token(&[scope], None).await;
    let token = answer.map_err(|error| TokenError(format!("{}: {}", link.name, causes(&error))))?;
    let expires = Timestamp::from_second(token.expires_on.unix_timestamp()).unwrap_or(Timestamp::MAX);
    Ok(Token { secret: Secret::new(token.token.secret()), expires, refresh: None })
}

impl TokenSource for Chain {
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
        Box::pin(self.find(scope))
    }
}

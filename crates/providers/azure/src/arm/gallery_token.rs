//! Tokens for the images of AKS, from a service beside the controller.

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::call::{Call, Identity, address};
use super::error::Error;
use super::sender::Sender;
use crate::auth::{Secret, Token, TokenError, TokenSource};

/// The service.
pub(super) struct GalleryTokens {
    pub(super) sender: Sender,
    /// Where it is.
    pub(super) server: String,
}

/// What it answers. Times that were never set are in the year one.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    token: String,
    expires_on: Timestamp,
    refresh_on: Option<Timestamp>,
}

impl GalleryTokens {
    async fn ask(&self, scope: &str) -> Result<Token, Error> {
        let url = address(&self.server, [], &[("scope", scope)]);
        let call = Call::new("gallery:GetToken", Method::GET, url).identity(Identity::Nobody);
        let answer = self.sender.send(&call).await?;
        read(&call, &answer)
    }
}

fn read(call: &Call, answer: &Response<Bytes>) -> Result<Token, Error> {
    // What is wrong with it is said without what is in it.
    let unreadable = |why: &str| Error::unreadable(&call.description(), answer, why);
    let read: Answer = serde_json::from_slice(answer.body()).map_err(|error| {
        unreadable(&format!("it is no token, see line {}, column {}", error.line(), error.column()))
    })?;
    if read.token.is_empty() {
        return Err(unreadable("the token is empty"));
    }
    Ok(Token {
        secret: Secret::new(read.token),
        expires: read.expires_on,
        refresh: read.refresh_on.filter(|refresh| *refresh > Timestamp::UNIX_EPOCH),
    })
}

impl TokenSource for GalleryTokens {
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<Token, TokenError>> {
        self.ask(scope).map(|token| token.map_err(|error| TokenError(error.to_string()))).boxed()
    }
}

//! Operations that take longer than a request.
//!
//! ```text
//!   first answer ──▶ where to look: a status, a location, or the resource itself ──▶ done
//!                          │   ▲ Retry-After, or three seconds                        or failed
//!                          └───┘
//! ```
//!
//! Entry: [`Running`]. What is looked at and what it means is decided by [`Progress`], which waits for nothing.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::call::Call;
use super::error::{Error, header};
use super::sender::{Sender, read};

/// How often it is looked, unless Azure says otherwise.
const INTERVAL: Duration = Duration::from_secs(3);
/// How often in a row nobody may know how far an operation is.
const PATIENCE: u32 = 5;
/// How long it takes until somebody may know again.
const PAUSE: Duration = Duration::from_secs(30);

/// An operation that Azure has accepted. It goes on whether or not anybody waits for it.
#[must_use = "what became of it is known only to who waits"]
pub struct Running<T> {
    sender: Sender,
    call: Call,
    progress: Progress,
    last: Response<Bytes>,
    result: PhantomData<fn() -> T>,
}

/// Where an operation is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Something with a `status`.
    Status(String),
    /// Something that is answered with 202 until it is done.
    Location(String),
    /// What is being made, with a `provisioningState`.
    Resource(String),
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Begun(Place),
    Succeeded,
    /// In this state.
    Failed(String),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    status: Option<serde_json::Value>,
    properties: Option<Properties>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Properties {
    provisioning_state: Option<String>,
}

fn body(answer: &Response<Bytes>) -> Body {
    serde_json::from_slice(answer.body()).unwrap_or_default()
}

fn provisioning_state(answer: &Response<Bytes>) -> Option<String> {
    body(answer).properties?.provisioning_state.filter(|state| !state.is_empty())
}

impl Progress {
    /// What a state means; everything that is not an end is on its way.
    fn of_state(state: &str, place: Place) -> Self {
        match state.to_ascii_lowercase().as_str() {
            "succeeded" => Self::Succeeded,
            "failed" | "canceled" | "cancelled" => Self::Failed(state.to_owned()),
            _ => Self::Begun(place),
        }
    }

    /// From the first answer.
    fn first(call: &Call, answer: &Response<Bytes>) -> Result<Self, Error> {
        let replaces = call.method == Method::PUT || call.method == Method::PATCH;
        let place = place(answer.headers()).or_else(|| replaces.then(|| Place::Resource(call.url.clone())));
        let Some(place) = place else {
            let wrong = Error::new(
                &call.description(),
                "",
                "reading the answer, it is 202 and does not say where the operation can be looked at",
            );
            return if answer.status() == StatusCode::ACCEPTED { Err(wrong) } else { Ok(Self::Succeeded) };
        };
        let by_resource = matches!(place, Place::Resource(_));
        Ok(match provisioning_state(answer) {
            Some(state) => Self::of_state(&state, place),
            None if answer.status() == StatusCode::NO_CONTENT => Self::Succeeded,
            None if by_resource && answer.status() == StatusCode::OK => Self::Succeeded,
            None => Self::Begun(place),
        })
    }

    /// From a later answer.
    fn next(place: Place, call: &Call, answer: &Response<Bytes>) -> Result<Self, Error> {
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(Self::Succeeded);
        }
        // It may move.
        let moved = self::place(answer.headers());
        match place {
            Place::Status(_) => {
                let place = moved.filter(|moved| matches!(moved, Place::Status(_))).unwrap_or(place);
                match body(answer).status.as_ref().and_then(serde_json::Value::as_str) {
                    Some(state) => Ok(Self::of_state(state, place)),
                    None => {
                        Err(Error::unreadable(&call.description(), answer, "the operation has no status"))
                    }
                }
            }
            Place::Location(_) => {
                let place = moved.filter(|moved| matches!(moved, Place::Location(_))).unwrap_or(place);
                Ok(match provisioning_state(answer) {
                    Some(state) => Self::of_state(&state, place),
                    None if answer.status() == StatusCode::ACCEPTED => Self::Begun(place),
                    None => Self::Succeeded,
                })
            }
            Place::Resource(_) => Ok(match provisioning_state(answer) {
                Some(state) => Self::of_state(&state, place),
                None => Self::Succeeded,
            }),
        }
    }
}

/// Where headers say that an operation can be looked at.
fn place(headers: &HeaderMap) -> Option<Place> {
    let status = header(headers, "azure-asyncoperation").or_else(|| header(headers, "operation-location"));
    status.map(Place::Status).or_else(|| header(headers, "location").map(Place::Location))
}

impl Sender {
    /// Begins an operation.
    pub(super) async fn begin<T>(&self, call: Call) -> Result<Running<T>, Error> {
        let last = self.send(&call).await?;
        let progress = Progress::first(&call, &last)?;
        if let Progress::Failed(state) = &progress {
            return Err(Error::of_operation(&call.description(), &last, state));
        }
        Ok(Running { sender: self.clone(), call, progress, last, result: PhantomData })
    }
}

impl<T> Running<T> {
    /// Whether there was nothing to be deleted.
    pub fn found_nothing(&self) -> bool {
        self.last.status() == StatusCode::NO_CONTENT
    }

    /// Waits for the end.
    pub async fn done(mut self) -> Result<(), Error> {
        self.follow().await.map(drop)
    }

    /// Looks until the operation has ended. Where it was looked at last, if at all.
    async fn follow(&mut self) -> Result<Option<Place>, Error> {
        let poll = poll_operation(self.call.operation);
        let mut looked_at = None;
        let mut unknown = 0;
        // Only who is told to wait waits before the first look.
        let mut wait = self.sender.told(self.last.headers());
        loop {
            let place = match &self.progress {
                Progress::Begun(place) => place.clone(),
                Progress::Succeeded => return Ok(looked_at),
                Progress::Failed(state) => {
                    return Err(Error::of_operation(&self.call.description(), &self.last, state));
                }
            };
            if let Some(wait) = wait {
                sleep(wait).await;
            }
            let (Place::Status(url) | Place::Location(url) | Place::Resource(url)) = &place;
            match self.sender.send(&self.call.follow(poll, url.clone())).await {
                Ok(answer) => {
                    unknown = 0;
                    wait = Some(self.sender.told(answer.headers()).unwrap_or(INTERVAL));
                    self.progress = Progress::next(place.clone(), &self.call, &answer)?;
                    self.last = answer;
                }
                // What is deleted may take what is known about it along.
                Err(error) if error.is_not_found() && self.is_delete() => self.progress = Progress::Succeeded,
                // That nobody knows how far it is does not end the operation.
                Err(error) if error.is_transient() && unknown < PATIENCE => {
                    unknown += 1;
                    wait = Some(PAUSE);
                }
                Err(error) => return Err(Error { operation: self.call.description(), ..error }),
            }
            looked_at = Some(place);
        }
    }

    fn is_delete(&self) -> bool {
        // Machines are deleted by asking for it.
        self.call.method == Method::DELETE || self.call.operation == super::aks::DELETE_MACHINES
    }
}

impl<T: DeserializeOwned> Running<T> {
    /// What the first answer has of the result.
    pub fn accepted(&self) -> Option<T> {
        serde_json::from_slice(self.last.body()).ok()
    }

    /// Waits for the end and asks for what has come of it. Whoever does not need that, saves a request with
    /// [`Running::done`].
    pub async fn wait(mut self) -> Result<T, Error> {
        let looked_at = self.follow().await?;
        if matches!(looked_at, Some(Place::Status(_))) || self.last.body().is_empty() {
            let again = self.call.follow(poll_operation(self.call.operation), self.call.url.clone());
            return self.sender.ask(&again).await;
        }
        read(&self.call, &self.last)
    }
}

/// What looks, the last one at the result included, are counted as.
fn poll_operation(operation: &'static str) -> &'static str {
    match operation.split(':').next() {
        Some("compute") => "compute:GetOperation",
        Some("network") => "network:GetOperation",
        _ => "containerservice:GetOperation",
    }
}

#[cfg(test)]
mod tests;

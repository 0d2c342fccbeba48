//! A server in tests: it answers what it is told, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use clock::Clock;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::transport::{Transport, TransportError};
use super::{Client, Setup};
use crate::auth::FixedToken;

/// What one request is answered with.
pub(crate) type Answer = Result<Response<Bytes>, TransportError>;

/// A server with answers in a fixed order.
pub(crate) struct Script {
    begun: Instant,
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<(f64, Request<Bytes>)>>,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        })
    }

    /// A client of this server.
    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(self.setup())
    }

    pub(crate) fn setup(self: &Arc<Self>) -> Setup {
        Setup {
            clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
            version: "1.2.3".to_owned(),
            ..Setup::new(Arc::<Self>::clone(self), Arc::new(FixedToken::new("secret")), "sub")
        }
    }

    /// What was asked: when in seconds, how and where.
    pub(crate) fn asked(&self) -> Vec<String> {
        let line = |(at, request): &(f64, Request<Bytes>)| {
            let path = request.uri().path_and_query().map_or("", |path| path.as_str());
            format!("{at:.1} {} {path}", request.method())
        };
        self.asked.lock().iter().map(line).collect()
    }

    /// When it was asked, in seconds.
    pub(crate) fn times(&self) -> Vec<f64> {
        self.asked.lock().iter().map(|(at, _)| *at).collect()
    }

    /// A request, by its number.
    pub(crate) fn request(&self, number: usize) -> Request<Bytes> {
        self.asked.lock()[number].1.clone()
    }
}

impl Transport for Script {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            self.asked.lock().push((self.begun.elapsed().as_secs_f64(), request));
            let next = self.answers.lock().pop_front();
            next.unwrap_or_else(|| Err(TransportError("the script is over".to_owned())))
        })
    }
}

/// An answer.
#[expect(clippy::unnecessary_wraps, reason = "scripts have answers and silence in one list")]
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    Ok(builder.body(Bytes::from(body.to_owned())).expect("tests write headers that exist"))
}

/// No answer.
pub(crate) fn silence() -> Answer {
    Err(TransportError("connection reset".to_owned()))
}

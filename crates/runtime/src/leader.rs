//! Leadership: of several replicas one acts. They agree by a Lease that the leader renews.
//!
//! ```text
//!   wait ──(no lease, released, or not renewed for its whole duration)──► lead ──(10 s without renewal)──► lost
//!     ▲ every 2 s or so, and at once when the lease is released             │
//!     └──────────────── another process ◄── released ◄── asked to stop ─────┘
//! ```
//!
//! Clocks of different machines are never compared: whether a lease has expired is judged by how long it has
//! looked the same from here.

mod decide;

use std::time::Duration;

use api::names::metrics::runtime as names;
use clock::Clock;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

pub use decide::{Action, decide};

use crate::api::{Error, MANAGER};
use crate::metrics::{Registry, Series};
use crate::random::Random;

/// For how long a lease is good without being renewed.
pub const LEASE: Duration = Duration::from_secs(15);
/// How long the leader tries to renew before it gives up. It is shorter, so that nobody else leads already.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often it is tried to renew or to acquire.
pub const RETRY: Duration = Duration::from_secs(2);
/// By what share of itself the time between attempts to acquire grows at most, so that candidates do not
/// always come at the same time.
const JITTER: f64 = 1.2;
/// How long to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Asked to stop; another replica can lead at once.
    Released,
    /// The lease could not be renewed, or somebody else has it. The process must not do anything any more.
    Lost,
}

/// A candidate.
pub struct Election {
    leases: Api<Lease>,
    clock: Clock,
    name: String,
    identity: String,
    random: Mutex<Random>,
    leads: watch::Sender<bool>,
    is_master: Series,
    slow_paths: Series,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election")
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Who wants the lease.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The name of the lease.
    pub name: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// What tells this process from all others; see [`identity`].
    pub identity: String,
}

/// What is known of the lease.
#[derive(Debug, Default)]
struct Seen {
    lease: Option<Lease>,
    /// Since when it has looked like that.
    since: Timestamp,
    /// When the last write that succeeded was sent: from then on others wait for the lease to expire.
    renewed: Timestamp,
}

impl Seen {
    fn see(&mut self, lease: Option<Lease>, now: Timestamp) {
        let version =
            |lease: &Option<Lease>| lease.as_ref().map(|lease| lease.metadata.resource_version.clone());
        if version(&self.lease) != version(&lease) {
            self.since = now;
        }
        self.lease = lease;
    }

    fn wrote(&mut self, lease: Lease, sent: Timestamp) {
        self.see(Some(lease), sent);
        self.renewed = sent;
    }
}

impl Election {
    /// A candidate that does not run yet. The client should have no limit, so that the lease is renewed even
    /// when everything else waits.
    pub fn new(client: Client, clock: Clock, candidate: Candidate, seed: u64, metrics: &Registry) -> Self {
        let Candidate { name, namespace, identity } = candidate;
        Self {
            leases: Api::namespaced(client, &namespace),
            clock,
            is_master: metrics.series(&names::LEADER_MASTER_STATUS, &[&name]),
            slow_paths: metrics.series(&names::LEADER_SLOWPATH, &[&name]),
            name,
            identity,
            random: Mutex::new(Random::new(seed)),
            leads: watch::Sender::new(false),
        }
    }

    /// Whether this replica leads, now and later.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Waits for the lease, keeps it, and gives it back when asked to stop.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Ended {
        let mut stop = std::pin::pin!(stop);
        let mut seen = Seen::default();
        tracing::info!(lease = self.name, "attempting to acquire leader lease");
        tokio::select! {
            () = self.acquire(&mut seen) => {}
            () = &mut stop => return Ended::Released,
        }
        tracing::info!(lease = self.name, identity = self.identity, "successfully acquired lease");
        self.lead(true);
        let ended = tokio::select! {
            () = self.renew(&mut seen) => Ended::Lost,
            () = &mut stop => Ended::Released,
        };
        self.lead(false);
        match ended {
            Ended::Lost => tracing::error!(lease = self.name, "leader election lost"),
            Ended::Released => self.release(&mut seen).await,
        }
        ended
    }

    fn lead(&self, leads: bool) {
        self.is_master.set(f64::from(u8::from(leads)));
        self.leads.send_replace(leads);
    }

    /// Returns when this replica has the lease.
    async fn acquire(&self, seen: &mut Seen) {
        let released = Notify::new();
        let trying = async {
            loop {
                match self.attempt(seen).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => {
                        tracing::debug!(lease = self.name, error = %error, "failed to acquire lease");
                    }
                }
                let wait = RETRY.mul_f64(1.0 + JITTER * self.random.lock().fraction());
                // Whichever comes first.
                let _ = tokio::time::timeout(wait, released.notified()).await;
            }
        };
        tokio::select! {
            () = trying => {}
            () = self.follow(&released) => {}
        }
    }

    /// Returns when the lease is lost.
    async fn renew(&self, seen: &mut Seen) {
        loop {
            tokio::time::sleep(RETRY).await;
            let left = self.clock.until(seen.renewed + (RETRY + RENEW_DEADLINE));
            let renewing = async {
                loop {
                    match self.attempt(seen).await {
                        Ok(mine) => return mine,
                        Err(error) => {
                            tracing::debug!(lease = self.name, error = %error, "failed to renew lease");
                        }
                    }
                    tokio::time::sleep(RETRY).await;
                }
            };
            match tokio::time::timeout(left, renewing).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Tries to get or to renew the lease; says whether this replica has it.
    async fn attempt(&self, seen: &mut Seen) -> Result<bool, Error> {
        if *self.leads.borrow() {
            // Nobody else writes a lease that is good, so it need not be read first.
            let now = self.clock.now();
            if let Action::Update(spec) = decide(&self.identity, seen.lease.as_ref(), seen.since, now)
                && let Some(lease) = &seen.lease
                && let Ok(lease) = self.write(lease, spec).await
            {
                seen.wrote(lease, now);
                return Ok(true);
            }
            self.slow_paths.add(1.0);
        }
        let lease = within(self.leases.get_opt(&self.name)).await?;
        let now = self.clock.now();
        seen.see(lease, now);
        let written = match (decide(&self.identity, seen.lease.as_ref(), seen.since, now), &seen.lease) {
            (Action::Create(spec), _) => {
                let mut lease = Lease { spec: Some(*spec), ..Lease::default() };
                lease.metadata.name = Some(self.name.clone());
                within(self.leases.create(&parameters(), &lease)).await?
            }
            (Action::Update(spec), Some(lease)) => self.write(lease, spec).await?,
            _ => return Ok(false),
        };
        seen.wrote(written, now);
        Ok(true)
    }

    /// Writes the lease, unless somebody else was faster.
    async fn write(&self, lease: &Lease, spec: Box<decide::Spec>) -> Result<Lease, Error> {
        let lease = Lease { metadata: lease.metadata.clone(), spec: Some(*spec) };
        within(self.leases.replace(&self.name, &parameters(), &lease)).await
    }

    /// Gives the lease back, so that another replica need not wait until it expires.
    async fn release(&self, seen: &mut Seen) {
        let release =
            async {
                seen.see(within(self.leases.get_opt(&self.name)).await?, self.clock.now());
                match seen.lease.as_ref().and_then(|lease| {
                    Some((lease, decide::released(&self.identity, lease, self.clock.now())?))
                }) {
                    Some((lease, spec)) => self.write(lease, spec).await.map(|_| ()),
                    None => Ok(()),
                }
            };
        match release.await {
            Ok(()) => tracing::info!(lease = self.name, "released lease"),
            Err(error) => tracing::error!(lease = self.name, error = %error, "failed to release lease"),
        }
    }

    /// Tells when the lease is released or deleted. It never ends, and does not matter when it fails: then
    /// the lease is taken a little later.
    async fn follow(&self, released: &Notify) {
        let parameters = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        loop {
            if let Ok(events) = self.leases.watch(&parameters, "0").await {
                let mut events = events.boxed();
                while let Ok(Some(event)) = events.try_next().await {
                    let is_free = match event {
                        WatchEvent::Added(lease) | WatchEvent::Modified(lease) => decide::is_free(&lease),
                        WatchEvent::Deleted(_) => true,
                        WatchEvent::Bookmark(_) => false,
                        WatchEvent::Error(_) => break,
                    };
                    if is_free {
                        released.notify_one();
                    }
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

async fn within<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(Error::from),
        Err(_) => Err(Error::NoAnswer(format!("none within {} s", TIMEOUT.as_secs()))),
    }
}

/// What tells this process from all others: the machine's name and a random number, as Linux gives them.
pub fn identity() -> std::io::Result<String> {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    let host = read("/proc/sys/kernel/hostname")?;
    Ok(format!("{host}_{}", read("/proc/sys/kernel/random/uuid")?))
}

/// The namespace of the lease: as set, or that of the pod.
pub fn namespace(set: &str) -> Result<String, String> {
    if !set.is_empty() {
        return Ok(set.to_owned());
    }
    let own = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace");
    own.map(|own| own.trim().to_owned()).map_err(|_| {
        "outside a cluster, the namespace of the leader election lease must be set by --leader-election-namespace"
            .to_owned()
    })
}

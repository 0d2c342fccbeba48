//! Azure refuses requests of a kind for a while once there were too many. Nobody insists meanwhile.
//!
//! ```text
//!           429 with Retry-After                     the time has passed
//!   open ──────────────────────────▶ closed ──────────────────────────────▶ recovering
//!    ▲                                  ▲     429 with Retry-After              │
//!    │                                  └───────────────────────────────────────┤
//!    └──────────────────────────────────────────────────────────────────────────┘
//!                              enough were answered
//! ```
//!
//! While a bucket recovers, few requests are under way at first, and one more with every fourth answer, so that a
//! thousand that waited are not refused together. They go in the order in which they came first: a request that
//! was refused is not overtaken. Entry: [`Windows::admit`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::retry::LONGEST;

/// How many requests are under way when a bucket begins to recover. One alone would stop everybody if it hung.
const FIRST: usize = 8;
/// After so many answers, one more may be under way. With each one, half of those would be refused that are sent
/// in the last round before the bucket is full.
const ANSWERS: usize = 4;
/// From so many on, a bucket counts as open.
const ENOUGH: usize = 256;
/// How often who waits for others looks whether the bucket was closed meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// Requests that Azure counts together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bucket {
    /// The subscription, or the host where there is none.
    scope: String,
    /// The resource provider, and the type of resource: each has limits of its own.
    resource: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Write,
    Delete,
}

impl Bucket {
    /// The bucket of a request.
    pub(super) fn of(method: &Method, host: &str, path: &str) -> Self {
        let kind = match *method {
            Method::GET | Method::HEAD => Kind::Read,
            Method::DELETE => Kind::Delete,
            _ => Kind::Write,
        };
        let mut segments = path.split('/').map(str::to_ascii_lowercase);
        let (mut scope, mut resource) = (host.to_owned(), String::new());
        while let Some(segment) = segments.next() {
            match segment.as_str() {
                "subscriptions" => scope = segments.next().unwrap_or_default(),
                "providers" => {
                    resource = segments.next().unwrap_or_default();
                    // Types and names take turns.
                    for part in segments.by_ref().step_by(2) {
                        resource = format!("{resource}/{part}");
                    }
                }
                _ => {}
            }
        }
        Self { scope, resource, kind }
    }
}

/// All buckets.
#[derive(Default)]
pub(super) struct Windows {
    buckets: Mutex<BTreeMap<Bucket, State>>,
    tickets: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Until when nothing is sent.
    closed: Option<Instant>,
    /// How many were answered since it began to recover, if it has not recovered.
    recovering: Option<usize>,
    /// How often it was closed.
    epoch: u64,
    under_way: usize,
    waiting: BTreeMap<u64, oneshot::Sender<Pass>>,
}

impl State {
    fn closed_for(&self, now: Instant) -> Option<Duration> {
        self.closed.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn has_room(&self, now: Instant) -> bool {
        self.closed_for(now).is_none()
            && self.recovering.is_none_or(|answered| self.under_way < FIRST + answered / ANSWERS)
    }
}

/// That a request may be sent. It is given back by being dropped.
pub(super) struct Pass {
    windows: Arc<Windows>,
    bucket: Bucket,
    epoch: u64,
}

/// What came of a request, as far as its bucket is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// Azure wants to be left alone for so long.
    Wait(Duration),
    /// Nothing of the kind.
    Nothing,
}

impl Windows {
    /// The place of a request in the queue; it keeps it when it is sent again.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until the request may be sent. Who would have to wait for more than a minute is told for how long,
    /// and gives up.
    pub(super) async fn admit(self: &Arc<Self>, bucket: &Bucket, ticket: u64) -> Result<Pass, Duration> {
        loop {
            let mut turn = match self.enter(bucket, ticket)? {
                Entered::Now(pass) => return Ok(pass),
                Entered::Later(turn) => turn,
            };
            loop {
                let look = self.next_look(bucket, ticket)?;
                tokio::select! {
                    biased;
                    pass = &mut turn => match pass {
                        Ok(pass) => return Ok(pass),
                        Err(_) => break,
                    },
                    () = sleep_until(look) => self.advance(bucket),
                }
            }
        }
    }

    fn enter(self: &Arc<Self>, bucket: &Bucket, ticket: u64) -> Result<Entered, Duration> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        let state = buckets.entry(bucket.clone()).or_default();
        if let Some(left) = state.closed_for(now).filter(|left| *left > LONGEST) {
            return Err(left);
        }
        if state.waiting.is_empty() && state.has_room(now) {
            return Ok(Entered::Now(self.pass(bucket, state)));
        }
        let (sender, turn) = oneshot::channel();
        state.waiting.insert(ticket, sender);
        Ok(Entered::Later(turn))
    }

    fn pass(self: &Arc<Self>, bucket: &Bucket, state: &mut State) -> Pass {
        state.under_way += 1;
        Pass { windows: Arc::clone(self), bucket: bucket.clone(), epoch: state.epoch }
    }

    /// When to look again.
    fn next_look(&self, bucket: &Bucket, ticket: u64) -> Result<Instant, Duration> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        let state = buckets.entry(bucket.clone()).or_default();
        match state.closed_for(now) {
            Some(left) if left > LONGEST => {
                // A pass that was given meanwhile gives itself back.
                state.waiting.remove(&ticket);
                Err(left)
            }
            Some(left) => Ok(now + left),
            None => Ok(now + LOOK),
        }
    }

    /// Lets those go whose turn it is.
    fn advance(self: &Arc<Self>, bucket: &Bucket) {
        let now = Instant::now();
        let mut gone = Vec::new();
        {
            let mut buckets = self.buckets.lock();
            let state = buckets.entry(bucket.clone()).or_default();
            while state.has_room(now) {
                let Some((_, sender)) = state.waiting.pop_first() else { break };
                if sender.is_closed() {
                    continue;
                }
                let pass = self.pass(bucket, state);
                // Who went away just now gives its pass back, but not while everything is locked.
                gone.extend(sender.send(pass).err());
            }
        }
        drop(gone);
    }
}

enum Entered {
    Now(Pass),
    Later(oneshot::Receiver<Pass>),
}

impl Pass {
    /// Says what came of the request.
    pub(super) fn answered(self, told: Told) {
        let now = Instant::now();
        let mut buckets = self.windows.buckets.lock();
        let state = buckets.entry(self.bucket.clone()).or_default();
        match told {
            Told::Wait(wait) => {
                let until = now + wait;
                state.closed = Some(state.closed.map_or(until, |closed| closed.max(until)));
                state.recovering = Some(0);
                state.epoch += 1;
            }
            // What was sent before the bucket was closed says nothing about now.
            Told::Nothing if state.epoch == self.epoch => {
                let answered = state.recovering.map(|answered| answered + 1);
                state.recovering = answered.filter(|answered| *answered < ENOUGH * ANSWERS);
            }
            Told::Nothing => {}
        }
        drop(buckets);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(state) = self.windows.buckets.lock().get_mut(&self.bucket) {
            state.under_way = state.under_way.saturating_sub(1);
        }
        self.windows.advance(&self.bucket);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    fn bucket() -> Bucket {
        Bucket::of(
            &Method::PUT,
            "h",
            "/subscriptions/S/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a",
        )
    }

    #[test]
    fn requests_are_counted_by_subscription_type_of_resource_and_kind() {
        let of = |method: &Method, path: &str| Bucket::of(method, "h", path);
        let vm = "/subscriptions/s/resourceGroups/g/providers/microsoft.compute/virtualMachines/b";
        assert_eq!(bucket(), of(&Method::PUT, vm), "in any spelling");
        assert_eq!(bucket(), of(&Method::PATCH, vm));
        for other in [of(&Method::GET, vm), of(&Method::DELETE, vm)] {
            assert_ne!(bucket(), other);
        }
        let nic = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/b";
        assert_ne!(bucket(), of(&Method::PUT, nic));
        assert_ne!(bucket(), of(&Method::PUT, &vm.replace("/s/", "/t/")));
        let skus = of(&Method::GET, "/subscriptions/s/providers/Microsoft.Compute/skus");
        assert_ne!(skus, of(&Method::GET, vm), "what is read of sizes does not count for machines");
        let look = |id: &str| {
            let path = format!("/subscriptions/s/providers/Microsoft.Network/locations/l/operations/{id}");
            of(&Method::GET, &path)
        };
        assert_eq!(look("1"), look("2"));
        assert_ne!(
            look("1"),
            of(&Method::GET, nic),
            "a subnet that is throttled does not hide how far an interface is"
        );
        assert_ne!(bucket(), of(&Method::PUT, &format!("{vm}/extensions/e")));
        assert_ne!(of(&Method::GET, "/a"), Bucket::of(&Method::GET, "other", "/a"));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_sent_before_the_time_has_passed_that_azure_asked_for() {
        let windows = Arc::new(Windows::default());
        let first = windows.admit(&bucket(), windows.ticket()).await.unwrap();
        first.answered(Told::Wait(Duration::from_secs(30)));
        let begun = Instant::now();
        let _pass = windows.admit(&bucket(), windows.ticket()).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 30);
        let reads = Bucket::of(&Method::GET, "h", "/subscriptions/s/providers/Microsoft.Compute/skus");
        let begun = Instant::now();
        assert!(windows.admit(&reads, windows.ticket()).await.is_ok());
        assert!(begun.elapsed().is_zero(), "other kinds do not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_for_more_than_a_minute_gives_up() {
        let windows = Arc::new(Windows::default());
        let pass = windows.admit(&bucket(), windows.ticket()).await.unwrap();
        let other = windows.admit(&bucket(), windows.ticket()).await.unwrap();
        pass.answered(Told::Wait(Duration::from_secs(30)));
        let bucket = bucket();
        let waiting = windows.admit(&bucket, windows.ticket());
        let closed_again = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            other.answered(Told::Wait(Duration::from_mins(5)));
        };
        let (waited, ()) = tokio::join!(waiting, closed_again);
        assert_eq!(waited.err(), Some(Duration::from_secs(280)), "when it looks again");
        assert_eq!(windows.admit(&bucket, windows.ticket()).await.err(), Some(Duration::from_secs(280)));
        tokio::time::advance(Duration::from_secs(230)).await;
        assert!(windows.admit(&bucket, windows.ticket()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_that_waited_are_not_refused_together() {
        const CAPACITY: usize = 200;
        let windows = Arc::new(Windows::default());
        // A server that takes so many in half a minute and refuses the rest until it is over.
        let begun = Instant::now();
        let taken = Mutex::new(BTreeMap::<u64, usize>::new());
        let refused = Mutex::new(BTreeMap::<u64, usize>::new());
        let one = async |ticket: u64| {
            loop {
                let pass = windows.admit(&bucket(), ticket).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
                let window = begun.elapsed().as_secs() / 30;
                let accepted = {
                    let mut taken = taken.lock();
                    let count = taken.entry(window).or_default();
                    *count += 1;
                    *count <= CAPACITY
                };
                if accepted {
                    pass.answered(Told::Nothing);
                    return;
                }
                *refused.lock().entry(ticket).or_default() += 1;
                let left = Duration::from_secs((window + 1) * 30).saturating_sub(begun.elapsed());
                pass.answered(Told::Wait(left));
            }
        };
        join_all((0..1000).map(|_| one(windows.ticket()))).await;
        assert_eq!(begun.elapsed().as_secs() / 30, 4, "five windows are enough");
        let refused = refused.lock();
        assert_eq!(refused.values().max(), Some(&2), "nobody is refused again and again");
        let later: usize = refused.values().sum::<usize>() - 800;
        assert!(later < 300, "{later} refusals after the first window");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_holds_nobody_up() {
        let windows = Arc::new(Windows::default());
        let pass = windows.admit(&bucket(), windows.ticket()).await.unwrap();
        pass.answered(Told::Wait(Duration::from_secs(10)));
        let bucket = bucket();
        let impatient = windows.admit(&bucket, windows.ticket());
        assert!(tokio::time::timeout(Duration::from_secs(1), impatient).await.is_err());
        let all = join_all(
            (0..20).map(|_| async { drop(windows.admit(&bucket, windows.ticket()).await.unwrap()) }),
        );
        assert!(tokio::time::timeout(Duration::from_secs(12), all).await.is_ok());
        assert!(
            windows.buckets.lock().values().all(|state| state.under_way == 0 && state.waiting.is_empty())
        );
    }
}

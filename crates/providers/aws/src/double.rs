//! An AWS in the process, for tests: it has what it is given, does what it is asked, and fails where it is told to.
//!
//! ```text
//!   test ──► Double::change(world) ──┐                      ┌── Ec2, Iam, Eks, Ssm, Sqs, Pricing, Sts and so on
//!            Double::fail(operation) ─┴─► World + Script ◄───┘         │
//!            Double::calls() ◄── every call, in order ◄────────────────┘
//! ```

mod account;
mod ec2;
mod fleet;
mod matching;
mod others;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use clock::Clock;
use parking_lot::Mutex;

use crate::port::{Error, Services};

pub use world::{Bucket, Stored, World};

/// How often something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// So many times from now on.
    Next(u32),
    /// From now on.
    Always,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation, such as `ec2:CreateFleet`.
    pub operation: &'static str,
    /// What it was about, in short.
    pub about: String,
}

#[derive(Debug, Default)]
struct Script {
    failures: BTreeMap<&'static str, (Error, Times)>,
    calls: Vec<Call>,
    throttled: usize,
}

/// An AWS in the process. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Double {
    clock: Clock,
    world: Arc<Mutex<World>>,
    script: Arc<Mutex<Script>>,
}

impl Double {
    /// An AWS with nothing in it.
    pub fn new(clock: Clock) -> Self {
        Self { clock, world: Arc::default(), script: Arc::default() }
    }

    /// All of its services.
    pub fn services(&self) -> Services {
        let this = Arc::new(self.clone());
        Services {
            ec2: Arc::clone(&this) as _,
            iam: Arc::clone(&this) as _,
            eks: Arc::clone(&this) as _,
            ssm: Arc::clone(&this) as _,
            sqs: Arc::clone(&this) as _,
            pricing: Arc::clone(&this) as _,
            zonal_shift: Arc::clone(&this) as _,
            sts: Arc::clone(&this) as _,
            quotas: this as _,
        }
    }

    /// Looks at what there is, or changes it.
    pub fn change<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        change(&mut self.world.lock())
    }

    /// Lets an operation fail.
    pub fn fail(&self, operation: &'static str, code: &str, message: &str, times: Times) {
        self.fail_with(Error::new(operation, code, message), times);
    }

    /// Lets an operation fail with an error.
    pub fn fail_with(&self, error: Error, times: Times) {
        self.script.lock().failures.insert(error.operation, (error, times));
    }

    /// Lets an operation succeed again.
    pub fn mend(&self, operation: &'static str) {
        self.script.lock().failures.remove(operation);
    }

    /// All calls, in their order.
    pub fn calls(&self) -> Vec<Call> {
        self.script.lock().calls.clone()
    }

    /// How often an operation was called.
    pub fn count(&self, operation: &str) -> usize {
        self.script.lock().calls.iter().filter(|call| call.operation == operation).count()
    }

    /// Forgets the calls so far.
    pub fn forget_calls(&self) {
        self.script.lock().calls.clear();
    }

    /// Notes a call; fails if it shall.
    fn called(&self, operation: &'static str, about: String) -> Result<(), Error> {
        let mut script = self.script.lock();
        script.calls.push(Call { operation, about });
        let Some((error, times)) = script.failures.get_mut(operation) else { return Ok(()) };
        let error = error.clone();
        match times {
            Times::Always => {}
            Times::Next(0) => return Ok(()),
            Times::Next(left) => *left -= 1,
        }
        Err(error)
    }

    /// Fails if lists of EC2 are asked for too often.
    fn throttle(&self, operation: &'static str) -> Result<(), Error> {
        let now = self.clock.now();
        let is_allowed = match &mut self.world.lock().describe_bucket {
            Some(bucket) if operation.starts_with("ec2:Describe") => bucket.take(now),
            _ => true,
        };
        if is_allowed {
            return Ok(());
        }
        self.script.lock().throttled += 1;
        Err(Error::new(operation, "RequestLimitExceeded", "Request limit exceeded."))
    }

    /// How many requests came too often.
    pub fn throttled(&self) -> usize {
        self.script.lock().throttled
    }

    /// Does something that takes as long as the world says.
    async fn answer<R>(
        &self,
        operation: &'static str,
        about: String,
        change: impl FnOnce(&mut World) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let latency = self.world.lock().latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        self.called(operation, about)?;
        self.throttle(operation)?;
        change(&mut self.world.lock())
    }
}

//! A cloud that only says what it is told to say.

use std::sync::Arc;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cloud::{CloudProvider, Error, Instance, RepairPolicy};
use cluster::instance_types::{InstanceType, kwok};
use cluster::volumes::Unsupported;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// A cloud that only says what it is told to say; it launches nothing.
pub(crate) struct FakeCloud {
    /// What every NodePool can choose from.
    pub(crate) types: Mutex<Arc<[InstanceType]>>,
    /// Why there are no types, if so.
    pub(crate) types_error: Mutex<Option<Error>>,
    /// The NodePool that this concerns; all of them if absent.
    pub(crate) broken_pool: Mutex<Option<String>>,
    /// Why instances have drifted, if so.
    pub(crate) drift: Mutex<Option<String>>,
    /// When nodes count as broken.
    pub(crate) policies: Mutex<Vec<RepairPolicy>>,
}

impl Default for FakeCloud {
    fn default() -> Self {
        let types: Arc<[InstanceType]> = kwok::built_in().into();
        Self {
            types: Mutex::new(types),
            types_error: Mutex::default(),
            broken_pool: Mutex::default(),
            drift: Mutex::default(),
            policies: Mutex::default(),
        }
    }
}

impl CloudProvider for FakeCloud {
    fn provider(&self) -> Provider {
        Provider::Kwok
    }

    fn create<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        async { Err(Error::Other("nothing is launched here".to_owned())) }.boxed()
    }

    fn delete<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        async { Err(Error::NotFound("nothing is launched here".to_owned())) }.boxed()
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async move { Err(Error::NotFound(id.to_owned())) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        async {
            let is_broken =
                self.broken_pool.lock().as_ref().is_none_or(|it| pool.metadata.name.as_ref() == Some(it));
            match self.types_error.lock().clone().filter(|_| is_broken) {
                Some(error) => Err(error),
                None => Ok(Arc::clone(&self.types.lock())),
            }
        }
        .boxed()
    }

    fn drift<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        async { Ok(self.drift.lock().clone()) }.boxed()
    }

    fn unsupported_volumes(&self) -> Unsupported {
        Unsupported { provisioners: ["odd.example.com".into()].into(), ..Unsupported::default() }
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.policies.lock().clone()
    }

    fn reboot<'a>(&'a self, _: &'a NodeClaim, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

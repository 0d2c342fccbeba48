//! Who asks the double, and what its account may have.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Double;
use crate::port::{CallerIdentity, Error, Quota, Quotas, Sts};

impl Sts for Double {
    fn caller_identity(&self) -> BoxFuture<'_, Result<CallerIdentity, Error>> {
        self.answer("sts:GetCallerIdentity", String::new(), |world| Ok(world.identity.clone())).boxed()
    }
}

impl Quotas for Double {
    fn quotas<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Result<Vec<Quota>, Error>> {
        self.answer("servicequotas:ListServiceQuotas", service.to_owned(), |world| Ok(world.quotas.clone()))
            .boxed()
    }
}

//! Service quotas.

use aws::port::{Quota, Quotas};
use aws_sdk_servicequotas::types::ServiceQuota;
use futures::FutureExt as _;

use crate::Answer;
use crate::pages;

const LIST: &str = "servicequotas:ListServiceQuotas";
const PAGE: i32 = 100;

/// Service quotas.
pub(crate) struct Client(pub(crate) aws_sdk_servicequotas::Client);

impl Quotas for Client {
    fn quotas<'a>(&'a self, service: &'a str) -> Answer<'a, Vec<Quota>> {
        let request = self.0.list_service_quotas().service_code(service);
        let found = request.into_paginator().page_size(PAGE).send();
        pages::all(LIST, found, |page| page.quotas.unwrap_or_default().into_iter().filter_map(quota)).boxed()
    }
}

fn quota(described: ServiceQuota) -> Option<Quota> {
    Some(Quota {
        code: described.quota_code?,
        name: described.quota_name.unwrap_or_default(),
        value: described.value?,
    })
}

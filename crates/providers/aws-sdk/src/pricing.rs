//! The price list.

use aws::port::{Error, Pricing, ProductQuery};
use aws_sdk_pricing::types::{Filter, FilterType};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::unusable;
use crate::pages;

const GET: &str = "pricing:GetProducts";
const PAGE: i32 = 100;

/// The price list.
pub(crate) struct Client(pub(crate) aws_sdk_pricing::Client);

impl Pricing for Client {
    fn products<'a>(&'a self, query: &'a ProductQuery) -> Answer<'a, Vec<String>> {
        async move {
            let request = self.0.get_products().service_code("AmazonEC2").set_filters(Some(filters(query)?));
            let found = request.into_paginator().page_size(PAGE).send();
            pages::all(GET, found, |page| page.price_list.unwrap_or_default()).await
        }
        .boxed()
    }
}

fn filters(query: &ProductQuery) -> Result<Vec<Filter>, Error> {
    let each = |(field, value): &(String, String)| {
        let filter = Filter::builder().r#type(FilterType::TermMatch).field(field).value(value).build();
        filter.map_err(|cause| unusable(GET, &cause))
    };
    query.filters.iter().map(each).collect()
}

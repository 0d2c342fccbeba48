//! What machines cost, as Azure publishes it for everybody.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::call::{Call, Identity, address};
use super::client::Client;
use super::error::Error;
use super::pages::{following, readable};
use super::sender::read;
use super::types::sku::RetailPrice;

/// A page; see [`RetailPrices`](super::types::sku::RetailPrices) for its rows.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    items: Vec<Value>,
    next_page_link: Option<String>,
}

impl Client {
    /// The prices of virtual machines in a region of the public cloud.
    pub async fn retail_prices(&self, region: &str) -> Result<Vec<RetailPrice>, Error> {
        let filter = format!(
            "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' and serviceName eq 'Virtual Machines' and armRegionName eq '{}'",
            region.replace('\'', "''")
        );
        let query = [("api-version", "2023-01-01-preview"), ("$filter", filter.as_str())];
        let url = address(self.prices(), ["api", "retail", "prices"], &query);
        let mut next = Some(Call::new("prices:List", Method::GET, url).identity(Identity::Nobody));
        let mut all = Vec::new();
        while let Some(call) = next {
            let answer = self.sender.send(&call).await?;
            let page: Page = read(&call, &answer)?;
            all.extend(readable(call.operation, page.items));
            next = following(&call, page.next_page_link)?;
        }
        Ok(all)
    }
}

//! Retail prices, as the public price list has them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::call::Call;
use crate::world::World;

/// Spot machines cost a fifth, so that they are always cheaper and tests can reckon.
const SPOT_SHARE: f64 = 0.2;

/// Prices for an hour in USD, by region and size.
#[derive(Clone, Debug, Default)]
pub struct Prices(BTreeMap<(String, String), Price>);

#[derive(Clone, Copy, Debug)]
struct Price {
    on_demand: f64,
    spot: f64,
}

impl Prices {
    /// Reads a table with a row for each size and a column for each region.
    pub(crate) fn load(&mut self, table: &str) {
        let mut lines = table.lines();
        let regions: Vec<&str> = lines.next().unwrap_or_default().split(',').skip(1).collect();
        for line in lines {
            let mut cells = line.split(',');
            let Some(size) = cells.next() else { continue };
            for (region, cell) in regions.iter().zip(cells) {
                if let Ok(price) = cell.parse::<f64>() {
                    self.set(region, size, price, price * SPOT_SHARE);
                }
            }
        }
    }

    /// What a size costs in a region.
    pub fn set(&mut self, region: &str, size: &str, on_demand: f64, spot: f64) {
        self.0.insert((region.to_owned(), size.to_owned()), Price { on_demand, spot });
    }

    /// Takes all prices back.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The value of a condition `field eq 'value'` in a filter.
fn wanted<'a>(filter: &'a str, field: &str) -> Option<&'a str> {
    let conditions = filter.split(" and ").map(str::trim);
    conditions.filter_map(|each| each.split_once(" eq ")).find_map(|(name, value)| {
        let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        (name.trim() == field).then_some(value)
    })
}

fn items(region: &str, size: &str, price: Price) -> Vec<Value> {
    let short = size.trim_start_matches("Standard_").replace('_', " ");
    let series = format!("Virtual Machines {short} Series");
    let item = |product: &str, meter: &str, sku: &str, price: f64| {
        json!({
            "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
            "armRegionName": region, "location": region, "effectiveStartDate": "2026-06-01T00:00:00Z",
            "meterId": "00000000-0000-0000-0000-000000000000", "meterName": meter, "productId": "DZH318Z0BPVW",
            "skuId": "DZH318Z0BPVW/0000", "productName": product, "skuName": sku, "serviceName": "Virtual Machines",
            "serviceId": "DZH313Z7MMC8", "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "type": "Consumption",
            "isPrimaryMeterRegion": true, "armSkuName": size,
        })
    };
    vec![
        item(&series, &short, &short, price.on_demand),
        item(&series, &format!("{short} Spot"), &format!("{short} Spot"), price.spot),
        // Nobody wants these two.
        item(&series, &format!("{short} Low Priority"), &format!("{short} Low Priority"), price.spot * 1.5),
        item(&format!("{series} Windows"), &short, &short, price.on_demand * 1.8),
    ]
}

pub(crate) fn list(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let filter = call.query("$filter").unwrap_or_default();
    let Some(region) = wanted(filter, "armRegionName") else {
        return Err(Refusal::new(400, "BadRequest", format!("Invalid OData parameters supplied: {filter}")));
    };
    let is_asked = wanted(filter, "serviceFamily").is_none_or(|family| family == "Compute")
        && wanted(filter, "priceType").is_none_or(|kind| kind == "Consumption")
        && wanted(filter, "serviceName").is_none_or(|name| name == "Virtual Machines");
    let here = world.prices.0.iter().filter(|((each, _), _)| is_asked && each == region);
    let all: Vec<Value> = here.flat_map(|((_, size), price)| items(region, size, *price)).collect();
    let from: usize = call.query("$skip").and_then(|skip| skip.parse().ok()).unwrap_or(0);
    let until = from.saturating_add(world.settings.page_size.max(1));
    let next = (all.len() > until).then(|| call.next_link("$skip", until));
    let page: Vec<Value> = all.into_iter().skip(from).take(world.settings.page_size.max(1)).collect();
    Ok(Answer::json(
        200,
        json!({
            "BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
            "Count": page.len(), "Items": page, "NextPageLink": next,
        }),
    ))
}

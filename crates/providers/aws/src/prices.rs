//! What instances cost: the table at first, then what AWS says, which never takes a price away.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::port::{ProductQuery, SpotPrice};
use crate::tables::on_demand_prices;

/// What instances cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    on_demand: BTreeMap<String, f64>,
    /// By type and zone; nothing before the first update.
    spot: Option<BTreeMap<String, BTreeMap<String, f64>>>,
}

impl Prices {
    /// The prices of the table.
    pub fn of_region(region: &str) -> Self {
        Self { on_demand: on_demand_prices(region).clone(), spot: None }
    }

    /// What a type costs by use in the whole region.
    pub fn on_demand(&self, instance_type: &str) -> Option<f64> {
        self.on_demand.get(instance_type).copied()
    }

    /// What a type costs on the spot market of a zone. Before the first update, as much as by use.
    pub fn spot(&self, instance_type: &str, zone: &str) -> Option<f64> {
        match &self.spot {
            Some(known) => known.get(instance_type)?.get(zone).copied(),
            None => self.on_demand(instance_type),
        }
    }

    /// Takes over prices by use; whether anything changed.
    pub fn update_on_demand(&mut self, prices: BTreeMap<String, f64>) -> bool {
        let before = self.on_demand.clone();
        self.on_demand.extend(prices);
        self.on_demand != before
    }

    /// Takes over spot prices, the latest last; whether anything changed.
    pub fn update_spot(&mut self, prices: Vec<SpotPrice>) -> bool {
        let before = self.spot.clone();
        let known = self.spot.get_or_insert_default();
        for SpotPrice { instance_type, zone, price } in prices {
            known.entry(instance_type).or_default().insert(zone, price);
        }
        self.spot != before
    }
}

/// The currency that prices of a region are in.
fn currency(region: &str) -> &'static str {
    if region.starts_with("cn-") { "CNY" } else { "USD" }
}

/// The region whose price list is asked.
pub fn price_list_region(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("ap") => "ap-south-1",
        Some("cn") => "cn-northwest-1",
        Some("eu") => "eu-central-1",
        _ => "us-east-1",
    }
}

/// Whether there is a price list for a region.
pub fn has_price_list(region: &str) -> bool {
    !region.starts_with("us-gov")
}

/// The two questions that are asked about prices by use: shared machines and bare metal.
pub fn on_demand_queries(region: &str) -> [ProductQuery; 2] {
    [("Shared", "Compute Instance"), ("Dedicated", "Compute Instance (bare metal)")].map(
        |(tenancy, product_family)| ProductQuery {
            filters: [
                ("regionCode", region),
                ("serviceCode", "AmazonEC2"),
                ("preInstalledSw", "NA"),
                ("operatingSystem", "Linux"),
                ("capacitystatus", "Used"),
                ("marketoption", "OnDemand"),
                ("tenancy", tenancy),
                ("productFamily", product_family),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        },
    )
}

/// The price by use of a product of the price list; none if it is for nothing or not about instances.
pub fn on_demand_price(product: &str, region: &str) -> Option<(String, f64)> {
    let product: Value = serde_json::from_str(product).ok()?;
    let name = product.pointer("/product/attributes/instanceType")?.as_str()?;
    let terms = product.pointer("/terms/OnDemand")?.as_object()?;
    let dimensions = terms.values().filter_map(|term| term.get("priceDimensions")?.as_object());
    let mut prices = dimensions.flat_map(serde_json::Map::values).filter_map(|dimension| {
        let text = dimension.get("pricePerUnit")?.get(currency(region))?.as_str()?;
        text.parse::<f64>().ok().filter(|price| *price > 0.0)
    });
    Some((name.to_owned(), prices.next_back()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spot(instance_type: &str, zone: &str, price: f64) -> SpotPrice {
        SpotPrice { instance_type: instance_type.to_owned(), zone: zone.to_owned(), price }
    }

    #[test]
    fn spot_costs_as_much_as_on_demand_until_it_is_known() {
        let mut prices = Prices::of_region("eu-west-1");
        let on_demand = prices.on_demand("m5.large");
        assert!(on_demand.is_some());
        assert_eq!(prices.spot("m5.large", "a"), on_demand);
        assert!(prices.update_spot(vec![spot("m5.large", "a", 0.1), spot("m5.large", "a", 0.2)]));
        assert_eq!(prices.spot("m5.large", "a"), Some(0.2));
        assert_eq!((prices.spot("m5.large", "b"), prices.spot("m5.xlarge", "a")), (None, None));
        assert_eq!(prices.on_demand("x99.large"), None);
    }

    #[test]
    fn an_update_takes_no_price_away() {
        let mut prices = Prices::of_region("us-east-1");
        assert!(prices.update_on_demand([("x99.large".to_owned(), 1.0)].into()));
        assert!(!prices.update_on_demand([("x99.large".to_owned(), 1.0)].into()));
        assert!(prices.on_demand("x99.large").is_some() && prices.on_demand("m5.large").is_some());
        assert!(prices.update_spot(vec![spot("m5.large", "a", 0.1)]));
        assert!(prices.update_spot(vec![spot("m5.large", "b", 0.2)]));
        assert_eq!(prices.spot("m5.large", "a"), Some(0.1));
    }

    #[test]
    fn products_are_read_in_the_currency_of_the_region() {
        let product = json!({
            "product": {"attributes": {"instanceType": "m5.large"}},
            "terms": {"OnDemand": {
                "a": {"priceDimensions": {
                    "x": {"pricePerUnit": {"USD": "0.096", "CNY": "1.5"}},
                    "y": {"pricePerUnit": {"USD": "0.000"}},
                }},
            }},
        })
        .to_string();
        assert_eq!(on_demand_price(&product, "us-east-1"), Some(("m5.large".to_owned(), 0.096)));
        assert_eq!(on_demand_price(&product, "cn-north-1"), Some(("m5.large".to_owned(), 1.5)));
        let of_nothing = json!({"product": {"attributes": {}}, "terms": {"OnDemand": {}}}).to_string();
        for unusable in [of_nothing.as_str(), "no JSON", "{}"] {
            assert_eq!(on_demand_price(unusable, "us-east-1"), None);
        }
    }

    #[test]
    fn every_region_has_its_price_list() {
        for (region, list) in [
            ("us-west-2", "us-east-1"),
            ("ap-east-1", "ap-south-1"),
            ("cn-north-1", "cn-northwest-1"),
            ("eu-west-3", "eu-central-1"),
            ("sa-east-1", "us-east-1"),
        ] {
            assert_eq!(price_list_region(region), list);
        }
        assert!(has_price_list("us-west-2") && !has_price_list("us-gov-west-1"));
        let [shared, metal] = on_demand_queries("us-west-2");
        assert_eq!(shared.filters.len(), 8);
        assert!(shared.filters.contains(&("regionCode".to_owned(), "us-west-2".to_owned())));
        assert!(metal.filters.contains(&("tenancy".to_owned(), "Dedicated".to_owned())));
    }
}

//! What machines cost: the table at first, then what Azure's price list says.

use std::collections::BTreeMap;

use crate::arm::types::sku::RetailPrice;
use crate::tables;

/// The region whose prices stand for those of regions without a table.
const ANY_REGION: &str = "eastus";

/// What machines cost for an hour, in dollars.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    on_demand: BTreeMap<String, f64>,
    /// Nothing before the first update.
    spot: Option<BTreeMap<String, f64>>,
}

impl Prices {
    /// The prices of the table.
    pub fn of_region(location: &str) -> Self {
        let table = tables::unpacked(include_bytes!("../data/prices.csv.gz"));
        let location = location.to_ascii_lowercase();
        let on_demand = column(&table, &location).or_else(|| column(&table, ANY_REGION)).unwrap_or_default();
        Self { on_demand, spot: None }
    }

    /// What a size costs by use.
    pub fn on_demand(&self, name: &str) -> Option<f64> {
        self.on_demand.get(name).copied()
    }

    /// What a size costs on the spot market. Before the first update, as much as by use.
    pub fn spot(&self, name: &str) -> Option<f64> {
        self.spot.as_ref().unwrap_or(&self.on_demand).get(name).copied()
    }

    /// Takes over what the price list says; whether anything changed. A market that the list does not mention keeps
    /// its prices.
    pub fn update(&mut self, listed: &[RetailPrice]) -> bool {
        let before = self.clone();
        let Listed { on_demand, spot } = Listed::read(listed);
        if !on_demand.is_empty() {
            // What spot has cost as long as nobody knew it.
            if spot.is_empty() && self.spot.is_none() {
                self.spot = Some(std::mem::take(&mut self.on_demand));
            }
            self.on_demand = on_demand;
        }
        if !spot.is_empty() {
            self.spot = Some(spot);
        }
        *self != before
    }
}

/// A column of the table.
fn column(table: &str, region: &str) -> Option<BTreeMap<String, f64>> {
    let mut lines = table.lines();
    let place = lines.next()?.split(',').position(|name| name == region)?;
    let row = |line: &str| {
        let name = line.split(',').next()?.to_owned();
        Some((name, line.split(',').nth(place)?.parse().ok()?))
    };
    Some(lines.filter_map(row).collect())
}

/// What the price list says about machines with Linux.
struct Listed {
    on_demand: BTreeMap<String, f64>,
    spot: BTreeMap<String, f64>,
}

impl Listed {
    /// Of several prices for the same the lowest counts: the others are for something on top, such as a licence. What
    /// costs nothing is no offer.
    fn read(listed: &[RetailPrice]) -> Self {
        let mut all = Self { on_demand: BTreeMap::new(), spot: BTreeMap::new() };
        for item in listed {
            let ends = |field: Option<&str>, end: &str| field.is_some_and(|text| text.ends_with(end));
            let is_other = ends(item.product_name.as_deref(), " Windows")
                || ends(item.meter_name.as_deref(), " Low Priority");
            let price = item.retail_price.filter(|price| *price > 0.0 && price.is_finite());
            let name = item.arm_sku_name.as_ref().filter(|name| !name.is_empty());
            let (false, Some(price), Some(name)) = (is_other, price, name) else { continue };
            let is_spot = ends(item.sku_name.as_deref(), " Spot");
            let market = if is_spot { &mut all.spot } else { &mut all.on_demand };
            let known = market.entry(name.clone()).or_insert(price);
            *known = known.min(price);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(product: &str, meter: &str, sku: &str, name: &str, price: f64) -> RetailPrice {
        let text = |text: &str| Some(text.to_owned());
        RetailPrice {
            product_name: text(product),
            meter_name: text(meter),
            sku_name: text(sku),
            arm_sku_name: text(name),
            retail_price: Some(price),
        }
    }

    fn linux(sku: &str, price: f64) -> RetailPrice {
        item("Virtual Machines DSv3 Series", "D2s v3", sku, "Standard_D2s_v3", price)
    }

    // azure.md 6
    #[test]
    fn every_region_of_the_table_has_prices_and_others_have_those_of_the_first() {
        let table = tables::unpacked(include_bytes!("../data/prices.csv.gz"));
        let regions: Vec<&str> = table.lines().next().unwrap().split(',').skip(1).collect();
        assert_eq!(regions.len(), 57);
        let rows: usize = regions.iter().map(|region| column(&table, region).unwrap().len()).sum();
        assert_eq!((rows, table.lines().count() - 1), (67_672, 1849));
        assert_eq!(Prices::of_region("EastUS"), Prices::of_region("nowhere"));
        assert_ne!(Prices::of_region("eastus"), Prices::of_region("westeurope"));
        assert_eq!(Prices::of_region("eastus").on_demand("Standard_D2s_v3"), Some(0.096));
        assert_eq!(Prices::of_region("eastus").on_demand("Standard_D2s_v99"), None);
    }

    // azure.md 6
    #[test]
    fn spot_costs_as_much_as_on_demand_until_it_is_known() {
        let mut prices = Prices::of_region("eastus");
        assert_eq!(prices.spot("Standard_D2s_v3"), Some(0.096));
        assert!(prices.update(&[linux("D2s v3", 0.1), linux("D2s v3 Spot", 0.02)]));
        assert_eq!(prices.spot("Standard_D2s_v3"), Some(0.02));
        assert_eq!(prices.on_demand("Standard_D2s_v3"), Some(0.1));
        assert_eq!(prices.on_demand("Standard_D4s_v3"), None, "the list replaces the table");
    }

    // azure.md 6
    #[test]
    fn windows_and_low_priority_are_other_products() {
        let mut prices = Prices::of_region("eastus");
        let before = prices.clone();
        let windows =
            item("Virtual Machines DSv3 Series Windows", "D2s v3", "D2s v3", "Standard_D2s_v3", 9.0);
        let low = item("DSv3 Series", "D2s v3 Low Priority", "D2s v3 Low Priority", "Standard_D2s_v3", 0.01);
        assert!(!prices.update(&[windows.clone(), low.clone()]));
        assert_eq!(prices, before);
        prices.update(&[windows, linux("D2s v3", 0.11), low]);
        assert_eq!(prices.on_demand("Standard_D2s_v3"), Some(0.11));
    }

    // azure.md 6
    #[test]
    fn a_market_without_prices_keeps_those_it_has() {
        let mut prices = Prices::of_region("eastus");
        prices.update(&[linux("D2s v3", 0.11)]);
        assert_eq!(prices.spot("Standard_D2s_v3"), Some(0.096), "spot still costs what the table says");
        prices.update(&[linux("D2s v3 Spot", 0.03)]);
        assert_eq!(prices.on_demand("Standard_D2s_v3"), Some(0.11));
        assert!(!prices.update(&[]));
        assert_eq!(prices.spot("Standard_D2s_v3"), Some(0.03));
    }

    // azure.md 28.6
    #[test]
    fn of_several_prices_the_lowest_counts_in_any_order() {
        let rows = [linux("D2s v3", 0.12), linux("D2s v3", 0.11), linux("D2s v3", 0.0), linux("D2s v3", 0.2)];
        for turn in 0..rows.len() {
            let mut rows = rows.to_vec();
            rows.rotate_left(turn);
            let mut prices = Prices::of_region("eastus");
            prices.update(&rows);
            assert_eq!(prices.on_demand("Standard_D2s_v3"), Some(0.11));
        }
    }

    #[test]
    fn rows_that_say_nothing_are_ignored() {
        let mut prices = Prices::of_region("eastus");
        let nameless = RetailPrice { arm_sku_name: None, ..linux("D2s v3", 1.0) };
        let free = RetailPrice { retail_price: None, ..linux("D2s v3", 1.0) };
        assert!(!prices.update(&[nameless, free, linux("D2s v3", f64::NAN), RetailPrice::default()]));
    }
}

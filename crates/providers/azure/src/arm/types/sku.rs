//! Sizes of virtual machines, how much of them may be used, and what they cost.

use serde::{Deserialize, Serialize};

/// A size of a region, or something else that can be had there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSku {
    /// What kind of thing it is; sizes are `virtualMachines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Its name, such as `Standard_D4s_v5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its tier, such as `Standard`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Its name without the tier, such as `D4s_v5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// By which quota is counted, such as `standardDSv5Family`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// The regions that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<String>>,
    /// What is special in each region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location_info: Option<Vec<LocationInfo>>,
    /// What it can do, as names and texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Capability>>,
    /// Where the subscription may not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restrictions: Option<Vec<Restriction>>,
}

/// Something a size can do, or has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capability {
    /// What, such as `vCPUs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How much or whether, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What is special about a size in a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocationInfo {
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The zones that have the size, such as `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// What it can do in some zones only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_details: Option<Vec<ZoneDetails>>,
}

/// What a size can do in some zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ZoneDetails {
    /// The zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Vec<String>>,
    /// What it can do there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Capability>>,
}

/// Where a subscription may not use a size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Restriction {
    /// `Location` for whole regions, `Zone` for zones.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Regions and zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restriction_info: Option<RestrictionInfo>,
    /// Why, such as `NotAvailableForSubscription`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
}

/// The places of a restriction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestrictionInfo {
    /// The regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<String>>,
    /// The zones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
}

/// How much of something a subscription uses in a region, and how much it may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<UsageName>,
    /// The unit, which is `Count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// How much is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_value: Option<i64>,
    /// How much may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageName {
    /// For programs, such as `standardDSv3Family` or `cores`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// For people, such as `Standard DSv3 Family vCPUs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localized_value: Option<String>,
}

/// A page of the retail price list. Its envelope is capitalised, its rows are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetailPrices {
    /// The rows.
    #[serde(rename = "Items")]
    pub items: Vec<RetailPrice>,
    /// Where the next page is; none or empty on the last.
    #[serde(rename = "NextPageLink", skip_serializing_if = "Option::is_none")]
    pub next_page_link: Option<String>,
}

/// A row of the retail price list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetailPrice {
    /// What is sold, such as `Virtual Machines DSv3 Series Windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_name: Option<String>,
    /// What is metered, such as `D2s v3 Low Priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter_name: Option<String>,
    /// What it is called, such as `D2s v3 Spot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku_name: Option<String>,
    /// The size, such as `Standard_D2s_v3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm_sku_name: Option<String>,
    /// Dollars for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retail_price: Option<f64>,
}

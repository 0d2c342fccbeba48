//! Extensions of virtual machines, as Azure's compute API spells them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::hidden;

/// Something that Azure runs on a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extension {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of resource.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// What is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<ExtensionProperties>,
}

/// What an extension runs. What it is told in secret is never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionProperties {
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// Its name at its publisher.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_handler_version: Option<String>,
    /// Whether it may be newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_upgrade_minor_version: Option<bool>,
    /// What it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// What it is told in secret; never read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_settings: Option<Map<String, Value>>,
    /// Where Azure is with it; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<String>,
}

impl fmt::Debug for ExtensionProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            publisher,
            kind,
            type_handler_version,
            auto_upgrade_minor_version,
            settings,
            protected_settings,
            provisioning_state,
        } = self;
        f.debug_struct("ExtensionProperties")
            .field("publisher", publisher)
            .field("kind", kind)
            .field("type_handler_version", type_handler_version)
            .field("auto_upgrade_minor_version", auto_upgrade_minor_version)
            .field("settings", settings)
            .field("protected_settings", &hidden(protected_settings.as_ref()))
            .field("provisioning_state", provisioning_state)
            .finish()
    }
}

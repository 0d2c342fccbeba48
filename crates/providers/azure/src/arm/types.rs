//! What Azure is told and what it answers, as its APIs spell it.

use serde::{Deserialize, Serialize};

pub mod bootstrap;
pub mod cluster;
pub mod extension;
pub mod gallery;
pub mod graph;
pub mod machine;
pub mod network;
pub mod nic;
pub mod node_config;
pub mod sku;
pub mod vm;

/// What is shown of something that is secret: whether it is there.
fn hidden<T>(secret: Option<&T>) -> &'static str {
    if secret.is_some() { "(hidden)" } else { "(empty)" }
}

/// Another resource, by its ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubResource {
    /// The resource ID.
    #[serde(default)]
    pub id: String,
}

impl SubResource {
    /// The resource with this ID.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn shown<T: serde::de::DeserializeOwned + Serialize + std::fmt::Debug>(value: &Value) -> String {
        let read: T = serde_json::from_value(value.clone()).unwrap();
        assert!(serde_json::to_string(&read).unwrap().contains(TOKEN), "Azure is told nevertheless");
        format!("{read:?}")
    }

    // azure.md 19: the token is secret, never logged
    #[test]
    fn what_machines_start_with_is_never_shown() {
        let machine = json!({"name": "aks-a", "properties": {"osProfile": {
            "adminUsername": "azureuser", "computerName": "aks-a", "customData": TOKEN,
        }}});
        let extension = json!({"name": "cse-agent-karpenter", "properties": {
            "publisher": "p", "protectedSettings": {"commandToExecute": TOKEN},
        }});
        let answer = json!({"cse": TOKEN, "customData": TOKEN});
        for shown in [
            shown::<vm::VirtualMachine>(&machine),
            shown::<extension::Extension>(&extension),
            shown::<bootstrap::BootstrappingResponse>(&answer),
        ] {
            assert!(!shown.contains(TOKEN) && shown.contains("(hidden)"), "{shown}");
        }
        let nothing = format!("{:?}", vm::OsProfile::default());
        assert!(nothing.contains("(empty)"), "{nothing}");
    }
}

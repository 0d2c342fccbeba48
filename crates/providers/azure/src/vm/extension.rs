//! What Azure runs on a virtual machine once it is there.

use serde_json::{Map, json};

use crate::arm::types::extension::{Extension, ExtensionProperties};
use crate::environment::Environment;
use crate::launch::Launch;
use crate::tags;

/// The extension that makes a machine a node by a command of AKS.
pub const COMMAND_EXTENSION: &str = "cse-agent-karpenter";

/// The extension by which AKS counts machines.
pub const BILLING_EXTENSION: &str = "computeAksLinuxBilling";

/// Whether AKS counts machines of a cloud.
pub fn is_billed(environment: &Environment) -> bool {
    matches!(environment.name.as_str(), "AzurePublicCloud" | "AzureChinaCloud" | "AzureUSGovernmentCloud")
}

/// Runs a command of AKS.
pub fn command(launch: &Launch<'_>, command: &str) -> Extension {
    let mut secret = Map::new();
    secret.insert("commandToExecute".to_owned(), json!(command));
    extension(launch, COMMAND_EXTENSION, ["Microsoft.Azure.Extensions", "CustomScript", "2.0"], Some(secret))
}

/// Lets AKS count the machine.
pub fn billing(launch: &Launch<'_>) -> Extension {
    extension(launch, BILLING_EXTENSION, ["Microsoft.AKS", "Compute.AKS.Linux.Billing", "1.0"], None)
}

fn extension(
    launch: &Launch<'_>,
    name: &str,
    [publisher, kind, version]: [&str; 3],
    secret: Option<Map<String, serde_json::Value>>,
) -> Extension {
    let settings = launch.cluster.settings;
    Extension {
        name: Some(name.to_owned()),
        kind: Some("Microsoft.Compute/virtualMachines/extensions".to_owned()),
        location: Some(settings.location.clone()),
        tags: Some(tags::of_claim(settings, launch.class.spec, launch.claim)),
        properties: Some(ExtensionProperties {
            publisher: Some(publisher.to_owned()),
            kind: Some(kind.to_owned()),
            type_handler_version: Some(version.to_owned()),
            auto_upgrade_minor_version: Some(true),
            settings: Some(Map::new()),
            protected_settings: secret,
            ..ExtensionProperties::default()
        }),
        ..Extension::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::launch::fixture::Fixture;

    fn common(fixture: &Fixture, name: &str, properties: &Value) -> Value {
        let tags = tags::of_claim(&fixture.settings, &fixture.class.spec, &fixture.claim);
        json!({
            "name": name, "type": "Microsoft.Compute/virtualMachines/extensions", "location": "eastus",
            "tags": tags, "properties": properties,
        })
    }

    // azure.md 10.5: cse-agent-karpenter
    #[test]
    fn the_command_of_aks_is_a_secret_of_its_extension() {
        let fixture = Fixture::default();
        assert_eq!(
            serde_json::to_value(command(&fixture.launch(), "run me")).unwrap(),
            common(
                &fixture,
                "cse-agent-karpenter",
                &json!({
                    "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.0",
                    "autoUpgradeMinorVersion": true, "settings": {}, "protectedSettings": {"commandToExecute": "run me"},
                })
            )
        );
    }

    // azure.md 10.5: computeAksLinuxBilling
    #[test]
    fn aks_counts_machines_by_an_extension() {
        let fixture = Fixture::default();
        assert_eq!(
            serde_json::to_value(billing(&fixture.launch())).unwrap(),
            common(
                &fixture,
                "computeAksLinuxBilling",
                &json!({
                    "publisher": "Microsoft.AKS", "type": "Compute.AKS.Linux.Billing", "typeHandlerVersion": "1.0",
                    "autoUpgradeMinorVersion": true, "settings": {},
                })
            )
        );
    }

    // azure.md 10.5, 28.16: public, China and US Gov
    #[test]
    fn machines_of_unknown_clouds_are_not_counted() {
        let own = Environment { name: "Own".to_owned(), ..Environment::public() };
        for (environment, expected) in [
            (Environment::public(), true),
            (Environment::china(), true),
            (Environment::us_government(), true),
            (own, false),
        ] {
            assert_eq!(is_billed(&environment), expected, "{}", environment.name);
        }
    }
}

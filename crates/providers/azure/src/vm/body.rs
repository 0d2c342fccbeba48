//! The body of a virtual machine.

use serde_json::Map;

use super::DELETE;
use super::name::vm_name;
use crate::arm::types::SubResource;
use crate::arm::types::vm::{
    AdditionalCapabilities, BillingProfile, DiffDiskSettings, HardwareProfile, Identity, ImageReference,
    LinuxConfiguration, ManagedDisk, NetworkInterfaceReference, NetworkInterfaceReferenceProperties,
    NetworkProfile, OsDisk, OsProfile, SecurityProfile, SshConfiguration, SshPublicKey, StorageProfile,
    UefiSettings, VirtualMachine, VirtualMachineProperties,
};
use crate::class::Class;
use crate::images::ImageId;
use crate::launch::Launch;
use crate::{tags, zone};

/// What a virtual machine is started with. What it does first is secret, and never shown.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The resource ID of its network interface.
    pub network_interface: &'a str,
    /// Its image.
    pub image_id: &'a str,
    /// What it does first, in base64.
    pub custom_data: &'a str,
}

impl std::fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("network_interface", &self.network_interface)
            .field("image_id", &self.image_id)
            .finish_non_exhaustive()
    }
}

/// The virtual machine of a launch.
pub fn virtual_machine(launch: &Launch<'_>, start: &Start<'_>) -> VirtualMachine {
    let (settings, choice) = (launch.cluster.settings, &launch.choice);
    let name = vm_name(launch.claim_name());
    let properties = VirtualMachineProperties {
        hardware_profile: Some(HardwareProfile { vm_size: Some(choice.sku.name.clone()) }),
        storage_profile: Some(StorageProfile {
            os_disk: Some(os_disk(launch, &name)),
            image_reference: Some(image_reference(start.image_id)),
        }),
        network_profile: Some(NetworkProfile {
            network_interfaces: Some(vec![NetworkInterfaceReference {
                id: Some(start.network_interface.to_owned()),
                properties: Some(NetworkInterfaceReferenceProperties {
                    primary: Some(true),
                    delete_option: Some(DELETE.to_owned()),
                }),
            }]),
        }),
        os_profile: Some(os_profile(launch, &name, start.custom_data)),
        priority: Some(choice.priority().to_owned()),
        eviction_policy: choice.is_spot().then(|| DELETE.to_owned()),
        // As much as a machine on demand: whoever pays less is evicted when prices rise.
        billing_profile: choice.is_spot().then_some(BillingProfile { max_price: Some((-1).into()) }),
        security_profile: security_profile(&launch.class),
        additional_capabilities: choice
            .ultra_ssd
            .then_some(AdditionalCapabilities { ultra_ssd_enabled: Some(true) }),
        ..VirtualMachineProperties::default()
    };
    VirtualMachine {
        name: Some(name),
        location: Some(settings.location.clone()),
        zones: Some(zone::to_azure(choice.zone)),
        tags: Some(tags::of_claim(settings, launch.class.spec, launch.claim)),
        identity: identity(&settings.node_identities),
        properties: Some(properties),
        ..VirtualMachine::default()
    }
}

/// The identities of a machine, if it has any.
fn identity(identities: &[String]) -> Option<Identity> {
    (!identities.is_empty()).then(|| Identity {
        kind: Some("UserAssigned".to_owned()),
        user_assigned_identities: Some(identities.iter().map(|id| (id.clone(), Map::new())).collect()),
    })
}

fn os_disk(launch: &Launch<'_>, name: &str) -> OsDisk {
    let size = launch.class.os_disk_size_gb();
    let placement = launch.choice.sku.ephemeral_placement(size);
    let keys = launch.cluster.settings.node_osdisk_diskencryptionset_id.as_ref();
    OsDisk {
        name: Some(name.to_owned()),
        disk_size_gb: Some(size),
        create_option: Some("FromImage".to_owned()),
        delete_option: Some(DELETE.to_owned()),
        caching: placement.map(|_| "ReadOnly".to_owned()),
        diff_disk_settings: placement.map(|placement| DiffDiskSettings {
            option: Some("Local".to_owned()),
            placement: Some(placement.as_str().to_owned()),
        }),
        managed_disk: keys.map(|keys| ManagedDisk { disk_encryption_set: Some(SubResource::new(keys)) }),
    }
}

/// An image, named in the way of its gallery.
pub fn image_reference(id: &str) -> ImageReference {
    let id = id.to_owned();
    if ImageId::parse(&id).is_some_and(|id| id.is_community) {
        ImageReference { community_gallery_image_id: Some(id), ..ImageReference::default() }
    } else {
        ImageReference { id: Some(id), ..ImageReference::default() }
    }
}

fn os_profile(launch: &Launch<'_>, name: &str, custom_data: &str) -> OsProfile {
    let settings = launch.cluster.settings;
    let user = &settings.linux_admin_username;
    OsProfile {
        admin_username: Some(user.clone()),
        computer_name: Some(name.to_owned()),
        custom_data: Some(custom_data.to_owned()),
        linux_configuration: Some(LinuxConfiguration {
            disable_password_authentication: Some(true),
            ssh: Some(SshConfiguration {
                public_keys: Some(vec![SshPublicKey {
                    key_data: Some(settings.ssh_public_key.reveal().to_owned()),
                    path: Some(format!("/home/{user}/.ssh/authorized_keys")),
                }]),
            }),
        }),
    }
}

/// How the machine is protected, where the NodeClass says anything about it.
fn security_profile(class: &Class<'_>) -> Option<SecurityProfile> {
    let security = class.spec.security.as_ref()?;
    let is_trusted = class.is_trusted_launch();
    let profile = SecurityProfile {
        encryption_at_host: security.encryption_at_host,
        security_type: is_trusted.then(|| "TrustedLaunch".to_owned()),
        uefi_settings: is_trusted.then(|| UefiSettings {
            secure_boot_enabled: Some(class.has_secure_boot()),
            v_tpm_enabled: Some(class.has_vtpm()),
        }),
    };
    (profile != SecurityProfile::default()).then_some(profile)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::launch::fixture::Fixture;

    const START: Start<'_> = Start {
        network_interface: "/nics/aks-general-purpose-a1b2c",
        image_id: "/CommunityGalleries/AKSUbuntu-1/images/2204gen2containerd/versions/202512.6.0",
        custom_data: "Y3VzdG9t",
    };

    fn body(fixture: &Fixture) -> Value {
        serde_json::to_value(virtual_machine(&fixture.launch(), &START)).unwrap()
    }

    // azure.md 10.4: the whole body
    #[test]
    fn azure_is_told_everything_about_a_machine() {
        expect![[r#"
            {
              "location": "eastus",
              "name": "aks-general-purpose-a1b2c",
              "properties": {
                "hardwareProfile": {
                  "vmSize": "Standard_D4s_v5"
                },
                "networkProfile": {
                  "networkInterfaces": [
                    {
                      "id": "/nics/aks-general-purpose-a1b2c",
                      "properties": {
                        "deleteOption": "Delete",
                        "primary": true
                      }
                    }
                  ]
                },
                "osProfile": {
                  "adminUsername": "azureuser",
                  "computerName": "aks-general-purpose-a1b2c",
                  "customData": "Y3VzdG9t",
                  "linuxConfiguration": {
                    "disablePasswordAuthentication": true,
                    "ssh": {
                      "publicKeys": [
                        {
                          "keyData": "ssh-rsa AAAA azureuser",
                          "path": "/home/azureuser/.ssh/authorized_keys"
                        }
                      ]
                    }
                  }
                },
                "priority": "Regular",
                "storageProfile": {
                  "imageReference": {
                    "communityGalleryImageId": "/CommunityGalleries/AKSUbuntu-1/images/2204gen2containerd/versions/202512.6.0"
                  },
                  "osDisk": {
                    "caching": "ReadOnly",
                    "createOption": "FromImage",
                    "deleteOption": "Delete",
                    "diffDiskSettings": {
                      "option": "Local",
                      "placement": "CacheDisk"
                    },
                    "diskSizeGB": 128,
                    "name": "aks-general-purpose-a1b2c"
                  }
                }
              },
              "tags": {
                "compute.aks.billing": "linux",
                "karpenter.azure.com_cluster": "test",
                "karpenter.sh_nodepool": "general-purpose"
              },
              "zones": [
                "2"
              ]
            }"#]].assert_eq(&serde_json::to_string_pretty(&body(&Fixture::default())).unwrap());
    }

    // azure.md 10.4: spot only
    #[test]
    fn a_spot_machine_is_deleted_when_it_is_evicted_and_costs_what_it_costs() {
        let fixture = Fixture { capacity_type: "spot", ..Fixture::default() };
        let properties = body(&fixture)["properties"].clone();
        assert_eq!(properties["priority"], "Spot");
        assert_eq!(properties["evictionPolicy"], "Delete");
        assert_eq!(properties["billingProfile"], json!({"maxPrice": -1}));
        let properties = body(&Fixture::default())["properties"].clone();
        assert!(properties.get("evictionPolicy").is_none() && properties.get("billingProfile").is_none());
    }

    // azure.md 10.4: zones
    #[test]
    fn a_machine_outside_of_zones_says_so() {
        assert_eq!(body(&Fixture::default())["zones"], json!(["2"]));
        assert_eq!(body(&Fixture { zone: "0", ..Fixture::default() })["zones"], json!([]));
    }

    // azure.md 10.4, 25.5: identities set
    #[test]
    fn a_machine_has_the_identities_of_the_settings() {
        let mut fixture = Fixture::default();
        assert_eq!(body(&fixture).get("identity"), None);
        fixture.settings.node_identities = vec!["/id/a".to_owned(), "/id/b".to_owned()];
        assert_eq!(
            body(&fixture)["identity"],
            json!({"type": "UserAssigned", "userAssignedIdentities": {"/id/a": {}, "/id/b": {}}})
        );
    }

    // azure.md 10.4, 4.6: ephemeral disk
    #[test]
    fn a_disk_that_fits_is_on_the_host() {
        let mut fixture = Fixture::default();
        let disk = |fixture: &Fixture| body(fixture)["properties"]["storageProfile"]["osDisk"].clone();
        fixture.class.spec.os_disk_size_gb = Some(161);
        assert_eq!(disk(&fixture)["diffDiskSettings"], json!({"option": "Local", "placement": "CacheDisk"}));
        assert_eq!(disk(&fixture)["caching"], "ReadOnly");
        fixture.class.spec.os_disk_size_gb = Some(162);
        assert_eq!((disk(&fixture).get("diffDiskSettings"), disk(&fixture).get("caching")), (None, None));
        assert_eq!(disk(&fixture)["diskSizeGB"], 162);
    }

    // azure.md 10.4: disk encryption set
    #[test]
    fn disks_are_encrypted_by_the_keys_of_the_cluster() {
        let mut fixture = Fixture::default();
        fixture.settings.node_osdisk_diskencryptionset_id = Some("/des".to_owned());
        assert_eq!(
            body(&fixture)["properties"]["storageProfile"]["osDisk"]["managedDisk"],
            json!({"diskEncryptionSet": {"id": "/des"}})
        );
    }

    // azure.md 10.4, 25.5: SIG vs CIG reference field
    #[test]
    fn an_image_is_named_in_the_way_of_its_gallery() {
        let shared = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/1";
        let told = |id: &str| serde_json::to_value(image_reference(id)).unwrap();
        assert_eq!(told(shared), json!({"id": shared}));
        assert_eq!(told(START.image_id), json!({"communityGalleryImageId": START.image_id}));
    }

    // azure.md 10.4, 25.5: EncryptionAtHost true/false/absent → absent SecurityProfile
    #[test]
    fn protection_is_told_as_far_as_the_class_says_anything() {
        for (security, expected) in [
            (json!(null), json!(null)),
            (json!({}), json!(null)),
            (json!({"encryptionAtHost": true}), json!({"encryptionAtHost": true})),
            (json!({"encryptionAtHost": false}), json!({"encryptionAtHost": false})),
            (
                json!({"trustedLaunch": {"vtpm": true}}),
                json!({"securityType": "TrustedLaunch", "uefiSettings": {"secureBootEnabled": false, "vTpmEnabled": true}}),
            ),
            (
                json!({"encryptionAtHost": true, "trustedLaunch": {"secureBoot": true}}),
                json!({
                    "encryptionAtHost": true, "securityType": "TrustedLaunch",
                    "uefiSettings": {"secureBootEnabled": true, "vTpmEnabled": false},
                }),
            ),
            (json!({"trustedLaunch": {"vtpm": false}}), json!(null)),
        ] {
            let mut fixture = Fixture::default();
            fixture.class.spec.security = serde_json::from_value(security.clone()).unwrap();
            assert_eq!(body(&fixture)["properties"]["securityProfile"], expected, "{security}");
        }
    }

    // azure.md 25.5: custom admin user in path
    #[test]
    fn the_key_is_in_the_home_of_the_administrator() {
        let mut fixture = Fixture::default();
        "admin".clone_into(&mut fixture.settings.linux_admin_username);
        let profile = body(&fixture)["properties"]["osProfile"].clone();
        assert_eq!(profile["adminUsername"], "admin");
        assert_eq!(
            profile["linuxConfiguration"]["ssh"]["publicKeys"],
            json!([{"keyData": "ssh-rsa AAAA azureuser", "path": "/home/admin/.ssh/authorized_keys"}])
        );
    }

    // azure.md 10.4: ultra SSD only when requested
    #[test]
    fn ultra_disks_are_told_only_where_they_are_wanted() {
        let fixture = Fixture::default();
        assert_eq!(body(&fixture)["properties"].get("additionalCapabilities"), None);
        let mut launch = fixture.launch();
        launch.choice.ultra_ssd = true;
        let told = serde_json::to_value(virtual_machine(&launch, &START)).unwrap();
        assert_eq!(told["properties"]["additionalCapabilities"], json!({"ultraSSDEnabled": true}));
    }
}

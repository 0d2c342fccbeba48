//! Virtual machines, as Azure's compute API spells them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::{SubResource, hidden};

/// A virtual machine, as it is put and as it is read; also a row of the resource graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachine {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The zone, as one digit; empty if Azure chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Who it is to other services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// What it is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<VirtualMachineProperties>,
}

/// What is changed of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachinePatch {
    /// All of its tags from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Identities that it gets besides those that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

/// Who a virtual machine is to other services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// `UserAssigned`, or a list with it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Identities by their resource ID; what Azure says about each is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_assigned_identities: Option<BTreeMap<String, Map<String, Value>>>,
}

/// What a virtual machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineProperties {
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_profile: Option<HardwareProfile>,
    /// Its disk and image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_profile: Option<StorageProfile>,
    /// Its network interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_profile: Option<NetworkProfile>,
    /// What its operating system starts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_profile: Option<OsProfile>,
    /// `Regular` or `Spot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// What happens to it when Azure needs the room; spot only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_policy: Option<String>,
    /// What it may cost; spot only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_profile: Option<BillingProfile>,
    /// How it is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_profile: Option<SecurityProfile>,
    /// What it can do besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_capabilities: Option<AdditionalCapabilities>,
    /// Where Azure is with it; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<String>,
    /// When it was made, as RFC 3339; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_created: Option<String>,
    /// What Azure tells two machines of one name apart by; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_id: Option<String>,
}

/// The size of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareProfile {
    /// The size, such as `Standard_D4s_v5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_size: Option<String>,
}

/// The disk and the image of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfile {
    /// The disk that it boots from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_disk: Option<OsDisk>,
    /// What is on the disk at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_reference: Option<ImageReference>,
}

/// The disk that a virtual machine boots from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OsDisk {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its size.
    #[serde(rename = "diskSizeGB", skip_serializing_if = "Option::is_none")]
    pub disk_size_gb: Option<i32>,
    /// Where its content comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_option: Option<String>,
    /// What happens to it when the machine goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<String>,
    /// How the host caches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching: Option<String>,
    /// That it lives on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_disk_settings: Option<DiffDiskSettings>,
    /// How it is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_disk: Option<ManagedDisk>,
}

/// That a disk lives on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffDiskSettings {
    /// `Local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// On which disk of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
}

/// How a disk is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedDisk {
    /// By which keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption_set: Option<SubResource>,
}

/// An image, by one of several ways to name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageReference {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its ID in a community gallery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub community_gallery_image_id: Option<String>,
    /// Its ID in a shared gallery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_gallery_image_id: Option<String>,
    /// Its publisher in the marketplace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// Its offer in the marketplace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// Its SKU in the marketplace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    /// Its version in the marketplace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The network interfaces of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProfile {
    /// All of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_interfaces: Option<Vec<NetworkInterfaceReference>>,
}

/// A network interface of a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterfaceReference {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is to the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<NetworkInterfaceReferenceProperties>,
}

/// What a network interface is to its virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterfaceReferenceProperties {
    /// Whether it is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// What happens to it when the machine goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<String>,
}

/// What an operating system starts with. What it does first has the token by which it joins the cluster in it, and is
/// never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OsProfile {
    /// Who may log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_username: Option<String>,
    /// The host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computer_name: Option<String>,
    /// What the machine does first, in base64; never read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_data: Option<String>,
    /// What only Linux has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linux_configuration: Option<LinuxConfiguration>,
}

impl fmt::Debug for OsProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admin_username, computer_name, custom_data, linux_configuration } = self;
        f.debug_struct("OsProfile")
            .field("admin_username", admin_username)
            .field("computer_name", computer_name)
            .field("custom_data", &hidden(custom_data.as_ref()))
            .field("linux_configuration", linux_configuration)
            .finish()
    }
}

/// What only Linux starts with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxConfiguration {
    /// Whether only keys log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_password_authentication: Option<bool>,
    /// The keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<SshConfiguration>,
}

/// Keys that log in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SshConfiguration {
    /// All of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_keys: Option<Vec<SshPublicKey>>,
}

/// A key that logs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SshPublicKey {
    /// The key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_data: Option<String>,
    /// The file that it is written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What a virtual machine may cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BillingProfile {
    /// The most per hour; −1 is the price of on-demand machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_price: Option<Number>,
}

/// How a virtual machine is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityProfile {
    /// Whether temporary disks and caches are encrypted on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_at_host: Option<bool>,
    /// `TrustedLaunch`, if the boot is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_type: Option<String>,
    /// How the boot is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uefi_settings: Option<UefiSettings>,
}

/// How the boot is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UefiSettings {
    /// Whether only signed code boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot_enabled: Option<bool>,
    /// Whether there is a virtual TPM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v_tpm_enabled: Option<bool>,
}

/// What a virtual machine can do besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalCapabilities {
    /// Whether ultra disks can be attached.
    #[serde(rename = "ultraSSDEnabled", skip_serializing_if = "Option::is_none")]
    pub ultra_ssd_enabled: Option<bool>,
}

//! Virtual machines, what they are made from, and how many there may be.

use http::Method;

use super::call::{Call, Identity};
use super::client::Client;
use super::error::Error;
use super::running::Running;
use super::types::extension::Extension;
use super::types::gallery::CommunityGalleryImageVersion;
use super::types::network::DiskEncryptionSet;
use super::types::nic::TagsPatch;
use super::types::sku::{ResourceSku, Usage};
use super::types::vm::{VirtualMachine, VirtualMachinePatch};

const COMPUTE: &str = "Microsoft.Compute";
const SKUS: (&str, &str) = ("api-version", "2021-07-01");
const VERSION: (&str, &str) = ("api-version", "2025-04-01");
const GALLERIES: (&str, &str) = ("api-version", "2025-03-03");
const ENCRYPTION: (&str, &str) = ("api-version", "2025-01-02");

impl Client {
    /// Everything that can be had in a region, sizes of virtual machines among it.
    pub async fn skus(&self, location: &str) -> Result<Vec<ResourceSku>, Error> {
        let filter = format!("location eq '{}'", location.replace('\'', "''"));
        let url = self.in_subscription(&["providers", COMPUTE, "skus"], &[SKUS, ("$filter", &filter)]);
        self.sender.list_readable(Call::new("compute:ListSkus", Method::GET, url)).await
    }

    /// How much of what may be used in a region, and how much is.
    pub async fn usages(&self, location: &str) -> Result<Vec<Usage>, Error> {
        let url = self.in_subscription(&["providers", COMPUTE, "locations", location, "usages"], &[VERSION]);
        self.sender.list_readable(Call::new("compute:ListUsages", Method::GET, url)).await
    }

    /// The versions of an image in a community gallery.
    pub async fn community_image_versions(
        &self,
        location: &str,
        gallery: &str,
        definition: &str,
    ) -> Result<Vec<CommunityGalleryImageVersion>, Error> {
        let path = [
            "providers",
            COMPUTE,
            "locations",
            location,
            "communityGalleries",
            gallery,
            "images",
            definition,
            "versions",
        ];
        let url = self.in_subscription(&path, &[GALLERIES]);
        self.sender.list(Call::new("compute:ListCommunityGalleryImageVersions", Method::GET, url)).await
    }

    fn virtual_machine_call(
        &self,
        operation: &'static str,
        method: Method,
        (group, name): (&str, &str),
        query: &[(&str, &str)],
    ) -> Call {
        let url = self.in_group(group, &[COMPUTE, "virtualMachines", name], query);
        Call::new(operation, method, url).identity(Identity::WithGallery)
    }

    /// A virtual machine.
    pub async fn virtual_machine(&self, group: &str, name: &str) -> Result<VirtualMachine, Error> {
        let named = (group, name);
        let call = self.virtual_machine_call("compute:GetVirtualMachine", Method::GET, named, &[VERSION]);
        self.sender.ask(&call).await
    }

    /// Makes a virtual machine.
    pub async fn put_virtual_machine(
        &self,
        group: &str,
        name: &str,
        machine: &VirtualMachine,
    ) -> Result<Running<VirtualMachine>, Error> {
        let named = (group, name);
        let call = self.virtual_machine_call("compute:PutVirtualMachine", Method::PUT, named, &[VERSION]);
        self.sender.begin(call.json(machine)?).await
    }

    /// Changes tags and identities of a virtual machine.
    pub async fn patch_virtual_machine(
        &self,
        group: &str,
        name: &str,
        patch: &VirtualMachinePatch,
    ) -> Result<Running<VirtualMachine>, Error> {
        let named = (group, name);
        let call = self.virtual_machine_call("compute:PatchVirtualMachine", Method::PATCH, named, &[VERSION]);
        self.sender.begin(call.json(patch)?).await
    }

    /// Deletes a virtual machine without shutting it down.
    pub async fn delete_virtual_machine(&self, group: &str, name: &str) -> Result<Running<()>, Error> {
        let query = [VERSION, ("forceDeletion", "true")];
        let named = (group, name);
        let call = self.virtual_machine_call("compute:DeleteVirtualMachine", Method::DELETE, named, &query);
        self.sender.begin(call).await
    }

    fn extension_url(&self, group: &str, machine: &str, name: &str) -> String {
        self.in_group(group, &[COMPUTE, "virtualMachines", machine, "extensions", name], &[VERSION])
    }

    /// Runs something on a virtual machine.
    pub async fn put_extension(
        &self,
        group: &str,
        machine: &str,
        name: &str,
        extension: &Extension,
    ) -> Result<Running<Extension>, Error> {
        let url = self.extension_url(group, machine, name);
        let call = Call::new("compute:PutVirtualMachineExtension", Method::PUT, url);
        self.sender.begin(call.json(extension)?).await
    }

    /// Changes the tags of what runs on a virtual machine.
    pub async fn patch_extension(
        &self,
        group: &str,
        machine: &str,
        name: &str,
        tags: &TagsPatch,
    ) -> Result<Running<Extension>, Error> {
        let url = self.extension_url(group, machine, name);
        let call = Call::new("compute:PatchVirtualMachineExtension", Method::PATCH, url);
        self.sender.begin(call.json(tags)?).await
    }

    /// The keys that disks are encrypted by.
    pub async fn disk_encryption_set(&self, id: &str) -> Result<DiskEncryptionSet, Error> {
        self.get("compute:GetDiskEncryptionSet", self.by_id(id, &[ENCRYPTION])).await
    }
}

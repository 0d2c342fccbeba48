//! What the bootstrapping service of AKS is asked, and what is made of its answer.

use api::names::values::arch;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::{BootstrapError, startup_taints, taint_text};
use crate::arm::types::bootstrap::{
    BootstrappingRequest, BootstrappingResponse, ProvisionGpu, ProvisionHelperValues, ProvisionProfile,
    ProvisionSecurity,
};
use crate::arm::types::node_config::ArtifactStreamingProfile;
use crate::images::{Family, ImageId};
use crate::launch::Launch;
use crate::machine::{kubelet_config, linux_os_config, local_dns_profile};
use crate::node_labels;
use crate::sku::gpu;

/// What stands for the token in the service's answer.
const PLACEHOLDER: &str = "{{.TokenID}}.{{.TokenSecret}}";

/// The numbers that the service has for things.
mod numbers {
    pub(super) const LINUX: i32 = 2;
    pub(super) const UBUNTU: i32 = 1;
    pub(super) const AZURE_LINUX: i32 = 7;
    pub(super) const LOCAL_USER: i32 = 0;
    pub(super) const SYSTEM: i32 = 1;
    pub(super) const USER: i32 = 2;
    pub(super) const GRID: i32 = 2;
    pub(super) const CUDA: i32 = 3;
}

/// What the machine does, as the service said. The token is in it: it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Bootstrapping {
    /// What it does first, in base64.
    pub custom_data: String,
    /// The command that makes it a node.
    pub command: String,
}

impl std::fmt::Debug for Bootstrapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bootstrapping(hidden)")
    }
}

/// What the service is asked for a launch from an image.
pub fn request(launch: &Launch<'_>, image_id: &str) -> Result<BootstrappingRequest, BootstrapError> {
    Ok(BootstrappingRequest {
        provision_profile: Some(profile(launch, image_id)?),
        provision_helper_values: Some(ProvisionHelperValues {
            sku_cpu: Some(launch.choice.sku.vcpus),
            // Whole GiB, as planning counts them.
            sku_memory: Some(launch.choice.sku.memory_mib() / 1024),
        }),
    })
}

fn profile(launch: &Launch<'_>, image_id: &str) -> Result<ProvisionProfile, BootstrapError> {
    let Launch { class, choice, .. } = launch;
    let unknown = || BootstrapError::Image(image_id.to_owned());
    let definition = ImageId::parse(image_id).and_then(|id| id.known()).ok_or_else(unknown)?;
    let family = Family::of(class);
    let is_local = choice.sku.ephemeral_placement(class.os_disk_size_gb()).is_some();
    let architecture = match choice.sku.architecture.as_str() {
        arch::AMD64 => "x64",
        arch::ARM64 => "Arm64",
        other => other,
    };
    Ok(ProvisionProfile {
        name: Some(String::new()),
        architecture: Some(architecture.to_owned()),
        os_type: Some(numbers::LINUX),
        os_sku: Some(if family.is_azure_linux() { numbers::AZURE_LINUX } else { numbers::UBUNTU }),
        vm_size: Some(choice.sku.name.clone()),
        distro: Some(definition.distro.to_owned()),
        custom_node_labels: Some(node_labels::of_kubelet(launch)),
        orchestrator_version: Some(class.kubernetes_version.to_owned()),
        vnet_subnet_id: Some(launch.subnet.to_string()),
        storage_profile: Some(if is_local { "Ephemeral" } else { "ManagedDisks" }.to_owned()),
        node_initialization_taints: Some(startup_taints(launch.claim).iter().map(taint_text).collect()),
        node_taints: Some(launch.claim.spec.taints.iter().flatten().map(taint_text).collect()),
        security_profile: Some(security(launch)),
        max_pods: Some(choice.max_pods()),
        vnet_cidrs: Some(vec![]),
        custom_linux_os_config: class.spec.linux_os_config.as_ref().map(linux_os_config),
        enable_fips: Some(class.is_fips()),
        artifact_streaming_profile: Some(ArtifactStreamingProfile {
            enabled: Some(class.streams_artifacts(&choice.sku.architecture)),
            ..ArtifactStreamingProfile::default()
        }),
        // The oldest image does not have the cache.
        local_dns_profile: local_dns_profile(class).filter(|_| family != Family::Ubuntu2004),
        // It is there even if the class says nothing.
        custom_kubelet_config: Some(class.spec.kubelet.as_ref().map(kubelet_config).unwrap_or_default()),
        mode: Some(if node_labels::is_system(launch.claim, choice) {
            numbers::SYSTEM
        } else {
            numbers::USER
        }),
        gpu_profile: gpu_profile(launch),
    })
}

fn security(launch: &Launch<'_>) -> ProvisionSecurity {
    let trusted = launch.class.spec.security.as_ref().and_then(|security| security.trusted_launch.as_ref());
    ProvisionSecurity {
        ssh_access: Some(numbers::LOCAL_USER),
        enable_vtpm: trusted.and_then(|launch| launch.vtpm),
        enable_secure_boot: trusted.and_then(|launch| launch.secure_boot),
    }
}

fn gpu_profile(launch: &Launch<'_>) -> Option<ProvisionGpu> {
    let is_converged = gpu::is_converged(&launch.choice.sku.name);
    launch.has_nvidia().then(|| ProvisionGpu {
        driver_type: Some(if is_converged { numbers::GRID } else { numbers::CUDA }),
        install_gpu_driver: Some(launch.class.installs_gpu_driver()),
    })
}

/// The service's answer with the token by which nodes join.
pub fn answer(response: BootstrappingResponse, token: &str) -> Result<Bootstrapping, BootstrapError> {
    let part = |part: Option<String>, name: &'static str| {
        part.filter(|text| !text.is_empty()).ok_or(BootstrapError::Incomplete(name))
    };
    let command = part(response.cse, "cse")?.replace(PLACEHOLDER, token);
    let custom_data = part(response.custom_data, "customData")?;
    let custom_data = BASE64_STANDARD.decode(custom_data).map_err(|_| BootstrapError::NotBase64)?;
    Ok(Bootstrapping { custom_data: BASE64_STANDARD.encode(with_token(&custom_data, token)), command })
}

/// Bytes that need not be text, with the token in all its places.
fn with_token(bytes: &[u8], token: &str) -> Vec<u8> {
    let placeholder = PLACEHOLDER.as_bytes();
    let mut result = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, others)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(placeholder) {
            result.extend_from_slice(token.as_bytes());
            rest = after;
        } else {
            result.push(*first);
            rest = others;
        }
    }
    result
}

#[cfg(test)]
mod tests;

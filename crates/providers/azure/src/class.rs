//! What an AKSNodeClass asks for, with what counts where it says nothing.

use api::azure::{AKSNodeClass, AKSNodeClassSpec, FipsMode, GpuMode, LocalDnsState, NodeImage};
use api::names::values::arch;

/// A NodeClass whose version and images can be used.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    /// What it asks for.
    pub spec: &'a AKSNodeClassSpec,
    /// The version of Kubernetes of new nodes, without a leading `v`.
    pub kubernetes_version: &'a str,
    /// The images, the preferred one first.
    pub images: &'a [NodeImage],
    /// Whether nodes get a DNS cache.
    pub has_local_dns: bool,
}

impl<'a> From<&'a AKSNodeClass> for Class<'a> {
    fn from(class: &'a AKSNodeClass) -> Self {
        let status = class.status.as_ref();
        Self {
            spec: &class.spec,
            kubernetes_version: status.map_or("", |status| &status.kubernetes_version),
            images: status.map_or(&[], |status| &status.images),
            has_local_dns: status.and_then(|status| status.local_dns_state) == Some(LocalDnsState::Enabled),
        }
    }
}

impl Class<'_> {
    /// The size of the disk that a machine boots from.
    pub fn os_disk_size_gb(&self) -> i32 {
        self.spec.os_disk_size_gb.unwrap_or(128)
    }

    /// Whether only validated cryptography is used.
    pub fn is_fips(&self) -> bool {
        self.spec.fips_mode == Some(FipsMode::FIPS)
    }

    /// Whether temporary disks and caches are encrypted on the host.
    pub fn is_encrypted_at_host(&self) -> bool {
        self.spec.security.as_ref().and_then(|security| security.encryption_at_host).unwrap_or_default()
    }

    /// Whether machines have a virtual TPM.
    pub fn has_vtpm(&self) -> bool {
        let launch = self.spec.security.as_ref().and_then(|security| security.trusted_launch.as_ref());
        launch.and_then(|launch| launch.vtpm).unwrap_or_default()
    }

    /// Whether only signed code boots.
    pub fn has_secure_boot(&self) -> bool {
        let launch = self.spec.security.as_ref().and_then(|security| security.trusted_launch.as_ref());
        launch.and_then(|launch| launch.secure_boot).unwrap_or_default()
    }

    /// Whether the boot is protected in any way.
    pub fn is_trusted_launch(&self) -> bool {
        self.has_vtpm() || self.has_secure_boot()
    }

    /// Whether drivers of GPUs are installed.
    pub fn installs_gpu_driver(&self) -> bool {
        self.spec.gpu.as_ref().and_then(|gpu| gpu.mode) != Some(GpuMode::None)
    }

    /// Whether containers of an architecture start before their image is complete.
    pub fn streams_artifacts(&self, architecture: &str) -> bool {
        let is_asked_for = self.spec.artifact_streaming.as_ref().and_then(|streaming| streaming.enabled);
        is_asked_for.unwrap_or_default() && architecture != arch::ARM64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, expected: impl Fn(&Class<'_>) -> bool) {
        let class = AKSNodeClass { spec: serde_json::from_value(spec).unwrap(), ..AKSNodeClass::default() };
        assert!(expected(&Class::from(&class)), "{}", serde_json::to_string(&class.spec).unwrap());
    }

    // azure.md 1.7: derived predicates
    #[test]
    fn what_a_class_does_not_say_has_its_default() {
        check(json!({}), |class| {
            !class.is_fips()
                && !class.is_encrypted_at_host()
                && !class.is_trusted_launch()
                && class.installs_gpu_driver()
                && !class.streams_artifacts("amd64")
                && !class.has_local_dns
                && class.os_disk_size_gb() == 128
        });
        check(json!({"gpu": {}}), |class| class.installs_gpu_driver() && !class.is_fips());
        check(json!({"gpu": {"mode": "None"}}), |class| !class.installs_gpu_driver());
        check(json!({"fipsMode": "Disabled"}), |class| !class.is_fips());
        check(json!({"fipsMode": "FIPS"}), |class| class.is_fips() && !class.is_trusted_launch());
    }

    // azure.md 1.7: trusted launch = vTPM or secure boot
    #[test]
    fn either_protection_of_the_boot_is_a_trusted_launch() {
        check(json!({"security": {"trustedLaunch": {"vtpm": true}}}), |class| {
            class.is_trusted_launch() && class.has_vtpm() && !class.has_secure_boot()
        });
        check(json!({"security": {"trustedLaunch": {"secureBoot": true}}}), |class| {
            class.is_trusted_launch() && !class.has_vtpm() && class.has_secure_boot()
        });
        check(json!({"security": {"trustedLaunch": {"vtpm": false}}}), |class| !class.is_trusted_launch());
    }

    // azure.md 1.7, 25.6: artifact label only amd64 + true
    #[test]
    fn artifacts_are_streamed_where_asked_for_and_not_on_arm() {
        check(json!({"artifactStreaming": {"enabled": true}}), |class| {
            class.streams_artifacts("amd64") && !class.streams_artifacts("arm64")
        });
        check(json!({"artifactStreaming": {"enabled": false}}), |class| !class.streams_artifacts("amd64"));
        check(json!({"artifactStreaming": {}}), |class| !class.streams_artifacts("amd64"));
    }
}

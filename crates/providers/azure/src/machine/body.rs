//! What AKS is told about a machine.

use api::azure::ImageFamily;
use api::nodeclaim::NodeClaim;

use super::config::{kubelet_config, linux_os_config, local_dns_profile};
use crate::arm::types::machine::{
    Machine, MachineGpu, MachineHardware, MachineKubernetes, MachineLinux, MachineNetwork,
    MachineOperatingSystem, MachineProperties, MachineSecurity,
};
use crate::arm::types::node_config::ArtifactStreamingProfile;
use crate::bootstrap::all_taints;
use crate::class::Class;
use crate::images::{NotShared, node_image_version};
use crate::launch::Choice;
use crate::settings::AzureSettings;
use crate::{node_labels, tags, version, zone};

/// Why nobody can say what a machine is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Its image is not one that AKS has for machines.
    #[error(transparent)]
    Image(#[from] NotShared),
    /// It is not known what it runs.
    #[error("spec.imageFamily is not set, expected Ubuntu, Ubuntu2204, Ubuntu2404 or AzureLinux")]
    NoFamily,
}

/// Everything that a machine is made from.
#[derive(Clone, Copy, Debug)]
pub struct MachineLaunch<'a> {
    /// What is set for the cluster.
    pub settings: &'a AzureSettings,
    /// The NodeClass.
    pub class: Class<'a>,
    /// The claim.
    pub claim: &'a NodeClaim,
    /// What was chosen for the claim.
    pub choice: Choice<'a>,
    /// The image.
    pub image_id: &'a str,
}

/// The machine of a claim.
pub fn body(launch: &MachineLaunch<'_>) -> Result<Machine, BodyError> {
    let MachineLaunch { settings, class, claim, choice, image_id } = launch;
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let is_system = node_labels::is_system(claim, choice);
    let properties = MachineProperties {
        node_image_version: Some(node_image_version(image_id)?),
        network: class
            .spec
            .vnet_subnet_id
            .clone()
            .map(|subnet| MachineNetwork { vnet_subnet_id: Some(subnet), ..MachineNetwork::default() }),
        hardware: Some(hardware(class, choice)),
        operating_system: Some(operating_system(class, choice)?),
        kubernetes: Some(kubernetes(launch)),
        mode: Some(if is_system { "System" } else { "User" }.to_owned()),
        security: Some(MachineSecurity {
            ssh_access: Some("LocalUser".to_owned()),
            enable_encryption_at_host: Some(class.is_encrypted_at_host()),
            enable_vtpm: Some(class.has_vtpm()),
            enable_secure_boot: Some(class.has_secure_boot()),
            ..MachineSecurity::default()
        }),
        priority: Some(choice.priority().to_owned()),
        tags: Some(tags::of_machine(tags::of_claim(settings, class.spec, claim), name)),
        local_dns_profile: local_dns_profile(class),
        ..MachineProperties::default()
    };
    Ok(Machine {
        zones: Some(zone::to_azure(choice.zone)),
        properties: Some(properties),
        ..Machine::default()
    })
}

fn hardware(class: &Class<'_>, choice: &Choice<'_>) -> MachineHardware {
    let driver = if class.installs_gpu_driver() { "Install" } else { "None" };
    MachineHardware {
        vm_size: Some(choice.sku.name.clone()),
        gpu_profile: choice
            .sku
            .gpu
            .map(|_| MachineGpu { driver: Some(driver.to_owned()), ..MachineGpu::default() }),
        ultra_ssd_enabled: Some(choice.ultra_ssd),
        ..MachineHardware::default()
    }
}

fn operating_system(class: &Class<'_>, choice: &Choice<'_>) -> Result<MachineOperatingSystem, BodyError> {
    let is_local = choice.sku.ephemeral_placement(class.os_disk_size_gb()).is_some();
    Ok(MachineOperatingSystem {
        os_type: Some("Linux".to_owned()),
        os_sku: Some(os_sku(class)?.to_owned()),
        os_disk_size_gb: Some(class.os_disk_size_gb()),
        os_disk_type: Some(if is_local { "Ephemeral" } else { "Managed" }.to_owned()),
        enable_fips: Some(class.is_fips()),
        linux_profile: class.spec.linux_os_config.as_ref().map(|config| MachineLinux {
            linux_os_config: Some(linux_os_config(config)),
            ..MachineLinux::default()
        }),
        ..MachineOperatingSystem::default()
    })
}

/// The operating system, in the words of the AKS Machine API.
fn os_sku(class: &Class<'_>) -> Result<&'static str, BodyError> {
    Ok(match class.spec.image_family.ok_or(BodyError::NoFamily)? {
        family @ (ImageFamily::Ubuntu2204 | ImageFamily::Ubuntu2404 | ImageFamily::AzureLinux) => {
            family.as_str()
        }
        ImageFamily::Ubuntu if class.is_fips() => "Ubuntu",
        ImageFamily::Ubuntu if version::is_at_least(class.kubernetes_version, 34) => "Ubuntu2404",
        ImageFamily::Ubuntu => "Ubuntu2204",
    })
}

fn kubernetes(launch: &MachineLaunch<'_>) -> MachineKubernetes {
    let MachineLaunch { class, claim, choice, .. } = launch;
    let streams = class.streams_artifacts(&choice.sku.architecture);
    MachineKubernetes {
        node_labels: Some(node_labels::of_machine(claim, choice)),
        orchestrator_version: Some(class.kubernetes_version.to_owned()),
        kubelet_config: class.spec.kubelet.as_ref().map(kubelet_config),
        // AKS would put its own taints back after others have removed them.
        node_initialization_taints: Some(all_taints(claim)),
        node_taints: Some(vec![]),
        max_pods: class.spec.max_pods,
        artifact_streaming_profile: streams
            .then(|| ArtifactStreamingProfile { enabled: Some(true), ..ArtifactStreamingProfile::default() }),
        ..MachineKubernetes::default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::launch::fixture::Fixture;
    use crate::sku::gpu;

    const IMAGE: &str = "/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/202512.6.0";

    fn launch(fixture: &Fixture) -> MachineLaunch<'_> {
        let launch = fixture.launch();
        MachineLaunch {
            settings: &fixture.settings,
            class: launch.class,
            claim: launch.claim,
            choice: launch.choice,
            image_id: IMAGE,
        }
    }

    fn told(launch: &MachineLaunch<'_>) -> Value {
        serde_json::to_value(body(launch).unwrap()).unwrap()
    }

    // azure.md 11.3: the whole body
    #[test]
    fn aks_is_told_everything_about_a_machine() {
        let fixture = Fixture::default();
        expect![[r#"
            {
              "zones": [
                "2"
              ],
              "properties": {
                "hardware": {
                  "vmSize": "Standard_D4s_v5",
                  "ultraSsdEnabled": false
                },
                "operatingSystem": {
                  "osType": "Linux",
                  "osSKU": "Ubuntu2204",
                  "osDiskSizeGB": 128,
                  "osDiskType": "Ephemeral",
                  "enableFIPS": false
                },
                "kubernetes": {
                  "nodeLabels": {
                    "karpenter.azure.com/placement-scope": "zonal",
                    "karpenter.azure.com/sku-cpu": "4",
                    "karpenter.azure.com/sku-family": "D",
                    "karpenter.azure.com/sku-memory": "16384",
                    "karpenter.azure.com/sku-name": "Standard_D4s_v5",
                    "karpenter.azure.com/sku-storage-ultra-ssd": "false",
                    "karpenter.sh/capacity-type": "on-demand",
                    "karpenter.sh/nodepool": "general-purpose",
                    "team": "a"
                  },
                  "orchestratorVersion": "1.34.2",
                  "nodeInitializationTaints": [
                    "karpenter.sh/unregistered:NoExecute"
                  ],
                  "nodeTaints": []
                },
                "security": {
                  "sshAccess": "LocalUser",
                  "enableEncryptionAtHost": false,
                  "enableVTPM": false,
                  "enableSecureBoot": false
                },
                "mode": "User",
                "priority": "Regular",
                "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202512.6.0",
                "tags": {
                  "compute.aks.billing": "linux",
                  "karpenter.azure.com_aksmachine_nodeclaim": "general-purpose-a1b2c",
                  "karpenter.azure.com_cluster": "test",
                  "karpenter.sh_nodepool": "general-purpose"
                }
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&body(&launch(&fixture)).unwrap()).unwrap());
    }

    // azure.md 11.3: what the NodeClass adds
    #[test]
    fn what_the_class_asks_for_is_told() {
        let mut fixture = Fixture::default();
        fixture.class.spec = serde_json::from_value(json!({
            "vnetSubnetID": "/subnet", "osDiskSizeGB": 300, "imageFamily": "AzureLinux", "fipsMode": "FIPS",
            "maxPods": 42, "gpu": {"mode": "None"}, "artifactStreaming": {"enabled": true},
            "security": {"encryptionAtHost": true, "trustedLaunch": {"vtpm": true}},
            "linuxOSConfig": {"swapFileSize": "1Gi"}, "kubelet": {"failSwapOn": false},
        }))
        .unwrap();
        let labels = fixture.claim.metadata.labels.as_mut().unwrap();
        labels.insert("kubernetes.azure.com/mode".to_owned(), "system".to_owned());
        fixture.capacity_type = "spot";
        fixture.zone = "0";
        fixture.sku.gpu = gpu::of("Standard_NC24ads_A100_v4");
        let mut launch = launch(&fixture);
        launch.choice.ultra_ssd = true;
        let told = told(&launch);
        let properties = &told["properties"];
        assert_eq!(told["zones"], json!([]));
        assert_eq!(properties["network"], json!({"vnetSubnetID": "/subnet"}));
        assert_eq!(
            properties["hardware"],
            json!({"vmSize": "Standard_D4s_v5", "gpuProfile": {"driver": "None"}, "ultraSsdEnabled": true})
        );
        assert_eq!(
            properties["operatingSystem"],
            json!({
                "osType": "Linux", "osSKU": "AzureLinux", "osDiskSizeGB": 300, "osDiskType": "Managed",
                "enableFIPS": true, "linuxProfile": {"linuxOSConfig": {"swapFileSizeMB": 1024}},
            })
        );
        assert_eq!(
            properties["security"],
            json!({
                "sshAccess": "LocalUser", "enableEncryptionAtHost": true, "enableVTPM": true,
                "enableSecureBoot": false,
            })
        );
        assert_eq!((&properties["mode"], &properties["priority"]), (&json!("System"), &json!("Spot")));
        let kubernetes = &properties["kubernetes"];
        assert_eq!(
            (&kubernetes["maxPods"], &kubernetes["kubeletConfig"]["failSwapOn"]),
            (&json!(42), &json!(false))
        );
        assert_eq!(kubernetes["artifactStreamingProfile"], json!({"enabled": true}));
    }

    // azure.md 11.3: gpuProfile only for registry GPUs
    #[test]
    fn gpus_that_aks_knows_get_drivers_or_not() {
        let mut fixture = Fixture::default();
        assert_eq!(told(&launch(&fixture))["properties"]["hardware"].get("gpuProfile"), None);
        fixture.sku.gpu = gpu::of("Standard_NC24ads_A100_v4");
        assert_eq!(
            told(&launch(&fixture))["properties"]["hardware"]["gpuProfile"],
            json!({"driver": "Install"})
        );
    }

    // azure.md 11.3: osSKU
    #[test]
    fn the_operating_system_follows_the_family_and_the_version() {
        for (family, fips, version, expected) in [
            (Some("Ubuntu2204"), false, "1.36.0", Ok("Ubuntu2204")),
            (Some("Ubuntu2404"), false, "1.30.0", Ok("Ubuntu2404")),
            (Some("AzureLinux"), true, "1.30.0", Ok("AzureLinux")),
            (Some("Ubuntu"), false, "1.33.0", Ok("Ubuntu2204")),
            (Some("Ubuntu"), false, "1.34.0", Ok("Ubuntu2404")),
            (Some("Ubuntu"), true, "1.34.0", Ok("Ubuntu")),
            (None, false, "1.34.0", Err(BodyError::NoFamily)),
        ] {
            let mut fixture = Fixture::default();
            fixture.class.spec.image_family = family.map(|name| serde_json::from_value(json!(name)).unwrap());
            fixture.class.spec.fips_mode = fips.then_some(api::azure::FipsMode::FIPS);
            version.clone_into(&mut fixture.class.status.as_mut().unwrap().kubernetes_version);
            assert_eq!(os_sku(&Class::from(&fixture.class)), expected, "{family:?} {fips} {version}");
        }
    }

    // azure.md 11.3: CIG ids are an error
    #[test]
    fn a_machine_is_not_made_from_an_image_of_the_community() {
        let fixture = Fixture::default();
        let mut launch = launch(&fixture);
        launch.image_id = "/CommunityGalleries/g/images/d/versions/1";
        assert!(matches!(body(&launch), Err(BodyError::Image(_))));
    }
}

//! Names for the images that AWS publishes for a version of Kubernetes.

use api::aws::AmiFamily;

use crate::version::KubernetesVersion;

/// From this minor version on, there are no images of AL2.
const AL2_ENDS: u32 = 33;
/// From this minor version on, there are images of Windows 2025.
const WINDOWS_2025_BEGINS: u32 = 35;
/// The version that is always the newest.
const LATEST: &str = "latest";

/// Why an alias cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// It is none.
    #[error(
        "alias {0:?} is invalid, expected family@version with one of the families al2, al2023, bottlerocket, \
         windows2019, windows2022 and windows2025"
    )]
    Invalid(String),
    /// There are no such images for the cluster.
    #[error("{family} images do not exist for Kubernetes {version}, {advice}")]
    Unsupported {
        /// The family.
        family: &'static str,
        /// The cluster's version.
        version: KubernetesVersion,
        /// What to do.
        advice: &'static str,
    },
}

/// A family and a version of its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The family.
    pub family: AmiFamily,
    /// The version, as it is written.
    pub version: String,
}

/// What images are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Machines without accelerators.
    Standard,
    /// Machines with GPUs by NVIDIA.
    Nvidia,
    /// Machines with Neuron devices.
    Neuron,
    /// Machines with Windows.
    Windows,
}

/// A parameter that holds the ID of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasParameter {
    /// Its name.
    pub path: String,
    /// What its image is made for.
    pub variants: &'static [Variant],
    /// Whether it will hold another image one day.
    pub is_mutable: bool,
}

impl Alias {
    /// Reads an alias.
    pub fn parse(text: &str) -> Result<Self, AliasError> {
        let invalid = || AliasError::Invalid(text.to_owned());
        let (family, version) = text.split_once('@').ok_or_else(invalid)?;
        if version.is_empty() || version.contains('@') {
            return Err(invalid());
        }
        let family = AmiFamily::named_by_alias(family).ok_or_else(invalid)?;
        Ok(Self { family, version: version.to_owned() })
    }

    /// The parameters that hold its images for a version of Kubernetes.
    pub fn parameters(&self, kubernetes: KubernetesVersion) -> Result<Vec<AliasParameter>, AliasError> {
        let unsupported =
            |advice| AliasError::Unsupported { family: self.family.as_str(), version: kubernetes, advice };
        match self.family {
            AmiFamily::AL2 if kubernetes.minor >= AL2_ENDS => {
                Err(unsupported("use an alias of another family, such as al2023@latest"))
            }
            AmiFamily::Windows2025 if kubernetes.minor < WINDOWS_2025_BEGINS => {
                Err(unsupported("use windows2022@latest or upgrade the cluster"))
            }
            AmiFamily::AL2 => Ok(self.al2(kubernetes)),
            AmiFamily::AL2023 => Ok(self.al2023(kubernetes)),
            AmiFamily::Bottlerocket => Ok(self.bottlerocket(kubernetes)),
            AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
                Ok(vec![self.windows(kubernetes)])
            }
            // No alias names it.
            AmiFamily::Custom => Ok(Vec::new()),
        }
    }

    fn is_latest(&self) -> bool {
        self.version == LATEST
    }

    fn parameter(&self, path: String, variants: &'static [Variant]) -> AliasParameter {
        AliasParameter { path, variants, is_mutable: self.is_latest() }
    }

    /// What stands for the version in paths of EKS.
    fn release(&self, name: &str, kubernetes: KubernetesVersion) -> String {
        if self.is_latest() {
            "recommended".to_owned()
        } else {
            format!("{name}-{kubernetes}-{}", self.version)
        }
    }

    fn al2(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        const ROWS: [(&str, &str, &[Variant]); 3] = [
            ("amazon-linux-2", "amazon-eks-node", &[Variant::Standard]),
            ("amazon-linux-2-arm64", "amazon-eks-arm64-node", &[Variant::Standard]),
            ("amazon-linux-2-gpu", "amazon-eks-gpu-node", &[Variant::Neuron, Variant::Nvidia]),
        ];
        ROWS.iter()
            .map(|(folder, name, variants)| {
                let release = self.release(name, kubernetes);
                let path = format!("/aws/service/eks/optimized-ami/{kubernetes}/{folder}/{release}/image_id");
                self.parameter(path, variants)
            })
            .collect()
    }

    fn al2023(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        const ROWS: [(&str, &str, &[Variant]); 5] = [
            ("x86_64", "standard", &[Variant::Standard]),
            ("arm64", "standard", &[Variant::Standard]),
            ("x86_64", "nvidia", &[Variant::Nvidia]),
            ("arm64", "nvidia", &[Variant::Nvidia]),
            ("x86_64", "neuron", &[Variant::Neuron]),
        ];
        ROWS.iter()
            .map(|(arch, variant, variants)| {
                let release = self.release(&format!("amazon-eks-node-al2023-{arch}-{variant}"), kubernetes);
                let path = format!(
                    "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}/{release}/image_id"
                );
                self.parameter(path, variants)
            })
            .collect()
    }

    fn bottlerocket(&self, kubernetes: KubernetesVersion) -> Vec<AliasParameter> {
        const ROWS: [(&str, &str, &[Variant]); 4] = [
            ("", "x86_64", &[Variant::Standard, Variant::Neuron]),
            ("", "arm64", &[Variant::Standard]),
            ("-nvidia", "x86_64", &[Variant::Nvidia]),
            ("-nvidia", "arm64", &[Variant::Nvidia]),
        ];
        let version = self.version.trim_start_matches('v');
        ROWS.iter()
            .map(|(flavour, arch, variants)| {
                let path = format!(
                    "/aws/service/bottlerocket/aws-k8s-{kubernetes}{flavour}/{arch}/{version}/image_id"
                );
                self.parameter(path, variants)
            })
            .collect()
    }

    fn windows(&self, kubernetes: KubernetesVersion) -> AliasParameter {
        let year = self.family.as_str().trim_start_matches("Windows");
        let path = format!(
            "/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}/image_id"
        );
        AliasParameter { path, variants: &[Variant::Windows], is_mutable: true }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn paths(alias: &str, kubernetes: &str) -> String {
        let parameters = Alias::parse(alias).unwrap().parameters(kubernetes.parse().unwrap()).unwrap();
        let row = |each: &AliasParameter| {
            format!("{} {:?}{}\n", each.path, each.variants, if each.is_mutable { " mutable" } else { "" })
        };
        parameters.iter().map(row).collect()
    }

    #[test]
    fn every_family_has_its_paths() {
        let all = [
            ("al2@latest", "1.32"),
            ("al2@v20240807", "1.32"),
            ("al2023@latest", "1.34"),
            ("al2023@v20240807", "1.34"),
            ("bottlerocket@latest", "1.34"),
            ("bottlerocket@vv1.10.0", "1.34"),
            ("windows2019@latest", "1.34"),
            ("windows2025@latest", "1.35"),
        ];
        let text: String = all.iter().map(|(alias, version)| paths(alias, version)).collect();
        expect![[r#"
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id [Standard] mutable
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id [Standard] mutable
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id [Neuron, Nvidia] mutable
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2/amazon-eks-node-1.32-v20240807/image_id [Standard]
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20240807/image_id [Standard]
            /aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20240807/image_id [Neuron, Nvidia]
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id [Standard] mutable
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id [Standard] mutable
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/image_id [Nvidia] mutable
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/recommended/image_id [Nvidia] mutable
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/recommended/image_id [Neuron] mutable
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v20240807/image_id [Standard]
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.34-v20240807/image_id [Standard]
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.34-v20240807/image_id [Nvidia]
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.34-v20240807/image_id [Nvidia]
            /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.34-v20240807/image_id [Neuron]
            /aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest/image_id [Standard, Neuron] mutable
            /aws/service/bottlerocket/aws-k8s-1.34/arm64/latest/image_id [Standard] mutable
            /aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/latest/image_id [Nvidia] mutable
            /aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/latest/image_id [Nvidia] mutable
            /aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.10.0/image_id [Standard, Neuron]
            /aws/service/bottlerocket/aws-k8s-1.34/arm64/1.10.0/image_id [Standard]
            /aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.10.0/image_id [Nvidia]
            /aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.10.0/image_id [Nvidia]
            /aws/service/ami-windows-latest/Windows_Server-2019-English-Core-EKS_Optimized-1.34/image_id [Windows] mutable
            /aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id [Windows] mutable
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn what_is_no_alias_is_refused() {
        for wrong in ["", "al2023", "al2023@", "@latest", "ubuntu@latest", "al2023@a@b", "custom@latest"] {
            assert_eq!(Alias::parse(wrong), Err(AliasError::Invalid(wrong.to_owned())));
        }
    }

    #[test]
    fn al2_ends_with_1_32_and_windows_2025_begins_with_1_35() {
        let result = |alias: &str, version: &str| {
            Alias::parse(alias).unwrap().parameters(version.parse().unwrap()).map(|all| all.len())
        };
        assert_eq!(result("al2@latest", "1.32"), Ok(3));
        assert!(matches!(result("al2@latest", "1.33"), Err(AliasError::Unsupported { .. })));
        assert_eq!(result("windows2025@latest", "1.35"), Ok(1));
        assert_eq!(
            result("windows2025@latest", "1.34").unwrap_err().to_string(),
            "Windows2025 images do not exist for Kubernetes 1.34, use windows2022@latest or upgrade the cluster"
        );
    }
}

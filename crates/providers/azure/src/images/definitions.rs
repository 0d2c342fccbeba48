//! Which definitions of images there are, and what starts them.

use api::names::values::arch::{AMD64, ARM64};

use super::{Family, Gallery};

/// A definition of an image: what its versions have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name in the gallery.
    pub name: &'static str,
    /// Its name in the bootstrapping service.
    pub distro: &'static str,
    /// The architecture, as a label says it.
    pub architecture: &'static str,
    /// The generation of Hyper-V, as a label says it.
    pub generation: &'static str,
    /// The gallery that it is in.
    pub gallery: Gallery,
}

const fn ubuntu(
    name: &'static str,
    distro: &'static str,
    architecture: &'static str,
    generation: &'static str,
) -> Definition {
    Definition { name, distro, architecture, generation, gallery: super::UBUNTU }
}

const fn azure_linux(
    name: &'static str,
    distro: &'static str,
    architecture: &'static str,
    generation: &'static str,
) -> Definition {
    Definition { name, distro, architecture, generation, gallery: super::AZURE_LINUX }
}

const UBUNTU_2004_FIPS: &[Definition] = &[
    ubuntu("2004gen2fipscontainerd", "aks-ubuntu-fips-containerd-20.04-gen2", AMD64, "2"),
    ubuntu("2004fipscontainerd", "aks-ubuntu-fips-containerd-20.04", AMD64, "1"),
];
const UBUNTU_2204: &[Definition] = &[
    ubuntu("2204gen2containerd", "aks-ubuntu-containerd-22.04-gen2", AMD64, "2"),
    ubuntu("2204containerd", "aks-ubuntu-containerd-22.04", AMD64, "1"),
    ubuntu("2204gen2arm64containerd", "aks-ubuntu-arm64-containerd-22.04-gen2", ARM64, "2"),
];
const UBUNTU_2204_TRUSTED: &[Definition] =
    &[ubuntu("2204gen2TLcontainerd", "aks-ubuntu-containerd-22.04-tl-gen2", AMD64, "2")];
const UBUNTU_2204_FIPS_TRUSTED: &[Definition] =
    &[ubuntu("2204gen2fipsTLcontainerd", "aks-ubuntu-fips-containerd-22.04-tl-gen2", AMD64, "2")];
const UBUNTU_2404: &[Definition] = &[
    ubuntu("2404gen2containerd", "aks-ubuntu-containerd-24.04-gen2", AMD64, "2"),
    ubuntu("2404containerd", "aks-ubuntu-containerd-24.04", AMD64, "1"),
    ubuntu("2404gen2arm64containerd", "aks-ubuntu-arm64-containerd-24.04-gen2", ARM64, "2"),
];
const UBUNTU_2404_TRUSTED: &[Definition] =
    &[ubuntu("2404gen2TLcontainerd", "aks-ubuntu-containerd-24.04-tl-gen2", AMD64, "2")];
const AZURE_LINUX_2: &[Definition] = &[
    azure_linux("V2gen2", "aks-azurelinux-v2-gen2", AMD64, "2"),
    azure_linux("V2", "aks-azurelinux-v2", AMD64, "1"),
    azure_linux("V2gen2arm64", "aks-azurelinux-v2-arm64-gen2", ARM64, "2"),
];
const AZURE_LINUX_2_TRUSTED: &[Definition] =
    &[azure_linux("V2gen2TL", "aks-azurelinux-v2-gen2-tl", AMD64, "2")];
const AZURE_LINUX_2_FIPS: &[Definition] = &[
    azure_linux("V2gen2fips", "aks-azurelinux-v2-gen2-fips", AMD64, "2"),
    azure_linux("V2fips", "aks-azurelinux-v2-fips", AMD64, "1"),
];
const AZURE_LINUX_3: &[Definition] = &[
    azure_linux("V3gen2", "aks-azurelinux-v3-gen2", AMD64, "2"),
    azure_linux("V3", "aks-azurelinux-v3", AMD64, "1"),
    azure_linux("V3gen2arm64", "aks-azurelinux-v3-arm64-gen2", ARM64, "2"),
];
const AZURE_LINUX_3_TRUSTED: &[Definition] =
    &[azure_linux("V3gen2TL", "aks-azurelinux-v3-gen2-tl", AMD64, "2")];
const AZURE_LINUX_3_FIPS: &[Definition] = &[
    azure_linux("V3gen2fips", "aks-azurelinux-v3-gen2-fips", AMD64, "2"),
    azure_linux("V3fips", "aks-azurelinux-v3-fips", AMD64, "1"),
    azure_linux("V3gen2arm64fips", "aks-azurelinux-v3-arm64-gen2-fips", ARM64, "2"),
];

/// The definitions of a release, the preferred one first.
pub(super) const fn of(family: Family, fips: bool, trusted: bool) -> &'static [Definition] {
    match (family, fips, trusted) {
        (Family::Ubuntu2004, true, false) => UBUNTU_2004_FIPS,
        (Family::Ubuntu2204, false, false) => UBUNTU_2204,
        (Family::Ubuntu2204, false, true) => UBUNTU_2204_TRUSTED,
        (Family::Ubuntu2204, true, true) => UBUNTU_2204_FIPS_TRUSTED,
        (Family::Ubuntu2404, false, false) => UBUNTU_2404,
        (Family::Ubuntu2404, false, true) => UBUNTU_2404_TRUSTED,
        (Family::AzureLinux2, false, false) => AZURE_LINUX_2,
        (Family::AzureLinux2, false, true) => AZURE_LINUX_2_TRUSTED,
        (Family::AzureLinux2, true, false) => AZURE_LINUX_2_FIPS,
        (Family::AzureLinux3, false, false) => AZURE_LINUX_3,
        (Family::AzureLinux3, false, true) => AZURE_LINUX_3_TRUSTED,
        (Family::AzureLinux3, true, false) => AZURE_LINUX_3_FIPS,
        _ => &[],
    }
}

/// All definitions with a name, to find one again.
pub(super) fn named(name: &str) -> Option<&'static Definition> {
    const ALL: [&[Definition]; 12] = [
        UBUNTU_2004_FIPS,
        UBUNTU_2204,
        UBUNTU_2204_TRUSTED,
        UBUNTU_2204_FIPS_TRUSTED,
        UBUNTU_2404,
        UBUNTU_2404_TRUSTED,
        AZURE_LINUX_2,
        AZURE_LINUX_2_TRUSTED,
        AZURE_LINUX_2_FIPS,
        AZURE_LINUX_3,
        AZURE_LINUX_3_TRUSTED,
        AZURE_LINUX_3_FIPS,
    ];
    ALL.into_iter().flatten().find(|definition| definition.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    // azure.md 12.3: definitions in priority order, with what starts them and their distro names
    #[test]
    fn every_family_has_its_definitions_in_their_order() {
        let mut rows = Vec::new();
        for family in [
            Family::Ubuntu2004,
            Family::Ubuntu2204,
            Family::Ubuntu2404,
            Family::AzureLinux2,
            Family::AzureLinux3,
        ] {
            for (kind, fips, trusted) in [
                ("default", false, false),
                ("trusted", false, true),
                ("fips", true, false),
                ("fips trusted", true, true),
            ] {
                for each in of(family, fips, trusted) {
                    let Definition { name, distro, architecture, generation, gallery } = each;
                    let gallery = gallery.shared;
                    rows.push(format!(
                        "{family:?} {kind}: {name} {architecture},{generation} {distro} {gallery}\n"
                    ));
                    assert_eq!(named(name), Some(each));
                }
            }
        }
        expect![[r#"
            Ubuntu2004 fips: 2004gen2fipscontainerd amd64,2 aks-ubuntu-fips-containerd-20.04-gen2 AKSUbuntu
            Ubuntu2004 fips: 2004fipscontainerd amd64,1 aks-ubuntu-fips-containerd-20.04 AKSUbuntu
            Ubuntu2204 default: 2204gen2containerd amd64,2 aks-ubuntu-containerd-22.04-gen2 AKSUbuntu
            Ubuntu2204 default: 2204containerd amd64,1 aks-ubuntu-containerd-22.04 AKSUbuntu
            Ubuntu2204 default: 2204gen2arm64containerd arm64,2 aks-ubuntu-arm64-containerd-22.04-gen2 AKSUbuntu
            Ubuntu2204 trusted: 2204gen2TLcontainerd amd64,2 aks-ubuntu-containerd-22.04-tl-gen2 AKSUbuntu
            Ubuntu2204 fips trusted: 2204gen2fipsTLcontainerd amd64,2 aks-ubuntu-fips-containerd-22.04-tl-gen2 AKSUbuntu
            Ubuntu2404 default: 2404gen2containerd amd64,2 aks-ubuntu-containerd-24.04-gen2 AKSUbuntu
            Ubuntu2404 default: 2404containerd amd64,1 aks-ubuntu-containerd-24.04 AKSUbuntu
            Ubuntu2404 default: 2404gen2arm64containerd arm64,2 aks-ubuntu-arm64-containerd-24.04-gen2 AKSUbuntu
            Ubuntu2404 trusted: 2404gen2TLcontainerd amd64,2 aks-ubuntu-containerd-24.04-tl-gen2 AKSUbuntu
            AzureLinux2 default: V2gen2 amd64,2 aks-azurelinux-v2-gen2 AKSAzureLinux
            AzureLinux2 default: V2 amd64,1 aks-azurelinux-v2 AKSAzureLinux
            AzureLinux2 default: V2gen2arm64 arm64,2 aks-azurelinux-v2-arm64-gen2 AKSAzureLinux
            AzureLinux2 trusted: V2gen2TL amd64,2 aks-azurelinux-v2-gen2-tl AKSAzureLinux
            AzureLinux2 fips: V2gen2fips amd64,2 aks-azurelinux-v2-gen2-fips AKSAzureLinux
            AzureLinux2 fips: V2fips amd64,1 aks-azurelinux-v2-fips AKSAzureLinux
            AzureLinux3 default: V3gen2 amd64,2 aks-azurelinux-v3-gen2 AKSAzureLinux
            AzureLinux3 default: V3 amd64,1 aks-azurelinux-v3 AKSAzureLinux
            AzureLinux3 default: V3gen2arm64 arm64,2 aks-azurelinux-v3-arm64-gen2 AKSAzureLinux
            AzureLinux3 trusted: V3gen2TL amd64,2 aks-azurelinux-v3-gen2-tl AKSAzureLinux
            AzureLinux3 fips: V3gen2fips amd64,2 aks-azurelinux-v3-gen2-fips AKSAzureLinux
            AzureLinux3 fips: V3fips amd64,1 aks-azurelinux-v3-fips AKSAzureLinux
            AzureLinux3 fips: V3gen2arm64fips arm64,2 aks-azurelinux-v3-arm64-gen2-fips AKSAzureLinux
        "#]]
        .assert_eq(&rows.concat());
    }
}

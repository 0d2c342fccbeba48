//! From images to the list in the status: what each is good for, one of each kind, the newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api::aws::{Ami, AmiFamily};
use api::names::labels::{self, aws};
use api::names::values::arch;
use api::shared::Requirement;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeSelectorRequirement;

use super::alias::Variant;
use crate::family::Family;
use crate::port::Image;
use crate::requirements::{absent, exists, within};

/// An image that was found, and what it is made for; nothing in particular unless an alias found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The image.
    pub image: Image,
    /// What it is made for.
    pub variants: Vec<Variant>,
}

/// The images of a NodeClass: of those for the same machines one is kept, and the newest come first. Images of
/// architectures that nobody has are left out.
pub fn discovered(candidates: Vec<Candidate>, family: AmiFamily, now: Timestamp) -> Vec<Ami> {
    let mut kept: BTreeMap<Vec<Sorted>, Image> = BTreeMap::new();
    for Candidate { image, variants } in candidates {
        let Some(architecture) = architecture(&image) else { continue };
        for requirements in kinds(architecture, &variants, family) {
            match kept.get_mut(&requirements) {
                Some(known) if rank(known, now) >= rank(&image, now) => {}
                Some(known) => *known = image.clone(),
                None => {
                    kept.insert(requirements, image.clone());
                }
            }
        }
    }
    let mut all: Vec<(Vec<Sorted>, Image)> = kept.into_iter().collect();
    all.sort_by(|(_, left), (_, right)| {
        (Reverse(left.created), &left.id).cmp(&(Reverse(right.created), &right.id))
    });
    all.into_iter()
        .map(|(requirements, image)| Ami {
            deprecated: is_deprecated(&image, now),
            requirements: requirements.into_iter().map(Into::into).collect(),
            id: image.id,
            name: image.name,
        })
        .collect()
}

/// Whether the owner of an image advises against it.
pub fn is_deprecated(image: &Image, now: Timestamp) -> bool {
    image.deprecated_from.is_some_and(|from| from <= now)
}

/// The larger, the better.
fn rank(image: &Image, now: Timestamp) -> (bool, Option<Timestamp>, &str) {
    (!is_deprecated(image, now), image.created, &image.name)
}

fn architecture(image: &Image) -> Option<&'static str> {
    match image.architecture.as_str() {
        "x86_64" => Some(arch::AMD64),
        "arm64" => Some(arch::ARM64),
        _ => None,
    }
}

/// A requirement in the order of the status: short keys first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sorted {
    length: usize,
    key: String,
    operator: &'static str,
    values: Vec<String>,
}

impl From<Requirement> for Sorted {
    fn from(Requirement { key, operator, values, .. }: Requirement) -> Self {
        Self { length: key.len(), key, operator: operator.as_str(), values }
    }
}

impl From<Sorted> for NodeSelectorRequirement {
    fn from(Sorted { key, operator, values, .. }: Sorted) -> Self {
        Self { key, operator: operator.to_owned(), values: (!values.is_empty()).then_some(values) }
    }
}

/// The machines that an image is for, one list for each kind.
fn kinds(architecture: &str, variants: &[Variant], family: AmiFamily) -> Vec<Vec<Sorted>> {
    let of = |more: Vec<Requirement>| {
        let all = std::iter::once(within(labels::ARCH, [architecture])).chain(more);
        let mut all: Vec<Sorted> = all.map(Into::into).collect();
        all.sort();
        all
    };
    if variants.is_empty() {
        return vec![of(Vec::new())];
    }
    let variant = |variant: &Variant| match variant {
        Variant::Standard => vec![absent(aws::INSTANCE_ACCELERATOR_COUNT), absent(aws::INSTANCE_GPU_COUNT)],
        Variant::Nvidia => vec![exists(aws::INSTANCE_GPU_COUNT)],
        Variant::Neuron => vec![exists(aws::INSTANCE_ACCELERATOR_COUNT)],
        Variant::Windows => {
            vec![
                within(labels::OS, ["windows"]),
                within(labels::WINDOWS_BUILD, Family::of(family).windows_build),
            ]
        }
    };
    variants.iter().map(|each| of(variant(each))).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

    #[expect(clippy::unnecessary_wraps, reason = "it is what the fields are")]
    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::constant(seconds, 0))
    }

    fn image(id: &str, architecture: &str, created: Option<Timestamp>) -> Candidate {
        let image = Image {
            id: id.to_owned(),
            name: format!("name-{id}"),
            architecture: architecture.to_owned(),
            created,
            deprecated_from: None,
        };
        Candidate { image, variants: Vec::new() }
    }

    fn written(amis: &[Ami]) -> String {
        let requirement = |each: &NodeSelectorRequirement| {
            format!("{} {} {:?}", each.key, each.operator, each.values.clone().unwrap_or_default())
        };
        let line = |ami: &Ami| {
            let requirements: Vec<String> = ami.requirements.iter().map(requirement).collect();
            let deprecated = if ami.deprecated { " deprecated" } else { "" };
            [&ami.id, deprecated, ": ", &requirements.join(", "), "\n"].concat()
        };
        amis.iter().map(line).collect()
    }

    #[test]
    fn the_newest_come_first_and_equal_ones_by_id() {
        let all = vec![image("c", "x86_64", at(5)), image("b", "arm64", at(5)), image("x", "i386", at(9))];
        expect![[r#"
            b: kubernetes.io/arch In ["arm64"]
            c: kubernetes.io/arch In ["amd64"]
        "#]]
        .assert_eq(&written(&discovered(all, AmiFamily::Custom, NOW)));
    }

    #[test]
    fn of_images_for_the_same_machines_the_newest_that_is_not_deprecated_is_kept() {
        let ids = |all: Vec<Candidate>| -> Vec<String> {
            discovered(all, AmiFamily::Custom, NOW).into_iter().map(|ami| ami.id).collect()
        };
        let deprecated = |mut candidate: Candidate, from| {
            candidate.image.deprecated_from = at(from);
            candidate
        };
        assert_eq!(ids(vec![image("a", "x86_64", at(1)), image("b", "x86_64", at(2))]), ["b"]);
        let older = deprecated(image("b", "x86_64", at(2)), 10);
        assert_eq!(ids(vec![image("a", "x86_64", at(1)), older]), ["a"]);
        let later = deprecated(image("b", "x86_64", at(2)), 2_000_000);
        assert_eq!(ids(vec![image("a", "x86_64", at(1)), later]), ["b"]);
        let both =
            vec![deprecated(image("a", "x86_64", at(1)), 10), deprecated(image("b", "x86_64", at(2)), 10)];
        assert_eq!(
            written(&discovered(both, AmiFamily::Custom, NOW)),
            "b deprecated: kubernetes.io/arch In [\"amd64\"]\n"
        );
        assert_eq!(ids(vec![image("a", "x86_64", at(1)), image("b", "x86_64", at(1))]), ["b"]);
        assert_eq!(ids(vec![image("a", "x86_64", None), image("b", "x86_64", at(1))]), ["b"]);
    }

    #[test]
    fn an_image_with_two_purposes_is_listed_twice() {
        let mut gpu = image("gpu", "x86_64", at(3));
        gpu.variants = vec![Variant::Neuron, Variant::Nvidia];
        let mut standard = image("std", "x86_64", at(2));
        standard.variants = vec![Variant::Standard];
        expect![[r#"
            gpu: kubernetes.io/arch In ["amd64"], karpenter.k8s.aws/instance-gpu-count Exists []
            gpu: kubernetes.io/arch In ["amd64"], karpenter.k8s.aws/instance-accelerator-count Exists []
            std: kubernetes.io/arch In ["amd64"], karpenter.k8s.aws/instance-gpu-count DoesNotExist [], karpenter.k8s.aws/instance-accelerator-count DoesNotExist []
        "#]]
        .assert_eq(&written(&discovered(vec![gpu, standard], AmiFamily::AL2, NOW)));
    }

    #[test]
    fn windows_images_are_for_windows() {
        let mut windows = image("w", "x86_64", at(3));
        windows.variants = vec![Variant::Windows];
        expect![[r#"
            w: kubernetes.io/os In ["windows"], kubernetes.io/arch In ["amd64"], node.kubernetes.io/windows-build In ["10.0.20348"]
        "#]]
        .assert_eq(&written(&discovered(vec![windows], AmiFamily::Windows2022, NOW)));
    }
}

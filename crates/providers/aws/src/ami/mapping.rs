//! Which image nodes of an instance type are started from: the first that fits.

use api::aws::Ami;
use api::labels::LabelSets;
use api::shared::{Operator, Requirement};
use cluster::instance_types::Wanted;
use k8s_openapi::api::core::v1::NodeSelectorRequirement;

/// The images of a NodeClass, to be asked about instance types.
#[derive(Debug)]
pub struct Mapping<'a> {
    images: Vec<(&'a Ami, Wanted<'a>)>,
}

impl<'a> Mapping<'a> {
    /// The images of a status. One with requirements that make no sense is for nobody.
    pub fn new(images: &'a [Ami], sets: &'a LabelSets) -> Self {
        let read = |image: &'a Ami| {
            let requirements: Option<Vec<Requirement>> = image.requirements.iter().map(requirement).collect();
            Some((image, Wanted::new(&requirements?, sets).ok()?))
        };
        Self { images: images.iter().filter_map(read).collect() }
    }

    /// The image for an instance type with these labels.
    pub fn image_for(&mut self, labels: &[Requirement]) -> Option<&'a Ami> {
        self.images.iter_mut().find_map(|(image, wanted)| wanted.admits(labels).then_some(*image))
    }
}

fn requirement(written: &NodeSelectorRequirement) -> Option<Requirement> {
    let operator = Operator::ALL.into_iter().find(|each| each.as_str() == written.operator)?;
    let values = written.values.clone().unwrap_or_default();
    Some(Requirement { key: written.key.clone(), operator, values, min_values: None })
}

#[cfg(test)]
mod tests {
    use api::names::labels::{self, aws};
    use api::provider::Provider;

    use super::*;
    use crate::requirements::{absent, within};

    fn image(id: &str, requirements: &[(&str, &str, &[&str])]) -> Ami {
        let requirement = |(key, operator, values): &(&str, &str, &[&str])| NodeSelectorRequirement {
            key: (*key).to_owned(),
            operator: (*operator).to_owned(),
            values: Some(values.iter().map(|value| (*value).to_owned()).collect()),
        };
        Ami {
            id: id.to_owned(),
            requirements: requirements.iter().map(requirement).collect(),
            ..Ami::default()
        }
    }

    #[test]
    fn a_type_gets_the_first_image_that_fits() {
        let images = [
            image("arm", &[(labels::ARCH, "In", &["arm64"])]),
            image("gpu", &[(labels::ARCH, "In", &["amd64"]), (aws::INSTANCE_GPU_COUNT, "Exists", &[])]),
            image("std", &[(labels::ARCH, "In", &["amd64"]), (aws::INSTANCE_GPU_COUNT, "DoesNotExist", &[])]),
            image("any", &[(labels::ARCH, "In", &["amd64"])]),
            image("odd", &[(labels::ARCH, "Near", &["s390x"])]),
        ];
        let sets = LabelSets::for_provider(Provider::Aws);
        let mut mapping = Mapping::new(&images, &sets);
        let mut of = |arch: &str, gpus: Option<&str>| {
            let gpus = gpus.map_or_else(
                || absent(aws::INSTANCE_GPU_COUNT),
                |count| within(aws::INSTANCE_GPU_COUNT, [count]),
            );
            mapping.image_for(&[within(labels::ARCH, [arch]), gpus]).map(|image| image.id.as_str())
        };
        assert_eq!(of("arm64", None), Some("arm"));
        assert_eq!(of("amd64", Some("1")), Some("gpu"));
        assert_eq!(of("amd64", None), Some("std"));
        assert_eq!(of("s390x", None), None);
    }
}

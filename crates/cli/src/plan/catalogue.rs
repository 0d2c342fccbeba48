//! What nodes there may be: the instance types of a file, or those of simulated nodes.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use api::names::{labels, resources};
use api::provider::Provider;
use api::shared::Requirement;
use cluster::instance_types::{InstanceType, kwok};

/// The types of a file, with the labels that the provider gives to types; the built-in ones of simulated nodes without
/// a file.
pub(super) fn read(file: Option<&Path>, provider: Provider) -> Result<Arc<[InstanceType]>> {
    let mut types = match file {
        Some(file) => kwok::read(file)?,
        None if provider == Provider::Kwok => kwok::built_in(),
        None => bail!(
            "the NodePools are of provider {provider}, whose instance types and prices are not built in; give them \
             with --instance-types FILE"
        ),
    };
    if provider != Provider::Kwok {
        for each in &mut types {
            label(each, provider);
        }
    }
    Ok(types.into())
}

/// Gives a type the labels of its provider instead of those of simulated nodes, as far as its name and size tell.
fn label(each: &mut InstanceType, provider: Provider) {
    let prefix = format!("{}/", labels::kwok::DOMAIN);
    each.requirements.retain(|requirement| !requirement.key.starts_with(&prefix));
    let units = |name: &str| {
        let nanos = each.capacity.amount(name).nanos();
        i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX)
    };
    #[cfg_attr(
        not(any(feature = "aws", feature = "azure")),
        expect(unused_variables, reason = "without a cloud there is nobody to ask")
    )]
    let (vcpus, memory_mib) = (units(resources::CPU), units(resources::MEMORY) >> 20);
    let labels: Vec<Requirement> = match provider {
        #[cfg(feature = "aws")]
        Provider::Aws => aws::instance_type::labels_of_name(&each.name, vcpus, memory_mib),
        #[cfg(feature = "azure")]
        Provider::Azure => azure::instance_type::labels_of_name(&each.name, vcpus, memory_mib),
        _ => Vec::new(),
    };
    each.requirements.extend(labels);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(feature = "aws", feature = "azure"))]
    fn labels_of(name: &str, provider: Provider) -> Vec<String> {
        let text = format!(
            r#"[{{"name": "{name}", "architecture": "amd64", "operatingSystems": ["linux"],
                "resources": {{"cpu": "4", "memory": "16Gi"}}, "offerings": []}}]"#
        );
        let mut types = kwok::parse("types", text.as_bytes()).unwrap();
        label(&mut types[0], provider);
        let shown = types[0].requirements.iter().map(|it| format!("{}={}", it.key, it.values.join(",")));
        shown.collect()
    }

    #[cfg(all(feature = "aws", feature = "azure"))]
    #[test]
    fn types_of_a_file_have_the_labels_of_their_provider() {
        let found = labels_of("m5.xlarge", Provider::Aws);
        for expected in [
            "karpenter.k8s.aws/instance-category=m",
            "karpenter.k8s.aws/instance-generation=5",
            "karpenter.k8s.aws/instance-family=m5",
            "karpenter.k8s.aws/instance-size=xlarge",
            "karpenter.k8s.aws/instance-cpu=4",
            "karpenter.k8s.aws/instance-memory=16384",
        ] {
            assert!(found.iter().any(|it| it == expected), "{expected} is not in {found:?}");
        }
        let found = labels_of("Standard_D4s_v5", Provider::Azure);
        for expected in [
            "karpenter.azure.com/sku-name=Standard_D4s_v5",
            "karpenter.azure.com/sku-family=D",
            "karpenter.azure.com/sku-version=5",
            "karpenter.azure.com/sku-cpu=4",
            "karpenter.azure.com/sku-memory=16384",
        ] {
            assert!(found.iter().any(|it| it == expected), "{expected} is not in {found:?}");
        }
        assert!(!found.iter().any(|it| it.contains("kwok")), "{found:?}");
    }

    #[test]
    fn only_simulated_nodes_need_no_file() {
        assert_eq!(read(None, Provider::Kwok).unwrap().len(), 144);
        let error = read(None, Provider::Azure).unwrap_err().to_string();
        assert!(error.contains("provider azure") && error.contains("--instance-types FILE"), "{error}");
    }
}

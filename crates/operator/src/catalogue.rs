//! What the cloud offers, as far as several controllers ask for it.

use api::labels::LabelSets;
use api::provider::Provider;
use cluster::instance_types::InstanceType;

/// The labels of a cloud, together with those that its instance types are told apart by.
pub(crate) fn label_sets(provider: Provider, types: &[InstanceType]) -> LabelSets {
    let mut offered: Vec<&String> = Vec::new();
    let offerings = types.iter().flat_map(|each| &each.offerings);
    for requirement in offerings.flat_map(|offering| &offering.requirements) {
        if !offered.contains(&&requirement.key) {
            offered.push(&requirement.key);
        }
    }
    LabelSets::for_provider(provider).with_well_known(offered.into_iter().cloned())
}

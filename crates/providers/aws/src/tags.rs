//! Tags on everything that we create: policies of users expect them exactly so.

use std::sync::LazyLock;

use api::aws::EC2NodeClass;
use api::names::labels;
use api::names::tags::aws as names;
use api::nodeclaim::NodeClaim;
use regex::Regex;

use crate::node_class::Class;
use crate::port::Tags;

static CLUSTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^kubernetes\.io/cluster/[0-9A-Za-z][A-Za-z0-9\-_]*$")
        .expect("the pattern is a constant that compiles")
});

/// Tags that users cannot set.
const RESTRICTED: [&str; 4] = [names::NODEPOOL, names::CLUSTER_NAME, names::NODE_CLASS, names::NODE_CLAIM];

/// Tags of a NodeClass that users cannot set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.tags has keys that are restricted: {}", quoted(.0))]
pub struct RestrictedTags(Vec<String>);

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ")
}

/// Tags of everything that is launched for a claim.
pub fn of_launch(class: &Class<'_>, claim: &NodeClaim, cluster: &str) -> Result<Tags, RestrictedTags> {
    let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
    let own = [
        (format!("{}{cluster}", names::CLUSTER_PREFIX), "owned"),
        (names::NODEPOOL.to_owned(), pool.map_or("", String::as_str)),
        (names::CLUSTER_NAME.to_owned(), cluster),
        (names::NODE_CLASS.to_owned(), class.name),
    ];
    with(class, own)
}

/// Tags of the instance profile of a NodeClass, whatever else is wrong with it: policies allow us nothing without
/// ours, and nobody would find a profile that has none. Tags that users cannot set are left out; the validation of
/// the class says so.
pub fn of_instance_profile(object: &EC2NodeClass, cluster: &str, region: &str) -> Tags {
    let class = object.metadata.name.as_deref().unwrap_or_default();
    let own = [
        (format!("{}{cluster}", names::CLUSTER_PREFIX), "owned"),
        (names::CLUSTER_NAME.to_owned(), cluster),
        (names::NODE_CLASS.to_owned(), class),
        (names::REGION.to_owned(), region),
    ];
    let mut all = object.spec.tags.clone().unwrap_or_default();
    all.retain(|key, _| !is_restricted(key));
    all.extend(own.map(|(key, value)| (key, value.to_owned())));
    all
}

fn is_restricted(key: &str) -> bool {
    CLUSTER.is_match(key) || RESTRICTED.contains(&key)
}

/// The tags of a NodeClass and ours.
fn with<const N: usize>(class: &Class<'_>, own: [(String, &str); N]) -> Result<Tags, RestrictedTags> {
    let mut all = class.spec.tags.clone().unwrap_or_default();
    let restricted: Vec<String> = all.keys().filter(|key| is_restricted(key)).cloned().collect();
    if !restricted.is_empty() {
        return Err(RestrictedTags(restricted));
    }
    all.extend(own.map(|(key, value)| (key, value.to_owned())));
    Ok(all)
}

/// What an instance lacks of the tags that it gets once its node is known.
pub fn missing(instance: &Tags, claim: &str, node: &str, cluster: &str) -> Tags {
    [(names::NAME, node), (names::NODE_CLAIM, claim), (names::CLUSTER_NAME, cluster)]
        .into_iter()
        .filter(|(key, _)| !instance.contains_key(*key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_gets_the_tags_that_it_lacks_and_keeps_its_own() {
        let all = [("Name", "node-1"), ("karpenter.sh/nodeclaim", "claim-1"), ("eks:eks-cluster-name", "c")];
        for present in 0..8_u8 {
            let has = |index: usize| present & (1 << index) != 0;
            let tags: Tags = all
                .iter()
                .enumerate()
                .filter(|(index, _)| has(*index))
                .map(|(_, (key, _))| ((*key).to_owned(), "own".to_owned()))
                .collect();
            let expected: Tags = all
                .iter()
                .enumerate()
                .filter(|(index, _)| !has(*index))
                .map(|(_, (key, value))| ((*key).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(missing(&tags, "claim-1", "node-1", "c"), expected, "{present}");
        }
    }
}

//! Tags on everything that we make in Azure, and the hash by which a claim knows whether its machine has them.

use std::collections::BTreeMap;

use api::azure::AKSNodeClassSpec;
use api::names::labels;
use api::names::tags::azure as names;
use api::nodeclaim::NodeClaim;
use serde_json::{Map, Value, json};

use crate::hash::fnv1a_32;
use crate::settings::AzureSettings;

/// Tags by their name.
pub type Tags = BTreeMap<String, String>;

/// What machines are billed as.
const BILLED_AS: &str = "linux";

/// The tags of everything that is made for a claim: those of the settings, then of the NodeClass, then ours.
///
/// Azure allows no slashes in names of tags and does not look at their case, so neither do we: what comes later
/// replaces what has the same name.
pub fn of_claim(settings: &AzureSettings, class: &AKSNodeClassSpec, claim: &NodeClaim) -> Tags {
    let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
    let own = [
        (names::CLUSTER, Some(settings.cluster_name.as_str())),
        (names::BILLING, Some(BILLED_AS)),
        (names::NODEPOOL, pool.map(String::as_str)),
    ];
    let mut all = Tags::new();
    for (key, value) in settings.additional_tags.iter().chain(class.tags.iter().flatten()) {
        insert(&mut all, key, value);
    }
    for (key, value) in own.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        insert(&mut all, key, value);
    }
    all
}

fn insert(tags: &mut Tags, key: &str, value: &str) {
    let key = key.replace('/', "_");
    tags.retain(|other, _| !other.eq_ignore_ascii_case(&key));
    tags.insert(key, value.to_owned());
}

/// The tags of an AKS machine: those of its claim, and the claim's name.
pub fn of_machine(mut tags: Tags, claim: &str) -> Tags {
    tags.insert(names::AKS_MACHINE_NODE_CLAIM.to_owned(), claim.to_owned());
    tags
}

/// What the annotation `karpenter.azure.com/in-place-update-hash` of a claim says. Claims with an AKS machine have no
/// identities there, and `tags` are without the claim's name.
pub fn in_place_hash(identities: &[String], tags: &Tags) -> String {
    let mut content = Map::new();
    if !identities.is_empty() {
        let all: Map<String, Value> = identities.iter().map(|id| (id.clone(), json!({}))).collect();
        content.insert("identities".to_owned(), Value::Object(all));
    }
    if !tags.is_empty() {
        content.insert("tags".to_owned(), json!(tags));
    }
    fnv1a_32(escaped(&sorted(&Value::Object(content)).to_string()).as_bytes()).to_string()
}

/// The same value with the names in its objects in order, however the library keeps them.
fn sorted(value: &Value) -> Value {
    let Value::Object(entries) = value else { return value.clone() };
    let mut entries: Vec<(&String, Value)> =
        entries.iter().map(|(key, value)| (key, sorted(value))).collect();
    entries.sort_by_key(|(key, _)| *key);
    Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), value)).collect())
}

/// JSON as Go writes it, which is careful with what means something in HTML and JavaScript.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for each in json.chars() {
        match each {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::fixture;

    fn tags(entries: &[(&str, &str)]) -> Tags {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn of(additional: &[(&str, &str)], class: &[(&str, &str)], pool: Option<&str>) -> Tags {
        let settings = AzureSettings {
            cluster_name: "test-cluster".to_owned(),
            additional_tags: tags(additional),
            ..fixture::settings()
        };
        let class = AKSNodeClassSpec { tags: Some(tags(class)), ..AKSNodeClassSpec::default() };
        let mut claim = NodeClaim::default();
        claim.metadata.labels = pool.map(|pool| tags(&[("karpenter.sh/nodepool", pool)]));
        of_claim(&settings, &class, &claim)
    }

    // azure.md 10.2
    #[test]
    fn everything_has_the_tags_of_settings_class_and_ours() {
        assert_eq!(
            of(&[("team", "a"), ("env", "dev")], &[("team", "b"), ("a/b", "c")], Some("default")),
            tags(&[
                ("a_b", "c"),
                ("compute.aks.billing", "linux"),
                ("env", "dev"),
                ("karpenter.azure.com_cluster", "test-cluster"),
                ("karpenter.sh_nodepool", "default"),
                ("team", "b"),
            ])
        );
    }

    // azure.md 25.5: additional vs NodeClass tag conflict
    #[test]
    fn tags_of_the_class_win_over_those_of_the_settings() {
        let all = of(&[("team", "a"), ("cost/center", "1")], &[("team", "b"), ("cost_center", "2")], None);
        assert_eq!((all["team"].as_str(), all["cost_center"].as_str()), ("b", "2"));
    }

    // azure.md 25.5: the user cannot override built-in tags, even spelled with a slash
    #[test]
    fn nobody_can_replace_our_tags_however_they_are_written() {
        for key in ["karpenter.sh/nodepool", "karpenter.sh_nodepool", "Karpenter.sh_NodePool"] {
            for all in [of(&[(key, "other")], &[], Some("own")), of(&[], &[(key, "other")], Some("own"))] {
                assert_eq!(all.len(), 3, "{all:?}");
                assert_eq!(all["karpenter.sh_nodepool"], "own");
            }
        }
        let all = of(&[], &[("karpenter.azure.com/cluster", "x"), ("compute.aks.billing", "windows")], None);
        assert_eq!(
            all,
            tags(&[("karpenter.azure.com_cluster", "test-cluster"), ("compute.aks.billing", "linux")])
        );
    }

    // azure.md 10.2: nodepool if labelled
    #[test]
    fn a_claim_without_a_pool_has_no_tag_of_one() {
        assert!(!of(&[], &[], None).contains_key("karpenter.sh_nodepool"));
    }

    // azure.md 11.3
    #[test]
    fn an_aks_machine_has_the_name_of_its_claim() {
        let all = of_machine(of(&[], &[], Some("p")), "p-a1b2c");
        assert_eq!(all["karpenter.azure.com_aksmachine_nodeclaim"], "p-a1b2c");
        assert_eq!(all.len(), 4);
    }

    // azure.md 1.9: vectors
    #[test]
    fn the_hash_is_the_one_that_running_clusters_have() {
        let tags = of(&[], &[], Some("default"));
        let identity = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id1";
        assert_eq!(in_place_hash(&[], &tags), "3897900378");
        assert_eq!(in_place_hash(&[identity.to_owned()], &tags), "30724148");
    }

    // azure.md 25.8: identity order irrelevant
    #[test]
    fn the_order_of_identities_does_not_matter() {
        let (a, b) = ("/a".to_owned(), "/b".to_owned());
        let tags = Tags::new();
        assert_eq!(in_place_hash(&[a.clone(), b.clone()], &tags), in_place_hash(&[b, a], &tags));
    }

    // azure.md 1.9: Go's escapes, empty members omitted
    #[test]
    fn what_html_cares_about_is_escaped_and_nothing_is_an_empty_object() {
        assert_eq!(escaped(r#"{"a<b>":"c&d"}"#), r#"{"a\u003cb\u003e":"c\u0026d"}"#);
        assert_eq!(in_place_hash(&[], &Tags::new()), fnv1a_32(b"{}").to_string());
    }
}

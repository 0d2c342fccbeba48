//! What instance profiles are called, and where they are.

use crate::hash::of_text;

/// What IAM accepts at most.
const MOST_CHARACTERS: usize = 128;

/// Where all instance profiles of a cluster are.
pub fn cluster_path(region: &str, cluster: &str) -> String {
    format!("/karpenter/{region}/{cluster}/")
}

/// Where the instance profiles of a NodeClass are.
pub fn path(region: &str, cluster: &str, uid: &str) -> String {
    format!("{}{uid}/", cluster_path(region, cluster))
}

/// The name of a new instance profile; `unique` makes it one that nobody has.
pub fn new_name(cluster: &str, region: &str, node_class: &str, unique: &str) -> String {
    format!("{cluster}_{}", of_text(&format!("{region}{node_class}{unique}")))
}

/// The name that older releases gave the only instance profile of a NodeClass.
pub fn legacy_name(cluster: &str, region: &str, node_class: &str) -> String {
    new_name(cluster, region, node_class, "")
}

/// Whether IAM would accept a name.
pub fn is_valid_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
    !name.is_empty() && name.len() <= MOST_CHARACTERS && name.chars().all(is_allowed)
}

/// The name of a role, which may be written with its path; IAM itself knows the name alone.
pub fn role_name(role: &str) -> &str {
    role.rsplit_once('/').map_or(role, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_cluster_region_and_class() {
        assert_eq!(path("us-west-2", "c", "uid"), "/karpenter/us-west-2/c/uid/");
        assert_eq!(legacy_name("c", "us-west-2", "default"), format!("c_{}", of_text("us-west-2default")));
        assert_ne!(new_name("c", "r", "n", "1"), new_name("c", "r", "n", "2"));
        assert!(is_valid_name(&legacy_name("my-cluster.v1", "us-west-2", "default")));
    }

    #[test]
    fn iam_does_not_accept_everything() {
        for wrong in ["", "a b", "a/b", "ü", &"a".repeat(129)] {
            assert!(!is_valid_name(wrong), "{wrong}");
        }
        assert!(is_valid_name(&"a".repeat(128)));
    }

    #[test]
    fn a_role_is_the_same_with_and_without_its_path() {
        assert_eq!(role_name("service-role/team/KarpenterNode"), "KarpenterNode");
        assert_eq!(role_name("KarpenterNode"), "KarpenterNode");
    }
}

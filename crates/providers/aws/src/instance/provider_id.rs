//! How Kubernetes names instances.

use api::names::process::AWS_PROVIDER_ID;

/// The provider ID of an instance in a zone.
pub fn of(zone: &str, id: &str) -> String {
    format!("{AWS_PROVIDER_ID}{zone}/{id}")
}

/// The instance with a provider ID; none if it is of another cloud or malformed.
pub fn instance_id(provider_id: &str) -> Option<&str> {
    let (_, place) = provider_id.split_once(":///")?;
    place.rsplit_once('/').map(|(_, id)| id).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instance_is_what_is_last() {
        assert_eq!(of("us-west-2a", "i-1"), "aws:///us-west-2a/i-1");
        assert_eq!(instance_id("aws:///us-west-2a/i-1"), Some("i-1"));
        for wrong in ["", "i-1", "aws://us-west-2a/i-1", "aws:///i-1", "aws:///us-west-2a/"] {
            assert_eq!(instance_id(wrong), None, "{wrong}");
        }
    }
}

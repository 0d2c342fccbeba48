//! What is ours: objects that refer to a NodeClass of this cloud.

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use api::shared::NodeClassReference;

/// Whether a NodeClass is one of this cloud.
pub(crate) fn is_managed(reference: &NodeClassReference, provider: Provider) -> bool {
    let class = provider.node_class();
    reference.group == class.group && reference.kind == class.kind
}

/// Whether a NodePool is for this cloud.
pub(crate) fn is_pool_managed(pool: &NodePool, provider: Provider) -> bool {
    is_managed(&pool.spec.template.spec.node_class_ref, provider)
}

/// Whether a NodeClaim is for this cloud.
pub(crate) fn is_claim_managed(claim: &NodeClaim, provider: Provider) -> bool {
    is_managed(&claim.spec.node_class_ref, provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_and_kind_decide_what_is_ours() {
        let reference = |group: &str, kind: &str| NodeClassReference {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: "default".to_owned(),
        };
        assert!(is_managed(&reference("karpenter.kwok.sh", "KWOKNodeClass"), Provider::Kwok));
        assert!(!is_managed(&reference("karpenter.kwok.sh", "EC2NodeClass"), Provider::Kwok));
        assert!(!is_managed(&reference("karpenter.kwok.sh", "KWOKNodeClass"), Provider::Aws));
    }
}

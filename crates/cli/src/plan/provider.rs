//! Whose nodes a cluster has. The NodeClasses say so that its NodePools refer to. Entry: [`find`].

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use api::nodepool::NodePool;
use api::provider::Provider;
use api::shared::NodeClassReference;
use cloud::repair::Policies;
use cluster::reason::Ignored;
use cluster::state_node::check_node_class;

/// What is said of files and clusters without a NodePool.
pub(super) const NO_POOL: &str = "no NodePool, so nothing says what nodes there may be";
/// The field that says whose nodes a pool has.
const FIELD: &str = "spec.template.spec.nodeClassRef";

/// A NodePool, as far as it says whose nodes it has.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Its name.
    pub(super) name: String,
    /// The NodeClass that it refers to.
    pub(super) class: NodeClassReference,
}

impl Pool {
    /// What a NodePool says.
    pub(super) fn of(pool: &NodePool) -> Self {
        Self {
            name: pool.metadata.name.clone().unwrap_or_default(),
            class: pool.spec.template.spec.node_class_ref.clone(),
        }
    }

    fn provider(&self) -> Option<Provider> {
        Provider::ALL.into_iter().find(|provider| check_node_class(&self.class, *provider).is_ok())
    }
}

/// The provider that all is planned for: the one that the user has chosen, else that of the NodePools.
pub(super) fn find(chosen: Option<Provider>, pools: &[Pool]) -> Result<Provider> {
    let mut known = BTreeMap::<Provider, &Pool>::new();
    for pool in pools {
        if let Some(provider) = pool.provider() {
            known.entry(provider).or_insert(pool);
        }
    }
    let found: Vec<Provider> = known.keys().copied().collect();
    let first = || pools.first().map_or_else(String::new, named);
    match (chosen, &*found) {
        (Some(chosen), found) if found.contains(&chosen) => Ok(chosen),
        (Some(chosen), _) => {
            bail!("no NodePool is of provider {chosen}: {}; expected {}", first(), class(chosen))
        }
        (None, [only]) => Ok(*only),
        (None, []) => {
            let [kwok, aws, azure] = Provider::ALL.map(class);
            bail!("{}, which is of no known provider; expected {kwok}, {aws} or {azure}", first())
        }
        (None, _) => {
            let pools: Vec<String> = known.values().map(|pool| named(pool)).collect();
            bail!("the NodePools are of several providers: {}; choose one with --provider", pools.join(", "))
        }
    }
}

fn named(pool: &Pool) -> String {
    format!("NodePool {}: {FIELD} is {}/{}", pool.name, pool.class.group, pool.class.kind)
}

fn class(provider: Provider) -> String {
    let class = provider.node_class();
    format!("{}/{} ({provider})", class.group, class.kind)
}

/// The NodePools that are not looked at because they are of another provider.
pub(super) fn others<'p>(provider: Provider, pools: impl Iterator<Item = &'p NodePool>) -> Vec<Ignored> {
    let others = pools.filter_map(|pool| {
        let reason = check_node_class(&pool.spec.template.spec.node_class_ref, provider).err()?;
        let name = pool.metadata.name.as_deref().unwrap_or_default().into();
        Some(Ignored { kind: "NodePool", namespace: None, name, reason })
    });
    others.collect()
}

/// When nodes of a provider count as broken.
pub(super) fn repair_policies(provider: Provider) -> Result<Arc<Policies>> {
    let policies = match provider {
        Provider::Kwok => Some(kwok::provider::repair_policies()),
        #[cfg(feature = "aws")]
        Provider::Aws => Some(aws::repair::policies()),
        #[cfg(feature = "azure")]
        Provider::Azure => Some(azure::repair::policies()),
        #[cfg(not(all(feature = "aws", feature = "azure")))]
        _ => None,
    };
    let policies = policies.ok_or_else(|| {
        anyhow!("this program was built without provider {provider}, so that it does not know which nodes are broken")
    })?;
    Policies::compile(policies).map(Arc::new).context("reading the repair policies")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, group: &str, kind: &str) -> Pool {
        let class =
            NodeClassReference { group: group.to_owned(), kind: kind.to_owned(), name: "default".to_owned() };
        Pool { name: name.to_owned(), class }
    }

    fn ec2(name: &str) -> Pool {
        pool(name, "karpenter.k8s.aws", "EC2NodeClass")
    }

    fn aks(name: &str) -> Pool {
        pool(name, "karpenter.azure.com", "AKSNodeClass")
    }

    #[test]
    fn node_classes_of_pools_say_whose_nodes_there_are() {
        let strange = pool("c", "karpenter.example.com", "ExampleNodeClass");
        for (chosen, pools, expected) in [
            (None, vec![ec2("a"), ec2("b")], Provider::Aws),
            (None, vec![aks("a")], Provider::Azure),
            (None, vec![pool("a", "karpenter.kwok.sh", "KWOKNodeClass")], Provider::Kwok),
            // One that nobody knows does not keep the others from being planned.
            (None, vec![strange, aks("a")], Provider::Azure),
            (Some(Provider::Aws), vec![aks("a"), ec2("b")], Provider::Aws),
        ] {
            assert_eq!(find(chosen, &pools).unwrap(), expected, "{pools:?}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_said_with_the_object_the_value_and_what_is_accepted() {
        let strange = pool("c", "karpenter.example.com", "ExampleNodeClass");
        for (chosen, pools, expected) in [
            (
                None,
                vec![strange],
                "NodePool c: spec.template.spec.nodeClassRef is karpenter.example.com/ExampleNodeClass, which is of \
                 no known provider; expected karpenter.kwok.sh/KWOKNodeClass (kwok), \
                 karpenter.k8s.aws/EC2NodeClass (aws) or karpenter.azure.com/AKSNodeClass (azure)",
            ),
            (
                None,
                vec![aks("a"), ec2("b"), ec2("c")],
                "the NodePools are of several providers: NodePool b: spec.template.spec.nodeClassRef is \
                 karpenter.k8s.aws/EC2NodeClass, NodePool a: spec.template.spec.nodeClassRef is \
                 karpenter.azure.com/AKSNodeClass; choose one with --provider",
            ),
            (
                Some(Provider::Kwok),
                vec![aks("a")],
                "no NodePool is of provider kwok: NodePool a: spec.template.spec.nodeClassRef is \
                 karpenter.azure.com/AKSNodeClass; expected karpenter.kwok.sh/KWOKNodeClass (kwok)",
            ),
        ] {
            assert_eq!(find(chosen, &pools).unwrap_err().to_string(), expected);
        }
    }

    #[cfg(all(feature = "aws", feature = "azure"))]
    #[test]
    fn the_repair_policies_of_every_provider_can_be_used() {
        for provider in Provider::ALL {
            assert!(repair_policies(provider).is_ok(), "{provider}");
        }
    }
}

//! What a cluster is made of. Each cluster has its own selection: many have few features, some have all.

use std::collections::BTreeSet;
use std::fmt;

use super::random::Random;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Something that a cluster may have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Feature {
            $($(#[$doc])* $name,)*
        }

        const ALL: &[Feature] = &[$(Feature::$name,)*];

        #[cfg(test)]
        pub(crate) const COUNT: usize = ALL.len();
    };
}

features! {
    /// Pools of different weights.
    Weights,
    PoolTaints,
    /// Taints that scheduling may ignore; needs `PoolTaints`.
    SoftTaints,
    StartupTaints,
    PoolLabels,
    PoolRequirements,
    MinValues,
    BestEffortMinValues,
    Limits,
    NodeLimits,
    StaticPools,
    UnreadyPools,
    Arm,
    Windows,
    ExtraResources,
    UnevenOfferings,
    Nodes,
    UninitializedNodes,
    TaintedNodes,
    DeletingNodes,
    UnmanagedNodes,
    Daemons,
    DaemonConstraints,
    Volumes,
    BrokenVolumes,
    Namespaces,
    Budgets,
    InitContainers,
    Overhead,
    NodeSelectors,
    RequiredNodeAffinity,
    PreferredNodeAffinity,
    Tolerations,
    Spread,
    SoftSpread,
    SpreadPolicies,
    Affinity,
    AntiAffinity,
    PreferredAffinity,
    PreferredAntiAffinity,
    HostPorts,
    OddPods,
    ManyPods,
    IgnorePreferences,
    DefaultSpread,
}

/// The features of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Features(BTreeSet<Feature>);

impl Features {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let richness = *random.weighted(&[(35, 12), (30, 25), (25, 50), (10, 90)]);
        let mut features: BTreeSet<Feature> = BTreeSet::new();
        for feature in ALL {
            let percent = match feature {
                // These change the rules for the whole cluster.
                Feature::IgnorePreferences | Feature::BestEffortMinValues => richness.min(30),
                Feature::DefaultSpread | Feature::OddPods | Feature::BrokenVolumes => richness / 3,
                Feature::Nodes => richness.max(40),
                _ => richness,
            };
            if random.chance(percent) {
                features.insert(*feature);
            }
        }
        Self(features)
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|feature| format!("{feature:?}")).collect();
        f.write_str(&names.join(" "))
    }
}

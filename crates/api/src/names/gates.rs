//! Feature gates: what can be switched on or off with `--feature-gates`.

use super::Stage;

/// A switch for a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The gate's name.
    pub name: &'static str,
    /// Whether the feature is on when nothing is said.
    pub default: bool,
    /// How settled the feature is.
    pub stage: Stage,
    /// What the feature does.
    pub help: &'static str,
}

/// Defines gates whose documentation also is their help text.
macro_rules! gates {
    (
        $(#[$list_doc:meta])* $list:ident;
        $(#[doc = $help:literal] $name:ident = $gate:literal, $default:literal, $stage:ident;)*
    ) => {
        $crate::names::define! {
            $(#[$list_doc])* $list: Gate;
            $(#[doc = $help]
            $name = Gate {
                name: $gate,
                default: $default,
                stage: Stage::$stage,
                help: $help.trim_ascii(),
            };)*
        }
    };
}

gates! {
    /// Gates of the core, in the order in which the default lists them.
    ALL;
    /// Replaces or reboots nodes that the provider's repair policies find broken.
    NODE_REPAIR = "NodeRepair", false, Alpha;
    /// Uses capacity that is reserved, before any other.
    RESERVED_CAPACITY = "ReservedCapacity", true, Beta;
    /// Replaces spot nodes with cheaper spot nodes.
    SPOT_TO_SPOT_CONSOLIDATION = "SpotToSpotConsolidation", false, Alpha;
    /// Corrects prices and capacities with NodeOverlays.
    NODE_OVERLAY = "NodeOverlay", false, Alpha;
    /// Keeps NodePools with `replicas` at that number of nodes.
    STATIC_CAPACITY = "StaticCapacity", false, Alpha;
    /// Keeps spare capacity for CapacityBuffers.
    CAPACITY_BUFFER = "CapacityBuffer", false, Alpha;
    /// Terminates a drifted node first when its replacement needs the capacity that it holds.
    TERMINATE_FIRST_DRIFT = "TerminateFirstDrift", false, Alpha;
    /// Terminates a broken node first when its replacement needs the capacity that it holds.
    TERMINATE_FIRST_REPAIR = "TerminateFirstRepair", false, Alpha;
    /// Makes ReplicaSets delete pods first from nodes that are to go.
    POD_DELETION_COST_MANAGEMENT = "PodDeletionCostManagement", false, Alpha;
}

gates! {
    /// Gates of the AWS provider, set with `--aws-feature-gates`.
    AWS;
    /// Evaluates expressions in the kubelet's configuration of an EC2NodeClass.
    AWS_NODE_CLASS_CEL = "NodeClassCEL", false, Alpha;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::flags;

    #[track_caller]
    fn check(gates: &[Gate], flag: &flags::Flag) {
        let default: Vec<String> =
            gates.iter().map(|gate| format!("{}={}", gate.name, gate.default)).collect();
        assert_eq!(flag.default, Some(default.join(",").as_str()));
    }

    #[test]
    fn the_default_of_the_flag_lists_every_gate() {
        check(ALL, &flags::FEATURE_GATES);
        check(AWS, &flags::aws::FEATURE_GATES);
    }
}

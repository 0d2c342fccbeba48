//! Finalizers that keep objects until their instances are gone.

use super::define;

define! {
    /// All finalizers.
    ALL: &str;
    /// On NodeClaims and Nodes.
    TERMINATION = "karpenter.sh/termination";
    /// On EC2NodeClasses.
    AWS_TERMINATION = "karpenter.k8s.aws/termination";
    /// On AKSNodeClasses.
    AZURE_TERMINATION = "karpenter.azure.com/termination";
}

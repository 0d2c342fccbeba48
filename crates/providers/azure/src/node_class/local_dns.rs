//! Whether nodes of a NodeClass get a DNS cache.
//!
//! Where the class leaves it open, the cluster decides: once it got the cache it keeps it.

use std::time::Duration;

use api::azure::{AKSNodeClass, LocalDnsMode, LocalDnsState};
use api::conditions::Conditions;
use api::names::conditions::azure as conditions;
use api::names::reasons::azure as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

use super::Looked;
use super::version::numbers;

/// The first version of Kubernetes whose nodes get the cache without being told to: a version that does not exist,
/// as AKS has not switched it on yet.
const SINCE: [u32; 3] = [1, 99, 0];
/// When it is looked again, where the cluster decides.
const AGAIN: Again = Again::After(Duration::from_mins(5));

/// What decides, of what is known already.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The network plugin.
    pub network_plugin: &'a str,
    /// Who enforces network policies.
    pub network_policy: &'a str,
    /// Whether nodes run Ubuntu 20.04, which has no such cache.
    pub is_ubuntu_2004: bool,
}

/// What must be known of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nothing: it is decided.
    Decided(LocalDnsState),
    /// Whether it has a cache of its own, and if `policies`, whether anybody wrote network policies.
    Ask {
        /// Whether policies matter.
        policies: bool,
    },
}

/// What must be known of the cluster before it is decided.
pub fn question(class: &AKSNodeClass, circumstances: &Circumstances<'_>) -> Question {
    let mode = class.spec.local_dns.as_ref().map(|dns| dns.mode);
    match mode {
        None | Some(LocalDnsMode::Disabled) => return Question::Decided(LocalDnsState::Disabled),
        Some(LocalDnsMode::Required) => return Question::Decided(LocalDnsState::Enabled),
        Some(LocalDnsMode::Preferred) => {}
    }
    let status = class.status.as_ref();
    if status.and_then(|status| status.local_dns_state) == Some(LocalDnsState::Enabled) {
        return Question::Decided(LocalDnsState::Enabled);
    }
    let version = status.and_then(|status| numbers(&status.kubernetes_version));
    let is_open = version.is_some_and(|version| version >= SINCE)
        && circumstances.network_plugin != "none"
        && !circumstances.is_ubuntu_2004;
    if !is_open {
        return Question::Decided(LocalDnsState::Disabled);
    }
    let policy = circumstances.network_policy;
    let policies = ["cilium", "calico"].iter().any(|each| policy.eq_ignore_ascii_case(each));
    Question::Ask { policies }
}

/// What the cluster has that does not go together with the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Obstacles {
    /// Network policies besides the one that AKS itself has.
    pub policies: bool,
    /// A DNS cache of its own.
    pub node_local_dns: bool,
}

/// Whether a list of network policies has one besides that of AKS: as namespace and name.
pub fn has_own_policy<'a>(mut policies: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    policies.any(|policy| policy != ("kube-system", "konnectivity-agent"))
}

/// Writes down whether nodes get the cache.
pub fn apply(class: &mut AKSNodeClass, answer: Result<LocalDnsState, String>, now: Timestamp) -> Looked {
    let is_open = class.spec.local_dns.as_ref().is_some_and(|dns| dns.mode == LocalDnsMode::Preferred);
    match answer {
        Ok(state) => {
            class.status.get_or_insert_default().local_dns_state = Some(state);
            Conditions::of(class, now).set_true(conditions::LOCAL_DNS_READY);
            Looked::again(if is_open { AGAIN } else { Again::No })
        }
        Err(error) => {
            let error = format!("checking whether the cluster can have a DNS cache on its nodes, {error}");
            let reason = reasons::CHECKING_CLUSTER_REQUIREMENTS_FAILED;
            let mut all = Conditions::of(class, now);
            all.set(conditions::LOCAL_DNS_READY, ConditionStatus::False, reason, &error);
            Looked::failed(error)
        }
    }
}

/// What obstacles decide.
pub const fn decided(obstacles: Obstacles) -> LocalDnsState {
    if obstacles.policies || obstacles.node_local_dns {
        LocalDnsState::Disabled
    } else {
        LocalDnsState::Enabled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_class::tests::{NOW, class, said};

    const USUAL: Circumstances<'static> =
        Circumstances { network_plugin: "azure", network_policy: "cilium", is_ubuntu_2004: false };
    const DISABLED: Question = Question::Decided(LocalDnsState::Disabled);
    const ENABLED: Question = Question::Decided(LocalDnsState::Enabled);

    fn of(mode: &str, version: &str, state: Option<&str>) -> AKSNodeClass {
        class(
            &json!({"localDNS": {"mode": mode, "vnetDNSOverrides": [], "kubeDNSOverrides": []}}),
            &json!({"kubernetesVersion": version, "localDNSState": state}),
        )
    }

    // azure.md 15.1 step 5, 25.7
    #[test]
    fn what_the_class_says_counts_whatever_the_cluster_has() {
        assert_eq!(question(&class(&json!({}), &json!({})), &USUAL), DISABLED);
        assert_eq!(question(&of("Disabled", "1.99.0", Some("Enabled")), &USUAL), DISABLED);
        assert_eq!(question(&of("Required", "1.30.0", None), &USUAL), ENABLED);
    }

    // azure.md 25.7: sticky Enabled
    #[test]
    fn where_the_cluster_decides_a_cache_stays() {
        assert_eq!(question(&of("Preferred", "1.30.0", Some("Enabled")), &USUAL), ENABLED);
        assert_eq!(
            question(&of("Preferred", "1.99.0", Some("Disabled")), &USUAL),
            Question::Ask { policies: true }
        );
    }

    // azure.md 15.1 step 5: version, plugin and Ubuntu 20.04
    #[test]
    fn the_version_the_plugin_and_the_image_can_rule_it_out() {
        let preferred = of("Preferred", "1.99.0", None);
        assert_eq!(question(&preferred, &USUAL), Question::Ask { policies: true });
        assert_eq!(question(&of("Preferred", "1.98.9", None), &USUAL), DISABLED);
        assert_eq!(question(&of("Preferred", "", None), &USUAL), DISABLED);
        assert_eq!(question(&preferred, &Circumstances { network_plugin: "none", ..USUAL }), DISABLED);
        assert_eq!(question(&preferred, &Circumstances { is_ubuntu_2004: true, ..USUAL }), DISABLED);
    }

    // azure.md 25.7: NPM policy type ignored
    #[test]
    fn policies_matter_where_cilium_or_calico_enforces_them() {
        let preferred = of("Preferred", "1.100.0", None);
        for (policy, matter) in [("Cilium", true), ("CALICO", true), ("azure", false), ("", false)] {
            let circumstances = Circumstances { network_policy: policy, ..USUAL };
            assert_eq!(question(&preferred, &circumstances), Question::Ask { policies: matter }, "{policy}");
        }
    }

    // azure.md 25.7: konnectivity allow-list
    #[test]
    fn only_the_policy_of_aks_itself_is_no_obstacle() {
        assert!(!has_own_policy([("kube-system", "konnectivity-agent")].into_iter()));
        assert!(has_own_policy([("default", "konnectivity-agent")].into_iter()));
        assert!(has_own_policy([("kube-system", "konnectivity-agent"), ("kube-system", "own")].into_iter()));
        assert_eq!(decided(Obstacles::default()), LocalDnsState::Enabled);
        assert_eq!(decided(Obstacles { policies: true, node_local_dns: false }), LocalDnsState::Disabled);
        assert_eq!(decided(Obstacles { policies: false, node_local_dns: true }), LocalDnsState::Disabled);
    }

    // azure.md 15.1 step 5, 25.7: transient errors
    #[test]
    fn what_nobody_could_find_out_is_said_and_leaves_the_state() {
        let mut class = of("Preferred", "1.99.0", None);
        let looked = apply(&mut class, Err("no answer".to_owned()), NOW);
        assert!(looked.error.is_some());
        let expected = (ConditionStatus::False, "CheckingClusterRequirementsFailed");
        assert_eq!(said(&class, "LocalDNSReady"), expected);
        assert_eq!(class.status.as_ref().unwrap().local_dns_state, None);
        let looked = apply(&mut class, Ok(LocalDnsState::Enabled), NOW);
        assert_eq!(looked, Looked::again(Again::After(Duration::from_mins(5))));
        assert_eq!(said(&class, "LocalDNSReady").0, ConditionStatus::True);
        let mut required = of("Required", "1.30.0", None);
        assert_eq!(apply(&mut required, Ok(LocalDnsState::Enabled), NOW), Looked::again(Again::No));
    }
}

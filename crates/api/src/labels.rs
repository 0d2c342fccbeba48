//! Which labels Karpenter knows, which nobody may set, and which mean the same. Entry: [`LabelSets`].
//!
//! The sets differ by provider, and a provider's catalogue may add to them when the process starts. They are
//! a value that is passed to whoever validates or schedules.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::names::labels::{self, aliases};
use crate::names::{resources, values};
use crate::provider::Provider;

/// What is known about labels and resources with one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSets {
    well_known: BTreeSet<Cow<'static, str>>,
    known_values: BTreeMap<&'static str, BTreeSet<&'static str>>,
    restricted_domains: BTreeSet<&'static str>,
    restricted: BTreeSet<&'static str>,
    normalized_keys: BTreeMap<&'static str, &'static str>,
    normalized_values: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
    well_known_resources: BTreeSet<&'static str>,
    reservation_id: Option<&'static str>,
    reserved_capacity: BTreeSet<&'static str>,
}

/// A label that users may not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "using label {key} is not allowed as it might interfere with the internal provisioning logic; specify a \
     well known label: [{}], or a custom label that does not use a restricted domain: [{}]",
    .well_known.join(" "),
    .restricted_domains.join(" ")
)]
pub struct RestrictedLabel {
    /// The label.
    pub key: String,
    /// What could be used instead.
    pub well_known: Vec<String>,
    /// What must not be used.
    pub restricted_domains: Vec<String>,
}

impl LabelSets {
    /// The sets of the core, without any provider.
    pub fn core() -> Self {
        Self {
            well_known: [
                labels::NODEPOOL,
                labels::ZONE,
                labels::REGION,
                labels::INSTANCE_TYPE,
                labels::ARCH,
                labels::OS,
                labels::CAPACITY_TYPE,
                labels::WINDOWS_BUILD,
            ]
            .map(Cow::Borrowed)
            .into(),
            known_values: [(labels::CAPACITY_TYPE, values::capacity_type::ALL.iter().copied().collect())]
                .into(),
            restricted_domains: [labels::DOMAIN].into(),
            restricted: [labels::HOSTNAME].into(),
            normalized_keys: [
                (aliases::BETA_ZONE, labels::ZONE),
                (aliases::BETA_REGION, labels::REGION),
                (aliases::BETA_ARCH, labels::ARCH),
                (aliases::BETA_OS, labels::OS),
                (aliases::BETA_INSTANCE_TYPE, labels::INSTANCE_TYPE),
            ]
            .into(),
            normalized_values: BTreeMap::new(),
            well_known_resources: [
                resources::CPU,
                resources::MEMORY,
                resources::EPHEMERAL_STORAGE,
                resources::PODS,
            ]
            .into(),
            reservation_id: None,
            reserved_capacity: BTreeSet::new(),
        }
    }

    /// The sets of the core and a provider.
    pub fn for_provider(provider: Provider) -> Self {
        let mut sets = Self::core().with_well_known(provider.well_known_labels());
        match provider {
            Provider::Kwok => {
                sets.restricted_domains.insert(labels::kwok::DOMAIN);
            }
            Provider::Aws => sets.add_aws(),
            Provider::Azure => sets.add_azure(),
        }
        sets
    }

    /// The same sets with more well-known labels, such as those that a catalogue of instance types uses.
    #[must_use]
    pub fn with_well_known<K: Into<Cow<'static, str>>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.well_known.extend(keys.into_iter().map(Into::into));
        self
    }

    fn add_aws(&mut self) {
        use labels::aws;

        self.restricted_domains.insert(aws::DOMAIN);
        self.known_values.insert(aws::INSTANCE_TENANCY, ["default", "dedicated"].into());
        self.normalized_keys.insert(aliases::EBS_ZONE, labels::ZONE);
        self.well_known_resources.extend([
            resources::AWS_POD_ENI,
            resources::AWS_NEURON,
            resources::AWS_NEURON_CORE,
            resources::HABANA_GAUDI,
            resources::AWS_EFA,
        ]);
        self.reservation_id = Some(aws::CAPACITY_RESERVATION_ID);
        self.reserved_capacity = [aws::CAPACITY_RESERVATION_ID, aws::CAPACITY_RESERVATION_TYPE].into();
    }

    fn add_azure(&mut self) {
        use labels::azure;

        // The domain of AKS is not here: users may set labels in it that no instance type has.
        self.restricted_domains.insert(azure::DOMAIN);
        let switch = ["true", "false"];
        let priority = ["regular", "spot"];
        self.known_values.extend([
            // Azure has no reserved capacity.
            (labels::CAPACITY_TYPE, [values::capacity_type::ON_DEMAND, values::capacity_type::SPOT].into()),
            (azure::SKU_NETWORKING_ACCELERATED, switch.into()),
            (azure::SKU_STORAGE_PREMIUM_CAPABLE, switch.into()),
            (azure::SKU_STORAGE_ULTRA_SSD, switch.into()),
            (azure::SKU_GPU_MANUFACTURER, ["nvidia", "amd"].into()),
            (azure::PLACEMENT_SCOPE, ["zonal", "regional"].into()),
            (azure::AKS_MODE, ["system", "user"].into()),
            (azure::AKS_SCALE_SET_PRIORITY, priority.into()),
            (azure::AKS_PRIORITY, priority.into()),
            (azure::AKS_OS_SKU, ["Ubuntu", "AzureLinux"].into()),
            (azure::AKS_FIPS_ENABLED, ["true"].into()),
        ]);
        self.normalized_keys.insert(aliases::AZURE_DISK_ZONE, labels::ZONE);
        // The disk driver writes an empty zone for regional disks.
        self.normalized_values.insert(labels::ZONE, [("", "0")].into());
    }

    /// Whether instance types, nodes or the core have the label.
    pub fn is_well_known(&self, key: &str) -> bool {
        self.well_known.contains(key)
    }

    /// The well-known labels in order.
    pub fn well_known(&self) -> impl Iterator<Item = &str> {
        self.well_known.iter().map(AsRef::as_ref)
    }

    /// The values that a well-known label can have, if there are only a few.
    pub fn known_values(&self, key: &str) -> Option<&BTreeSet<&'static str>> {
        self.known_values.get(key).filter(|_| self.is_well_known(key))
    }

    /// Whether instance types say how much of the resource they have.
    pub fn is_well_known_resource(&self, name: &str) -> bool {
        self.well_known_resources.contains(name)
    }

    /// The label that names a capacity reservation.
    pub fn reservation_id(&self) -> Option<&'static str> {
        self.reservation_id
    }

    /// The labels that only reserved capacity has.
    pub fn reserved_capacity(&self) -> &BTreeSet<&'static str> {
        &self.reserved_capacity
    }

    /// The label that is meant: an alias is replaced, anything else stays.
    pub fn normalize_key<'a>(&self, key: &'a str) -> &'a str {
        self.normalized_keys.get(key).copied().unwrap_or(key)
    }

    /// The value that is meant, for a key that is normalized already.
    pub fn normalize_value<'a>(&self, key: &str, value: &'a str) -> &'a str {
        self.normalized_values.get(key).and_then(|values| values.get(value)).copied().unwrap_or(value)
    }

    /// Fails for a label that users may not set: one in a restricted domain or below it that is not well-known,
    /// or a restricted label. The key is taken as it is, without normalization.
    pub fn check_unrestricted(&self, key: &str) -> Result<(), RestrictedLabel> {
        if self.is_well_known(key) {
            return Ok(());
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let in_restricted_domain = self.restricted_domains.iter().any(|restricted| {
            domain.strip_suffix(restricted).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        if !in_restricted_domain && !self.restricted.contains(key) {
            return Ok(());
        }
        Err(RestrictedLabel {
            key: key.to_owned(),
            well_known: self.well_known().map(ToOwned::to_owned).collect(),
            restricted_domains: self.restricted_domains.iter().map(ToString::to_string).collect(),
        })
    }

    /// The labels that metrics of nodes have for well-known labels: what comes after the domain. Two labels
    /// that differ in their domain only become one.
    pub fn metric_labels(&self) -> BTreeSet<String> {
        self.well_known()
            .filter_map(|key| key.split_once('/'))
            .filter(|(_, name)| !name.contains('/'))
            .map(|(_, name)| name.to_lowercase().replace('-', "_"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check_restricted(sets: &LabelSets, keys: &[&str]) {
        for key in keys {
            assert!(sets.check_unrestricted(key).is_err(), "{key} should be restricted");
        }
    }

    #[track_caller]
    fn check_allowed(sets: &LabelSets, keys: &[&str]) {
        for key in keys {
            assert_eq!(sets.check_unrestricted(key), Ok(()));
        }
    }

    #[test]
    fn a_restricted_domain_covers_its_subdomains_but_not_its_suffixes() {
        let sets = LabelSets::core();
        check_restricted(&sets, &["karpenter.sh/registered", "a.b.karpenter.sh/x", "kubernetes.io/hostname"]);
        check_restricted(&sets, &["karpenter.sh/a/b", "karpenter.sh/"]);
        check_allowed(
            &sets,
            &["foo-karpenter.sh/x", "karpenter.sh", "karpenter.sh.example.com/x", "", "/", "a"],
        );
    }

    #[test]
    fn kubernetes_domains_are_not_restricted() {
        check_allowed(&LabelSets::core(), &["kubernetes.io/x", "node.kubernetes.io/x", "k8s.io/x"]);
    }

    #[test]
    fn well_known_labels_are_never_restricted() {
        for provider in Provider::ALL {
            let sets = LabelSets::for_provider(provider);
            for key in sets.well_known() {
                assert_eq!(sets.check_unrestricted(key), Ok(()), "{provider}");
            }
        }
    }

    #[test]
    fn a_provider_restricts_its_own_domain_only() {
        let key = "karpenter.k8s.aws/nonsense";
        check_restricted(&LabelSets::for_provider(Provider::Aws), &[key, "karpenter.k8s.aws/ec2nodeclass"]);
        check_allowed(&LabelSets::for_provider(Provider::Kwok), &[key]);
        let azure = LabelSets::for_provider(Provider::Azure);
        check_restricted(&azure, &["karpenter.azure.com/sku-hyperv-generation"]);
        check_allowed(&azure, &["kubernetes.azure.com/ebpf-dataplane", "agentpool"]);
    }

    #[test]
    fn the_error_lists_what_could_be_used_instead() {
        let error = LabelSets::for_provider(Provider::Kwok).check_unrestricted("karpenter.sh/x").unwrap_err();
        expect![[r"using label karpenter.sh/x is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh]"]]
            .assert_eq(&error.to_string());
    }

    #[test]
    fn aliases_are_replaced() {
        let core = LabelSets::core();
        for (alias, key) in [
            ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
            ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
            ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
            ("beta.kubernetes.io/os", "kubernetes.io/os"),
            ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
            ("topology.ebs.csi.aws.com/zone", "topology.ebs.csi.aws.com/zone"),
            ("example.com/x", "example.com/x"),
        ] {
            assert_eq!(core.normalize_key(alias), key);
        }
        let zone = "topology.kubernetes.io/zone";
        let aws = LabelSets::for_provider(Provider::Aws);
        assert_eq!(aws.normalize_key("topology.ebs.csi.aws.com/zone"), zone);
        let azure = LabelSets::for_provider(Provider::Azure);
        assert_eq!(azure.normalize_key("topology.disk.csi.azure.com/zone"), zone);
        assert_eq!(azure.normalize_value(zone, ""), "0");
        assert_eq!(azure.normalize_value(zone, "westeurope-1"), "westeurope-1");
        assert_eq!(azure.normalize_value("example.com/x", ""), "");
        assert_eq!(aws.normalize_value(zone, ""), "");
    }

    #[test]
    fn known_values_differ_by_provider() {
        let reserved = |provider| {
            let sets = LabelSets::for_provider(provider);
            sets.known_values("karpenter.sh/capacity-type").is_some_and(|values| values.contains("reserved"))
        };
        assert!(reserved(Provider::Kwok) && reserved(Provider::Aws) && !reserved(Provider::Azure));
        let aws = LabelSets::for_provider(Provider::Aws);
        assert!(aws.known_values("karpenter.k8s.aws/instance-tenancy").is_some());
        assert_eq!(aws.known_values("topology.kubernetes.io/zone"), None);
    }

    #[test]
    fn a_catalogue_adds_well_known_labels() {
        let sets =
            LabelSets::for_provider(Provider::Kwok).with_well_known(["karpenter.kwok.sh/rack".to_owned()]);
        check_allowed(&sets, &["karpenter.kwok.sh/rack"]);
        check_restricted(&sets, &["karpenter.kwok.sh/row"]);
    }

    #[track_caller]
    fn check_set<T: AsRef<str>>(actual: impl IntoIterator<Item = T>, expected: &Expect) {
        let lines: Vec<String> = actual.into_iter().map(|line| line.as_ref().to_owned()).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn metrics_of_nodes_have_a_label_per_well_known_label() {
        check_set(
            LabelSets::for_provider(Provider::Kwok).metric_labels(),
            &expect![[r"
                arch
                capacity_type
                instance_cpu
                instance_family
                instance_memory
                instance_size
                instance_type
                nodepool
                os
                region
                windows_build
                zone"]],
        );
        // `sku-cpu` and `sku-memory` exist in two domains.
        let azure = LabelSets::for_provider(Provider::Azure);
        assert_eq!(azure.well_known().count(), 30);
        assert_eq!(azure.metric_labels().len(), 28);
    }

    #[test]
    fn aws_knows_what_its_instance_types_have() {
        let sets = LabelSets::for_provider(Provider::Aws);
        check_set(
            sets.well_known(),
            &expect![[r"
            karpenter.k8s.aws/capacity-reservation-id
            karpenter.k8s.aws/capacity-reservation-interruptible
            karpenter.k8s.aws/capacity-reservation-type
            karpenter.k8s.aws/instance-accelerator-count
            karpenter.k8s.aws/instance-accelerator-manufacturer
            karpenter.k8s.aws/instance-accelerator-name
            karpenter.k8s.aws/instance-capability-flex
            karpenter.k8s.aws/instance-category
            karpenter.k8s.aws/instance-cpu
            karpenter.k8s.aws/instance-cpu-manufacturer
            karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz
            karpenter.k8s.aws/instance-ebs-bandwidth
            karpenter.k8s.aws/instance-encryption-in-transit-supported
            karpenter.k8s.aws/instance-family
            karpenter.k8s.aws/instance-generation
            karpenter.k8s.aws/instance-gpu-count
            karpenter.k8s.aws/instance-gpu-manufacturer
            karpenter.k8s.aws/instance-gpu-memory
            karpenter.k8s.aws/instance-gpu-name
            karpenter.k8s.aws/instance-hypervisor
            karpenter.k8s.aws/instance-local-nvme
            karpenter.k8s.aws/instance-memory
            karpenter.k8s.aws/instance-network-bandwidth
            karpenter.k8s.aws/instance-size
            karpenter.k8s.aws/instance-tenancy
            karpenter.k8s.aws/nitro-sandbox
            karpenter.k8s.aws/placement-group-id
            karpenter.k8s.aws/placement-group-partition
            karpenter.sh/capacity-type
            karpenter.sh/nodepool
            kubernetes.io/arch
            kubernetes.io/os
            node.kubernetes.io/instance-type
            node.kubernetes.io/windows-build
            topology.k8s.aws/zone-id
            topology.kubernetes.io/region
            topology.kubernetes.io/zone"]],
        );
        check_set(
            &sets.well_known_resources,
            &expect![[r"
            aws.amazon.com/neuron
            aws.amazon.com/neuroncore
            cpu
            ephemeral-storage
            habana.ai/gaudi
            memory
            pods
            vpc.amazonaws.com/efa
            vpc.amazonaws.com/pod-eni"]],
        );
        assert_eq!(sets.reservation_id(), Some("karpenter.k8s.aws/capacity-reservation-id"));
        assert_eq!(sets.reserved_capacity().len(), 2);
    }
}

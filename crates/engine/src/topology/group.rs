//! One topology rule and how many pods it counts in each domain.

use std::sync::Arc;

use crate::intern::{KeyId, ValueId};
use crate::model::{NamespaceId, PodTerm, Selector, TolerationsId};
use crate::topology::HostId;
use crate::universe::{RequirementId, SetId, Universe};

/// What a rule asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Few pods in the same domain.
    #[default]
    Spread,
    /// A domain with such pods.
    Affinity,
    /// A domain without such pods.
    AntiAffinity,
}

impl Rule {
    /// The rule's name in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spread => "topology spread",
            Self::Affinity => "pod affinity",
            Self::AntiAffinity => "pod anti-affinity",
        }
    }
}

/// What makes two rules the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    pub(crate) rule: Rule,
    pub(crate) key: KeyId,
    /// Sorted.
    pub(crate) namespaces: Vec<NamespaceId>,
    pub(crate) selector: Option<Selector>,
    pub(crate) max_skew: i32,
    pub(crate) min_domains: Option<i32>,
    pub(crate) filter: Option<Filter>,
}

impl GroupKey {
    pub(crate) fn of_term(rule: Rule, term: &PodTerm) -> Self {
        Self {
            rule,
            key: term.key,
            namespaces: term.namespaces.clone(),
            selector: term.selector.clone(),
            max_skew: i32::MAX,
            min_domains: None,
            filter: None,
        }
    }
}

/// Which nodes count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// One of these must be met; none at all means that the pod's node rules do not matter.
    pub(crate) alternatives: Vec<SetId>,
    /// Taints must be tolerated by these; absent means that taints do not matter.
    pub(crate) tolerations: Option<TolerationsId>,
}

/// Which domains a rule leaves.
pub(crate) enum Allowed {
    /// None.
    None,
    /// These.
    Values(Vec<ValueId>),
}

/// A rule and its counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Shared with the failures that speak of it.
    pub(crate) key: Arc<GroupKey>,
    /// Whether owners are counted and selected pods obey.
    pub(crate) inverse: bool,
    hostname: bool,
    /// Known domains in the order of their names.
    domains: Vec<Domain>,
    /// Where a domain is in `domains`, by value.
    places: Vec<u32>,
    /// Pods on each host, for the host name.
    hosts: Vec<i32>,
    /// Domains or hosts with at least one pod.
    occupied: usize,
    /// Changes with every count.
    version: u32,
    /// The smallest count for what a pod asks, as of a version.
    least: Option<(u32, Option<RequirementId>, i32)>,
}

#[derive(Clone, Debug)]
struct Domain {
    value: ValueId,
    count: i32,
    /// How many nodes make it a domain; for ever if more than nodes do.
    makers: u32,
}

/// What makes a value a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// A node that may go.
    Node,
    /// Anything else.
    Lasting,
}

/// Makers of a domain that does not depend on nodes.
const LASTING: u32 = u32::MAX;

const UNKNOWN: u32 = u32::MAX;

impl Group {
    pub(crate) fn new(key: Arc<GroupKey>, inverse: bool, hostname: KeyId) -> Self {
        Self { hostname: key.key == hostname, key, inverse, ..Self::default() }
    }

    pub(crate) fn is_hostname(&self) -> bool {
        self.hostname
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn selects(&self, namespace: NamespaceId, labels: &[(KeyId, ValueId)]) -> bool {
        self.key.namespaces.contains(&namespace)
            && self.key.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether pods that ran before anything was decided are counted. A rule without a selector selects no pod, yet
    /// every pod of its namespaces was counted at first.
    pub(crate) fn counts_running(&self, namespace: NamespaceId, labels: &[(KeyId, ValueId)]) -> bool {
        self.key.namespaces.contains(&namespace)
            && self.key.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    }

    /// How many domains or hosts have such pods.
    pub(crate) fn occupied(&self) -> usize {
        self.occupied
    }

    /// The domains and their counts, in the order of their names.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (ValueId, i32)> {
        self.domains.iter().map(|domain| (domain.value, domain.count))
    }

    /// Makes a value a domain.
    pub(crate) fn know(&mut self, value: ValueId, maker: Maker, universe: &Universe) {
        let position = self.place(value).unwrap_or_else(|| self.insert(value, universe));
        let makers = &mut self.domains[position].makers;
        *makers = match maker {
            Maker::Lasting => LASTING,
            Maker::Node => makers.saturating_add(1),
        };
    }

    /// A node that makes a value a domain is gone. Returns whether it counted.
    pub(crate) fn lose_maker(&mut self, value: ValueId) -> bool {
        let Some(position) = self.place(value) else { return false };
        let domain = &mut self.domains[position];
        if domain.makers == LASTING || domain.makers == 0 {
            return false;
        }
        domain.makers -= 1;
        self.drop_if_unmade(position);
        true
    }

    /// A node that makes a value a domain is back.
    pub(crate) fn gain_maker(&mut self, value: ValueId, universe: &Universe) {
        self.know(value, Maker::Node, universe);
    }

    /// A value is a domain as long as something makes it one or pods are counted in it.
    fn drop_if_unmade(&mut self, position: usize) {
        let Domain { value, count, makers } = self.domains[position];
        if makers == 0 && count == 0 {
            self.domains.remove(position);
            self.places[value.index()] = UNKNOWN;
            self.number_places();
            self.version += 1;
        }
    }

    fn number_places(&mut self) {
        for (position, domain) in self.domains.iter().enumerate() {
            self.places[domain.value.index()] = u32::try_from(position).expect("domains are few");
        }
    }

    fn insert(&mut self, value: ValueId, universe: &Universe) -> usize {
        let values = universe.values(self.key.key);
        let name = values.name(value);
        let position = self.domains.partition_point(|domain| values.name(domain.value) < name);
        self.domains.insert(position, Domain { value, count: 0, makers: 0 });
        if self.places.len() <= value.index() {
            self.places.resize(value.index() + 1, UNKNOWN);
        }
        self.number_places();
        self.version += 1;
        position
    }

    fn place(&self, value: ValueId) -> Option<usize> {
        self.places.get(value.index()).filter(|place| **place != UNKNOWN).map(|place| *place as usize)
    }

    /// Counts pods in a domain; fewer if the number is negative.
    pub(crate) fn add(&mut self, value: ValueId, pods: i32, universe: &Universe) {
        let place = self.place(value).unwrap_or_else(|| self.insert(value, universe));
        change(&mut self.domains[place].count, &mut self.occupied, pods);
        self.version += 1;
        self.drop_if_unmade(place);
    }

    /// Counts pods on a host; fewer if the number is negative.
    pub(crate) fn add_hosts(&mut self, host: HostId, pods: i32) {
        if self.hosts.len() <= host.index() {
            self.hosts.resize(host.index() + 1, 0);
        }
        change(&mut self.hosts[host.index()], &mut self.occupied, pods);
        self.version += 1;
    }

    /// Whether a pod may go to a host. A new host can always be made, so the emptiest has no pods.
    ///
    /// `admits` says which hosts the pod itself asks for; absent means all.
    pub(crate) fn allows_host(
        &self,
        host: HostId,
        own: bool,
        admits: Option<&dyn Fn(HostId) -> bool>,
    ) -> bool {
        let count = self.hosts.get(host.index()).copied().unwrap_or(0);
        match self.key.rule {
            Rule::Spread => count.saturating_add(i32::from(own)) <= self.key.max_skew,
            Rule::Affinity => {
                admits.is_none_or(|admits| admits(host)) && (count > 0 || (own && !self.has_company(admits)))
            }
            Rule::AntiAffinity => count == 0,
        }
    }

    /// Whether there are pods on any host that is asked for.
    fn has_company(&self, admits: Option<&dyn Fn(HostId) -> bool>) -> bool {
        let Some(admits) = admits else { return self.occupied > 0 };
        let mut occupied = self.hosts.iter().enumerate().filter(|(_, count)| **count > 0);
        occupied.any(|(host, _)| admits(HostId::at(host)))
    }

    /// The domains a pod may go to.
    pub(crate) fn allowed(
        &mut self,
        pod: Option<RequirementId>,
        node: Option<RequirementId>,
        own: bool,
        universe: &Universe,
    ) -> Allowed {
        let values = match self.key.rule {
            Rule::Spread => self.spread(pod, node, own, universe).into_iter().collect(),
            Rule::Affinity => self.near(pod, node, own, universe),
            Rule::AntiAffinity => self.away(pod, node, universe),
        };
        if values.is_empty() { Allowed::None } else { Allowed::Values(values) }
    }

    /// All domains that the rule leaves open to a pod, wherever it is tried.
    pub(crate) fn open_domains(
        &self,
        pod: Option<RequirementId>,
        own: bool,
        universe: &Universe,
    ) -> Vec<ValueId> {
        let asked = || self.domains.iter().filter(|domain| self.admits(pod, domain.value, universe));
        let is_first = own && self.key.rule == Rule::Affinity && asked().all(|domain| domain.count == 0);
        let least = match asked().map(|domain| domain.count).min() {
            Some(least)
                if self
                    .key
                    .min_domains
                    .is_none_or(|min| asked().count() >= usize::try_from(min).unwrap_or(0)) =>
            {
                least
            }
            _ => 0,
        };
        let is_open = |domain: &&Domain| match self.key.rule {
            Rule::Spread => {
                domain.count.saturating_add(i32::from(own)).saturating_sub(least) <= self.key.max_skew
            }
            Rule::Affinity => domain.count > 0 || is_first,
            Rule::AntiAffinity => domain.count == 0,
        };
        asked().filter(is_open).map(|domain| domain.value).collect()
    }

    /// The emptiest domain of the node that does not exceed the skew.
    fn spread(
        &mut self,
        pod: Option<RequirementId>,
        node: Option<RequirementId>,
        own: bool,
        universe: &Universe,
    ) -> Option<ValueId> {
        let least = self.least(pod, universe);
        let fits = |domain: &&Domain| {
            domain.count.saturating_add(i32::from(own)).saturating_sub(least) <= self.key.max_skew
        };
        let chosen = match node.and_then(|id| universe.get(id).members()) {
            Some(values) => values
                .iter()
                .filter_map(|value| self.place(*value))
                .map(|place| (place, &self.domains[place]))
                .filter(|(_, domain)| fits(domain))
                .min_by_key(|(place, domain)| (domain.count, *place))
                .map(|(_, domain)| domain),
            None => self
                .domains
                .iter()
                .filter(|domain| self.admits(node, domain.value, universe))
                .filter(fits)
                .min_by_key(|domain| domain.count),
        };
        chosen.map(|domain| domain.value)
    }

    /// The smallest count among the domains that the pod could go to.
    fn least(&mut self, pod: Option<RequirementId>, universe: &Universe) -> i32 {
        if let Some((version, for_pod, least)) = self.least
            && (version, for_pod) == (self.version, pod)
        {
            return least;
        }
        let mut open = 0;
        let mut least = i32::MAX;
        for domain in self.domains.iter().filter(|domain| self.admits(pod, domain.value, universe)) {
            open += 1;
            least = least.min(domain.count);
        }
        if self.key.min_domains.is_some_and(|min| open < min) {
            least = 0;
        }
        self.least = Some((self.version, pod, least));
        least
    }

    /// Domains with such pods; a pod that is its own company may start anywhere.
    fn near(
        &self,
        pod: Option<RequirementId>,
        node: Option<RequirementId>,
        own: bool,
        universe: &Universe,
    ) -> Vec<ValueId> {
        let both = |domain: &&Domain| {
            self.admits(pod, domain.value, universe) && self.admits(node, domain.value, universe)
        };
        let company: Vec<ValueId> = self
            .domains
            .iter()
            .filter(|domain| domain.count > 0)
            .filter(both)
            .map(|domain| domain.value)
            .collect();
        if !company.is_empty() || !own {
            return company;
        }
        let reachable =
            self.domains.iter().any(|domain| domain.count > 0 && self.admits(pod, domain.value, universe));
        if reachable {
            return company;
        }
        let here = self.domains.iter().find(both);
        let anywhere = self.domains.iter().find(|domain| self.admits(pod, domain.value, universe));
        here.into_iter().chain(anywhere).map(|domain| domain.value).collect()
    }

    /// Domains without such pods.
    fn away(
        &self,
        pod: Option<RequirementId>,
        node: Option<RequirementId>,
        universe: &Universe,
    ) -> Vec<ValueId> {
        self.domains
            .iter()
            .filter(|domain| domain.count == 0)
            .filter(|domain| {
                self.admits(pod, domain.value, universe) && self.admits(node, domain.value, universe)
            })
            .map(|domain| domain.value)
            .collect()
    }

    fn admits(&self, requirement: Option<RequirementId>, value: ValueId, universe: &Universe) -> bool {
        requirement.is_none_or(|id| universe.get(id).has(value, universe.values(self.key.key)))
    }
}

fn change(count: &mut i32, occupied: &mut usize, pods: i32) {
    *occupied -= usize::from(*count > 0);
    *count += pods;
    *occupied += usize::from(*count > 0);
}

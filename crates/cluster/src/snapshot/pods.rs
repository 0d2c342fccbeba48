//! Pods as the engine's classes, and what running pods take of their node.

use std::net::IpAddr;

use engine::model::{HostPort, LabelsId, NamespaceId, PodClass, PodTerm, Spread, TolerationsId, Volume};
use engine::resources::Amounts;
use engine::universe::SetId;

use super::Builder;
use crate::objects::Pod;
use crate::objects::pod::{NodeAffinity, PodAffinity, PodAffinityTerm, PreferredPodTerm, TopologySpread};
use crate::objects::selector::{LabelExpression, LabelSelector};
use crate::reason::Reason;
use crate::requests;

/// What a running pod takes of its node, and whom it keeps away.
pub(super) struct Usage {
    pub(super) namespace: NamespaceId,
    pub(super) labels: LabelsId,
    pub(super) requests: Amounts,
    pub(super) ports: Vec<HostPort>,
    pub(super) volumes: Vec<Volume>,
    pub(super) tolerations: TolerationsId,
    pub(super) keeps_away: Vec<PodTerm>,
}

impl Builder<'_> {
    /// Everything about a pod that matters to where it can run.
    pub(super) fn class(&mut self, pod: &Pod) -> Result<PodClass, Reason> {
        let spec = &pod.spec;
        let namespace = self.tables.namespace(pod.metadata.namespace());
        let affinity = spec.affinity.as_deref();
        let (near, wished_near) = pod_rules(affinity.and_then(|affinity| affinity.pod_affinity.as_ref()));
        let (apart, wished_apart) =
            pod_rules(affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()));
        let node_affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let (required_terms, preferred_terms) = self.node_terms(node_affinity)?;
        let node_selector = spec.node_selector.iter().map(|(key, value)| (key, &**value));
        Ok(PodClass {
            namespace,
            labels: self.tables.labels(&pod.metadata.labels)?,
            requests: self.tables.requests(&requests::of_pod(pod))?,
            tolerations: self.tables.tolerations(&spec.tolerations),
            node_selector: self.tables.node_labels(node_selector)?,
            required_terms,
            preferred_terms,
            spreads: self.spreads(pod)?,
            affinities: self.pod_terms(pod, near)?,
            preferred_affinities: self.weighted_terms(pod, wished_near)?,
            anti_affinities: self.pod_terms(pod, apart)?,
            preferred_anti_affinities: self.weighted_terms(pod, wished_apart)?,
            ports: host_ports(pod)?,
            volume_terms: self.volume_terms(pod)?,
            volumes: self.attached(pod)?,
            needs_devices: needs_devices(pod),
        })
    }

    /// What a running pod takes of its node. What cannot be understood is reported and left out.
    pub(super) fn usage(&mut self, pod: &Pod) -> Usage {
        let namespace = self.tables.namespace(pod.metadata.namespace());
        let labels = self.tables.labels(&pod.metadata.labels);
        let requests = self.tables.requests(&requests::of_pod(pod));
        let volumes = self.attached(pod);
        let affinity = pod.spec.affinity.as_ref();
        let (apart, _) = pod_rules(affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()));
        let keeps_away = self.pod_terms(pod, apart);
        Usage {
            namespace,
            labels: self.or_report(pod, labels),
            requests: self.or_report(pod, requests),
            ports: self.or_report(pod, host_ports(pod)),
            volumes: self.or_report(pod, volumes),
            tolerations: self.tables.tolerations(&pod.spec.tolerations),
            keeps_away: self.or_report(pod, keeps_away),
        }
    }

    fn or_report<T: Default>(&mut self, pod: &Pod, result: Result<T, Reason>) -> T {
        result.unwrap_or_else(|reason| {
            self.ignore_pod(pod, reason);
            T::default()
        })
    }

    #[expect(clippy::type_complexity, reason = "the two fields of the class")]
    fn node_terms(
        &mut self,
        affinity: Option<&NodeAffinity>,
    ) -> Result<(Vec<SetId>, Vec<(i32, SetId)>), Reason> {
        const FIELD: &str = "spec.affinity.nodeAffinity";
        let Some(affinity) = affinity else { return Ok((Vec::new(), Vec::new())) };
        let required = affinity.required.iter().flat_map(|selector| &selector.node_selector_terms);
        let required = required.map(|term| self.tables.node_term(&term.match_expressions, FIELD));
        let required = required.collect::<Result<_, _>>()?;
        let preferred = affinity
            .preferred
            .iter()
            .map(|wish| Ok((wish.weight, self.tables.node_term(&wish.preference.match_expressions, FIELD)?)));
        Ok((required, preferred.collect::<Result<_, Reason>>()?))
    }

    /// A pod's own constraints, or those that the scheduler gives to pods without any.
    fn spreads(&mut self, pod: &Pod) -> Result<Vec<Spread>, Reason> {
        let own = &pod.spec.topology_spread_constraints;
        if !own.is_empty() {
            return own.iter().map(|spread| self.spread(pod, spread)).collect();
        }
        let spreads = self.options.scheduler_config.default_spreads.as_slice();
        if spreads.is_empty() {
            return Ok(Vec::new());
        }
        let Some(selector) = self.workloads.selector(pod) else { return Ok(Vec::new()) };
        let with_selector = |spread: &TopologySpread| TopologySpread {
            label_selector: Some(selector.clone()),
            ..spread.clone()
        };
        spreads.iter().map(with_selector).map(|spread| self.spread(pod, &spread)).collect()
    }

    fn spread(&mut self, pod: &Pod, spread: &TopologySpread) -> Result<Spread, Reason> {
        let selector = spread.label_selector.as_ref().map(|selector| with_pod_labels(selector, spread, pod));
        Ok(Spread {
            key: self.tables.node_key(&spread.topology_key)?,
            max_skew: spread.max_skew,
            min_domains: spread.min_domains,
            optional: &*spread.when_unsatisfiable != "DoNotSchedule",
            selector: selector.map(|selector| self.tables.selector(&selector)).transpose()?,
            honor_affinity: spread.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: spread.node_taints_policy.as_deref() == Some("Honor"),
        })
    }

    fn pod_terms(&mut self, pod: &Pod, terms: &[PodAffinityTerm]) -> Result<Vec<PodTerm>, Reason> {
        terms.iter().map(|term| self.pod_term(pod, term)).collect()
    }

    fn weighted_terms(
        &mut self,
        pod: &Pod,
        terms: &[PreferredPodTerm],
    ) -> Result<Vec<(i32, PodTerm)>, Reason> {
        terms.iter().map(|each| Ok((each.weight, self.pod_term(pod, &each.pod_affinity_term)?))).collect()
    }

    fn pod_term(&mut self, pod: &Pod, term: &PodAffinityTerm) -> Result<PodTerm, Reason> {
        let selector = term.label_selector.as_ref();
        Ok(PodTerm {
            key: self.tables.node_key(&term.topology_key)?,
            namespaces: self.namespaces_of(pod, term)?,
            selector: selector.map(|selector| self.tables.selector(selector)).transpose()?,
        })
    }

    /// The namespaces that a term means: the pod's own if it names none.
    fn namespaces_of(&mut self, pod: &Pod, term: &PodAffinityTerm) -> Result<Vec<NamespaceId>, Reason> {
        let mut namespaces: Vec<NamespaceId> =
            term.namespaces.iter().map(|name| self.tables.namespace(name)).collect();
        match &term.namespace_selector {
            None if term.namespaces.is_empty() => {
                namespaces.push(self.tables.namespace(pod.metadata.namespace()));
            }
            None => {}
            Some(selector) if selector.is_valid() => {
                for name in self.namespaces.selected(selector) {
                    namespaces.push(self.tables.namespace(name));
                }
            }
            Some(selector) => {
                let operators = selector.match_expressions.iter().map(|each| &*each.operator);
                return Err(Reason::Field {
                    field: "spec.affinity: namespaceSelector.matchExpressions".to_owned(),
                    value: operators.collect::<Vec<_>>().join(" "),
                    expected: "In and NotIn with values, Exists and DoesNotExist without",
                });
            }
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        Ok(namespaces)
    }

    /// Alternatives for where the volumes of a pod can be attached all together.
    ///
    /// Of the combinations of two volumes' alternatives only those are kept that can be; if none can, all are, and
    /// the pod fits nowhere.
    fn volume_terms(&mut self, pod: &Pod) -> Result<Vec<SetId>, Reason> {
        let mut combined = vec![SetId::EMPTY];
        for volume in &pod.spec.volumes {
            let alternatives = self.volumes.alternatives(pod, volume)?;
            if alternatives.is_empty() {
                continue;
            }
            let mut terms = Vec::with_capacity(alternatives.len());
            for conditions in alternatives {
                let mut requirements = Vec::with_capacity(conditions.len());
                for each in conditions {
                    let field = "node affinity of its volumes";
                    requirements.push(self.tables.requirement_of_text(
                        each.key,
                        each.operator,
                        each.values,
                        field,
                    )?);
                }
                terms.push(self.tables.snapshot.universe.set(requirements));
            }
            let universe = &mut self.tables.snapshot.universe;
            let pairs = combined.iter().flat_map(|a| terms.iter().map(|b| (*a, *b)));
            let mut kept: Vec<(SetId, SetId)> =
                pairs.clone().filter(|(a, b)| universe.intersects(*a, *b)).collect();
            if kept.is_empty() {
                kept = pairs.collect();
            }
            let mut merged = Vec::with_capacity(kept.len());
            for (a, b) in kept {
                let both = universe.intersect(a, b);
                // Volumes of one zone have the same alternatives; without this they would multiply.
                if !merged.contains(&both) {
                    merged.push(both);
                }
            }
            combined = merged;
        }
        Ok(if combined == [SetId::EMPTY] { Vec::new() } else { combined })
    }

    /// The volumes of a pod that a driver attaches. Claims that do not exist do not count.
    fn attached(&mut self, pod: &Pod) -> Result<Vec<Volume>, Reason> {
        let mut volumes = Vec::new();
        for volume in &pod.spec.volumes {
            let Ok(claim) = self.volumes.claim(pod, volume) else { continue };
            let Some(driver) = self.volumes.driver(claim) else { continue };
            let driver = self.tables.driver(driver)?;
            let claim = self.tables.claim(pod.metadata.namespace(), &claim.metadata.name);
            volumes.push(Volume { driver, claim });
        }
        volumes.sort_unstable();
        volumes.dedup();
        Ok(volumes)
    }
}

/// What must hold about pods around, and what would be nice.
fn pod_rules(affinity: Option<&PodAffinity>) -> (&[PodAffinityTerm], &[PreferredPodTerm]) {
    affinity.map_or((&[], &[]), |affinity| (&affinity.required, &affinity.preferred))
}

/// The selector with the pod's values of the labels that a constraint names.
fn with_pod_labels(selector: &LabelSelector, spread: &TopologySpread, pod: &Pod) -> LabelSelector {
    let own = spread.match_label_keys.iter().filter_map(|key| {
        let value = pod.metadata.labels.get(key)?;
        let values = [value.clone()].into_iter().collect();
        Some(LabelExpression { key: key.clone(), operator: "In".into(), values })
    });
    LabelSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: selector.match_expressions.iter().cloned().chain(own).collect(),
    }
}

/// The ports of the host that a pod uses; init containers do not count.
fn host_ports(pod: &Pod) -> Result<Vec<HostPort>, Reason> {
    let ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
    let ports = ports.map(|port| {
        let number = u16::try_from(port.host_port).map_err(|_| Reason::Field {
            field: "spec.containers: hostPort".to_owned(),
            value: port.host_port.to_string(),
            expected: "a port number from 1 to 65535",
        })?;
        let protocol = port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        Ok(HostPort { address: address(&port.host_ip), port: number, protocol: protocol.into() })
    });
    ports.collect()
}

/// The address as everyone writes it; absent for those that mean all.
fn address(text: &str) -> Option<Box<str>> {
    match text.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(address) if address.is_unspecified() => None,
        Ok(address) => Some(address.to_string().into()),
        Err(_) => (!text.is_empty()).then(|| text.into()),
    }
}

fn needs_devices(pod: &Pod) -> bool {
    let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    !pod.spec.resource_claims.is_empty() || containers.any(|container| !container.resources.claims.is_empty())
}

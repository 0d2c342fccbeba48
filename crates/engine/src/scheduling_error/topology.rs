//! Topology rules that cannot be kept, in words.

use super::labels::few;
use super::{Reached, Said, SchedulingErrors};
use crate::intern::ValueId;
use crate::model::{NamespaceId, Selector};
use crate::solve::{Conflict, TopologyFailure};
use crate::topology::{GroupKey, Rule};
use crate::universe::{Incompatible, RequirementId};

const BRIEF: &str = "topology rules not met";

impl SchedulingErrors<'_> {
    pub(super) fn topology(&self, failure: &TopologyFailure) -> Said {
        let key = self.universe().key_name(failure.key);
        if failure.counts.is_empty() && failure.key != self.snapshot().keys.hostname {
            let rule = match failure.rule {
                Rule::Spread => "topologySpreadConstraints",
                Rule::Affinity => "podAffinity",
                Rule::AntiAffinity => "podAntiAffinity",
            };
            return said(
                format!("topologyKey {key} of the pod's {rule} is a label that no node and no NodePool has"),
                "correct the topologyKey, or add the label to the NodePool",
            );
        }
        match failure.rule {
            Rule::Affinity => self.affinity(failure),
            Rule::AntiAffinity => self.anti_affinity(failure),
            Rule::Spread => self.spread(failure),
        }
    }

    /// Who is selected, and in which namespaces.
    fn others(&self, failure: &TopologyFailure) -> String {
        let pods = self.selected(failure.group.selector.as_ref());
        let names: Vec<String> = failure
            .group
            .namespaces
            .iter()
            .map(|id| self.snapshot().namespaces.resolve(id.0).to_owned())
            .collect();
        if names.is_empty() { pods } else { format!("{pods} in namespace {}", few(&names)) }
    }

    fn affinity(&self, failure: &TopologyFailure) -> Said {
        let (key, others) = (self.universe().key_name(failure.key), self.others(failure));
        if failure.occupied == 0 {
            let wanted = format!("the pod must be near {others} (podAffinity over {key})");
            if self.is_running(failure) {
                let what = format!("{wanted}, and their nodes do not have this label");
                return said(what, "label the nodes, or use another topologyKey");
            }
            if self.is_pending(failure) {
                let what = format!("{wanted}, which have no node themselves");
                return said(what, "see why those are pending");
            }
            return said(
                format!("{wanted}, and there are none"),
                "start such pods, or correct the labelSelector",
            );
        }
        if failure.key == self.snapshot().keys.hostname {
            return said(
                format!(
                    "the pod must be on a node that has {others} (podAffinity), and those nodes do not take it"
                ),
                "make room there, or use a wider topologyKey",
            );
        }
        let occupied = failure.counts.iter().filter(|(_, count)| *count > 0).map(|(value, _)| *value);
        let there = self.names(failure, occupied);
        let own = match failure.node_domains.or(failure.pod_domains) {
            Some(id) => self.allows(failure.key, id),
            None => "has other values".to_owned(),
        };
        said(
            format!("the pod must be near {others} ({key}: {}), and the NodePool {own}", few(&there)),
            format!("allow {} in its requirements", few(&there)),
        )
    }

    fn anti_affinity(&self, failure: &TopologyFailure) -> Said {
        let key = self.universe().key_name(failure.key);
        let open =
            failure.counts.iter().map(|(value, _)| *value).filter(|value| self.is_open(failure, *value));
        let open = self.names(failure, open);
        let what = if failure.of_others {
            format!(
                "pods whose podAntiAffinity keeps the pod away are in every {key} it could use ({})",
                few(&open)
            )
        } else {
            let others = self.selected(failure.group.selector.as_ref());
            format!(
                "the pod must not share a {key} with {others} (podAntiAffinity), and all it could use have some ({})",
                few(&open)
            )
        };
        said(what, format!("allow more values of {key}"))
    }

    fn spread(&self, failure: &TopologyFailure) -> Said {
        let GroupKey { max_skew, min_domains, .. } = &*failure.group;
        let key = self.universe().key_name(failure.key);
        let counted = |(value, count): &(ValueId, i32)| {
            format!("{}: {count}", self.universe().values(failure.key).name(*value))
        };
        let of_pod =
            || failure.counts.iter().filter(|(value, _)| self.admits(failure, failure.pod_domains, *value));
        let open: Vec<String> =
            failure.counts.iter().filter(|(value, _)| self.is_open(failure, *value)).map(counted).collect();
        if open.is_empty() {
            let known = self.names(failure, failure.counts.iter().map(|(value, _)| *value));
            let own = failure
                .node_domains
                .map_or_else(|| "has others".to_owned(), |id| self.allows(failure.key, id));
            return said(
                format!("the pod is spread over {key} {}, and the NodePool {own}", few(&known)),
                "allow one of those in its requirements",
            );
        }
        let domains = of_pod().count();
        let too_few = min_domains.filter(|least| usize::try_from(*least).is_ok_and(|least| domains < least));
        if let Some(least) = too_few {
            return said(
                format!(
                    "the pod's spread over {key} has minDomains {least}, there are {domains}, and maxSkew {max_skew} is \
                     reached ({})",
                    few(&open)
                ),
                "lower minDomains, or allow more values",
            );
        }
        let Some(emptiest) = of_pod().min_by_key(|(_, count)| *count) else {
            return said(format!("the pod's spread over {key} cannot be kept"), "");
        };
        let name = self.universe().values(failure.key).name(emptiest.0);
        said(
            format!(
                "the pod's spread over {key} (maxSkew {max_skew}) needs it in {name} (pods: {}), and the NodePool has \
                 only {}",
                emptiest.1,
                few(&open)
            ),
            format!("allow {name} in its requirements"),
        )
    }

    /// Where topology rules leave what the pool cannot have.
    pub(super) fn topology_conflict(&self, conflict: &Conflict) -> Said {
        let universe = self.universe();
        let key = match &conflict.reason {
            Incompatible::Undefined(key) => *key,
            Incompatible::Conflicts(keys) => keys.first().copied().unwrap_or(self.snapshot().keys.zone),
        };
        let name = universe.key_name(key);
        let left =
            universe.find(conflict.incoming, key).filter(|id| universe.get(*id).members() != Some(&[]));
        let Some(left) = left.map(|id| self.requirement(key, id)) else {
            return said(
                format!("the pod's topology rules leave no common value of {name}"),
                "loosen one of its affinity or spread rules",
            );
        };
        match universe.find(conflict.existing, key).map(|id| self.allows(key, id)) {
            Some(own) => said(
                format!("the pod's topology rules leave {left}, and the NodePool {own}"),
                format!("allow {left} in its requirements"),
            ),
            None => said(
                format!("the pod's topology rules leave {left}, and the NodePool does not define this label"),
                "add the label to its spec.template.metadata.labels",
            ),
        }
    }

    fn names(&self, failure: &TopologyFailure, values: impl Iterator<Item = ValueId>) -> Vec<String> {
        values.map(|value| self.universe().values(failure.key).name(value).to_owned()).collect()
    }

    fn is_open(&self, failure: &TopologyFailure, value: ValueId) -> bool {
        self.admits(failure, failure.pod_domains, value) && self.admits(failure, failure.node_domains, value)
    }

    fn admits(&self, failure: &TopologyFailure, requirement: Option<RequirementId>, value: ValueId) -> bool {
        let universe = self.universe();
        requirement.is_none_or(|id| universe.get(id).has(value, universe.values(failure.key)))
    }

    /// Whether such pods run somewhere.
    fn is_running(&self, failure: &TopologyFailure) -> bool {
        let snapshot = self.snapshot();
        snapshot.running.iter().any(|it| {
            selects(failure, it.namespace, |selector| selector.matches(snapshot.labels.get(it.labels.0)))
        })
    }

    /// Whether such pods wait for a node as well.
    fn is_pending(&self, failure: &TopologyFailure) -> bool {
        let snapshot = self.snapshot();
        snapshot.pods.iter().filter(|pod| pod.runs.is_none()).any(|pod| {
            let class = &snapshot.classes[pod.class.index()];
            selects(failure, class.namespace, |selector| {
                selector.matches(snapshot.labels.get(class.labels.0))
            })
        })
    }
}

fn selects(failure: &TopologyFailure, namespace: NamespaceId, matches: impl Fn(&Selector) -> bool) -> bool {
    failure.group.namespaces.contains(&namespace) && failure.group.selector.as_ref().is_some_and(matches)
}

fn said(what: impl Into<String>, help: impl Into<String>) -> Said {
    Said::new(Reached::Topology, BRIEF, what, help)
}

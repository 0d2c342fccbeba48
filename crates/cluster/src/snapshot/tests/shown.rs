//! Snapshots in words, for tests.

use engine::intern::{ResourceId, ValueId};
use engine::model::{Effect, LabelsId, PodTerm, Selector, Snapshot, TaintsId, Test};
use engine::resources::{self, Amounts};
use engine::universe::SetId;
use units::Format;

/// A snapshot in words.
pub(super) struct Shown<'a>(pub(super) &'a Snapshot);

impl Shown<'_> {
    pub(super) fn set(&self, set: SetId) -> String {
        let universe = &self.0.universe;
        let mut shown: Vec<String> = universe
            .entries(set)
            .iter()
            .map(|(key, requirement)| universe.describe(*key, universe.get(*requirement)))
            .collect();
        shown.sort();
        format!("({})", shown.join(", "))
    }

    pub(super) fn sets(&self, sets: &[SetId]) -> String {
        sets.iter().map(|set| self.set(*set)).collect::<Vec<_>>().join(" or ")
    }

    pub(super) fn amounts(&self, amounts: &Amounts) -> String {
        let shown = amounts.iter().map(|(resource, amount)| self.amount(resource, amount));
        shown.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn amount(&self, resource: ResourceId, amount: i64) -> String {
        let format = if resource == ResourceId::MEMORY { Format::BinarySi } else { Format::DecimalSi };
        format!("{}={}", self.0.resources.name(resource), resources::quantity(resource, amount, format))
    }

    pub(super) fn taints(&self, taints: TaintsId) -> String {
        let shown = self.0.taints.get(taints.0).iter().map(|taint| {
            let effect = match taint.effect {
                Effect::NoSchedule => "NoSchedule",
                Effect::PreferNoSchedule => "PreferNoSchedule",
                Effect::NoExecute => "NoExecute",
            };
            format!("{}={}:{effect}", taint.key, taint.value)
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn selector(&self, selector: Option<&Selector>) -> String {
        let Some(selector) = selector else { return "nothing".to_owned() };
        let universe = &self.0.universe;
        let shown = selector.expressions.iter().map(|each| {
            let key = universe.key_name(each.key);
            let names = |values: &[ValueId]| {
                values.iter().map(|v| universe.values(each.key).name(*v)).collect::<Vec<_>>().join("|")
            };
            match &each.test {
                Test::In(values) => format!("{key}={}", names(values)),
                Test::NotIn(values) => format!("{key}!={}", names(values)),
                Test::Exists => key.to_owned(),
                Test::DoesNotExist => format!("!{key}"),
            }
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(" "))
    }

    pub(super) fn term(&self, term: &PodTerm) -> String {
        let namespaces = term.namespaces.iter().map(|id| self.0.namespaces.resolve(id.0));
        let namespaces = namespaces.collect::<Vec<_>>().join("|");
        let key = self.0.universe.key_name(term.key);
        format!("{} in {namespaces} by {key}", self.selector(term.selector.as_ref()))
    }

    pub(super) fn labels(&self, labels: LabelsId) -> String {
        let universe = &self.0.universe;
        let shown = self.0.labels.get(labels.0).iter();
        let shown = shown.map(|(k, v)| format!("{}={}", universe.key_name(*k), universe.values(*k).name(*v)));
        shown.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn pools(&self) -> Vec<String> {
        let shown = self.0.pools.iter().map(|pool| {
            let limits = pool.limits.iter().map(|limit| self.amount(limit.resource, limit.remaining));
            format!(
                "{}: {} declared {} taints [{}] limits [{}] catalogue {:?}",
                pool.name,
                self.set(pool.requirements),
                self.set(pool.declared),
                self.taints(pool.taints),
                limits.collect::<Vec<_>>().join(" "),
                pool.catalogue.map(|id| id.0),
            )
        });
        shown.collect()
    }

    pub(super) fn nodes(&self) -> Vec<String> {
        let shown = self.0.nodes.iter().map(|node| {
            let hostname = self.0.universe.values(self.0.keys.hostname).name(node.hostname);
            let ports = node.ports.iter().map(|port| format!("{:?}:{}/{}", port.address, port.port, port.protocol));
            let drivers = node.volume_limits.iter().map(|(id, limit)| {
                format!("{}={limit}", self.0.drivers.resolve(u32::from(id.0)))
            });
            format!(
                "{} ({hostname}){}{}{}\n  labels {}\n  taints [{}]\n  available {}; daemons {}\n  ports [{}] volumes {} limits [{}]",
                node.name,
                if node.initialized { " initialized" } else { "" },
                if node.open { "" } else { " closed" },
                if node.object.is_some() { "" } else { " unregistered" },
                self.set(node.labels),
                self.taints(node.taints),
                self.amounts(&node.available),
                self.amounts(&node.daemon_requests),
                ports.collect::<Vec<_>>().join(" "),
                node.volumes.len(),
                drivers.collect::<Vec<_>>().join(" "),
            )
        });
        shown.collect()
    }

    pub(super) fn pods(&self) -> Vec<String> {
        self.0.pods.iter().map(|pod| format!("{} class {}", pod.name, pod.class.0)).collect()
    }

    pub(super) fn rules(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for class in &self.0.classes {
            let mut add = |name: &str, text: String| lines.push(format!("{name}: {text}"));
            if class.node_selector != SetId::EMPTY {
                add("selector", self.set(class.node_selector));
            }
            if !class.required_terms.is_empty() {
                add("required", self.sets(&class.required_terms));
            }
            for (weight, set) in &class.preferred_terms {
                add("preferred", format!("{weight} {}", self.set(*set)));
            }
            for spread in &class.spreads {
                let key = self.0.universe.key_name(spread.key);
                add(
                    "spread",
                    format!(
                        "{key} skew {} min {:?} optional {} {} affinity {} taints {}",
                        spread.max_skew,
                        spread.min_domains,
                        spread.optional,
                        self.selector(spread.selector.as_ref()),
                        spread.honor_affinity,
                        spread.honor_taints,
                    ),
                );
            }
            class.affinities.iter().for_each(|term| add("near", self.term(term)));
            class.anti_affinities.iter().for_each(|term| add("apart", self.term(term)));
            for (weight, term) in class.preferred_affinities.iter().chain(&class.preferred_anti_affinities) {
                add("wish", format!("{weight} {}", self.term(term)));
            }
            if !class.volume_terms.is_empty() {
                add("volumes", self.sets(&class.volume_terms));
            }
            for port in &class.ports {
                add("port", format!("{:?}:{}/{}", port.address, port.port, port.protocol));
            }
            if class.needs_devices {
                add("devices", "needed".to_owned());
            }
        }
        lines
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.0.classes.iter().map(|class| self.amounts(&class.requests)).collect()
    }

    pub(super) fn running(&self) -> Vec<String> {
        let counts = self.0.running.iter().map(|each| {
            let node = &self.0.nodes[each.node.index()].name;
            let namespace = self.0.namespaces.resolve(each.namespace.0);
            format!("{} of {namespace}/{} on {node}", each.count, self.labels(each.labels))
        });
        let guards = self.0.guards.iter().flat_map(|guard| {
            let node = &self.0.nodes[guard.node.index()].name;
            guard.terms.iter().map(move |term| format!("guard on {node}: {}", self.term(term)))
        });
        counts.chain(guards).collect()
    }
}

//! What pods and NodePools ask of labels, in words.

use super::{Reached, SHOWN, Said, SchedulingErrors};
use crate::intern::KeyId;
use crate::model::{Expression, PodClass, PoolId, Selector, Test};
use crate::requirement::{Operator, Requirement};
use crate::solve::Conflict;
use crate::solve::template::node_alternatives;
use crate::universe::{Incompatible, RequirementId, SetId};

impl SchedulingErrors<'_> {
    /// What to say of a pod whose own rules cannot hold together.
    pub(super) fn contradiction(&self, class: &PodClass) -> Option<String> {
        let universe = self.universe();
        let of_term = |term: &SetId| {
            universe.entries(*term).iter().find_map(|(key, of_term)| {
                let of_selector = universe.find(class.node_selector, *key)?;
                let (a, b) = (universe.get(of_selector), universe.get(*of_term));
                let both_absent = a.operator().accepts_absence() && b.operator().accepts_absence();
                let meet = both_absent || a.intersects(b, universe.values(*key));
                (!meet).then_some((*key, of_selector, *of_term))
            })
        };
        let conflicts = class.required_terms.iter().map(of_term).collect::<Option<Vec<_>>>()?;
        let (key, of_selector, of_term) = *conflicts.last()?;
        Some(format!(
            "the pod contradicts itself: its nodeSelector asks for {}, its node affinity for {}; change one of them",
            self.requirement(key, of_selector),
            self.requirement(key, of_term),
        ))
    }

    /// A requirement: `kubernetes.io/arch=arm64`, `kubernetes.io/arch In [amd64, arm64]`, `example.com/cores >= 8`.
    pub(super) fn requirement(&self, key: KeyId, id: RequirementId) -> String {
        self.written(key, self.universe().get(id))
    }

    pub(super) fn written(&self, key: KeyId, requirement: &Requirement) -> String {
        let name = self.universe().key_name(key);
        let values = self.values(key, requirement);
        let bounds: Vec<String> = match requirement.bounds() {
            (Some(least), Some(most)) if least == most => vec![format!("= {least}")],
            (least, most) => least
                .map(|least| format!(">= {least}"))
                .into_iter()
                .chain(most.map(|most| format!("<= {most}")))
                .collect(),
        };
        if !bounds.is_empty() {
            return format!("{name} {}", bounds.join(" and "));
        }
        match requirement.operator() {
            Operator::In if values.len() == 1 => format!("{name}={}", values[0]),
            Operator::In => format!("{name} In [{}]", few(&values)),
            Operator::NotIn => format!("{name} NotIn [{}]", few(&values)),
            Operator::Exists => format!("the label {name}"),
            Operator::DoesNotExist => format!("no label {name}"),
        }
    }

    /// What a NodePool leaves of a label: `allows only amd64`, `has example.com/cores <= 8`.
    pub(super) fn allows(&self, key: KeyId, id: RequirementId) -> String {
        let requirement = self.universe().get(id);
        match requirement.members() {
            Some([]) | None => format!("has {}", self.written(key, requirement)),
            Some(_) => format!("allows only {}", few(&self.values(key, requirement))),
        }
    }

    fn values(&self, key: KeyId, requirement: &Requirement) -> Vec<String> {
        let names = self.universe().values(key);
        let mut values: Vec<String> =
            requirement.listed().iter().map(|it| names.name(*it).to_owned()).collect();
        values.sort_unstable();
        values
    }

    /// Who asks for a label of the node: the pod, or the last of its alternatives.
    fn pod_asks(&self, key: KeyId, class: &PodClass) -> String {
        match &*class.required_terms {
            [_, .., last] if self.universe().find(*last, key).is_some() => {
                format!("the last of the pod's {} nodeSelectorTerms asks for", class.required_terms.len())
            }
            _ => "the pod asks for".to_owned(),
        }
    }

    /// Where labels of a pool do not agree with what the pod asks for.
    pub(super) fn requirements(&mut self, class: &PodClass, conflict: &Conflict) -> Said {
        let keys = self.snapshot().keys;
        let key = match &conflict.reason {
            Incompatible::Undefined(key) => return self.undefined(class, *key, conflict),
            Incompatible::Conflicts(conflicts) => {
                let first = conflicts.iter().find(|key| **key != keys.node_pool).or(conflicts.first());
                first.copied().unwrap_or(keys.hostname)
            }
        };
        if key == keys.hostname {
            return self.by_host_name(class);
        }
        let universe = self.universe();
        let name = universe.key_name(key);
        let brief = format!("other {name}");
        let (Some(asked), Some(own)) =
            (universe.find(conflict.incoming, key), universe.find(conflict.existing, key))
        else {
            return Said::new(Reached::Labels, brief, format!("the pod's {name} does not match"), "");
        };
        let (wanted, own) = (universe.get(asked), self.allows(key, own));
        // All nodes have such a label, so that nobody asks for its absence on purpose.
        if wanted.operator() == Operator::DoesNotExist && universe.is_well_known(key) {
            let what = format!("the pod's node affinity leaves no value of {name}, and the NodePool {own}");
            return Said::new(Reached::Labels, brief, what, "change the pod's node affinity");
        }
        let help = match wanted.members() {
            Some([]) | None => "change its requirements, or the pod".to_owned(),
            Some(_) => {
                format!("add {} to its requirements, or change the pod", one_of(&self.values(key, wanted)))
            }
        };
        let reached = if key == keys.node_pool { Reached::Never } else { Reached::Labels };
        let asks = self.pod_asks(key, class);
        let what = format!("{asks} {}, and the NodePool {own}", self.written(key, wanted));
        Said::new(reached, brief, what, help)
    }

    fn undefined(&self, class: &PodClass, key: KeyId, conflict: &Conflict) -> Said {
        let universe = self.universe();
        let name = universe.key_name(key);
        let asked = universe.find(conflict.incoming, key);
        let asked = asked.map_or_else(|| name.to_owned(), |id| self.requirement(key, id));
        let help = match self.similar(name, conflict.existing) {
            Some(similar) => format!("did you mean {similar}?"),
            None => "add the label to its spec.template.metadata.labels, or change the pod".to_owned(),
        };
        let asks = self.pod_asks(key, class);
        let what = format!("{asks} {asked}, and the NodePool does not define this label");
        Said::new(Reached::Labels, format!("label {name} not defined"), what, help)
    }

    /// A label that the user may have meant: one that contains what was written, has the same name with another
    /// prefix, or differs in no more than two letters.
    fn similar(&self, name: &str, existing: SetId) -> Option<&str> {
        let universe = self.universe();
        let suffix = name.split_once('/').map_or(name, |(_, suffix)| suffix);
        let known = (0..universe.key_count()).map(KeyId::at).filter(|key| universe.is_well_known(*key));
        let own = universe.entries(existing).iter().map(|(key, _)| *key);
        let mut known: Vec<&str> = known.chain(own).map(|key| universe.key_name(key)).collect();
        known.sort_unstable();
        let is_similar = |known: &&&str| {
            let same_name = known.rsplit_once('/').is_some_and(|(_, known)| known == suffix);
            **known != name && (same_name || known.contains(name) || distance(known, name) <= 2)
        };
        known.iter().find(is_similar).copied()
    }

    fn by_host_name(&mut self, class: &PodClass) -> Said {
        let world = &mut self.explainer.world;
        let alternatives = node_alternatives(class.node_selector, &class.required_terms, world);
        let key = self.snapshot().keys.hostname;
        let asked = alternatives.last().and_then(|set| self.universe().find(*set, key));
        let asked = asked.map_or_else(|| "a node by its name".to_owned(), |id| self.requirement(key, id));
        let what = format!("the pod asks for {asked}, and the name of a new node cannot be chosen");
        Said::new(Reached::Labels, "a node is asked for by name", what, "select nodes by another label")
    }

    /// Where the pod's volumes are elsewhere.
    pub(super) fn volumes(&mut self, class: &PodClass, conflict: &Conflict) -> Said {
        let pod = self.explainer.asked(class);
        let universe = self.universe();
        let key = match &conflict.reason {
            Incompatible::Undefined(key) => *key,
            Incompatible::Conflicts(keys) => keys.first().copied().unwrap_or(self.snapshot().keys.zone),
        };
        let written = |set| universe.find(set, key).map(|id| self.requirement(key, id));
        let of_volumes = written(conflict.incoming).unwrap_or_else(|| universe.key_name(key).to_owned());
        let brief = "volumes are elsewhere";
        let of_pod =
            universe.find(pod, key).zip(universe.find(conflict.incoming, key)).filter(|(pod, volumes)| {
                !universe.get(*pod).intersects(universe.get(*volumes), universe.values(key))
            });
        if let Some((of_pod, _)) = of_pod {
            let asked = self.requirement(key, of_pod);
            let what = format!("the pod's volumes are in {of_volumes}, and the pod asks for {asked}");
            return Said::new(Reached::Volumes, brief, what, "change where the pod may run, or its volumes");
        }
        let Some(own) = universe.find(conflict.existing, key).map(|id| self.allows(key, id)) else {
            let what =
                format!("the pod's volumes are in {of_volumes}, and the NodePool does not define this label");
            return Said::new(Reached::Volumes, brief, what, "");
        };
        let what = format!("the pod's volumes are in {of_volumes}, and the NodePool {own}");
        Said::new(Reached::Volumes, brief, what, format!("allow {of_volumes} in its requirements"))
    }

    /// Who asks for a label that no type has, given all that is asked, and what for.
    pub(super) fn asked_for(&mut self, key: KeyId, class: &PodClass, pool: PoolId, set: SetId) -> String {
        let (pod, own) = (self.explainer.asked(class), self.snapshot().pools[pool.index()].requirements);
        let both = self.explainer.world.universe.intersect(own, pod);
        let universe = self.universe();
        let name = universe.key_name(key);
        let asked = universe.find(set, key);
        let nothing = asked.is_some_and(|id| universe.get(id).operator() == Operator::DoesNotExist);
        let written = asked.map_or_else(|| name.to_owned(), |id| self.requirement(key, id));
        if universe.find(both, key) == asked {
            return match universe.find(pod, key) {
                Some(_) if nothing && universe.is_well_known(key) => {
                    format!("the pod's node affinity leaves no value of {name}")
                }
                Some(_) => format!("{} {written}", self.pod_asks(key, class)),
                None => format!("it asks for {written}"),
            };
        }
        if class.volume_terms.iter().any(|term| universe.find(*term, key).is_some()) {
            return if nothing {
                format!("the pod's volumes have no {name} in common")
            } else {
                format!("the pod's volumes are in {written}")
            };
        }
        if nothing {
            format!("the pod's topology rules leave no value of {name}")
        } else {
            format!("the pod's topology rules leave {written}")
        }
    }

    /// Which pods a selector selects: `pods with app=web`.
    pub(super) fn selected(&self, selector: Option<&Selector>) -> String {
        let expressions = match selector {
            None => return "pods (no labelSelector is given)".to_owned(),
            Some(selector) if selector.expressions.is_empty() => return "pods".to_owned(),
            Some(selector) => selector.expressions.iter(),
        };
        let texts: Vec<String> = expressions.map(|it| self.expression(it)).collect();
        format!("pods with {}", few(&texts))
    }

    fn expression(&self, Expression { key, test }: &Expression) -> String {
        let universe = self.universe();
        let name = universe.key_name(*key);
        let names = |values: &[_]| {
            let names: Vec<String> =
                values.iter().map(|it| universe.values(*key).name(*it).to_owned()).collect();
            few(&names)
        };
        match test {
            Test::In(values) if values.len() == 1 => format!("{name}={}", names(values)),
            Test::In(values) => format!("{name} in ({})", names(values)),
            Test::NotIn(values) => format!("{name} notin ({})", names(values)),
            Test::Exists => format!("label {name}"),
            Test::DoesNotExist => format!("no label {name}"),
        }
    }
}

/// The first of some values, and how many others there are.
pub(super) fn few(values: &[String]) -> String {
    super::some(values)
}

fn one_of(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        many => format!("one of {}", few(&many[..many.len().min(SHOWN)])),
    }
}

/// How many letters two texts differ in; anything above two counts as three.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return 3;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (position, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = position + 1;
        for (column, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or(0).min(3)
}

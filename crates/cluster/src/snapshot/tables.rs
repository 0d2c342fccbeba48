//! Names and rules of Kubernetes objects as the engine's numbers. Entry: [`Tables`].

use api::labels::LabelSets;
use api::shared::Operator;
use engine::intern::{Interner, KeyId, ResourceId, ValueId};
use engine::model::{
    DriverId, Effect, Expression, LabelsId, NamespaceId, Selector, Snapshot, Taint, TaintsId, Test,
    Toleration, TolerationOperator, TolerationsId, VolumeId,
};
use engine::requirement::Requirement;
use engine::resources::{self, Amounts};
use engine::universe::SetId;
use units::{Quantity, Resources};

use crate::objects;
use crate::objects::collections::Labels;
use crate::objects::selector::{LabelSelector, NodeSelectorRequirement};
use crate::reason::Reason;

/// The snapshot that is being built.
pub(super) struct Tables {
    pub(super) snapshot: Snapshot,
    pub(super) labels: LabelSets,
    claims: Interner,
}

impl Tables {
    pub(super) fn new(labels: LabelSets) -> Self {
        Self { snapshot: Snapshot::default(), labels, claims: Interner::default() }
    }

    /// The number of a label key, as it is written.
    pub(super) fn key(&mut self, name: &str) -> Result<KeyId, Reason> {
        let universe = &mut self.snapshot.universe;
        let is_full = universe.key_count() > usize::from(u16::MAX);
        if is_full && universe.find_key(name).is_none() {
            return Err(too_many("label key", name, universe.key_count()));
        }
        Ok(universe.key(name))
    }

    /// The number of a label key of nodes, where aliases are the same.
    pub(super) fn node_key(&mut self, name: &str) -> Result<KeyId, Reason> {
        self.key(self.labels.normalize_key(name))
    }

    /// The number of a value of a label of nodes, whose key is normalized.
    pub(super) fn node_value(&mut self, key: KeyId, value: &str) -> ValueId {
        let universe = &mut self.snapshot.universe;
        let value = self.labels.normalize_value(universe.key_name(key), value);
        universe.value(key, value)
    }

    pub(super) fn resource(&mut self, name: &str) -> Result<ResourceId, Reason> {
        let table = &mut self.snapshot.resources;
        if table.len() > usize::from(u8::MAX) && table.get(name).is_none() {
            return Err(too_many("resource", name, table.len()));
        }
        Ok(table.intern(name))
    }

    pub(super) fn driver(&mut self, name: &str) -> Result<DriverId, Reason> {
        let drivers = &mut self.snapshot.drivers;
        if drivers.len() > usize::from(u16::MAX) && drivers.get(name).is_none() {
            return Err(too_many("volume driver", name, drivers.len()));
        }
        Ok(DriverId::at(drivers.intern(name) as usize))
    }

    /// The number of a claim for a volume.
    pub(super) fn claim(&mut self, namespace: &str, name: &str) -> VolumeId {
        VolumeId(self.claims.intern(&format!("{namespace}/{name}")))
    }

    pub(super) fn namespace(&mut self, name: &str) -> NamespaceId {
        let id = NamespaceId(self.snapshot.namespaces.intern(name));
        if self.snapshot.namespace_labels.len() < self.snapshot.namespaces.len() {
            self.snapshot.namespace_labels.push(None);
        }
        id
    }

    /// The labels of a pod or namespace.
    pub(super) fn labels(&mut self, labels: &Labels) -> Result<LabelsId, Reason> {
        let mut entries = Vec::with_capacity(labels.len());
        for (key, value) in labels.iter() {
            let key = self.key(key)?;
            entries.push((key, self.snapshot.universe.value(key, value)));
        }
        entries.sort_unstable();
        Ok(LabelsId(self.snapshot.labels.intern(entries)))
    }

    /// The labels of a node as requirements.
    pub(super) fn node_labels<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<SetId, Reason> {
        let mut requirements = Vec::new();
        for (key, value) in labels {
            let key = self.node_key(key)?;
            requirements.push((key, Requirement::within([self.node_value(key, value)])));
        }
        Ok(self.snapshot.universe.set(requirements))
    }

    /// A requirement on a label of nodes.
    pub(super) fn requirement<V: AsRef<str>>(
        &mut self,
        key: &str,
        operator: Operator,
        values: &[V],
        field: &str,
    ) -> Result<(KeyId, Requirement), Reason> {
        let id = self.node_key(key)?;
        let bound = || match values {
            [value] => value.as_ref().parse().map_err(|_| value.as_ref().to_owned()),
            _ => Err(values.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")),
        };
        let bound = || {
            bound().map_err(|value| Reason::Field {
                field: format!("{field}: {key} {operator}"),
                value,
                expected: "one integer",
            })
        };
        let requirement = match operator {
            Operator::In => Requirement::within(self.node_values(id, values)),
            Operator::NotIn => Requirement::not_in(self.node_values(id, values)),
            Operator::Exists => Requirement::exists(),
            Operator::DoesNotExist => Requirement::does_not_exist(),
            Operator::Gt => Requirement::greater_than(bound()?),
            Operator::Lt => Requirement::less_than(bound()?),
            Operator::Gte => Requirement::at_least(bound()?),
            Operator::Lte => Requirement::at_most(bound()?),
        };
        Ok((id, requirement))
    }

    fn node_values<V: AsRef<str>>(&mut self, key: KeyId, values: &[V]) -> Vec<ValueId> {
        values.iter().map(|value| self.node_value(key, value.as_ref())).collect()
    }

    /// A requirement whose operator may be any text.
    pub(super) fn requirement_of_text(
        &mut self,
        key: &str,
        operator: &str,
        values: &[Box<str>],
        field: &str,
    ) -> Result<(KeyId, Requirement), Reason> {
        let known = Operator::ALL.into_iter().find(|known| known.as_str() == operator);
        let operator = known.ok_or_else(|| Reason::Field {
            field: format!("{field}: operator of {key}"),
            value: operator.to_owned(),
            expected: "In, NotIn, Exists, DoesNotExist, Gt or Lt",
        })?;
        self.requirement(key, operator, values, field)
    }

    /// The conditions of one term on a node.
    pub(super) fn node_term(
        &mut self,
        expressions: &[NodeSelectorRequirement],
        field: &str,
    ) -> Result<SetId, Reason> {
        let requirements = expressions
            .iter()
            .map(|each| self.requirement_of_text(&each.key, &each.operator, &each.values, field))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.snapshot.universe.set(requirements))
    }

    /// A selector of pods. One that cannot be understood selects nothing.
    pub(super) fn selector(&mut self, selector: &LabelSelector) -> Result<Selector, Reason> {
        if !selector.is_valid() {
            let key = self.snapshot.keys.hostname;
            return Ok(Selector { expressions: vec![Expression { key, test: Test::In(Vec::new()) }] });
        }
        let mut expressions = Vec::new();
        for (key, value) in selector.match_labels.iter() {
            let key = self.key(key)?;
            let value = self.snapshot.universe.value(key, value);
            expressions.push(Expression { key, test: Test::In(vec![value]) });
        }
        for expression in &selector.match_expressions {
            let key = self.key(&expression.key)?;
            let mut values: Vec<ValueId> =
                expression.values.iter().map(|value| self.snapshot.universe.value(key, value)).collect();
            values.sort_unstable();
            values.dedup();
            let test = match &*expression.operator {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                _ => Test::DoesNotExist,
            };
            expressions.push(Expression { key, test });
        }
        expressions.sort_unstable();
        expressions.dedup();
        Ok(Selector { expressions })
    }

    /// A list of taints.
    pub(super) fn taints(&mut self, taints: Vec<Taint>) -> TaintsId {
        TaintsId(self.snapshot.taints.intern(taints))
    }

    /// A list of tolerations.
    pub(super) fn tolerations(&mut self, tolerations: &[objects::pod::Toleration]) -> TolerationsId {
        use objects::pod::TolerationOperator as Written;

        let list = tolerations.iter().map(|toleration| Toleration {
            key: Some(toleration.key.clone()).filter(|key| !key.is_empty()),
            operator: match toleration.operator {
                Written::Equal => TolerationOperator::Equal,
                Written::Exists => TolerationOperator::Exists,
                Written::Gt => TolerationOperator::Gt,
                Written::Lt => TolerationOperator::Lt,
            },
            value: toleration.value.clone(),
            effect: effect(toleration.effect),
        });
        let list = list.collect();
        TolerationsId(self.snapshot.tolerations.intern(list))
    }

    /// What a pod asks for, rounded up.
    pub(super) fn requests(&mut self, requests: &Resources) -> Result<Amounts, Reason> {
        self.amounts(requests.iter().map(|(name, quantity)| (name.as_str(), *quantity)), resources::request)
    }

    /// What a node or type has, rounded down.
    pub(super) fn capacity(&mut self, capacity: &Resources) -> Result<Amounts, Reason> {
        self.amounts(capacity.iter().map(|(name, quantity)| (name.as_str(), *quantity)), resources::capacity)
    }

    fn amounts<'a>(
        &mut self,
        list: impl Iterator<Item = (&'a str, Quantity)>,
        round: fn(ResourceId, Quantity) -> i64,
    ) -> Result<Amounts, Reason> {
        let mut amounts = Amounts::default();
        for (name, quantity) in list {
            let resource = self.resource(name)?;
            amounts.set(resource, round(resource, quantity));
        }
        Ok(amounts)
    }
}

/// The engine's effect; none if any is meant.
pub(super) fn effect(effect: objects::Effect) -> Option<Effect> {
    match effect {
        objects::Effect::Any => None,
        objects::Effect::NoSchedule => Some(Effect::NoSchedule),
        objects::Effect::PreferNoSchedule => Some(Effect::PreferNoSchedule),
        objects::Effect::NoExecute => Some(Effect::NoExecute),
    }
}

fn too_many(what: &'static str, name: &str, limit: usize) -> Reason {
    Reason::TooMany { what, name: name.into(), limit }
}

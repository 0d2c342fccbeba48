//! What a NodeClaim asks for, compared with instance types and their offerings one at a time.
//!
//! Planning compares thousands of pods with a whole catalogue and has masks for that; a launch compares one
//! claim with a few offerings and needs no more than this.

use api::labels::LabelSets;
use api::shared::{Operator, Requirement};
use engine::requirement;
use engine::universe::{SetId, Universe};

use crate::reason::Reason;

/// What a NodeClaim asks for.
#[derive(Debug)]
pub struct Wanted<'a> {
    sets: &'a LabelSets,
    universe: Universe,
    set: SetId,
}

impl<'a> Wanted<'a> {
    /// What the requirements of a NodeClaim ask for; `sets` says which labels mean the same.
    pub fn new(requirements: &[Requirement], sets: &'a LabelSets) -> Result<Self, Reason> {
        let mut universe = Universe::default();
        let set = compile(&mut universe, requirements, sets)?;
        Ok(Self { sets, universe, set })
    }

    /// Whether an instance type or an offering can satisfy it. What only one side names is open to the other:
    /// types and offerings name well-known labels alone.
    pub fn admits(&mut self, requirements: &[Requirement]) -> bool {
        compile(&mut self.universe, requirements, self.sets)
            .is_ok_and(|set| self.universe.intersects(self.set, set))
    }

    /// The labels for which it leaves one value only, with that value.
    pub fn settled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.universe.entries(self.set).iter().filter_map(|(key, id)| {
            let value = self.universe.get(*id).single()?;
            Some((self.universe.key_name(*key), self.universe.values(*key).name(value)))
        })
    }
}

/// Requirements as a set of a universe; several for one label must hold together.
pub(crate) fn compile(
    universe: &mut Universe,
    requirements: &[Requirement],
    sets: &LabelSets,
) -> Result<SetId, Reason> {
    let mut converted = Vec::with_capacity(requirements.len());
    for Requirement { key, operator, values, min_values } in requirements {
        let name = sets.normalize_key(key);
        let id = universe.key(name);
        let values_of = |universe: &mut Universe| -> Vec<_> {
            values.iter().map(|value| universe.value(id, sets.normalize_value(name, value))).collect()
        };
        let bound = || match values.as_slice() {
            [value] => value.parse().map_err(|_| value.clone()),
            _ => Err(values.join(" ")),
        };
        let bound = || {
            bound().map_err(|value| Reason::Field {
                field: format!("requirements: {key} {operator}"),
                value,
                expected: "one integer",
            })
        };
        let requirement = match operator {
            Operator::In => requirement::Requirement::within(values_of(universe)),
            Operator::NotIn => requirement::Requirement::not_in(values_of(universe)),
            Operator::Exists => requirement::Requirement::exists(),
            Operator::DoesNotExist => requirement::Requirement::does_not_exist(),
            Operator::Gt => requirement::Requirement::greater_than(bound()?),
            Operator::Lt => requirement::Requirement::less_than(bound()?),
            Operator::Gte => requirement::Requirement::at_least(bound()?),
            Operator::Lte => requirement::Requirement::at_most(bound()?),
        };
        let min_values = min_values.and_then(|count| u32::try_from(count).ok());
        converted.push((id, requirement.with_min_values(min_values)));
    }
    Ok(universe.set(converted))
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;

    use super::*;
    use crate::instance_types::{InstanceType, kwok};

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Requirement { key: key.to_owned(), operator, values, min_values: None }
    }

    fn sets() -> LabelSets {
        LabelSets::for_provider(Provider::Kwok)
    }

    fn some_type() -> InstanceType {
        kwok::built_in().remove(0)
    }

    #[test]
    fn what_both_name_must_meet_and_what_one_names_is_open() {
        let sets = sets();
        let types = some_type();
        for (key, operator, values, admitted) in [
            ("kubernetes.io/arch", Operator::In, &["amd64"][..], true),
            ("beta.kubernetes.io/arch", Operator::In, &["arm64"], false),
            ("kubernetes.io/os", Operator::NotIn, &["linux"], false),
            ("karpenter.kwok.sh/instance-cpu", Operator::Gt, &["1"], false),
            ("karpenter.kwok.sh/instance-cpu", Operator::Gte, &["1"], true),
            ("karpenter.kwok.sh/instance-cpu", Operator::Lt, &["2"], true),
            ("karpenter.kwok.sh/instance-cpu", Operator::Lte, &["0"], false),
            ("topology.kubernetes.io/zone", Operator::DoesNotExist, &[], false),
            ("example.com/own", Operator::Exists, &[], true),
        ] {
            let asked = [requirement(key, operator, values)];
            let mut wanted = Wanted::new(&asked, &sets).unwrap();
            assert_eq!(wanted.admits(&types.requirements), admitted, "{key} {operator} {values:?}");
        }
    }

    #[test]
    fn labels_with_one_possible_value_are_settled() {
        let asked = [
            requirement("topology.kubernetes.io/zone", Operator::In, &["a", "b"]),
            requirement("failure-domain.beta.kubernetes.io/zone", Operator::In, &["b", "c"]),
            requirement("kubernetes.io/os", Operator::In, &["linux", "windows"]),
        ];
        let sets = sets();
        let wanted = Wanted::new(&asked, &sets).unwrap();
        assert_eq!(wanted.settled().collect::<Vec<_>>(), [("topology.kubernetes.io/zone", "b")]);
    }
}

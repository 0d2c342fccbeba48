//! Requirements on labels, as NodePools, NodeOverlays and pods make them. Entry: [`validate`].

use std::collections::BTreeSet;

use super::kubernetes;
use crate::labels::{LabelSets, RestrictedLabel};
use crate::shared::{Operator, Requirement};

/// What is wrong with a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// There is no such operator.
    #[error("key {key} has an unsupported operator {operator} not in [{}]", supported_operators())]
    UnsupportedOperator {
        /// The label key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// Users may not set the label.
    #[error(transparent)]
    Restricted(#[from] RestrictedLabel),
    /// The label has a few known values, and none of them is asked for.
    #[error(
        "no valid values found in [{}] for {key}, expected one of: {}, got: [{}]",
        .values.join(" "), go_set(known), .values.join(" ")
    )]
    NoKnownValue {
        /// The label key.
        key: String,
        /// The values that are asked for, none of which is known.
        values: Vec<String>,
        /// The values that exist.
        known: BTreeSet<&'static str>,
    },
    /// The label has a few known values, and too few of them are asked for.
    #[error(
        "not enough valid values found in [{}] for {key}, expected at least {min_values} valid values from: [{}], \
         got: {found}",
        .values.join(" "), .known.iter().copied().collect::<Vec<_>>().join(" ")
    )]
    TooFewKnownValues {
        /// The label key.
        key: String,
        /// The values that are asked for.
        values: Vec<String>,
        /// The values that exist.
        known: BTreeSet<&'static str>,
        /// How many there must be.
        min_values: i64,
        /// How many of those that are asked for exist.
        found: usize,
    },
    /// The key is not a label key.
    #[error("key {key} is not a qualified name, {why}")]
    Key {
        /// The label key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// A value is not a label value.
    #[error("invalid value {value} for key {key}, {why}")]
    Value {
        /// The label key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing to compare with.
    #[error("key {key} with operator {operator} must have a value defined")]
    NoValue {
        /// The label key.
        key: String,
        /// `In`, or for a NodeOverlay `NotIn`.
        operator: Operator,
    },
    /// There are fewer values than must remain to choose from.
    #[error(
        "key {key} with operator In must have at least minimum number of values defined in 'values' field"
    )]
    TooFewValues {
        /// The label key.
        key: String,
    },
    /// A comparison needs one number.
    #[error("key {key} with operator {operator} must have a single positive integer value")]
    NotANumber {
        /// The label key.
        key: String,
        /// The comparison.
        operator: Operator,
    },
}

/// What is wrong with a requirement, after its key has been normalized.
pub fn validate(requirement: &Requirement, sets: &LabelSets) -> Vec<RequirementError> {
    let Requirement { key, operator, values, min_values } = requirement;
    validate_parts(key, Ok(*operator), values, *min_values, sets)
}

/// The values that a requirement asks for although they are known not to exist. A requirement that also asks
/// for one that exists is valid, so this is for the log.
pub fn unknown_values<'a>(requirement: &'a Requirement, sets: &LabelSets) -> Vec<&'a str> {
    let known = sets.known_values(sets.normalize_key(&requirement.key));
    let Some(known) = known.filter(|_| requirement.operator == Operator::In) else { return Vec::new() };
    requirement.values.iter().map(String::as_str).filter(|value| !known.contains(value)).collect()
}

/// What is wrong with a requirement whose operator may be any text, as in a pod.
pub(super) fn validate_parts(
    key: &str,
    operator: Result<Operator, &str>,
    values: &[String],
    min_values: Option<i64>,
    sets: &LabelSets,
) -> Vec<RequirementError> {
    let key = sets.normalize_key(key);
    let mut errors = Vec::new();
    if let Err(operator) = operator {
        errors.push(RequirementError::UnsupportedOperator {
            key: key.to_owned(),
            operator: operator.to_owned(),
        });
    }
    errors.extend(sets.check_unrestricted(key).err().map(RequirementError::Restricted));
    if operator == Ok(Operator::In) {
        errors.extend(check_known_values(key, values, min_values, sets));
    }
    let wrong_key = kubernetes::qualified_name(key).into_iter();
    errors.extend(wrong_key.map(|why| RequirementError::Key { key: key.to_owned(), why }));
    for value in values {
        let wrong_value = kubernetes::label_value(value).into_iter();
        errors.extend(wrong_value.map(|why| RequirementError::Value {
            key: key.to_owned(),
            value: value.clone(),
            why,
        }));
    }
    if let Ok(operator) = operator {
        check_arity(key, operator, values, min_values, &mut errors);
    }
    errors
}

fn check_known_values(
    key: &str,
    values: &[String],
    min_values: Option<i64>,
    sets: &LabelSets,
) -> Option<RequirementError> {
    let known = sets.known_values(key)?;
    let found = values.iter().filter(|value| known.contains(value.as_str())).count();
    let (key, values, known) = (key.to_owned(), values.to_vec(), known.clone());
    if found == 0 {
        return Some(RequirementError::NoKnownValue { key, values, known });
    }
    let min_values = min_values.filter(|min| is_fewer(found, *min))?;
    Some(RequirementError::TooFewKnownValues { key, values, known, min_values, found })
}

fn check_arity(
    key: &str,
    operator: Operator,
    values: &[String],
    min_values: Option<i64>,
    errors: &mut Vec<RequirementError>,
) {
    let key = || key.to_owned();
    if operator == Operator::In {
        if values.is_empty() {
            errors.push(RequirementError::NoValue { key: key(), operator });
        }
        if min_values.is_some_and(|min| is_fewer(values.len(), min)) {
            errors.push(RequirementError::TooFewValues { key: key() });
        }
    }
    if operator.is_comparison() {
        let is_number = match values {
            [value] => value.parse::<i64>().is_ok_and(|number| number >= 0),
            _ => false,
        };
        if !is_number {
            errors.push(RequirementError::NotANumber { key: key(), operator });
        }
    }
}

fn is_fewer(count: usize, min: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count < min)
}

/// Upstream prints the operators in no particular order.
fn supported_operators() -> String {
    Operator::ALL.map(Operator::as_str).join(" ")
}

/// A set as Go prints it.
fn go_set(set: &BTreeSet<&'static str>) -> String {
    let members: Vec<String> = set.iter().map(|member| format!("{member}:{{}}")).collect();
    format!("map[{}]", members.join(" "))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::provider::Provider;
    use crate::validation::joined;

    fn requirement(key: &str, operator: Operator, values: &[&str], min_values: Option<i64>) -> Requirement {
        let values = values.iter().map(ToString::to_string).collect();
        Requirement { key: key.to_owned(), operator, values, min_values }
    }

    #[track_caller]
    fn check(key: &str, operator: Operator, values: &[&str], min_values: Option<i64>, expected: &Expect) {
        let sets = LabelSets::for_provider(Provider::Kwok);
        expected.assert_eq(&joined(&validate(&requirement(key, operator, values, min_values), &sets)));
    }

    #[test]
    fn good_requirements_have_no_errors() {
        use Operator::{DoesNotExist, Exists, Gt, Gte, In, Lt, Lte, NotIn};
        let none = expect![[""]];
        for (key, operator, values) in [
            ("example.com/x", In, &["a", "b"][..]),
            ("example.com/x", NotIn, &["a"]),
            // Neither an empty NotIn nor superfluous values are errors in a NodePool.
            ("example.com/x", NotIn, &[]),
            ("example.com/x", Exists, &["a"]),
            ("example.com/x", DoesNotExist, &[]),
            ("example.com/x", Gt, &["0"]),
            ("example.com/x", Lt, &["007"]),
            ("example.com/x", Gte, &["9223372036854775807"]),
            ("example.com/x", Lte, &["1"]),
            ("example.com/x", In, &[""]),
            ("karpenter.sh/capacity-type", In, &["spot", "on-demand", "reserved"]),
            // Only In is checked against the known values.
            ("karpenter.sh/capacity-type", NotIn, &["nonsense"]),
            ("beta.kubernetes.io/arch", In, &["amd64"]),
            ("karpenter.kwok.sh/instance-cpu", In, &["4"]),
        ] {
            check(key, operator, values, None, &none);
        }
    }

    #[test]
    fn restricted_labels_are_named() {
        let expected = expect![
            "using label kubernetes.io/hostname is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh]"
        ];
        check("kubernetes.io/hostname", Operator::Exists, &[], None, &expected);
    }

    #[test]
    fn unknown_values_alone_are_an_error() {
        check(
            "karpenter.sh/capacity-type",
            Operator::In,
            &["ondemand", "Spot"],
            None,
            &expect![
                "no valid values found in [ondemand Spot] for karpenter.sh/capacity-type, expected one of: map[on-demand:{} reserved:{} spot:{}], got: [ondemand Spot]"
            ],
        );
    }

    #[test]
    fn unknown_values_beside_known_ones_are_for_the_log() {
        let mixed = requirement("karpenter.sh/capacity-type", Operator::In, &["spot", "Spot"], None);
        let sets = LabelSets::core();
        assert!(validate(&mixed, &sets).is_empty());
        assert_eq!(unknown_values(&mixed, &sets), ["Spot"]);
        let other = requirement("example.com/x", Operator::In, &["Spot"], None);
        assert!(unknown_values(&other, &sets).is_empty());
        let not_in = requirement("karpenter.sh/capacity-type", Operator::NotIn, &["Spot"], None);
        assert!(unknown_values(&not_in, &sets).is_empty());
    }

    #[test]
    fn unknown_values_do_not_count_for_min_values() {
        check(
            "karpenter.sh/capacity-type",
            Operator::In,
            &["spot", "Spot"],
            Some(2),
            &expect![
                "not enough valid values found in [spot Spot] for karpenter.sh/capacity-type, expected at least 2 valid values from: [on-demand reserved spot], got: 1"
            ],
        );
    }

    #[test]
    fn keys_and_values_must_be_those_of_labels() {
        check(
            "a b",
            Operator::In,
            &["ok", "not ok"],
            None,
            &expect![
                "key a b is not a qualified name, name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); invalid value not ok for key a b, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ],
        );
    }

    #[test]
    fn in_needs_a_value_and_min_values_of_them() {
        check(
            "x",
            Operator::In,
            &[],
            Some(1),
            &expect![
                "key x with operator In must have a value defined; key x with operator In must have at least minimum number of values defined in 'values' field"
            ],
        );
        check(
            "x",
            Operator::In,
            &["a"],
            Some(2),
            &expect![
                "key x with operator In must have at least minimum number of values defined in 'values' field"
            ],
        );
        check("x", Operator::Exists, &[], Some(2), &expect![[""]]);
    }

    #[test]
    fn comparisons_need_one_number() {
        for values in [&[][..], &["1", "2"], &["one"], &["-1"], &["1.5"], &[""], &["9223372036854775808"]] {
            for operator in [Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte] {
                let errors = validate(&requirement("x", operator, values, None), &LabelSets::core());
                let last = errors.last().map(ToString::to_string);
                let expected =
                    format!("key x with operator {operator} must have a single positive integer value");
                assert_eq!(last, Some(expected));
            }
        }
    }

    #[test]
    fn errors_name_the_normalized_key() {
        check(
            "beta.kubernetes.io/os",
            Operator::In,
            &[],
            None,
            &expect!["key kubernetes.io/os with operator In must have a value defined"],
        );
    }

    #[test]
    fn every_error_of_a_requirement_is_found() {
        check(
            "karpenter.sh/a b",
            Operator::Gt,
            &["-1"],
            None,
            &expect![
                "using label karpenter.sh/a b is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh]; key karpenter.sh/a b is not a qualified name, name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); invalid value -1 for key karpenter.sh/a b, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'); key karpenter.sh/a b with operator Gt must have a single positive integer value"
            ],
        );
    }
}

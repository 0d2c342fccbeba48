//! The kubelet's settings for one instance type, the same for what is planned and for what is launched.

use std::collections::BTreeMap;

use kube_cel::cel::Program;

use super::expressions::{Scope, Variables, is_amount};
use super::{Invalid, Kubelet};
use crate::instance_type::pods;
use crate::node_class::Class;
use crate::port::InstanceTypeInfo;

/// What depends on the instance type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resolved {
    /// How many pods a node takes at most, if the NodeClass says so.
    pub max_pods: Option<i32>,
    /// What is kept for Kubernetes.
    pub kube_reserved: BTreeMap<String, String>,
    /// What is kept for the system.
    pub system_reserved: BTreeMap<String, String>,
}

impl Resolved {
    /// Works the settings out for a type. What is to be kept and cannot be worked out is left out and logged.
    pub fn of(class: &Class<'_>, info: &InstanceTypeInfo, reserved: i64) -> Result<Self, Invalid> {
        let (resolved, mistakes) = resolve(class, info, reserved)?;
        for mistake in mistakes {
            tracing::error!("instance-type" = info.name, "ignoring an expression, {mistake}");
        }
        Ok(resolved)
    }

    /// Everything that cannot be worked out for a type.
    pub fn mistakes(class: &Class<'_>, info: &InstanceTypeInfo, reserved: i64) -> Vec<Invalid> {
        match resolve(class, info, reserved) {
            Ok((_, mistakes)) => mistakes,
            Err(mistake) => vec![mistake],
        }
    }
}

fn resolve(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    reserved: i64,
) -> Result<(Resolved, Vec<Invalid>), Invalid> {
    let Kubelet { kube_reserved, system_reserved, .. } = &class.kubelet;
    let mut resolved = Resolved {
        max_pods: class.kubelet.literal_max_pods(),
        kube_reserved: amounts(kube_reserved),
        system_reserved: amounts(system_reserved),
    };
    let Some(expressions) = class.expressions.as_ref().filter(|all| !all.is_empty()) else {
        return Ok((resolved, Vec::new()));
    };
    let mut scope = Scope::new(&Variables {
        vcpus: i64::from(info.vcpus),
        memory_mib: info.memory_mib,
        default_enis: info.default_card_interfaces(),
        ips_per_eni: info.ipv4_per_interface(),
        max_pods: pods::count(class, info, resolved.max_pods, reserved),
        instance_type: &info.name,
    });
    if let Some(program) = &expressions.max_pods {
        let invalid = |message: String| Invalid {
            field: "maxPods".to_owned(),
            message: format!("evaluating for instance type {}, {message}", info.name),
        };
        let most = scope.evaluate(program).map_err(invalid)?;
        let most = i32::try_from(most)
            .ok()
            .filter(|most| *most >= 0)
            .ok_or_else(|| invalid(format!("the result {most} is not between 0 and {}", i32::MAX)))?;
        resolved.max_pods = Some(most);
        scope.set_max_pods(pods::count(class, info, resolved.max_pods, reserved));
    }
    let mut mistakes = Vec::new();
    for (field, programs, amounts) in [
        ("kubeReserved", &expressions.kube_reserved, &mut resolved.kube_reserved),
        ("systemReserved", &expressions.system_reserved, &mut resolved.system_reserved),
    ] {
        for (name, program) in programs {
            match amount(name, program, &scope) {
                Ok(amount) => {
                    amounts.insert(name.clone(), amount);
                }
                Err(message) => mistakes.push(Invalid {
                    field: format!("{field}.{name}"),
                    message: format!("evaluating for instance type {}, {message}", info.name),
                }),
            }
        }
    }
    Ok((resolved, mistakes))
}

fn amounts(written: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let amounts = written.iter().filter(|(_, text)| is_amount(text));
    amounts.map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// An amount of a resource, rounded up so that machines that hardly differ get the same.
fn amount(name: &str, program: &Program, scope: &Scope) -> Result<String, String> {
    let number = scope.evaluate(program)?;
    let number = u64::try_from(number).map_err(|_| format!("the result {number} is negative"))?;
    Ok(written(name, number))
}

fn written(name: &str, number: u64) -> String {
    let up_to = |step: u64| {
        let rounded = number.next_multiple_of(step);
        if i64::try_from(rounded).is_ok() { rounded } else { number }
    };
    match name {
        "cpu" => format!("{}m", up_to(10)),
        "memory" => format!("{}Mi", up_to(16)),
        "ephemeral-storage" => format!("{number}Gi"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_and_have_units() {
        let most = i64::MAX.unsigned_abs();
        for (name, number, expected) in [
            ("cpu", 71, "80m".to_owned()),
            ("cpu", 80, "80m".to_owned()),
            ("cpu", 0, "0m".to_owned()),
            ("memory", 1, "16Mi".to_owned()),
            ("memory", 0, "0Mi".to_owned()),
            ("memory", most, format!("{most}Mi")),
            ("cpu", most - 3, format!("{}m", most - 3)),
            ("ephemeral-storage", 3, "3Gi".to_owned()),
            ("pid", 7, "7".to_owned()),
        ] {
            assert_eq!(written(name, number), expected, "{name} {number}");
        }
    }
}

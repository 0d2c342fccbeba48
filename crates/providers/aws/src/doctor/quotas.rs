//! How much of the account's quotas is used: EC2 counts virtual processors, by kinds of machines and how they are paid.

use std::collections::BTreeMap;

use cloud::doctor::Check;

use super::said;
use crate::port::{Error, Instance, InstanceTypeInfo, Quota};
use crate::quotas::{CODES, code, kind};

/// From which share on a quota is worth a look.
const NEARLY_USED: f64 = 0.8;

/// Without these, hardly anything can be launched.
const USUAL: [&str; 2] = ["L-1216C47A", "L-34B43A08"];

/// How many virtual processors of each quota are used. Types that EC2 did not describe count nothing.
fn used(instances: &[Instance], types: &[InstanceTypeInfo]) -> BTreeMap<&'static str, u32> {
    let processors: BTreeMap<&str, u32> = types.iter().map(|info| (info.name.as_str(), info.vcpus)).collect();
    let mut used = BTreeMap::new();
    for instance in instances {
        let is_spot = match instance.lifecycle.as_deref() {
            None | Some("") => false,
            Some("spot") => true,
            // What was paid beforehand does not count.
            Some(_) => continue,
        };
        let Some(kind) = kind(&instance.instance_type) else { continue };
        let Some(code) = code(kind, is_spot) else { continue };
        *used.entry(code).or_default() += processors.get(instance.instance_type.as_str()).unwrap_or(&0);
    }
    used
}

/// What is said about quotas: those that are usual or used, each alone; the others together.
pub(super) fn report(
    quotas: &Result<Vec<Quota>, Error>,
    instances: &[Instance],
    types: &[InstanceTypeInfo],
) -> Vec<Check> {
    let quotas = match quotas {
        Ok(quotas) => quotas,
        Err(error) => {
            let message = format!("they cannot be asked for, {}", said(error));
            let advice = "the policy doctor allows it; it is not needed for anything else";
            return vec![Check::warning("quotas", message, advice)];
        }
    };
    let used = used(instances, types);
    let (mut checks, mut none): (Vec<Check>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut seen: Vec<&str> = Vec::new();
    for (code, ..) in CODES {
        let Some(quota) = quotas.iter().find(|quota| quota.code == code) else { continue };
        if seen.contains(&code) {
            continue;
        }
        seen.push(code);
        let used = used.get(code).copied().unwrap_or_default();
        if used == 0 && !USUAL.contains(&code) {
            if quota.value <= 0.0 {
                none.push(&quota.name);
            }
            continue;
        }
        checks.push(of_quota(quota, used));
    }
    if !none.is_empty() {
        let message = format!("nothing can be launched of {}", none.join(", "));
        checks.push(Check::good("quotas of 0", message));
    }
    if checks.is_empty() {
        let message = "the account lists no quotas of running instances";
        checks.push(Check::warning("quotas", message, "look at Service Quotas in the console"));
    }
    checks
}

fn of_quota(quota: &Quota, used: u32) -> Check {
    let Quota { code, name, value } = quota;
    let about = format!("quota {code}");
    let message = format!("{used} of {value} vCPUs are used, {name}");
    let advice = format!(
        "ask for more: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} --desired-value …"
    );
    let used = f64::from(used);
    if used >= *value {
        Check::bad(about, message, advice)
    } else if used >= value * NEARLY_USED {
        Check::warning(about, message, advice)
    } else {
        Check::good(about, message)
    }
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;

    use super::*;
    use crate::quotas::Kind;

    fn instance(instance_type: &str, lifecycle: Option<&str>) -> Instance {
        Instance {
            instance_type: instance_type.to_owned(),
            lifecycle: lifecycle.map(str::to_owned),
            ..Instance::default()
        }
    }

    fn info(name: &str, vcpus: u32) -> InstanceTypeInfo {
        InstanceTypeInfo { name: name.to_owned(), vcpus, ..InstanceTypeInfo::default() }
    }

    fn quota(code: &str, value: f64) -> Quota {
        Quota { code: code.to_owned(), name: format!("name of {code}"), value }
    }

    #[test]
    fn machines_count_by_family_and_by_how_they_are_paid() {
        for (name, expected) in [
            ("m5.large", Some(Kind::Standard)),
            ("is4gen.large", Some(Kind::Standard)),
            ("i7ie.large", Some(Kind::Standard)),
            ("dl1.24xlarge", Some(Kind::Dl)),
            ("hpc7a.96xlarge", Some(Kind::Hpc)),
            ("gr6.4xlarge", Some(Kind::G)),
            ("vt1.3xlarge", Some(Kind::G)),
            ("p4d.24xlarge", Some(Kind::P)),
            ("p5en.48xlarge", Some(Kind::P5)),
            ("trn2.48xlarge", Some(Kind::Trn)),
            ("x2gd.large", Some(Kind::X)),
            ("u-6tb1.metal", None),
            ("mac2.metal", None),
            ("", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        let instances = [
            instance("m5.large", None),
            instance("m5.large", None),
            instance("m5.large", Some("spot")),
            instance("p5.48xlarge", Some("spot")),
            instance("p5.48xlarge", None),
            instance("p5.48xlarge", Some("capacity-block")),
            instance("new.large", None),
        ];
        let types = [info("m5.large", 2), info("p5.48xlarge", 192)];
        let expected =
            [("L-1216C47A", 4), ("L-34B43A08", 2), ("L-C4BD4855", 192), ("L-417A185B", 192)].into();
        assert_eq!(used(&instances, &types), expected);
    }

    #[test]
    fn a_quota_is_good_nearly_used_or_used() {
        let instances: Vec<Instance> = (0..4).map(|_| instance("m5.large", None)).collect();
        let types = [info("m5.large", 2)];
        for (value, level) in
            [(100.0, Level::Good), (10.0, Level::Warning), (8.0, Level::Bad), (0.0, Level::Bad)]
        {
            let checks = report(&Ok(vec![quota("L-1216C47A", value)]), &instances, &types);
            assert_eq!((checks.len(), checks[0].level), (1, level), "{value}");
            assert!(checks[0].message.contains("8 of"), "{}", checks[0].message);
        }
        let quotas =
            Ok(vec![quota("L-1216C47A", 100.0), quota("L-417A185B", 0.0), quota("L-DB2E81BA", 64.0)]);
        let checks = report(&quotas, &instances, &types);
        assert_eq!(checks.len(), 2, "{checks:?}");
        assert!(checks[1].message.ends_with("name of L-417A185B") && checks[1].level == Level::Good);
        let denied = Error::new("servicequotas:ListServiceQuotas", "AccessDeniedException", "no");
        assert_eq!(report(&Err(denied), &[], &[])[0].level, Level::Warning);
    }
}

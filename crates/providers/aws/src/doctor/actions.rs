//! Everything that the controller must be allowed to do, by the policies of `deploy/aws/policies`, and what does not
//! work without it.

use super::Subject;

/// A policy, and what it allows.
pub(super) struct Policy {
    /// The name of its file, without the ending.
    pub(super) name: &'static str,
    pub(super) actions: &'static [Action],
}

/// Something that must be allowed.
pub(super) struct Action {
    pub(super) name: &'static str,
    pub(super) need: Need,
    /// What does not work without it.
    pub(super) without: &'static str,
}

/// When an action is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// In any case.
    Always,
    /// Things work without it, though less well.
    Useful,
    /// If EC2NodeClasses name roles, or nobody knows whether they do.
    Role,
    /// As `Role`, but it matters little.
    ProfileCollection,
    /// If the price list can be reached.
    Prices,
    /// Unless the endpoint of the cluster is set; some things need it even then.
    Cluster,
    /// If there is a queue.
    Queue,
    /// If zonal shifts are followed.
    ZonalShift,
}

/// How much it matters that something is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matter {
    Much,
    Little,
    NotAtAll,
}

impl Need {
    pub(super) fn of(self, subject: &Subject) -> Matter {
        let if_so = |it_is: bool, otherwise: Matter| if it_is { Matter::Much } else { otherwise };
        match self {
            Self::Always => Matter::Much,
            Self::Useful => Matter::Little,
            Self::Role => if_so(subject.may_use_roles(), Matter::NotAtAll),
            Self::ProfileCollection if subject.may_use_roles() => Matter::Little,
            Self::Prices if !subject.isolated_vpc => Matter::Little,
            Self::ProfileCollection | Self::Prices => Matter::NotAtAll,
            Self::Cluster => if_so(!subject.has_endpoint, Matter::Little),
            Self::Queue => if_so(subject.interruption_queue.is_some(), Matter::NotAtAll),
            Self::ZonalShift => if_so(subject.zonal_shift, Matter::NotAtAll),
        }
    }
}

const fn action(name: &'static str, need: Need, without: &'static str) -> Action {
    Action { name, need, without }
}

const NOTHING_LAUNCHED: &str = "nothing can be launched";
const NOTHING_SELECTED: &str = "no EC2NodeClass becomes ready";
const NO_PROFILES: &str = "spec.role of EC2NodeClasses cannot be used";

/// All policies that the controller needs.
pub(super) const POLICIES: [Policy; 6] = [
    Policy {
        name: "node-lifecycle",
        actions: &[
            action("ec2:RunInstances", Need::Always, NOTHING_LAUNCHED),
            action("ec2:CreateFleet", Need::Always, NOTHING_LAUNCHED),
            action("ec2:CreateLaunchTemplate", Need::Always, NOTHING_LAUNCHED),
            action("ec2:CreateTags", Need::Always, NOTHING_LAUNCHED),
            action("ec2:TerminateInstances", Need::Always, "nodes are never removed"),
            action("ec2:DeleteLaunchTemplate", Need::Always, "launch templates pile up"),
            action("ec2:RebootInstances", Need::Useful, "node repair cannot boot nodes again"),
        ],
    },
    Policy {
        name: "iam-integration",
        actions: &[
            action("iam:PassRole", Need::Always, NOTHING_LAUNCHED),
            action("iam:CreateInstanceProfile", Need::Role, NO_PROFILES),
            action("iam:TagInstanceProfile", Need::Role, NO_PROFILES),
            action("iam:AddRoleToInstanceProfile", Need::Role, NO_PROFILES),
            action("iam:RemoveRoleFromInstanceProfile", Need::Role, "instance profiles pile up"),
            action("iam:DeleteInstanceProfile", Need::Role, "instance profiles pile up"),
            action("iam:GetInstanceProfile", Need::Role, NO_PROFILES),
            action("iam:ListInstanceProfiles", Need::ProfileCollection, "instance profiles pile up"),
        ],
    },
    Policy {
        name: "eks-integration",
        actions: &[action(
            "eks:DescribeCluster",
            Need::Cluster,
            "the endpoint must be set, and AL2023, the version by EKS and zonal shifts do not work",
        )],
    },
    Policy {
        name: "interruption",
        actions: &[
            action("sqs:GetQueueUrl", Need::Queue, "interruptions are not seen"),
            action("sqs:ReceiveMessage", Need::Queue, "interruptions are not seen"),
            action("sqs:DeleteMessage", Need::Queue, "interruptions are handled again and again"),
        ],
    },
    Policy {
        name: "discovery",
        actions: &[
            action("ec2:DescribeCapacityReservations", Need::Always, NOTHING_SELECTED),
            action("ec2:DescribeImages", Need::Always, NOTHING_SELECTED),
            action("ec2:DescribeInstanceStatus", Need::Useful, "broken instances are not seen"),
            action("ec2:DescribeInstanceTypeOfferings", Need::Always, NOTHING_LAUNCHED),
            action("ec2:DescribeInstanceTypes", Need::Always, "the controller does not start"),
            action("ec2:DescribeInstances", Need::Always, "nodes cannot be looked after"),
            action("ec2:DescribeLaunchTemplates", Need::Always, "launch templates pile up"),
            action("ec2:DescribePlacementGroups", Need::Useful, "placement groups cannot be used"),
            action("ec2:DescribeSecurityGroups", Need::Always, NOTHING_SELECTED),
            action("ec2:DescribeSpotPriceHistory", Need::Always, "no spot instances are launched"),
            action("ec2:DescribeSubnets", Need::Always, NOTHING_SELECTED),
            action("ssm:GetParameter", Need::Useful, "aliases of images cannot be used"),
            action("pricing:GetProducts", Need::Prices, "prices are those that are built in"),
        ],
    },
    Policy {
        name: "zonal-shift",
        actions: &[action(
            "arc-zonal-shift:GetManagedResource",
            Need::ZonalShift,
            "the controller does not start with zonal shifts enabled",
        )],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_action_of_the_policies_is_known_and_no_other() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/aws/policies");
        for policy in &POLICIES {
            let text = std::fs::read_to_string(format!("{folder}/{}.json", policy.name)).unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            let mut allowed: BTreeSet<String> = BTreeSet::new();
            for statement in read["Statement"].as_array().unwrap() {
                match &statement["Action"] {
                    Value::String(one) => drop(allowed.insert(one.clone())),
                    many => allowed.extend(serde_json::from_value::<Vec<String>>(many.clone()).unwrap()),
                }
            }
            let known: BTreeSet<String> = policy.actions.iter().map(|each| each.name.to_owned()).collect();
            assert_eq!(known, allowed, "{}", policy.name);
        }
    }

    #[test]
    fn how_much_something_matters_depends_on_what_is_used() {
        let mut subject = Subject::default();
        assert_eq!(Need::Always.of(&subject), Matter::Much);
        assert_eq!(Need::Role.of(&subject), Matter::Much, "nobody knows the classes");
        assert_eq!(Need::Queue.of(&subject), Matter::NotAtAll);
        assert_eq!(Need::Cluster.of(&subject), Matter::Much);
        subject.classes = Some(Vec::new());
        subject.interruption_queue = Some("q".to_owned());
        subject.has_endpoint = true;
        assert_eq!(Need::Role.of(&subject), Matter::Much, "there are none yet");
        assert_eq!(Need::Queue.of(&subject), Matter::Much);
        assert_eq!(Need::Cluster.of(&subject), Matter::Little);
        let mut class = api::aws::EC2NodeClass::default();
        class.spec.instance_profile = Some("own".to_owned());
        subject.classes = Some(vec![class]);
        assert_eq!(Need::Role.of(&subject), Matter::NotAtAll);
        assert_eq!(Need::ProfileCollection.of(&subject), Matter::NotAtAll);
        subject.classes = None;
        assert_eq!(Need::ProfileCollection.of(&subject), Matter::Little);
        subject.isolated_vpc = true;
        assert_eq!(Need::ProfileCollection.of(&subject), Matter::NotAtAll, "IAM cannot be reached");
        assert_eq!(Need::Prices.of(&subject), Matter::NotAtAll);
    }
}

//! What answers of AWS mean for the status of a NodeClass.

use std::time::Duration;

use api::aws::{Ami, CapacityReservation, EC2NodeClass, SecurityGroup, Subnet};
use api::conditions::Conditions;
use api::names::conditions::aws as conditions;
use api::names::messages;
use api::names::reasons::aws as reasons;
use api::shared::ConditionStatus;
use jiff::Timestamp;
use runtime::Again;

/// What came of one step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step<T> {
    /// This.
    Found(T),
    /// The class asks for something that cannot be.
    Wrong {
        /// The reason of the condition.
        reason: &'static str,
        /// What the condition says.
        message: String,
    },
    /// Nobody knows; what was known stays.
    Unknown,
}

impl<T> Step<T> {
    pub(super) fn wrong(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Wrong { reason, message: message.into() }
    }
}

/// What came of all steps but the last.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) amis: Step<Vec<Ami>>,
    /// Nothing if reservations are none of our business.
    pub(super) reservations: Option<Step<Vec<CapacityReservation>>>,
    pub(super) placement_group: Step<()>,
    pub(super) subnets: Step<Vec<Subnet>>,
    pub(super) security_groups: Step<Vec<SecurityGroup>>,
    pub(super) instance_profile: Step<String>,
}

const MINUTE: Again = Again::After(Duration::from_mins(1));

/// What `Ready` depends on.
pub(super) fn dependents(reserved_capacity: bool) -> Vec<&'static str> {
    let mut all = conditions::DEPENDENTS.to_vec();
    if reserved_capacity {
        all.push(conditions::CAPACITY_RESERVATIONS_READY);
    }
    all
}

/// Writes answers into the status, and says when to ask again.
pub(super) fn apply(
    object: &mut EC2NodeClass,
    answers: Answers,
    reserved_capacity: bool,
    now: Timestamp,
) -> Again {
    let Answers { amis, reservations, placement_group, subnets, security_groups, instance_profile } = answers;
    let status = object.status.get_or_insert_default();
    let mut verdicts: Vec<(&'static str, Step<()>)> = Vec::new();
    let mut again = MINUTE;
    let amis = not_empty(amis, reasons::AMI_NOT_FOUND, messages::AWS_AMI_NOT_FOUND, "amiSelectorTerms");
    verdicts.push((conditions::AMIS_READY, take(amis, &mut status.amis)));
    if let Some(reservations) = reservations {
        if let Step::Found(found) = &reservations {
            let ends = found.iter().filter_map(|each| each.end_time.as_ref()).map(|time| time.0).min();
            let wait =
                ends.map(|ends| Duration::try_from(ends.duration_since(now)).unwrap_or(Duration::ZERO));
            again = again.or_sooner(wait.map_or(Again::No, Again::After));
        }
        let verdict = take(reservations, &mut status.capacity_reservations);
        verdicts.push((conditions::CAPACITY_RESERVATIONS_READY, verdict));
    }
    verdicts.push((conditions::PLACEMENT_GROUP_READY, placement_group));
    let message = messages::AWS_SUBNETS_NOT_FOUND;
    let subnets = not_empty(subnets, reasons::SUBNETS_NOT_FOUND, message, "subnetSelectorTerms");
    verdicts.push((conditions::SUBNETS_READY, take(subnets, &mut status.subnets)));
    let (reason, message) = (reasons::SECURITY_GROUPS_NOT_FOUND, messages::AWS_SECURITY_GROUPS_NOT_FOUND);
    let groups = not_empty(security_groups, reason, message, "securityGroupSelectorTerms");
    verdicts.push((conditions::SECURITY_GROUPS_READY, take(groups, &mut status.security_groups)));
    let verdict = match instance_profile {
        Step::Found(name) => {
            status.instance_profile = name;
            Step::Found(())
        }
        // The profile that nodes were launched with stays known, so that nobody deletes it.
        Step::Wrong { reason, message } => Step::Wrong { reason, message },
        Step::Unknown => Step::Unknown,
    };
    verdicts.push((conditions::INSTANCE_PROFILE_READY, verdict));
    let mut all = Conditions::with_dependents(object, dependents(reserved_capacity), now);
    for (condition, verdict) in verdicts {
        match verdict {
            Step::Found(()) => {
                all.set_true(condition);
            }
            Step::Wrong { reason, message } => {
                all.set(condition, ConditionStatus::False, reason, &message);
            }
            Step::Unknown => again = again.or_sooner(Again::secs(10)),
        }
    }
    again
}

/// Nothing that was found is wrong: the field that selects it is named.
fn not_empty<T>(step: Step<Vec<T>>, reason: &'static str, message: &str, field: &str) -> Step<Vec<T>> {
    match step {
        Step::Found(found) if found.is_empty() => {
            Step::wrong(reason, format!("{message}, check spec.{field}"))
        }
        step => step,
    }
}

/// Takes over what was found; what is wrong leaves nothing.
fn take<T>(step: Step<Vec<T>>, into: &mut Vec<T>) -> Step<()> {
    match step {
        Step::Found(found) => {
            *into = found;
            Step::Found(())
        }
        Step::Wrong { reason, message } => {
            into.clear();
            Step::Wrong { reason, message }
        }
        Step::Unknown => Step::Unknown,
    }
}

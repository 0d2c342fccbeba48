//! Whether launches with a NodeClass would be accepted: what is tried out, and what the answers mean.

use api::labels::LabelSets;
use api::names::labels::aws as labels;
use api::names::reasons::aws as reasons;
use api::shared::{Operator, Requirement};
use cluster::instance_types::{InstanceType, Wanted};

use crate::ami::Mapping;
use crate::instance::classify;
use crate::instance_type::{Discovered, incompatibility};
use crate::node_class::Class;
use crate::port::{
    Error, FleetOverride, FleetPurchase, FleetRequest, FleetTemplate, InstanceTypeInfo, RunInstancesCheck,
    Tags, TemplateInterface,
};
use crate::requirements::within;

/// Types that every region has.
const USUAL: [&str; 2] = ["m5.large", "m6g.large"];

/// What is tried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To create a launch template, which is done.
    CreateLaunchTemplate,
    /// To create a fleet, which is only tried.
    CreateFleet,
    /// To run an instance, which is only tried.
    RunInstances,
}

impl Attempt {
    const fn name(self) -> &'static str {
        match self {
            Self::CreateLaunchTemplate => "CreateLaunchTemplate",
            Self::CreateFleet => "CreateFleet",
            Self::RunInstances => "RunInstances",
        }
    }

    const fn denied(self) -> &'static str {
        match self {
            Self::CreateLaunchTemplate => reasons::CREATE_LAUNCH_TEMPLATE_AUTH_CHECK_FAILED,
            Self::CreateFleet => reasons::CREATE_FLEET_AUTH_CHECK_FAILED,
            Self::RunInstances => reasons::RUN_INSTANCES_AUTH_CHECK_FAILED,
        }
    }
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It would be accepted.
    Accepted,
    /// It may be accepted later, without anybody doing anything.
    TryAgain,
    /// It may be accepted later, if an instance profile appears; the condition says so meanwhile.
    ProfileMissing {
        /// What the condition says.
        message: String,
    },
    /// It will not be accepted until somebody does something.
    Refused {
        /// The reason of the condition.
        reason: &'static str,
        /// What the condition says.
        message: String,
    },
    /// Nobody knows.
    Failed,
}

/// What an answer means. An instance profile that we make ourselves appears by itself.
pub fn judge(attempt: Attempt, class: &Class<'_>, answer: Result<(), &Error>) -> Answer {
    let Err(error) = answer else { return Answer::Accepted };
    if error.is_dry_run_success() {
        return Answer::Accepted;
    }
    if error.is_instance_profile_not_found() {
        return match &class.spec.instance_profile {
            Some(name) => {
                Answer::ProfileMissing { message: format!("instance profile {name:?} does not exist") }
            }
            None => Answer::TryAgain,
        };
    }
    if error.is_user_data_too_large() {
        let most = crate::user_data::MOST_BYTES;
        let message = format!("the user data is larger than the {most} bytes that EC2 accepts");
        return Answer::Refused { reason: reasons::USER_DATA_SIZE_LIMIT_EXCEEDED, message };
    }
    if error.is_transient() {
        return Answer::TryAgain;
    }
    if error.is_unauthorized() {
        let (_, why) = classify(&error.to_string());
        let message = format!("Controller isn't authorized to call ec2:{}: {why}", attempt.name());
        return Answer::Refused { reason: attempt.denied(), message };
    }
    Answer::Failed
}

/// The types that launches are tried out with, the best first: those that the NodePools of the class would get, and
/// that some image of the class starts and some zone of its subnets has. EC2 may refuse one for reasons of its own,
/// so that the next one is tried after a failure. Windows is tried with a usual one.
///
/// Types without accelerators come first, then those that all zones have, then those of today.
pub fn types_to_try<'a>(
    class: &Class<'_>,
    types: &'a [InstanceType],
    discovered: &Discovered,
    pools: &mut [Wanted<'_>],
    sets: &LabelSets,
) -> Vec<&'a InstanceType> {
    let mut images = Mapping::new(&class.status.amis, sets);
    let mut ranked: Vec<(Rank<'a>, &'a InstanceType)> = types
        .iter()
        .filter(|each| images.image_for(&each.requirements).is_some())
        .filter_map(|each| {
            let info = discovered.get(&each.name)?;
            let zones = discovered.zones_of(&each.name);
            let lacking = class.zones.iter().filter(|zone| !zones.contains(zone.name)).count();
            let is_somewhere = lacking < class.zones.len();
            let is_usable = is_somewhere && incompatibility(class, info).is_none();
            is_usable.then(|| ((has_accelerators(each), lacking, is_old(info), each.name.as_str()), each))
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let usable: Vec<&InstanceType> = ranked.into_iter().map(|(_, each)| each).collect();
    let mut is_wanted = |each: &InstanceType| pools.iter_mut().any(|pool| pool.admits(&each.requirements));
    let wanted: Vec<&InstanceType> = usable.iter().copied().filter(|each| is_wanted(each)).collect();
    if !wanted.is_empty() && class.family().windows_build.is_none() {
        return wanted;
    }
    let usual: Vec<&InstanceType> =
        usable.iter().copied().filter(|each| USUAL.contains(&each.name.as_str())).collect();
    if usual.is_empty() { usable } else { usual }
}

/// How good a type is to try out launches with, the lower the better: whether it has accelerators, how many zones
/// lack it, whether it is an old one, and its name.
type Rank<'a> = (bool, usize, bool, &'a str);

/// Whether a type is of a generation that EC2 has superseded. Its images, tenancies and zones are not those of today.
fn is_old(info: &InstanceTypeInfo) -> bool {
    info.previous_generation || info.hypervisor.as_deref() == Some("xen")
}

/// The tenancy that launches are tried out with: that of its own hardware as soon as one NodePool asks for it or
/// allows it in so many words.
pub fn tenancy_to_try(pools: &[Vec<Requirement>], sets: &LabelSets) -> &'static str {
    let dedicated = [within(labels::INSTANCE_TENANCY, ["dedicated"])];
    let allows = |pool: &Vec<Requirement>| {
        let own: Vec<Requirement> =
            pool.iter().filter(|each| each.key == labels::INSTANCE_TENANCY).cloned().collect();
        !own.is_empty() && Wanted::new(&own, sets).is_ok_and(|mut wanted| wanted.admits(&dedicated))
    };
    if pools.iter().any(allows) { "dedicated" } else { "default" }
}

fn has_accelerators(each: &InstanceType) -> bool {
    each.requirements.iter().any(|label| {
        [labels::INSTANCE_GPU_COUNT, labels::INSTANCE_ACCELERATOR_COUNT].contains(&label.key.as_str())
            && label.operator != Operator::DoesNotExist
    })
}

/// The fleet that is tried out: one type in all subnets.
pub fn fleet_check(class: &Class<'_>, template: &str, instance_type: &str, tags: Tags) -> FleetRequest {
    let overrides = class.status.subnets.iter().map(|subnet| FleetOverride {
        instance_type: instance_type.to_owned(),
        subnet_id: subnet.id.clone(),
        zone: subnet.zone.clone(),
        ..FleetOverride::default()
    });
    FleetRequest {
        dry_run: true,
        // Whatever it is for, this is only a question.
        context: None,
        templates: vec![FleetTemplate { name: template.to_owned(), overrides: overrides.collect() }],
        purchase: FleetPurchase::OnDemand { prioritized: false },
        count: 1,
        tags,
    }
}

/// The instances that are tried out, one for each subnet. One that is accepted is enough; else the first answer
/// counts.
pub fn run_checks<'a>(
    class: &'a Class<'_>,
    template: &'a str,
    instance_type: &'a str,
    tags: &'a Tags,
) -> impl Iterator<Item = RunInstancesCheck> + 'a {
    class.status.subnets.iter().map(move |subnet| {
        let interface =
            |network_card: Option<i32>, device: i32, kind: Option<&'static str>| TemplateInterface {
                network_card,
                device,
                interface_type: kind,
                subnet: Some(subnet.id.clone()),
                ..TemplateInterface::default()
            };
        let listed = class.spec.network_interfaces.iter().flatten();
        let mut interfaces: Vec<TemplateInterface> = listed
            .map(|each| {
                interface(
                    Some(each.network_card_index),
                    each.device_index,
                    Some(each.interface_type.as_str()),
                )
            })
            .collect();
        if interfaces.is_empty() {
            interfaces.push(interface(None, 0, None));
        }
        RunInstancesCheck {
            template: template.to_owned(),
            instance_type: instance_type.to_owned(),
            interfaces,
            tags: tags.clone(),
        }
    })
}

//! What it means that EC2 did not launch something.

use std::collections::BTreeSet;

use api::names::reasons::{aws as reasons, node_claim};
use api::names::values::capacity_type;
use cloud::Error;
use cloud::unavailable::Scope;

use super::plan::LaunchPlan;
use super::subnets::ChosenSubnet;
use crate::instance_type;
use crate::port::error::{
    INSUFFICIENT_FREE_ADDRESSES, SPOT_ROLE_NOT_PERMITTED, is_spread_limit, is_unfulfillable,
};
use crate::port::{self, FleetError};
use crate::quotas::UsedUp;

/// A launch that did not come to what was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// How it was to be bought.
    pub plan: &'a LaunchPlan,
    /// The placement group.
    pub placement_group: Option<&'a str>,
    /// The instance types that were tried.
    pub types: &'a [&'a str],
}

/// What follows from an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Something is not asked for again for a while.
    Unavailable {
        /// What.
        scope: Scope,
        /// Why.
        reason: String,
    },
    /// A subnet has no addresses left.
    SubnetFull(String),
    /// The reservation of a type in a zone is full.
    ReservationFull {
        /// The instance type.
        instance_type: String,
        /// The zone.
        zone: String,
    },
    /// The account cannot have spot instances yet; somebody must be told.
    SpotRoleMissing,
    /// The account has as much as it may have: whatever else counts for the quota is not asked for for a while.
    Quota {
        /// The instance type that was one too many; any if EC2 has not said it.
        instance_type: Option<String>,
        /// The code of the error.
        code: String,
    },
}

/// What follows from the errors of a launch. What an error does not say is not guessed.
pub fn effects(failed: &Failed<'_>, errors: &[FleetError]) -> Vec<Effect> {
    errors.iter().flat_map(|error| of_error(failed, error)).collect()
}

fn of_error(failed: &Failed<'_>, error: &FleetError) -> Vec<Effect> {
    let Failed { plan, placement_group, types } = *failed;
    let mut all = Vec::new();
    let unavailable = |scope| Effect::Unavailable { scope, reason: error.code.clone() };
    let port::Place { instance_type, zone, subnet_id, .. } = &error.place;
    if let (INSUFFICIENT_FREE_ADDRESSES, Some(subnet)) = (error.code.as_str(), subnet_id) {
        all.push(unavailable(Scope::subnet(subnet)));
        all.push(Effect::SubnetFull(subnet.clone()));
    }
    // It says nothing about its zone: others may have addresses.
    let is_subnet_full = error.code == INSUFFICIENT_FREE_ADDRESSES && subnet_id.is_some();
    let is_spread_full = is_spread_limit(&error.message) && placement_group.is_some();
    if plan.capacity_type == capacity_type::RESERVED {
        let is_full = is_unfulfillable(&error.code) && !is_spread_full && !is_subnet_full;
        if let (true, Some(instance_type), Some(zone)) = (is_full, instance_type, zone) {
            all.push(Effect::ReservationFull { instance_type: instance_type.clone(), zone: zone.clone() });
        }
        return all;
    }
    if UsedUp::of(&error.code, None).is_some() {
        all.push(Effect::Quota { instance_type: instance_type.clone(), code: error.code.clone() });
    }
    if error.code == SPOT_ROLE_NOT_PERMITTED {
        all.push(unavailable(Scope::capacity_type(capacity_type::SPOT)));
        all.push(Effect::SpotRoleMissing);
    }
    let place = placement_group.map(|group| instance_type::place(group, plan.partition.as_deref()));
    let scope = |name: &str, zone: &str| Scope::offering(name, zone, plan.capacity_type);
    if let (true, Some(group), Some(zone)) = (is_spread_full, placement_group, zone) {
        // No type fits any more, whatever it is.
        all.extend(types.iter().map(|name| unavailable(scope(name, zone).within(group))));
    } else if let (true, false, Some(name), Some(zone)) =
        (is_unfulfillable(&error.code), is_subnet_full, instance_type, zone)
    {
        all.push(unavailable(scope(name, zone).within(place.as_deref().unwrap_or_default())));
    }
    all
}

/// What metrics say about an error of a launch: zone, the ID of the zone, capacity type and reason.
pub fn metric_labels<'a>(
    plan: &LaunchPlan,
    subnets: &'a [ChosenSubnet],
    error: &'a FleetError,
) -> [&'a str; 4] {
    let zone = error.place.zone.as_deref().unwrap_or_default();
    let id = subnets.iter().find(|subnet| subnet.zone == zone).map_or("", |subnet| subnet.zone_id.as_str());
    let (reason, _) = classify(&format!("{}: {}", error.code, error.message));
    [zone, id, plan.capacity_type, reason]
}

/// What the claim is told if nothing was launched.
pub fn failure(errors: &[FleetError]) -> Error {
    let texts: BTreeSet<String> =
        errors.iter().map(|error| format!("{}: {}", error.code, error.message)).collect();
    let quotas: BTreeSet<UsedUp> = errors.iter().filter_map(quota).collect();
    let quotas = quotas.iter().map(|quota| format!("{quota} is used up, ask for more in Service Quotas"));
    let texts: Vec<String> = texts.into_iter().chain(quotas).collect();
    let text = format!("with fleet error(s), {}", texts.join("; "));
    let no_capacity =
        |error: &FleetError| is_unfulfillable(&error.code) || error.code == SPOT_ROLE_NOT_PERMITTED;
    if !errors.is_empty() && errors.iter().all(no_capacity) {
        return Error::InsufficientCapacity(text);
    }
    let (reason, message) = classify(&text);
    Error::Create { reason: reason.to_owned(), message: format!("{message} ({text})") }
}

fn quota(error: &FleetError) -> Option<UsedUp> {
    UsedUp::of(&error.code, error.place.instance_type.as_deref())
}

/// Whether no other offering would help: a quota of all launches is used up, or one of which nobody knows what else
/// counts for it.
pub fn is_pointless(errors: &[FleetError]) -> bool {
    let ends = |quota| matches!(quota, UsedUp::Fleets | UsedUp::Processors(None, _));
    errors.iter().filter_map(quota).any(ends)
}

/// What the claim is told if the launch could not even be asked for.
pub fn of_call(error: &port::Error) -> Error {
    let text = error.to_string();
    let (reason, message) = classify(&text);
    Error::Create {
        reason: reason.to_owned(),
        message: format!("creating fleet request, {message} ({text})"),
    }
}

/// The reason of a failed launch and what it means, by the text of the error. The first that fits counts.
pub fn classify(text: &str) -> (&'static str, &'static str) {
    let has = |part: &str| text.contains(part);
    if has(SPOT_ROLE_NOT_PERMITTED) {
        return (
            reasons::SPOT_SLR_CREATION_FAILED,
            "the controller has no permission to create the service-linked role of spot instances",
        );
    }
    if has("UnauthorizedOperation") || has("AccessDenied") || has("AuthFailure") {
        return unauthorized(text);
    }
    if has("InvalidParameter") && has("belong to different networks") {
        return (
            reasons::SECURITY_GROUP_SUBNET_VPC_MISMATCH,
            "security groups and subnets of the NodeClass are in different VPCs",
        );
    }
    let known = KNOWN.iter().find(|(part, ..)| has(part));
    known.map_or((node_claim::LAUNCH_FAILED, "the launch failed"), |(_, reason, message)| (reason, message))
}

const KNOWN: [(&str, &str, &str); 13] = [
    (
        "iamInstanceProfile.name is invalid",
        reasons::INSTANCE_PROFILE_NAME_INVALID,
        "there is no such instance profile",
    ),
    ("InvalidLaunchTemplateId.NotFound", reasons::LAUNCH_TEMPLATE_NOT_FOUND, "the launch template is gone"),
    (
        "User data is limited to",
        reasons::USER_DATA_SIZE_LIMIT_EXCEEDED,
        "the user data is larger than EC2 accepts",
    ),
    ("InvalidAMIID.Malformed", reasons::INVALID_AMI_ID, "the ID of the image is malformed"),
    ("InvalidAMIID.NotFound", reasons::AMI_NOT_FOUND, "there is no such image"),
    ("RequestLimitExceeded", reasons::REQUEST_LIMIT_EXCEEDED, "EC2 is asked too often"),
    ("InternalError", reasons::INTERNAL_ERROR, "EC2 failed"),
    (
        "not eligible for Free Tier",
        reasons::FREE_TIER_INELIGIBLE,
        "the account may only launch types of the free tier",
    ),
    ("MaxFleetCountExceeded", reasons::FLEET_QUOTA_EXCEEDED, "the account has as many fleets as it may have"),
    ("PendingVerification", reasons::ACCOUNT_PENDING_VERIFICATION, "the account is being verified"),
    (
        "MaxSpotInstanceCountExceeded",
        reasons::SPOT_QUOTA_EXCEEDED,
        "the account has as many spot instances as it may have",
    ),
    ("VcpuLimitExceeded", reasons::VCPU_LIMIT_EXCEEDED, "the account has as many processors as it may have"),
    (
        INSUFFICIENT_FREE_ADDRESSES,
        reasons::INSUFFICIENT_FREE_ADDRESSES_IN_SUBNET,
        "the subnets have no addresses left",
    ),
];

fn unauthorized(text: &str) -> (&'static str, &'static str) {
    if text.contains("with an explicit deny in a permissions boundary") {
        return (reasons::UNAUTHORIZED, "a permissions boundary of the controller's role denies it");
    }
    if text.contains("with an explicit deny in a service control policy") {
        return (reasons::UNAUTHORIZED, "a service control policy of the organization denies it");
    }
    if text.contains("Not authorized for images") {
        return (reasons::AMI_AUTHORIZATION_FAILURE, "the account may not use the image");
    }
    (reasons::UNAUTHORIZED, "no identity-based policy of the controller's role allows it")
}

//! One attempt to launch an instance for a claim, ready to be sent: no clock, and nothing that waits.

use std::collections::BTreeSet;

use api::labels::LabelSets;
use api::names::labels::{self, aws};
use api::names::reasons::aws as reasons;
use api::names::reasons::node_claim;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use cluster::instance_types::{InstanceType, Wanted};
use runtime::settings::MinValuesPolicy;

use crate::instance::{
    ChosenSubnet, LaunchPlan, SubnetAddresses, filter, lacks_flexibility, plan, request, truncate,
};
use crate::instance_type::Discovered;
use crate::launch_template::{Launch, TemplateError, templates};
use crate::node_class::Class;
use crate::port::error::INSUFFICIENT_FREE_ADDRESSES;
use crate::port::{FleetError, FleetRequest, NewLaunchTemplate, Tags};
use crate::user_data::ClusterInfo;

/// What is the same in all attempts for a claim.
pub(super) struct Circumstances<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) cluster: &'a ClusterInfo,
    pub(super) region: &'a str,
    pub(super) discovered: &'a Discovered,
    pub(super) reserved_interfaces: i64,
    pub(super) reserved_capacity: bool,
    pub(super) policy: MinValuesPolicy,
    pub(super) tags: &'a Tags,
    pub(super) sets: &'a LabelSets,
}

/// An attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) plan: LaunchPlan,
    pub(super) types: Vec<InstanceType>,
    pub(super) subnets: Vec<ChosenSubnet>,
    pub(super) templates: Vec<NewLaunchTemplate>,
    pub(super) request: FleetRequest,
}

/// Makes an attempt with what is left of some types. Addresses are taken from the subnets that it uses.
pub(super) fn prepare(
    circumstances: &Circumstances<'_>,
    class: &Class<'_>,
    types: &[InstanceType],
    addresses: &mut SubnetAddresses,
) -> Result<Attempt, Error> {
    let Circumstances { claim, cluster, region, discovered, reserved_capacity, tags, sets, .. } =
        *circumstances;
    let mut wanted = Wanted::new(&claim.spec.requirements, sets)
        .map_err(|reason| Error::Other(format!("reading the requirements of the claim, {reason:?}")))?;
    let types = filter(claim, &mut wanted, types)?;
    let types = truncate(claim, &mut wanted, types, circumstances.policy)
        .map_err(|error| Error::InsufficientCapacity(error.to_string()))?;
    let plan = plan(class, &mut wanted, &types);
    if lacks_flexibility(&mut wanted, &plan, &types) {
        tracing::warn!(
            "instance-types" = types.len(),
            "at least 5 instance types are recommended when flexible to spot but requesting on-demand"
        );
    }
    if class.zones.is_empty() {
        let message = "the EC2NodeClass has no subnets in its status, see its condition SubnetsReady";
        return Err(create(reasons::SUBNET_RESOLUTION_FAILED, message));
    }
    let launch = Launch {
        class,
        claim,
        cluster,
        region,
        capacity_type: plan.capacity_type,
        tenancy: plan.tenancy,
        partition: plan.partition.as_deref(),
        tags,
        reserved_capacity,
    };
    let needed = templates(&launch, &types, discovered, circumstances.reserved_interfaces, sets)
        .map_err(|error: TemplateError| create(node_claim::LAUNCH_FAILED, &error.to_string()))?;
    let subnets = addresses.choose(class, &types, &mut wanted, plan.capacity_type);
    let request = request(class, claim, &plan, &needed, &subnets, &mut wanted, tags.clone());
    let request = match request {
        Ok(request) => request,
        Err(nothing) => {
            addresses.release(&subnets, &[]);
            return Err(create(node_claim::LAUNCH_FAILED, &nothing.to_string()));
        }
    };
    let used: BTreeSet<&str> = request.templates.iter().map(|each| each.name.as_str()).collect();
    let templates =
        needed.into_iter().map(|each| each.request).filter(|each| used.contains(each.name.as_str()));
    let templates = templates.collect();
    Ok(Attempt { plan, types, subnets, templates, request })
}

pub(super) fn create(reason: &str, message: &str) -> Error {
    Error::Create { reason: reason.to_owned(), message: message.to_owned() }
}

/// What was asked for already, and is not asked for again for the same claim.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Instance type, zone, capacity type.
    offerings: BTreeSet<(String, String, &'static str)>,
    /// Subnets that turned out to be full.
    pub(super) full_subnets: BTreeSet<String>,
}

impl Asked {
    /// Notes what an attempt asked for. A full subnet says nothing about what else its zone has.
    pub(super) fn note(&mut self, attempt: &Attempt, errors: &[FleetError]) {
        let full = errors.iter().filter(|error| error.code == INSUFFICIENT_FREE_ADDRESSES);
        self.full_subnets.extend(full.filter_map(|error| error.place.subnet_id.clone()));
        for each in attempt.request.templates.iter().flat_map(|template| &template.overrides) {
            if !self.full_subnets.contains(&each.subnet_id) {
                let kind = attempt.plan.capacity_type;
                self.offerings.insert((each.instance_type.clone(), each.zone.clone(), kind));
            }
        }
    }

    /// Takes away what was asked for. Of reservations, what EC2 said about each counts instead.
    pub(super) fn without(&self, types: &[InstanceType]) -> Vec<InstanceType> {
        let mut types = types.to_vec();
        for each in &mut types {
            let name = each.name.clone();
            for offering in &mut each.offerings {
                let is_asked = self.offerings.iter().any(|(known, zone, kind)| {
                    *known == name
                        && offering.value(labels::ZONE) == Some(zone)
                        && offering.value(labels::CAPACITY_TYPE) == Some(*kind)
                        && offering.value(aws::CAPACITY_RESERVATION_ID).is_none()
                });
                offering.available &= !is_asked;
            }
        }
        types
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offerings.is_empty() && self.full_subnets.is_empty()
    }
}

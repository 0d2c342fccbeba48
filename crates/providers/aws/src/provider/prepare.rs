//! One attempt to launch an instance for a claim, ready to be sent: no clock, and nothing that waits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use api::labels::LabelSets;
use api::names::labels::{self, aws};
use api::names::reasons::aws as reasons;
use api::names::reasons::node_claim;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use cluster::instance_types::{InstanceType, Wanted};
use parking_lot::Mutex;
use runtime::settings::MinValuesPolicy;

use super::Known;
use crate::ami::Mapping;
use crate::instance::{
    ChosenSubnet, LaunchPlan, fewest_pods, filter, lacks_flexibility, plan, request, truncate,
};
use crate::instance_type::Discovered;
use crate::launch_template::{Launch, Template, TemplateError, templates};
use crate::node_class::Class;
use crate::port::error::INSUFFICIENT_FREE_ADDRESSES;
use crate::port::{FleetError, FleetRequest, NewLaunchTemplate, Tags};
use crate::user_data::{ClusterInfo, UserDataError};

/// What is the same in all attempts for a claim.
pub(super) struct Circumstances<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) cluster: &'a Arc<ClusterInfo>,
    pub(super) region: &'a str,
    pub(super) discovered: &'a Discovered,
    pub(super) reserved_interfaces: i64,
    pub(super) reserved_capacity: bool,
    pub(super) policy: MinValuesPolicy,
    pub(super) tags: &'a Tags,
    pub(super) sets: &'a LabelSets,
}

/// What claims that ask for the same have in common: worked out once for all of them.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) plan: LaunchPlan,
    pub(super) types: Vec<InstanceType>,
    templates: Vec<ShapeTemplate>,
    /// How many addresses a launch is expected to take in each zone.
    predicted: BTreeMap<String, i64>,
}

/// A launch template, and which types of the shape it is good for.
#[derive(Debug)]
struct ShapeTemplate {
    request: NewLaunchTemplate,
    types: Vec<usize>,
    reservation: Option<String>,
}

impl Shape {
    fn new(
        circumstances: &Circumstances<'_>,
        class: &Class<'_>,
        types: &[InstanceType],
    ) -> Result<Self, Error> {
        let Circumstances { claim, cluster, region, discovered, reserved_capacity, tags, sets, .. } =
            *circumstances;
        let mut wanted = wanted(claim, sets)?;
        let startable = startable(class, types, sets);
        let types = filter(claim, &mut wanted, &startable)?;
        let types = truncate(claim, &mut wanted, types, circumstances.policy)
            .map_err(|error| Error::InsufficientCapacity(error.to_string()))?;
        let plan = plan(class, &mut wanted, &types);
        if lacks_flexibility(&mut wanted, &plan, &types) {
            tracing::warn!(
                "instance-types" = types.len(),
                "at least 5 instance types are recommended when flexible to spot but requesting on-demand"
            );
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
            .map_err(|error| match error {
                // The class is validated again as soon as the addresses of services are known.
                TemplateError::UserData(UserDataError::NoClusterCidr) => {
                    Error::NodeClassNotReady(error.to_string())
                }
                error => create(node_claim::LAUNCH_FAILED, &error.to_string()),
            })?;
        let position = |each: &InstanceType| types.iter().position(|known| known.name == each.name);
        let templates = needed
            .into_iter()
            .map(|template| ShapeTemplate {
                types: template.types.iter().filter_map(|each| position(each)).collect(),
                request: template.request,
                reservation: template.reservation,
            })
            .collect();
        let mut predict = |zone: &str| fewest_pods(&types, &mut wanted, zone, plan.capacity_type);
        let predicted = class.zones.iter().map(|zone| (zone.name.to_owned(), predict(zone.name))).collect();
        Ok(Self { plan, types, templates, predicted })
    }

    /// The reservation that a launch template is for.
    fn reservation_of(&self, template: &str) -> Option<&str> {
        let found = self.templates.iter().find(|each| each.request.name == template);
        found.and_then(|found| found.reservation.as_deref())
    }
}

/// The types that an image of the class starts; all if there is none, so that it is said what is missing. What no image
/// starts must not decide how the others are bought, only because it is cheaper.
fn startable<'a>(class: &Class<'_>, types: &'a [InstanceType], sets: &LabelSets) -> Cow<'a, [InstanceType]> {
    let mut images = Mapping::new(&class.status.amis, sets);
    let is_startable: Vec<bool> =
        types.iter().map(|each| images.image_for(&each.requirements).is_some()).collect();
    let count = is_startable.iter().filter(|each| **each).count();
    if count == types.len() || count == 0 {
        return Cow::Borrowed(types);
    }
    let left = types.iter().zip(is_startable).filter(|(_, is_startable)| *is_startable);
    Cow::Owned(left.map(|(each, _)| each.clone()).collect())
}

fn wanted<'a>(claim: &NodeClaim, sets: &'a LabelSets) -> Result<Wanted<'a>, Error> {
    Wanted::new(&claim.spec.requirements, sets)
        .map_err(|reason| Error::Other(format!("reading the requirements of the claim, {reason:?}")))
}

/// How many shapes are remembered: as many as a round of scheduling usually has. Each takes up to a megabyte.
const REMEMBERED: usize = 16;

/// What a shape follows from. The types stand for everything that they were made from.
#[derive(Debug)]
struct Key {
    types: Weak<[InstanceType]>,
    cluster: Arc<ClusterInfo>,
    claim: String,
    asked: Asked,
}

/// A shape, or why there is none, and what it follows from.
type Remembered = (Key, Result<Arc<Shape>, Error>);

/// Shapes that were worked out lately.
#[derive(Debug, Default)]
pub(super) struct Shapes(Mutex<VecDeque<Remembered>>);

impl Shapes {
    /// The shape of a claim, with what is left of some types.
    pub(super) fn of(
        &self,
        circumstances: &Circumstances<'_>,
        class: &Class<'_>,
        types: &Arc<[InstanceType]>,
        asked: &Asked,
    ) -> Result<Arc<Shape>, Error> {
        let claim = circumstances.claim;
        let parts = (&claim.spec, &claim.metadata.labels, &claim.metadata.annotations);
        let text = serde_json::to_string(&parts).unwrap_or_default();
        let cluster = circumstances.cluster;
        let is_same = |key: &Key| {
            std::ptr::addr_eq(Weak::as_ptr(&key.types), Arc::as_ptr(types))
                && Arc::ptr_eq(&key.cluster, cluster)
                && key.claim == text
                && key.asked == *asked
        };
        let known = self.0.lock().iter().find(|(key, _)| is_same(key)).map(|(_, shape)| shape.clone());
        if let Some(known) = known {
            return known;
        }
        let left = if asked.is_empty() { Cow::Borrowed(&**types) } else { Cow::Owned(asked.without(types)) };
        let shape = Shape::new(circumstances, class, &left).map(Arc::new);
        let key = Key {
            types: Arc::downgrade(types),
            cluster: Arc::clone(cluster),
            claim: text,
            asked: asked.clone(),
        };
        let mut all = self.0.lock();
        all.retain(|(key, _)| key.types.strong_count() > 0);
        if all.len() == REMEMBERED {
            all.pop_front();
        }
        all.push_back((key, shape.clone()));
        shape
    }
}

/// An attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) shape: Arc<Shape>,
    pub(super) subnets: Vec<ChosenSubnet>,
    pub(super) templates: Vec<NewLaunchTemplate>,
    pub(super) request: FleetRequest,
}

/// Makes an attempt. Addresses are taken from the subnets that it uses.
pub(super) fn prepare(
    circumstances: &Circumstances<'_>,
    class: &Class<'_>,
    shape: Arc<Shape>,
    addresses: &Mutex<Known>,
) -> Result<Attempt, Error> {
    let Circumstances { claim, tags, sets, .. } = *circumstances;
    if class.zones.is_empty() {
        let message = "the EC2NodeClass has no subnets in its status, see its condition SubnetsReady";
        return Err(create(reasons::SUBNET_RESOLUTION_FAILED, message));
    }
    let predict = |zone: &str| shape.predicted.get(zone).copied().unwrap_or_default();
    let subnets = addresses.lock().addresses.choose_predicting(class, predict);
    let needed: Vec<Template<'_>> = shape
        .templates
        .iter()
        .map(|template| Template {
            request: template.request.clone(),
            types: template.types.iter().filter_map(|index| shape.types.get(*index)).collect(),
            reservation: template.reservation.clone(),
        })
        .collect();
    let mut wanted = wanted(claim, sets)?;
    let request = request(class, claim, &shape.plan, &needed, &subnets, &mut wanted, tags.clone());
    let request = match request {
        Ok(request) => request,
        Err(nothing) => {
            addresses.lock().addresses.release(&subnets, &[]);
            return Err(create(node_claim::LAUNCH_FAILED, &nothing.to_string()));
        }
    };
    let used: BTreeSet<&str> = request.templates.iter().map(|each| each.name.as_str()).collect();
    let templates =
        needed.into_iter().map(|each| each.request).filter(|each| used.contains(each.name.as_str()));
    let templates = templates.collect();
    Ok(Attempt { shape, subnets, templates, request })
}

pub(super) fn create(reason: &str, message: &str) -> Error {
    Error::Create { reason: reason.to_owned(), message: message.to_owned() }
}

/// What was asked for already, and is not asked for again for the same claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Instance type, zone, capacity type; those of reservations are told apart by their ID.
    offerings: BTreeSet<(String, String, &'static str)>,
    /// Reservations. Another one of the same type and zone is another offering.
    reservations: BTreeSet<String>,
    /// Subnets that turned out to be full.
    pub(super) full_subnets: BTreeSet<String>,
}

impl Asked {
    /// Notes what an attempt asked for. A full subnet says nothing about what else its zone has.
    pub(super) fn note(&mut self, attempt: &Attempt, errors: &[FleetError]) {
        let full = errors.iter().filter(|error| error.code == INSUFFICIENT_FREE_ADDRESSES);
        self.full_subnets.extend(full.filter_map(|error| error.place.subnet_id.clone()));
        for template in &attempt.request.templates {
            let reservation = attempt.shape.reservation_of(&template.name);
            for each in template.overrides.iter().filter(|each| !self.full_subnets.contains(&each.subnet_id))
            {
                if let Some(id) = reservation {
                    self.reservations.insert(id.to_owned());
                } else {
                    let kind = attempt.shape.plan.capacity_type;
                    self.offerings.insert((each.instance_type.clone(), each.zone.clone(), kind));
                }
            }
        }
    }

    /// Takes away what was asked for.
    fn without(&self, types: &[InstanceType]) -> Vec<InstanceType> {
        let mut types = types.to_vec();
        for each in &mut types {
            let name = each.name.clone();
            for offering in &mut each.offerings {
                let is_asked = match offering.value(aws::CAPACITY_RESERVATION_ID) {
                    Some(id) => self.reservations.contains(id),
                    None => self.offerings.iter().any(|(known, zone, kind)| {
                        *known == name
                            && offering.value(labels::ZONE) == Some(zone)
                            && offering.value(labels::CAPACITY_TYPE) == Some(*kind)
                    }),
                };
                offering.available &= !is_asked;
            }
        }
        types
    }

    fn is_empty(&self) -> bool {
        self.offerings.is_empty() && self.reservations.is_empty() && self.full_subnets.is_empty()
    }
}

//! Launches: attempt after attempt on what was not asked for yet, until something runs or nothing is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::aws::EC2NodeClass;
use api::names::events::aws as events;
use api::names::labels::{self, aws};
use api::names::metrics::aws as metrics;
use api::names::reasons::aws as reasons;
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use cloud::unavailable::{KEPT, Scope};
use cluster::instance_types::InstanceType;
use futures::FutureExt as _;
use runtime::events::About;

use super::batch::{Batcher, Window};
use super::prepare::{Asked, Attempt, Circumstances, create, prepare};
use super::{Calls, Inner, Setup};
use crate::instance::{
    Effect, Failed, Machine, batch_key, effects, failure, is_pointless, launch_annotations, metric_labels,
    node_claim, of_call, share,
};
use crate::node_class::{Class, readiness};
use crate::port::error::FLEET_QUOTA;
use crate::port::{self, FleetError, FleetRequest, FleetResult, PlacementGroup};
use crate::quotas::UsedUp;
use crate::tags;

type Launched = Result<FleetResult, port::Error>;
/// Launches that ask for the same are sent as one.
pub(super) type Fleets = Batcher<FleetRequest, Launched>;

pub(super) fn fleets(setup: &Setup, calls: &Calls) -> Fleets {
    let window = Window { idle: Duration::from_millis(35), longest: Duration::from_secs(1), most: 1000 };
    let (ec2, calls) = (Arc::clone(&setup.services.ec2), calls.clone());
    Batcher::new("create_fleet", window, setup.metrics.clone(), move |requests: Vec<FleetRequest>| {
        let (ec2, calls) = (Arc::clone(&ec2), calls.clone());
        async move {
            let claims = requests.len();
            let Some(mut request) = requests.into_iter().next() else { return Vec::new() };
            request.count = u32::try_from(claims).unwrap_or(u32::MAX);
            match calls.counted("ec2:CreateFleet", ec2.create_fleet(&request)).await {
                Ok(result) => share(result, claims).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); claims],
            }
        }
        .boxed()
    })
}

/// What came of an attempt.
enum Outcome {
    Running(Box<Machine>),
    /// There is none of it; perhaps there is of something else.
    NoCapacity(Vec<FleetError>),
}

impl Inner {
    /// Launches an instance for a claim.
    pub(super) async fn launch(&self, claim: &NodeClaim) -> Result<NodeClaim, Error> {
        let object = self.class(&claim.spec.node_class_ref.name).map_err(|error| {
            let message = format!("Failed resolving NodeClass, {error}");
            self.setup.events.publish(
                &events::NODE_CLASS_UNRESOLVED,
                About::object(claim),
                message,
                &[claim_name(claim)],
            );
            Error::InsufficientCapacity(format!("resolving node class, {error}"))
        })?;
        readiness(&object)?;
        let group = self.placement_group(&object).await;
        let group = group.map_err(|error| Error::NodeClassNotReady(error.to_string()))?;
        let class = self.read_class(&object, group.as_ref())?;
        let tags = tags::of_launch(&class, claim, &self.setup.settings.cluster_name)
            .map_err(|error| Error::NodeClassNotReady(error.to_string()))?;
        let (discovered, cluster) = {
            let known = self.known.lock();
            (Arc::clone(&known.discovered), Arc::clone(&known.cluster))
        };
        let circumstances = Circumstances {
            claim,
            cluster: &cluster,
            region: &self.setup.region,
            discovered: &discovered,
            reserved_interfaces: self.setup.settings.reserved_enis,
            reserved_capacity: self.setup.gates.reserved_capacity,
            policy: self.setup.min_values_policy,
            tags: &tags,
            sets: &self.sets,
        };
        let (machine, types) = self.attempts(&circumstances, &object, group.as_ref()).await?;
        let now = self.setup.clock.now();
        self.setup.metrics.add(&metrics::INSTANCES_LAUNCHED, &[machine.capacity_type], 1.0);
        if let Some(reservation) = &machine.reservation {
            self.known.lock().reservations.launched(&reservation.id, now);
        }
        self.machines.note(machine.clone());
        let instance_type = types.iter().find(|each| each.name == machine.instance_type);
        let mut launched = node_claim(&machine, instance_type, Some(&class), now);
        launched.metadata.annotations = Some(launch_annotations(&class, cluster.ca_bundle.as_deref()));
        Ok(launched)
    }

    /// A NodeClass, read; what is wrong with it is said by its own condition.
    fn read_class<'a>(
        &self,
        object: &'a EC2NodeClass,
        group: Option<&'a PlacementGroup>,
    ) -> Result<Class<'a>, Error> {
        Class::new(object, group, self.setup.settings.node_class_cel)
            .map_err(|error| Error::NodeClassNotReady(error.to_string()))
    }

    async fn attempts(
        &self,
        circumstances: &Circumstances<'_>,
        object: &EC2NodeClass,
        group: Option<&PlacementGroup>,
    ) -> Result<(Machine, Arc<[InstanceType]>), Error> {
        let mut asked = Asked::default();
        let mut last: Option<Error> = None;
        loop {
            let types = self.types_for_claim(circumstances.claim, object, group)?;
            let attempt = {
                let mut class = self.read_class(object, group)?;
                for zone in &mut class.zones {
                    zone.subnets.retain(|subnet| !asked.full_subnets.contains(*subnet));
                }
                let shape = self.shapes.of(circumstances, &class, &types, &asked);
                shape.and_then(|shape| prepare(circumstances, &class, shape, &self.known))
            };
            let attempt = match (attempt, last) {
                (Ok(attempt), _) => attempt,
                // Nothing is left: what EC2 said last is more telling than that.
                (Err(_), Some(failed)) => return Err(failed),
                (Err(error), None) => return Err(error),
            };
            match self.attempt(circumstances, object, group, &attempt).await? {
                Outcome::Running(machine) => return Ok((*machine, types)),
                Outcome::NoCapacity(errors) => {
                    if is_pointless(&errors) {
                        return Err(failure(&errors));
                    }
                    asked.note(&attempt, &errors);
                    last = Some(failure(&errors));
                }
            }
        }
    }

    fn types_for_claim(
        &self,
        claim: &NodeClaim,
        object: &EC2NodeClass,
        group: Option<&PlacementGroup>,
    ) -> Result<Arc<[InstanceType]>, Error> {
        let types = self.types(object, group);
        let types =
            types.map_err(|error| create(reasons::INSTANCE_TYPE_RESOLUTION_FAILED, &error.to_string()))?;
        let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
        match (&self.setup.overlays, pool) {
            (Some(overlays), Some(pool)) => overlays.apply(pool, &types),
            _ => Ok(types),
        }
    }

    /// Sends an attempt. Templates that somebody deleted are created once more.
    async fn attempt(
        &self,
        circumstances: &Circumstances<'_>,
        object: &EC2NodeClass,
        group: Option<&PlacementGroup>,
        attempt: &Attempt,
    ) -> Result<Outcome, Error> {
        let mut answer = self.send(attempt).await;
        if answer.as_ref().is_err_and(port::Error::is_launch_template_not_found) {
            self.templates.forget(attempt.templates.iter().map(|template| template.name.as_str()));
            answer = self.send(attempt).await;
        }
        let used: Vec<&str> = answer
            .iter()
            .flat_map(|result| &result.instances)
            .filter_map(|each| each.place.subnet_id.as_deref())
            .collect();
        self.known.lock().addresses.release(&attempt.subnets, &used);
        let result = answer.map_err(|error| {
            if error.code == FLEET_QUOTA {
                self.pause(UsedUp::Fleets, 0);
            }
            of_call(&error)
        })?;
        self.note_errors(circumstances.claim, group, attempt, &result.errors);
        let Some(first) = result.instances.first() else {
            return match failure(&result.errors) {
                Error::InsufficientCapacity(_) => Ok(Outcome::NoCapacity(result.errors)),
                error => Err(error),
            };
        };
        let class = self.read_class(object, group)?;
        let now = self.setup.clock.now();
        let tags = attempt.request.tags.clone();
        let machine = Machine::launched(
            first,
            &class,
            circumstances.claim,
            &attempt.shape.plan,
            &attempt.shape.types,
            tags,
            now,
        );
        let machine = machine.ok_or_else(|| {
            create(reasons::INTERNAL_ERROR, "EC2 launched an instance without saying in which zone")
        })?;
        Ok(Outcome::Running(Box::new(machine)))
    }

    async fn send(&self, attempt: &Attempt) -> Launched {
        self.ensure_templates(&attempt.templates).await?;
        let key = batch_key(&attempt.request);
        let answer = self.fleets.ask(key, attempt.request.clone()).await;
        answer.unwrap_or_else(|| {
            let message = "the launch was given up".to_owned();
            Err(port::Error { operation: "ec2:CreateFleet", message, ..port::Error::default() })
        })
    }

    /// Remembers what the errors of a launch say about what can be had.
    fn note_errors(
        &self,
        claim: &NodeClaim,
        group: Option<&PlacementGroup>,
        attempt: &Attempt,
        errors: &[FleetError],
    ) {
        for error in errors {
            let labels = metric_labels(&attempt.shape.plan, &attempt.subnets, error);
            self.setup.metrics.add(&metrics::INSTANCE_LAUNCH_FAILURES, &labels, 1.0);
        }
        let types: Vec<&str> = attempt.shape.types.iter().map(|each| each.name.as_str()).collect();
        let group = group.map(|group| group.id.as_str());
        let failed = Failed { plan: &attempt.shape.plan, placement_group: group, types: &types };
        // By quota, the fewest processors that were too many.
        let mut quotas: BTreeMap<UsedUp, u32> = BTreeMap::new();
        for effect in effects(&failed, errors) {
            match effect {
                Effect::Quota { instance_type, code } => {
                    let name = instance_type.as_deref();
                    let info = name.and_then(|name| self.known.lock().discovered.get(name).cloned());
                    let vcpus = info.map_or(0, |info| info.vcpus);
                    if let Some(quota) = UsedUp::of(&code, name) {
                        quotas.entry(quota).and_modify(|least| *least = vcpus.min(*least)).or_insert(vcpus);
                    }
                }
                Effect::Unavailable { scope, reason } => self.unavailable.mark(scope, &reason),
                Effect::SubnetFull(subnet) => self.known.lock().addresses.exhausted(&subnet),
                Effect::ReservationFull { instance_type, zone } => {
                    for id in reservations(&attempt.shape.types, &instance_type, &zone) {
                        self.known.lock().reservations.exhausted(id);
                    }
                }
                Effect::SpotRoleMissing => {
                    let message = "the role of spot instances does not exist and the controller may not create it: \
                                   create the service-linked role for spot.amazonaws.com";
                    let event = &events::SPOT_SLR_CREATION_FAILED;
                    self.setup.events.publish(event, About::object(claim), message, &[claim_name(claim)]);
                }
            }
        }
        for (quota, vcpus) in quotas {
            self.pause(quota, vcpus);
        }
    }

    /// Asks for a while for nothing that counts for a quota which is used up, and needs at least so many processors:
    /// EC2 would refuse one type after the other.
    fn pause(&self, quota: UsedUp, vcpus: u32) {
        let now = self.setup.clock.now();
        {
            // All claims of a fleet hear the same.
            let mut paused = self.paused.lock();
            if paused.get(&quota).is_some_and(|(least, until)| *least <= vcpus && *until > now) {
                return;
            }
            paused.insert(quota, (vcpus, now + KEPT));
        }
        tracing::error!("{quota} is used up; what counts for it is not asked for for {} s", KEPT.as_secs());
        let why = quota.to_string();
        match quota {
            UsedUp::Fleets => self.unavailable.mark(Scope::default(), &why),
            // The launch is over, and nobody knows what else to leave alone.
            UsedUp::Processors(None, _) => {}
            UsedUp::Processors(Some(kind), is_spot) => {
                let capacity_type = if is_spot { capacity_type::SPOT } else { capacity_type::ON_DEMAND };
                let discovered = Arc::clone(&self.known.lock().discovered);
                let counts = discovered
                    .types()
                    .filter(|info| info.vcpus >= vcpus && crate::quotas::kind(&info.name) == Some(kind));
                for info in counts {
                    self.unavailable.mark(Scope::offering(&info.name, "", capacity_type), &why);
                }
            }
        }
    }
}

/// The reservations that a launch tried for a type in a zone.
fn reservations<'a>(types: &'a [InstanceType], name: &str, zone: &str) -> Vec<&'a str> {
    let offerings = types.iter().filter(|each| each.name == name).flat_map(|each| &each.offerings);
    offerings
        .filter(|offering| {
            offering.value(labels::ZONE) == Some(zone)
                && offering.value(labels::CAPACITY_TYPE) == Some(capacity_type::RESERVED)
        })
        .filter_map(|offering| offering.value(aws::CAPACITY_RESERVATION_ID))
        .collect()
}

fn claim_name(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

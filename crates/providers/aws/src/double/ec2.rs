//! EC2 of the double.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::matching::satisfies;
use super::{Double, World, fleet};
use crate::port::error::PLACEMENT_GROUP_UNKNOWN;
use crate::port::{
    CapacityReservation, Ec2, Error, Filter, FleetRequest, FleetResult, Image, ImageQuery, Instance,
    InstanceState, InstanceStatus, InstanceTypeInfo, LaunchTemplate, LaunchTemplateQuery, LaunchTemplateRef,
    NewLaunchTemplate, PlacementGroup, PlacementGroupQuery, RunInstancesCheck, SecurityGroup, SpotPrice,
    StateChange, Subnet, Tags, Trial, TypeInZone,
};

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

const TEMPLATE_GONE: &str = "InvalidLaunchTemplateName.NotFoundException";

fn written(filters: &[Filter]) -> String {
    let each = |filter: &Filter| format!("{}={}", filter.name, filter.values.join("|"));
    filters.iter().map(each).collect::<Vec<_>>().join(" & ")
}

fn in_short(request: &FleetRequest) -> String {
    let offers = request.templates.iter().flat_map(|template| &template.overrides);
    let offers: Vec<String> = offers.map(|each| format!("{}/{}", each.instance_type, each.zone)).collect();
    format!("{} {} {}", request.count, request.purchase.target(), offers.join(" "))
}

/// Instances that EC2 does not know are all named in its answer.
fn not_found(operation: &'static str, ids: &[&str]) -> Error {
    let message = match ids {
        [id] => format!("The instance ID '{id}' does not exist"),
        ids => format!("The instance IDs '{}' do not exist", ids.join(", ")),
    };
    Error::new(operation, "InvalidInstanceID.NotFound", &message)
}

/// Instances that EC2 does not know.
fn unknown<'a>(world: &World, ids: &'a [String]) -> Vec<&'a str> {
    ids.iter().filter(|id| !world.instances.contains_key(*id)).map(String::as_str).collect()
}

impl World {
    /// Whether an instance is described already.
    fn is_seen(&mut self, id: &str) -> bool {
        match self.hidden.get_mut(id) {
            Some(0) | None => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }
}

impl Ec2 for Double {
    fn check_access(&self) -> Answer<'_, ()> {
        self.answer("ec2:DescribeInstanceTypes", "dry run".to_owned(), |_| Ok(())).boxed()
    }

    fn instance_types(&self) -> Answer<'_, Vec<InstanceTypeInfo>> {
        self.answer("ec2:DescribeInstanceTypes", String::new(), |world| Ok(world.types.clone())).boxed()
    }

    fn instance_type_zones(&self) -> Answer<'_, Vec<TypeInZone>> {
        self.answer("ec2:DescribeInstanceTypeOfferings", String::new(), |world| Ok(world.places.clone()))
            .boxed()
    }

    fn spot_prices(&self, _: Timestamp) -> Answer<'_, Vec<SpotPrice>> {
        self.answer("ec2:DescribeSpotPriceHistory", String::new(), |world| Ok(world.spot_prices.clone()))
            .boxed()
    }

    fn subnets<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<Subnet>> {
        self.answer("ec2:DescribeSubnets", written(filters), |world| {
            let fits = |each: &&super::Stored<Subnet>| {
                satisfies(filters, &each.tags, |name| match name {
                    "subnet-id" => vec![each.item.id.clone()],
                    _ => Vec::new(),
                })
            };
            Ok(world.subnets.iter().filter(fits).map(|each| each.item.clone()).collect())
        })
        .boxed()
    }

    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<SecurityGroup>> {
        self.answer("ec2:DescribeSecurityGroups", written(filters), |world| {
            let fits = |each: &&super::Stored<SecurityGroup>| {
                satisfies(filters, &each.tags, |name| match name {
                    "group-id" => vec![each.item.id.clone()],
                    "group-name" => vec![each.item.name.clone()],
                    _ => Vec::new(),
                })
            };
            Ok(world.security_groups.iter().filter(fits).map(|each| each.item.clone()).collect())
        })
        .boxed()
    }

    fn images<'a>(&'a self, query: &'a ImageQuery) -> Answer<'a, Vec<Image>> {
        self.answer("ec2:DescribeImages", written(&query.filters), |world| {
            let fits = |each: &&super::Stored<Image>| {
                satisfies(&query.filters, &each.tags, |name| match name {
                    "image-id" => vec![each.item.id.clone()],
                    "name" => vec![each.item.name.clone()],
                    _ => Vec::new(),
                })
            };
            Ok(world.images.iter().filter(fits).map(|each| each.item.clone()).collect())
        })
        .boxed()
    }

    fn capacity_reservations<'a>(
        &'a self,
        ids: &'a [String],
        filters: &'a [Filter],
    ) -> Answer<'a, Vec<CapacityReservation>> {
        let about = format!("{} {}", ids.join(" "), written(filters));
        self.answer("ec2:DescribeCapacityReservations", about, |world| {
            let fits = |each: &&super::Stored<CapacityReservation>| {
                satisfies(filters, &each.tags, |name| match name {
                    "state" => vec!["active".to_owned()],
                    "owner-id" => vec![each.item.owner_id.clone()],
                    "instance-match-criteria" => vec![each.item.match_criteria.clone()],
                    _ => Vec::new(),
                }) && (ids.is_empty() || ids.contains(&each.item.id))
            };
            let found: Vec<CapacityReservation> =
                world.reservations.iter().filter(fits).map(|each| each.item.clone()).collect();
            let is_missing = !ids.is_empty() && found.is_empty();
            if is_missing {
                let operation = "ec2:DescribeCapacityReservations";
                return Err(Error::new(operation, "InvalidCapacityReservationId.NotFound", "not found"));
            }
            Ok(found)
        })
        .boxed()
    }

    fn placement_groups<'a>(&'a self, query: &'a PlacementGroupQuery) -> Answer<'a, Vec<PlacementGroup>> {
        self.answer("ec2:DescribePlacementGroups", format!("{query:?}"), |world| {
            let fits = |each: &&PlacementGroup| match query {
                PlacementGroupQuery::Id(id) => &each.id == id,
                PlacementGroupQuery::Name(name) => &each.name == name,
            };
            let found: Vec<PlacementGroup> = world.placement_groups.iter().filter(fits).cloned().collect();
            match query {
                PlacementGroupQuery::Name(name) if found.is_empty() => {
                    let message = format!("The Placement Group '{name}' is unknown.");
                    Err(Error::new("ec2:DescribePlacementGroups", PLACEMENT_GROUP_UNKNOWN, &message))
                }
                _ => Ok(found),
            }
        })
        .boxed()
    }

    fn launch_templates<'a>(&'a self, query: &'a LaunchTemplateQuery) -> Answer<'a, Vec<LaunchTemplate>> {
        let operation = "ec2:DescribeLaunchTemplates";
        self.answer(operation, format!("{query:?}"), move |world| {
            let fits = |template: &NewLaunchTemplate| match query {
                LaunchTemplateQuery::Name(name) => &template.name == name,
                LaunchTemplateQuery::Filters(filters) => satisfies(filters, &template.tags, |_| Vec::new()),
            };
            let found = world.templates.iter().filter(|(_, template)| fits(template));
            let found: Vec<LaunchTemplate> = found
                .map(|(id, template)| LaunchTemplate { id: id.clone(), name: template.name.clone() })
                .collect();
            match query {
                LaunchTemplateQuery::Name(name) if found.is_empty() => {
                    Err(Error::new(operation, TEMPLATE_GONE, name))
                }
                _ => Ok(found),
            }
        })
        .boxed()
    }

    fn create_launch_template<'a>(&'a self, template: &'a NewLaunchTemplate) -> Answer<'a, LaunchTemplate> {
        let operation = "ec2:CreateLaunchTemplate";
        self.answer(operation, template.name.clone(), move |world| {
            if world.template(&template.name).is_some() {
                let code = "InvalidLaunchTemplateName.AlreadyExistsException";
                return Err(Error::new(operation, code, "Launch template name already in use."));
            }
            let id = world.id("lt");
            world.templates.insert(id.clone(), template.clone());
            Ok(LaunchTemplate { id, name: template.name.clone() })
        })
        .boxed()
    }

    fn delete_launch_template<'a>(&'a self, template: &'a LaunchTemplateRef) -> Answer<'a, ()> {
        let operation = "ec2:DeleteLaunchTemplate";
        self.answer(operation, format!("{template:?}"), move |world| {
            let before = world.templates.len();
            world.templates.retain(|id, known| match template {
                LaunchTemplateRef::Id(wanted) => id != wanted,
                LaunchTemplateRef::Name(wanted) => &known.name != wanted,
            });
            if world.templates.len() < before {
                return Ok(());
            }
            Err(Error::new(operation, "InvalidLaunchTemplateId.NotFound", "not found"))
        })
        .boxed()
    }

    fn create_fleet<'a>(&'a self, request: &'a FleetRequest) -> Answer<'a, FleetResult> {
        let now = self.clock.now();
        self.answer("ec2:CreateFleet", in_short(request), move |world| fleet::create(world, request, now))
            .boxed()
    }

    fn check_run_instances<'a>(&'a self, check: &'a RunInstancesCheck) -> BoxFuture<'a, Error> {
        let operation = "ec2:RunInstances";
        async move {
            let subnet = check.interfaces.first().and_then(|first| first.subnet.clone()).unwrap_or_default();
            let answer: Result<(), Error> = self
                .answer(operation, format!("{} {subnet}", check.instance_type), |world| {
                    let template = world.template(&check.template);
                    let Some(template) = template else {
                        return Err(Error::new(operation, TEMPLATE_GONE, &check.template));
                    };
                    let profile = &template.data.instance_profile;
                    if !world.profiles.contains_key(profile) {
                        let message = format!("Value ({profile}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name");
                        return Err(Error::new(operation, "InvalidParameterValue", &message));
                    }
                    let zone = world.subnets.iter().find(|each| each.item.id == subnet);
                    let zone = zone.map(|each| each.item.zone.clone()).unwrap_or_default();
                    if !world.runs(&check.instance_type, &zone) {
                        let message = format!(
                            "Your requested instance type ({}) is not supported in your requested Availability Zone ({zone}).",
                            check.instance_type
                        );
                        return Err(Error::new(operation, "Unsupported", &message));
                    }
                    Ok(())
                })
                .await;
            let accepted = || Error::new(operation, "DryRunOperation", "Request would have succeeded.");
            answer.err().unwrap_or_else(accepted)
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, trial: &'a Trial) -> BoxFuture<'a, Error> {
        let operation = trial.action();
        async move {
            let answer: Result<(), Error> = self.answer(operation, "dry run".to_owned(), |_| Ok(())).await;
            let accepted = || Error::new(operation, "DryRunOperation", "Request would have succeeded.");
            answer.err().unwrap_or_else(accepted)
        }
        .boxed()
    }

    fn instances<'a>(&'a self, ids: &'a [String], filters: &'a [Filter]) -> Answer<'a, Vec<Instance>> {
        let operation = "ec2:DescribeInstances";
        let about = if ids.is_empty() { written(filters) } else { ids.join(" ") };
        self.answer(operation, about, move |world| {
            let all: Vec<Instance> = world
                .instances
                .values()
                .filter(|each| ids.is_empty() || ids.contains(&each.id))
                .filter(|each| {
                    satisfies(filters, &each.tags, |name| match name {
                        "instance-state-name" => vec![each.state.as_str().to_owned()],
                        _ => Vec::new(),
                    })
                })
                .cloned()
                .collect();
            let seen: Vec<Instance> = all.into_iter().filter(|each| world.is_seen(&each.id)).collect();
            // EC2 forgets instances; while it knows them, those that do not fit are simply not listed.
            let is_unknown = |id: &String| {
                !seen.iter().any(|each| &each.id == id)
                    && (!world.instances.contains_key(id) || world.hidden.contains_key(id))
            };
            let unknown: Vec<&str> = ids.iter().filter(|id| is_unknown(id)).map(String::as_str).collect();
            if unknown.is_empty() { Ok(seen) } else { Err(not_found(operation, &unknown)) }
        })
        .boxed()
    }

    fn terminate_instances<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Vec<StateChange>> {
        let operation = "ec2:TerminateInstances";
        self.answer(operation, ids.join(" "), move |world| {
            let missing = unknown(world, ids);
            if !missing.is_empty() {
                return Err(not_found(operation, &missing));
            }
            for id in ids {
                let Some(instance) = world.instances.get_mut(id) else { continue };
                if instance.state.is_ending() {
                    continue;
                }
                instance.state = InstanceState::ShuttingDown;
                let (subnet, reservation) = (instance.subnet_id.clone(), instance.reservation_id.clone());
                for each in world.subnets.iter_mut().filter(|each| each.item.id == subnet) {
                    each.item.available_addresses += 1;
                }
                for each in &mut world.reservations {
                    each.item.available += u32::from(Some(&each.item.id) == reservation.as_ref());
                }
            }
            let change = |id: &String| StateChange { id: id.clone(), state: InstanceState::ShuttingDown };
            Ok(ids.iter().map(change).collect())
        })
        .boxed()
    }

    fn reboot_instances<'a>(&'a self, ids: &'a [String]) -> Answer<'a, ()> {
        let (operation, now) = ("ec2:RebootInstances", self.clock.now());
        self.answer(operation, ids.join(" "), move |world| {
            let missing = unknown(world, ids);
            if !missing.is_empty() {
                return Err(not_found(operation, &missing));
            }
            world.reboots.extend(ids.iter().map(|id| (id.clone(), now)));
            Ok(())
        })
        .boxed()
    }

    fn create_tags<'a>(&'a self, id: &'a str, tags: &'a Tags) -> Answer<'a, ()> {
        let operation = "ec2:CreateTags";
        let about = format!("{id} {}", tags.keys().cloned().collect::<Vec<_>>().join(" "));
        self.answer(operation, about, move |world| {
            let instance = world.instances.get_mut(id).ok_or_else(|| not_found(operation, &[id]))?;
            instance.tags.extend(tags.clone());
            Ok(())
        })
        .boxed()
    }

    fn instance_statuses<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<InstanceStatus>> {
        // What does not fit is told apart by who asks.
        self.answer("ec2:DescribeInstanceStatus", written(filters), |world| Ok(world.statuses.clone()))
            .boxed()
    }
}

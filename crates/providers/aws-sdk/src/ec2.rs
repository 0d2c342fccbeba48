//! EC2. Requests are made here; what they are made of and what comes back is converted beside it, by subject.

mod common;
mod fleet;
mod image;
mod instance;
mod instance_type;
mod launch_template;
mod network;
mod reservation;
mod trial;

use aws::port::{
    CapacityReservation, Ec2, Error, Filter, FleetRequest, FleetResult, Image, ImageQuery, Instance,
    InstanceStatus, InstanceTypeInfo, LaunchTemplate, LaunchTemplateQuery, LaunchTemplateRef,
    NewLaunchTemplate, PlacementGroup, PlacementGroupQuery, RunInstancesCheck, SecurityGroup, SpotPrice,
    StateChange, Subnet, Tags, Trial, TypeInZone,
};
use aws_sdk_ec2::config::Builder;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::types::LocationType;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::Answer;
use crate::error::{error, incomplete};
use crate::pages;
use crate::time::date_time;

/// How many of something are on a page.
mod page {
    pub(super) const INSTANCE_TYPES: i32 = 100;
    pub(super) const ZONES: i32 = 1000;
    pub(super) const SPOT_PRICES: i32 = 2000;
    pub(super) const NETWORK: i32 = 500;
    pub(super) const IMAGES: i32 = 1000;
    pub(super) const RESERVATIONS: i32 = 1000;
    pub(super) const TEMPLATES: i32 = 200;
    pub(super) const INSTANCES: i32 = 1000;
}

/// What spot prices are asked for: Linux, in the words of old and of new accounts.
const PRODUCTS: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

const TYPES: &str = "ec2:DescribeInstanceTypes";
const FLEET: &str = "ec2:CreateFleet";
const RUN: &str = "ec2:RunInstances";
const CREATE_TEMPLATE: &str = "ec2:CreateLaunchTemplate";

/// EC2.
pub(crate) struct Client(pub(crate) aws_sdk_ec2::Client);

/// A question that is sent once: it is asked again later, by who made it.
fn once() -> Builder {
    Builder::new().retry_config(RetryConfig::disabled())
}

impl Ec2 for Client {
    fn check_access(&self) -> Answer<'_, ()> {
        async move {
            let answer = self.0.describe_instance_types().dry_run(true).send().await;
            match answer.map_err(|cause| error(TYPES, &cause)) {
                Err(error) if !error.is_dry_run_success() => Err(error),
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn instance_types(&self) -> Answer<'_, Vec<InstanceTypeInfo>> {
        let filters = instance_type::filters();
        let request = self.0.describe_instance_types().set_filters(Some(common::filters(&filters)));
        let found = request.into_paginator().page_size(page::INSTANCE_TYPES).send();
        pages::all(TYPES, found, |page| {
            page.instance_types.unwrap_or_default().into_iter().filter_map(instance_type::info)
        })
        .boxed()
    }

    fn instance_type_zones(&self) -> Answer<'_, Vec<TypeInZone>> {
        let request = self.0.describe_instance_type_offerings().location_type(LocationType::AvailabilityZone);
        let found = request.into_paginator().page_size(page::ZONES).send();
        pages::all("ec2:DescribeInstanceTypeOfferings", found, |page| {
            page.instance_type_offerings.unwrap_or_default().into_iter().filter_map(instance_type::in_zone)
        })
        .boxed()
    }

    fn spot_prices(&self, at: Timestamp) -> Answer<'_, Vec<SpotPrice>> {
        let products = PRODUCTS.iter().map(|product| (*product).to_owned()).collect();
        let request = self.0.describe_spot_price_history().set_product_descriptions(Some(products));
        let found = request.start_time(date_time(at)).into_paginator().page_size(page::SPOT_PRICES).send();
        pages::all("ec2:DescribeSpotPriceHistory", found, |page| {
            page.spot_price_history.unwrap_or_default().into_iter().filter_map(instance_type::spot_price)
        })
        .boxed()
    }

    fn subnets<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<Subnet>> {
        let request = self.0.describe_subnets().set_filters(Some(common::filters(filters)));
        let found = request.into_paginator().page_size(page::NETWORK).send();
        pages::all("ec2:DescribeSubnets", found, |page| {
            page.subnets.unwrap_or_default().into_iter().filter_map(network::subnet)
        })
        .boxed()
    }

    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<SecurityGroup>> {
        let request = self.0.describe_security_groups().set_filters(Some(common::filters(filters)));
        let found = request.into_paginator().page_size(page::NETWORK).send();
        pages::all("ec2:DescribeSecurityGroups", found, |page| {
            page.security_groups.unwrap_or_default().into_iter().filter_map(network::security_group)
        })
        .boxed()
    }

    fn images<'a>(&'a self, query: &'a ImageQuery) -> Answer<'a, Vec<Image>> {
        let owners = (!query.owners.is_empty()).then(|| query.owners.clone());
        let request = self.0.describe_images().set_owners(owners).include_deprecated(true);
        let request = request.set_filters(Some(common::filters(&image::filters(query))));
        let found = request.into_paginator().page_size(page::IMAGES).send();
        pages::all("ec2:DescribeImages", found, |page| {
            page.images.unwrap_or_default().into_iter().filter_map(image::image)
        })
        .boxed()
    }

    fn capacity_reservations<'a>(
        &'a self,
        ids: &'a [String],
        filters: &'a [Filter],
    ) -> Answer<'a, Vec<CapacityReservation>> {
        let request = self.0.describe_capacity_reservations().set_filters(Some(common::filters(filters)));
        let found = if ids.is_empty() {
            request.into_paginator().page_size(page::RESERVATIONS).send()
        } else {
            // EC2 refuses a size of pages together with IDs.
            request.set_capacity_reservation_ids(Some(ids.to_vec())).into_paginator().send()
        };
        pages::all("ec2:DescribeCapacityReservations", found, |page| {
            page.capacity_reservations.unwrap_or_default().into_iter().filter_map(reservation::reservation)
        })
        .boxed()
    }

    fn placement_groups<'a>(&'a self, query: &'a PlacementGroupQuery) -> Answer<'a, Vec<PlacementGroup>> {
        let filters = common::filters(&[Filter::new("state", ["available"])]);
        let request = self.0.describe_placement_groups().set_filters(Some(filters));
        let request = match query {
            PlacementGroupQuery::Id(id) => request.group_ids(id),
            PlacementGroupQuery::Name(name) => request.group_names(name),
        };
        async move {
            let answer = request.send().await;
            let answer = answer.map_err(|cause| error("ec2:DescribePlacementGroups", &cause))?;
            let found = answer.placement_groups.unwrap_or_default().into_iter();
            Ok(found.filter_map(reservation::placement_group).collect())
        }
        .boxed()
    }

    fn launch_templates<'a>(&'a self, query: &'a LaunchTemplateQuery) -> Answer<'a, Vec<LaunchTemplate>> {
        let request = self.0.describe_launch_templates();
        let found = match query {
            LaunchTemplateQuery::Name(name) => request.launch_template_names(name).into_paginator().send(),
            LaunchTemplateQuery::Filters(filters) => {
                let request = request.set_filters(Some(common::filters(filters)));
                request.into_paginator().page_size(page::TEMPLATES).send()
            }
        };
        pages::all("ec2:DescribeLaunchTemplates", found, |page| {
            page.launch_templates.unwrap_or_default().into_iter().filter_map(launch_template::existing)
        })
        .boxed()
    }

    fn create_launch_template<'a>(&'a self, template: &'a NewLaunchTemplate) -> Answer<'a, LaunchTemplate> {
        let request = self
            .0
            .create_launch_template()
            .launch_template_name(&template.name)
            .launch_template_data(launch_template::data(&template.data))
            .set_tag_specifications(common::tag_specifications(&["launch-template"], &template.tags));
        async move {
            let answer = request.send().await.map_err(|cause| error(CREATE_TEMPLATE, &cause))?;
            let created = answer.launch_template.and_then(launch_template::existing);
            created.ok_or_else(|| incomplete(CREATE_TEMPLATE, "launch template"))
        }
        .boxed()
    }

    fn delete_launch_template<'a>(&'a self, template: &'a LaunchTemplateRef) -> Answer<'a, ()> {
        let request = self.0.delete_launch_template();
        let request = match template {
            LaunchTemplateRef::Id(id) => request.launch_template_id(id),
            LaunchTemplateRef::Name(name) => request.launch_template_name(name),
        };
        async move {
            let answer = request.send().await;
            answer.map(drop).map_err(|cause| error("ec2:DeleteLaunchTemplate", &cause))
        }
        .boxed()
    }

    fn create_fleet<'a>(&'a self, request: &'a FleetRequest) -> Answer<'a, FleetResult> {
        let is_question = request.dry_run;
        let request = fleet::request(self.0.create_fleet(), request);
        async move {
            // A launch that is throttled is sent again, so that a thousand claims do not fail with it. All attempts
            // have one client token, which the SDK makes: EC2 launches nothing twice, even if an answer was lost.
            let answer = if is_question {
                request.customize().config_override(once()).send().await
            } else {
                request.send().await
            };
            Ok(fleet::result(answer.map_err(|cause| error(FLEET, &cause))?))
        }
        .boxed()
    }

    fn check_run_instances<'a>(&'a self, check: &'a RunInstancesCheck) -> BoxFuture<'a, Error> {
        let request = fleet::run_instances(self.0.run_instances(), check);
        async move {
            match request.customize().config_override(once()).send().await {
                Err(cause) => error(RUN, &cause),
                // Nothing was run: it was only tried.
                Ok(_) => Error::new(RUN, "DryRunOperation", "Request would have succeeded."),
            }
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, trial: &'a Trial) -> BoxFuture<'a, Error> {
        trial::answer(&self.0, trial).boxed()
    }

    fn instances<'a>(&'a self, ids: &'a [String], filters: &'a [Filter]) -> Answer<'a, Vec<Instance>> {
        let request = self.0.describe_instances().set_filters(Some(common::filters(filters)));
        let found = if ids.is_empty() {
            request.into_paginator().page_size(page::INSTANCES).send()
        } else {
            // EC2 refuses a size of pages together with IDs.
            request.set_instance_ids(Some(ids.to_vec())).into_paginator().send()
        };
        pages::all("ec2:DescribeInstances", found, |page| {
            let reservations = page.reservations.unwrap_or_default().into_iter();
            let all = reservations.flat_map(|reservation| reservation.instances.unwrap_or_default());
            all.filter_map(instance::instance)
        })
        .boxed()
    }

    fn terminate_instances<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Vec<StateChange>> {
        async move {
            let answer = self.0.terminate_instances().set_instance_ids(Some(ids.to_vec())).send().await;
            let answer = answer.map_err(|cause| error("ec2:TerminateInstances", &cause))?;
            let changes = answer.terminating_instances.unwrap_or_default().into_iter();
            Ok(changes.filter_map(instance::state_change).collect())
        }
        .boxed()
    }

    fn reboot_instances<'a>(&'a self, ids: &'a [String]) -> Answer<'a, ()> {
        async move {
            let answer = self.0.reboot_instances().set_instance_ids(Some(ids.to_vec())).send().await;
            answer.map(drop).map_err(|cause| error("ec2:RebootInstances", &cause))
        }
        .boxed()
    }

    fn create_tags<'a>(&'a self, id: &'a str, tags: &'a Tags) -> Answer<'a, ()> {
        async move {
            let request = self.0.create_tags().resources(id).set_tags(Some(common::tags(tags)));
            request.send().await.map(drop).map_err(|cause| error("ec2:CreateTags", &cause))
        }
        .boxed()
    }

    fn instance_statuses<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<InstanceStatus>> {
        let request = self.0.describe_instance_status().set_filters(Some(common::filters(filters)));
        pages::all("ec2:DescribeInstanceStatus", request.into_paginator().send(), |page| {
            page.instance_statuses.unwrap_or_default().into_iter().filter_map(instance::status)
        })
        .boxed()
    }
}

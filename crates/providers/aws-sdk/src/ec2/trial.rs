//! Requests that EC2 only tries out.

use aws::port::{Error, Listing, PlainRun, Trial};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::create_launch_template::builders::CreateLaunchTemplateFluentBuilder;
use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::types::{IamInstanceProfileSpecification, InstanceType, RequestLaunchTemplateData};

use super::common::{tag_specifications, tags};
use crate::error::error;

/// What launch templates and instances that never come to be are called.
const NAME: &str = "karpenter-doctor";
/// A type that every region has.
const USUAL: &str = "m5.large";

/// Sends a request that is only tried; EC2 answers with an error in any case.
macro_rules! tried {
    ($action:expr, $request:expr) => {
        match $request.dry_run(true).send().await {
            Err(cause) => error($action, &cause),
            // Nothing was done: it was only tried.
            Ok(_) => Error::new($action, "DryRunOperation", "Request would have succeeded."),
        }
    };
}

/// What EC2 says about something that is only tried.
pub(super) async fn answer(client: &Client, trial: &Trial) -> Error {
    let action = trial.action();
    match trial {
        // It is as large as the largest of its requests.
        Trial::List(listing) => Box::pin(list(client, *listing, action)).await,
        Trial::CreateLaunchTemplate(all) => {
            let request = client.create_launch_template();
            tried!(
                action,
                template(request).set_tag_specifications(tag_specifications(&["launch-template"], all))
            )
        }
        Trial::DeleteLaunchTemplate(id) => {
            tried!(action, client.delete_launch_template().launch_template_id(id))
        }
        Trial::RunInstances(wanted) => tried!(action, run(client.run_instances(), wanted)),
        Trial::TerminateInstances(id) => tried!(action, client.terminate_instances().instance_ids(id)),
        Trial::RebootInstances(id) => tried!(action, client.reboot_instances().instance_ids(id)),
        Trial::CreateTags(id, all) => {
            tried!(action, client.create_tags().resources(id).set_tags(Some(tags(all))))
        }
    }
}

async fn list(client: &Client, listing: Listing, action: &'static str) -> Error {
    match listing {
        Listing::CapacityReservations => tried!(action, client.describe_capacity_reservations()),
        Listing::Images => tried!(action, client.describe_images()),
        Listing::InstanceStatus => tried!(action, client.describe_instance_status()),
        Listing::InstanceTypeOfferings => tried!(action, client.describe_instance_type_offerings()),
        Listing::InstanceTypes => tried!(action, client.describe_instance_types()),
        Listing::Instances => tried!(action, client.describe_instances()),
        Listing::LaunchTemplates => tried!(action, client.describe_launch_templates()),
        Listing::PlacementGroups => tried!(action, client.describe_placement_groups()),
        Listing::SecurityGroups => tried!(action, client.describe_security_groups()),
        Listing::SpotPriceHistory => tried!(action, client.describe_spot_price_history()),
        Listing::Subnets => tried!(action, client.describe_subnets()),
    }
}

/// A launch template with hardly anything in it.
fn template(empty: CreateLaunchTemplateFluentBuilder) -> CreateLaunchTemplateFluentBuilder {
    let data = RequestLaunchTemplateData::builder().instance_type(InstanceType::from(USUAL)).build();
    empty.launch_template_name(NAME).launch_template_data(data)
}

fn run(empty: RunInstancesFluentBuilder, wanted: &PlainRun) -> RunInstancesFluentBuilder {
    let profile = |name: &String| IamInstanceProfileSpecification::builder().name(name).build();
    let kinds = ["instance", "volume", "network-interface"];
    empty
        .min_count(1)
        .max_count(1)
        .image_id(&wanted.image_id)
        .instance_type(InstanceType::from(wanted.instance_type.as_str()))
        .subnet_id(&wanted.subnet_id)
        .set_security_group_ids(Some(wanted.security_groups.clone()))
        .set_iam_instance_profile(wanted.instance_profile.as_ref().map(profile))
        .set_tag_specifications(tag_specifications(&kinds, &wanted.tags))
}

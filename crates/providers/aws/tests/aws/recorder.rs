//! An AWS that writes down what it is asked and passes it on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws::port::{
    CapacityReservation, Decision, Ec2, Error, Filter, FleetRequest, FleetResult, Iam, Image, ImageQuery,
    Instance, InstanceProfile, InstanceStatus, InstanceTypeInfo, LaunchTemplate, LaunchTemplateQuery,
    LaunchTemplateRef, NewLaunchTemplate, PlacementGroup, PlacementGroupQuery, RunInstancesCheck,
    SecurityGroup, Services, Simulation, SpotPrice, Ssm, StateChange, Subnet, Tags, Trial, TypeInZone,
};
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::wire;

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What was asked. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Recorder {
    services: Services,
    asked: Arc<Mutex<Vec<Value>>>,
    templates: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Recorder {
    pub(crate) fn new(services: Services) -> Self {
        Self { services, asked: Arc::default(), templates: Arc::default() }
    }

    /// The services that write down.
    pub(crate) fn services(&self) -> Services {
        let this = Arc::new(self.clone());
        Services {
            ec2: Arc::clone(&this) as _,
            iam: Arc::clone(&this) as _,
            ssm: this as _,
            ..self.services.clone()
        }
    }

    /// Everything that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    fn note(&self, service: &str, action: &str, parameters: Value) {
        let request = json!({"service": service, "action": action, "parameters": parameters});
        self.asked.lock().unwrap().push(request);
    }

    fn content(&self, template: &str) -> Value {
        self.templates.lock().unwrap().get(template).cloned().unwrap_or_default()
    }
}

fn ids(name: &str, ids: &[String], filters: &[Filter]) -> Value {
    let mut parameters = serde_json::Map::new();
    if !ids.is_empty() {
        parameters.insert(name.to_owned(), json!(ids));
    }
    if !filters.is_empty() {
        parameters.insert("Filter".to_owned(), wire::filters(filters));
    }
    Value::Object(parameters)
}

fn pairs(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

impl Ec2 for Recorder {
    fn check_access(&self) -> Answer<'_, ()> {
        self.services.ec2.check_access()
    }

    fn instance_types(&self) -> Answer<'_, Vec<InstanceTypeInfo>> {
        self.services.ec2.instance_types()
    }

    fn instance_type_zones(&self) -> Answer<'_, Vec<TypeInZone>> {
        self.services.ec2.instance_type_zones()
    }

    fn spot_prices(&self, at: Timestamp) -> Answer<'_, Vec<SpotPrice>> {
        self.services.ec2.spot_prices(at)
    }

    fn subnets<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<Subnet>> {
        self.note("ec2", "DescribeSubnets", ids("", &[], filters));
        self.services.ec2.subnets(filters)
    }

    fn security_groups<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<SecurityGroup>> {
        self.note("ec2", "DescribeSecurityGroups", ids("", &[], filters));
        self.services.ec2.security_groups(filters)
    }

    fn images<'a>(&'a self, query: &'a ImageQuery) -> Answer<'a, Vec<Image>> {
        self.note("ec2", "DescribeImages", wire::images(query));
        self.services.ec2.images(query)
    }

    fn capacity_reservations<'a>(
        &'a self,
        ids: &'a [String],
        filters: &'a [Filter],
    ) -> Answer<'a, Vec<CapacityReservation>> {
        self.services.ec2.capacity_reservations(ids, filters)
    }

    fn placement_groups<'a>(&'a self, query: &'a PlacementGroupQuery) -> Answer<'a, Vec<PlacementGroup>> {
        self.services.ec2.placement_groups(query)
    }

    fn launch_templates<'a>(&'a self, query: &'a LaunchTemplateQuery) -> Answer<'a, Vec<LaunchTemplate>> {
        self.note("ec2", "DescribeLaunchTemplates", wire::launch_templates(query));
        self.services.ec2.launch_templates(query)
    }

    fn create_launch_template<'a>(&'a self, template: &'a NewLaunchTemplate) -> Answer<'a, LaunchTemplate> {
        let content = wire::launch_template(template);
        self.templates.lock().unwrap().insert(template.name.clone(), content);
        self.services.ec2.create_launch_template(template)
    }

    fn delete_launch_template<'a>(&'a self, template: &'a LaunchTemplateRef) -> Answer<'a, ()> {
        let parameters = match template {
            LaunchTemplateRef::Id(_) => json!({"LaunchTemplateId": "a-template"}),
            LaunchTemplateRef::Name(_) => json!({"LaunchTemplateName": "a-template"}),
        };
        self.note("ec2", "DeleteLaunchTemplate", parameters);
        self.services.ec2.delete_launch_template(template)
    }

    fn create_fleet<'a>(&'a self, request: &'a FleetRequest) -> Answer<'a, FleetResult> {
        self.note("ec2", "CreateFleet", wire::fleet(request, |name| self.content(name)));
        self.services.ec2.create_fleet(request)
    }

    fn check_run_instances<'a>(&'a self, check: &'a RunInstancesCheck) -> BoxFuture<'a, Error> {
        self.note("ec2", "RunInstances", wire::run_instances(check, |name| self.content(name)));
        self.services.ec2.check_run_instances(check)
    }

    fn try_out<'a>(&'a self, trial: &'a Trial) -> BoxFuture<'a, Error> {
        self.services.ec2.try_out(trial)
    }

    fn instances<'a>(&'a self, of: &'a [String], filters: &'a [Filter]) -> Answer<'a, Vec<Instance>> {
        self.note("ec2", "DescribeInstances", ids("InstanceId", of, filters));
        self.services.ec2.instances(of, filters)
    }

    fn terminate_instances<'a>(&'a self, of: &'a [String]) -> Answer<'a, Vec<StateChange>> {
        self.note("ec2", "TerminateInstances", ids("InstanceId", of, &[]));
        self.services.ec2.terminate_instances(of)
    }

    fn reboot_instances<'a>(&'a self, ids: &'a [String]) -> Answer<'a, ()> {
        self.services.ec2.reboot_instances(ids)
    }

    fn create_tags<'a>(&'a self, id: &'a str, tags: &'a Tags) -> Answer<'a, ()> {
        self.note("ec2", "CreateTags", json!({"ResourceId": [id], "Tag": pairs(tags)}));
        self.services.ec2.create_tags(id, tags)
    }

    fn instance_statuses<'a>(&'a self, filters: &'a [Filter]) -> Answer<'a, Vec<InstanceStatus>> {
        self.note("ec2", "DescribeInstanceStatus", ids("", &[], filters));
        self.services.ec2.instance_statuses(filters)
    }
}

impl Iam for Recorder {
    fn instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, InstanceProfile> {
        self.note("iam", "GetInstanceProfile", json!({"InstanceProfileName": name}));
        self.services.iam.instance_profile(name)
    }

    fn create_instance_profile<'a>(&'a self, name: &'a str, path: &'a str, tags: &'a Tags) -> Answer<'a, ()> {
        let parameters = json!({"InstanceProfileName": name, "Path": path, "Tags": pairs(tags)});
        self.note("iam", "CreateInstanceProfile", parameters);
        self.services.iam.create_instance_profile(name, path, tags)
    }

    fn add_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        let parameters = json!({"InstanceProfileName": profile, "RoleName": role});
        self.note("iam", "AddRoleToInstanceProfile", parameters);
        self.services.iam.add_role(profile, role)
    }

    fn remove_role<'a>(&'a self, profile: &'a str, role: &'a str) -> Answer<'a, ()> {
        let parameters = json!({"InstanceProfileName": profile, "RoleName": role});
        self.note("iam", "RemoveRoleFromInstanceProfile", parameters);
        self.services.iam.remove_role(profile, role)
    }

    fn delete_instance_profile<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.note("iam", "DeleteInstanceProfile", json!({"InstanceProfileName": name}));
        self.services.iam.delete_instance_profile(name)
    }

    fn instance_profiles<'a>(&'a self, path_prefix: &'a str) -> Answer<'a, Vec<InstanceProfile>> {
        self.note("iam", "ListInstanceProfiles", json!({"PathPrefix": path_prefix}));
        self.services.iam.instance_profiles(path_prefix)
    }

    fn role<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        self.services.iam.role(name)
    }

    fn simulate<'a>(&'a self, request: &'a Simulation) -> Answer<'a, Decision> {
        self.services.iam.simulate(request)
    }
}

impl Ssm for Recorder {
    fn parameter<'a>(&'a self, name: &'a str) -> Answer<'a, String> {
        self.note("ssm", "GetParameter", json!({"Name": name}));
        self.services.ssm.parameter(name)
    }
}

//! What EC2NodeClasses select, asked as the controller asks it: subnets with their free addresses, security groups,
//! images, and the instance profile or role.

use std::collections::BTreeMap;

use api::aws::{Ami, EC2NodeClass};
use api::conditions::HasConditions as _;
use api::names::conditions::READY;
use api::shared::ConditionStatus;
use cloud::doctor::Check;
use futures::future::{join_all, try_join_all};
use jiff::Timestamp;

use super::{patiently, said};
use crate::ami::{Candidate, Lookup, Variant, discovered};
use crate::instance_profile::role_name;
use crate::kubelet::Kubelet;
use crate::port::{Error, Image, InstanceProfile, PlainRun, SecurityGroup, Services, Subnet};
use crate::selectors;
use crate::version::KubernetesVersion;

/// How many pods a node takes if nobody says it: as many as an m5.xlarge.
const USUAL_PODS: i64 = 58;
/// Fewer nodes than these are few for a subnet.
const FEW_NODES: i64 = 5;

/// What a class selects.
pub(super) struct Look<'a> {
    class: &'a EC2NodeClass,
    pub(super) subnets: Result<Vec<Subnet>, Error>,
    pub(super) groups: Result<Vec<SecurityGroup>, Error>,
    /// Nothing if the version of the cluster is not known, which images depend on.
    pub(super) images: Option<Result<Vec<Ami>, String>>,
    profile: Profile,
}

/// What instances of a class may do.
enum Profile {
    /// The user's own instance profile.
    Own(Result<InstanceProfile, Error>),
    /// A role that we make an instance profile for; nothing if IAM is not asked.
    Role(Option<Result<(), Error>>),
    /// Nobody says.
    Missing,
}

/// Asks what a class selects.
pub(super) async fn look<'a>(
    services: &Services,
    class: &'a EC2NodeClass,
    version: Option<KubernetesVersion>,
    isolated: bool,
    now: Timestamp,
) -> Look<'a> {
    let spec = &class.spec;
    let subnet_queries = selectors::subnet_queries(&spec.subnet_selector_terms);
    let group_queries = selectors::security_group_queries(&spec.security_group_selector_terms);
    let ec2 = &services.ec2;
    let subnets =
        join_all(subnet_queries.iter().map(|filters| patiently("ec2:DescribeSubnets", ec2.subnets(filters))));
    let groups = join_all(
        group_queries
            .iter()
            .map(|filters| patiently("ec2:DescribeSecurityGroups", ec2.security_groups(filters))),
    );
    let images = async {
        match version {
            Some(version) => Some(images(services, class, version, now).await),
            None => None,
        }
    };
    let (subnets, groups, images, profile) =
        futures::join!(subnets, groups, images, profile(services, class, isolated));
    let subnets = subnets.into_iter().collect::<Result<Vec<_>, _>>();
    let subnets = subnets.map(|all| {
        let by_id: BTreeMap<String, Subnet> =
            all.into_iter().flatten().map(|subnet| (subnet.id.clone(), subnet)).collect();
        by_id.into_values().collect()
    });
    let groups = groups.into_iter().collect::<Result<Vec<_>, _>>();
    let groups = groups.map(|all| {
        let by_id: BTreeMap<String, SecurityGroup> =
            all.into_iter().flatten().map(|group| (group.id.clone(), group)).collect();
        by_id.into_values().collect()
    });
    Look { class, subnets, groups, images, profile }
}

async fn profile(services: &Services, class: &EC2NodeClass, isolated: bool) -> Profile {
    let iam = &services.iam;
    match (&class.spec.instance_profile, &class.spec.role) {
        (Some(name), _) if isolated => {
            // It cannot be asked for; who wrote it knows it.
            let assumed = InstanceProfile { name: name.clone(), ..InstanceProfile::default() };
            Profile::Own(Ok(InstanceProfile { roles: vec![String::new()], ..assumed }))
        }
        (Some(name), _) => {
            Profile::Own(patiently("iam:GetInstanceProfile", iam.instance_profile(name)).await)
        }
        (None, Some(_)) if isolated => Profile::Role(None),
        (None, Some(role)) => Profile::Role(Some(patiently("iam:GetRole", iam.role(role_name(role))).await)),
        (None, None) => Profile::Missing,
    }
}

async fn images(
    services: &Services,
    class: &EC2NodeClass,
    version: KubernetesVersion,
    now: Timestamp,
) -> Result<Vec<Ami>, String> {
    let lookup = Lookup::new(&class.spec.ami_selector_terms, version).map_err(|error| error.to_string())?;
    let text = |error: Error| said(&error);
    let published = join_all(lookup.alias_parameters.iter().map(|each| parameter(services, &each.path)));
    let named = join_all(lookup.user_parameters.iter().map(|path| parameter(services, path)));
    let (published, named) = futures::join!(published, named);
    let published = published.into_iter().collect::<Result<Vec<_>, _>>().map_err(text)?;
    let named = named.into_iter().collect::<Result<Vec<_>, _>>().map_err(text)?;
    let mut variants: BTreeMap<&String, Vec<Variant>> = BTreeMap::new();
    for (parameter, value) in lookup.alias_parameters.iter().zip(&published) {
        if let Some(value) = value {
            variants.entry(value).or_default().extend(parameter.variants);
        }
    }
    let queries = lookup.queries(published.iter().chain(&named).flatten().map(String::as_str));
    let asked = queries.iter().map(|query| patiently("ec2:DescribeImages", services.ec2.images(query)));
    let found = try_join_all(asked).await.map_err(text)?;
    let candidate = |image: Image| {
        let variants = variants.get(&image.id).cloned().unwrap_or_default();
        Candidate { image, variants }
    };
    let candidates = found.into_iter().flatten().map(candidate).collect();
    Ok(discovered(candidates, class.spec.resolved_ami_family(), now))
}

/// The value of a parameter; that it is not there is no error.
async fn parameter(services: &Services, path: &str) -> Result<Option<String>, Error> {
    match patiently("ssm:GetParameter", services.ssm.parameter(path)).await {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Look<'_> {
    /// An instance of the class that could be run, if everything was found that it needs.
    pub(super) fn run(&self) -> Option<PlainRun> {
        let image = self.images.as_ref()?.as_ref().ok()?.first()?;
        let arm =
            image.requirements.iter().any(|each| each.values.iter().flatten().any(|value| value == "arm64"));
        let status = self.class.status.as_ref().map(|status| status.instance_profile.clone());
        let profile = self.class.spec.instance_profile.clone().or(status).filter(|name| !name.is_empty());
        Some(PlainRun {
            image_id: image.id.clone(),
            instance_type: if arm { "m6g.large" } else { "m5.large" }.to_owned(),
            subnet_id: self.subnets.as_ref().ok()?.first()?.id.clone(),
            security_groups: self.groups.as_ref().ok()?.iter().map(|group| group.id.clone()).collect(),
            instance_profile: profile,
            tags: BTreeMap::new(),
        })
        .filter(|run| !run.security_groups.is_empty())
    }

    /// What is said about the class.
    pub(super) fn report(&self) -> Vec<Check> {
        let name = self.class.metadata.name.as_deref().unwrap_or_default();
        let about = |what: &str| format!("EC2NodeClass {name}, {what}");
        let mut checks = of_subnets(&about("subnets"), &self.subnets, pods(self.class));
        checks.push(self.of_groups(about("security groups")));
        checks.push(self.of_images(about("images")));
        checks.push(self.of_profile(about("instance profile")));
        checks.extend(of_conditions(about("conditions"), self.class));
        checks
    }

    fn of_groups(&self, about: String) -> Check {
        match &self.groups {
            Ok(groups) if groups.is_empty() => Check::bad(
                about,
                "nothing matches spec.securityGroupSelectorTerms",
                "tag the groups, or correct the terms",
            ),
            Ok(groups) => {
                let names: Vec<String> =
                    groups.iter().map(|group| format!("{} ({})", group.id, group.name)).collect();
                Check::good(about, names.join(", "))
            }
            Err(error) => Check::bad(about, said(error), ""),
        }
    }

    fn of_images(&self, about: String) -> Check {
        match &self.images {
            None => Check::warning(
                about,
                "they depend on the version of Kubernetes, which is not known",
                "allow eks:DescribeCluster, or let the cluster be reached",
            ),
            Some(Ok(images)) if images.is_empty() => Check::bad(
                about,
                "nothing matches spec.amiSelectorTerms",
                "check names, tags, owner and region; a version of an alias may not exist",
            ),
            Some(Ok(images)) if images.iter().all(|image| image.deprecated) => Check::warning(
                about,
                format!("{} are found and all are deprecated", images.len()),
                "choose newer ones",
            ),
            Some(Ok(images)) => {
                let ids: Vec<&str> = images.iter().map(|image| image.id.as_str()).collect();
                Check::good(about, ids.join(", "))
            }
            Some(Err(error)) => Check::bad(about, error.clone(), "correct spec.amiSelectorTerms"),
        }
    }

    fn of_profile(&self, about: String) -> Check {
        let role = self.class.spec.role.as_deref().unwrap_or_default();
        let unseen = "the policy doctor allows it; it is not needed for anything else";
        match &self.profile {
            Profile::Missing => {
                Check::bad(about, "neither spec.role nor spec.instanceProfile is set", "set one of them")
            }
            Profile::Own(Ok(profile)) if profile.roles.is_empty() => Check::bad(
                about,
                format!("instance profile {:?} has no role, so that nodes cannot join", profile.name),
                "add the role of nodes to it",
            ),
            Profile::Own(Ok(profile)) => Check::good(about, profile.name.clone()),
            Profile::Own(Err(error)) if error.is_not_found() => {
                let name = self.class.spec.instance_profile.as_deref().unwrap_or_default();
                Check::bad(about, format!("instance profile {name:?} does not exist"), "create it")
            }
            Profile::Role(None) => Check::bad(
                about,
                "spec.role needs IAM, which an isolated VPC does not reach",
                "set spec.instanceProfile",
            ),
            Profile::Role(Some(Ok(()))) => Check::good(about, format!("role {role:?} exists")),
            Profile::Role(Some(Err(error))) if error.is_not_found() => Check::bad(
                about,
                format!("role {role:?} of spec.role does not exist"),
                "create it or name another one",
            ),
            Profile::Role(Some(Err(error))) if error.is_denied() => {
                Check::warning(about, format!("whether role {role:?} exists may not be asked for"), unseen)
            }
            Profile::Own(Err(error)) | Profile::Role(Some(Err(error))) => {
                Check::warning(about, said(error), "")
            }
        }
    }
}

/// How many addresses a full node takes: one for itself and one for each pod.
fn pods(class: &EC2NodeClass) -> i64 {
    let kubelet = Kubelet::decode(class.spec.kubelet.as_ref()).ok();
    let written = kubelet.and_then(|kubelet| kubelet.literal_max_pods()).map(i64::from);
    written.filter(|pods| *pods > 0).unwrap_or(USUAL_PODS)
}

fn of_subnets(about: &str, subnets: &Result<Vec<Subnet>, Error>, pods: i64) -> Vec<Check> {
    let subnets = match subnets {
        Ok(subnets) => subnets,
        Err(error) => return vec![Check::bad(about, said(error), "")],
    };
    if subnets.is_empty() {
        let message = "nothing matches spec.subnetSelectorTerms";
        return vec![Check::bad(about, message, "tag the subnets, or correct the terms")];
    }
    if subnets.iter().all(|subnet| subnet.available_addresses <= 0) {
        let message = format!("all {} are full, so that nothing can be launched", subnets.len());
        return vec![Check::bad(about, message, "add subnets, or free addresses")];
    }
    let mut checks = Vec::new();
    for Subnet { id, zone, available_addresses: free, .. } in subnets {
        let nodes = free / (pods + 1);
        if *free <= 0 {
            let message = format!("{id} in {zone} is full, so that it gets no nodes");
            checks.push(Check::warning(about, message, "add a subnet in this zone, or free addresses"));
        } else if nodes < FEW_NODES {
            let message = format!(
                "{id} in {zone} has {free} free addresses, enough for {nodes} nodes with {pods} pods each if every pod takes one"
            );
            checks.push(Check::warning(about, message, "add a subnet in this zone before it is full"));
        }
    }
    if checks.is_empty() {
        let free: i64 = subnets.iter().map(|subnet| subnet.available_addresses.max(0)).sum();
        let mut zones: Vec<&str> = subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
        zones.sort_unstable();
        zones.dedup();
        let message = format!("{} in {}, {free} free addresses", subnets.len(), zones.join(", "));
        checks.push(Check::good(about, message));
    }
    checks
}

/// What the controller itself says.
fn of_conditions(about: String, class: &EC2NodeClass) -> Option<Check> {
    let ready = class.condition(READY)?;
    if ready.status == ConditionStatus::True {
        return Some(Check::good(about, "the controller finds it ready"));
    }
    let others = class.conditions().iter().filter(|each| each.type_ != READY);
    let wrong: Vec<String> = others
        .filter(|each| each.status != ConditionStatus::True)
        .map(|each| format!("{} is {} ({}) {}", each.type_, each.status, each.reason, each.message))
        .collect();
    let message = if wrong.is_empty() { ready.message.clone() } else { wrong.join(", ") };
    Some(Check::bad(about, message, "docs/aws.md lists what to do for each reason"))
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;

    use super::*;

    fn subnet(id: &str, free: i64) -> Subnet {
        Subnet { id: id.to_owned(), zone: "z".to_owned(), available_addresses: free, ..Subnet::default() }
    }

    #[test]
    fn few_addresses_are_said_by_subnet() {
        let levels = |free: &[i64]| -> Vec<Level> {
            let subnets = free.iter().map(|free| subnet("s", *free)).collect();
            of_subnets("a", &Ok(subnets), 29).iter().map(|check| check.level).collect()
        };
        assert_eq!(levels(&[]), [Level::Bad]);
        assert_eq!(levels(&[0, 0]), [Level::Bad], "one line for all of them");
        assert_eq!(levels(&[0, 4000]), [Level::Warning]);
        assert_eq!(levels(&[149, 20]), [Level::Warning, Level::Warning]);
        assert_eq!(levels(&[150, 4000]), [Level::Good]);
        let check = &of_subnets("a", &Ok(vec![subnet("s-1", 100)]), 29)[0];
        assert!(check.message.contains("s-1 in z has 100 free addresses, enough for 3 nodes"), "{check:?}");
    }

    #[test]
    fn what_the_kubelet_takes_counts_where_it_is_a_number() {
        let mut class = EC2NodeClass::default();
        assert_eq!(pods(&class), USUAL_PODS);
        class.spec.kubelet = serde_json::from_value(serde_json::json!({"maxPods": 110})).ok();
        assert_eq!(pods(&class), 110);
    }
}

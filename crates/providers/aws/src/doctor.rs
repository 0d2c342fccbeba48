//! Looks over everything that nodes on AWS depend on, without changing anything. Entry: [`examine`].
//!
//! ```text
//!   who are we? ──► what is there (cluster, instances, NodeClasses, queue, quotas) ──► what may we do? ──► Report
//! ```

mod actions;
mod classes;
mod permissions;
mod queue;
mod quotas;
mod tries;

use std::time::Duration;

use api::aws::EC2NodeClass;
use api::names::tags::aws as tags;
use cloud::doctor::{Check, Report};
use futures::future::join_all;
use jiff::Timestamp;

use self::permissions::{Outcomes, note};
use self::tries::Ground;
use crate::port::{
    CallerIdentity, Cluster, Error, Filter, Instance, InstanceTypeInfo, LaunchTemplate, LaunchTemplateQuery,
    Quota, Services,
};
use crate::version::{KubernetesVersion, SUPPORTED};

/// How long AWS may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is looked over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The region.
    pub region: String,
    /// The name of the cluster.
    pub cluster_name: String,
    /// Whether the endpoint of the cluster is set, so that EKS need not be asked for it.
    pub has_endpoint: bool,
    /// The name of the queue with interruptions.
    pub interruption_queue: Option<String>,
    /// Whether services without an endpoint in the network are left alone.
    pub isolated_vpc: bool,
    /// Whether zones are avoided that traffic is shifted away from.
    pub zonal_shift: bool,
    /// The EC2NodeClasses; nothing if the cluster could not be asked.
    pub classes: Option<Vec<EC2NodeClass>>,
    /// The version that the API server says it has.
    pub kubernetes: Option<String>,
}

impl Subject {
    fn classes(&self) -> &[EC2NodeClass] {
        self.classes.as_deref().unwrap_or_default()
    }

    /// Whether instance profiles may have to be made: there is a class with a role, or nobody knows.
    fn may_use_roles(&self) -> bool {
        let has_role = |class: &EC2NodeClass| class.spec.instance_profile.is_none();
        !self.isolated_vpc && (self.classes().is_empty() || self.classes().iter().any(has_role))
    }
}

/// An answer, unless it takes too long.
async fn patiently<T>(
    operation: &'static str,
    question: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, question).await.unwrap_or_else(|_| Err(unanswered(operation)))
}

fn unanswered(operation: &'static str) -> Error {
    let message = format!("no answer within {} s", PATIENCE.as_secs());
    Error { operation, message, ..Error::default() }
}

/// What went wrong, in short: that something is not allowed is said once, and why, among the permissions.
fn said(error: &Error) -> String {
    if error.is_denied() { format!("{} is not allowed", error.operation) } else { error.to_string() }
}

/// What there is.
struct Facts {
    cluster: Result<Cluster, Error>,
    instances: Result<Vec<Instance>, Error>,
    types: Result<Vec<InstanceTypeInfo>, Error>,
    templates: Result<Vec<LaunchTemplate>, Error>,
    quotas: Result<Vec<Quota>, Error>,
}

impl Facts {
    async fn ask(services: &Services, subject: &Subject) -> Self {
        let running = [Filter::new("instance-state-name", ["pending", "running"])];
        let of_cluster = Filter::tag(tags::CLUSTER_NAME, &subject.cluster_name);
        let query = LaunchTemplateQuery::Filters(vec![of_cluster]);
        let (cluster, instances, types, templates, quotas) = futures::join!(
            patiently("eks:DescribeCluster", services.eks.cluster(&subject.cluster_name)),
            patiently("ec2:DescribeInstances", services.ec2.instances(&[], &running)),
            patiently("ec2:DescribeInstanceTypes", services.ec2.instance_types()),
            patiently("ec2:DescribeLaunchTemplates", services.ec2.launch_templates(&query)),
            patiently("servicequotas:ListServiceQuotas", services.quotas.quotas("ec2")),
        );
        Self { cluster, instances, types, templates, quotas }
    }

    /// The version of Kubernetes, as EKS or the API server says it.
    fn version(&self, subject: &Subject) -> Option<KubernetesVersion> {
        let of_eks = self.cluster.as_ref().ok().map(|cluster| cluster.version.as_str());
        let mut said = [of_eks, subject.kubernetes.as_deref()].into_iter().flatten();
        said.find_map(|text| text.parse().ok())
    }

    /// An instance of the cluster that a NodePool has.
    fn own_instance(&self, subject: &Subject) -> Option<&str> {
        let owned = format!("{}{}", tags::CLUSTER_PREFIX, subject.cluster_name);
        let is_own =
            |each: &&Instance| each.tags.contains_key(&owned) && each.tags.contains_key(tags::NODEPOOL);
        self.instances.as_ref().ok()?.iter().find(is_own).map(|instance| instance.id.as_str())
    }
}

/// Looks over everything. Fails if AWS does not answer at all, or does not know us: then there is nothing to say.
pub async fn examine(services: &Services, subject: &Subject, now: Timestamp) -> Result<Report, Error> {
    let identity = patiently("sts:GetCallerIdentity", services.sts.caller_identity()).await;
    if let Err(error) = &identity {
        // Networks without an endpoint of STS can have one of EC2.
        let access = patiently("ec2:DescribeInstanceTypes", services.ec2.check_access()).await;
        let is_mute = |error: &Error| error.code.is_empty() || error.is_unknown_caller();
        if access.as_ref().err().is_some_and(is_mute) {
            return Err(error.clone());
        }
    }
    let mut outcomes = Outcomes::new();
    let facts = Facts::ask(services, subject).await;
    let cluster = facts.cluster.as_ref();
    note(&mut outcomes, "eks:DescribeCluster", cluster.map(|_| ()));
    let version = facts.version(subject);
    let looks = subject
        .classes()
        .iter()
        .map(|class| classes::look(services, class, version, subject.isolated_vpc, now));
    let looks = join_all(looks).await;
    let queue = match &subject.interruption_queue {
        Some(name) => Some(queue::look(services, name, &mut outcomes).await),
        None => None,
    };
    let ground = Ground {
        services,
        subject,
        instance: facts.own_instance(subject),
        template: facts.templates.as_ref().ok().and_then(|all| all.first()),
        run: looks.iter().find_map(classes::Look::run),
        cluster_arn: cluster.ok().map(|cluster| cluster.arn.as_str()),
    };
    ground.try_all(&mut outcomes).await;
    if let Ok(identity) = &identity {
        ground.simulate(identity, &mut outcomes).await;
    }
    let mut checks = vec![of_identity(&identity)];
    checks.extend(of_cluster(&facts, subject));
    checks.extend(permissions::report(&outcomes, subject));
    match &subject.classes {
        Some(classes) if classes.is_empty() => {
            let message = "there are none, so that nothing can be launched";
            checks.push(Check::warning("EC2NodeClasses", message, "see examples/aws/nodepool.yaml"));
        }
        _ => checks.extend(looks.iter().flat_map(classes::Look::report)),
    }
    checks.extend(queue::report(queue.as_ref()));
    let (instances, types) = (facts.instances.unwrap_or_default(), facts.types.unwrap_or_default());
    checks.extend(quotas::report(&facts.quotas, &instances, &types));
    let title = format!("AWS, region {}, cluster {}", subject.region, subject.cluster_name);
    Ok(Report { title, checks })
}

fn of_identity(identity: &Result<CallerIdentity, Error>) -> Check {
    match identity {
        Ok(CallerIdentity { account, arn }) => {
            Check::good("credentials", format!("account {account}, {arn}"))
        }
        Err(error) if error.is_unknown_caller() => Check::bad(
            "credentials",
            error.to_string(),
            "give the service account a role, or renew the credentials",
        ),
        Err(error) => Check::warning(
            "credentials",
            format!("STS does not say who we are, {error}"),
            "networks without internet need an endpoint of STS for roles of service accounts",
        ),
    }
}

/// What is said about the cluster and its version.
fn of_cluster(facts: &Facts, subject: &Subject) -> Vec<Check> {
    let about = format!("cluster {}", subject.cluster_name);
    let mut checks = Vec::new();
    match &facts.cluster {
        Ok(cluster) => checks.push(Check::good(&about, format!("EKS knows it, {}", cluster.endpoint))),
        // Permissions are said elsewhere.
        Err(error) if error.is_denied() => {}
        Err(error) if subject.has_endpoint => {
            let message = format!("EKS does not know it, {error}");
            let advice = "that is fine unless AL2023, the version by EKS or zonal shifts are used";
            checks.push(Check::warning(&about, message, advice));
        }
        Err(error) => {
            let advice = "check --cluster-name and the region, or set --cluster-endpoint";
            checks.push(Check::bad(&about, error.to_string(), advice));
        }
    }
    let about = "Kubernetes";
    checks.push(match facts.version(subject) {
        Some(version) if version.is_supported() => Check::good(about, format!("version {version}")),
        Some(version) => Check::warning(
            about,
            format!("version {version} was not tried with this release"),
            format!("versions {} to {} were", SUPPORTED.start(), SUPPORTED.end()),
        ),
        None => {
            let is_denied = facts.cluster.as_ref().is_err_and(Error::is_denied);
            let advice = if is_denied { "allow eks:DescribeCluster" } else { "find the cluster first" };
            Check::warning(about, "its version is not known", advice)
        }
    });
    checks
}

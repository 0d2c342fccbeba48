//! Whether launches with a NodeClass would be accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use api::aws::{AmiFamily, EC2NodeClass};
use api::conditions::HasConditions as _;
use api::names::annotations::aws::{LEARNED_MEMORY, NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION};
use api::names::conditions::aws as conditions;
use api::names::reasons::aws as reasons;
use api::nodeclaim::NodeClaim;
use api::shared::{ConditionStatus, Requirement};
use cluster::instance_types::Wanted;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::controllers::{is_pool_ours, requirements_of};
use crate::hash::of_text;
use crate::instance_type::Discovered;
use crate::kubelet::{Expressions, Kubelet, Resolved, expression_fields, mistakes, unsupported};
use crate::launch_template::{Launch, templates};
use crate::node_class::{Class, found};
use crate::port::Error;
use crate::provider::Inner;
use crate::tags;
use crate::validation::{Answer, Attempt, fleet_check, judge, run_checks, tenancy_to_try, types_to_try};

/// How long a verdict counts.
const KEPT: Duration = Duration::from_mins(30);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Launches would be accepted.
    Accepted,
    /// Not until somebody does something, or something else is ready.
    Refused(ConditionStatus, &'static str, String),
    /// Nobody knows yet; what was said stays.
    Unknown,
}

impl Verdict {
    fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused(ConditionStatus::False, reason, message.into())
    }
}

/// What is remembered of the tries of a class.
#[derive(Debug, Default)]
struct Memory {
    /// What was tried, until when the verdict counts, and the verdict.
    verdict: Option<(u64, Instant, Verdict)>,
    /// How often a try said nothing about the class: each time, another instance type is next.
    failures: usize,
}

/// What is remembered of tries, by the name of the NodeClass.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<BTreeMap<String, Memory>>);

impl Verdicts {
    /// Forgets what is known of a class.
    pub(super) fn forget(&self, class: &str) {
        self.0.lock().remove(class);
    }

    /// Judges a class.
    pub(super) async fn judge(&self, inner: &Inner, object: &EC2NodeClass) -> Verdict {
        if let Some(verdict) = of_spec(object, inner.setup.settings.node_class_cel) {
            return verdict;
        }
        if let Some(verdict) = of_dependencies(object) {
            return verdict;
        }
        let discovered = inner.known.lock().discovered().clone();
        if let Some(verdict) = of_types(object, &discovered, inner) {
            return verdict;
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        let key = key(object);
        let now = Instant::now();
        let (known, failures) = {
            let mut all = self.0.lock();
            let memory = all.entry(name.clone()).or_default();
            (memory.verdict.clone().filter(|(of, until, _)| *of == key && *until > now), memory.failures)
        };
        if let Some((_, _, verdict)) = known {
            return verdict;
        }
        let tried = try_out(inner, object, &discovered, failures).await;
        let mut all = self.0.lock();
        let memory = all.entry(name.clone()).or_default();
        match tried {
            Ok(Tried(verdict, is_kept)) => {
                if is_kept {
                    memory.verdict = Some((key, now + KEPT, verdict.clone()));
                }
                verdict
            }
            Err(error) => {
                memory.failures = failures.wrapping_add(1);
                tracing::error!(EC2NodeClass = name, error, "failed to validate the EC2NodeClass");
                Verdict::Unknown
            }
        }
    }
}

/// Everything that a verdict follows from.
fn key(object: &EC2NodeClass) -> u64 {
    let status = found(object);
    let mut annotations = object.metadata.annotations.clone().unwrap_or_default();
    // They say nothing about launches that the spec does not say, and we write them ourselves.
    for own in [LEARNED_MEMORY, NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION] {
        annotations.remove(own);
    }
    let text = serde_json::to_string(&(&annotations, &object.spec, &status));
    of_text(&text.unwrap_or_default())
}

/// What can be said without AWS about what is written.
fn of_spec(object: &EC2NodeClass, with_expressions: bool) -> Option<Verdict> {
    let settings = object.spec.kubelet.as_ref();
    let wrong = settings.map(mistakes).unwrap_or_default();
    if !wrong.is_empty() {
        return Some(Verdict::refused(reasons::INVALID_KUBELET_CONFIGURATION, wrong.join("; ")));
    }
    let kubelet = match Kubelet::decode(settings) {
        Ok(kubelet) => kubelet,
        Err(error) => {
            return Some(Verdict::refused(reasons::INVALID_KUBELET_CONFIGURATION, error.to_string()));
        }
    };
    let fields = expression_fields(&kubelet);
    if !with_expressions && !fields.is_empty() {
        let message = format!(
            "spec.kubelet has expressions in {}, which need the gate NodeClassCEL",
            fields.join(", ")
        );
        return Some(Verdict::refused(reasons::KUBELET_EXPRESSIONS_DISABLED, message));
    }
    if let Err(error) = Expressions::compile(&kubelet) {
        return Some(Verdict::refused(reasons::KUBELET_EXPRESSION_INVALID, error.to_string()));
    }
    unsupported(object.spec.resolved_ami_family(), settings, &kubelet)
        .map(|message| Verdict::refused(reasons::UNSUPPORTED_KUBELET_CONFIGURATION, message))
}

/// Whether other conditions come first.
fn of_dependencies(object: &EC2NodeClass) -> Option<Verdict> {
    let needed = [
        conditions::AMIS_READY,
        conditions::INSTANCE_PROFILE_READY,
        conditions::SECURITY_GROUPS_READY,
        conditions::SUBNETS_READY,
    ];
    let with = |status: ConditionStatus| {
        needed.into_iter().filter(move |name| {
            object.condition(name).map_or(ConditionStatus::Unknown, |condition| condition.status) == status
        })
    };
    let reason = reasons::DEPENDENCIES_NOT_READY;
    for status in [ConditionStatus::False, ConditionStatus::Unknown] {
        let names: Vec<&str> = with(status).collect();
        if !names.is_empty() {
            let message = format!("Awaiting {}", names.join(", "));
            return Some(Verdict::Refused(status, reason, message));
        }
    }
    None
}

/// What can be said once the instance types are known.
fn of_types(object: &EC2NodeClass, discovered: &Discovered, inner: &Inner) -> Option<Verdict> {
    let class = match Class::new(object, None, inner.setup.settings.node_class_cel) {
        Ok(class) => class,
        Err(error) => {
            return Some(Verdict::refused(reasons::INVALID_KUBELET_CONFIGURATION, error.to_string()));
        }
    };
    if discovered.types().len() == 0 {
        return Some(Verdict::Unknown);
    }
    if class.expressions.as_ref().is_some_and(|all| !all.is_empty()) {
        let reserved = inner.setup.settings.reserved_enis;
        let wrong = discovered
            .types()
            .find_map(|info| Some((info, Resolved::mistakes(&class, info, reserved).into_iter().next()?)));
        if let Some((info, mistake)) = wrong {
            let message = format!("for instance type {}, {mistake}", info.name);
            return Some(Verdict::refused(reasons::KUBELET_EXPRESSION_EVALUATION_FAILED, message));
        }
    }
    let cluster = &inner.setup.settings.cluster_name;
    let tags = tags::of_launch(&class, &NodeClaim::default(), cluster);
    tags.err().map(|error| Verdict::refused(reasons::TAG_VALIDATION_FAILED, error.to_string()))
}

/// A verdict, and whether it counts for a while.
struct Tried(Verdict, bool);

/// Creates a launch template, and asks whether a fleet and an instance of it would be accepted. Each failure before
/// makes it another instance type.
async fn try_out(
    inner: &Inner,
    object: &EC2NodeClass,
    discovered: &Discovered,
    failures: usize,
) -> Result<Tried, String> {
    if object.spec.resolved_ami_family() == AmiFamily::AL2023
        && let Some(tried) = learn_cidr(inner).await
    {
        return Ok(tried);
    }
    if inner.setup.settings.disable_dry_run {
        return Ok(Tried(Verdict::Accepted, true));
    }
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let group = inner.placement_group(object).await.unwrap_or_default();
    let class = Class::new(object, group.as_ref(), inner.setup.settings.node_class_cel)
        .map_err(|error| text(&error))?;
    let types = inner.types(object, group.as_ref()).map_err(|error| text(&error))?;
    let claim = NodeClaim::default();
    let tags =
        tags::of_launch(&class, &claim, &inner.setup.settings.cluster_name).map_err(|error| text(&error))?;
    let (name, template) = {
        let pools: Vec<Vec<Requirement>> = {
            let state = inner.setup.cluster.read();
            let of_class = state.node_pools.values().filter(|pool| {
                is_pool_ours(pool) && pool.spec.template.spec.node_class_ref.name == class.name
            });
            of_class.map(|pool| requirements_of(pool)).collect()
        };
        let tenancy = tenancy_to_try(&pools, &inner.sets);
        let mut pools: Vec<Wanted<'_>> =
            pools.iter().filter_map(|pool| Wanted::new(pool, &inner.sets).ok()).collect();
        let all = types_to_try(&class, &types, discovered, &mut pools, &inner.sets);
        let tried = all.get(failures.checked_rem(all.len()).unwrap_or_default());
        let tried = *tried.ok_or(
            "no instance type can be started from the images of the class in the zones of its subnets",
        )?;
        let cluster = inner.known.lock().cluster.clone();
        let launch = Launch {
            class: &class,
            claim: &claim,
            cluster: &cluster,
            region: &inner.setup.region,
            capacity_type: api::names::values::capacity_type::ON_DEMAND,
            tenancy,
            partition: None,
            tags: &tags,
            reserved_capacity: inner.setup.gates.reserved_capacity,
        };
        let only = [tried.clone()];
        let reserved = inner.setup.settings.reserved_enis;
        let needed =
            templates(&launch, &only, discovered, reserved, &inner.sets).map_err(|error| text(&error))?;
        let template = needed.into_iter().next().ok_or("there is no launch template")?.request;
        (tried.name.clone(), template)
    };
    let created = inner.ensure_templates(std::slice::from_ref(&template)).await;
    let judged = judge(Attempt::CreateLaunchTemplate, &class, created.as_ref().copied());
    if let Some(tried) = refusal(judged, &name, created.as_ref().err()) {
        return tried;
    }
    let ec2 = &inner.setup.services.ec2;
    let fleet = fleet_check(&class, &template.name, &name, tags.clone());
    let fleet = inner.counted("ec2:CreateFleet", ec2.create_fleet(&fleet)).await;
    let judged = judge(Attempt::CreateFleet, &class, fleet.as_ref().map(|_| ()));
    if let Some(tried) = refusal(judged, &name, fleet.as_ref().err()) {
        return tried;
    }
    let mut first = None;
    for check in run_checks(&class, &template.name, &name, &tags) {
        let answer = inner.counted("ec2:RunInstances", ec2.check_run_instances(&check)).await;
        if answer.is_dry_run_success() {
            return Ok(Tried(Verdict::Accepted, true));
        }
        first.get_or_insert(answer);
    }
    let judged =
        first.as_ref().map_or(Answer::Failed, |error| judge(Attempt::RunInstances, &class, Err(error)));
    refusal(judged, &name, first.as_ref()).unwrap_or(Ok(Tried(Verdict::Accepted, true)))
}

/// What a try that was not accepted comes to; nothing if it was.
fn refusal(answer: Answer, instance_type: &str, error: Option<&Error>) -> Option<Result<Tried, String>> {
    match answer {
        Answer::Accepted => None,
        Answer::TryAgain => Some(Ok(Tried(Verdict::Unknown, false))),
        Answer::ProfileMissing { message } => {
            Some(Ok(Tried(Verdict::refused(reasons::INSTANCE_PROFILE_NOT_FOUND, message), false)))
        }
        Answer::Refused { reason, message } => Some(Ok(Tried(Verdict::refused(reason, message), true))),
        Answer::Failed => {
            let said = error.map_or_else(|| "there is no subnet to try".to_owned(), Error::to_string);
            Some(Err(format!("a launch of {instance_type} was tried, {said}; another type is tried next")))
        }
    }
}

/// Asks once for the addresses of services, which nodes of AL2023 must know.
async fn learn_cidr(inner: &Inner) -> Option<Tried> {
    if inner.known.lock().cluster.cidr.is_some() {
        return None;
    }
    let eks = &inner.setup.services.eks;
    let asked = inner.counted("eks:DescribeCluster", eks.cluster(&inner.setup.settings.cluster_name)).await;
    let reason = reasons::CLUSTER_CIDR_RESOLUTION_FAILED;
    match asked.map(|cluster| cluster.service_ipv4_cidr.or(cluster.service_ipv6_cidr)) {
        Ok(Some(cidr)) => {
            let mut known = inner.known.lock();
            let mut cluster = (*known.cluster).clone();
            cluster.cidr = Some(cidr);
            known.cluster = std::sync::Arc::new(cluster);
            None
        }
        Ok(None) => {
            let message = "EKS does not say which addresses services have";
            Some(Tried(Verdict::refused(reason, message), false))
        }
        Err(error) if error.is_transient() => Some(Tried(Verdict::Unknown, false)),
        Err(error) => {
            let message = format!("the addresses of services cannot be asked for, {error}");
            Some(Tried(Verdict::refused(reason, message), false))
        }
    }
}

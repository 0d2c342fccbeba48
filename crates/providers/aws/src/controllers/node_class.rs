//! Finds what NodeClasses select, and says whether instances can be launched with them.
//!
//! ```text
//!   finalizer ─► ask AWS (images, reservations, placement group, subnets, groups, profile) ─► decide ─► validation
//! ```

mod ask;
mod decide;
mod kept;
mod profile;
mod validation;

use std::sync::Arc;
use std::time::Duration;

use api::aws::{Ami, EC2NodeClass, SecurityGroup, Subnet};
use api::conditions::Conditions;
use api::names::conditions::aws as conditions;
use api::names::events::aws::WAITING_ON_NODE_CLAIM_TERMINATION;
use api::names::finalizers::AWS_TERMINATION;
use api::names::metrics::aws as metrics;
use api::names::tags::aws as tags;
use cluster::objects::NodeClass;
use cluster::state::{Key, Kind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Outcome, Reconcile};
use runtime::events::About;
use serde_json::{Value, json};

use self::decide::{Answers, apply, dependents};
use self::kept::Kept;
use self::validation::{Verdict, Verdicts};
use super::parameters::Parameters;
use super::profiles::Profiles;
use super::{failed, is_ours};
use crate::launch_template::PREFIX;
use crate::port::{Filter, LaunchTemplateQuery, LaunchTemplateRef};
use crate::provider::Inner;

/// How long is waited for claims of a class that shall go.
const WAIT_FOR_CLAIMS: Again = Again::After(Duration::from_mins(10));
/// How long security groups that were found count.
const GROUPS_KEPT: Duration = Duration::from_mins(1);

/// Looks after NodeClasses.
pub(super) struct NodeClasses {
    inner: Arc<Inner>,
    parameters: Arc<Parameters>,
    profiles: Arc<Profiles>,
    amis: Kept<Ami>,
    subnets: Kept<Subnet>,
    security_groups: Kept<SecurityGroup>,
    shared: ask::Shared,
    verdicts: Verdicts,
}

impl NodeClasses {
    pub(super) fn new(inner: Arc<Inner>, parameters: Arc<Parameters>, profiles: Arc<Profiles>) -> Self {
        Self {
            inner,
            parameters,
            profiles,
            amis: Kept::default(),
            subnets: Kept::default(),
            security_groups: Kept::default(),
            shared: ask::Shared::default(),
            verdicts: Verdicts::default(),
        }
    }

    async fn look_after(&self, key: &Key) -> Outcome {
        let api = &self.inner.setup.api;
        // The whole object: annotations that nobody else looks at count here.
        let object: EC2NodeClass = match api.get(&api.path(Kind::NodeClass, key)).await {
            Err(error) if error.is_not_found() => return Ok(Again::No),
            object => object?,
        };
        if object.metadata.deletion_timestamp.is_some() {
            return self.finalize(key, &object).await;
        }
        let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|name| name == AWS_TERMINATION) {
            let all: Vec<&str> = finalizers.iter().map(String::as_str).chain([AWS_TERMINATION]).collect();
            let version = &object.metadata.resource_version;
            let change = json!({"metadata": {"finalizers": all, "resourceVersion": version}});
            api.patch::<NodeClass>(key, &change).await?;
            // What was written comes back as a change.
            return Ok(Again::secs(1));
        }
        self.resolve(key, object).await
    }

    async fn resolve(&self, key: &Key, before: EC2NodeClass) -> Outcome {
        let inner = &*self.inner;
        let reserved = inner.setup.gates.reserved_capacity;
        let reservations = async {
            if reserved { Some(ask::reservations(inner, &before, &self.shared).await) } else { None }
        };
        let settings = &inner.setup.settings;
        let version = format!("{:?}", inner.known.lock().kubernetes);
        let amis = ask::amis(inner, &before, &self.parameters);
        let amis = self.amis.or_ask(&before, &version, settings.ami_refresh_interval, amis);
        let subnets = ask::subnets(inner, &before);
        let subnets = self.subnets.or_ask(&before, "", settings.subnet_refresh_interval, subnets);
        let groups = ask::security_groups(inner, &before);
        let groups = self.security_groups.or_ask(&before, "", GROUPS_KEPT, groups);
        // None of them needs another one's answer.
        let (amis, reservations, placement_group, subnets, security_groups, instance_profile) = futures::join!(
            amis,
            reservations,
            ask::placement_group(inner, &before, &self.shared),
            subnets,
            groups,
            profile::ensure(inner, &before, &self.profiles),
        );
        let answers =
            Answers { amis, reservations, placement_group, subnets, security_groups, instance_profile };
        let mut after = before.clone();
        let mut again = apply(&mut after, answers, reserved, inner.setup.clock.now());
        let verdict = self.verdicts.judge(inner, &after).await;
        let mut all = Conditions::with_dependents(&mut after, dependents(reserved), inner.setup.clock.now());
        match verdict {
            Verdict::Accepted => {
                all.set_true(conditions::VALIDATION_SUCCEEDED);
            }
            Verdict::Refused(status, reason, message) => {
                all.set(conditions::VALIDATION_SUCCEEDED, status, reason, &message);
            }
            Verdict::Unknown => again = again.or_sooner(Again::secs(10)),
        }
        if before.status != after.status {
            let change = json!({
                "metadata": {"resourceVersion": before.metadata.resource_version},
                "status": written(&after),
            });
            inner.setup.api.patch_status::<NodeClass>(key, &change).await?;
        }
        Ok(again)
    }

    async fn finalize(&self, key: &Key, object: &EC2NodeClass) -> Outcome {
        let inner = &*self.inner;
        let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|name| name == AWS_TERMINATION) {
            return Ok(Again::No);
        }
        let (names, class) = {
            let state = inner.setup.cluster.read();
            let of_class = state
                .node_claims
                .values()
                .filter(|claim| is_ours(claim) && claim.spec.node_class_ref.name == *key.name);
            let names: Vec<String> = of_class.filter_map(|claim| claim.metadata.name.clone()).collect();
            (names, state.node_classes.get(key).cloned())
        };
        if !names.is_empty() {
            if let Some(class) = class {
                let listed = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = names.len().saturating_sub(5);
                let more = if more > 0 { format!(" and {more} other(s)") } else { String::new() };
                let message = format!("Waiting on NodeClaim termination for {listed}{more}");
                let event = &WAITING_ON_NODE_CLAIM_TERMINATION;
                inner.setup.events.publish(event, About::object(&*class), message, &[&key.name]);
            }
            return Ok(WAIT_FOR_CLAIMS);
        }
        self.profiles.delete_all(inner, object).await.map_err(failed)?;
        delete_templates(inner, &key.name).await.map_err(failed)?;
        self.verdicts.forget(&key.name);
        self.amis.forget(&key.name);
        self.subnets.forget(&key.name);
        self.security_groups.forget(&key.name);
        inner.setup.metrics.remove(&metrics::USERDATA_BYTES, &[&key.name]);
        let left: Vec<&String> = finalizers.iter().filter(|name| *name != AWS_TERMINATION).collect();
        let version = &object.metadata.resource_version;
        let change = json!({"metadata": {"finalizers": left, "resourceVersion": version}});
        match inner.setup.api.patch::<NodeClass>(key, &change).await {
            Err(error) if error.is_not_found() => {}
            patched => drop(patched?),
        }
        Ok(Again::No)
    }
}

/// Deletes the launch templates of a class.
async fn delete_templates(inner: &Inner, class: &str) -> Result<(), crate::port::Error> {
    let filters = vec![
        Filter::tag(tags::CLUSTER_NAME, &inner.setup.settings.cluster_name),
        Filter::tag(tags::NODE_CLASS, class),
    ];
    let ec2 = &inner.setup.services.ec2;
    let query = LaunchTemplateQuery::Filters(filters);
    let found = inner.counted("ec2:DescribeLaunchTemplates", ec2.launch_templates(&query)).await?;
    for template in found.into_iter().filter(|template| template.name.starts_with(PREFIX)) {
        inner.templates.forget([template.name.as_str()]);
        let named = LaunchTemplateRef::Name(template.name);
        match inner.counted("ec2:DeleteLaunchTemplate", ec2.delete_launch_template(&named)).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The status as a merge patch: what is not there any more is taken away.
fn written(object: &EC2NodeClass) -> Value {
    let mut all = serde_json::to_value(&object.status).unwrap_or_default();
    for field in ["subnets", "securityGroups", "capacityReservations", "amis", "instanceProfile"] {
        if all.get(field).is_none() {
            all[field] = Value::Null;
        }
    }
    all
}

impl Reconcile for NodeClasses {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.look_after(key).boxed()
    }
}

//! Asks every minute which instances are broken, or have something planned.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::names::events::aws as events;
use api::names::values;
use futures::future::{join_all, try_join_all};
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::Outcome;

use super::disrupt::{Manner, Step, Targets, carry_out, is_to_end, targets};
use super::failed;
use crate::interruption::{Category, FILTERS, Problem, problems};
use crate::provider::Inner;

const MINUTE: Again = Again::After(Duration::from_mins(1));

/// What is wrong with which instance.
type Wrong = BTreeSet<(String, Category)>;

/// What is to be done about instances, and what is wrong with those of ours. What was wrong `before` is not counted
/// again.
fn decide(problems: &[Problem], targets: &Targets, before: &Wrong) -> (Vec<Vec<Step>>, Wrong) {
    let mut wrong = Wrong::new();
    let mut all = Vec::new();
    for problem in problems {
        let Some(targets) = targets.get(&problem.instance) else { continue };
        let mut steps = Vec::new();
        for category in &problem.categories {
            let each = (problem.instance.clone(), *category);
            if !before.contains(&each) {
                steps.push(Step::Broken(*category));
            }
            wrong.insert(each);
        }
        let is_forceful = problem.categories.iter().any(|category| category.is_forceful());
        let (manner, reason, message) = if is_forceful {
            (Manner::AtOnce, values::UNHEALTHY, "EC2 finds that the instance or its host is broken")
        } else {
            (
                Manner::Drained,
                values::AWS_SCHEDULED_CHANGE,
                "EC2 has planned something that ends the instance",
            )
        };
        for target in targets {
            steps.push(Step::Tell(target.clone(), &events::INSTANCE_UNHEALTHY, message));
            if is_to_end(&target.claim, manner) {
                steps.push(Step::End(target.clone(), manner, reason));
            }
        }
        all.push(steps);
    }
    (all, wrong)
}

/// Looks for broken instances.
#[derive(Clone, Debug, Default)]
pub(super) struct InstanceStatuses(Arc<Mutex<Wrong>>);

impl InstanceStatuses {
    pub(super) async fn poll(&self, inner: &Inner) -> Outcome {
        let ec2 = &inner.setup.services.ec2;
        let asked = FILTERS.iter().map(|filter| {
            let filters = std::slice::from_ref(filter);
            inner.counted("ec2:DescribeInstanceStatus", ec2.instance_statuses(filters))
        });
        let statuses = match try_join_all(asked).await {
            Err(error) if error.is_unauthorized() => {
                tracing::error!(
                    error = %error,
                    "the status of instances is not watched until the next start, ec2:DescribeInstanceStatus is not allowed"
                );
                return Ok(Again::No);
            }
            answers => answers.map_err(failed)?.concat(),
        };
        let found = problems(&statuses, inner.setup.clock.now());
        let instances: BTreeSet<&str> = found.iter().map(|problem| problem.instance.as_str()).collect();
        let targets = targets(&inner.setup.cluster.read(), &instances);
        let (steps, wrong) = {
            let mut before = self.0.lock();
            let (steps, wrong) = decide(&found, &targets, &before);
            before.clone_from(&wrong);
            (steps, wrong)
        };
        if !wrong.is_empty() {
            tracing::debug!(count = wrong.len(), "found unhealthy instances");
        }
        for done in join_all(steps.into_iter().map(|steps| carry_out(inner, steps))).await {
            done?;
        }
        Ok(MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use api::nodeclaim::NodeClaim;
    use serde_json::{Value, json};

    use super::super::disrupt::Target;
    use super::*;

    fn targets(metadata: &Value) -> Targets {
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c", "uid": "u"},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "a"}},
        });
        claim["metadata"].as_object_mut().unwrap().extend(metadata.as_object().cloned().unwrap());
        let claim: NodeClaim = serde_json::from_value(claim).unwrap();
        [("i-1".to_owned(), vec![Target { claim: Arc::new(claim), node: None }])].into()
    }

    fn problem(instance: &str, categories: &[Category]) -> Problem {
        Problem { instance: instance.to_owned(), categories: categories.iter().copied().collect() }
    }

    fn ends(steps: &[Vec<Step>]) -> Vec<(Manner, &'static str)> {
        let end = |step: &Step| match step {
            Step::End(_, manner, reason) => Some((*manner, *reason)),
            _ => None,
        };
        steps.iter().flatten().filter_map(end).collect()
    }

    #[test]
    fn a_broken_instance_goes_at_once_and_a_planned_end_drains() {
        let all = targets(&json!({}));
        for (categories, expected) in [
            (&[Category::InstanceStatus][..], (Manner::AtOnce, "unhealthy")),
            (&[Category::SystemStatus, Category::EventStatus], (Manner::AtOnce, "unhealthy")),
            (&[Category::EventStatus], (Manner::Drained, "scheduled_change")),
        ] {
            let (steps, wrong) = decide(&[problem("i-1", categories)], &all, &Wrong::new());
            assert_eq!(ends(&steps), [expected]);
            assert_eq!(wrong.len(), categories.len());
        }
        let (steps, wrong) = decide(&[problem("i-2", &[Category::SystemStatus])], &all, &Wrong::new());
        assert!(steps.is_empty() && wrong.is_empty(), "instances of others are none of our business");
    }

    #[test]
    fn what_is_wrong_is_counted_once_until_it_recovers() {
        let all = targets(&json!({}));
        let counted = |problems: &[Problem], before: &Wrong| {
            let (steps, wrong) = decide(problems, &all, before);
            let is_count = |step: &&Step| matches!(step, Step::Broken(_));
            (steps.iter().flatten().filter(is_count).count(), wrong)
        };
        let broken = [problem("i-1", &[Category::InstanceStatus])];
        let (first, wrong) = counted(&broken, &Wrong::new());
        let (second, wrong) = counted(&broken, &wrong);
        let (_, recovered) = counted(&[], &wrong);
        assert_eq!((first, second, recovered.len()), (1, 0, 0));
        assert_eq!(counted(&broken, &recovered).0, 1);
    }

    #[test]
    fn a_claim_that_drains_is_not_waited_for_once_its_instance_is_broken() {
        let broken = [problem("i-1", &[Category::InstanceStatus])];
        let draining = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let (steps, _) = decide(&broken, &targets(&draining), &Wrong::new());
        assert_eq!(ends(&steps).len(), 1);
        let mut decided = draining;
        decided["annotations"] =
            json!({"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T00:10:00Z"});
        let (steps, _) = decide(&broken, &targets(&decided), &Wrong::new());
        assert!(ends(&steps).is_empty(), "its time is set already");
    }
}

//! Reads the queue of interruptions: instances that AWS takes away, stops or has plans for.
//!
//! ```text
//!   receive ten ──► parse ──► decide: tell, mark, end ──► act ──► delete what was handled, at once
//!                     │ cannot be read: delete                │ failed: keep it, it comes again
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::names::events::{Event, aws as events};
use api::names::labels::{self, aws};
use api::names::metrics::aws as metrics;
use api::names::values::capacity_type;
use cloud::unavailable::Scope;
use cluster::state::Meta as _;
use futures::future::join_all;
use parking_lot::Mutex;
use runtime::Again;
use runtime::controller::Outcome;

use super::disrupt::{Manner, Step, Targets, carry_out, is_to_end, targets};
use super::{failed, label};
use crate::interruption::{Kind, Notice, parse};
use crate::port::Message;
use crate::provider::Inner;

/// What users are told about an instance.
fn news(kind: Kind) -> Option<(&'static Event, &'static str)> {
    Some(match kind {
        Kind::SpotInterrupted => {
            (&events::SPOT_INTERRUPTED, "EC2 takes the spot instance back within two minutes")
        }
        Kind::RebalanceRecommendation => (
            &events::SPOT_REBALANCE_RECOMMENDATION,
            "EC2 says that the spot instance is more likely than usual to be taken back",
        ),
        Kind::InstanceStopped => (&events::INSTANCE_STOPPING, "The instance is being stopped"),
        Kind::InstanceTerminated => (&events::INSTANCE_TERMINATING, "The instance is being terminated"),
        Kind::CapacityReservationInterrupted => (
            &events::CAPACITY_RESERVATION_INTERRUPTED,
            "The owner of the capacity reservation takes the instance back",
        ),
        Kind::ScheduledChange => (&events::INSTANCE_UNHEALTHY, "AWS has planned a change of the instance"),
        Kind::NoOp => return None,
    })
}

/// What a message asks for. `ended` holds the claims that messages beside it end already.
fn decide(notice: &Notice, targets: &Targets, ended: &mut BTreeSet<String>) -> Vec<Step> {
    let mut steps = Vec::new();
    let Some((event, message)) = news(notice.kind) else { return steps };
    for target in notice.instances.iter().filter_map(|id| targets.get(id)).flatten() {
        let claim = &*target.claim;
        steps.push(Step::Tell(target.clone(), event, message));
        if notice.kind == Kind::SpotInterrupted {
            let (name, zone) = (label(claim, labels::INSTANCE_TYPE), label(claim, labels::ZONE));
            if !name.is_empty() && !zone.is_empty() {
                let scope = Scope::offering(name, zone, capacity_type::SPOT);
                steps.push(Step::Unavailable(scope, notice.kind.as_str()));
            }
        }
        let reservation = label(claim, aws::CAPACITY_RESERVATION_ID);
        if notice.kind == Kind::CapacityReservationInterrupted && !reservation.is_empty() {
            steps.push(Step::ReservationTaken(reservation.to_owned()));
        }
        if notice.kind.ends_node()
            && is_to_end(claim, Manner::Drained)
            && ended.insert(claim.metadata.uid().to_owned())
        {
            steps.push(Step::End(target.clone(), Manner::Drained, notice.kind.as_str()));
        }
    }
    steps
}

/// Reads the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Interruptions {
    /// Where the queue is, once that is known.
    url: Arc<Mutex<Option<String>>>,
}

impl Interruptions {
    /// Waits for messages and does what they ask for. One that cannot be handled stops no other.
    pub(super) async fn poll(&self, inner: &Inner) -> Outcome {
        let Some(name) = &inner.setup.settings.interruption_queue else { return Ok(Again::No) };
        let sqs = &inner.setup.services.sqs;
        let known = self.url.lock().clone();
        let url = if let Some(url) = known {
            url
        } else {
            let url = inner.counted("sqs:GetQueueUrl", sqs.queue_url(name)).await.map_err(failed)?;
            self.url.lock().insert(url).clone()
        };
        let messages = match inner.counted("sqs:ReceiveMessage", sqs.receive(&url)).await {
            Ok(messages) => messages,
            Err(error) => {
                // One that was created again may be elsewhere.
                *self.url.lock() = None;
                return Err(failed(error));
            }
        };
        handle(inner, &url, messages).await;
        // The queue itself waits for messages.
        Ok(Again::After(Duration::ZERO))
    }
}

async fn handle(inner: &Inner, url: &str, messages: Vec<Message>) {
    let notices: Vec<_> = messages.into_iter().map(|message| (parse(&message.body), message)).collect();
    let instances: BTreeSet<&str> = notices
        .iter()
        .filter_map(|(notice, _)| notice.as_ref().ok())
        .flat_map(|notice| notice.instances.iter().map(String::as_str))
        .collect();
    let targets = targets(&inner.setup.cluster.read(), &instances);
    let mut ended = BTreeSet::new();
    let handled = notices.iter().map(|(notice, message)| {
        let steps = match notice {
            Ok(notice) => {
                let kind = [notice.kind.as_str()];
                inner.setup.metrics.add(&metrics::INTERRUPTION_RECEIVED_MESSAGES, &kind, 1.0);
                decide(notice, &targets, &mut ended)
            }
            Err(error) => {
                tracing::error!(error = %error, "failed to parse interruption message");
                Vec::new()
            }
        };
        let time = notice.as_ref().ok().and_then(|notice| notice.time);
        async move {
            if let Err(error) = carry_out(inner, steps).await {
                tracing::error!(error = %error, "failed to handle interruption message, it comes again");
                return None;
            }
            if let Some(time) = time {
                let waited = inner.setup.clock.now().duration_since(time).as_secs_f64().max(0.0);
                inner.setup.metrics.observe(&metrics::INTERRUPTION_MESSAGE_QUEUE_DURATION, &[], waited);
            }
            Some(message.receipt.clone())
        }
    });
    let handled = join_all(handled.collect::<Vec<_>>()).await;
    forget(inner, url, &handled.into_iter().flatten().collect::<Vec<_>>()).await;
}

/// Deletes messages, all with one request. Those that stay come again, and there is nothing left to do for them then.
async fn forget(inner: &Inner, url: &str, receipts: &[String]) {
    if receipts.is_empty() {
        return;
    }
    let sqs = &inner.setup.services.sqs;
    match inner.counted("sqs:DeleteMessage", sqs.delete(url, receipts)).await {
        Ok(left) => {
            for (_, error) in &left {
                tracing::error!(error = %error, "failed to delete interruption message");
            }
            let deleted = u32::try_from(receipts.len().saturating_sub(left.len())).unwrap_or(u32::MAX);
            let metric = &metrics::INTERRUPTION_DELETED_MESSAGES;
            inner.setup.metrics.add(metric, &[], f64::from(deleted));
        }
        Err(error) => tracing::error!(error = %error, "failed to delete interruption messages"),
    }
}

#[cfg(test)]
mod tests {
    use api::nodeclaim::NodeClaim;
    use serde_json::{Value, json};

    use super::super::disrupt::Target;
    use super::*;

    fn targets(labels: &Value, deleting: bool) -> Targets {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": "c", "uid": "u", "labels": labels,
                "deletionTimestamp": deleting.then_some("2026-01-01T00:00:00Z"),
            },
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "a"}},
        }))
        .unwrap();
        [("i-1".to_owned(), vec![Target { claim: Arc::new(claim), node: None }])].into()
    }

    fn steps(kind: Kind, targets: &Targets) -> Vec<String> {
        let notice = Notice { kind, instances: vec!["i-0".to_owned(), "i-1".to_owned()], time: None };
        let mut ended = BTreeSet::new();
        let all = decide(&notice, targets, &mut ended);
        all.iter()
            .map(|step| match step {
                Step::Tell(_, event, _) => format!("tell {}", event.reason),
                Step::End(_, manner, reason) => format!("end {manner:?} {reason}"),
                Step::Unavailable(scope, _) => {
                    format!("mark {}/{}/{}", scope.instance_type, scope.zone, scope.capacity_type)
                }
                Step::ReservationTaken(id) => format!("taken {id}"),
                Step::Broken(category) => format!("broken {category:?}"),
            })
            .collect()
    }

    #[test]
    fn each_kind_asks_for_something_else() {
        let all = targets(
            &json!({
                labels::INSTANCE_TYPE: "m5.large", labels::ZONE: "a", aws::CAPACITY_RESERVATION_ID: "cr-1",
            }),
            false,
        );
        for (kind, expected) in [
            (
                Kind::SpotInterrupted,
                &["tell SpotInterrupted", "mark m5.large/a/spot", "end Drained spot_interrupted"][..],
            ),
            (Kind::RebalanceRecommendation, &["tell SpotRebalanceRecommendation"]),
            (Kind::InstanceStopped, &["tell InstanceStopping", "end Drained instance_stopped"]),
            (Kind::InstanceTerminated, &["tell InstanceTerminating", "end Drained instance_terminated"]),
            (
                Kind::CapacityReservationInterrupted,
                &[
                    "tell CapacityReservationInstanceInterrupted",
                    "taken cr-1",
                    "end Drained capacity_reservation_interrupted",
                ],
            ),
            (Kind::ScheduledChange, &["tell InstanceUnhealthy", "end Drained scheduled_change"]),
            (Kind::NoOp, &[]),
        ] {
            assert_eq!(steps(kind, &all), expected);
        }
    }

    #[test]
    fn a_claim_that_goes_already_is_only_told_about() {
        let all = targets(&json!({}), true);
        assert_eq!(steps(Kind::SpotInterrupted, &all), ["tell SpotInterrupted"]);
        assert_eq!(steps(Kind::CapacityReservationInterrupted, &all).len(), 1);
    }

    #[test]
    fn two_messages_about_one_instance_end_it_once() {
        let all = targets(&json!({}), false);
        let mut ended = BTreeSet::new();
        let notice = |kind| Notice { kind, instances: vec!["i-1".to_owned()], time: None };
        assert_eq!(decide(&notice(Kind::SpotInterrupted), &all, &mut ended).len(), 2);
        assert_eq!(decide(&notice(Kind::InstanceTerminated), &all, &mut ended).len(), 1);
    }
}

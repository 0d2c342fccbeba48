//! The queue of interruptions: whether it is there, whether we may read it, whether anybody does, and whether anything
//! can come.

use cloud::doctor::Check;
use jiff::SignedDuration;
use units::human;

use super::permissions::{Outcomes, note};
use super::{patiently, said};
use crate::port::{Error, QueueAttributes, Services};

/// What nobody ever received, so that nothing is deleted.
const NO_RECEIPT: &str = "karpenter-doctor";
/// A warning is worth nothing after this time, so that a queue need not keep it longer.
const LONGEST_RETENTION: u64 = 3_600;
/// EventBridge may not use this key.
const AWS_KEY: &str = "alias/aws/sqs";

/// What was found out about a queue.
pub(super) struct Queue {
    name: String,
    url: Result<String, Error>,
    attributes: Option<Result<QueueAttributes, Error>>,
}

/// Asks for everything about a queue, and notes what we may do with it.
pub(super) async fn look(services: &Services, name: &str, outcomes: &mut Outcomes) -> Queue {
    let sqs = &services.sqs;
    let url = patiently("sqs:GetQueueUrl", sqs.queue_url(name)).await;
    note(outcomes, "sqs:GetQueueUrl", url.as_ref().map(|_| ()));
    let Ok(found) = &url else {
        return Queue { name: name.to_owned(), url, attributes: None };
    };
    let receipts = [NO_RECEIPT.to_owned()];
    let (peeked, deleted, attributes) = futures::join!(
        patiently("sqs:ReceiveMessage", sqs.peek(found)),
        patiently("sqs:DeleteMessage", sqs.delete(found, &receipts)),
        patiently("sqs:GetQueueAttributes", sqs.attributes(found)),
    );
    note(outcomes, "sqs:ReceiveMessage", peeked.as_ref().copied());
    // That there is no such message is how we know that we may delete.
    note(outcomes, "sqs:DeleteMessage", deleted.as_ref().map(|_| ()));
    Queue { name: name.to_owned(), url, attributes: Some(attributes) }
}

/// What is said about the queue.
pub(super) fn report(queue: Option<&Queue>) -> Vec<Check> {
    let Some(Queue { name, url, attributes }) = queue else {
        let message = "none is set, so that spot instances end unannounced";
        let advice = "set --interruption-queue, see docs/aws.md";
        return vec![Check::warning("interruption queue", message, advice)];
    };
    let about = format!("interruption queue {name}");
    if let Err(error) = url {
        let advice = "create it (deploy/aws has it in both forms), or name another one with --interruption-queue; it is a name, not a URL";
        let message = if error.is_not_found() {
            "there is no such queue in this region".to_owned()
        } else {
            said(error)
        };
        return vec![Check::bad(about, message, advice)];
    }
    match attributes {
        Some(Ok(attributes)) => of_attributes(&about, attributes),
        Some(Err(error)) if error.is_denied() => {
            let message = "it is there; what it is like may not be asked for";
            vec![Check::warning(
                about,
                message,
                "the policy doctor allows it; it is not needed for anything else",
            )]
        }
        Some(Err(error)) => vec![Check::warning(about, error.to_string(), "")],
        None => Vec::new(),
    }
}

fn of_attributes(about: &str, attributes: &QueueAttributes) -> Vec<Check> {
    let QueueAttributes { waiting, in_flight, retention_seconds, policy, kms_key } = attributes;
    let mut checks = Vec::new();
    if !policy.as_deref().unwrap_or_default().contains("events.amazonaws.com") {
        let message = "its policy does not let EventBridge put messages into it";
        let advice = "allow sqs:SendMessage to events.amazonaws.com, as deploy/aws does";
        checks.push(Check::bad(about, message, advice));
    }
    if kms_key.as_deref() == Some(AWS_KEY) {
        let message = format!("it is encrypted with {AWS_KEY}, which EventBridge may not use");
        checks.push(Check::bad(about, message, "use SQS-managed encryption or a key of your own"));
    }
    if *waiting > 0 && *in_flight == 0 {
        let message = format!("{waiting} messages wait and nobody reads them");
        let advice = "is the controller running, with this queue in --interruption-queue?";
        checks.push(Check::warning(about, message, advice));
    }
    if *retention_seconds > LONGEST_RETENTION {
        let kept = SignedDuration::from_secs(i64::try_from(*retention_seconds).unwrap_or(i64::MAX));
        let message =
            format!("messages are kept for {}, long after they mean anything", human::duration(kept));
        checks.push(Check::warning(about, message, "5m is enough"));
    }
    if checks.is_empty() {
        let message = format!(
            "{waiting} messages wait, {in_flight} are being handled; whether EventBridge has rules for it cannot be seen from here"
        );
        checks.push(Check::good(about, message));
    }
    checks
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;

    use super::*;

    fn queue(attributes: QueueAttributes) -> Queue {
        Queue { name: "q".to_owned(), url: Ok("u".to_owned()), attributes: Some(Ok(attributes)) }
    }

    fn usual() -> QueueAttributes {
        QueueAttributes {
            retention_seconds: 300,
            policy: Some(r#"{"Principal":{"Service":["events.amazonaws.com"]}}"#.to_owned()),
            ..QueueAttributes::default()
        }
    }

    #[test]
    fn a_queue_that_nothing_can_come_through_is_said() {
        let levels = |attributes| -> Vec<Level> {
            report(Some(&queue(attributes))).iter().map(|check| check.level).collect()
        };
        assert_eq!(levels(usual()), [Level::Good]);
        assert_eq!(levels(QueueAttributes { waiting: 3, in_flight: 2, ..usual() }), [Level::Good]);
        assert_eq!(levels(QueueAttributes { waiting: 3, ..usual() }), [Level::Warning]);
        assert_eq!(levels(QueueAttributes { policy: None, ..usual() }), [Level::Bad]);
        let encrypted = QueueAttributes { kms_key: Some(AWS_KEY.to_owned()), ..usual() };
        assert_eq!(levels(encrypted), [Level::Bad]);
        assert_eq!(levels(QueueAttributes { retention_seconds: 345_600, ..usual() }), [Level::Warning]);
    }

    #[test]
    fn a_queue_that_is_missing_is_bad_and_none_is_worth_a_word() {
        assert_eq!(report(None)[0].level, Level::Warning);
        let missing = Error::new("sqs:GetQueueUrl", "QueueDoesNotExist", "");
        let queue = Queue { name: "q".to_owned(), url: Err(missing), attributes: None };
        let checks = report(Some(&queue));
        assert_eq!((checks.len(), checks[0].level), (1, Level::Bad));
        assert!(checks[0].advice.contains("--interruption-queue"));
    }
}

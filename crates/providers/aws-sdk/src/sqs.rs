//! SQS: the queue of interruptions.

use aws::port::{Error, Message, QueueAttributes, Sqs};
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, DeleteMessageBatchRequestEntry, MessageSystemAttributeName, QueueAttributeName,
};
use futures::FutureExt as _;

use crate::Answer;
use crate::error::{error, incomplete, unusable};

const GET_URL: &str = "sqs:GetQueueUrl";
const RECEIVE: &str = "sqs:ReceiveMessage";
/// What must be allowed to delete messages, one or many.
const DELETE: &str = "sqs:DeleteMessage";
const ATTRIBUTES: &str = "sqs:GetQueueAttributes";

/// As many as can be had at once.
const MESSAGES: i32 = 10;
/// For how many seconds nobody else sees what was received, and is waited for messages.
const SECONDS: i32 = 20;

/// SQS.
pub(crate) struct Client(pub(crate) aws_sdk_sqs::Client);

impl Sqs for Client {
    fn queue_url<'a>(&'a self, name: &'a str) -> Answer<'a, String> {
        async move {
            let answer = self.0.get_queue_url().queue_name(name).send().await;
            let answer = answer.map_err(|cause| error(GET_URL, &cause))?;
            answer.queue_url.ok_or_else(|| incomplete(GET_URL, "URL"))
        }
        .boxed()
    }

    fn receive<'a>(&'a self, queue_url: &'a str) -> Answer<'a, Vec<Message>> {
        let request = self
            .0
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(MESSAGES)
            .visibility_timeout(SECONDS)
            .wait_time_seconds(SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp)
            .message_attribute_names("All");
        async move {
            let answer = request.send().await.map_err(|cause| error(RECEIVE, &cause))?;
            Ok(answer.messages.unwrap_or_default().into_iter().filter_map(message).collect())
        }
        .boxed()
    }

    fn peek<'a>(&'a self, queue_url: &'a str) -> Answer<'a, ()> {
        let request = self.0.receive_message().queue_url(queue_url).max_number_of_messages(1);
        // Nobody waits for it, and everybody else sees it all the time.
        let request = request.visibility_timeout(0).wait_time_seconds(0);
        async move { request.send().await.map(drop).map_err(|cause| error(RECEIVE, &cause)) }.boxed()
    }

    fn delete<'a>(&'a self, queue_url: &'a str, receipts: &'a [String]) -> Answer<'a, Vec<(String, Error)>> {
        async move {
            let entries = receipts.iter().enumerate().map(|(number, receipt)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
                entry.receipt_handle(receipt).build().map_err(|cause| unusable(DELETE, &cause))
            });
            let entries = entries.collect::<Result<Vec<_>, _>>()?;
            let request = self.0.delete_message_batch().queue_url(queue_url).set_entries(Some(entries));
            let answer = request.send().await.map_err(|cause| error(DELETE, &cause))?;
            Ok(answer.failed.into_iter().filter_map(|failed| refused(failed, receipts)).collect())
        }
        .boxed()
    }

    fn attributes<'a>(&'a self, queue_url: &'a str) -> Answer<'a, QueueAttributes> {
        async move {
            let request = self.0.get_queue_attributes().queue_url(queue_url);
            let answer = request.attribute_names(QueueAttributeName::All).send().await;
            Ok(attributes(&answer.map_err(|cause| error(ATTRIBUTES, &cause))?))
        }
        .boxed()
    }
}

/// A message that could not be deleted: the number stands for its receipt.
fn refused(failed: BatchResultErrorEntry, receipts: &[String]) -> Option<(String, Error)> {
    let receipt = receipts.get(failed.id.parse::<usize>().ok()?)?;
    let error = Error::new(DELETE, &failed.code, &failed.message.unwrap_or_default());
    Some((receipt.clone(), if failed.sender_fault { error } else { error.by_server() }))
}

fn attributes(answer: &GetQueueAttributesOutput) -> QueueAttributes {
    let text = |name: &QueueAttributeName| answer.attributes.as_ref().and_then(|all| all.get(name)).cloned();
    let number =
        |name: &QueueAttributeName| text(name).and_then(|text| text.parse().ok()).unwrap_or_default();
    QueueAttributes {
        waiting: number(&QueueAttributeName::ApproximateNumberOfMessages),
        in_flight: number(&QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
        retention_seconds: number(&QueueAttributeName::MessageRetentionPeriod),
        policy: text(&QueueAttributeName::Policy).filter(|text| !text.is_empty()),
        kms_key: text(&QueueAttributeName::KmsMasterKeyId).filter(|text| !text.is_empty()),
    }
}

/// A message; without a receipt it could never be deleted.
fn message(received: aws_sdk_sqs::types::Message) -> Option<Message> {
    Some(Message { body: received.body.unwrap_or_default(), receipt: received.receipt_handle? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_stays_is_known_by_its_receipt() {
        let failed = |id: &str, sender: bool| {
            let entry = BatchResultErrorEntry::builder().id(id).code("InternalError").sender_fault(sender);
            entry.build().unwrap()
        };
        let receipts = ["a".to_owned(), "b".to_owned()];
        let (receipt, error) = refused(failed("1", false), &receipts).unwrap();
        assert_eq!((receipt.as_str(), error.code.as_str()), ("b", "InternalError"));
        assert!(error.is_server_fault());
        assert!(!refused(failed("0", true), &receipts).unwrap().1.is_server_fault());
        assert_eq!(refused(failed("7", true), &receipts), None);
    }

    #[test]
    fn attributes_that_are_missing_are_nothing() {
        let answer = GetQueueAttributesOutput::builder()
            .attributes(QueueAttributeName::ApproximateNumberOfMessages, "3")
            .attributes(QueueAttributeName::MessageRetentionPeriod, "300")
            .attributes(QueueAttributeName::KmsMasterKeyId, "")
            .build();
        let expected = QueueAttributes { waiting: 3, retention_seconds: 300, ..QueueAttributes::default() };
        assert_eq!(attributes(&answer), expected);
    }
}

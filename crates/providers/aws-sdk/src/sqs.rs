//! SQS: the queue of interruptions.

use aws::port::{Message, Sqs};
use aws_sdk_sqs::types::MessageSystemAttributeName;
use futures::FutureExt as _;

use crate::Answer;
use crate::error::{error, incomplete};

const GET_URL: &str = "sqs:GetQueueUrl";
const RECEIVE: &str = "sqs:ReceiveMessage";
const DELETE: &str = "sqs:DeleteMessage";

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

    fn delete<'a>(&'a self, queue_url: &'a str, receipt: &'a str) -> Answer<'a, ()> {
        async move {
            let request = self.0.delete_message().queue_url(queue_url).receipt_handle(receipt);
            request.send().await.map_err(|cause| error(DELETE, &cause))?;
            Ok(())
        }
        .boxed()
    }
}

/// A message; without a receipt it could never be deleted.
fn message(received: aws_sdk_sqs::types::Message) -> Option<Message> {
    Some(Message { body: received.body.unwrap_or_default(), receipt: received.receipt_handle? })
}

//! Errors of the SDK as those of the port: what the service called it, or why no answer came.

use std::error::Error as StdError;

use aws::port::Error;
use aws::port::error::Fault;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::operation::RequestId as _;

/// An error of the SDK, in our words.
pub(crate) fn error<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let said = error.as_service_error().map(ProvideErrorMetadata::meta);
    // It comes with the error, or, where nothing else could be read, in a header.
    let request_id = said.and_then(|said| said.request_id()).or_else(|| error.request_id());
    Error {
        operation,
        code: error.code().unwrap_or_default().to_owned(),
        message: error.message().map_or_else(|| causes(error), str::to_owned),
        status,
        request_id: request_id.map(str::to_owned),
        fault: fault(status),
    }
}

/// Whose fault an answer with this status is.
fn fault(status: Option<u16>) -> Fault {
    match status {
        Some(400..500) => Fault::Client,
        Some(500..) => Fault::Server,
        // An answer that cannot be read says nothing about what became of the request.
        _ => Fault::Unknown,
    }
}

/// An answer without what there must be in it.
pub(crate) fn incomplete(operation: &'static str, missing: &str) -> Error {
    let message = format!("the answer has no {missing}");
    Error { operation, message, ..Error::default() }
}

/// A request that cannot even be made.
pub(crate) fn unusable(operation: &'static str, error: &dyn StdError) -> Error {
    Error { operation, message: causes(error), fault: Fault::Client, ..Error::default() }
}

/// What went wrong and why, in one line.
pub(crate) fn causes(error: &dyn StdError) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Many errors repeat what is below them.
        if !text.is_empty() && !all.iter().any(|known| known.contains(&text)) {
            all.push(text);
        }
        next = error.source();
    }
    // Some have lists in several lines.
    all.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::error::{ConnectorError, ErrorMetadata};
    use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsError;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn response(status: u16) -> HttpResponse {
        HttpResponse::new(status.try_into().unwrap(), SdkBody::empty())
    }

    fn of_service(status: u16, metadata: ErrorMetadata) -> Error {
        let said = DescribeSubnetsError::generic(metadata);
        error("ec2:DescribeSubnets", &SdkError::service_error(said, response(status)))
    }

    #[test]
    fn code_message_and_request_are_those_of_the_service() {
        let metadata = ErrorMetadata::builder()
            .code("InvalidSubnetID.NotFound")
            .message("The subnet ID 'subnet-1' does not exist")
            .custom("aws_request_id", "abc")
            .build();
        let error = of_service(400, metadata);
        assert_eq!(
            error.to_string(),
            "ec2:DescribeSubnets, InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist (request abc)"
        );
        assert_eq!((error.status, error.fault), (Some(400), Fault::Client));
    }

    #[test]
    fn a_request_may_be_named_in_a_header_only() {
        let mut response = response(503);
        response.headers_mut().insert("x-amzn-requestid", "in-header");
        let said = DescribeSubnetsError::generic(ErrorMetadata::builder().code("Unavailable").build());
        let error = error("ec2:DescribeSubnets", &SdkError::service_error(said, response));
        assert_eq!(error.request_id.as_deref(), Some("in-header"));
        assert!(error.is_server_fault());
    }

    #[test]
    fn who_does_not_answer_says_nothing_about_the_request() {
        let lost: SdkError<DescribeSubnetsError, HttpResponse> =
            SdkError::dispatch_failure(ConnectorError::io("connection refused".into()));
        let error = error("ec2:DescribeSubnets", &lost);
        assert_eq!((error.code.as_str(), error.status, error.fault), ("", None, Fault::Unknown));
        assert_eq!(error.to_string(), "ec2:DescribeSubnets, dispatch failure: io error: connection refused");
    }

    #[test]
    fn what_went_wrong_is_one_line() {
        let inner: Box<dyn StdError + Send + Sync> = "tried:\n  one\n  two".into();
        assert_eq!(causes(&*inner), "tried: one two");
    }

    #[test]
    fn an_answer_without_a_code_still_has_a_fault() {
        let error = of_service(500, ErrorMetadata::builder().build());
        assert!(error.is_server_fault() && error.code.is_empty());
    }
}

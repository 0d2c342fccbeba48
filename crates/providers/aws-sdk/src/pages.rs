//! Answers that come in pages.

use std::error::Error as StdError;

use aws::port::Error;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_async::future::pagination_stream::PaginationStream;

use crate::error::error;

/// What is on all pages. Each is converted as soon as it comes, so that no more than one is kept in full.
pub(crate) async fn all<P, E, T, I>(
    operation: &'static str,
    mut pages: PaginationStream<Result<P, SdkError<E, HttpResponse>>>,
    convert: impl Fn(P) -> I,
) -> Result<Vec<T>, Error>
where
    E: ProvideErrorMetadata + StdError + 'static,
    I: IntoIterator<Item = T>,
{
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        found.extend(convert(page.map_err(|cause| error(operation, &cause))?));
    }
    Ok(found)
}

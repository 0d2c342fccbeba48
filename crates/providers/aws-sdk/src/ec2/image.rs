//! Images.

use aws::port::{Filter, Image, ImageQuery};
use aws_sdk_ec2::types;

use crate::time::written;

/// What images must be like; those that cannot be used are never asked for.
pub(super) fn filters(query: &ImageQuery) -> Vec<Filter> {
    let usable = Filter::new("state", ["available"]);
    query.filters.iter().cloned().chain([usable]).collect()
}

pub(super) fn image(described: types::Image) -> Option<Image> {
    Some(Image {
        id: described.image_id?,
        name: described.name.unwrap_or_default(),
        architecture: described.architecture.map_or_else(String::new, |all| all.as_str().to_owned()),
        created: written(described.creation_date.as_deref()),
        deprecated_from: written(described.deprecation_time.as_deref()),
    })
}

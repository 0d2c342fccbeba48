//! What many requests have: filters and tags.

use aws::port::{Filter, Tags};
use aws_sdk_ec2::types::{self, ResourceType, Tag, TagSpecification};

pub(super) fn filters(all: &[Filter]) -> Vec<types::Filter> {
    let each = |filter: &Filter| {
        types::Filter::builder().name(&filter.name).set_values(Some(filter.values.clone())).build()
    };
    all.iter().map(each).collect()
}

pub(super) fn tags(all: &Tags) -> Vec<Tag> {
    all.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

/// The same tags for several kinds of things; EC2 refuses an empty list.
pub(super) fn tag_specifications(kinds: &[&str], all: &Tags) -> Option<Vec<TagSpecification>> {
    if all.is_empty() {
        return None;
    }
    let each = |kind: &&str| {
        let kind = ResourceType::from(*kind);
        TagSpecification::builder().resource_type(kind).set_tags(Some(tags(all))).build()
    };
    Some(kinds.iter().map(each).collect())
}

/// Tags as they came.
pub(super) fn read_tags(all: Option<Vec<Tag>>) -> Tags {
    let pair = |tag: Tag| Some((tag.key?, tag.value.unwrap_or_default()));
    all.unwrap_or_default().into_iter().filter_map(pair).collect()
}

/// A number that is never negative.
pub(super) fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

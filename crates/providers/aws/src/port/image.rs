//! Images.

use jiff::Timestamp;

use super::Filter;

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its architecture, as EC2 names it.
    pub architecture: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// From when on its owner advises against it.
    pub deprecated_from: Option<Timestamp>,
}

/// Which images are asked for. Those that cannot be used are never among the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageQuery {
    /// What they must be like.
    pub filters: Vec<Filter>,
    /// Who owns them; anybody when empty.
    pub owners: Vec<String>,
}

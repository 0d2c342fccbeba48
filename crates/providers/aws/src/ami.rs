//! Which images nodes are started from.
//!
//! ```text
//!   terms ──► Lookup: parameters and queries ──(SSM, EC2)──► discovered ──► status.amis ──► the one of a type
//! ```

mod alias;
mod lookup;
mod mapping;
mod order;

pub use alias::{Alias, AliasError, AliasParameter, Variant};
pub use lookup::{Lookup, is_image_id};
pub use mapping::Mapping;
pub use order::{Candidate, discovered, is_deprecated};

//! Azure's management API: how it is asked.

pub mod error;
pub mod transport;
pub mod types;

pub use error::Error;
pub use transport::{Transport, TransportError};

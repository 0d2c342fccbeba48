//! What a cloud must be able to do, and what can go wrong. Entry: [`CloudProvider`].
//!
//! [`Measured`] counts and times the calls of any cloud, [`Overlaid`] corrects its instance types by NodeOverlays;
//! [`UnavailableOfferings`] remembers what a cloud did not have; [`doctor`] is what comes of looking a cloud over.

pub mod doctor;
pub mod error;
pub mod garbage_collection;
pub mod measured;
pub mod overlaid;
pub mod provider;
pub mod repair;
pub mod unavailable;

pub use error::Error;
pub use garbage_collection::GarbageCollection;
pub use measured::Measured;
pub use overlaid::{Overlaid, Overlays};
pub use provider::{CloudProvider, Instance, RegistrationHook, RepairAction, RepairPolicy};
pub use unavailable::UnavailableOfferings;

//! Virtual machines that we make ourselves, each with a network interface and extensions.
//!
//! ```text
//!   launch ─► network interface ─► virtual machine ─► extensions: the command of AKS, and billing
//! ```

mod body;
mod extension;
mod instance;
mod name;
mod nic;

pub use body::{Start, image_reference, virtual_machine};
pub use extension::{BILLING_EXTENSION, COMMAND_EXTENSION, billing, command, is_billed};
pub use instance::{Instance, Unreadable, instance, provider_id, unreadable, vm_name_of};
pub(crate) use instance::{capacity, is_deleting};
pub use name::{interface_name, machine_of_interface, vm_name};
pub use nic::{is_stale_pool, network_interface};

/// What goes when the machine goes.
const DELETE: &str = "Delete";

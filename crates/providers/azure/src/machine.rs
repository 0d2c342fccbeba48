//! Machines of the AKS Machine API: AKS makes the virtual machine, its disk and its network interface.
//!
//! ```text
//!   claim + choice ─► body ─┬─► PUT machines/{name}
//!                           └─► batch: one PUT for all machines with the same shared body
//!                                   └─► state: creating ─► succeeded, or why not
//! ```

pub mod batch;
mod body;
pub mod cache;
mod config;
mod existing;
mod name;
mod state;

pub use body::{BodyError, MachineLaunch, body};
pub use config::{kubelet_config, linux_os_config, local_dns_profile};
pub use existing::{Conflict, check_existing, claim_of, instance, unreadable};
pub(crate) use name::machine_of_vm;
pub use name::{NoName, is_machine_vm, machine_name};
pub use state::{Progress, progress, root_cause};

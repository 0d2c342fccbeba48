//! The network interface of a launch, over all its attempts.
//!
//! Azure keeps an interface for 180 s for a machine that it refused (`NicReservedForAnotherVm`), and sometimes also from
//! the next machine of the same name. The interface is used again as long as Azure lets us; once it does not, another
//! one is made under another name, and the one that is kept goes when its time is over.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use crate::arm;
use crate::arm::types::nic::NetworkInterface;
use crate::vm::{interface_name, vm_name};

/// How long Azure keeps an interface, and a little more.
const KEPT: Duration = Duration::from_secs(190);
/// How many interfaces one launch makes at most.
const MOST: usize = 5;

/// The network interface of a launch.
#[derive(Debug)]
pub(super) struct Interface {
    machine: String,
    name: String,
    there: There,
    /// Interfaces that Azure keeps for a machine that it refused.
    reserved: Vec<String>,
}

/// What is known to be there.
#[derive(Clone, Debug, Default, PartialEq)]
enum There {
    #[default]
    Nothing,
    /// Something, or nothing any more.
    Unknown,
    This(Box<NetworkInterface>),
}

impl Interface {
    /// That of a claim; nothing was made yet.
    pub(super) fn of(claim: &str) -> Self {
        let machine = vm_name(claim);
        Self { name: machine.clone(), machine, there: There::Nothing, reserved: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn may_be_there(&self) -> bool {
        self.there != There::Nothing
    }

    /// Whether it is there, exactly so.
    pub(super) fn is(&self, body: &NetworkInterface) -> bool {
        matches!(&self.there, There::This(made) if **made == *body)
    }

    pub(super) fn made(&mut self, body: &NetworkInterface) {
        self.there = There::This(Box::new(body.clone()));
    }

    /// It was asked for, or went with its machine: nobody knows whether it is there.
    pub(super) fn is_doubtful(&mut self) {
        self.there = There::Unknown;
    }

    /// Takes another name, because Azure keeps this one; whether there is another.
    pub(super) fn give_up(&mut self) -> bool {
        let number = self.reserved.len() + 2;
        if number > MOST {
            return false;
        }
        let next = interface_name(&self.machine, number);
        self.reserved.push(std::mem::replace(&mut self.name, next));
        self.there = There::Nothing;
        true
    }
}

/// Whether a machine was refused only because Azure keeps its interface for another one.
pub(super) fn is_reserved(error: &arm::Error) -> bool {
    error.has_code("NicReservedForAnotherVm")
}

impl Inner {
    /// Deletes the interfaces that Azure keeps, once it does not any more. Should this process end before, they go with
    /// their claim.
    pub(super) fn delete_reserved_later(self: &Arc<Self>, interface: Interface) {
        if interface.reserved.is_empty() {
            return;
        }
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            for name in &interface.reserved {
                inner.delete_interface_if_there(name).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Azure/karpenter-provider-azure#92: NicReservedForAnotherVM
    #[test]
    fn an_interface_that_azure_keeps_gets_a_successor_a_few_times() {
        let mut interface = Interface::of("pool-a");
        interface.made(&NetworkInterface::default());
        assert!(interface.is(&NetworkInterface::default()));
        assert!(interface.give_up());
        assert_eq!(interface.name(), "aks-pool-a_2");
        assert!(!interface.may_be_there(), "nothing was made under the new name");
        while interface.give_up() {}
        assert_eq!(interface.reserved, ["aks-pool-a", "aks-pool-a_2", "aks-pool-a_3", "aks-pool-a_4"]);
        assert_eq!(interface.name(), "aks-pool-a_5");
    }
}

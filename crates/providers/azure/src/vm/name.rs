//! Names of virtual machines, which are also those of their disks, network interfaces and hosts.

use crate::hash::{fnv1_64, six_digits};

/// The longest name of a virtual machine with Linux and of its host.
const LONGEST: usize = 64;

/// What all names of nodes begin with.
pub(super) const PREFIX: &str = "aks-";

/// The digits that stand for what is left out.
const DIGITS: usize = 6;

/// The longest end of a claim's name that is kept as it is.
const LONGEST_END: usize = 20;

/// The name of the virtual machine of a claim.
///
/// A claim's name can be longer than Azure allows. Then its middle is replaced by digits that follow from it, so that
/// the name is always the same, begins with the NodePool and ends as the claim does. Such a machine is found by its
/// provider ID.
pub fn vm_name(claim: &str) -> String {
    if PREFIX.len() + claim.len() <= LONGEST {
        return format!("{PREFIX}{claim}");
    }
    let end = claim.rfind('-').map_or("", |at| &claim[at..]);
    let end = if end.len() <= LONGEST_END { end } else { "" };
    let begin = &claim[..claim.len() - end.len()];
    // Names of claims are ASCII; any other would be cut before the character.
    let room = LONGEST - PREFIX.len() - DIGITS - end.len();
    let (kept, rest) = begin.split_at(begin.floor_char_boundary(room));
    format!("{PREFIX}{kept}{}{end}", six_digits(fnv1_64(rest.as_bytes())))
}

/// What stands between a machine's name and the number of a further network interface. No name of a claim has it.
const NUMBER: char = '_';

/// The name of a further network interface for a machine, where Azure keeps the usual one for another machine.
pub fn interface_name(machine: &str, number: usize) -> String {
    format!("{machine}{NUMBER}{number}")
}

/// The name of the machine that a network interface is for.
pub fn machine_of_interface(interface: &str) -> &str {
    interface.split_once(NUMBER).map_or(interface, |(machine, _)| machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 10.1: naming
    #[test]
    fn a_machine_is_named_after_its_claim() {
        assert_eq!(vm_name("general-purpose-a1b2c"), "aks-general-purpose-a1b2c");
        let longest = "a".repeat(54) + "-a1b2c";
        assert_eq!(vm_name(&longest), format!("aks-{longest}"));
        assert_eq!(vm_name(&longest).len(), 64);
    }

    // Azure/karpenter-provider-azure#92: another interface for the same machine
    #[test]
    fn a_further_interface_says_which_machine_it_is_for() {
        let name = interface_name("aks-general-purpose-a1b2c", 2);
        assert_eq!(name, "aks-general-purpose-a1b2c_2");
        assert_eq!(machine_of_interface(&name), "aks-general-purpose-a1b2c");
        assert_eq!(machine_of_interface("aks-a.b-2"), "aks-a.b-2");
    }

    // azure.md 28.20: names over Azure's 64 characters
    #[test]
    fn names_that_are_too_long_are_shortened_and_stay_different() {
        let one = "a".repeat(55) + "-a1b2c";
        let name = vm_name(&one);
        assert_eq!(name.len(), 64);
        assert!(name.starts_with(&format!("aks-{}", "a".repeat(48))) && name.ends_with("-a1b2c"), "{name}");
        assert_eq!(name, vm_name(&one));
        assert_ne!(name, vm_name(&("a".repeat(54) + "b-a1b2c")));
        assert_ne!(name, vm_name(&("a".repeat(55) + "-a1b2d")));
    }

    #[test]
    fn names_without_an_end_are_shortened_too() {
        for claim in ["b".repeat(253), format!("a-{}", "b".repeat(200)), "é".repeat(100)] {
            let name = vm_name(&claim);
            assert!(name.len() <= 64 && name.len() > 60, "{name}");
        }
    }
}

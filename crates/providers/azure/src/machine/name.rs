//! Names of machines, which are shorter than those of claims.

use crate::hash::{fnv1_64, six_digits};

/// The longest name that AKS allows a machine, with what it adds to make the virtual machine's.
const LONGEST: usize = 34;

/// The digits that stand for what is left out.
const DIGITS: usize = 6;

/// A claim's name is too long for a machine and has nothing that can be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "NodeClaim {0:?} has a name of more than {LONGEST} characters that cannot be shortened, \
     expected one that ends in a dash and at most 28 characters"
)]
pub struct NoName(String);

/// The name of a claim's machine: the claim's, or what is shorter and always the same.
pub fn machine_name(claim: &str) -> Result<String, NoName> {
    if claim.len() <= LONGEST {
        return Ok(claim.to_owned());
    }
    let none = || NoName(claim.to_owned());
    let (prefix, suffix) = claim.rfind('-').map(|at| claim.split_at(at)).ok_or_else(none)?;
    let kept = LONGEST.checked_sub(suffix.len() + DIGITS).ok_or_else(none)?;
    let (kept, rest) = prefix.split_at_checked(kept).ok_or_else(none)?;
    Ok(format!("{kept}{}{suffix}", six_digits(fnv1_64(rest.as_bytes()))))
}

/// Whether a virtual machine was made by AKS for a machine of a pool, by its name.
pub fn is_machine_vm(vm: &str, pool: &str) -> bool {
    machine_of_vm(vm, pool).is_some()
}

/// The machine that AKS made a virtual machine for.
pub(crate) fn machine_of_vm<'a>(vm: &'a str, pool: &str) -> Option<&'a str> {
    if pool.is_empty() {
        return None;
    }
    let rest = vm.strip_prefix("aks-")?.strip_prefix(pool)?.strip_prefix('-')?.strip_suffix("-vm")?;
    let (machine, unique) = rest.rsplit_once('-')?;
    (!machine.is_empty() && unique.chars().count() == 8).then_some(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 11.1: vector
    #[test]
    fn long_names_are_shortened_as_running_clusters_have_them() {
        assert_eq!(
            machine_name("123456789-123456789-123456789-a1b2c").unwrap(),
            "123456789-123456789-12zc32rh-a1b2c"
        );
        let other = machine_name("123456789-123456789-123456780-a1b2c").unwrap();
        assert_eq!(other.len(), 34);
        assert_ne!(other, "123456789-123456789-12zc32rh-a1b2c");
    }

    // azure.md 11.1
    #[test]
    fn short_names_stay() {
        let name = "a".repeat(28) + "-a1b2c";
        assert_eq!(machine_name(&name).unwrap(), name);
        assert_eq!(machine_name("default-a1b2c").unwrap(), "default-a1b2c");
    }

    // azure.md 11.1: no dash in a too-long name ⇒ error
    #[test]
    fn names_that_cannot_be_shortened_are_refused() {
        for name in ["a".repeat(35), format!("a-{}", "b".repeat(40)), format!("é-{}", "b".repeat(33))] {
            let error = machine_name(&name).unwrap_err().to_string();
            assert!(error.contains(&name), "{error}");
        }
    }

    // azure.md 9: names of the form aks-<pool>-<machine>-<8 chars>-vm are machines
    #[test]
    fn virtual_machines_of_aks_are_known_by_their_names() {
        assert_eq!(machine_of_vm("aks-pool-default-a1b2c-12345678-vm", "pool"), Some("default-a1b2c"));
        assert!(is_machine_vm("aks-pool-m-12345678-vm", "pool"));
        for other in
            ["aks-default-a1b2c", "aks-other-m-12345678-vm", "aks-pool-m-1234567-vm", "aks-pool-12345678-vm"]
        {
            assert!(!is_machine_vm(other, "pool"), "{other}");
        }
        assert!(!is_machine_vm("aks--m-12345678-vm", ""));
    }
}

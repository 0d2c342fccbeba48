//! What comes for a node is there before it goes.

use std::collections::{BTreeMap, BTreeSet};

/// Claims that are given up, and those that were created for them.
///
/// Nothing in the API says which claim came for which node. But commands are begun one after the other, and each says
/// why its nodes go before it creates anything: what is created next is for the claim that was given up last, unless
/// it turns out to be for pods that wait, of which no event tells that it is launched for a disruption.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The claim that was given up last.
    last: Option<String>,
    /// What was created since for a claim that is given up.
    came: BTreeMap<String, BTreeSet<String>>,
    /// Claims that the operator does not know any more to be given up.
    forgotten: BTreeSet<String>,
    /// Claims that were ready for pods once.
    initialized: BTreeSet<String>,
    /// Claims of which it is known that they replace something.
    replacements: BTreeSet<String>,
    /// What is wrong if a claim turns out to replace something.
    suspicions: BTreeMap<String, String>,
}

impl Order {
    /// The operator ends, and forgets what it was about to do.
    pub(crate) fn forget(&mut self) {
        self.forgotten.extend(self.came.keys().cloned());
    }

    /// Whether the operator has forgotten that a claim is given up.
    pub(crate) fn is_forgotten(&self, claim: &str) -> bool {
        self.forgotten.contains(claim)
    }

    /// A claim is given up.
    pub(crate) fn give_up(&mut self, claim: &str) {
        self.forgotten.remove(claim);
        self.came.insert(claim.to_owned(), BTreeSet::new());
        self.last = Some(claim.to_owned());
    }

    /// A claim is not given up any more; whether something had been launched for it, and is of no use now.
    pub(crate) fn keep(&mut self, claim: &str) -> bool {
        self.last.take_if(|last| last == claim);
        let came = self.came.remove(claim).unwrap_or_default();
        !self.forgotten.remove(claim) && came.iter().any(|it| self.replacements.contains(it))
    }

    /// A claim is created.
    pub(crate) fn create(&mut self, claim: &str) {
        let last = self.last.as_ref().and_then(|last| self.came.get_mut(last));
        if let Some(came) = last {
            came.insert(claim.to_owned());
        }
    }

    /// A claim is ready for pods.
    pub(crate) fn initialize(&mut self, claim: &str) {
        self.initialized.insert(claim.to_owned());
    }

    /// It is known of a claim that it replaces something.
    pub(crate) fn replace(&mut self, claim: &str) -> Result<(), String> {
        self.replacements.insert(claim.to_owned());
        self.suspicions.get(claim).map_or(Ok(()), |wrong| Err(wrong.clone()))
    }

    /// Whether it is known of a claim that it replaces something.
    pub(crate) fn is_replacement(&self, claim: &str) -> bool {
        self.replacements.contains(claim)
    }

    /// Whether a claim replaces something, or may do so.
    pub(crate) fn may_replace(&self, claim: &str) -> bool {
        self.replacements.contains(claim) || self.came.values().any(|came| came.contains(claim))
    }

    /// A claim that is given up goes; how many replacements it had. Of those of a pool of a fixed size, several go at
    /// the same time, each for one of the others.
    pub(crate) fn go(&mut self, claim: &str, is_static: bool) -> Result<usize, String> {
        let came = self.came.get(claim).cloned().unwrap_or_default();
        let (ready, missing): (Vec<&String>, Vec<&String>) =
            came.iter().partition(|it| self.initialized.contains(*it));
        if is_static && !ready.is_empty() {
            return Ok(ready.len());
        }
        for it in missing {
            let wrong = format!("(f) NodeClaim {claim} goes before {it} is there, which comes for it");
            if self.replacements.contains(it) {
                return Err(wrong);
            }
            // It may not have been told yet.
            self.suspicions.insert(it.clone(), wrong);
        }
        Ok(ready.iter().filter(|it| self.replacements.contains(**it)).count())
    }
}

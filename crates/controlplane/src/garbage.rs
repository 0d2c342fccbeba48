//! Garbage collection: what is left when its owners are gone, and owners that wait for what they own.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::object::{Key, Kind, Object, has_finalizer, uid};
use crate::time::after;

/// How long an owner that was never seen is waited for: the watches of two kinds are not in step.
const PATIENCE: Duration = Duration::from_secs(30);

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub(crate) fn decide(cache: &Cache, kind: Kind, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(object) = cache.object(kind, key) else { return outcome };
    let meta = object.meta();
    if meta.deletion_timestamp.is_some() {
        if has_finalizer(meta, ORPHAN) {
            orphan(cache, &object, &mut outcome);
        } else if has_finalizer(meta, FOREGROUND) {
            delete_dependents(cache, &object, &mut outcome);
        }
        return outcome;
    }
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let mut absent = 0;
    for owner in owners {
        match presence(cache, owner) {
            Presence::Gone => absent += 1,
            Presence::Unseen => {
                let created = meta.creation_timestamp.as_ref().map_or(now, |time| time.0);
                let until = after(created, PATIENCE);
                if until <= now {
                    absent += 1;
                } else {
                    outcome.look_again(until);
                }
            }
            Presence::Present => {}
        }
    }
    if absent > 0 && absent == owners.len() {
        outcome.delete(kind, meta, None);
        outcome.again = None;
    }
    outcome
}

enum Presence {
    Present,
    Gone,
    /// Not there, but nobody saw it go either.
    Unseen,
}

fn presence(cache: &Cache, owner: &OwnerReference) -> Presence {
    let watched =
        Kind::ALL.iter().any(|kind| kind.name() == owner.kind && kind.api_version() == owner.api_version);
    if !watched || cache.by_uid(&owner.uid).is_some() {
        Presence::Present
    } else if cache.is_dead(&owner.uid) {
        Presence::Gone
    } else {
        Presence::Unseen
    }
}

/// The dependents stay and lose their reference to the owner.
fn orphan(cache: &Cache, owner: &Object, outcome: &mut Outcome) {
    let id = uid(owner.meta());
    let mut waiting = false;
    for (kind, key) in cache.dependents(id) {
        let Some(object) = cache.object(*kind, key) else { continue };
        let meta = object.meta();
        let left: Vec<_> =
            meta.owner_references.iter().flatten().filter(|reference| reference.uid != id).collect();
        let body = json!({"metadata": {"uid": meta.uid, "ownerReferences": left}});
        outcome.patch(*kind, meta, body);
        waiting = true;
    }
    if !waiting {
        release(owner.kind(), owner.meta(), ORPHAN, outcome);
    }
}

/// The dependents go first.
fn delete_dependents(cache: &Cache, owner: &Object, outcome: &mut Outcome) {
    let id = uid(owner.meta());
    let mut waiting = false;
    for (kind, key) in cache.dependents(id) {
        let Some(object) = cache.object(*kind, key) else { continue };
        let meta = object.meta();
        let reference = meta.owner_references.iter().flatten().find(|reference| reference.uid == id);
        waiting |= reference.is_some_and(|reference| reference.block_owner_deletion == Some(true));
        if meta.deletion_timestamp.is_none() {
            outcome.delete(*kind, meta, None);
        }
    }
    if !waiting {
        release(owner.kind(), owner.meta(), FOREGROUND, outcome);
    }
}

fn release(kind: Kind, meta: &ObjectMeta, finalizer: &str, outcome: &mut Outcome) {
    let left: Vec<_> = meta.finalizers.iter().flatten().filter(|name| *name != finalizer).collect();
    let body = json!({"metadata": {
        "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": left,
    }});
    outcome.patch(kind, meta, body);
}

#[cfg(test)]
mod tests;

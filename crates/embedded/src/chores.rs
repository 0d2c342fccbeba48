//! What follows from deletions: dependents go with their owners, definitions with their objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::body::DeleteOptions;
use crate::delete::{self, FOREGROUND, ORPHAN};
use crate::patch::apply::Manager;
use crate::patch::managed_fields;
use crate::quota;
use crate::reset::reset_fields;
use crate::resources::Resource;
use crate::state::{Chore, State};
use crate::store::{CollectionId, Object, Place};
use crate::write::is_finished;

/// Does everything that follows from the changes so far.
pub(crate) fn run(state: &mut State) {
    while let Some(chore) = state.chores.pop_front() {
        match chore {
            Chore::Gone { uid, owners, collection } => {
                for place in state.store.dependents_of(&uid) {
                    leave_or_follow(state, &place);
                }
                // An owner may have waited for this one.
                for owner in owners {
                    if let Some(place) = state.store.place_of(&owner).cloned() {
                        state.chores.push_back(Chore::Dependents(place));
                    }
                }
                finish_definition(state, collection);
            }
            Chore::CheckOwners(place) => leave_or_follow(state, &place),
            Chore::Dependents(place) => dependents(state, &place),
            Chore::CountQuota((_, key)) => quota::count(state, &key.namespace, &key.name),
            Chore::GiveBack { collection, before, after } => {
                if let Some(resource) = state.registry.of_collection(collection) {
                    quota::give_back(state, &resource, &before, after.as_deref());
                }
            }
        }
    }
}

fn find(state: &State, place: &Place) -> Option<(Arc<Resource>, Arc<Object>)> {
    let object = state.store.get(place.0, &place.1)?.clone();
    Some((state.registry.of_collection(place.0)?, object))
}

/// An object none of whose owners exists is deleted; one with some left forgets the others.
fn leave_or_follow(state: &mut State, place: &Place) {
    let Some((resource, object)) = find(state, place) else { return };
    if object.owners.is_empty() {
        return;
    }
    let waits = |state: &State, uid: &str| {
        let owner = state.store.place_of(uid).and_then(|place| find(state, place));
        owner.is_some_and(|(resource, owner)| has_finalizer(&owner.value(&resource), FOREGROUND))
    };
    let live: Vec<bool> =
        object.owners.iter().map(|owner| state.store.place_of(&owner.uid).is_some()).collect();
    if !live.contains(&true) {
        if !object.deleting {
            // A failure means that it is gone or may not go: nothing is left to do either way.
            let _ = delete::start(state, &resource, &object, &background());
        }
        return;
    }
    let solid = object.owners.iter().zip(&live).any(|(owner, live)| *live && !waits(state, &owner.uid));
    if live.contains(&false) && solid {
        let gone: Vec<&str> = object
            .owners
            .iter()
            .zip(&live)
            .filter(|(_, live)| !**live)
            .map(|(owner, _)| &*owner.uid)
            .collect();
        let mut value = object.value(&resource);
        if let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| !gone.iter().any(|uid| owner["uid"] == *uid));
        }
        state.put(&resource, &mut value);
    }
}

fn background() -> DeleteOptions {
    DeleteOptions { propagation: Some("Background".to_owned()), ..DeleteOptions::default() }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|one| one == finalizer))
}

/// A deleted object with dependents: deletes them first, or parts them from it.
fn dependents(state: &mut State, place: &Place) {
    let Some((resource, object)) = find(state, place) else { return };
    if !object.deleting {
        return;
    }
    let value = object.value(&resource);
    if has_finalizer(&value, ORPHAN) {
        for place in state.store.dependents_of(&object.uid) {
            part(state, &place, &object.uid);
        }
        drop_finalizer(state, &resource, value, ORPHAN);
    } else if has_finalizer(&value, FOREGROUND) {
        let mut blocked = false;
        for place in state.store.dependents_of(&object.uid) {
            blocked |= follow_first(state, &place, &object.uid);
        }
        if !blocked {
            drop_finalizer(state, &resource, value, FOREGROUND);
        }
    }
    if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        delete_custom_objects(state, &object, &resource);
    }
}

/// Deletes a dependent before its owner; true while it is still there and blocks.
fn follow_first(state: &mut State, place: &Place, owner: &str) -> bool {
    let Some((resource, object)) = find(state, place) else { return false };
    let blocks = object.owners.iter().any(|one| *one.uid == *owner && one.blocks_deletion);
    let others = object.owners.iter().any(|one| {
        *one.uid != *owner
            && state
                .store
                .place_of(&one.uid)
                .is_some_and(|place| state.store.get(place.0, &place.1).is_some_and(|owner| !owner.deleting))
    });
    if others {
        part(state, place, owner);
        return false;
    }
    if !object.deleting {
        let options =
            DeleteOptions { propagation: Some("Foreground".to_owned()), ..DeleteOptions::default() };
        let _ = delete::start(state, &resource, &object, &options);
    }
    blocks && state.store.get(place.0, &place.1).is_some()
}

/// Takes one owner out of a dependent.
fn part(state: &mut State, place: &Place, owner: &str) {
    let Some((resource, object)) = find(state, place) else { return };
    let before = object.value(&resource);
    let mut value = before.clone();
    if let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() {
        owners.retain(|one| one["uid"] != *owner);
        if owners.is_empty() {
            value["metadata"].as_object_mut().map(|metadata| metadata.remove("ownerReferences"));
        }
    }
    let now = state.now();
    let manager = Manager {
        name: "kube-controller-manager",
        subresource: "",
        api_version: resource.api_version(),
        now: &now,
        reset: &[],
    };
    managed_fields::track_update(Some(&before), &mut value, &manager, resource.schema());
    state.put(&resource, &mut value);
}

fn drop_finalizer(state: &mut State, resource: &Resource, mut value: Value, finalizer: &str) {
    let mut before = value.clone();
    if let Some(finalizers) = value["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|one| one != finalizer);
        if finalizers.is_empty() {
            value["metadata"].as_object_mut().map(|metadata| metadata.remove("finalizers"));
        }
    }
    if is_finished(&value) {
        // What watchers are told is the last state that was stored.
        state.remove(resource, &mut before);
    } else {
        state.put(resource, &mut value);
    }
}

/// The finalizer of definitions that have objects.
pub(crate) const CUSTOM_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn custom_collection(state: &mut State, definition: &Value) -> CollectionId {
    let group = definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default().to_owned();
    state.store.collection_id(&group, &plural)
}

/// A definition that goes takes its objects with it.
fn delete_custom_objects(state: &mut State, definition: &Arc<Object>, resource: &Arc<Resource>) {
    let value = definition.value(resource);
    let collection = custom_collection(state, &value);
    let objects: Vec<Arc<Object>> = state.store.collection(collection).objects().values().cloned().collect();
    if let Some(custom) = state.registry.of_collection(collection) {
        for object in objects.iter().filter(|object| !object.deleting) {
            let _ = delete::start(state, &custom, object, &background());
        }
    }
    finish_definition(state, collection);
}

/// A deleted definition is gone when its last object is.
fn finish_definition(state: &mut State, collection: CollectionId) {
    if !state.store.collection(collection).objects().is_empty() {
        return;
    }
    let Some(definitions) = state.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    let deleting: Vec<Arc<Object>> = state
        .store
        .collection(definitions.collection)
        .objects()
        .values()
        .filter(|definition| definition.deleting)
        .cloned()
        .collect();
    for definition in deleting {
        let value = definition.value(&definitions);
        if custom_collection(state, &value) == collection && has_finalizer(&value, CUSTOM_CLEANUP) {
            let now = state.now();
            let mut done = value.clone();
            let why = "removed all instances";
            set_terminating(&mut done, "False", "InstanceDeletionCompleted", why, &now);
            track_status(&definitions, &value, &mut done, &now);
            drop_finalizer(state, &definitions, done, CUSTOM_CLEANUP);
        }
    }
}

/// Marks a new definition as established, as the real server does a moment later.
pub(crate) fn establish(state: &mut State, resource: &Resource, mut definition: Value, now: &str) {
    let before = definition.clone();
    crate::kinds::crd::established(&mut definition, now);
    track_status(resource, &before, &mut definition, now);
    state.put(resource, &mut definition);
}

/// The status of a definition is the server's own.
fn track_status(resource: &Resource, before: &Value, definition: &mut Value, now: &str) {
    let manager = Manager {
        name: "kube-apiserver",
        subresource: "status",
        api_version: resource.api_version(),
        now,
        reset: reset_fields(resource, "status"),
    };
    managed_fields::track_update(Some(before), definition, &manager, resource.schema());
}

/// Notes how far the deletion of a definition is.
pub(crate) fn set_terminating(definition: &mut Value, status: &str, reason: &str, message: &str, now: &str) {
    let condition = json!({
        "type": "Terminating", "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| condition["type"] != "Terminating");
        conditions.push(condition);
    }
}

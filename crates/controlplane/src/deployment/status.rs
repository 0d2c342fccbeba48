//! What a deployment says about its rollout.

use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};

use super::Rollout;
use crate::object::Kind;
use crate::time::{after_seconds, time};

const NO_DEADLINE: i32 = i32::MAX;

/// Whether every replica is of the current template and available.
pub(super) fn is_complete(rollout: &Rollout) -> bool {
    let status = counts(rollout);
    complete(rollout, &status)
}

fn complete(rollout: &Rollout, status: &DeploymentStatus) -> bool {
    let wanted = Some(rollout.replicas());
    let some = |count: Option<i32>| Some(count.unwrap_or(0));
    some(status.updated_replicas) == wanted
        && some(status.replicas) == wanted
        && some(status.available_replicas) == wanted
}

fn counts(rollout: &Rollout) -> DeploymentStatus {
    let reported = |of: fn(&k8s_openapi::api::apps::v1::ReplicaSetStatus) -> i32| -> i32 {
        rollout.all().filter_map(|set| set.object.status.as_ref()).map(of).sum()
    };
    let some = |count: i32| (count != 0).then_some(count);
    let available = reported(|status| status.available_replicas.unwrap_or(0));
    let updated = rollout.new.as_ref().map_or(0, super::Set::actual);
    let old = rollout.deployment.status.as_ref();
    DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: some(reported(|status| status.replicas)),
        updated_replicas: some(updated),
        ready_replicas: some(reported(|status| status.ready_replicas.unwrap_or(0))),
        available_replicas: some(available),
        unavailable_replicas: some((rollout.total() - available).max(0)),
        terminating_replicas: Some(reported(|status| status.terminating_replicas.unwrap_or(0))),
        collision_count: old.and_then(|status| status.collision_count),
        conditions: old.and_then(|status| status.conditions.clone()),
    }
}

pub(super) fn decide(rollout: &mut Rollout) {
    let old = rollout.deployment.status.clone().unwrap_or_default();
    let mut new = counts(rollout);
    let (unavailable, _) = rollout.bounds();
    let enough = new.available_replicas.unwrap_or(0) >= rollout.replicas() - unavailable;
    let available = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set(&mut new, "Available", available, rollout, false);
    progress(rollout, &old, &mut new);
    // The collision that a step has just counted must not be taken back.
    new.collision_count = old.collision_count;
    let kind = Kind::Deployment;
    rollout.outcome.status(kind, &rollout.deployment.metadata, &old, &new);
}

fn progress(rollout: &mut Rollout, old: &DeploymentStatus, new: &mut DeploymentStatus) {
    let deadline = rollout.spec.progress_deadline_seconds.unwrap_or(600);
    if deadline == NO_DEADLINE {
        if let Some(conditions) = &mut new.conditions {
            conditions.retain(|condition| condition.type_ != "Progressing");
        }
        return;
    }
    let subject = match &rollout.new {
        Some(set) => format!("ReplicaSet \"{}\"", set.name()),
        None => format!("Deployment \"{}\"", rollout.deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    let current = condition(old, "Progressing").cloned();
    let paused = rollout.spec.paused == Some(true);
    let reason = current.as_ref().and_then(|condition| condition.reason.as_deref()).unwrap_or_default();
    if paused {
        if reason != "DeploymentPaused" && reason != "ProgressDeadlineExceeded" {
            set(new, "Progressing", ("Unknown", "DeploymentPaused", "Deployment is paused"), rollout, true);
        }
        return;
    }
    if reason == "DeploymentPaused" {
        set(new, "Progressing", ("Unknown", "DeploymentResumed", "Deployment is resumed"), rollout, true);
        return;
    }
    if let Some(name) = &rollout.creates {
        let message = format!("Created new replica set \"{name}\"");
        set(new, "Progressing", ("True", "NewReplicaSetCreated", &message), rollout, true);
        return;
    }
    if new.replicas == new.updated_replicas && reason == "NewReplicaSetAvailable" {
        return;
    }
    if complete(rollout, new) && rollout.new.is_some() {
        let message = format!("{subject} has successfully progressed.");
        set(new, "Progressing", ("True", "NewReplicaSetAvailable", &message), rollout, true);
    } else if progressed(old, new) || current.is_none() {
        let message = format!("{subject} is progressing.");
        set(new, "Progressing", ("True", "ReplicaSetUpdated", &message), rollout, true);
    } else if let Some(since) = current.as_ref().and_then(|condition| condition.last_update_time.as_ref()) {
        let due = after_seconds(since.0, i64::from(deadline));
        if reason == "ProgressDeadlineExceeded" {
        } else if due <= rollout.now {
            let message = format!("{subject} has timed out progressing.");
            set(new, "Progressing", ("False", "ProgressDeadlineExceeded", &message), rollout, true);
        } else {
            rollout.outcome.look_again(due);
        }
    }
}

fn progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let number = |count: Option<i32>| count.unwrap_or(0);
    let outdated = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(new.updated_replicas) > number(old.updated_replicas)
        || outdated(new) < outdated(old)
        || number(new.ready_replicas) > number(old.ready_replicas)
        || number(new.available_replicas) > number(old.available_replicas)
}

fn condition<'a>(status: &'a DeploymentStatus, name: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == name)
}

/// Sets a condition; `touch` renews its time of update even if it stays as it is.
fn set(
    status: &mut DeploymentStatus,
    name: &str,
    (state, reason, message): (&str, &str, &str),
    rollout: &Rollout,
    touch: bool,
) {
    let before = condition(status, name).cloned();
    let same = |condition: &DeploymentCondition| {
        condition.status == state && condition.reason.as_deref() == Some(reason)
    };
    if before.as_ref().is_some_and(same) && !touch {
        return;
    }
    let now = Some(time(rollout.now));
    let transition = before.as_ref().filter(|before| before.status == state);
    let new = DeploymentCondition {
        type_: name.to_owned(),
        status: state.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: now.clone(),
        last_transition_time: transition.map_or(now, |before| before.last_transition_time.clone()),
    };
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != name);
    conditions.push(new);
}

//! The room that CapacityBuffers of cluster files keep, where the feature is on.

use api::names::gates::CAPACITY_BUFFER;
use api::provider::Provider;
use cluster::buffers::{Room, rooms};
use cluster::objects::Objects;
use cluster::state::{State, Watched};
use runtime::settings::Gates;

use super::words::{counted, some};

/// The room that the buffers of some files keep. Says so if the feature is off and there are some.
pub(super) fn of_files(objects: &Objects, gates: Gates) -> Vec<Room> {
    warn_ignored(objects, gates);
    if !gates.capacity_buffer || objects.capacity_buffers.is_empty() {
        return Vec::new();
    }
    // Nothing else says what room is kept for.
    let needed = Objects {
        capacity_buffers: objects.capacity_buffers.clone(),
        pod_templates: objects.pod_templates.clone(),
        deployments: objects.deployments.clone(),
        replica_sets: objects.replica_sets.clone(),
        stateful_sets: objects.stateful_sets.clone(),
        ..Objects::default()
    };
    rooms(&State::of_files(needed, Provider::Kwok))
}

/// Says that there are buffers, but nobody looks at them.
#[expect(clippy::print_stderr, reason = "warnings go beside the plan")]
pub(super) fn warn_ignored(objects: &Objects, gates: Gates) {
    if !gates.capacity_buffer && !objects.capacity_buffers.is_empty() {
        let names: Vec<String> = objects.capacity_buffers.iter().map(|it| it.key().to_string()).collect();
        let buffers = counted(names.len(), "CapacityBuffer");
        let (names, gate) = (some(&names), CAPACITY_BUFFER.name);
        eprintln!("warning: {buffers} ignored ({names}): --feature-gates {gate}=true keeps their room");
    }
}

/// Says for which buffers no room is kept, and why.
#[expect(clippy::print_stderr, reason = "warnings go beside the plan")]
pub(super) fn warn(rooms: &[Room]) {
    for room in rooms {
        if let Err(why) = &room.pods {
            eprintln!("warning: CapacityBuffer {}: {why}", room.buffer.key());
        }
    }
}

//! The plan for pending pods: what the provisioner looks at, and what it would launch. `karpenter plan` asks here, too.

use api::provider::Provider;
use cluster::buffers::Room;
use cluster::snapshot::{self, Built, InstanceTypes, View};
use cluster::state::State;
use engine::options::{MinValues, Options, Preferences, Reserved};
use engine::solve::{Plan, solve};
use jiff::Timestamp;
use runtime::Settings;
use runtime::settings::{MinValuesPolicy, PreferencePolicy};

/// The pods of a state that need a node, and all that matters to where they can be.
pub fn snapshot(
    state: &State,
    types: InstanceTypes<'_>,
    rooms: &[Room],
    settings: &Settings,
    now: Timestamp,
) -> Built {
    let mut options = snapshot_options(state.provider(), types, rooms, settings);
    options.unsupported_volumes = state.unsupported_volumes().clone();
    snapshot::build(state, &options, now)
}

/// As [`snapshot`], of objects that were read from files. Pods count that no scheduler has looked at: files may be
/// written by hand.
pub fn snapshot_of_files<'v>(
    objects: impl Into<View<'v>>,
    provider: Provider,
    types: InstanceTypes<'_>,
    rooms: &[Room],
    settings: &Settings,
    now: Timestamp,
) -> Built {
    let mut options = snapshot_options(provider, types, rooms, settings);
    options.accept_unseen_pods = true;
    snapshot::build(objects, &options, now)
}

fn snapshot_options<'a>(
    provider: Provider,
    types: InstanceTypes<'a>,
    rooms: &'a [Room],
    settings: &Settings,
) -> snapshot::Options<'a> {
    let mut options = snapshot::Options::new(provider, &[]);
    options.instance_types = types;
    options.scheduler_config = settings.scheduler_config.clone();
    options.rooms = rooms;
    options
}

/// Where the pods go, and what is launched for them.
pub fn plan(built: &Built, settings: &Settings) -> Plan {
    solve(&built.snapshot, &options(settings))
}

/// How places for pods are looked for.
pub(crate) fn options(settings: &Settings) -> Options {
    Options {
        preferences: match settings.preference_policy {
            PreferencePolicy::Respect => Preferences::Respect,
            PreferencePolicy::Ignore => Preferences::Ignore,
        },
        min_values: match settings.min_values_policy {
            MinValuesPolicy::Strict => MinValues::Strict,
            MinValuesPolicy::BestEffort => MinValues::BestEffort,
        },
        reserved: if settings.gates.reserved_capacity { Reserved::Strict } else { Reserved::Off },
    }
}

//! The subject of a plan: the objects of files, or a live cluster. Entry: [`Given::read`].

use std::sync::Arc;

use anyhow::{Result, bail};
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::buffers::{self, Room};
use cluster::file::{self, Contents, workloads};
use cluster::instance_types::InstanceType;
use cluster::objects::Objects;
use cluster::snapshot::{Built, InstanceTypes};
use cluster::state::State;
use jiff::Timestamp;
use operator::provisioner::plan;
use runtime::Settings;
use runtime::settings::Gates;

use super::overlays::Corrected;
use super::provider::{self, NO_POOL, Pool};
use super::words::counted;
use super::{Args, live, refuse, rooms, warnings};

/// The subject of a plan.
pub(super) enum Given {
    /// The objects of files, and whose nodes their NodePools have.
    Files(Box<Objects>, Provider),
    /// A live cluster.
    Cluster(Box<State>),
}

impl Given {
    /// Reads the files, or the cluster if there are none. Fails over what is not understood unless it is to be ignored.
    pub(super) fn read(args: &Args, gates: Gates) -> Result<Self> {
        if args.files.is_empty() {
            let state = live::state(args.kubeconfig.as_deref(), args.provider, gates)?;
            refuse(args, &warnings::unreadable(&state))?;
            return Ok(Self::Cluster(Box::new(state)));
        }
        let objects = of_files(args)?;
        let pools: Vec<Pool> = objects.node_pools.iter().map(Pool::of).collect();
        let provider = provider::find(args.provider, &pools)?;
        Ok(Self::Files(Box::new(objects), provider))
    }

    /// Whose nodes there are.
    pub(super) fn provider(&self) -> Provider {
        match self {
            Self::Files(_, provider) => *provider,
            Self::Cluster(state) => state.provider(),
        }
    }

    /// All NodePools.
    pub(super) fn node_pools(&self) -> Vec<&NodePool> {
        match self {
            Self::Files(objects, _) => objects.node_pools.iter().collect(),
            Self::Cluster(state) => state.node_pools.values().map(AsRef::as_ref).collect(),
        }
    }

    /// Instance types as NodeOverlays correct them; nothing if there are none.
    pub(super) fn corrected(&self, types: &Arc<[InstanceType]>) -> Option<Corrected> {
        match self {
            Self::Files(objects, provider) => Corrected::of_files(objects, types, *provider),
            Self::Cluster(state) => Corrected::of_state(state, None, types),
        }
    }

    /// The room that CapacityBuffers keep where the feature is on.
    pub(super) fn rooms(&self, gates: Gates) -> Vec<Room> {
        match self {
            Self::Files(objects, _) => rooms::of_files(objects, gates),
            Self::Cluster(state) if gates.capacity_buffer => buffers::rooms(state),
            Self::Cluster(_) => Vec::new(),
        }
    }

    /// What the provisioner would look at.
    pub(super) fn build(
        &self,
        types: InstanceTypes<'_>,
        rooms: &[Room],
        settings: &Settings,
        now: Timestamp,
    ) -> Built {
        match self {
            Self::Files(objects, provider) => {
                plan::snapshot_of_files(&**objects, *provider, types, rooms, settings, now)
            }
            Self::Cluster(state) => plan::snapshot(state, types, rooms, settings, now),
        }
    }
}

/// The objects of all files, with the pods that their workloads would have.
fn of_files(args: &Args) -> Result<Objects> {
    let mut all = Contents::default();
    for path in &args.files {
        for path in file::paths(path)? {
            all.extend(file::read(&path)?);
        }
    }
    let Contents { mut objects, skipped, errors } = all;
    let completed = workloads::complete(&mut objects);
    let mistakes: Vec<String> = errors.iter().map(ToString::to_string).chain(completed.refused).collect();
    let is_complete = mistakes.is_empty();
    refuse(args, &mistakes)?;
    if !skipped.is_empty() {
        warnings::say(&format!("not looked at: {skipped}"));
    }
    let made: Vec<String> = completed
        .made
        .iter()
        .map(|(workload, pods)| format!("{workload} ({})", counted(*pods, "pod")))
        .collect();
    if !made.is_empty() {
        warnings::say(&format!("pods that the files lack are planned for: {}", made.join(", ")));
    }
    if objects.node_pools.is_empty() {
        if is_complete {
            bail!("the files contain {NO_POOL}");
        }
        bail!("the files contain no NodePool that can be used");
    }
    Ok(objects)
}

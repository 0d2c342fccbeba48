//! Instances, and how they are.

use jiff::Timestamp;

use super::Tags;

/// What an instance is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// It is being started.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It can be started again.
    Stopped,
    /// It is on its way out.
    ShuttingDown,
    /// It is gone.
    Terminated,
}

impl InstanceState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Stopping, Self::Stopped, Self::ShuttingDown, Self::Terminated];

    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }

    /// The state with a name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether it will not run again.
    pub const fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

/// An instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// Its ID.
    pub id: String,
    /// Its type.
    pub instance_type: String,
    /// What it is doing.
    pub state: InstanceState,
    /// Its zone.
    pub zone: String,
    /// The zone's ID; empty if not known.
    pub zone_id: String,
    /// Whether its hardware is shared, as EC2 says it; empty for the usual.
    pub tenancy: String,
    /// Its partition in a placement group; zero if none.
    pub partition: u32,
    /// Its image.
    pub image_id: String,
    /// Its subnet.
    pub subnet_id: String,
    /// Its security groups.
    pub security_groups: Vec<String>,
    /// Its tags.
    pub tags: Tags,
    /// When it was launched.
    pub launched: Option<Timestamp>,
    /// The spot request that it was launched for.
    pub spot_request_id: Option<String>,
    /// How it lives, as EC2 says it.
    pub lifecycle: Option<String>,
    /// The reservation that it runs in.
    pub reservation_id: Option<String>,
    /// Which reservations it was launched for, as EC2 says it.
    pub reservation_preference: Option<String>,
    /// What its network interfaces are, as EC2 says it.
    pub interface_types: Vec<String>,
}

/// The state of an instance after it was asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The instance.
    pub id: String,
    /// Its state now.
    pub state: InstanceState,
}

/// How an instance is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceStatus {
    /// The instance.
    pub id: String,
    /// Checks of the instance itself.
    pub instance: Vec<StatusCheck>,
    /// Checks of the host.
    pub system: Vec<StatusCheck>,
    /// What is planned.
    pub events: Vec<ScheduledEvent>,
}

/// A check of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCheck {
    /// What is checked.
    pub name: String,
    /// How it came out.
    pub status: String,
    /// Since when it fails.
    pub impaired_since: Option<Timestamp>,
}

/// Something that is planned for an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// What it is.
    pub code: String,
    /// What the service says about it.
    pub description: String,
    /// When it begins.
    pub not_before: Option<Timestamp>,
}

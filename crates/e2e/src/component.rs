//! The programs that make up a control plane.

use std::fmt;

use crate::tools::Tool;

/// A long-running part of a [`ControlPlane`](crate::ControlPlane).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// etcd, which stores the objects.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-scheduler.
    Scheduler,
    /// kube-controller-manager.
    ControllerManager,
    /// KWOK, which plays the machines.
    Kwok,
}

impl Component {
    /// The program that it runs.
    pub const fn tool(self) -> Tool {
        match self {
            Self::Etcd => Tool::Etcd,
            Self::ApiServer => Tool::KubeApiserver,
            Self::Scheduler => Tool::KubeScheduler,
            Self::ControllerManager => Tool::KubeControllerManager,
            Self::Kwok => Tool::Kwok,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tool().name())
    }
}

//! Launch templates: which are needed for a launch, what they are called and what is in them.

mod content;
mod groups;
mod interfaces;
mod name;
mod volumes;

use api::nodeclaim::NodeClaim;
use cluster::instance_types::InstanceType;

use crate::node_class::Class;
use crate::port::{NewLaunchTemplate, Tags};
use crate::user_data::{ClusterInfo, UserDataError};

pub use groups::templates;
pub use name::{PREFIX, name_of};

/// A launch that templates are needed for.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The NodeClass.
    pub class: &'a Class<'a>,
    /// The claim that it is for.
    pub claim: &'a NodeClaim,
    /// The cluster that nodes join.
    pub cluster: &'a ClusterInfo,
    /// The region.
    pub region: &'a str,
    /// How instances are bought.
    pub capacity_type: &'a str,
    /// Whether their hardware is shared.
    pub tenancy: &'a str,
    /// The partition of the placement group, if one is asked for.
    pub partition: Option<&'a str>,
    /// Tags of everything that is created.
    pub tags: &'a Tags,
    /// Whether reservations are used at all.
    pub reserved_capacity: bool,
}

/// A launch template, and what it is good for.
#[derive(Clone, Debug, PartialEq)]
pub struct Template<'a> {
    /// What is created.
    pub request: NewLaunchTemplate,
    /// The instance types that it is good for.
    pub types: Vec<&'a InstanceType>,
    /// The reservation that it is for, if any.
    pub reservation: Option<String>,
}

/// Why there are no launch templates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The NodeClass has no images.
    #[error("no amis exist given constraints")]
    NoImages,
    /// No instance type can be started from any image.
    #[error("no instance types satisfy requirements of amis {0}")]
    NoTypes(String),
    /// The NodeClass has no security groups.
    #[error("no security groups are present in the status")]
    NoSecurityGroups,
    /// The kubelet's settings cannot be worked out.
    #[error("{0}")]
    Kubelet(#[from] crate::kubelet::Invalid),
    /// There is no user data.
    #[error("{0}")]
    UserData(#[from] UserDataError),
}

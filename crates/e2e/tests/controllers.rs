//! Controllers as processes of their own on a real control plane: ours after the original one and the other way
//! round, two of ours at the same time, ours with nothing but the permissions of its chart, and ours on AWS and Azure.
//!
//! `E2E=long` makes clusters larger and looks at them for longer.

#[path = "controllers/arm.rs"]
mod arm;
#[path = "controllers/aws.rs"]
mod aws;
#[path = "controllers/aws_doctor.rs"]
mod aws_doctor;
#[path = "controllers/azure.rs"]
mod azure;
#[path = "controllers/azure_table.rs"]
mod azure_table;
#[path = "controllers/azure_takeover.rs"]
mod azure_takeover;
#[path = "controllers/cluster.rs"]
mod cluster;
#[path = "controllers/fleet.rs"]
mod fleet;
#[path = "support/ours.rs"]
mod ours;
#[path = "controllers/permissions.rs"]
mod permissions;
#[path = "support/real.rs"]
mod real;
#[path = "controllers/replicas.rs"]
mod replicas;
#[path = "controllers/smoke.rs"]
mod smoke;
#[path = "controllers/takeover.rs"]
mod takeover;

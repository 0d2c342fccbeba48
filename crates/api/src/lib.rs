//! The Kubernetes API of Karpenter: custom resource types, their CRDs, every observable name, status
//! conditions, drift hashes and runtime validation.

pub mod aws;
pub mod azure;
pub mod capacitybuffer;
pub mod conditions;
pub mod crds;
pub mod hash;
pub mod kwok;
pub mod labels;
pub mod names;
pub mod nodeclaim;
pub mod nodeoverlay;
pub mod nodepool;
pub mod provider;
pub mod resource;
pub mod schema;
pub mod shared;
pub mod validation;

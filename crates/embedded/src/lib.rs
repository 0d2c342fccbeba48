//! A small Kubernetes API server in this process: no etcd, no sockets needed, virtual time possible.

pub mod field_error;
pub mod kinds;
pub mod patch;
pub mod refusal;
pub mod schema;
pub mod table;

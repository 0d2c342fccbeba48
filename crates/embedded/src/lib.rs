//! A small Kubernetes API server in this process: no etcd, no sockets needed, virtual time possible.
//!
//! [`Server`] holds a cluster; [`Server::service`] is what a client is made of, in this process or over HTTP
//! ([`http_server::serve`]). What it does not do it refuses with the status that a real server would give.

mod admission;
mod amounts;
mod answer;
mod body;
mod chores;
mod delete;
mod discovery;
mod duplicates;
mod events;
pub mod faults;
pub mod field_error;
mod form;
pub mod http_server;
pub mod kinds;
mod limits;
mod list;
mod openapi;
mod options;
pub mod patch;
mod patch_kind;
mod pods;
mod protobuf;
mod quota;
pub mod refusal;
mod request;
mod reset;
mod resources;
mod scale;
pub mod schema;
mod selector;
mod server;
mod service;
mod state;
mod store;
pub mod table;
mod time;
mod watch;
mod write;

pub use answer::Body;
pub use server::{Options, Server};
pub use service::Service;

//! What really goes over the wire and comes back, heard by a server on loopback.

mod ca_bundle;
mod golden;
mod pages;
mod requests;
mod server;
// What recordings of the original are compared with.
#[path = "../../aws/tests/aws/wire.rs"]
mod wire;

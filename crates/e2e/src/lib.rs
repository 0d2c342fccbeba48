//! A real Kubernetes control plane on loopback, for tests that only a real API server can decide.

pub mod tools;

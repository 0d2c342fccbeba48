//! Simulated nodes: instances are Node objects that nobody runs.

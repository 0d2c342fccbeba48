//! Structural schemas: pruning, defaults, validation.

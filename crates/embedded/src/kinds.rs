//! What the API server knows about its built-in kinds: defaults, rules, and what may change.

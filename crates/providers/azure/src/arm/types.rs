//! What Azure's answers and our requests look like on the wire.

pub mod sku;

//! `karpenter`: the one binary.
fn main() {}

//! Developer commands: everything CI runs, run the same way locally.
fn main() {}

//! The released program is linked to fixed addresses, as programs in Go are. Otherwise the loader rewrites every
//! pointer of every table at the start, and all those pages, and the list of them, stay in memory (about 5 MB).

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

//! Developer commands: everything CI runs, run the same way locally.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a person")]

use std::process::ExitCode;

use anyhow::{Result, bail};

mod bench;
mod bench_data;
mod ci;
mod cloudformation;
mod crds;
mod differential;
mod instructions;
mod layers;
mod run;
mod tidy;

const HELP: &str = "\
cargo xtask ci              everything below, as CI does
cargo xtask test            all tests: pure ones, then those on a real control plane
cargo xtask e2e [--kubernetes 1.32]  only the tests on a real control plane, with all that takes long, or on an older one
cargo xtask crds [--check]  write the CRDs into the chart, or fail if they are out of date
cargo xtask cloudformation [--check]  write the policies of deploy/aws into its template, or fail if they are out of date
cargo xtask layers          prove the dependency rules of ARCHITECTURE.md
cargo xtask tidy            prove the rules for files and documents; print their sizes
cargo xtask bench [--peer]  time plans for large clusters, with --peer side by side with upstream
cargo xtask instructions [--update]  count instructions of the solver, fail if they grew
cargo xtask differential record FIRST..END  draw clusters from seeds and keep what upstream decides
cargo xtask differential show SEED          write the cluster of a seed as files
cargo xtask tools           build etcd, Kubernetes, Helm and KWOK from their Go modules (once, cached)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["ci"] => ci::all(),
        ["test"] => ci::test(&ci::WORKSPACE),
        ["e2e"] => ci::test(&ci::E2E),
        ["e2e", "--kubernetes", version] => {
            let version = format!("env.KUBERNETES='{version}'");
            ci::tools(&["--config", &version])?;
            // What compares answers word for word is about the newest version.
            let tests =
                ["--config", &version, "--test", "controllers", "--test", "scenarios", "--test", "crds"];
            ci::test(&[&ci::E2E[..], &tests].concat())
        }
        ["crds"] => crds::write(),
        ["crds", "--check"] => crds::check(),
        ["cloudformation"] => cloudformation::write(),
        ["cloudformation", "--check"] => cloudformation::check(),
        ["layers"] => layers::check(),
        ["tidy"] => tidy::check(),
        ["bench"] => bench::run(false),
        ["bench", "--peer"] => bench::run(true),
        ["instructions"] => instructions::check(),
        ["instructions", "--update"] => instructions::update(),
        ["differential", "record", seeds] => differential::record(seeds),
        ["differential", "show", seed] => differential::show(seed),
        ["tools"] => ci::tools(&[]),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        other => bail!("unknown command {:?}\n{HELP}", other.join(" ")),
    }
}

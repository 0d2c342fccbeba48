//! `karpenter`: the one binary. Each subcommand has its own file.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod crds;
mod plan;
mod up;

/// Objects come and go by the thousand: this allocator is a third faster at it than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Just-in-time nodes for any Kubernetes cluster.
#[derive(Parser)]
#[command(name = "karpenter", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Crds(crds::Args),
    Plan(plan::Args),
    Up(up::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Crds(args) => crds::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Plan(args) => plan::run(&args),
        Command::Up(args) => up::run(&args),
    };
    result.unwrap_or_else(|error| {
        // The chain of causes in one line: what failed, then why.
        #[expect(clippy::print_stderr, reason = "this is where errors reach the user")]
        {
            eprintln!("error: {error:#}");
        }
        ExitCode::FAILURE
    })
}

/// Prints the result of a command.
fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader may have seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

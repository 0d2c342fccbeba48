//! `karpenter`: the one binary. Each subcommand has its own file.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod controller;
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
    /// Launch and remove the nodes of a cluster; takes the flags of the original controller
    #[command(disable_help_flag = true)]
    Controller {
        /// --provider kwok, aws or azure, --kubeconfig PATH, and the flags that --help lists
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    Crds(crds::Args),
    Plan(plan::Args),
    Up(up::Args),
}

/// Whether the process was started as the original controller is: in a cluster, with flags only.
fn is_controller(arguments: &[String]) -> bool {
    let has_subcommand =
        arguments.first().is_some_and(|first| !first.starts_with('-') || first == "--version");
    !has_subcommand && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result =
        if is_controller(&arguments) { controller::run(arguments) } else { run(Cli::parse().command) };
    result.unwrap_or_else(|error| {
        // The chain of causes in one line: what failed, then why.
        #[expect(clippy::print_stderr, reason = "this is where errors reach the user")]
        {
            eprintln!("error: {error:#}");
        }
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Controller { arguments } => controller::run(arguments),
        Command::Crds(args) => crds::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Plan(args) => plan::run(&args),
        Command::Up(args) => up::run(&args),
    }
}

/// Waits for Ctrl-C or a polite request to end.
async fn interrupted() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for signals")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("listening for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// Prints the result of a command.
fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader may have seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

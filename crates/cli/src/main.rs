//! `karpenter`: the one binary. Each subcommand has its own file.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory as _, Parser, Subcommand};

#[cfg(feature = "azure")]
mod azure_client;
mod configure;
mod connect;
mod controller;
mod crds;
mod doctor;
mod example;
mod plan;
mod signals;
mod smoke;
mod terminal;
mod up;

/// Objects come and go by the thousand: this allocator is a third faster at it than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Just-in-time nodes for any Kubernetes cluster.
#[derive(Parser)]
#[command(name = "karpenter", version, arg_required_else_help = true, max_term_width = 100)]
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
    /// Print a script that completes commands and flags in a shell
    Completion {
        /// The shell; `source <(karpenter completion bash)` uses the script at once
        #[arg(value_enum)]
        shell: Shell,
    },
    Configure(configure::Args),
    Crds(crds::Args),
    Doctor(doctor::Args),
    Example(example::Args),
    Plan(plan::Args),
    Smoke(smoke::Args),
    Up(up::Args),
    /// Print the version
    Version,
}

/// A shell that completions can be made for.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// The exit status where the command line itself is wrong, as `sysexits.h` has it: 1 and 2 say something about clusters.
const USAGE: u8 = 64;

/// What is wrong with the command line.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The error that the command line is wrong.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// Whether the process was started as the original controller is: in a cluster, with flags only.
fn is_controller(arguments: &[String]) -> bool {
    let has_subcommand =
        arguments.first().is_some_and(|first| !first.starts_with('-') || first == "--version");
    !has_subcommand && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = if is_controller(&arguments) {
        controller::run(arguments)
    } else {
        match Cli::try_parse() {
            Ok(cli) => run(cli.command),
            Err(answer) => return said(&answer),
        }
    };
    result.unwrap_or_else(|error| {
        complain(&error);
        if error.is::<Usage>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
    })
}

/// Prints help, the version, or what is wrong with the command line.
fn said(answer: &clap::Error) -> ExitCode {
    let is_wrong = answer.use_stderr();
    // Nobody may be left to read it.
    let _ = answer.print();
    if is_wrong { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

#[expect(clippy::print_stderr, reason = "this is where errors reach the user")]
fn complain(error: &anyhow::Error) {
    eprintln!("error: {}", in_one_line(error));
}

/// The chain of causes: what failed, then why. Many errors repeat what is below them; it is said once.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if !said.iter().any(|known| known.contains(&text)) {
            said.push(text);
        }
    }
    said.join(": ")
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Controller { arguments } => controller::run(arguments),
        Command::Completion { shell } => completion(shell).map(|()| ExitCode::SUCCESS),
        Command::Configure(args) => configure::run(&args),
        Command::Crds(args) => crds::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Doctor(args) => doctor::run(&args),
        Command::Example(args) => example::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Plan(args) => plan::run(&args),
        Command::Smoke(args) => smoke::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Version => print(&version()).map(|()| ExitCode::SUCCESS),
    }
}

fn version() -> String {
    let commit = controller::COMMIT.map(|commit| format!(" ({commit})")).unwrap_or_default();
    format!("karpenter {}{commit}\n", controller::VERSION)
}

/// Prints the script by which a shell completes commands and flags.
fn completion(shell: Shell) -> Result<()> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Zsh => clap_complete::Shell::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "karpenter", &mut script);
    print(&String::from_utf8(script).context("reading the script")?)
}

/// Waits for Ctrl-C or another request to end.
async fn interrupted() -> Result<()> {
    signals::Signals::listen()?.received().await;
    Ok(())
}

/// Prints the result of a command.
fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader may have seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error that tells its cause, and has it, too.
    #[derive(Debug)]
    struct Telling(io::Error);

    impl std::fmt::Display for Telling {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "failed to read 'a': {}", self.0)
        }
    }

    impl std::error::Error for Telling {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn the_command_line_is_described_without_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_line_of_any_help_has_more_than_a_hundred_columns() {
        let mut command = Cli::command().term_width(100);
        command.build();
        for subcommand in command.get_subcommands_mut() {
            let help = subcommand.render_long_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", subcommand.get_name());
            }
        }
    }

    #[test]
    fn a_cause_is_said_once_and_every_cause_is_said() {
        let cause = || io::Error::other("no such file");
        let error = anyhow::Error::new(Telling(cause())).context("finding the cluster");
        assert_eq!(in_one_line(&error), "finding the cluster: failed to read 'a': no such file");
        let error = anyhow::Error::new(cause()).context("reading b").context("starting");
        assert_eq!(in_one_line(&error), "starting: reading b: no such file");
    }
}

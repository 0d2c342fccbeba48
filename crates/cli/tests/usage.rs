//! The command line itself: help, versions, completions, and what is said of one that is wrong.

use std::process::{Command, Output};

/// Runs the program where no cluster is known.
fn karpenter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(arguments)
        .env_clear()
        .env("KUBECONFIG", "/nowhere/config")
        .output()
        .expect("running karpenter")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("answers are text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are text")
}

const COMMANDS: [&str; 8] =
    ["completion", "configure", "controller", "crds", "doctor", "plan", "up", "version"];

#[test]
fn help_has_a_usage_line_and_at_most_a_hundred_columns() {
    let of_commands = COMMANDS.map(|command| vec![command, "--help"]);
    let of_providers =
        ["kwok", "aws", "azure"].map(|provider| vec!["controller", "--provider", provider, "--help"]);
    for arguments in of_commands.iter().chain(&of_providers).map(Vec::as_slice).chain([&["--help"][..]]) {
        let output = karpenter(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let text = stdout(&output);
        assert!(text.contains("\nUsage: karpenter"), "{arguments:?}: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn help_of_the_controller_lists_the_flags_of_this_program_too() {
    for arguments in
        [&["controller", "--help"][..], &["controller", "-h"], &["controller", "--provider=aws", "-help"]]
    {
        let text = stdout(&karpenter(arguments));
        assert!(
            text.contains("\nUsage: karpenter controller [--provider NAME] [--kubeconfig FILE] [FLAGS]\n"),
            "{text}"
        );
        for flag in ["  --provider ", "  --kubeconfig ", "  --metrics-port "] {
            assert!(text.lines().any(|line| line.starts_with(flag)), "{flag} is not in\n{text}");
        }
    }
}

#[test]
fn a_command_line_that_is_wrong_is_told_apart_from_all_answers() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["plan", "--nonsense"],
        &["plan", "-f", "a", "--kubeconfig", "b"],
        &["plan", "--explain", "a/b", "--disruption"],
        &["doctor", "--provider", "aws"],
        &["doctor", "--provider", "gcp", "--cluster-name", "c"],
        &["crds", "--provider", "gcp"],
        &["completion", "tcsh"],
        &["up", "--port", "many"],
        &["controller", "--nonsense"],
        &["controller", "--provider", "gcp"],
        &["controller", "--provider"],
    ] {
        let output = karpenter(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn the_controller_checks_its_flags_before_it_looks_for_a_cluster() {
    for (arguments, expected) in [
        (&["--nonsense"][..], "error: parsing flags, flag provided but not defined: -nonsense\n"),
        (
            &["--metrics-port", "x"],
            "error: parsing flags, invalid value \"x\" for flag -metrics-port: parse error\n",
        ),
        (
            &["--feature-gates", "NodeRepair=perhaps"],
            "error: parsing feature gates, NodeRepair is \"perhaps\"; expected true or false\n",
        ),
        (
            // Only one provider has the flag, and it is that one's answer that counts.
            &["--vm-memory-overhead-percent", "much"],
            "error: parsing flags, invalid value \"much\" for flag -vm-memory-overhead-percent: parse error\n",
        ),
        (
            &["--provider", "kwok", "--cluster-name", "c"],
            "error: parsing flags, flag provided but not defined: -cluster-name\n",
        ),
    ] {
        let output = karpenter(&[&["controller"], arguments].concat());
        assert_eq!((stderr(&output).as_str(), output.status.code()), (expected, Some(64)));
    }
    // With the right ones a cluster is what is missing.
    let output = karpenter(&["controller", "--cluster-name", "c"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: no cluster is known: reading /nowhere/config: No such file or directory (os error 2); --kubeconfig \
         names another file\n"
    );
}

#[test]
fn the_version_is_told() {
    let expected = concat!("karpenter ", env!("CARGO_PKG_VERSION"));
    for arguments in ["version", "--version"] {
        assert!(stdout(&karpenter(&[arguments])).starts_with(expected), "{arguments}");
    }
}

#[test]
fn shells_complete_commands_and_flags() {
    for shell in ["bash", "fish", "zsh"] {
        let script = stdout(&karpenter(&["completion", shell]));
        for word in COMMANDS.into_iter().chain(["ignore-unknown", "remove-node"]) {
            assert!(script.contains(word), "{word} is not completed in {shell}");
        }
    }
}

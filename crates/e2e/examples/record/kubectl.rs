//! What people do with kubectl.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use e2e::tools::{self, Tool};

use crate::recorder::Stage;

const COMMANDS: &str = include_str!("kubectl.txt");

/// Runs all commands of `kubectl.txt`, each paragraph as a sequence of its own.
pub(crate) async fn record(stage: &Stage) -> Result<()> {
    let kubectl = tools::path(Tool::Kubectl)?;
    for paragraph in COMMANDS.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let lines: Vec<&str> = paragraph.lines().filter(|line| !line.starts_with('#')).collect();
        // The last command gives the sequence its name; those before it prepare.
        let Some(last) = lines.iter().rev().find(|line| line.starts_with("kubectl ")) else { continue };
        let id = stage.begin(&last["kubectl ".len()..])?;
        let mut at = 0;
        while at < lines.len() {
            let command = lines[at].replace("$id", &id);
            let mut input = String::new();
            at += 1;
            while at < lines.len() && !lines[at].starts_with("kubectl ") {
                input.push_str(&lines[at].replace("$id", &id));
                input.push('\n');
                at += 1;
            }
            let words = split(command.strip_prefix("kubectl ").context("a command")?);
            let (program, home, config, namespace) =
                (kubectl.clone(), stage.folder.path().to_owned(), stage.kubeconfig(), id.clone());
            let run = move || run(program.as_ref(), &words, &input, &home, &config, &namespace);
            let output = tokio::task::spawn_blocking(run).await??;
            writeln!(std::io::stdout(), "$ {command}\n{output}")?;
        }
    }
    Ok(())
}

fn run(
    program: &std::ffi::OsStr,
    words: &[String],
    input: &str,
    home: &std::path::Path,
    config: &std::path::Path,
    namespace: &str,
) -> Result<String> {
    let mut child = Command::new(program)
        .args(words)
        .args(["--namespace", namespace])
        .env("KUBECONFIG", config)
        .env("KUBECACHEDIR", home.join("cache"))
        .env("KUBERC", "off")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Commands that read nothing close it.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).lines().take(3).collect::<Vec<_>>().join("\n"))
}

/// Words, in which single quotes keep spaces.
fn split(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for one in command.chars() {
        match one {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().into_iter().for_each(|word| word.push(other)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

//! Whether Microsoft's types understand what is said to Azure and by it. Entry: [`understood_by_azure_types`].

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::tools::{self, Tool};

/// Reads exchanges, one line of JSON each, as the Azure of our tests records them; what Microsoft's types do not know or
/// read otherwise is an error. How many bodies were looked at.
pub fn understood_by_azure_types(exchanges: &str) -> Result<usize> {
    let mut child = Command::new(tools::path(Tool::AzureTypes)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("running azure-types")?;
    let mut input = child.stdin.take().context("azure-types reads nothing")?;
    // It says nothing until it has read everything, so that nobody waits for the other.
    input.write_all(exchanges.as_bytes()).context("writing to azure-types")?;
    drop(input);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "Microsoft's types do not understand everything:\n{said}");
    let last = said.trim_end().lines().last().unwrap_or_default();
    let number = last.split(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("azure-types ended with {last:?}"))
}

//! Whether Microsoft's validator finds what is said to Azure and by it in Microsoft's specifications. Entry:
//! [`valid_to_oav`].

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::tools;

/// Reads exchanges, one line of JSON each, as the Azure of our tests records them; what is not in the specification of
/// that operation and API version is an error. How many exchanges were looked at.
pub fn valid_to_oav(exchanges: &str) -> Result<usize> {
    let (oav, sdk) = (tools::azure_oav()?, tools::azure_sdk()?);
    // Machines of AKS are in a preview that only the SDK for Python has.
    let machines = tempfile::NamedTempFile::new()?;
    let written = Command::new(&sdk.python)
        // Nothing is written beside the sources.
        .arg("-B")
        .arg(sdk.script.with_file_name("swagger.py"))
        .stdout(machines.reopen()?)
        .stderr(Stdio::inherit())
        .status()
        .context("running swagger.py")?;
    ensure!(written.success(), "swagger.py ended with {written}");
    let mut child = oav
        .command()
        .arg(machines.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("running oav")?;
    let mut input = child.stdin.take().context("oav reads nothing")?;
    // It says nothing until it has read everything, so that nobody waits for the other.
    input.write_all(exchanges.as_bytes()).context("writing to oav")?;
    drop(input);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "oav finds mistakes:\n{said}");
    let last = said.trim_end().lines().last().unwrap_or_default();
    let number = last.split(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("oav ended with {last:?}"))
}

//! Runs a complete control plane until it is interrupted, to try things by hand.
//!
//! It prints the line that points kubectl at it and waits for the end of its input.

use std::io::{self, Write as _};

use anyhow::Result;
use e2e::{ControlPlane, tools};

fn main() -> Result<()> {
    let plane = ControlPlane::start()?;
    let kubectl = tools::path(tools::Tool::Kubectl)?;
    writeln!(io::stdout(), "export KUBECONFIG={}", plane.kubeconfig_path().display())?;
    writeln!(io::stdout(), "alias kubectl={}", kubectl.display())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    plane.stop();
    Ok(())
}

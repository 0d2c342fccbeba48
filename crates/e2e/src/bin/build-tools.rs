//! Builds every Go program that tests run, so that the first test does not sit there silently for minutes.

use anyhow::Result;
use e2e::tools;

fn main() -> Result<()> {
    tools::build_all()?;
    Ok(())
}

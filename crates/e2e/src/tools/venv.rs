//! Programs in Python: their pinned packages in an environment of their own, installed on first use.
//!
//! ```text
//! <cache>/moto-<digest>/.lock       held while the packages are installed
//!                      /venv        the environment
//!                      /installed   made when it is complete
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

use super::{SHOWN_LINES, Workshop, both_streams, fnv1a, last_lines};

const MOTO: &str = "tools/moto";

/// A program in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The interpreter that knows the packages.
    pub python: PathBuf,
    /// What it runs.
    pub script: PathBuf,
}

impl Workshop {
    /// The moto server with our launcher.
    pub(super) fn moto(&self) -> Result<Program> {
        let sources = self.sources.join(MOTO);
        let requirements = sources.join("requirements.txt");
        let pinned = fs::read_to_string(&requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let folder = self.cache.join(format!("moto-{:016x}", fnv1a(&[&pinned])));
        let (environment, installed) = (folder.join("venv"), folder.join("installed"));
        let program = Program { python: environment.join("bin/python"), script: sources.join("launch.py") };
        if installed.exists() {
            return Ok(program);
        }

        let _lock = self.lock(&folder, "moto")?;
        // The process that held the lock may have installed it.
        if !installed.exists() {
            (self.say)("installing moto once, about 1 minute ...");
            // What an installation that was interrupted left is not to be trusted.
            let _ = fs::remove_dir_all(&environment);
            self.make_environment(&environment)?;
            let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
            run(Command::new(&program.python).args(install).arg(&requirements), "installing moto")?;
            fs::write(&installed, "")?;
        }
        Ok(program)
    }

    fn make_environment(&self, environment: &Path) -> Result<()> {
        let made = Command::new(&self.python).args(["-m", "venv"]).arg(environment).output();
        match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "Python 3.11 or newer with its module `venv` is needed to run moto: install it from your package manager"
                )
            }
            made => succeed(&made?, "making an environment for moto"),
        }
    }
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    succeed(&command.output().with_context(|| format!("{what} failed"))?, what)
}

fn succeed(output: &Output, what: &str) -> Result<()> {
    if !output.status.success() {
        bail!("{what} failed:\n{}", last_lines(&both_streams(output), SHOWN_LINES));
    }
    Ok(())
}

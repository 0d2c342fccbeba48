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

/// Where a program in Python comes from.
struct Source {
    /// What it is called.
    name: &'static str,
    /// Its folder below `tools`.
    folder: &'static str,
    script: &'static str,
    /// How long a first installation takes, for the person who waits.
    duration: &'static str,
}

const MOTO: Source = Source { name: "moto", folder: "moto", script: "launch.py", duration: "about 1 minute" };
const AZURE_SDK: Source = Source {
    name: "Azure's SDK for Python",
    folder: "azure-sdk",
    script: "walk.py",
    duration: "about 1 minute",
};

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
        self.program(&MOTO)
    }

    /// A walk through Azure's API by its official SDK.
    pub(super) fn azure_sdk(&self) -> Result<Program> {
        self.program(&AZURE_SDK)
    }

    fn program(&self, source: &Source) -> Result<Program> {
        let name = source.name;
        let sources = self.sources.join("tools").join(source.folder);
        let requirements = sources.join("requirements.txt");
        let pinned = fs::read_to_string(&requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let folder = self.cache.join(format!("{}-{:016x}", source.folder, fnv1a(&[&pinned])));
        let (environment, installed) = (folder.join("venv"), folder.join("installed"));
        let program = Program { python: environment.join("bin/python"), script: sources.join(source.script) };
        if installed.exists() {
            return Ok(program);
        }

        let _lock = self.lock(&folder, name)?;
        // The process that held the lock may have installed it.
        if !installed.exists() {
            (self.say)(&format!("installing {name} once, {} ...", source.duration));
            // What an installation that was interrupted left is not to be trusted.
            let _ = fs::remove_dir_all(&environment);
            self.make_environment(&environment, name)?;
            let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
            run(
                Command::new(&program.python).args(install).arg(&requirements),
                &format!("installing {name}"),
            )?;
            fs::write(&installed, "")?;
        }
        Ok(program)
    }

    fn make_environment(&self, environment: &Path, name: &str) -> Result<()> {
        let made = Command::new(&self.python).args(["-m", "venv"]).arg(environment).output();
        match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "Python 3.11 or newer with its module `venv` is needed to run {name}: install it from your package manager"
                )
            }
            made => succeed(&made?, &format!("making an environment for {name}")),
        }
    }
}

pub(super) fn run(command: &mut Command, what: &str) -> Result<()> {
    succeed(&command.output().with_context(|| format!("{what} failed"))?, what)
}

fn succeed(output: &Output, what: &str) -> Result<()> {
    if !output.status.success() {
        bail!("{what} failed:\n{}", last_lines(&both_streams(output), SHOWN_LINES));
    }
    Ok(())
}

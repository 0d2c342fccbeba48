//! Programs for Node.js: their pinned packages, installed on first use.
//!
//! ```text
//! <cache>/azure-oav-<digest>/.lock         held while the packages are installed
//!                           /node_modules  the packages
//!                           /installed     made when they are complete
//! ```

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::venv::run;
use super::{Workshop, fnv1a};

const OAV: &str = "azure-oav";
const PINS: [&str; 2] = ["package.json", "package-lock.json"];

/// A program for Node.js.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeProgram {
    /// What `node` runs.
    pub script: PathBuf,
    /// The folder that it finds its packages in, which is its variable `PACKAGES`.
    pub packages: PathBuf,
}

impl NodeProgram {
    /// The program, to be given arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(&self.script).env("PACKAGES", &self.packages);
        command
    }
}

impl Workshop {
    /// Microsoft's validator of what is said to Azure and by it.
    pub(super) fn azure_oav(&self) -> Result<NodeProgram> {
        let sources = self.sources.join("tools").join(OAV);
        let read = |name: &str| {
            let file = sources.join(name);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let pinned = PINS.iter().map(|name| read(name)).collect::<Result<Vec<_>>>()?;
        let digest = fnv1a(&pinned.iter().map(String::as_str).collect::<Vec<_>>());
        let packages = self.cache.join(format!("{OAV}-{digest:016x}"));
        let program = NodeProgram { script: sources.join("check.mjs"), packages: packages.clone() };
        let installed = packages.join("installed");
        if installed.exists() {
            return Ok(program);
        }

        let _lock = self.lock(&packages, OAV)?;
        // The process that held the lock may have installed it.
        if !installed.exists() {
            self.check_npm()?;
            (self.say)("installing oav once, about 1 minute ...");
            for (name, text) in PINS.iter().zip(&pinned) {
                fs::write(packages.join(name), text)?;
            }
            // It removes what an installation that was interrupted left.
            let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
            run(Command::new(&self.npm).args(install).current_dir(&packages), "installing oav")?;
            fs::write(&installed, "")?;
        }
        Ok(program)
    }

    fn check_npm(&self) -> Result<()> {
        match Command::new(&self.npm).arg("--version").output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "Node.js 20 or newer with `npm` is needed to run oav: install it from your package manager"
                )
            }
            asked => asked.map(drop).context("cannot run `npm --version`"),
        }
    }
}

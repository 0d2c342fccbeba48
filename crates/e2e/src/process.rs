//! A child process that cannot outlive its parent, not even one that was killed with SIGKILL.
//!
//! Without unsafe code a child cannot ask the kernel for a signal when its parent dies, but a pipe tells the
//! same: every program is started through a shell that leaves a watcher behind and then becomes the program.
//!
//! ```text
//! test process --pipe--> watcher (reads; blocks)     in one process group of their own,
//!        \------child--> program                     so Ctrl-C reaches only the test process
//! ```
//!
//! The test process holds the only writing end and never writes while the program runs.
//! When it ends, however it ends, the watcher reads end-of-file, kills the program and removes its files.
//! A regular [`Process::stop`] kills the program itself and then dismisses the watcher with a newline.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};

/// `$1` is the directory to remove, or empty; the rest is the program and its arguments.
///
/// `$$` stays the process id of the shell, which is that of the program once `exec` has replaced the shell.
/// The pause lets the other programs of the directory, killed by their own watchers, stop writing to it.
const WATCHDOG: &str = r#"
leftovers=$1
shift
exec 3<&0 </dev/null
(
    read -r dismissed <&3 && exit
    kill -KILL $$
    [ -z "$leftovers" ] && exit
    sleep 1
    rm -rf -- "$leftovers"
) &
exec 3<&-
exec "$@"
"#;

/// A running program whose output goes to a log file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lifeline: ChildStdin,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; `leftovers` is removed if this process dies before it stops the program.
    pub(crate) fn spawn(
        program: &Path,
        args: &[String],
        log: PathBuf,
        leftovers: Option<&Path>,
    ) -> Result<Self> {
        let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(leftovers.unwrap_or(Path::new("")))
            .arg(program)
            .args(args)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let lifeline = child.stdin.take().context("the pipe asked for is there")?;
        Ok(Self { child, lifeline, log })
    }

    /// How the program ended, if it did.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// What the program has written so far.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Asks the program to end, with SIGTERM, without waiting.
    pub fn terminate(&mut self) -> Result<()> {
        // The standard library only knows SIGKILL.
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &process]).status().context("cannot run kill")?;
        ensure!(status.success(), "kill -TERM {process} failed");
        Ok(())
    }

    /// Sends SIGKILL without waiting, so that several programs can die at the same time.
    pub(crate) fn kill(&mut self) {
        // The only possible failure is that it has already ended.
        let _ = self.child.kill();
    }

    /// Kills the program and waits until it is gone.
    pub fn stop(&mut self) {
        self.kill();
        let _ = self.child.wait();
        let _ = self.lifeline.write_all(b"\n");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::time::Duration;

    use super::*;
    use crate::poll;

    fn shell(script: &str, dir: &Path) -> Process {
        let args = ["-c".to_owned(), script.to_owned()];
        Process::spawn(Path::new("/bin/sh"), &args, dir.join("log"), Some(dir)).unwrap()
    }

    fn wait(process: &mut Process) -> ExitStatus {
        poll("the end of the program", Duration::from_secs(10), || process.exit_status()).unwrap()
    }

    #[test]
    fn the_exit_status_and_the_output_are_those_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("echo out; echo err >&2; exit 7", dir.path());
        assert_eq!(wait(&mut process).code(), Some(7));
        assert_eq!(process.log().unwrap(), "out\nerr\n");
    }

    #[test]
    fn a_stopped_program_leaves_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 1000", dir.path());
        process.stop();
        assert!(process.exit_status().unwrap().is_some());
        assert!(dir.path().join("log").exists());
    }

    #[test]
    fn a_program_can_be_asked_to_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut process =
            shell("trap 'echo bye; exit 3' TERM; echo hi; while :; do sleep 0.1; done", dir.path());
        poll("the program to listen", Duration::from_secs(10), || {
            Ok(process.log()?.contains("hi").then_some(()))
        })
        .unwrap();
        process.terminate().unwrap();
        assert_eq!(wait(&mut process).code(), Some(3));
        assert_eq!(process.log().unwrap(), "hi\nbye\n");
    }

    #[test]
    fn a_cut_lifeline_kills_the_program_and_removes_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 1000", dir.path());
        // What the kernel does when this process dies: the pipe closes and nobody stops the program.
        let mut other = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        drop(std::mem::replace(&mut process.lifeline, other.stdin.take().unwrap()));
        other.wait().unwrap();

        assert_eq!(wait(&mut process).signal(), Some(9));
        poll("the directory to vanish", Duration::from_secs(10), || Ok((!dir.path().exists()).then_some(())))
            .unwrap();
    }
}

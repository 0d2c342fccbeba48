//! Signals that ask the process to end: Ctrl-C, a polite kill, Ctrl-\ and a terminal that is closed.

use std::future::poll_fn;
use std::task::Poll;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from its creation on, so that a signal is not lost before somebody waits for it.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let mut wanted = vec![SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
        // Under nohup the process is to outlive its terminal. Systems without this file have nohup, too, but no
        // other way to ask without unsafe code.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !is_ignored(&status, SignalKind::hangup()) {
            wanted.push(SignalKind::hangup());
        }
        let signals: std::io::Result<Vec<Signal>> = wanted.into_iter().map(signal).collect();
        Ok(Self(signals.context("listening for signals")?))
    }

    /// Waits for any of them.
    pub(crate) async fn received(&mut self) {
        poll_fn(|context| {
            let any = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if any { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Whether the parent had the process ignore a signal, by Linux' status of the process.
fn is_ignored(status: &str, signal: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_the_parent_ignored_is_known() {
        let status = |mask: &str| format!("Name:\tkarpenter\nSigBlk:\tffffffffffffffff\nSigIgn:\t{mask}\n");
        for (mask, ignored) in [
            ("0000000000000001", true),
            ("0000000000001001", true),
            ("0000000000001000", false),
            ("0000000000000000", false),
            ("", false),
        ] {
            assert_eq!(is_ignored(&status(mask), SignalKind::hangup()), ignored, "{mask}");
        }
        assert!(!is_ignored("", SignalKind::hangup()), "a system without the file");
    }
}

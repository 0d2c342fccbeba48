//! The terminal of `karpenter up`: one line for each decision, with the time, while the controller works.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use api::names::labels;
use clock::Clock;
use cloud::Overlays;
use cluster::costs::price_by_labels;
use cluster::instance_types::InstanceType;
use jiff::tz::TimeZone;
use runtime::logs::{self, Line};
use runtime::settings::LogLevel;
use runtime::{Cluster, Settings};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::Instant;

use super::decisions::{Facts, Teller, Told};

/// Where lines are told.
#[derive(Clone)]
pub(crate) struct Terminal {
    clock: Clock,
    zone: TimeZone,
}

impl Terminal {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, zone: TimeZone::system() }
    }

    /// Tells one line. A terminal that is gone must not end the cluster, which its signals do.
    pub(crate) fn say(&self, verb: &str, text: &str) {
        let time = self.clock.now().to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let line =
            if verb.is_empty() { format!("{time}  {text}\n") } else { format!("{time}  {verb:<8} {text}\n") };
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
}

/// Hears what the controller logs, unless it is to be quiet, and has the whole log written to `log`, which is a file
/// or, if it is `-`, standard error.
pub(crate) fn listen(quiet: bool, log: Option<&Path>, clock: Clock) -> Result<UnboundedReceiver<Line>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let settings = log.map(|path| {
        let path =
            if path.as_os_str() == "-" { "stderr".to_owned() } else { format!("file://{}", path.display()) };
        Settings { log_level: LogLevel::Debug, log_output_paths: vec![path], ..Settings::default() }
    });
    let hear = move |line| {
        if !quiet {
            // Nobody hears any more when the cluster ends.
            let _ = sender.send(line);
        }
    };
    logs::install_with(settings.as_ref(), clock, hear).map_err(|error| anyhow!(error))?;
    Ok(receiver)
}

/// Tells decisions for ever.
pub(crate) async fn tell(mut heard: UnboundedReceiver<Line>, facts: Known, terminal: Terminal) {
    let mut teller = Teller::default();
    let say = |told: Told| terminal.say(told.verb, &told.text);
    loop {
        let due = teller.due();
        tokio::select! {
            line = heard.recv() => match line {
                Some(line) => teller.hear(&line, &facts, Instant::now()).into_iter().for_each(say),
                None => std::future::pending().await,
            },
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                teller.take().into_iter().for_each(say);
            }
        }
    }
}

/// What this process knows of its cluster.
pub(crate) struct Known {
    pub(crate) cluster: Cluster,
    pub(crate) overlays: Option<Overlays>,
    pub(crate) types: Arc<[InstanceType]>,
}

impl Facts for Known {
    fn pool(&self, claim: &str) -> String {
        let state = self.cluster.read();
        let labels = state.node_claims.named(claim).and_then(|claim| claim.metadata.labels.as_ref());
        labels.and_then(|labels| labels.get(labels::NODEPOOL)).cloned().unwrap_or_default()
    }

    fn pods(&self, claim: &str) -> usize {
        self.cluster.read().pods_expected_on(claim).count()
    }

    fn zone(&self, node: &str) -> String {
        let state = self.cluster.read();
        state
            .nodes
            .named(node)
            .map(|node| node.metadata.labels.text(labels::ZONE).to_owned())
            .unwrap_or_default()
    }

    fn price(&self, pool: &str, instance_type: &str, capacity_type: &str, zone: &str) -> f64 {
        let corrected = self.overlays.as_ref().and_then(|overlays| overlays.apply(pool, &self.types).ok());
        let label = |key: &str| match key {
            labels::INSTANCE_TYPE => instance_type,
            labels::CAPACITY_TYPE => capacity_type,
            labels::ZONE => zone,
            _ => "",
        };
        price_by_labels(label, corrected.as_ref().unwrap_or(&self.types))
    }
}

//! Metrics: every series of the process, and their page in Prometheus' text format.
//!
//! ```text
//!   Registry ── one Family per name ── one Series per set of label values
//! ```
//!
//! Label values come in the order in which a metric names its labels; those of a metric with more labels come
//! after its own. Entries: [`Registry`] for occasional changes, [`Family`] and [`Series`] for frequent ones.

mod family;
mod process;
mod quantiles;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::labels::LabelSets;
use api::names::metrics::{self as names, Metric, MoreLabels, status};
use api::names::values::{CONSOLIDATION_MULTI, CONSOLIDATION_SINGLE};
use api::provider::Provider;
use parking_lot::{Mutex, RwLock};

pub use family::{Family, Series};

/// Brings series up to date just before they are shown.
type Collector = Box<dyn Fn(&Registry) + Send + Sync>;

/// All series. Clones share them.
#[derive(Clone, Default)]
pub struct Registry(Arc<Inner>);

#[derive(Default)]
struct Inner {
    families: RwLock<BTreeMap<String, Family>>,
    collectors: Mutex<Vec<Collector>>,
    well_known: Vec<String>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

/// Which program is running.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The release.
    pub version: &'a str,
    /// The revision of the source.
    pub commit: &'a str,
    /// What compiled it.
    pub compiler: &'a str,
}

impl Registry {
    /// No series yet. Metrics of nodes have one label for each well-known label of the provider.
    pub fn for_provider(provider: Provider) -> Self {
        let well_known = LabelSets::for_provider(provider).metric_labels().into_iter().collect();
        Self(Arc::new(Inner { well_known, ..Inner::default() }))
    }

    /// The names of the labels that metrics of nodes have besides their own, in order.
    pub fn well_known(&self) -> &[String] {
        &self.0.well_known
    }

    /// Adds to a counter or a gauge.
    pub fn add(&self, metric: &'static Metric, labels: &[&str], by: f64) {
        self.family(metric).add(labels, by);
    }

    /// Sets a gauge.
    pub fn set(&self, metric: &'static Metric, labels: &[&str], to: f64) {
        self.family(metric).set(labels, to);
    }

    /// Adds an observation to a histogram or a summary.
    pub fn observe(&self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.family(metric).observe(labels, value);
    }

    /// Removes a series.
    pub fn remove(&self, metric: &'static Metric, labels: &[&str]) {
        self.family(metric).remove(labels);
    }

    /// Removes all series with these values, given as names and values of labels; with none, all series.
    pub fn remove_where(&self, metric: &'static Metric, labels: &[(&str, &str)]) {
        self.family(metric).remove_where(labels);
    }

    /// Makes these the gauges of one object: those that it had before and has no more are removed.
    pub fn replace(
        &self,
        metric: &'static Metric,
        owner: &str,
        series: impl IntoIterator<Item = (Vec<String>, f64)>,
    ) {
        self.family(metric).replace(owner, series);
    }

    /// The value of a counter or gauge, or the number of observations of a histogram or summary.
    pub fn value(&self, metric: &'static Metric, labels: &[&str]) -> Option<f64> {
        self.family(metric).value(labels)
    }

    /// One series, to be changed often.
    pub fn series(&self, metric: &'static Metric, labels: &[&str]) -> Series {
        self.family(metric).series(labels)
    }

    /// All series of a metric.
    pub fn family(&self, metric: &'static Metric) -> Family {
        debug_assert!(metric.more_labels != MoreLabels::Object, "{} needs a kind", metric.name);
        if let Some(family) = self.0.families.read().get(metric.name) {
            return family.clone();
        }
        let more = if metric.more_labels == MoreLabels::WellKnown { &*self.0.well_known } else { &[] };
        self.define(metric.name.to_owned(), metric, more)
    }

    /// All series of a metric that exists once per kind of object, such as `nodeclaim`; see
    /// [`status::object_labels`] for its labels.
    pub fn family_of_kind(&self, metric: &'static Metric, kind: &str, object_labels: &[String]) -> Family {
        self.define(status::name(metric, kind), metric, object_labels)
    }

    /// All series of such a metric under its older name, which all kinds share.
    pub fn family_of_all_kinds(&self, metric: &'static Metric) -> Family {
        let labels: Vec<String> = status::SHARED_LABELS.iter().map(|label| (*label).to_owned()).collect();
        self.define(status::shared_name(metric), &status::shared(metric), &labels)
    }

    fn define(&self, name: String, metric: &Metric, more: &[String]) -> Family {
        let mut families = self.0.families.write();
        families.entry(name).or_insert_with_key(|name| Family::new(name, metric, more)).clone()
    }

    /// Calls this each time before the series are shown. It must not ask for more of the kind.
    pub fn collect(&self, collector: impl Fn(&Self) + Send + Sync + 'static) {
        self.0.collectors.lock().push(Box::new(collector));
    }

    /// Shows what the process uses. `live_heap` is what the allocator has given out; without it, it is
    /// estimated.
    pub fn collect_process(&self, live_heap: Option<fn() -> u64>) {
        self.collect(move |registry| process::collect(registry, live_heap));
    }

    /// Creates the series that exist from the beginning.
    pub fn begin(&self, build: Build<'_>) {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        self.set(&names::BUILD_INFO, &[build.version, build.compiler, arch, build.commit], 1.0);
        for consolidation in [CONSOLIDATION_MULTI, CONSOLIDATION_SINGLE] {
            self.add(&names::DISRUPTION_CONSOLIDATION_TIMEOUTS, &[consolidation], 0.0);
        }
    }

    /// The page of all series.
    pub fn page(&self) -> String {
        for collector in self.0.collectors.lock().iter() {
            collector(self);
        }
        let families: Vec<Family> = self.0.families.read().values().cloned().collect();
        let mut page = String::new();
        for family in families {
            text::write(&mut page, &family);
        }
        page
    }
}

#[cfg(test)]
mod tests;

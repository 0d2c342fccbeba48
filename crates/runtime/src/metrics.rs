//! Metrics: every series of the process, and their page in Prometheus' text format.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::names::metrics::{Metric, MetricKind};
use parking_lot::Mutex;

/// All series. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Mutex<BTreeMap<&'static str, Family>>>);

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    series: BTreeMap<Box<[Box<str>]>, f64>,
}

impl Registry {
    /// Adds to a counter or a gauge. Label values come in the order in which the metric names its labels.
    pub fn add(&self, metric: &'static Metric, labels: &[&str], by: f64) {
        self.with(metric, labels, |value| *value += by);
    }

    /// Sets a gauge.
    pub fn set(&self, metric: &'static Metric, labels: &[&str], to: f64) {
        self.with(metric, labels, |value| *value = to);
    }

    /// Adds an observation to a histogram or a summary.
    pub fn observe(&self, metric: &'static Metric, labels: &[&str], value: f64) {
        debug_assert!(matches!(metric.kind, MetricKind::Histogram(_) | MetricKind::Summary(_)));
        self.with(metric, labels, |sum| *sum += value);
    }

    /// Removes a series.
    pub fn remove(&self, metric: &'static Metric, labels: &[&str]) {
        let labels: Box<[Box<str>]> = labels.iter().map(|label| Box::from(*label)).collect();
        if let Some(family) = self.0.lock().get_mut(metric.name) {
            family.series.remove(&labels);
        }
    }

    fn with(&self, metric: &'static Metric, labels: &[&str], change: impl FnOnce(&mut f64)) {
        let labels: Box<[Box<str>]> = labels.iter().map(|label| Box::from(*label)).collect();
        let mut families = self.0.lock();
        let family =
            families.entry(metric.name).or_insert_with(|| Family { metric, series: BTreeMap::new() });
        debug_assert_eq!(family.metric.name, metric.name);
        change(family.series.entry(labels).or_default());
    }
}

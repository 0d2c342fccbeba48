//! The series of one metric.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::names::metrics::{Metric, MetricKind};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::quantiles::Window;

/// The values of a series' labels, in the order of the metric's labels. They are in one piece, which clones share:
/// pods have a dozen labels each, and most values are short.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels(Arc<str>);

impl Labels {
    /// What comes behind each value. It is less than all that values have, so that texts are in the order of values.
    const END: char = '\0';

    /// So many values, whatever is given.
    fn new<'a>(values: impl Iterator<Item = &'a str>, count: usize) -> Self {
        let mut text = String::new();
        for value in values.chain(std::iter::repeat("")).take(count) {
            text.extend(value.chars().filter(|one| *one != Self::END));
            text.push(Self::END);
        }
        Self(text.into())
    }

    /// One after the other.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(Self::END)
    }
}

/// All series of one metric. Clones share them.
#[derive(Clone, Debug)]
pub struct Family(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    help: &'static str,
    kind: MetricKind,
    labels: Vec<String>,
    series: Mutex<AllSeries>,
}

#[derive(Debug, Default)]
struct AllSeries {
    by_labels: BTreeMap<Labels, Series>,
    /// What each object had when it was last looked at.
    by_owner: BTreeMap<Box<str>, Vec<Labels>>,
}

impl Family {
    pub(super) fn new(name: &str, metric: &Metric, more: &[String]) -> Self {
        let labels = metric.labels.iter().map(|label| (*label).to_owned()).chain(more.iter().cloned());
        Self(Arc::new(Inner {
            name: name.to_owned(),
            help: metric.help,
            kind: metric.kind,
            labels: labels.collect(),
            series: Mutex::default(),
        }))
    }

    /// Adds to a counter or a gauge.
    pub fn add(&self, labels: &[&str], by: f64) {
        self.series(labels).add(by);
    }

    /// Sets a gauge.
    pub fn set(&self, labels: &[&str], to: f64) {
        self.series(labels).set(to);
    }

    /// Adds an observation to a histogram or a summary.
    pub fn observe(&self, labels: &[&str], value: f64) {
        self.series(labels).observe(value);
    }

    /// One series. Once it is removed, changes to it are not seen.
    pub fn series(&self, labels: &[&str]) -> Series {
        let labels = self.complete(labels.iter().copied());
        let mut all = self.0.series.lock();
        all.by_labels.entry(labels).or_insert_with(|| Series::new(self.0.kind)).clone()
    }

    /// Removes a series.
    pub fn remove(&self, labels: &[&str]) {
        let labels = self.complete(labels.iter().copied());
        self.0.series.lock().by_labels.remove(&labels);
    }

    /// Removes all series with these values, given as names and values of labels; with none, all series.
    pub fn remove_where(&self, labels: &[(&str, &str)]) {
        let positions: Option<Vec<(usize, &str)>> = labels
            .iter()
            .map(|(name, value)| Some((self.0.labels.iter().position(|label| label == name)?, *value)))
            .collect();
        debug_assert!(positions.is_some(), "{} has not all of {labels:?}", self.0.name);
        if let Some(wanted) = positions {
            let is_meant =
                |labels: &Labels| wanted.iter().all(|(at, value)| labels.values().nth(*at) == Some(*value));
            self.0.series.lock().by_labels.retain(|labels, _| !is_meant(labels));
        }
    }

    /// Makes these the gauges of one object: those that it had before and has no more are removed.
    pub fn replace(&self, owner: &str, series: impl IntoIterator<Item = (Vec<String>, f64)>) {
        debug_assert!(self.0.kind == MetricKind::Gauge, "{} is no gauge", self.0.name);
        let new: BTreeMap<Labels, f64> = series
            .into_iter()
            .map(|(labels, value)| (self.complete(labels.iter().map(String::as_str)), value))
            .collect();
        let mut all = self.0.series.lock();
        for labels in all.by_owner.remove(owner).unwrap_or_default() {
            if !new.contains_key(&labels) {
                all.by_labels.remove(&labels);
            }
        }
        if new.is_empty() {
            return;
        }
        all.by_owner.insert(owner.into(), new.keys().cloned().collect());
        for (labels, value) in new {
            all.by_labels.entry(labels).or_insert_with(|| Series::new(self.0.kind)).set(value);
        }
    }

    /// The value of a counter or gauge, or the number of observations of a histogram or summary.
    pub fn value(&self, labels: &[&str]) -> Option<f64> {
        let labels = self.complete(labels.iter().copied());
        self.0.series.lock().by_labels.get(&labels).map(Series::value)
    }

    /// The full name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The names of the labels, in the order in which their values are given.
    pub fn labels(&self) -> &[String] {
        &self.0.labels
    }

    pub(super) fn help(&self) -> &'static str {
        self.0.help
    }

    pub(super) fn kind(&self) -> MetricKind {
        self.0.kind
    }

    pub(super) fn all(&self) -> Vec<(Labels, Series)> {
        let all = self.0.series.lock();
        all.by_labels.iter().map(|(labels, series)| (labels.clone(), series.clone())).collect()
    }

    /// One value for each label, whatever the caller says: a page that cannot be read is worse than a wrong
    /// label.
    fn complete<'a>(&self, values: impl ExactSizeIterator<Item = &'a str>) -> Labels {
        debug_assert_eq!(values.len(), self.0.labels.len(), "{} has labels {:?}", self.0.name, self.0.labels);
        Labels::new(values, self.0.labels.len())
    }
}

/// One series. Clones share its value.
#[derive(Clone, Debug)]
pub struct Series(Arc<Value>);

#[derive(Debug)]
pub(super) enum Value {
    /// The bits of a floating-point number.
    Number(AtomicU64),
    Histogram(Box<Mutex<Histogram>>),
    Summary(Box<Mutex<Window>>),
}

impl Series {
    fn new(kind: MetricKind) -> Self {
        Self(Arc::new(match kind {
            MetricKind::Counter | MetricKind::Gauge => Value::Number(AtomicU64::new(0.0_f64.to_bits())),
            MetricKind::Histogram(bounds) => Value::Histogram(Box::new(Mutex::new(Histogram::new(bounds)))),
            MetricKind::Summary(objectives) => {
                Value::Summary(Box::new(Mutex::new(Window::new(objectives, Instant::now()))))
            }
        }))
    }

    /// Adds to a counter or a gauge.
    pub fn add(&self, by: f64) {
        match &*self.0 {
            Value::Number(bits) => {
                let sum = |bits| Some((f64::from_bits(bits) + by).to_bits());
                // It always gives a new value, so this never fails.
                let _ = bits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
            }
            Value::Histogram(_) | Value::Summary(_) => debug_assert!(false, "distributions are observed"),
        }
    }

    /// Sets a gauge.
    pub fn set(&self, to: f64) {
        match &*self.0 {
            Value::Number(bits) => bits.store(to.to_bits(), Ordering::Relaxed),
            Value::Histogram(_) | Value::Summary(_) => debug_assert!(false, "distributions are observed"),
        }
    }

    /// Adds an observation to a histogram or a summary.
    pub fn observe(&self, value: f64) {
        match &*self.0 {
            Value::Number(_) => debug_assert!(false, "only distributions are observed"),
            Value::Histogram(histogram) => histogram.lock().observe(value),
            Value::Summary(window) => window.lock().observe(value, Instant::now()),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "more than 2^53 observations take longer than anybody waits"
    )]
    pub(super) fn value(&self) -> f64 {
        match &*self.0 {
            Value::Number(bits) => f64::from_bits(bits.load(Ordering::Relaxed)),
            Value::Histogram(histogram) => histogram.lock().count() as f64,
            Value::Summary(window) => window.lock().count() as f64,
        }
    }

    pub(super) fn inner(&self) -> &Value {
        &self.0
    }
}

/// How many observations were at most as large as each bound.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// Not cumulative; the last is for everything above all bounds.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1].into(), sum: 0.0 }
    }

    fn observe(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    /// Each bound with the observations up to it; the last bound is infinite.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }
}

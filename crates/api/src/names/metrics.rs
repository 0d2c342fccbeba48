//! Metrics: names, labels, buckets and stages. Those of single providers are in [`aws`] and [`azure`], those
//! that exist once per kind of object in [`status`], those of the runtime in [`runtime`].

use std::fmt;

use super::Stage;

pub mod aws;
pub mod azure;
mod core;
pub mod runtime;
pub mod status;

pub use core::*;

/// What a metric measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Something that only grows.
    Counter,
    /// Something that comes and goes.
    Gauge,
    /// A distribution, by the upper bounds of its buckets.
    Histogram(&'static [f64]),
    /// A distribution, by quantiles and the error that each may have.
    Summary(&'static [(f64, f64)]),
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter => f.write_str("counter"),
            Self::Gauge => f.write_str("gauge"),
            Self::Histogram(buckets) => write!(f, "histogram{buckets:?}"),
            Self::Summary(objectives) => write!(f, "summary{objectives:?}"),
        }
    }
}

/// Which labels a metric has besides those that are always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreLabels {
    /// None.
    None,
    /// One per well-known label; see [`crate::labels::LabelSets::metric_labels`].
    WellKnown,
    /// Those that the kind of object is told apart by; see [`status::object_labels`].
    Object,
}

impl fmt::Display for MoreLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::WellKnown => "+well-known",
            Self::Object => "+object",
        })
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The full name. Of a metric per kind of object it is the part after the kind.
    pub name: &'static str,
    /// What it measures.
    pub kind: MetricKind,
    /// The labels that are always the same.
    pub labels: &'static [&'static str],
    /// Which other labels there are.
    pub more_labels: MoreLabels,
    /// How settled the metric is.
    pub stage: Stage,
    /// What the metric is for.
    pub help: &'static str,
}

/// Defines metrics whose documentation also is their help text.
macro_rules! metrics {
    (
        $(#[$list_doc:meta])* $list:ident;
        $(
            #[doc = $help:literal]
            $name:ident = $metric:literal, $kind:expr, [$($label:literal),*] $(+ $more:ident)?, $stage:ident;
        )*
    ) => {
        $crate::names::define! {
            $(#[$list_doc])* $list: $crate::names::metrics::Metric;
            $(#[doc = $help]
            $name = $crate::names::metrics::Metric {
                name: $metric,
                kind: $kind,
                labels: &[$($label),*],
                more_labels: metrics!(@more $($more)?),
                stage: $crate::names::Stage::$stage,
                help: $help.trim_ascii(),
            };)*
        }
    };
    (@more $more:ident) => { $crate::names::metrics::MoreLabels::$more };
    (@more) => { $crate::names::metrics::MoreLabels::None };
}
use metrics;

/// Buckets for durations in seconds.
pub const DURATION_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0,
];

/// Prometheus' own buckets.
pub const DEFAULT_BUCKETS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Quantiles of summaries, each with the error that it may have.
pub const OBJECTIVES: &[(f64, f64)] = &[(0.0, 0.01), (0.5, 0.01), (0.9, 0.01), (0.99, 0.01), (1.0, 0.01)];

/// Buckets of which each is `factor` times the one before. Multiplying step by step gives the same numbers to
/// the last bit as Prometheus' Go client.
const fn exponential<const N: usize>(start: f64, factor: f64) -> [f64; N] {
    let mut buckets = [start; N];
    let mut i = 1;
    while i < N {
        buckets[i] = buckets[i - 1] * factor;
        i += 1;
    }
    buckets
}

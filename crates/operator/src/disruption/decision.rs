//! What a method decides, and what users and metrics are told of it.

use api::names::events::Event;
use api::names::metrics::Metric;
use runtime::events::{About, Recorder};
use runtime::metrics::Registry;

use super::candidate::Candidate;
use super::command::Command;
use super::stay::{Kept, Stay};

/// What a method decides.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// What is to be done.
    pub(crate) commands: Vec<Command>,
    /// What users are told.
    pub(crate) notices: Vec<Notice>,
    /// What is measured.
    pub(crate) measures: Vec<Measure>,
    /// Candidates that stay, and why.
    pub(crate) stays: Vec<Kept>,
    /// Whether all candidates were looked at and there is nothing to do about them, so that there is no need to
    /// look again until the cluster, the candidates or the budgets change.
    pub(crate) nothing: bool,
}

impl Decision {
    /// Notes why a candidate stays, and tells users if they are to know.
    pub(crate) fn keep(&mut self, candidate: &Candidate, why: Stay) {
        self.notices.extend(why.notices(candidate).into_iter().flatten());
        self.stays.push(Kept { node: candidate.name().into(), why });
    }
}

/// What users are told about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The event.
    pub(crate) event: &'static Event,
    /// What it is about.
    pub(crate) about: About,
    /// What it says.
    pub(crate) message: String,
    /// What it is not repeated for, besides the object itself.
    pub(crate) repeats: String,
}

impl Notice {
    /// Tells.
    pub(crate) fn publish(self, recorder: &Recorder) {
        let uid = self.about.uid.clone();
        recorder.publish(self.event, self.about, self.message, &[&uid, &self.repeats]);
    }
}

/// A change of a metric.
#[derive(Clone, Debug)]
pub(crate) enum Measure {
    /// A counter grows.
    Add(&'static Metric, Vec<Box<str>>, f64),
    /// A histogram gets a value.
    Observe(&'static Metric, Vec<Box<str>>, f64),
}

impl Measure {
    /// Takes it down.
    pub(crate) fn publish(&self, metrics: &Registry) {
        match self {
            Self::Add(metric, labels, by) => metrics.add(metric, &texts(labels), *by),
            Self::Observe(metric, labels, value) => metrics.observe(metric, &texts(labels), *value),
        }
    }
}

fn texts(labels: &[Box<str>]) -> Vec<&str> {
    labels.iter().map(AsRef::as_ref).collect()
}

/// Why what was decided does not hold any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Invalid {
    /// What kind of reason it is.
    pub(crate) cause: Cause,
    /// What is wrong.
    pub(crate) message: String,
}

impl Invalid {
    /// A reason of a kind.
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into() }
    }
}

/// What kind of reason keeps a decision from being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A budget does not allow it any more, or pods are expected on a node.
    Budget,
    /// Pods would have no place, or another one than was thought.
    Scheduling,
    /// Nodes are no candidates any more.
    Churn,
}

impl Cause {
    /// As events name it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Scheduling => "scheduling",
            Self::Churn => "churn",
        }
    }

    /// Whether it counts as a failed validation of the candidates. What the scheduler thinks does not.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::Budget | Self::Churn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reason_has_the_name_that_events_use() {
        let causes = [Cause::Budget, Cause::Scheduling, Cause::Churn];
        assert_eq!(causes.map(Cause::text), ["budget", "scheduling", "churn"]);
        assert_eq!(causes.map(Cause::is_counted), [true, false, true]);
    }
}

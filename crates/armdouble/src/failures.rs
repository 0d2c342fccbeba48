//! What the next calls are told instead of what they asked for.

use http::Method;

use crate::answer::Refusal;
use crate::call::Facts;
use crate::route::Kind;

/// How often something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// So many times from now on.
    Next(u32),
    /// From now on.
    Always,
}

/// When and how a call fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum How {
    /// The call itself is refused.
    AtOnce(Refusal),
    /// The call is refused, and what it asked for is there nevertheless, as something that failed.
    LeftBehind(Refusal),
    /// The call is accepted, and what it began fails.
    Later(Refusal),
    /// The connection breaks before anything happened.
    LostBefore,
    /// The connection breaks when everything is done.
    LostAfter,
    /// No answer ever comes, as where a firewall drops packets.
    Silent,
}

/// Which calls fail, and how.
///
/// ```
/// use armdouble::{Failure, Kind};
/// use http::Method;
///
/// let failure = Failure::of(Method::PUT, Kind::VirtualMachine)
///     .size("Standard_D2s_v3")
///     .zone("1")
///     .later(409, "ZonalAllocationFailed", "No capacity.")
///     .times(3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    method: Method,
    kind: Kind,
    name: Option<String>,
    size: Option<String>,
    zone: Option<String>,
    priority: Option<String>,
    times: Times,
    pub(crate) how: How,
}

impl Failure {
    /// The next call of a method to a kind of resource is answered by 500.
    pub fn of(method: Method, kind: Kind) -> Self {
        let how = How::AtOnce(Refusal::new(500, "InternalServerError", "An internal error occurred."));
        Self { method, kind, name: None, size: None, zone: None, priority: None, times: Times::Next(1), how }
    }

    /// Only calls that name this resource.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only machines of this size.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.size = Some(size.into());
        self
    }

    /// Only machines in this zone, such as `1`; empty for machines without a zone.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// Only machines of this priority, such as `Spot`.
    #[must_use]
    pub fn priority(mut self, priority: impl Into<String>) -> Self {
        self.priority = Some(priority.into());
        self
    }

    /// As often as this.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Times::Next(times);
        self
    }

    /// From now on.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = Times::Always;
        self
    }

    /// The call itself is refused.
    #[must_use]
    pub fn at_once(self, status: u16, code: &str, message: &str) -> Self {
        self.refused(Refusal::new(status, code, message))
    }

    /// The call itself is refused in these words.
    #[must_use]
    pub fn refused(mut self, refusal: Refusal) -> Self {
        self.how = How::AtOnce(refusal);
        self
    }

    /// The call is refused in these words, and what it asked for is there nevertheless, as something that failed.
    #[must_use]
    pub fn left_behind(mut self, status: u16, code: &str, message: &str) -> Self {
        self.how = How::LeftBehind(Refusal::new(status, code, message));
        self
    }

    /// The call is accepted, and the operation that it began fails.
    #[must_use]
    pub fn later(self, status: u16, code: &str, message: &str) -> Self {
        self.fails(Refusal::new(status, code, message))
    }

    /// The call is accepted, and the operation that it began fails in these words.
    #[must_use]
    pub fn fails(mut self, refusal: Refusal) -> Self {
        self.how = How::Later(refusal);
        self
    }

    /// The connection breaks before anything happened.
    #[must_use]
    pub fn lost_before(mut self) -> Self {
        self.how = How::LostBefore;
        self
    }

    /// The connection breaks when everything is done.
    #[must_use]
    pub fn lost_after(mut self) -> Self {
        self.how = How::LostAfter;
        self
    }

    /// No answer ever comes, as where a firewall drops packets.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.how = How::Silent;
        self
    }

    fn matches(&self, method: &Method, kind: Kind, facts: &Facts) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
        };
        self.method == *method
            && self.kind == kind
            && is(&self.name, &facts.name)
            && is(&self.size, &facts.size)
            && is(&self.zone, &facts.zone)
            && is(&self.priority, &facts.priority)
    }
}

/// All that is to fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Vec<Failure>);

impl Failures {
    pub(crate) fn add(&mut self, failure: Failure) {
        self.0.push(failure);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What is to happen to a call, in the order in which it was said.
    pub(crate) fn take(
        &mut self,
        method: &Method,
        kind: Kind,
        facts: &Facts,
        stage: fn(&How) -> bool,
    ) -> Option<How> {
        let found = self.0.iter().position(|each| stage(&each.how) && each.matches(method, kind, facts))?;
        let failure = &mut self.0[found];
        let how = failure.how.clone();
        if let Times::Next(left) = &mut failure.times {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.0.remove(found);
            }
        }
        Some(how)
    }
}

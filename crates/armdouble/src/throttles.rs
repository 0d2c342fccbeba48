//! How many calls a window of time has, and what those beyond are told.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;

use crate::answer::Refusal;
use crate::route::Kind;

/// Which calls count together, and how many of them are allowed.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// The kind of resource; all kinds if there is none.
    pub kind: Option<Kind>,
    /// The methods; all if there are none.
    pub methods: Vec<Method>,
    /// How many calls a window allows.
    pub limit: u32,
    /// How long a window is; it begins with the first call after the last one.
    pub window: Duration,
}

impl Throttle {
    /// So many calls that change a kind of resource in a window.
    pub fn writes(kind: Kind, limit: u32, window: Duration) -> Self {
        let methods = vec![Method::PUT, Method::PATCH, Method::POST, Method::DELETE];
        Self { kind: Some(kind), methods, limit, window }
    }

    /// So many calls that read a kind of resource in a window.
    pub fn reads(kind: Kind, limit: u32, window: Duration) -> Self {
        Self { kind: Some(kind), methods: vec![Method::GET], limit, window }
    }

    /// So many calls of any kind in a window.
    pub fn everything(limit: u32, window: Duration) -> Self {
        Self { kind: None, methods: Vec::new(), limit, window }
    }
}

#[derive(Clone, Debug)]
struct Counted {
    throttle: Throttle,
    began: Option<Timestamp>,
    calls: u32,
}

/// All limits, with what was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttles(Vec<Counted>);

impl Throttles {
    pub(crate) fn add(&mut self, throttle: Throttle) {
        self.0.push(Counted { throttle, began: None, calls: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a call; refused if a window is full. A refused call does not count.
    pub(crate) fn count(&mut self, method: &Method, kind: Kind, now: Timestamp) -> Result<(), Refusal> {
        let applies = |each: &Counted| {
            each.throttle.kind.is_none_or(|wanted| wanted == kind)
                && (each.throttle.methods.is_empty() || each.throttle.methods.contains(method))
        };
        for each in self.0.iter_mut().filter(|each| applies(each)) {
            let is_over = each.began.is_none_or(|began| elapsed(began, now) >= each.throttle.window);
            if is_over {
                each.began = Some(now);
                each.calls = 0;
            }
            if each.calls >= each.throttle.limit {
                let spent = each.began.map_or(Duration::ZERO, |began| elapsed(began, now));
                return Err(refusal(kind, method, each.throttle.window.saturating_sub(spent)));
            }
        }
        for each in self.0.iter_mut().filter(|each| applies(each)) {
            each.calls += 1;
        }
        Ok(())
    }
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or(Duration::ZERO)
}

fn refusal(kind: Kind, method: &Method, left: Duration) -> Refusal {
    // Whole seconds, and never before the window ends.
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    let after = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let refusal = match kind {
        Kind::ResourceGraph => Refusal::new(
            429,
            "RateLimiting",
            "Please provide below info when asking for support: the client application has been throttled and should \
             not attempt to repeat the request until an amount of time has elapsed.",
        )
        .header("x-ms-user-quota-remaining", "0")
        .header("x-ms-user-quota-resets-after", after),
        Kind::VirtualMachine | Kind::Extension => Refusal::new(
            429,
            "OperationNotAllowed",
            "The server rejected the request because too many requests have been received for this subscription.",
        )
        .detail(serde_json::json!({
            "code": "TooManyRequests", "target": format!("{method}VM"),
            "message": format!("{{\"operationGroup\":\"{method}VM\",\"allowedRequestCount\":0}}"),
        }))
        .header("x-ms-ratelimit-remaining-resource", format!("Microsoft.Compute/{method}VM3Min;0")),
        _ => Refusal::new(
            429,
            "TooManyRequests",
            format!(
                "The request is being throttled as the limit has been reached for operation type - {kind:?}_{method}."
            ),
        ),
    };
    refusal.header("retry-after", seconds.to_string())
}

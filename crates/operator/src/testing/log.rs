//! What is logged in a test.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Keeps what is logged on this thread, as long as it lives.
pub(crate) struct Logged {
    lines: Arc<Mutex<Vec<String>>>,
    /// With one subscriber alone, a line that another thread without any comes to first is switched off for all.
    _second: Dispatch,
    _guard: DefaultGuard,
}

impl Logged {
    /// Keeps what is logged from now on.
    pub(crate) fn start() -> Self {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let second = Dispatch::new(Lines(Arc::clone(&lines)));
        let guard = tracing::subscriber::set_default(Lines(Arc::clone(&lines)));
        Self { lines, _second: second, _guard: guard }
    }

    /// The lines that contain a text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        self.lines.lock().iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {field}={value}");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

//! The log: one JSON object per line, with the keys and in the order that log pipelines of Karpenter expect.
//! Entries: [`install`] for a process that only writes it, [`install_with`] for one that also listens to it.

mod line;
mod sample;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;

use clock::Clock;
use parking_lot::Mutex;
pub use tracing::Level;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::settings::{LogLevel, Settings};
use line::Fields;
use sample::Sampler;

/// Libraries whose lines are of no interest unless they warn: what their names begin with. Not `aws`, which is ours.
const OTHERS: [&str; 8] = ["kube", "hyper", "tower", "h2", "rustls", "reqwest", "mio", "aws_"];

/// Where lines go.
enum Sink {
    Stdout,
    Stderr,
    File(Mutex<File>),
    #[cfg(test)]
    Memory(std::sync::Arc<Mutex<Vec<u8>>>),
}

impl Sink {
    /// Opens what a path means.
    fn open(path: &str) -> Result<Self, String> {
        match path {
            "stdout" => Ok(Self::Stdout),
            "stderr" => Ok(Self::Stderr),
            path => {
                let path = path.strip_prefix("file://").unwrap_or(path);
                let file = OpenOptions::new().append(true).create(true).open(path);
                file.map(|file| Self::File(Mutex::new(file)))
                    .map_err(|error| format!("opening log {path}, {error}"))
            }
        }
    }

    fn write(&self, line: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stdout => std::io::stdout().lock().write_all(line),
            Self::Stderr => std::io::stderr().lock().write_all(line),
            Self::File(file) => file.lock().write_all(line),
            #[cfg(test)]
            Self::Memory(memory) => memory.lock().write_all(line),
        }
    }
}

fn open(paths: &[String]) -> Result<Vec<Sink>, String> {
    paths.iter().map(|path| Sink::open(path)).collect()
}

/// Writes every log line of the process as the settings say, from now on.
///
/// `commit` is the revision of the source; without it lines do not name one.
pub fn install(settings: &Settings, commit: Option<&str>, clock: Clock) -> Result<(), String> {
    let log = Log::new(settings, commit, clock)?;
    let subscriber = tracing_subscriber::registry().with(log);
    tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())?;
    if commit.is_none() {
        tracing::info!("Unable to detect the revision of the source");
    }
    Ok(())
}

/// Has somebody hear every line of the process that is more than a detail, from now on; the log is written besides if
/// there are settings for it.
///
/// Whoever hears must not wait, and must not log.
pub fn install_with(
    settings: Option<&Settings>,
    clock: Clock,
    hear: impl Fn(Line) + Send + Sync + 'static,
) -> Result<(), String> {
    let log = settings.map(|settings| Log::new(settings, None, clock)).transpose()?;
    let listener = Listener { hear, alone: log.is_none() };
    let subscriber = tracing_subscriber::registry().with(log).with(listener);
    tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())
}

/// A line of the log, for whoever hears it.
#[derive(Debug)]
pub struct Line {
    /// How bad it is.
    pub level: Level,
    /// What happened.
    pub message: String,
    fields: Fields,
}

impl Line {
    /// A field as text; objects are `NAME` or `NAMESPACE/NAME`, and what is not there is empty.
    pub fn text(&self, name: &str) -> String {
        self.fields.get(name).map(line::plain).unwrap_or_default()
    }

    /// A line with fields, for tests of whoever hears it.
    pub fn new(level: Level, message: &str, fields: &[(&'static str, &str)]) -> Self {
        let mut all = Fields::default();
        for (name, value) in fields {
            all.text(name, value);
        }
        Self { level, message: message.to_owned(), fields: all }
    }
}

/// Has somebody hear lines.
struct Listener<F> {
    hear: F,
    /// Whether nobody writes a log, which would decide what is of interest.
    alone: bool,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>, F: Fn(Line) + 'static> Layer<S> for Listener<F> {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !self.alone || is_wanted(LogLevel::Info, metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if self.alone {
            keep_fields(attributes, id, &context);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if is_wanted(LogLevel::Info, metadata) {
            let mut own = Fields::default();
            event.record(&mut own);
            let fields = with_spans(&own, event, &context);
            (self.hear)(Line { level: *metadata.level(), message: own.message, fields });
        }
    }
}

/// Keeps what a span says for the lines that are written in it.
fn keep_fields<S: for<'a> LookupSpan<'a> + Subscriber>(
    attributes: &Attributes<'_>,
    id: &Id,
    context: &Context<'_, S>,
) {
    if let Some(span) = context.span(id) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }
}

/// What a line says, with what the spans say that it is in.
fn with_spans<S: for<'a> LookupSpan<'a> + Subscriber>(
    own: &Fields,
    event: &Event<'_>,
    context: &Context<'_, S>,
) -> Fields {
    let mut all = Fields::default();
    for span in
        context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
    {
        if let Some(fields) = span.extensions().get::<Fields>() {
            all.extend(fields);
        }
    }
    all.extend(own);
    all
}

/// Turns what happens into lines.
struct Log {
    level: LogLevel,
    commit: Option<Box<str>>,
    clock: Clock,
    outputs: Vec<Sink>,
    /// Where it says that it cannot write.
    errors: Vec<Sink>,
    sampler: Sampler,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Whether a line is of interest at a level.
fn is_wanted(level: LogLevel, metadata: &Metadata<'_>) -> bool {
    let crate_name = metadata.target().split("::").next().unwrap_or_default();
    if OTHERS.iter().any(|other| crate_name.starts_with(other)) {
        let least = if level == LogLevel::Error { Level::ERROR } else { Level::WARN };
        return *metadata.level() <= least;
    }
    // Spans give lines their context, whatever the level.
    metadata.is_span()
        || *metadata.level()
            <= match level {
                LogLevel::Debug => Level::DEBUG,
                LogLevel::Info => Level::INFO,
                LogLevel::Error => Level::ERROR,
            }
}

impl Log {
    fn new(settings: &Settings, commit: Option<&str>, clock: Clock) -> Result<Self, String> {
        Ok(Self {
            level: settings.log_level,
            commit: commit.map(Into::into),
            clock,
            outputs: open(&settings.log_output_paths)?,
            errors: open(&settings.log_error_output_paths)?,
            sampler: Sampler::default(),
        })
    }

    fn write(&self, line: &[u8]) {
        for output in &self.outputs {
            if let Err(error) = output.write(line) {
                let complaint = format!("failed to write a log line: {error}\n");
                for output in &self.errors {
                    // There is nobody left to tell.
                    let _ = output.write(complaint.as_bytes());
                }
            }
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_wanted(self.level, metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        keep_fields(attributes, id, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let now = self.clock.now();
        let metadata = event.metadata();
        if !self.sampler.allows(*metadata.level(), &own.message, now) {
            return;
        }
        let all = with_spans(&own, event, &context);
        let caller = (self.level == LogLevel::Debug).then(|| line::caller(metadata.file(), metadata.line()));
        let start = line::Start {
            level: *metadata.level(),
            time: now,
            caller,
            message: &own.message,
            commit: self.commit.as_deref(),
        };
        self.write(line::write(&start, &all).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    /// What is logged.
    fn logged(level: LogLevel, what: impl FnOnce()) -> String {
        let memory = Arc::default();
        let log = Log {
            level,
            commit: Some("abcdef0".into()),
            clock: Clock::starting_at("2026-01-02T03:04:05.678Z".parse().unwrap()),
            outputs: vec![Sink::Memory(Arc::clone(&memory))],
            errors: Vec::new(),
            sampler: Sampler::default(),
        };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log), what);
        String::from_utf8(memory.lock().clone()).unwrap()
    }

    fn some_lines() {
        let span =
            tracing::info_span!("reconcile", controller = "disruption", key = "default/a", reconcileID = "x");
        let _entered = span.enter();
        tracing::info!(NodePool = "general", NodeClaim = %"general-abc", "instance-types" = "a, b and 3 other(s)", "created nodeclaim");
        tracing::debug!(Pod = "default/web-1", count = 3, share = 0.5, ok = true, took = ?Duration::from_secs(2), "details");
        let inner = tracing::info_span!("inner", Node = "n-1", "provider-id" = tracing::field::Empty);
        inner.record("provider-id", "kwok://n-1");
        inner.in_scope(|| tracing::error!(error = "it \"broke\"\n", duration = "1s", "Reconciler error"));
        tracing::warn!(target: "hyper::client", "of a library");
        tracing::info!(target: "kube_client::client", "of a library");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_have_the_keys_and_the_order_that_pipelines_expect() {
        expect![[r#"
            {"level":"INFO","time":"2026-01-02T03:04:05.678Z","logger":"controller","message":"created nodeclaim","commit":"abcdef0","controller":"disruption","namespace":"default","name":"a","reconcileID":"x","NodePool":{"name":"general"},"NodeClaim":{"name":"general-abc"},"instance-types":"a, b and 3 other(s)"}
            {"level":"ERROR","time":"2026-01-02T03:04:05.678Z","logger":"controller","message":"Reconciler error","commit":"abcdef0","controller":"disruption","namespace":"default","name":"a","reconcileID":"x","Node":{"name":"n-1"},"provider-id":"kwok://n-1","duration":"1s","error":"it \"broke\"\n"}
            {"level":"WARN","time":"2026-01-02T03:04:05.678Z","logger":"controller","message":"of a library","commit":"abcdef0","controller":"disruption","namespace":"default","name":"a","reconcileID":"x"}
        "#]].assert_eq(&logged(LogLevel::Info, some_lines));
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_a_controller_of_objects_say_which_object() {
        let lines = logged(LogLevel::Info, || {
            let span = tracing::info_span!(
                "reconcile",
                controller = "state.pod",
                controllerGroup = Some(""),
                controllerKind = Some("Pod"),
                key = "default/a",
                reconcileID = "x"
            );
            span.in_scope(|| tracing::info!("seen"));
        });
        expect![[r#"
            {"level":"INFO","time":"2026-01-02T03:04:05.678Z","logger":"controller","message":"seen","commit":"abcdef0","controller":"state.pod","controllerGroup":"","controllerKind":"Pod","Pod":{"name":"a","namespace":"default"},"namespace":"default","name":"a","reconcileID":"x"}
        "#]]
        .assert_eq(&lines);
    }

    #[tokio::test(start_paused = true)]
    async fn debug_lines_name_their_place() {
        let lines = logged(LogLevel::Debug, some_lines);
        let debug = lines.lines().nth(1).unwrap();
        let (start, rest) = debug.split_once("\"caller\":\"src/logs.rs:").unwrap();
        let (_, rest) = rest.split_once("\",").unwrap();
        expect![[r#"{"level":"DEBUG","time":"2026-01-02T03:04:05.678Z","logger":"controller",..."message":"details","commit":"abcdef0","controller":"disruption","namespace":"default","name":"a","reconcileID":"x","Pod":{"name":"web-1","namespace":"default"},"count":3,"share":0.5,"ok":true,"took":"2s"}"#]].assert_eq(&format!("{start}...{rest}"));
    }

    #[tokio::test(start_paused = true)]
    async fn at_level_error_only_errors_are_written_with_their_context() {
        let lines = logged(LogLevel::Error, some_lines);
        assert_eq!(lines.lines().count(), 1);
        assert!(lines.contains(r#""level":"ERROR""#) && lines.contains(r#""controller":"disruption""#));
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_line_is_written_a_hundred_times_a_second_and_then_every_hundredth_time() {
        let lines = logged(LogLevel::Info, || {
            for number in 0..350 {
                tracing::info!(number, "often");
            }
            tracing::info!("seldom");
        });
        assert_eq!(lines.lines().filter(|line| line.contains("often")).count(), 102);
        assert_eq!(lines.lines().filter(|line| line.contains("seldom")).count(), 1);
    }

    #[test]
    fn whoever_listens_hears_what_is_more_than_a_detail() {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&heard);
        let hear = move |line: Line| {
            let shown = ["controller", "NodeClaim", "instance-types", "error"].map(|name| line.text(name));
            told.lock().push(format!("{} {} {}", line.level, line.message, shown.join("|")));
        };
        let listener = Listener { hear, alone: true };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(listener), some_lines);
        assert_eq!(
            *heard.lock(),
            [
                "INFO created nodeclaim disruption|general-abc|a, b and 3 other(s)|",
                "ERROR Reconciler error disruption|||it \"broke\"\n",
                "WARN of a library disruption|||",
            ]
        );
    }

    #[test]
    fn files_are_appended_to_and_must_be_possible() {
        let path = std::env::temp_dir().join(format!("karpenter-log-{}", std::process::id()));
        let text = path.to_string_lossy().into_owned();
        for _ in 0..2 {
            Sink::open(&text).unwrap().write(b"line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "line\nline\n");
        std::fs::remove_file(path).unwrap();
        assert!(Sink::open("/nowhere/at/all").is_err());
    }
}

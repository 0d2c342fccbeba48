//! Where processor time goes, in the format of Go's `pprof` tool.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use pprof::{ProfilerGuardBuilder, Report};

use super::{Answer, TEXT, respond};

/// How often to look per second.
const FREQUENCY: i32 = 100;
/// Where a look would do harm.
const BLOCKED: &[&str] = &["libc", "libgcc", "pthread", "vdso"];

/// Looks for some seconds.
pub(super) async fn profile(seconds: u64) -> Answer {
    let failed = |error: &dyn std::fmt::Display| {
        respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("Could not enable CPU profiling: {error}\n"))
    };
    let guard = match ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(BLOCKED).build() {
        Ok(guard) => guard,
        Err(error) => return failed(&error),
    };
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let report = match guard.report().build() {
        Ok(report) => report,
        Err(error) => return failed(&error),
    };
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    match zipped.write_all(&encode(&report)).and_then(|()| zipped.finish()) {
        Ok(body) => respond(StatusCode::OK, "application/octet-stream", body),
        Err(error) => failed(&error),
    }
}

/// Texts, functions and places by their numbers, which begin with one but for texts.
#[derive(Default)]
struct Tables {
    texts: BTreeMap<String, u64>,
    functions: BTreeMap<(u64, u64), u64>,
    places: BTreeMap<(u64, u64), u64>,
}

fn number<K: Ord>(table: &mut BTreeMap<K, u64>, key: K, first: u64) -> u64 {
    let next = first + table.len() as u64;
    *table.entry(key).or_insert(next)
}

/// The profile as a protocol buffer.
fn encode(report: &Report) -> Vec<u8> {
    let mut tables = Tables::default();
    let text = |tables: &mut Tables, text: &str| number(&mut tables.texts, text.to_owned(), 0);
    // The first text is always the empty one.
    text(&mut tables, "");
    let period = 1_000_000_000 / u64::from(FREQUENCY.unsigned_abs());
    let mut profile = Vec::new();
    for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
        let (kind, unit) = (text(&mut tables, kind), text(&mut tables, unit));
        message(&mut profile, 1, &[(1, kind), (2, unit)]);
    }
    for (frames, count) in &report.data {
        let count = u64::try_from(*count).unwrap_or_default();
        let (mut places, mut values, mut sample) = (Vec::new(), Vec::new(), Vec::new());
        // What looks is not looked for.
        for symbol in frames.frames.iter().flatten().skip_while(|symbol| looks(&symbol.name())) {
            let (name, file) = (text(&mut tables, &symbol.name()), text(&mut tables, &symbol.filename()));
            let function = number(&mut tables.functions, (name, file), 1);
            varint(&mut places, number(&mut tables.places, (function, u64::from(symbol.lineno())), 1));
        }
        varint(&mut values, count);
        varint(&mut values, count.saturating_mul(period));
        bytes(&mut sample, 1, &places);
        bytes(&mut sample, 2, &values);
        bytes(&mut profile, 2, &sample);
    }
    for ((function, line), id) in &tables.places {
        let mut place = Vec::new();
        field(&mut place, 1, *id);
        message(&mut place, 4, &[(1, *function), (2, *line)]);
        bytes(&mut profile, 4, &place);
    }
    for ((name, file), id) in &tables.functions {
        message(&mut profile, 5, &[(1, *id), (2, *name), (3, *name), (4, *file)]);
    }
    let (cpu, nanoseconds) = (text(&mut tables, "cpu"), text(&mut tables, "nanoseconds"));
    let mut texts: Vec<(&String, &u64)> = tables.texts.iter().collect();
    texts.sort_by_key(|(_, id)| **id);
    for (text, _) in texts {
        bytes(&mut profile, 6, text.as_bytes());
    }
    field(&mut profile, 10, u64::try_from(report.timing.duration.as_nanos()).unwrap_or_default());
    message(&mut profile, 11, &[(1, cpu), (2, nanoseconds)]);
    field(&mut profile, 12, period);
    profile
}

/// Whether a function belongs to the profiler itself.
fn looks(name: &str) -> bool {
    name.starts_with("backtrace::") || name.ends_with("::trace") || name.contains("perf_signal_handler")
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn field(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn message(out: &mut Vec<u8>, number: u64, fields: &[(u64, u64)]) {
    let mut inner = Vec::new();
    for (number, value) in fields {
        field(&mut inner, *number, *value);
    }
    bytes(out, number, &inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_seven_bits_per_byte() {
        let mut out = Vec::new();
        varint(&mut out, 300);
        field(&mut out, 1, 1);
        bytes(&mut out, 6, b"a");
        assert_eq!(out, [0xac, 0x02, 0x08, 0x01, 0x32, 0x01, b'a']);
    }

    #[tokio::test]
    async fn a_profile_is_a_zipped_protocol_buffer() {
        let answer = profile(1).await;
        assert_eq!(answer.status(), StatusCode::OK, "{:?}", answer.body());
        assert!(answer.body().starts_with(&[0x1f, 0x8b]));
    }
}

//! Replays what the Go libraries answered; see `vectors/README.md`.

use std::cmp::Ordering;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use units::{BudgetNodes, Format, GoDuration, Quantity, Schedule, Window, quantity};

fn rows<T: DeserializeOwned>(json: &str) -> Vec<T> {
    serde_json::from_str(json).expect("the vectors are well-formed")
}

#[derive(Deserialize)]
struct QuantityRow {
    text: String,
    #[serde(flatten)]
    valid: Option<ValidQuantity>,
}

#[derive(Deserialize)]
struct ValidQuantity {
    nanos: String,
    format: String,
    written: String,
    canonical: String,
    #[serde(default)]
    lossy: bool,
    value: Option<i64>,
    milli: Option<i64>,
    #[serde(default)]
    float: f64,
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

#[test]
fn quantities_are_read_and_printed_as_in_go() {
    let rows: Vec<QuantityRow> = rows(include_str!("vectors/quantity.json"));
    assert_eq!(rows.len(), 3115);
    for QuantityRow { text, valid } in rows {
        let read = text.parse::<Quantity>();
        let Some(expected) = valid else {
            assert!(read.is_err(), "{text:?} is invalid in Go, here {read:?}");
            continue;
        };
        let read = read.unwrap_or_else(|error| panic!("{text:?} is valid in Go: {error}"));
        assert_eq!(read.nanos().to_string(), expected.nanos, "{text:?}");
        assert_eq!(format_name(read.format()), expected.format, "{text:?}");
        assert!(expected.value.is_none_or(|value| value == read.value()), "{text:?}");
        assert!(expected.milli.is_none_or(|milli| milli == read.milli_value()), "{text:?}");
        assert!((read.as_f64() - expected.float).abs() <= expected.float.abs() * f64::EPSILON, "{text:?}");
        if expected.lossy {
            assert_eq!(read.to_string().parse(), Ok(read), "{text:?}");
        } else {
            assert_eq!(read.to_string(), expected.canonical, "{text:?}");
            assert_eq!(quantity::rewritten(&text).unwrap(), expected.written, "{text:?}");
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuantityPair {
    a: String,
    b: String,
    cmp: i32,
    sum: String,
    sum_format: String,
    difference: String,
    difference_format: String,
}

#[test]
fn quantities_compare_add_and_subtract_as_in_go() {
    let rows: Vec<QuantityPair> = rows(include_str!("vectors/quantity_pairs.json"));
    assert_eq!(rows.len(), 2000);
    for row in rows {
        let (a, b): (Quantity, Quantity) = (row.a.parse().unwrap(), row.b.parse().unwrap());
        let context = format!("{:?} and {:?}", row.a, row.b);
        assert_eq!(a.cmp(&b), row.cmp.cmp(&0), "{context}");
        assert_eq!(a == b, a.cmp(&b) == Ordering::Equal, "{context}");
        let (sum, difference) = (a + b, a - b);
        assert_eq!((sum.to_string(), format_name(sum.format())), (row.sum, &*row.sum_format), "{context}");
        assert_eq!(
            (difference.to_string(), format_name(difference.format())),
            (row.difference, &*row.difference_format),
            "{context}"
        );
    }
}

#[derive(Deserialize)]
struct DurationRow {
    text: String,
    nanos: Option<String>,
    printed: Option<String>,
}

#[test]
fn durations_are_read_and_printed_as_in_go() {
    let rows: Vec<DurationRow> = rows(include_str!("vectors/duration.json"));
    assert_eq!(rows.len(), 2083);
    for row in rows {
        let read = row.text.parse::<GoDuration>().ok();
        assert_eq!(read.map(|read| read.as_nanos().to_string()), row.nanos, "{:?}", row.text);
        assert_eq!(read.map(|read| read.to_string()), row.printed, "{:?}", row.text);
    }
}

#[derive(Deserialize)]
struct ScheduleRow {
    schedule: String,
    valid: bool,
    #[serde(default)]
    hits: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    after: String,
    next: Option<String>,
    duration: String,
    active: bool,
}

#[test]
fn schedules_hit_as_in_go() {
    let rows: Vec<ScheduleRow> = rows(include_str!("vectors/cron.json"));
    assert_eq!(rows.len(), 1296);
    for row in rows {
        let schedule = Schedule::parse(&row.schedule);
        assert_eq!(schedule.is_ok(), row.valid, "{:?}: {schedule:?}", row.schedule);
        let Ok(schedule) = schedule else { continue };
        for hit in row.hits {
            let after = hit.after.parse().unwrap();
            let next = schedule.next_after(after).map(|next| next.to_string());
            assert_eq!(next, hit.next, "{:?} after {}", row.schedule, hit.after);
            let window = Window { schedule: schedule.clone(), duration: hit.duration.parse().unwrap() };
            assert_eq!(window.is_active(after), hit.active, "{:?} at {}", row.schedule, hit.after);
        }
    }
}

#[derive(Deserialize)]
struct NodesRow {
    nodes: String,
    total: usize,
    allowed: Option<i32>,
}

#[test]
fn budgets_allow_as_many_nodes_as_in_go() {
    let rows: Vec<NodesRow> = rows(include_str!("vectors/nodes.json"));
    assert_eq!(rows.len(), 2524);
    for row in rows {
        let allowed = row.nodes.parse::<BudgetNodes>().ok().map(|nodes| nodes.resolve(row.total));
        assert_eq!(allowed, row.allowed, "{:?} of {}", row.nodes, row.total);
    }
}

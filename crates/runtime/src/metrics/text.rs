//! Prometheus' text format, version 0.0.4, as its Go client writes it: labels and series in order.

use std::fmt::Write as _;

use api::names::metrics::MetricKind;
use tokio::time::Instant;

use super::family::{Family, Series, Value};

/// Appends a metric and all of its series; nothing if there are none.
pub(super) fn write(page: &mut String, family: &Family) {
    let mut order: Vec<usize> = (0..family.labels().len()).collect();
    order.sort_by_key(|at| &family.labels()[*at]);
    let all = family.all();
    if all.is_empty() {
        return;
    }
    let in_order = all.iter().map(|(labels, series)| {
        let values: Vec<&str> = labels.values().collect();
        (order.iter().map(|at| values[*at]).collect::<Vec<&str>>(), series)
    });
    let mut in_order: Vec<(Vec<&str>, &Series)> = in_order.collect();
    in_order.sort_by(|(a, _), (b, _)| a.cmp(b));
    let kind = match family.kind() {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
        MetricKind::Summary(_) => "summary",
    };
    let name = family.name();
    let help = family.help().replace('\\', r"\\").replace('\n', r"\n");
    // Writing to a text cannot fail, here and below.
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    for (values, series) in in_order {
        let mut labels = String::new();
        for (at, value) in order.iter().zip(values) {
            push_label(&mut labels, &family.labels()[*at], value);
        }
        write_series(page, name, &labels, series);
    }
}

#[expect(clippy::cast_precision_loss, reason = "the format has no integers")]
fn write_series(page: &mut String, name: &str, labels: &str, series: &Series) {
    let mut line = |suffix: &str, extra: Option<(&str, f64)>, value: f64| {
        let mut all = labels.to_owned();
        if let Some((label, bound)) = extra {
            push_label(&mut all, label, &number(bound));
        }
        let all = if all.is_empty() { all } else { format!("{{{all}}}") };
        let _ = writeln!(page, "{name}{suffix}{all} {}", number(value));
    };
    match series.inner() {
        Value::Number(_) => line("", None, series.value()),
        Value::Histogram(histogram) => {
            let histogram = histogram.lock();
            for (bound, count) in histogram.cumulative() {
                line("_bucket", Some(("le", bound)), count as f64);
            }
            line("_sum", None, histogram.sum());
            line("_count", None, histogram.count() as f64);
        }
        Value::Summary(window) => {
            let mut window = window.lock();
            for (quantile, value) in window.quantiles(Instant::now()) {
                line("", Some(("quantile", quantile)), value);
            }
            line("_sum", None, window.sum());
            line("_count", None, window.count() as f64);
        }
    }
}

fn push_label(labels: &mut String, name: &str, value: &str) {
    if !labels.is_empty() {
        labels.push(',');
    }
    labels.push_str(name);
    labels.push_str("=\"");
    for c in value.chars() {
        match c {
            '\\' => labels.push_str(r"\\"),
            '"' => labels.push_str("\\\""),
            '\n' => labels.push_str(r"\n"),
            c => labels.push(c),
        }
    }
    labels.push('"');
}

/// A number as Go prints it: as short as possible, with an exponent of at least two digits when it is large
/// or small.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_go_prints_them() {
        let numbers = [0.0, 1.0, -2.5, 0.1, 123_456.0, 1_234_567.0, 1e21, 0.000_1, 0.000_012, 1e-8];
        let texts = numbers.map(number).join(" ");
        assert_eq!(texts, "0 1 -2.5 0.1 123456 1.234567e+06 1e+21 0.0001 1.2e-05 1e-08");
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(number).join(" "), "NaN +Inf -Inf");
    }
}

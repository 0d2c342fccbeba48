//! Times as Kubernetes reads and writes them, with Go's words for mistakes.

use jiff::Timestamp;

use crate::field_error::quoted;
use crate::time;

/// Reads a time of RFC 3339 and writes it in UTC without fractions.
pub(super) fn seconds(text: &str) -> Result<String, String> {
    let moment = parse(text, "2006-01-02T15:04:05Z07:00", false)?;
    Ok(if time::is_written_as(time::SECONDS, text) { text.to_owned() } else { time::seconds(moment) })
}

/// Reads a time with exactly six digits after the point and writes it in UTC.
pub(super) fn micros(text: &str) -> Result<String, String> {
    let moment = parse(text, "2006-01-02T15:04:05.000000Z07:00", true)?;
    Ok(if time::is_written_as(time::MICROS, text) { text.to_owned() } else { time::micros(moment) })
}

fn parse(text: &str, layout: &str, micros: bool) -> Result<Timestamp, String> {
    const PARTS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let shown = || quoted(text);
    let expected = |rest: &str, part: &str| {
        format!("parsing time {} as \"{layout}\": cannot parse {} as \"{part}\"", shown(), quoted(rest))
    };
    let mut rest = text;
    for part in PARTS {
        let digits = part.starts_with(|c: char| c.is_ascii_digit());
        let fits = rest.get(..part.len()).is_some_and(|found| {
            if digits { found.bytes().all(|byte| byte.is_ascii_digit()) } else { found == part }
        });
        if !fits {
            return Err(expected(rest, part));
        }
        rest = &rest[part.len()..];
    }
    let fraction =
        rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    if micros && fraction < 6 {
        return Err(expected(rest, ".000000"));
    }
    if fraction > 0 {
        rest = &rest[1 + if micros { 6 } else { fraction }..];
    }
    let zone = rest.strip_prefix('Z').map(|after| (1, after)).or_else(|| {
        let zone = rest.get(..6)?.as_bytes();
        let digits = [1, 2, 4, 5].iter().all(|index| zone[*index].is_ascii_digit());
        (b"+-".contains(&zone[0]) && zone[3] == b':' && digits).then(|| (6, &rest[6..]))
    });
    let Some((length, after)) = zone else { return Err(expected(rest, "Z07:00")) };
    if !after.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", shown(), quoted(after)));
    }
    let number = |range: std::ops::Range<usize>| {
        text.get(range).and_then(|part| part.parse::<i64>().ok()).unwrap_or(0)
    };
    let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", shown());
    let limits = [("month", number(5..7), 1, 12), ("hour", number(11..13), 0, 23)];
    let limits =
        limits.into_iter().chain([("minute", number(14..16), 0, 59), ("second", number(17..19), 0, 59)]);
    for (what, found, least, most) in limits {
        if found < least || found > most {
            return Err(out_of_range(what));
        }
    }
    debug_assert!(length == 1 || length == 6);
    text.parse::<Timestamp>().map_err(|_| out_of_range("day"))
}

#[cfg(test)]
mod tests {
    use super::{micros, seconds};

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(seconds("2024-01-01T02:00:00+02:00").unwrap(), "2024-01-01T00:00:00Z");
        assert_eq!(seconds("2024-01-01T02:00:00.5Z").unwrap(), "2024-01-01T02:00:00Z");
        assert_eq!(micros("2024-01-01T02:00:00.123456+02:00").unwrap(), "2024-01-01T00:00:00.123456Z");
    }

    #[test]
    fn mistakes_are_named_in_gos_words() {
        let layout = "2006-01-02T15:04:05Z07:00";
        for (text, problem) in [
            ("x", format!("parsing time \"x\" as \"{layout}\": cannot parse \"x\" as \"2006\"")),
            (
                "2024-1-1",
                format!("parsing time \"2024-1-1\" as \"{layout}\": cannot parse \"1-1\" as \"01\""),
            ),
            ("2024-13-01T02:00:00Z", "parsing time \"2024-13-01T02:00:00Z\": month out of range".to_owned()),
            ("2024-02-30T05:00:00Z", "parsing time \"2024-02-30T05:00:00Z\": day out of range".to_owned()),
            ("2024-01-01T02:00:00Zx", "parsing time \"2024-01-01T02:00:00Zx\": extra text: \"x\"".to_owned()),
        ] {
            assert_eq!(seconds(text).unwrap_err(), problem);
        }
        let layout = "2006-01-02T15:04:05.000000Z07:00";
        for (text, rest, part) in [
            ("2024-01-01T02:00:00Z", "Z", ".000000"),
            ("2024-01-01T02:00:00.1Z", ".1Z", ".000000"),
            ("2024-01-01T00:00:00.123456789Z", "789Z", "Z07:00"),
            ("2024-01-01T02:00:00.000000", "", "Z07:00"),
            ("2024-01-01 02:00:00Z", " 02:00:00Z", "T"),
        ] {
            let problem =
                format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{part}\"");
            assert_eq!(micros(text).unwrap_err(), problem);
        }
    }
}

//! Cron schedules of disruption budgets, always in UTC, in the dialect of the Go library that Karpenter uses.
//! Entries: [`Schedule`] and [`Window`].
//!
//! Five fields: minute, hour, day of month, month, day of week. Each is a comma-separated list of `*`, `?`,
//! `N`, `N-M`, and any of these with `/step`; `N/step` runs from N to the largest value. Months and weekdays
//! also have English three-letter names. Or one of `@yearly` `@annually` `@monthly` `@weekly` `@daily`
//! `@midnight` `@hourly` and `@every <duration>`.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::duration::{DurationError, GoDuration};

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Sunday is 0; unlike in other dialects it is not also 7.
const WEEKDAYS: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// A schedule that hits nowhere in the year of the start and the five after it is taken never to hit.
const SEARCH_YEARS: i16 = 5;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are not five fields.
    #[error(
        "invalid schedule {value:?}: it has {found} fields; expected five (minute, hour, day of month, \
         month, day of week) or one of @yearly, @monthly, @weekly, @daily, @hourly"
    )]
    FieldCount {
        /// The whole text.
        value: String,
        /// How many fields there are.
        found: usize,
    },
    /// The text starts with `@` but is no known descriptor.
    #[error(
        "invalid schedule {value:?}: expected one of @yearly, @annually, @monthly, @weekly, @daily, \
         @midnight, @hourly or @every followed by a duration"
    )]
    Descriptor {
        /// The whole text.
        value: String,
    },
    /// The duration after `@every` cannot be read.
    #[error("invalid schedule {value:?}: {source}")]
    Every {
        /// The whole text.
        value: String,
        /// What is wrong with the duration.
        #[source]
        source: DurationError,
    },
    /// A field has a part that cannot be read or is out of range.
    #[error("invalid schedule {value:?}: {part:?} is not {accepted}")]
    Field {
        /// The whole text.
        value: String,
        /// The part of a field that is wrong.
        part: String,
        /// What the field accepts.
        accepted: String,
    },
}

/// When something recurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Calendar(Calendar),
    Every(SignedDuration),
}

impl Schedule {
    /// Reads five cron fields or a descriptor. A time zone prefix is not accepted: schedules are in UTC.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let trimmed = text.trim();
        let kind = if trimmed.starts_with('@') {
            descriptor(trimmed)
        } else {
            calendar(trimmed).map(Kind::Calendar)
        };
        kind.map(Self)
    }

    /// The first hit strictly after `time`, or nothing if there is none within five years.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let second = i64::try_from(time.as_nanosecond().div_euclid(NANOS_PER_SECOND)).ok()?;
        match &self.0 {
            Kind::Every(delay) => Timestamp::from_second(second).ok()?.checked_add(*delay).ok(),
            Kind::Calendar(calendar) => {
                let start = Timestamp::from_second(second + 1).ok()?;
                let hit = calendar.first_from(TimeZone::UTC.to_datetime(start))?;
                TimeZone::UTC.to_timestamp(hit).ok()
            }
        }
    }
}

/// A span of time that opens at every hit of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// When the window opens.
    pub schedule: Schedule,
    /// How long it stays open.
    pub duration: GoDuration,
}

impl Window {
    /// Whether the window is open at `now`: the first hit after the time one duration ago has come.
    ///
    /// A schedule that never hits (31 February) counts as always open. In Karpenter the absent hit is the
    /// year 1, which is past; for a budget this is the safe side, since an open budget restricts.
    pub fn is_active(&self, now: Timestamp) -> bool {
        let since = now.saturating_sub(SignedDuration::from(self.duration)).unwrap_or(Timestamp::MIN);
        self.schedule.next_after(since).is_none_or(|hit| hit <= now)
    }
}

/// Five sets of values, one bit per value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Calendar {
    minutes: u64,
    hours: u64,
    days: Field,
    months: u64,
    weekdays: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// Whether the field contains `*` or `?` without a step above one.
    star: bool,
}

impl Field {
    fn has(self, value: i8) -> bool {
        has_bit(self.bits, value)
    }
}

fn has_bit(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

impl Calendar {
    /// The first matching minute that does not start before `start`.
    fn first_from(&self, start: DateTime) -> Option<DateTime> {
        let last_year = start.year() + SEARCH_YEARS;
        let mut date = start.date();
        // Hits are on whole minutes, so a start within a minute moves on to the next.
        let mut hour = start.hour();
        let mut minute = start.minute() + i8::from(start.second() > 0);
        while date.year() <= last_year {
            if self.matches_date(date)
                && let Some((hour, minute)) = self.first_time_from(hour, minute)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            (hour, minute) = (0, 0);
        }
        None
    }

    fn first_time_from(&self, first_hour: i8, first_minute: i8) -> Option<(i8, i8)> {
        (first_hour..24).filter(|hour| has_bit(self.hours, *hour)).find_map(|hour| {
            let from = if hour == first_hour { first_minute } else { 0 };
            (from..60).find(|minute| has_bit(self.minutes, *minute)).map(|minute| (hour, minute))
        })
    }

    /// Both day fields must match if either is a star, otherwise one is enough.
    fn matches_date(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        let matches_day = if self.days.star || self.weekdays.star { day && weekday } else { day || weekday };
        has_bit(self.months, date.month()) && matches_day
    }
}

fn descriptor(text: &str) -> Result<Kind, CronError> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let duration = text
                .strip_prefix("@every ")
                .ok_or_else(|| CronError::Descriptor { value: text.to_owned() })?
                .parse::<GoDuration>()
                .map_err(|source| CronError::Every { value: text.to_owned(), source })?;
            // Whole seconds only, and at least one.
            let seconds = SignedDuration::from(duration).as_secs().max(1);
            return Ok(Kind::Every(SignedDuration::from_secs(seconds)));
        }
    };
    calendar(fields).map(Kind::Calendar)
}

fn calendar(text: &str) -> Result<Calendar, CronError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return Err(CronError::FieldCount { value: text.to_owned(), found: fields.len() });
    };
    let read = |field, bounds: &Bounds| {
        bounds.read_field(field).map_err(|part| CronError::Field {
            value: text.to_owned(),
            part: part.to_owned(),
            accepted: bounds.accepted(),
        })
    };
    Ok(Calendar {
        minutes: read(minutes, &MINUTES)?.bits,
        hours: read(hours, &HOURS)?.bits,
        days: read(days, &DAYS)?,
        months: read(months, &MONTHS)?.bits,
        weekdays: read(weekdays, &WEEKDAYS)?,
    })
}

/// The values a field can take.
struct Bounds {
    min: u32,
    max: u32,
    /// Names of the values from `min` on.
    names: &'static [&'static str],
}

impl Bounds {
    fn accepted(&self) -> String {
        let names = match self.names {
            [first, .., last] => format!(" (or {first} to {last})"),
            _ => String::new(),
        };
        format!(
            "*, a number from {} to {}{names}, or an ascending range N-M, each with an optional /step",
            self.min, self.max
        )
    }

    /// Reads a whole field; the error is the part that is wrong. Empty parts are skipped, so that a field of
    /// commas only matches nothing.
    fn read_field<'a>(&self, field: &'a str) -> Result<Field, &'a str> {
        let mut result = Field { bits: 0, star: false };
        for part in field.split(',').filter(|part| !part.is_empty()) {
            let read = self.read_part(part).ok_or(part)?;
            result.bits |= read.bits;
            result.star |= read.star;
        }
        Ok(result)
    }

    /// Reads `*`, `N` or `N-M`, each with an optional `/step`.
    fn read_part(&self, part: &str) -> Option<Field> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (part, None),
        };
        let (low, high) = range.split_once('-').map_or((range, None), |(low, high)| (low, Some(high)));
        let star = low == "*" || low == "?";
        let (first, last) = match high {
            // What follows a star and a hyphen is ignored.
            _ if star => (self.min.into(), self.max.into()),
            Some(high) => (self.value(low)?, self.value(high)?),
            None if step.is_some() => (self.value(low)?, self.max.into()),
            None => (self.value(low)?, self.value(low)?),
        };
        let step = step.unwrap_or(1);
        if first < self.min.into() || last > self.max.into() || first > last || step == 0 {
            return None;
        }
        let stride = usize::try_from(step).unwrap_or(usize::MAX);
        let bits = (first..=last).step_by(stride).fold(0, |bits, value| bits | 1 << value);
        Some(Field { bits, star: star && step == 1 })
    }

    fn value(&self, text: &str) -> Option<u64> {
        let named =
            self.names.iter().zip(u64::from(self.min)..).find(|(name, _)| text.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value).or_else(|| number(text))
    }
}

/// A decimal integer without a minus sign that fits 63 bits; a plus sign is allowed.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| i64::try_from(*number).is_ok())
}

#[cfg(test)]
mod tests;

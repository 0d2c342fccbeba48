//! Flags in Go's spelling, and the variables that stand in for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::names::flags::{self, Flag, FlagKind};
use api::provider::Provider;
use units::GoDuration;

/// Why the process cannot start with these settings, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The command line cannot be read.
    #[error("parsing flags, {0}")]
    Flags(String),
    /// A value is not one of those that are possible.
    #[error("validating cli flags / env vars, invalid {variable} {value:?}")]
    Invalid {
        /// The variable's name.
        variable: &'static str,
        /// What it is set to.
        value: String,
    },
    /// The feature gates cannot be read.
    #[error("parsing feature gates, {0}")]
    Gates(String),
    /// The scheduler's configuration cannot be used.
    #[error("parsing scheduler config, {0}")]
    SchedulerConfig(String),
}

/// The flags of a provider besides those of the core.
pub(super) const fn of_provider(provider: Provider) -> &'static [Flag] {
    match provider {
        Provider::Kwok => flags::kwok::ALL,
        Provider::Aws => flags::aws::ALL,
        Provider::Azure => flags::azure::ALL,
    }
}

/// The values of flags.
#[derive(Debug)]
pub(super) struct Values(BTreeMap<&'static str, String>);

/// The values, or that help is wanted.
pub(super) enum Read {
    Values(Values),
    Help,
}

impl Values {
    /// Reads the command line; what it does not say comes from the environment, or is the default. A variable
    /// that cannot be read counts as not set.
    pub(super) fn read(
        known: &[&'static Flag],
        arguments: impl IntoIterator<Item = String>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Read, SettingsError> {
        let mut values = BTreeMap::new();
        for flag in known {
            let set = environment(flag.env).and_then(|value| from_environment(flag.kind, value));
            if let Some(value) = set.or_else(|| flag.default.map(str::to_owned)) {
                values.insert(flag.flag, value);
            }
        }
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(name) = argument.strip_prefix('-').filter(|name| !name.is_empty()) else { break };
            let name = name.strip_prefix('-').unwrap_or(name);
            if name.is_empty() {
                // Two dashes end the flags.
                break;
            }
            if name.starts_with(['-', '=']) {
                return Err(SettingsError::Flags(format!("bad flag syntax: {argument}")));
            }
            let (name, value) =
                name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let Some(flag) = known.iter().find(|flag| flag.flag == name) else {
                if matches!(name, "h" | "help") {
                    return Ok(Read::Help);
                }
                return Err(SettingsError::Flags(format!("flag provided but not defined: -{name}")));
            };
            let value = match value {
                Some(value) => value.to_owned(),
                None if flag.kind == FlagKind::Switch => "true".to_owned(),
                None => arguments
                    .next()
                    .ok_or_else(|| SettingsError::Flags(format!("flag needs an argument: -{name}")))?,
            };
            let read = from_command_line(flag.kind, &value).map_err(|why| {
                SettingsError::Flags(format!("invalid value {value:?} for flag -{name}: {why}"))
            })?;
            values.insert(flag.flag, read);
        }
        Ok(Read::Values(Self(values)))
    }

    pub(super) fn text(&self, flag: &Flag) -> &str {
        self.0.get(flag.flag).map_or("", String::as_str)
    }

    /// Every value was checked when it was read, so these never fall back.
    pub(super) fn integer(&self, flag: &Flag) -> i64 {
        self.text(flag).parse().unwrap_or_default()
    }

    pub(super) fn switch(&self, flag: &Flag) -> bool {
        self.text(flag) == "true"
    }

    pub(super) fn duration(&self, flag: &Flag) -> std::time::Duration {
        let nanos = self.text(flag).parse::<GoDuration>().unwrap_or_default().as_nanos();
        std::time::Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }

    /// The values of some flags only.
    pub(super) fn of(&self, known: &'static [Flag]) -> BTreeMap<&'static str, String> {
        known.iter().filter_map(|flag| Some((flag.flag, self.0.get(flag.flag)?.clone()))).collect()
    }
}

/// The value in its plainest form, if it is one.
fn from_environment(kind: FlagKind, value: String) -> Option<String> {
    match kind {
        FlagKind::Text => Some(value),
        FlagKind::Integer => value.parse::<i64>().ok().map(|number| number.to_string()),
        FlagKind::Number => value.parse::<f64>().ok().map(|_| value),
        FlagKind::Switch => switch(&value).map(|on| on.to_string()),
        FlagKind::Duration => value.parse::<GoDuration>().ok().map(|_| value),
    }
}

fn from_command_line(kind: FlagKind, value: &str) -> Result<String, String> {
    let wrong = |_| "parse error".to_owned();
    match kind {
        FlagKind::Text => {}
        FlagKind::Integer => return integer(value).map(|number| number.to_string()),
        FlagKind::Number => {
            value.parse::<f64>().map_err(|_| "parse error".to_owned())?;
        }
        FlagKind::Switch if matches!(value, "true" | "false") => {}
        FlagKind::Switch => return Err(format!("{value:?} is not a valid value, must be true or false")),
        FlagKind::Duration => {
            value.parse::<GoDuration>().map_err(wrong)?;
        }
    }
    Ok(value.to_owned())
}

/// A whole number, perhaps with a sign and one of the prefixes `0x`, `0o` and `0b`.
fn integer(value: &str) -> Result<i64, String> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return Err("parse error".to_owned());
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|error| match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
            "value out of range".to_owned()
        }
        _ => "parse error".to_owned(),
    })
}

/// Whether a text means yes or no, in any of Go's spellings.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Explains all flags.
pub(super) fn help(known: &[&'static Flag]) -> String {
    let mut text = "Settings, as flags or as environment variables; flags beat variables:\n".to_owned();
    for flag in known {
        let kind = if flag.kind == FlagKind::Switch { "" } else { flag.kind.as_str() };
        // Writing to a text cannot fail, here and below.
        let _ = write!(text, "  --{} {kind}", flag.flag);
        text.truncate(text.trim_end().len());
        let _ = write!(text, "\n        {} (env {}", flag.help, flag.env);
        let _ = match flag.default {
            None => writeln!(text, ", required)"),
            Some("") => writeln!(text, ")"),
            Some(default) => writeln!(text, ", default {default})"),
        };
    }
    text
}

//! What is found when a cloud is looked over: a line for each check, what to do about it, and how it all comes out.
//! Each provider fills a [`Report`]; how it is printed is the same for all.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is as it should be.
    Good,
    /// Something works less well, or could not be found out.
    Warning,
    /// Something does not work.
    Bad,
}

impl Level {
    const fn mark(self) -> char {
        match self {
            Self::Good => '✓',
            Self::Warning => '!',
            Self::Bad => '✗',
        }
    }

    /// Its name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// How it came out.
    pub level: Level,
    /// What was looked at.
    pub about: String,
    /// What was found.
    pub message: String,
    /// What to do; empty if nothing.
    pub advice: String,
}

impl Check {
    /// It is as it should be.
    pub fn good(about: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Good, about: about.into(), message: message.into(), advice: String::new() }
    }

    /// Something works less well, or could not be found out.
    pub fn warning(about: impl Into<String>, message: impl Into<String>, advice: impl Into<String>) -> Self {
        let (about, message, advice) = (about.into(), message.into(), advice.into());
        Self { level: Level::Warning, about, message, advice }
    }

    /// Something does not work.
    pub fn bad(about: impl Into<String>, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Bad, ..Self::warning(about, message, advice) }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was looked over, in a few words.
    pub title: String,
    /// The checks, in the order in which they are to be read.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing is bad.
    pub fn is_healthy(&self) -> bool {
        self.count(Level::Bad) == 0
    }

    fn count(&self, level: Level) -> usize {
        self.checks.iter().filter(|check| check.level == level).count()
    }

    /// For people: a line for each check, then how many came out how.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.title);
        for Check { level, about, message, advice } in &self.checks {
            let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
            let line = format!("{} {about}: {message}{advice}", level.mark());
            // What services say may have line ends of its own.
            let _ = writeln!(text, "{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        let (good, warnings, bad) =
            (self.count(Level::Good), self.count(Level::Warning), self.count(Level::Bad));
        let _ = writeln!(text, "\n{good} good, {warnings} to look at, {bad} bad");
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let check = |check: &Check| {
            json!({
                "level": check.level.as_str(), "about": check.about, "message": check.message,
                "advice": check.advice,
            })
        };
        json!({
            "title": self.title,
            "healthy": self.is_healthy(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_line_with_what_to_do() {
        let mut report = Report {
            title: "AWS, region r, cluster c".to_owned(),
            checks: vec![
                Check::good("credentials", "account 1"),
                Check::warning("queue", "none is set", "set --interruption-queue"),
            ],
        };
        assert!(report.is_healthy(), "warnings are not failures");
        report.checks.push(Check::bad("subnets of default", "none\n match", "tag them"));
        assert!(!report.is_healthy());
        assert_eq!(
            report.text(),
            "AWS, region r, cluster c\n\n✓ credentials: account 1\n! queue: none is set; set --interruption-queue\n✗ subnets of default: none match; tag them\n\n1 good, 1 to look at, 1 bad\n"
        );
        let json = report.json();
        assert_eq!((&json["healthy"], &json["checks"][2]["level"]), (&json!(false), &json!("bad")));
        assert_eq!(json["checks"][1]["advice"], "set --interruption-queue");
    }
}

//! Profiles, under the names by which Go's tools ask for them.

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;

use super::{Answer, TEXT, answer as respond, not_found};

/// What can be asked for, and what it is.
const PROFILES: [(&str, &str); 3] = [
    ("cmdline", "the command line of the process"),
    ("heap", "the memory of the process, as Linux sees it"),
    ("profile", "where processor time goes, for ?seconds=30"),
];

/// The answer for one profile, or the list of all.
pub(super) fn answer(profile: &str, query: &str) -> BoxFuture<'static, Answer> {
    let answer = match profile {
        "" => respond(StatusCode::OK, "text/html; charset=utf-8", index()),
        "cmdline" => respond(StatusCode::OK, TEXT, command_line()),
        "heap" => respond(StatusCode::OK, TEXT, memory()),
        "profile" => return cpu::profile(seconds(query)).boxed(),
        _ => not_found(),
    };
    Box::pin(std::future::ready(answer))
}

fn index() -> String {
    let lines = PROFILES.map(|(name, what)| format!("<li><a href=\"{name}\">{name}</a>: {what}</li>\n"));
    format!(
        "<!DOCTYPE html>\n<html>\n<head><title>/debug/pprof/</title></head>\n<body>\n<ul>\n{}</ul>\n</body>\n</html>\n",
        lines.concat()
    )
}

/// The arguments, separated as Linux does, but not terminated.
fn command_line() -> Bytes {
    let mut arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    arguments.pop_if(|last| *last == 0);
    arguments.into()
}

fn memory() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let is_size = |line: &&str| line.starts_with("Vm") || line.starts_with("Rss");
    let mut sizes = status.lines().filter(is_size).collect::<Vec<&str>>().join("\n");
    sizes.push('\n');
    sizes + &read("/proc/self/smaps_rollup")
}

/// How long to look, in seconds.
fn seconds(query: &str) -> u64 {
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "seconds");
    asked.and_then(|(_, value)| value.parse().ok()).filter(|seconds| *seconds > 0).unwrap_or(30).min(300)
}

#[cfg(not(feature = "profiling"))]
mod cpu {
    use super::{Answer, StatusCode, TEXT, respond};

    pub(super) fn profile(_seconds: u64) -> std::future::Ready<Answer> {
        let why = "this program was built without the feature \"profiling\"\n";
        std::future::ready(respond(StatusCode::NOT_IMPLEMENTED, TEXT, why))
    }
}

#[cfg(feature = "profiling")]
mod cpu;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_takes_half_a_minute_unless_it_is_said() {
        assert_eq!(
            ["", "seconds=5", "a=b&seconds=x", "seconds=0", "seconds=9999"].map(seconds),
            [30, 5, 30, 30, 300]
        );
    }
}

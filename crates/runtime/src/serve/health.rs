//! Liveness and readiness: named checks, together or one by one.

use std::fmt::Write as _;
use std::time::Duration;

use http::{Request, StatusCode};
use kube::Client;
use serde::Deserialize;
use tokio::sync::watch;

use super::{Answer, TEXT, answer as respond, not_found};
use crate::api::Error;

/// How often it is looked for CRDs that are not there.
const LOOK: Duration = Duration::from_secs(2);

/// Something that must hold.
pub struct Check {
    name: &'static str,
    passes: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

impl Check {
    /// A check with a name; it says why it does not pass.
    pub fn new(name: &'static str, passes: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name, passes: Box::new(passes) }
    }

    /// A check that passes as long as there is anybody to ask.
    pub fn ping(name: &'static str) -> Self {
        Self::new(name, || Ok(()))
    }
}

/// The answer for all checks, or for one of them.
pub(super) fn answer(checks: &[Check], one: &str, query: &str) -> Answer {
    if one.is_empty() {
        return all(checks, query);
    }
    match checks.iter().find(|check| check.name == one).map(|check| (check.passes)()) {
        None => not_found(),
        Some(Ok(())) => respond(StatusCode::OK, TEXT, "ok"),
        Some(Err(why)) => {
            respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("internal server error: {why}\n"))
        }
    }
}

fn all(checks: &[Check], query: &str) -> Answer {
    let mut excluded: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(key, _)| key == "exclude")
        .map(|(_, name)| name.into_owned())
        .collect();
    let verbose = form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == "verbose");
    let mut checks: Vec<&Check> = checks.iter().collect();
    checks.sort_by_key(|check| check.name);
    let (mut lines, mut failed) = (String::new(), false);
    for check in checks {
        let name = check.name;
        // Writing to a text cannot fail, here and below.
        let _ = if excluded.iter().any(|excluded| excluded == name) {
            excluded.retain(|excluded| excluded != name);
            writeln!(lines, "[+]{name} excluded: ok")
        } else if let Err(why) = (check.passes)() {
            failed = true;
            tracing::debug!(checker = name, error = why, "healthz check failed");
            writeln!(lines, "[-]{name} failed: reason withheld")
        } else {
            writeln!(lines, "[+]{name} ok")
        };
    }
    if !failed && !verbose {
        return respond(StatusCode::OK, TEXT, "ok");
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {}",
            names.join(", ")
        );
    }
    lines.push_str(if failed { "healthz check failed\n" } else { "healthz check passed\n" });
    respond(if failed { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }, TEXT, lines)
}

/// Looks for the core's CRDs until the server knows them, and says so.
pub async fn find_crds(client: Client, found: watch::Sender<bool>) {
    loop {
        match has_crds(&client).await {
            Ok(true) => {
                found.send_replace(true);
                return;
            }
            Ok(false) => {}
            Err(error) => tracing::debug!(error = %error, "failed to look for CRDs"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    kind: String,
}

async fn has_crds(client: &Client) -> Result<bool, Error> {
    let path = format!("/apis/{}/v1", api::names::labels::DOMAIN);
    let request = Request::get(path).body(Vec::new()).map_err(|error| Error::Other(error.to_string()))?;
    match client.request::<Resources>(request).await.map_err(Error::from) {
        Ok(Resources { resources }) => Ok(["NodePool", "NodeClaim"]
            .iter()
            .all(|kind| resources.iter().any(|resource| resource.kind == *kind))),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

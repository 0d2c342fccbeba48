//! Azure for commands that administrators run: whose subscription it is, and who asks.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use api::names::flags;
use azure::arm::{Client, Setup};
use azure::auth::PATIENT_PROBE;
use azure::configure::default_subscription;
use azure::environment::Environment;
use clock::Clock;

use crate::controller::VERSION;

/// The tokens by which nodes join.
pub(crate) const BOOTSTRAP_TOKENS: &str =
    "/api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken";

/// A variable of the environment that says something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Which cloud it is.
pub(crate) fn environment() -> Result<Environment> {
    let text = |name: &str| variable(name).unwrap_or_default();
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    Ok(Environment::choose(&text(flags::ARM_CLOUD), &text(flags::AZURE_ENVIRONMENT_FILEPATH), read)?)
}

/// The subscription: as said, else that of the environment, else the one that `az` uses.
pub(crate) fn subscription(said: Option<&str>) -> Result<String> {
    let said = said.map(str::to_owned).filter(|text| !text.is_empty());
    let known = said
        .or_else(|| variable(flags::AZURE_SUBSCRIPTION_ID))
        .or_else(|| variable(flags::ARM_SUBSCRIPTION_ID))
        .or_else(of_az);
    match known {
        Some(known) => Ok(known),
        None => bail!(
            "no Azure subscription is known: set --subscription, or AZURE_SUBSCRIPTION_ID, or log in with `az login`"
        ),
    }
}

fn of_az() -> Option<String> {
    let folder = variable("AZURE_CONFIG_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".azure")))?;
    default_subscription(&std::fs::read_to_string(folder.join("azureProfile.json")).ok()?)
}

/// A client, as whoever the environment says or is logged in to `az`.
pub(crate) async fn connect(environment: &Environment, subscription: &str) -> Result<Client> {
    let variable = |name: &str| std::env::var(name).ok();
    let connection = azure_http::connect(environment, variable, PATIENT_PROBE).await;
    let connection = connection.map_err(|error| anyhow!(error)).context("finding out who asks Azure")?;
    Ok(Client::new(Setup {
        environment: environment.clone(),
        version: VERSION.to_owned(),
        clock: Clock::system(),
        seed: u64::from(std::process::id()),
        ..Setup::new(connection.transport, connection.tokens, subscription)
    }))
}
